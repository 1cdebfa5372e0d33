"""docs/days.md says what its questions are answered with now."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "days.md").read_text("utf-8")
ASK = runpy.run_path(str(ROOT / "benchmarks" / "days.py"))


def test_the_cheapest_domains_for_65_days_and_their_spares_are_those_of_the_page() -> None:
    assert ASK["of_domain"]("hgx-h100-8") in PAGE.splitlines()


def test_the_days_at_three_to_one_are_those_of_the_page() -> None:
    assert ASK["of_ratio"](3.0) in PAGE
