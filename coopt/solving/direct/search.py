"""Find the cheapest mapping on direct links: a bound for every one first, then one by one while it may be cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from coopt.plan.parts import LinkLengths
from coopt.solving.backend import Backend
from coopt.solving.direct.climbing import Linked, TriedLinks, bound_links, climb
from coopt.solving.direct.lengths import Programs
from coopt.solving.direct.rows import Row
from coopt.solving.runs import Effort


@dataclass(frozen=True, kw_only=True)
class LinkedMapping:
    """A mapping with its links; no fewer than `least_links` can do for it."""

    row: Row
    linked: Linked
    least_links: int

    @property
    def value(self) -> float:
        """The objective."""
        return self.row.place.value(self.linked.count)


@dataclass(frozen=True, kw_only=True)
class DirectSearch(Effort):
    """How the search ended; `searched` of the mappings needed links, and `lengths` prove the bound."""

    found: LinkedMapping | None
    interrupted: bool
    searched: int
    lengths: tuple[LinkLengths, ...]


def search_links(
    rows: Sequence[Row], backend: Backend, *, gap: float, deadline: float, rival: float, tell: Callable[[str], None]
) -> DirectSearch:
    """The cheapest mapping on direct links, if it is cheaper than `rival` (objective units).

    Mappings are taken by rising bound, each with its largest group of symmetries before any has a smaller one; those
    whose bound is not below the best value, within the gap, cannot win.
    """
    found, value, stopped = None, rival, False
    bounds, known, programs = [row.least_value for row in rows], dict[int, TriedLinks](), Programs()
    waiting = [(0, bound, n) for n, bound in enumerate(bounds)]
    heapify(waiting)
    try:
        while waiting and not _over(known.values(), deadline):
            turn, low, n = heappop(waiting)
            row, tried = rows[n], known.get(n)
            if low >= value * (1 - gap):
                continue
            if tried is None:
                program = programs.of(row.demands)
                if program is not None:
                    known[n] = tried = bound_links(row.demands, program, deadline)
                    bounds[n] = max(_low(row, tried), low)
                    heappush(waiting, (turn, bounds[n], n))
                continue
            most, alone = row.place.most_links(value), all(other >= value * (1 - gap) for _, other, _ in waiting)
            further = climb(row.demands, tried, backend, deadline, _enough(row, tried, gap), most, alone=alone)
            bounds[n] = max(_low(row, tried), low)
            if further:
                heappush(waiting, (turn + 1, bounds[n], n))
            if tried.found is not None and row.place.value(tried.found.count) < value:
                found = LinkedMapping(row=row, linked=tried.found, least_links=int(tried.least))
                value, count, least = found.value, tried.found.count, tried.least
                tell(f"{count:,} links between {row.place.domains} domains, at least {least:,.0f} needed")
    except KeyboardInterrupt:
        stopped = True
    bound = min(bounds, default=math.inf)
    return _ended(found, bound, known.values(), programs.written(), interrupted=stopped)


def _ended(
    found: LinkedMapping | None,
    bound: float,
    efforts: Collection[TriedLinks],
    lengths: tuple[LinkLengths, ...],
    *,
    interrupted: bool,
) -> DirectSearch:
    """A search that ended, with what all mappings took together."""
    return DirectSearch(
        found=found,
        interrupted=interrupted or any(tried.interrupted for tried in efforts),
        searched=len(efforts),
        lengths=lengths,
        bound=bound,
        cuts=sum(tried.cuts for tried in efforts),
        nodes=sum(tried.nodes for tried in efforts),
        build_s=sum(tried.build_s for tried in efforts),
        handover_s=sum(tried.handover_s for tried in efforts),
        solve_s=sum(tried.solve_s for tried in efforts),
    )


def _over(efforts: Iterable[TriedLinks], deadline: float) -> bool:
    return time.perf_counter() >= deadline or any(tried.interrupted for tried in efforts)


def _low(row: Row, tried: TriedLinks) -> float:
    """The objective is no less; inf beyond ports and limits."""
    return math.inf if tried.least > row.place.most_links() else row.place.value(tried.least)


def _enough(row: Row, tried: TriedLinks, gap: float) -> float:
    """The share of links that may be unproven for the whole price to be within the gap."""
    nothing, some = row.place.value(0), row.place.value(tried.least)
    return gap * some / (some - nothing) if some > nothing else math.inf
