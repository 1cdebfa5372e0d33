"""docs/library.md shows what benchmarks/library.csv holds, and whoever certifies a small question finds the same."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import coopt

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")
ROWS = list(csv.DictReader((ROOT / "benchmarks" / "library.csv").read_text("utf-8").splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_every_row_stands_on_the_page(row: dict[str, str]) -> None:
    value = f"{float(row['value']):,.2f}" if row["value"] else "none"
    bound = f"{float(row['certified'] or row['bound']):,.2f}" if row["bound"] else "none"
    seconds = f"{row['solve_s']} | {row['prove_s']} | {row['certify_s']}"
    assert (
        f"| {row['instance']} | {row['status']} | {row['objective']} | {value} | {bound} | {row['by']} | {seconds} |"
        in PAGE
    )
    assert (ROOT / "instances" / f"{row['instance']}.toml").exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_a_row_is_verified_and_its_bound_is_no_more_than_its_value(row: dict[str, str]) -> None:
    assert row["verified"] == "True"
    if row["value"]:
        assert 0 <= float(row["certified"] or row["bound"]) <= float(row["value"])
    if row["by"] != "the solver" and " below " not in row["by"]:
        assert row["certified"] == row["bound"]


def test_a_small_question_is_certified_as_the_table_says() -> None:
    (row,) = (row for row in ROWS if row["instance"] == "tiny-64")
    instance = coopt.load(ROOT / "instances" / "tiny-64.toml")
    found = coopt.certify(instance, coopt.solve(instance))
    assert found.ok
    assert found.bound_proven == float(row["value"])
