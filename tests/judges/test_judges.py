"""The table of docs/judges.md is whole, and what judges compare can fail."""

from __future__ import annotations

import pytest

from tests.judges.__main__ import JUDGES, MOST_SKIPPED, PAGE, cells
from tests.judges.documents import crossing
from tests.judges.judge import DisagreementError, agree
from tests.judges.sharing import ends


def test_every_judge_has_a_row_and_none_failed() -> None:
    rows = cells(PAGE.read_text("utf-8"))
    may_be_skipped = {judge.program: judge.may_be_skipped for judge in JUDGES}
    assert [name for name, *_ in rows] == list(may_be_skipped)
    assert not [row for row in rows if "**" in row[-1]]
    skipped = [name for name, *_, result in rows if result.startswith("skipped")]
    assert len(skipped) <= MOST_SKIPPED
    assert all(may_be_skipped[name] for name in skipped)


def test_what_differs_is_said() -> None:
    assert agree([], 2, "files") == "2 files agree"
    with pytest.raises(DisagreementError, match="files differ: one"):
        agree(["one"], 2, "files")


@pytest.mark.parametrize(
    ("slices", "crosses"),
    [
        ([(0, -10), (5, -10)], True),
        ([(0, -10), (0, -4), (4, -6), (10, -1)], False),
        ([(0, -4), (0, -10), (4, -7)], True),
    ],
)
def test_slices_that_cross_are_noticed(slices: list[tuple[int, int]], crosses: bool) -> None:
    assert crossing(slices) == crosses


def test_flows_share_a_link_from_the_moment_they_meet() -> None:
    flows = [{"links": [0], "start_s": 0.0, "volume": 10**9}, {"links": [0], "start_s": 0.5, "volume": 10**9}]
    assert ends({"rates": [1e9], "flows": flows}) == pytest.approx([1.5, 2.0])
