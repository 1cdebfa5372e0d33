"""Find the cheapest mapping on direct links: a bound for every one first, then one by one while it may be cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coopt.plan.direct_links import LinkLengths
from coopt.solving.backend import Backend
from coopt.solving.direct.lengths import Programs
from coopt.solving.direct.links import Linked, TriedLinks, bound_links, climb
from coopt.solving.direct.rows import Row
from coopt.solving.effort import Effort

MOST_DOMAINS = 1024
"""Beyond it a mapping has a bound by the ports of each domain alone, and no links are looked for."""


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

    Mappings are taken by rising bound; once no bound is below the best value, within the gap, the rest cannot win.
    """
    found, value, stopped = None, rival, False
    ranked = sorted(rows, key=lambda row: row.least_value)
    bounds = [math.inf, *(row.least_value for row in ranked)]
    efforts, programs = list[TriedLinks](), Programs()
    try:
        for n, row in enumerate(ranked, start=1):
            if row.least_value >= value * (1 - gap) or _over(efforts, deadline) or row.place.domains > MOST_DOMAINS:
                continue
            tried = bound_links(row.demands, programs.of(row), deadline)
            efforts.append(tried)
            if _low(row, tried) < value * (1 - gap):
                climb(row.demands, tried, backend, deadline, _enough(row, tried, gap), row.place.most_links(value))
            bounds[n] = max(_low(row, tried), bounds[n])
            if tried.found is not None and row.place.value(tried.found.count) < value:
                found = LinkedMapping(row=row, linked=tried.found, least_links=int(tried.least))
                value, count, least = found.value, tried.found.count, tried.least
                tell(f"{count:,} links between {row.place.domains} domains, at least {least:,.0f} needed")
    except KeyboardInterrupt:
        stopped = True
    return DirectSearch(
        found=found,
        interrupted=stopped or any(tried.interrupted for tried in efforts),
        searched=len(efforts),
        lengths=programs.written(),
        bound=min(bounds),
        cuts=sum(tried.cuts for tried in efforts),
        nodes=sum(tried.nodes for tried in efforts),
        build_s=sum(tried.build_s for tried in efforts),
        handover_s=sum(tried.handover_s for tried in efforts),
        solve_s=sum(tried.solve_s for tried in efforts),
    )


def _over(efforts: Sequence[TriedLinks], deadline: float) -> bool:
    return time.perf_counter() >= deadline or any(tried.interrupted for tried in efforts)


def _low(row: Row, tried: TriedLinks) -> float:
    """The objective is no less; inf beyond ports and limits."""
    return math.inf if tried.least > row.place.most_links() else row.place.value(tried.least)


def _enough(row: Row, tried: TriedLinks, gap: float) -> float:
    """The share of links that may be unproven for the whole price to be within the gap."""
    nothing, some = row.place.value(0), row.place.value(tried.least)
    return gap * some / (some - nothing) if some > nothing else math.inf
