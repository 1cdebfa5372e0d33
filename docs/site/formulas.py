"""Formulas of a page as MathML, which browsers draw by themselves: no script, no font, no
network.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FENCE = re.compile(
    r"^```math\n(?P<shown>.*?)\n```$|^```.*?^```$|\$`(?P<inline>[^`]+)`\$", re.DOTALL | re.MULTILINE
)
MARK = "formula{}mark"
UNREAD = re.compile(r"\\\w+")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put a mark in place of each formula, which Markdown leaves alone."""
    page.formulas = []

    def mark(found: re.Match[str]) -> str:
        if found["shown"] is None and found["inline"] is None:
            return found[0]
        page.formulas.append(
            mathml(found["shown"] or found["inline"], block=found["shown"] is not None)
        )
        return MARK.format(len(page.formulas) - 1)

    return FENCE.sub(mark, markdown)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put the formulas in place of their marks."""
    return re.sub(MARK.format(r"(\d+)"), lambda found: page.formulas[int(found[1])], html)


def mathml(latex: str, *, block: bool) -> str:
    """One formula, with its LaTeX beside it for those who copy or hear it."""
    drawn = convert(latex, display="block" if block else "inline")
    left = UNREAD.search(re.sub(r"<[^>]*>", "", drawn))
    if left:
        raise ValueError(f"{left[0]} of {latex!r} has no MathML")
    return drawn.replace("<math ", f'<math alttext="{html.escape(latex)}" ', 1)
