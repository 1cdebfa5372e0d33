"""Results are columns that DuckDB reads without a word of explanation."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from coopt.instance.texts import InstanceError
from coopt.suite.table import COLUMNS, read_rows, write_rows
from tests.suite.conftest import VARY, Ran, Written


def row(**own: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS) | {"workloads": [], "overrides": "{}"} | own


def test_duckdb_answers_questions_about_a_run(written: Written, ran: Ran, tmp_path: Path) -> None:
    ran(written(VARY + '[[grid]]\nname = "quick"\naction = "fastest"\ninstances = "small.toml"\n'))
    file = tmp_path / "out" / "results.parquet"
    found = duckdb.sql(f"""
        SELECT cluster_gpus, min(capex_usd), arg_min(hb_name, capex_usd) FROM '{file}'
        WHERE grid = 'pace' AND status = 'optimal' GROUP BY ALL ORDER BY ALL""").fetchall()
    assert found == [(64, 181888.0, "hgx-h100-8")]
    refused = f"SELECT count(*) FROM '{file}' WHERE status = 'infeasible' AND why IS NOT NULL"
    assert duckdb.sql(refused).fetchall() == [(4,)]
    nested, flat = (
        "SELECT w.tp\nFROM (SELECT unnest(workloads) AS w\nFROM '{}')",
        "SELECT tp\nFROM '{}'\nWHERE tp NOTNULL",
    )
    assert duckdb.sql(nested.format(file)).fetchall() == duckdb.sql(flat.format(file)).fetchall() != []
    assert len(duckdb.sql(f"SELECT iteration_time_s FROM '{file}' WHERE action = 'fastest'").fetchall()) == 1


@pytest.fixture(autouse=True)
def small(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        (Path(__file__).parents[2] / "instances" / "tiny-64.toml").read_text("utf-8"), "utf-8"
    )


def test_every_documented_column_is_there_with_its_type(tmp_path: Path) -> None:
    write_rows(tmp_path / "r.parquet", [row(radix=64)])
    types = dict(
        duckdb.sql(f"SELECT column_name, column_type FROM (DESCRIBE FROM '{tmp_path / 'r.parquet'}')").fetchall()
    )
    meant = {"text": "VARCHAR", "whole": "BIGINT", "real": "DOUBLE"}
    assert {name: types[name] for name in COLUMNS} == {name: meant[kind] for name, kind in COLUMNS.items()}
    assert types["radix"] == "BIGINT"
    page = (Path(__file__).parents[2] / "docs" / "suites.md").read_text("utf-8")
    assert [name for name in types if f"`{name}`" not in page and name != "radix"] == []


def test_an_axis_has_one_type(tmp_path: Path) -> None:
    """Rows of other grids have nothing in an axis that they lack."""
    for values, kept in (
        ([1, 2], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ([True, False], [True, False]),
        ([1, True], ["1", "true"]),
        ([8, "all"], ["8", "all"]),
        ([2**70], [float(2**70)]),
    ):
        write_rows(tmp_path / "r.parquet", [row(own=value) for value in values])
        assert [found["own"] for found in read_rows(tmp_path / "r.parquet")] == kept
    write_rows(tmp_path / "r.parquet", [row(a=1), row(b="x")])
    assert [(found["a"], found["b"]) for found in read_rows(tmp_path / "r.parquet")] == [(1, None), (None, "x")]


@pytest.mark.parametrize("content", [b"", b"PAR1 and nothing else", None])
def test_what_is_not_results_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "r.parquet").write_bytes(content)
    with pytest.raises(InstanceError, match=r"r\.parquet: (cannot be read|no such file)"):
        read_rows(tmp_path / "r.parquet")
