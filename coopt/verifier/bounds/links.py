"""The least that a cluster on direct links can be worth: every place, every mapping in time, every
pair of paces.

Lengths of links say what demands need at least: whatever the paths, what a domain sends over a
distance takes at least that much of the links, each way, and a link has only so much of it (weak
duality). Cuts add whole links: what leaves a set of domains crosses as many as its demand rounded
up. Lengths, cuts and prices of ports are those of a proof; any that are not negative prove
something (docs/certificates.md). Paces are halved into ranges until each needs the links that are
asked for, with the least paces of its range: lower ones are late by the verifier's own model.
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

from coopt.instance.hardware import Nic, Optic
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, counted
from coopt.instance.workload import Workload
from coopt.plan.parts import LinkLengths
from coopt.plan.schema import Plan
from coopt.verifier.bounds.designs import check_rival_bounds, claimed_bounds
from coopt.verifier.checks.rivals import may_check_bound, note_source
from coopt.verifier.checks.verdict import LENIENT, SOLVERS_WORD, Ledger
from coopt.verifier.parts.bills import (
    CountedItem,
    bill_total,
    cheapest_panel,
    exact_worth,
    within_limits,
)
from coopt.verifier.parts.direct_links import LATENESS, LinkedRun, LinkNics, least_links, link_lines
from coopt.verifier.parts.enumeration import exact_limit
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
from coopt.verifier.parts.optics import optics_of
from coopt.verifier.parts.space import DesignFamily, domain_sets
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
    for family, nic in product(domain_sets(instance), network.nics):
        if family.domains > 1:
            for per_gpu, optic in product(network.nics_per_gpu, optics_of(instance, kind, nic, 2)):
                yield LinkPlace(family, nic, per_gpu, optic)


class LinksBound:
    """Find what is the least that a cluster on direct links can be worth.

    Parameters
    ----------
    ceiling
        In the unit of the objective: what is worth no less is of no interest; infinite where
        nothing is to be feasible.
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
        self._most = exact_limit(ceiling)
        places = list(link_places(instance, kind))
        self._priced = _priced_by_grid(instance.workload[0], places, lengths)
        self._timings = timings_of(instance.workload, instance.cluster.gpu)
        for place in places:
            self._go_through(place)

    @property
    def is_complete(self) -> bool:
        """Whether all mappings were looked into."""
        return self.tried["mappings"] <= self._most_mappings

    def _go_through(self, place: LinkPlace) -> None:
        """Every mapping of a place, as long as it may be worth less than the least so far."""
        byte_s = LinkNics(place.nic, place.per_gpu).link_byte_s(place.family.hb)
        bound_s = self._instance.workload[0].bound_s
        link_limit = self._link_limit(place)
        for _, (work, placement) in self._timings.near_works(place.family, 0, LENIENT):
            if not has_neighbours(placement, tied=self._instance.workload[0].model.tied_embeddings):
                continue
            if not self.is_complete:
                return
            self.tried["mappings"] += 1
            run = LinkedRun(work, placement, place.family, byte_s, bound_s)
            # quick tests first: time if fewer links carried all, then whole links at each domain,
            # then paces
            if link_limit and run.in_time_below(link_limit) and least_links(run) < link_limit:
                count = PaceRanges(
                    run, place.ports, self._priced.get(run.grid, ()), self.tried
                ).least_links(link_limit)
                if count < link_limit:
                    link_limit = count
                    self._most = self.least = self._worth(place, count)

    def _link_limit(self, place: LinkPlace) -> int:
        """The fewest links of a place that are worth no less, break a limit, or have no ports."""
        counts = range(place.family.domains * place.ports // 2 + 1)

        def ruled_out(links: int) -> bool:
            sums = bill_total(self._lines(place, links), self._instance.objective)
            if not within_limits(self._instance, place.family, sums, LENIENT):
                return True
            return self._most is not None and self._worth(place, links) >= self._most

        # worth, power and price rise with links, so that what rules out one number rules out all
        # above
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
    by_grid: dict[StageGrid, list[PricedLinks]] = {}
    for link_lengths in lengths:
        grid = StageGrid(**link_lengths.model_dump(include=set(StageGrid.model_fields)))
        if not _exists(grid, workload, {place.family for place in places}):
            joined = "joined" if grid.closed else "not joined"
            raise InstanceError(
                "link lengths: no mapping of the instance puts its stages and replicas on"
                f" {grid.stages} x {grid.replicas} HB domains with"
                f" {counted(grid.inner, 'stage')} in each and the last stage {joined} to the first,"
                " needs link lengths for the layout of a mapping"
            )
        priced_lengths = priced_links(grid, link_lengths)
        by_grid.setdefault(grid, []).extend([] if priced_lengths is None else [priced_lengths])
    return by_grid


def _exists(grid: StageGrid, workload: Workload, families: Iterable[DesignFamily]) -> bool:
    """Whether a mapping has a grid on some of these domains, in time or not."""
    pp = grid.stages * grid.inner
    if workload.mapping.pp is not None and pp not in workload.mapping.pp:
        return False
    # all mappings are many: only those of so many stages can have the grid
    cut = workload.model_copy(update={"mapping": workload.mapping.model_copy(update={"pp": (pp,)})})
    for family in families:
        for split in splits(cut, family.gpus) if family.domains == grid.domains else ():
            run = placements(
                workload, split, family.active, family.rooms, turned=family.charges_loads
            )
            if any(
                grid_of(split, place) == grid
                and family.holds(place.pp_in)
                and has_neighbours(place, tied=workload.model.tied_embeddings)
                for place in run
            ):
                return True
    return False


class RangesOfPaces(NamedTuple):
    """Ranges of the paces of all phases but the last, the least of that beside them, and the links
    that they need.
    """

    low: Paces
    high: Paces
    beside: float
    links: int


class PaceRanges:
    """The paces at which a mapping is in time, range by range, and the fewest links that any of
    them needs.
    """

    def __init__(
        self, run: LinkedRun, ports: int, priced_lengths: Sequence[PricedLinks], tried: Counter[str]
    ) -> None:
        self._run, self._grid, self._ports, self._priced, self._tried = (
            run,
            run.grid,
            ports,
            priced_lengths,
            tried,
        )
        *self._others, self._last = sends_on(self._grid)

    def least_links(self, link_limit: int) -> int:
        """The fewest links that can be shown to be needed, if fewer than `link_limit`; else that
        many.

        The paces of all phases but the last lie in a range each, and need what the least of them do
        with the least of the last phase. The ranges that need fewest are halved first, of equals
        the latest, as long as they are not too many.
        """
        run, port_paces = self._run, self._port_paces
        least_paces = {phase: run.least_pace(phase, {}) for phase in port_paces}
        if any(pace > port_paces[phase] for phase, pace in least_paces.items()):
            return link_limit
        largest_paces = {phase: port_paces[phase] for phase in self._others}
        all_ranges = self._ranges(
            {phase: least_paces[phase] for phase in self._others}, largest_paces
        )
        queue, turn = [(all_ranges.links, 0, all_ranges)], 0
        while queue and queue[0][0] < link_limit:
            count, _, ranges = heappop(queue)
            phase = self._widest(ranges)
            turn += 1
            # the ranges at the head need fewest: that many are proven, whatever halving would still
            # show
            if phase is None or turn > MOST_RANGES:
                return count
            mean_pace = (ranges.low[phase] + ranges.high[phase]) / 2
            parts = (
                (ranges.low | {phase: mean_pace}, ranges.high),
                (ranges.low, ranges.high | {phase: mean_pace}),
            )
            for number, part in enumerate(self._ranges(*ends) for ends in parts):
                heappush(queue, (part.links, -2 * turn - number, part))
        return link_limit

    def _ranges(self, low: Paces, high: Paces) -> RangesOfPaces:
        """Ranges with the links that they need; without end where the last phase has no pace in
        time.
        """
        self._tried["ranges of communication speeds"] += 1
        beside = self._run.least_pace(self._last, high)
        # a last phase that would have to be faster than ports allow leaves no paces in time
        count = (
            self._links(low | {self._last: beside})
            if beside <= self._port_paces[self._last]
            else sys.maxsize
        )
        return RangesOfPaces(low, high, beside, count)

    def _widest(self, ranges: RangesOfPaces) -> str | None:
        """The phase whose range matters most for links, of its own and of the last phase; None
        where all are narrow.
        """
        wide = [
            phase
            for phase in self._others
            if ranges.high[phase] - ranges.low[phase] > NARROW * ranges.high[phase]
        ]
        if len(wide) < 2:
            return wide[0] if wide else None
        shares = {
            phase: float(sum(phase_shares.values()))
            for phase, phase_shares in shares_sent(self._grid).items()
        }

        def matters(phase: str) -> float:
            slower = self._run.least_pace(self._last, ranges.high | {phase: ranges.low[phase]})
            own_links = (ranges.high[phase] - ranges.low[phase]) * shares[phase]
            return (
                own_links
                + (min(slower, self._port_paces[self._last]) - ranges.beside) * shares[self._last]
            )

        return max(wide, key=matters)

    @cached_property
    def _port_paces(self) -> Paces:
        """The pace at which a phase fills all ports of some domain; that of more is out of
        reach.
        """
        shares_by_phase = shares_sent(self._grid)
        shares = {phase: max(shares.values()) for phase, shares in shares_by_phase.items()}
        return {
            phase: float(self._ports / share) * (1 + LATENESS) for phase, share in shares.items()
        }

    def _links(self, paces: Paces) -> int:
        """The fewest links at these paces, or faster ones."""
        links_by_domain = math.ceil(whole_links(self._grid, paces) / 2)
        proven = (math.ceil(lengths.least_links(paces, self._ports)) for lengths in self._priced)
        return max(joining_links(self._grid), links_by_domain, *proven)


def check_link_bounds(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bounds on switches by all designs, and say what those on direct links rest on.

    It takes longest, and is left out where something else is wrong.
    """
    check_rival_bounds(ledger, instance, plan)
    if may_check_bound(ledger, plan):
        source, proven_value = _source(ledger, instance, plan)
        note_source(ledger, plan, f"all switch networks were enumerated; {source}", proven_value)


def _source(ledger: Ledger, instance: Instance, plan: Plan) -> tuple[str, float | None]:
    """What the bound on direct links rests on, and what is proven of it where not all is; that none
    are feasible is one without an end.
    """
    bounds, denied = claimed_bounds(plan, "direct")
    ceiling = math.inf if denied or not bounds else max(bounds)
    lengths = () if plan.rivals is None else plan.rivals.lengths
    trusted = f"the claim on direct links rests on {SOLVERS_WORD}"
    try:
        bound = LinksBound(instance, plan.objective.kind, ceiling, lengths, MOST_MAPPINGS)
    except InstanceError as error:
        ledger.holds("link-lengths", False, len(lengths), None, str(error))
        return trusted, None
    ledger.holds("link-lengths", True, len(lengths), None, "")
    if not bound.is_complete:
        many = f"more than {MOST_MAPPINGS:,} mappings on direct links would have to be examined"
        return f"{many}, so {trusted}", None
    if bound.least is None:
        what = "the link lengths in the plan" if lengths else "the fewest links that each HB domain"
        return f"{what}{'' if lengths else ' needs'} prove the claim on direct links", None
    rests = "that no cluster with direct links is feasible rests"
    if math.isfinite(ceiling):
        # rounded down, as what is less than the bound is no 100%
        share = math.floor(bound.least / Fraction(ceiling) * 10**6) / 10**6
        rests = f"{share:.4%} of the bound on direct links is proven, the rest rests"
    text = f"{rests} on {SOLVERS_WORD} (`coopt prove` looks for a proof)"
    return text, float(bound.least)
