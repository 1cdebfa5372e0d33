"""The time limit before a search begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coopt.network.family import Family
from coopt.solving.outcome import Run


def in_time(run: Run, found: Iterable[Family]) -> Iterator[Family]:
    """The families, as long as there is time."""
    for family in found:
        run.check_clock()
        yield family
