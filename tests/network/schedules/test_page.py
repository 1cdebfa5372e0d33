"""The figures of docs/collectives.md and docs/routing.md are those of the code."""

import csv
import re
from pathlib import Path

import pytest

from coopt.network.routing.algorithms import ALGORITHMS as ROUTERS
from coopt.network.schedules.board import step_bound
from coopt.network.schedules.outcome import ALGORITHMS
from coopt.network.schedules.textbook import ring_schedule
from coopt.network.schedules.trees import multitree

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "collectives.md").read_text("utf-8")
CELL = r" ?\**([^|*]*?)\** \|"
ROWS = re.findall(rf"^\| ([a-z]+:\S+) \|{CELL * 6}$", PAGE, re.MULTILINE)


def test_the_page_has_figures_and_every_algorithm():
    assert len(ROWS) >= 10
    assert all(f"| `{name}` |" in PAGE for name in ALGORITHMS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_figures_is_what_is_computed(drawn, row):
    text, ring, _, steps, bound, gain, construction = row
    _, board = drawn(text)
    found = multitree(board)
    assert (int(ring), int(steps), int(bound)) == (ring_schedule(board).steps, found.steps, step_bound(board).steps)
    assert float(gain) == pytest.approx((board.domains - 1) / found.steps, rel=5e-3)
    assert construction.split()[0] in found.found_by


ROUTING = (ROOT / "docs" / "routing.md").read_text("utf-8")


def test_the_rows_are_those_of_the_benchmark() -> None:
    with (ROOT / "benchmarks" / "routing.csv").open(encoding="utf-8") as file:
        rows = [
            f"| {r['hosts_per_leaf']} | {r['failed_cores']} | {r['jobs']} of {r['hosts_of_a_job']} | {r['algorithm']} "
            f"| {float(r['alpha_mean']):.1f} | {float(r['bound_mean']):.1f} | {float(r['efficiency']):.2f} | "
            f"{float(r['median_ms']):.1f} |"
            for r in csv.DictReader(file)
        ]
    shown = [line for line in ROUTING.splitlines() if line.endswith(" |") and line[2].isdigit()]
    assert shown
    assert set(shown) <= set(rows)


def test_every_algorithm_is_on_the_page() -> None:
    assert all(f"| `{name}` |" in ROUTING for name in ROUTERS)
