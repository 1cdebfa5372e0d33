"""How far published runs of one configuration differ: what no model of the configuration alone can predict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from coopt.validation.published import MEASURED, Row
from coopt.validation.runs import Run, outcome_of

APART = ("id", "source_url", "notes", *MEASURED)


def spreads(rows: Iterable[Row]) -> list[tuple[float, tuple[str, ...]]]:
    """Slowest over fastest measurement of every configuration that was published more than once, with its ids.

    Rows are of one configuration where all columns but the measurement, the id, the address and the notes are equal;
    the largest ratio comes first.
    """
    alike: dict[object, list[tuple[float, str]]] = {}
    for row in rows:
        outcome = outcome_of(row)
        if isinstance(outcome, Run):
            key = tuple(value for name, value in asdict(row).items() if name not in APART)
            alike.setdefault(key, []).append((outcome.measured_s, row.id))
    many = [sorted(members) for members in alike.values() if len(members) > 1]
    found = [(members[-1][0] / members[0][0], tuple(name for _, name in members)) for members in many]
    return sorted(found, reverse=True)
