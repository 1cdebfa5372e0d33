"""docs/model.md is what its generator writes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "generate.py"))["page"]()
    assert (DOCS / "model.md").read_text("utf-8") == page, "`make docs` writes it"


def test_no_constant_is_left_open() -> None:
    assert not re.search(r"\{[A-Z_]+\}", (DOCS / "model.md").read_text("utf-8"))
