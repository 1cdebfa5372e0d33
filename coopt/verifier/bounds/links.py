"""The least that a cluster on direct links can be worth: every place, every mapping in time, every pair of paces.

Lengths of links say what demands need at least: whatever the paths, what a domain sends over a distance takes at least
that much of the links, each way, and a link has only so much of it (weak duality). Cuts add whole links: what leaves a
set of domains crosses as many as its demand rounded up. Lengths, cuts and prices of ports are those of a proof; any
that are not negative prove something (docs/certificates.md). Paces are halved into ranges until each needs the links
that are asked for, with the least paces of its range: lower ones are late by the verifier's own model.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from itertools import product
from typing import NamedTuple

from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.parts import LinkLengths
from coopt.plan.schema import Plan
from coopt.verifier.bounds.designs import check_rival_bounds
from coopt.verifier.checks.claims import note_source
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, Ledger
from coopt.verifier.parts.bills import CountedItem, bill_total, cheapest_panel, exact_worth, within_limits
from coopt.verifier.parts.direct_links import LATENESS, LinkedRun, least_links, link_lines
from coopt.verifier.parts.link_demands import (
    Paces,
    PricedLinks,
    StageGrid,
    grid_of,
    has_neighbours,
    joining_links,
    priced_links,
    sends_on,
    shares_sent,
    whole_links,
)
from coopt.verifier.parts.optics import allowed_optics
from coopt.verifier.parts.space import DesignFamily, domain_counts_of
from coopt.verifier.parts.timings import timings_of
from coopt.verifier.training.mappings import splits
from coopt.verifier.training.placing import placements

NARROW = 1e-9
"""Ranges of paces are halved until they are this narrow, by share."""
MOST_RANGES = 2_000
"""Of a mapping that are halved; the least that the ranges left need is then what is proven."""
MOST_MAPPINGS = 20_000
"""Mappings that a check of a plan looks into: up to half a minute."""


class LinkPlace(NamedTuple):
    """Domains and what links between them are made of."""

    family: DesignFamily
    nic: Nic
    per_gpu: int
    optic: Optic

    @property
    def ports(self) -> int:
        """Links that may end at a domain."""
        return self.family.hb.size * self.per_gpu


def link_places(instance: Instance, kind: ObjectiveKind) -> Iterator[LinkPlace]:
    """Every place of two domains or more that direct links may join."""
    network = instance.network
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        for domains, nic in product(domain_counts_of(instance, gpus, hb.size), network.nics):
            family = DesignFamily(gpus, hb, domains, None)
            if family.domains > 1:
                for per_gpu, optic in product(network.nics_per_gpu, allowed_optics(instance, kind, nic, 2)):
                    yield LinkPlace(family, nic, per_gpu, optic)


class LinksBound:
    """Find what is the least that a cluster on direct links can be worth.

    Parameters
    ----------
    ceiling
        In the unit of the objective: what is worth no less is of no interest; infinite where nothing is to be feasible.
    most_mappings
        Whoever has more is not gone through to the end.

    Attributes
    ----------
    least
        The least that is below the ceiling; None where nothing is.
    tried
        How many mappings and ranges of paces were looked into.
    """

    def __init__(
        self,
        instance: Instance,
        kind: ObjectiveKind,
        ceiling: float,
        lengths: Iterable[LinkLengths] = (),
        most_mappings: float = math.inf,
    ) -> None:
        self._instance, self._kind, self.tried = instance, kind, Counter[str]()
        self._most_mappings = most_mappings
        self.least: Fraction | None = None
        self._most = Fraction(ceiling) * (1 - Fraction(ROUNDING)) if math.isfinite(ceiling) else None
        places = list(link_places(instance, kind))
        self._priced = _priced_by_grid(instance.workload[0], places, lengths)
        self._timings = timings_of(instance.workload, instance.cluster.gpu)
        for place in places:
            self._go_through(place)

    @property
    def whole(self) -> bool:
        """Whether all mappings were looked into."""
        return self.tried["mappings"] <= self._most_mappings

    def _go_through(self, place: LinkPlace) -> None:
        """Every mapping of a place, as long as it may be worth less than the least so far."""
        byte_s, bound_s = place.nic.gbit_s * 1e9 / 8, self._instance.workload[0].bound_s
        needed = self._needed(place)
        for _, (work, where) in self._timings.near(place.family, 0, LENIENT):
            if not has_neighbours(where, tied=self._instance.workload[0].model.tied_embeddings):
                continue
            if not self.whole:
                return
            self.tried["mappings"] += 1
            run = LinkedRun(work, where, place.family, byte_s, bound_s)
            if needed and run.in_time_below(needed) and least_links(run) < needed:
                count = PaceRanges(run, place.ports, self._priced.get(run.grid, ()), self.tried).least_links(needed)
                if count < needed:
                    needed = count
                    self._most = self.least = self._worth(place, count)

    def _needed(self, place: LinkPlace) -> int:
        """The fewest links of a place that are worth no less, break a limit, or have no ports."""
        counts = range(place.family.domains * place.ports // 2 + 1)

        def ruled_out(links: int) -> bool:
            sums = bill_total(self._lines(place, links), self._instance.objective)
            if not within_limits(self._instance, place.family, sums, LENIENT):
                return True
            return self._most is not None and self._worth(place, links) >= self._most

        return bisect_left(counts, True, key=ruled_out)

    def _lines(self, place: LinkPlace, links: int) -> list[CountedItem]:
        panel = cheapest_panel(self._instance, self._kind)
        return link_lines(self._instance, place.family, place.nic, place.optic, panel, links)

    def _worth(self, place: LinkPlace, links: int) -> Fraction:
        return exact_worth(self._instance, self._lines(place, links), self._kind)


def _priced_by_grid(
    workload: Workload, places: Sequence[LinkPlace], lengths: Iterable[LinkLengths]
) -> dict[StageGrid, list[PricedLinks]]:
    """What lengths prove, by their grid.

    Raises
    ------
    InstanceError
        When no mapping has the grid of some lengths, or their numbers are not those of the grid.
    """
    found: dict[StageGrid, list[PricedLinks]] = {}
    for one in lengths:
        grid = StageGrid(*(getattr(one, name) for name in StageGrid._fields))
        if not _exists(grid, workload, {place.family for place in places}):
            raise InstanceError(
                f"proof: no mapping on direct links has {_described(grid)}; needs lengths of grids that one has"
            )
        priced = priced_links(grid, one)
        found.setdefault(grid, []).extend([] if priced is None else [priced])
    return found


def _described(grid: StageGrid) -> str:
    rings = "in closed rings" if grid.closed else "in open chains"
    return f"{grid.stages} x {grid.replicas} domains with {grid.inner} stages in each, {rings}"


def _exists(grid: StageGrid, workload: Workload, families: Iterable[DesignFamily]) -> bool:
    """Whether a mapping has a grid on some of these domains, in time or not."""
    pp = grid.stages * grid.inner
    if workload.mapping.pp is not None and pp not in workload.mapping.pp:
        return False
    cut = workload.model_copy(update={"mapping": workload.mapping.model_copy(update={"pp": (pp,)})})
    for family in families:
        for split in splits(cut, family.gpus) if family.domains == grid.domains else ():
            run = placements(workload, split, family.active, family.rooms, turned=family.charges_loads)
            if any(
                grid_of(split, place) == grid
                and family.holds(place.pp_in)
                and has_neighbours(place, tied=workload.model.tied_embeddings)
                for place in run
            ):
                return True
    return False


class RangesOfPaces(NamedTuple):
    """Ranges of the paces of all phases but the last, the least of that beside them, and the links that they need."""

    low: Paces
    high: Paces
    beside: float
    links: int


class PaceRanges:
    """The paces at which a mapping is in time, range by range, and the fewest links that any of them needs."""

    def __init__(self, run: LinkedRun, ports: int, priced: Sequence[PricedLinks], tried: Counter[str]) -> None:
        self._run, self._grid, self._ports, self._priced, self._tried = run, run.grid, ports, priced, tried
        *self._others, self._last = sends_on(self._grid)

    def least_links(self, needed: int) -> int:
        """The fewest links that can be shown to be needed, if fewer than `needed`; else that many.

        The paces of all phases but the last lie in a range each, and need what the least of them do with the least of
        the last phase. The ranges that need fewest are halved first, of equals the latest, as long as they are not too
        many.
        """
        run, fastest = self._run, self._fastest
        least = {phase: run.least_pace(phase, {}) for phase in fastest}
        if any(pace > fastest[phase] for phase, pace in least.items()):
            return needed
        most = {phase: fastest[phase] for phase in self._others}
        whole = self._ranges({phase: least[phase] for phase in self._others}, most)
        waiting, turn = [(whole.links, 0, whole)], 0
        while waiting and waiting[0][0] < needed:
            count, _, one = heappop(waiting)
            phase = self._widest(one)
            turn += 1
            if phase is None or turn > MOST_RANGES:
                return count
            middle = (one.low[phase] + one.high[phase]) / 2
            parts = (one.low | {phase: middle}, one.high), (one.low, one.high | {phase: middle})
            for number, part in enumerate(self._ranges(*ends) for ends in parts):
                heappush(waiting, (part.links, -2 * turn - number, part))
        return needed

    def _ranges(self, low: Paces, high: Paces) -> RangesOfPaces:
        """Ranges with the links that they need; without end where the last phase has no pace in time."""
        self._tried["ranges of paces"] += 1
        beside = self._run.least_pace(self._last, high)
        count = self._links(low | {self._last: beside}) if beside <= self._fastest[self._last] else sys.maxsize
        return RangesOfPaces(low, high, beside, count)

    def _widest(self, one: RangesOfPaces) -> str | None:
        """The phase whose range matters most for links, of its own and of the last phase; None where all are narrow."""
        wide = [phase for phase in self._others if one.high[phase] - one.low[phase] > NARROW * one.high[phase]]
        if len(wide) < 2:
            return wide[0] if wide else None
        shares = {phase: float(sum(sent.values())) for phase, sent in shares_sent(self._grid).items()}

        def matters(phase: str) -> float:
            slower = self._run.least_pace(self._last, one.high | {phase: one.low[phase]})
            own = (one.high[phase] - one.low[phase]) * shares[phase]
            return own + (min(slower, self._fastest[self._last]) - one.beside) * shares[self._last]

        return max(wide, key=matters)

    @cached_property
    def _fastest(self) -> Paces:
        """The pace at which a phase fills all ports of some domain; that of more is out of reach."""
        sent = shares_sent(self._grid)
        return {phase: float(self._ports / max(shares.values())) * (1 + LATENESS) for phase, shares in sent.items()}

    def _links(self, paces: Paces) -> int:
        """The fewest links at these paces, or faster ones."""
        whole = math.ceil(whole_links(self._grid, paces) / 2)
        proven = (math.ceil(one.least_links(paces, self._ports)) for one in self._priced)
        return max(joining_links(self._grid), whole, *proven)


def check_link_bounds(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bounds on switches by all designs, and say what those on direct links rest on.

    It takes longest, and is left out where something else is wrong.
    """
    check_rival_bounds(ledger, instance, plan)
    claimed = plan.status == "infeasible" or plan.objective.bound is not None
    if claimed and all(check.ok for check in ledger.checks):
        source, least = _source(ledger, instance, plan)
        note_source(ledger, plan, f"switches were gone through; {source}", least)


def _source(ledger: Ledger, instance: Instance, plan: Plan) -> tuple[str, float | None]:
    """What the bound on direct links rests on, and what is proven of it where not all is; that none are feasible is one
    without an end."""
    rivals = plan.rivals
    bounds = [
        claim.bound for claim in (plan.objective, *([rivals.direct] if rivals else [])) if claim.bound is not None
    ]
    denied = not bounds or (rivals is not None and (rivals.direct.value, rivals.direct.bound) == (None, None))
    ceiling = math.inf if denied else max(bounds)
    lengths = () if rivals is None else rivals.lengths
    try:
        found, complaint = LinksBound(instance, plan.objective.kind, ceiling, lengths, MOST_MAPPINGS), ""
    except InstanceError as error:
        found, complaint = None, str(error)
    ledger.holds("link-lengths", found is not None, len(lengths), None, complaint)
    if found is None:
        return f"direct links rest on {SOLVERS_WORD}", None
    if not found.whole:
        text = f"more than {MOST_MAPPINGS:,} mappings may run on direct links: their bound rests on {SOLVERS_WORD}"
        return text, None
    if found.least is None:
        by_lengths = "lengths prove the bound on direct links"
        return by_lengths if lengths else "direct links need more by their whole links", None
    share = "" if denied else f", of which {float(found.least / Fraction(ceiling)):.4%} are proven,"
    text = f"the bound on direct links{share} rests on {SOLVERS_WORD} (`coopt prove` writes what proves it)"
    return text, float(found.least)
