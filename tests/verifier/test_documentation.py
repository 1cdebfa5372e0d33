"""The page lists every check."""

from __future__ import annotations

from pathlib import Path

from coopt.verifier.checks.verdict import CHECKS


def test_every_check_stands_on_the_page_with_its_meaning() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verifier.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("- `")]
    assert rows == [f"- `{name}`: {meaning}" for name, meaning in CHECKS], "`make docs` writes it"
