"""docs/library.md shows what benchmarks/library.csv holds, and whoever certifies a small question finds the same."""

from __future__ import annotations

import csv
import importlib
import sys
from pathlib import Path

import pytest

import coopt

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")
sys.path.insert(0, str(ROOT / "benchmarks"))
LIBRARY = importlib.import_module("library")
ROWS = list(csv.DictReader((ROOT / "benchmarks" / "library.csv").read_text("utf-8").splitlines()))


def test_every_shipped_question_has_a_row() -> None:
    assert [row["instance"] for row in ROWS] == sorted(path.stem for path in (ROOT / "instances").glob("*.toml"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_every_row_stands_on_the_page(row: dict[str, str]) -> None:
    assert LIBRARY.on_page(row) in PAGE.splitlines()
    assert (ROOT / "instances" / f"{row['instance']}.toml").exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["instance"])
def test_a_row_is_verified_and_its_bound_is_no_more_than_its_value(row: dict[str, str]) -> None:
    assert row["verified"] == "True"
    if row["value"]:
        assert 0 <= float(row["certified"] or row["bound"]) <= float(row["value"])
    proven = float(row["certified"] or 0) / float(row["bound"] or 1)
    assert row["certified"] == row["bound"] if row["share"] == "100" else 0 <= proven - float(row["share"]) / 100 < 1e-5
    assert bool(row["proof_bytes"]) == row["by"].startswith("a proof")


def test_a_small_question_is_certified_as_the_table_says() -> None:
    (row,) = (row for row in ROWS if row["instance"] == "tiny-64")
    instance = coopt.load(ROOT / "instances" / "tiny-64.toml")
    found = coopt.certify(instance, coopt.solve(instance))
    assert found.ok
    assert found.bound_proven == float(row["value"])
