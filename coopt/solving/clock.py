"""The time limit before a search begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coopt.network.family import Family
from coopt.solving.outcome import Run


class OutOfTimeError(Exception):
    """The time limit passed before the search began."""


def check_clock(run: Run) -> None:
    """Raise `OutOfTimeError` once the time limit of a run is over."""
    if run.elapsed_s() > run.instance.solver.time_limit_s:
        raise OutOfTimeError


def in_time(run: Run, found: Iterable[Family]) -> Iterator[Family]:
    """The families, as long as there is time."""
    for family in found:
        check_clock(run)
        yield family
