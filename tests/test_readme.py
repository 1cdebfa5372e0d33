"""What the README names is there; tests/docs runs what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import coopt
from coopt.cli.main import main

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", re.findall(r"`((?:docs|instances|benchmarks)/[^`]*)`", TEXT))
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("path", re.findall(r"\]\((?!https?:)([^)#]+)\)", TEXT))
def test_a_link_leads_to_a_file(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {coopt.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


def test_every_command_is_listed() -> None:
    for name in main.list_commands(None):  # type: ignore[arg-type]
        assert f"`coopt {name}" in TEXT


def test_the_readme_is_short_and_leads_with_a_picture() -> None:
    assert len(TEXT.split()) <= 1100
    assert TEXT.index("![") < TEXT.index("```")


def test_both_commands_stand_above_the_picture() -> None:
    first_screen = TEXT[: TEXT.index("![")]
    for target in ("demo", "test"):
        assert f"`make {target}`" in first_screen
        assert f"\n{target}: " in (ROOT / "Makefile").read_text("utf-8")


def test_the_picture_shows_the_fleet_that_is_solved() -> None:
    drawn = (ROOT / "docs" / "fleet.svg").read_text("utf-8")
    for workload in coopt.load(ROOT / "instances" / "fleet-3-phases-2-sites.toml").workload:
        assert f">{workload.name}" in drawn
