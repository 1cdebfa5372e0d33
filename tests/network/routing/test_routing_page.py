"""docs/routing.md shows rows of benchmarks/routing.csv."""

from __future__ import annotations

import csv
from pathlib import Path

from coopt.network.routing.algorithms import ALGORITHMS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "routing.md").read_text("utf-8")


def test_the_rows_are_those_of_the_benchmark() -> None:
    with (ROOT / "benchmarks" / "routing.csv").open(encoding="utf-8") as file:
        rows = [
            f"| {r['hosts_per_leaf']} | {r['failed_cores']} | {r['jobs']} of {r['hosts_of_a_job']} | {r['algorithm']} "
            f"| {float(r['alpha_mean']):.1f} | {float(r['bound_mean']):.1f} | {float(r['efficiency']):.2f} | "
            f"{float(r['median_ms']):.1f} |"
            for r in csv.DictReader(file)
        ]
    shown = [line for line in PAGE.splitlines() if line.endswith(" |") and line[2].isdigit()]
    assert shown
    assert set(shown) <= set(rows)


def test_every_algorithm_is_on_the_page() -> None:
    assert all(f"| `{name}` |" in PAGE for name in ALGORITHMS)
