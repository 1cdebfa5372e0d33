"""The figures of docs/collectives.md are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coopt.network.schedules.board import step_bound
from coopt.network.schedules.outcome import ALGORITHMS
from coopt.network.schedules.textbook import ring_schedule
from coopt.network.schedules.trees import multitree

PAGE = (Path(__file__).parents[3] / "docs" / "collectives.md").read_text("utf-8")
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
    assert (int(ring), int(steps), int(bound)) == (
        ring_schedule(board).steps,
        found.steps,
        step_bound(board).steps,
    )
    assert float(gain) == pytest.approx((board.domains - 1) / found.steps, rel=5e-3)
    assert construction.split()[0] in found.found_by
