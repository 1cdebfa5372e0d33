"""docs/measurements.md describes every column, and what it shows works."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.validation.comparison import comparison_of
from coopt.validation.published import COLUMNS, COUNTS, read_measurements
from tests.conftest import question

PAGE = (Path(__file__).parents[1] / "docs" / "measurements.md").read_text("utf-8")
BLOCKS = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in re.findall(r"\n\n((?:    .*\n|\n)+)", PAGE)]


def block(start: str) -> str:
    (found,) = [text for text in BLOCKS if text.strip().startswith(start)]
    return found


@pytest.mark.parametrize("name", [*COLUMNS, *(f"flop_conv={counts}" for counts in COUNTS)])
def test_every_column_and_count_is_described(name: str) -> None:
    assert f"`{name}`" in PAGE


def test_the_small_file_is_read_and_predicted(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(block("id,"), "utf-8")
    found = comparison_of(read_measurements(file))
    assert found.evaluated == 1
    assert any("llama3-70b" in text for text in found.rows[0].assumptions)


def test_fitted_values_go_into_an_instance() -> None:
    shown = tomllib.loads(block("[cluster]"))
    table = question(cluster=shown["cluster"] | {"gpus": 64})
    table["workload"][0]["options"] = {"software": tomllib.loads(block("[workload"))["workload"]["options"]["software"]}
    instance = Instance.model_validate(table)
    assert instance.cluster.gpu.error("bf16") == 0.05
    assert instance.workload[0].options.software.overhead == 1.07
    assert coopt.solve(instance).design is not None
