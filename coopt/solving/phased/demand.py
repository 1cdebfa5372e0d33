"""What every phase asks of every line: how few uplinks meet its bounds, and how many its limits allow."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coopt.columns.context import context_of
from coopt.columns.table import Columns, columns, needs
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from coopt.network.family import Family
from coopt.network.growth import Line
from coopt.network.parts import cost_of, within_limits

Uplinks = tuple[int, ...]  # rising


@dataclass(frozen=True, kw_only=True)
class Demand:
    """For every line and phase the uplinks a leaf may have; none where the phase's bounds or limits are not met.

    `questions` are the phases, each as a question of its own; `tables` hold the mappings on their networks.
    """

    lines: tuple[Line, ...]
    questions: tuple[Instance, ...]
    tables: tuple[Columns, ...]
    timely: tuple[tuple[Uplinks, ...], ...]
    allowed: tuple[tuple[Uplinks, ...], ...]

    @property
    def enumerated(self) -> int:
        """Mappings of all phases."""
        return sum(table.enumerated for table in self.tables)

    @property
    def gated(self) -> dict[str, int]:
        """Those dropped, by cause."""
        found: Counter[str] = Counter()
        for table in self.tables:
            found.update(table.gated)
        return dict(found)

    @property
    def kept(self) -> int:
        """Those kept."""
        return sum(table.kept for table in self.tables)

    @property
    def serving(self) -> tuple[int, ...]:
        """Positions of lines that can serve every phase."""
        return tuple(f for f, uplinks in enumerate(self.allowed) if _rises(uplinks))


def _rises(phases: Sequence[Uplinks]) -> bool:
    """Whether there are uplinks for every phase that never fall."""
    least = 0
    for uplinks in phases:
        least = max(least, uplinks[0]) if uplinks else least
        if not uplinks or least > uplinks[-1]:
            return False
    return True


def demanded(
    instance: Instance, lines: tuple[Line, ...], on_phase: Callable[[int], None], on_context: Callable[[], None]
) -> Demand:
    """List the mappings of every phase, and what they need of every line."""
    questions = tuple(of_phase(instance, t) for t in range(len(instance.phase)))
    tables: list[Columns] = []
    timely: list[tuple[Uplinks, ...]] = []
    for t, question in enumerate(questions):
        on_phase(t)
        families = tuple(line.phases[t] for line in lines)
        tables.append(columns(question, families, lambda _site: None, on_context))
        need = needs(tables[-1].columns, len(question.workload))
        timely.append(tuple(_timely(family, need.get(tables[-1].numbers[context_of(family)])) for family in families))
    by_line = tuple(zip(*timely, strict=True))
    return Demand(
        lines=lines,
        questions=questions,
        tables=tuple(tables),
        timely=by_line,
        allowed=tuple(
            tuple(_within(*part) for part in zip(questions, line.phases, uplinks, strict=True))
            for line, uplinks in zip(lines, by_line, strict=True)
        ),
    )


def _timely(family: Family, need: int | None) -> Uplinks:
    """Uplinks with which every workload meets its bound."""
    return () if need is None else tuple(u for u in family.uplink_choices if u >= need)


def _within(question: Instance, family: Family, uplinks: Uplinks) -> Uplinks:
    """Those that keep the limits; use of what is limited never falls with uplinks."""

    def over(u: int) -> bool:
        return not within_limits(question, family, cost_of(question, family, u))

    limits = question.limits
    if limits.power_mw is None and limits.racks is None:
        return uplinks
    return uplinks[: bisect_left(uplinks, True, key=over)]
