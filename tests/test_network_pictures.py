"""The pictures of docs/network.md show the graphs of today."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree.ElementTree import parse

import pytest

DOCS = Path(__file__).parent.parent / "docs"
DRAW = runpy.run_path(str(DOCS / "draw.py"))
DRAWINGS = dict(DRAW["drawings"]())


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_picture_shows_its_graph(name: str) -> None:
    assert DRAW["current"](name, DRAWINGS[name]), "`make docs` draws it"
    assert parse(DOCS / "pictures" / f"{name}.svg").getroot().tag.endswith("svg")


def test_the_page_shows_every_picture_and_no_other() -> None:
    shown = re.findall(r"!\[[^]]+\]\(pictures/([\w-]+)\.svg\)", (DOCS / "network.md").read_text("utf-8"))
    assert sorted(shown) == sorted(DRAWINGS) == sorted(file.stem for file in (DOCS / "pictures").iterdir())


def test_pictures_say_nothing_of_when_or_where_they_were_drawn() -> None:
    for file in (DOCS / "pictures").iterdir():
        text = file.read_text("utf-8")
        assert "<dc:date>" not in text
        assert "Matplotlib v" not in text


@pytest.mark.parametrize("name", ["clos-3", "dragonfly"])
def test_a_picture_is_drawn_the_same_each_time(name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from docs.paint import fingerprint, paint

    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for file in files:
        paint(DRAWINGS[name], file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert fingerprint(DRAWINGS[name]) in files[0].read_text("utf-8")
