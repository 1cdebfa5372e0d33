"""Bills of materials as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from coopt.report import words
from coopt.report.tables import Figures, figures


class Line(Protocol):
    """A line of a bill: so many of an item, each at a price (USD) and a power (W)."""

    @property
    def item(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def unit_usd(self) -> float: ...
    @property
    def usd(self) -> float: ...
    @property
    def unit_w(self) -> float: ...
    @property
    def w(self) -> float: ...


def bill_figures(title: str, lines: Iterable[Line], usd: float, w: float) -> Figures:
    """The lines with their totals."""
    return figures(
        title,
        ("item", "kind"),
        ("count", "unit $", "$", "unit W", "W"),
        [
            (
                line.item,
                line.kind,
                words.count(line.count),
                *(words.exact(value) for value in (line.unit_usd, line.usd, line.unit_w, line.w)),
            )
            for line in lines
        ],
        total=("total", "", "", "", words.exact(usd), "", words.exact(w)),
    )
