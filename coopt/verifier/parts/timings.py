"""Which mappings of some workloads are in time: listed once, whatever the plan, the prices and the
limits are.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import product
from threading import Lock
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.verifier.checks.verdict import LENIENT, STRICT
from coopt.verifier.parts.outages import ALL_PORTS, DAY_S, OutageShares, mean_iteration_s
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, slowest_case
from coopt.verifier.training.caching import kept
from coopt.verifier.training.communication import LayerTraffic, Speeds
from coopt.verifier.training.gathers import Group, gathers_s, summed_by_replicas
from coopt.verifier.training.iteration import (
    copy_group,
    exchanges,
    held_by,
    in_copy,
    iteration_s,
    layer_traffic,
    shard_ranks,
    summed_between,
    ways_of_replicas,
)
from coopt.verifier.training.mappings import ScalarMapping, divisors, simpler
from coopt.verifier.training.memory import MemoryNeeds
from coopt.verifier.training.placing import Placement, expert_copies, placements
from coopt.verifier.training.work import Clock, LazyList, Work, ascending

# by which a list is made longer at least, so that limits that rise slowly do not list anew each
# time
WIDENING = 1.25


class TimingKey(NamedTuple):
    """Everything about a family that the time without slowdown depends on."""

    gpus: int
    domains: int
    inside_byte_s: float
    across_byte_s: float
    gpus_per_nic: int
    size: int
    """GPUs of a domain where domains are not filled alike, else 0"""
    turned: bool
    """Whether replicas may lie outermost"""


class PlacedWork(NamedTuple):
    """A mapping and a placement of it."""

    work: Work
    place: Placement


Ends = tuple[int, int]
"""Ranks of a group inside a domain and across."""

ALONE: Ends = (1, 1)

NearWorks = LazyList[tuple[float, PlacedWork]]
"""Works that are in time if no switch slows them down, each with that time."""


class RankedWorks:
    """Works by the time that they take if no switch slows them down, drawn from a list that the
    quickest compute leads.

    No network makes a work quicker than that, so that few are timed on each: those after the first
    that takes as long without a slowdown as another one with it are no quicker. More are drawn only
    while compute alone takes less.
    """

    def __init__(self, works: Iterator[tuple[float, PlacedWork]]) -> None:
        self._works, self._next, self._lock = works, next(works, None), Lock()
        self._drawn = list[tuple[float, int, PlacedWork]]()

    def least_s(self, timed: Callable[[Work, Placement], float], below_s: float) -> float:
        """The least time that any work takes on a network, or `below_s`, whichever is less."""
        with self._lock:
            return self._least_s(timed, below_s)

    def _least_s(self, timed: Callable[[Work, Placement], float], below_s: float) -> float:
        least_s = below_s
        for undisturbed_s, _, placed_work in self._drawn:
            # in order of that time, so that none after it is quicker on any network
            if undisturbed_s >= least_s:
                break
            least_s = min(least_s, timed(*placed_work))
        while self._next is not None and self._next[1].work.floor_s() < least_s:
            undisturbed_s, placed_work = self._next
            insort(self._drawn, (undisturbed_s, len(self._drawn), placed_work))
            if undisturbed_s < least_s:
                least_s = min(least_s, timed(*placed_work))
            self._next = next(self._works, None)
        return least_s


class Timings:
    """What is known of the mappings of some workloads on one kind of GPU, which no price, limit or
    plan changes.

    A mapping is dropped where its layers alone take too long; where it does not fit into memory,
    which no placement changes, or a simpler one fits too; where compute alone takes too long, which
    no network changes; then where that, all-gathers over TP ranks and the gradient exchange, placed
    as well as can be, do; then, with a placement, where the group's network takes too long without
    any slowdown, which no layout improves. What is left is timed on each layout. All of that has
    rounding in its favour; whether something is in time without is asked of what is left.
    """

    def __init__(self, workloads: tuple[Workload, ...], gpu: Gpu) -> None:
        self._usable_bytes, self.clocks = (
            gpu.usable_bytes,
            [Clock(workload, gpu) for workload in workloads],
        )
        self._needs = [MemoryNeeds(workload) for workload in workloads]
        self._works: dict[tuple[int, int], tuple[float, LazyList[tuple[float, Work]]]] = {}
        self._candidates: dict[tuple[int, TimingKey, float], tuple[float, NearWorks]] = {}
        self._in_time: dict[tuple[int, TimingKey, float], PlacedWork] = {}
        self._ranked: dict[tuple[TimingKey, int, float, float], RankedWorks] = {}
        self._least_s: dict[
            tuple[TimingKey, Reach, int, float, OutageShares], tuple[float, float]
        ] = {}
        self._placed_times: dict[tuple[int, Speeds, int, bool], PlacedTimes] = {}

    def bound_s(self, index: int, margin: float) -> float:
        """The bound of one workload, taken short by a share (s)."""
        return self.clocks[index].workload.bound_s * (1 - margin)

    def has_room(self, split: ScalarMapping, index: int, margin: float) -> bool:
        """Whether a mapping fits into memory, taken short by a share."""
        return self._needs[index].of(split) <= self._usable_bytes * (1 - margin)

    def may_train(self, family: DesignFamily, margin: float) -> bool:
        """Whether every workload would meet its bound on a design with that family if no switch
        slowed it down.
        """
        indices = range(len(self.clocks))
        fit = all(self.fits(family.gpus, index, margin) for index in indices)
        return fit and all(
            any(True for _ in self.near_works(family, index, margin)) for index in indices
        )

    @kept()
    def fits(self, gpus: int, index: int, margin: float) -> bool:
        """Whether a mapping of one workload on so many GPUs fits into memory, its compute alone in
        time.
        """
        bound_s, clock = self.bound_s(index, margin), self.clocks[index]
        quick = clock.quick(gpus, bound_s)
        fitting = (split for _, split in quick if self.has_room(split, index, margin))
        return any(clock.work(split).floor_s() <= bound_s for split in fitting)

    def near_works(
        self,
        family: DesignFamily,
        index: int,
        margin: float,
        below_s: float = math.inf,
        wait_s: float = 0.0,
    ) -> Iterator[tuple[float, PlacedWork]]:
        """Mappings and placements in time if no switch slowed them down, after waiting so long for
        gradients of other sites, the quickest compute first; those that take `below_s` or more may
        be left out.
        """
        bound_s = self.bound_s(index, margin)
        for time_s, placed_work in self._near_list(family, index, below_s, wait_s)[1]:
            # the list has all within the lenient bound already
            if margin == LENIENT or (
                time_s <= bound_s and self.has_room(placed_work.work.split, index, margin)
            ):
                yield time_s, placed_work

    def _near_list(
        self, family: DesignFamily, index: int, below_s: float, wait_s: float = 0.0
    ) -> tuple[float, NearWorks]:
        """Those within the bound at its most lenient that take less than some time, `below_s` or
        more, and that time.
        """
        key, widest_s = (index, _group(family), wait_s), self.bound_s(index, LENIENT)
        known_s, works = self._candidates.get(key, (0.0, None))
        if works is None or known_s < min(below_s, widest_s):
            known_s = min(max(below_s, WIDENING * known_s), widest_s)
            works = NearWorks(self._timed(family, index, known_s, wait_s))
            self._candidates[key] = known_s, works
        return known_s, works

    @kept(lambda self, family, *asked: (_group(family), *asked))
    def least_margin(self, family: DesignFamily, reach: Reach, waits_s: tuple[float, ...]) -> float:
        """The larger share of `STRICT` and `LENIENT` by which all bounds may be short; below both
        where none may.
        """
        margin = STRICT if self.may_train(family, LENIENT) else -math.inf
        for index in range(len(self.clocks)):
            if margin < LENIENT:
                break
            wait_s = waits_s[index] if waits_s else 0.0
            margin = min(margin, self.margin_of(family, reach, index, wait_s))
        return margin

    def margin_of(
        self, family: DesignFamily, reach: Reach, index: int, wait_s: float = 0.0
    ) -> float:
        """The same of one workload that waits so long for gradients of other sites."""
        key, margin = (index, _group(family), wait_s), -math.inf
        # what was in time on another network mostly is so on this one
        known = self._in_time.get(key)
        if known is not None and self._work_margin(family, reach, index, known) == STRICT:
            return STRICT
        for _, placed_work in self.near_works(family, index, LENIENT, wait_s=wait_s):
            margin = max(margin, self._work_margin(family, reach, index, placed_work))
            if margin == STRICT:
                self._in_time[key] = placed_work
                break
        return margin

    def _work_margin(
        self, family: DesignFamily, reach: Reach, index: int, placed_work: PlacedWork
    ) -> float:
        """The same of one mapping and placement."""
        work, place = placed_work
        time_s = slowest_case(family, reach, work, place).seconds
        if time_s <= self.bound_s(index, STRICT) and self.has_room(work.split, index, STRICT):
            return STRICT
        return LENIENT if time_s <= self.bound_s(index, LENIENT) else -math.inf

    def least_s(
        self,
        family: DesignFamily,
        reach: Reach,
        index: int,
        margin: float,
        below_s: float,
        outages: OutageShares,
    ) -> float:
        """As `Trainer.least_s`, with bounds that are so much shorter."""
        key = (_group(family), reach, index, margin, outages)
        time_s, required_s = self._least_s.get(key, (math.inf, 0.0))
        # a time once found is the least of all; that there is none is known up to the bound that
        # was asked
        if math.isinf(time_s) and required_s < below_s:
            known_s, _ = self._near_list(family, index, below_s)
            ranked = self._ranked.get((key[0], index, margin, known_s))
            if ranked is None:
                ranked = RankedWorks(self.near_works(family, index, margin, below_s))
                self._ranked[key[0], index, margin, known_s] = ranked
            time_s = ranked.least_s(
                partial(mean_iteration_s, family, reach, outages=outages), below_s
            )
            time_s = time_s if time_s < below_s else math.inf
            self._least_s[key] = time_s, below_s
        return time_s if time_s < below_s else math.inf

    def _timed(
        self, family: DesignFamily, index: int, bound_s: float, wait_s: float
    ) -> Iterator[tuple[float, PlacedWork]]:
        clock, speed = self.clocks[index], _undisturbed(family)
        # whatever the domains
        key, turned = (
            (index, speed, family.active, family.rooms is None),
            family.charges_loads,
        )
        times = self._placed_times.setdefault(key, PlacedTimes(clock.workload, family, speed))
        for compute_s, quick_work in self._quick(family.gpus, index, bound_s):
            # the quickest compute comes first, so that all that follow take longer
            if compute_s + clock.least_waited_s(wait_s) > bound_s:
                break
            work = quick_work._replace(wait_s=wait_s) if wait_s else quick_work
            traffic = times.least_traffic(work)
            # that of layers alone takes most of them too long
            if (
                work.floor_s(traffic) > bound_s
                or work.floor_s(traffic, times.least_data_s(work)) > bound_s
            ):
                continue
            for place in placements(
                clock.workload, work.split, family.active, family.rooms, turned=turned
            ):
                floor_s = work.floor_s(times.traffic(work, place), times.data_s(work, place))
                if floor_s <= bound_s and family.holds(place.pp_in):
                    time_s = iteration_s(work, place, speed)
                    if time_s <= bound_s:
                        yield time_s, PlacedWork(work, place)

    def _quick(self, gpus: int, index: int, bound_s: float) -> LazyList[tuple[float, Work]]:
        """Mappings that are needed and whose compute alone takes no more than that, the quickest
        first, each with the time of it, and perhaps slower ones after them.
        """
        known_s, works = self._works.get((index, gpus), (-math.inf, None))
        if works is None or known_s < bound_s:
            needed_works = partial(self._needed_work, index, bound_s)
            works = LazyList(ascending(self.clocks[index].quick(gpus, bound_s), needed_works))
            self._works[index, gpus] = bound_s, works
        return works

    def _needed_work(
        self, index: int, bound_s: float, split: ScalarMapping
    ) -> Iterator[tuple[float, Work]]:
        """The work of a mapping that fits into memory, where no simpler one does so surely, with
        the time of its compute alone; none where it takes longer.
        """
        clock = self.clocks[index]
        # most have a simpler one, which many share
        others = simpler(clock.workload, split)
        if not any(self.has_room(other, index, STRICT) for other in others) and self.has_room(
            split, index, LENIENT
        ):
            work = clock.work(split)
            if (floor_s := work.floor_s()) <= bound_s:
                yield floor_s, work


@lru_cache(maxsize=8)
def timings_of(workloads: tuple[Workload, ...], gpu: Gpu) -> Timings:
    """What is known of some workloads on one kind of GPU, kept for other plans and prices."""
    return Timings(workloads, gpu)


def days_of(workload: Workload, iteration_s: float) -> float:
    """The days that all of its tokens take at so much an iteration, with its margin."""
    tokens = (workload.train_tokens or 0.0) * workload.tokens_for_one
    time_s = tokens / workload.tokens_per_iteration * iteration_s * (1.0 + workload.time_margin)
    return time_s / DAY_S


class Trainer:
    """Answers whether the workloads of one instance are in time.

    Bounds are taken `STRICT` short: a design that meets them by less is not held against a plan.
    `LENIENT` gives a plan the benefit of that doubt.
    """

    def __init__(self, instance: Instance, margin: float = STRICT) -> None:
        assert margin in (STRICT, LENIENT)
        self.workloads, self._margin = instance.workload, margin
        self._days_in_turn = instance.limits.train_days_total
        self._timings = timings_of(instance.workload, instance.cluster.gpu)

    def trains(self, family: DesignFamily, reach: Reach, waits_s: tuple[float, ...] = ()) -> bool:
        """Whether every workload meets its bound on a design with that family and reach, if each
        waits so long for gradients of other sites, and all of them in turn theirs; none waits where
        nothing is given.
        """
        # who keeps bounds taken short by a larger margin keeps those of a smaller one
        alone = self._timings.least_margin(family, reach, waits_s) >= self._margin
        return alone and (self._days_in_turn is None or self.share_in_turn(family, reach) <= 1.0)

    def share_in_turn(
        self,
        family: DesignFamily,
        reach: Reach,
        trained: Sequence[float] = (),
        outages: OutageShares = ALL_PORTS,
    ) -> float:
        """The least days of all workloads one after the other over the limit on these, as short as
        bounds are taken; 0 without one.

        Parameters
        ----------
        trained
            The share of the time in which each trains; all of it where left out.
        """
        if self._days_in_turn is None:
            return 0.0
        days = [
            days_of(workload, self.least_s(family, reach, index, outages=outages))
            / (trained[index] if trained else 1.0)
            for index, workload in enumerate(self.workloads)
        ]
        return math.fsum(days) / (self._days_in_turn * (1.0 - self._margin))

    def may_train(self, family: DesignFamily) -> bool:
        """Whether every workload would meet its bound on a design with that family if no switch
        slowed it down.
        """
        return self._timings.may_train(family, self._margin)

    def fits(self, gpus: int) -> bool:
        """Whether every workload has a mapping on so many GPUs that fits into memory, its compute
        alone in time.
        """
        return all(
            self._timings.fits(gpus, index, self._margin) for index in range(len(self.workloads))
        )

    def runs(self, family: DesignFamily, reach: Reach, index: int) -> bool:
        """Whether one workload meets its bound on a design with that family and reach."""
        fits = self._timings.fits(family.gpus, index, self._margin)
        return fits and self._timings.margin_of(family, reach, index) >= self._margin

    def least_s(
        self,
        family: DesignFamily,
        reach: Reach,
        index: int,
        below_s: float = math.inf,
        outages: OutageShares = ALL_PORTS,
    ) -> float:
        """The least time of an iteration of one workload below `below_s`, on average where ports
        are out at times; infinite where none is within its bound.
        """
        return self._timings.least_s(family, reach, index, self._margin, below_s, outages)

    def bound_s(self, index: int) -> float:
        """The bound of one workload, as short as bounds are taken (s)."""
        return self._timings.bound_s(index, self._margin)


class PlacedTimes:
    """Seconds of the collectives that bound a work from below, where its ranks lie; nothing is
    computed twice.

    TP ranks, ranks that hold the same parameters and those that hold the same experts are put into
    domains each for itself. The least of all ways to do so is no more than what any placement
    takes, since every placement is one of these ways for each of them. Gradients take nothing where
    domains are not filled alike.
    """

    def __init__(self, workload: Workload, family: DesignFamily, speed: Speeds) -> None:
        self._workload, self._speed, self._active, self._even = (
            workload,
            speed,
            family.active,
            family.rooms is None,
        )

    @kept(lambda self, work: _of_layer(work))
    def least_traffic(self, work: Work) -> LayerTraffic:
        """The traffic of a layer, wherever the ranks of each group lie."""
        split = work.split
        tensor, context, experts = (self._ends(degree) for degree in (split.tp, split.cp, split.ep))
        rows = tensor if work.traffic.row_gathers else [ALONE]
        return LayerTraffic(
            min(self._layer(work, tp=ends).gathers_s for ends in tensor),
            min(self._layer(work, cp=ends).ring_s for ends in context),
            min(self._layer(work, tp=tp, ep=ep).experts_s for tp, ep in product(rows, experts)),
        )

    @kept(lambda self, work, place: (_of_layer(work), place.tp_in, place.cp_in, place.ep_in))
    def traffic(self, work: Work, place: Placement) -> LayerTraffic:
        """The traffic of a layer."""
        return layer_traffic(work, place, self._speed)

    def _layer(
        self, work: Work, tp: Ends = ALONE, cp: Ends = ALONE, ep: Ends = ALONE
    ) -> LayerTraffic:
        """The traffic of a layer in these groups alone."""
        return layer_traffic(work, Placement(*tp, *ALONE, *ALONE, *cp, *ep), self._speed)

    def least_data_s(self, work: Work) -> float:
        """Gradients and parameters of an iteration, wherever replicas lie."""
        return sum(self._least_data_s(work, *replicas) for replicas in self._replicas(work))

    @kept(lambda self, work, *replicas: (_of_replicas(work), *replicas))
    def _least_data_s(self, work: Work, kind: str, degree: int, number: float) -> float:
        return min(self._data_s(work, kind, number, *ends) for ends in self._ends(degree))

    def data_s(self, work: Work, place: Placement) -> float:
        """Gradients and parameters of an iteration."""
        held = held_by(work, place)
        return sum(self._data_s(work, kind, *held[kind]) for kind, *_ in self._replicas(work))

    def _replicas(self, work: Work) -> Iterator[tuple[str, int, float]]:
        """Ranks that hold the same parameters, and those that hold the same experts, with how many
        parameters.
        """
        split, parameters = work.split, work.parameters
        if work.traffic.reductions and self._even:
            if parameters.common:
                yield "dp", split.dp * split.cp, parameters.common
            if parameters.experts:
                yield "edp", expert_copies(self._workload, split), parameters.experts

    @kept(lambda self, work, *replicas: (_of_replicas(work), *replicas))
    def _data_s(self, work: Work, kind: str, number: float, inside: int, across: int) -> float:
        speed, ranks, shard = self._speed, inside * across, shard_ranks(work, inside, across)
        if ranks > 1 and inside % shard:  # no copy lies in a domain
            return math.inf
        same, ways = inside // shard, ways_of_replicas(work, kind, across, speed)
        group, summed = Group(same, across, *speed.of(kind), ways, same), summed_between(work)
        return gathers_s(exchanges(work, number, ranks), group, work.links, summed) + gathers_s(
            in_copy(work, number), copy_group(work, shard, speed), work.links
        )

    def _ends(self, degree: int) -> list[Ends]:
        """Ranks of a group inside a domain and across."""
        inside = divisors(math.gcd(degree, self._active) if self._even else degree)
        return [(x, degree // x) for x in inside]


def _of_layer(work: Work) -> tuple[Hashable, ...]:
    """What the traffic of a layer depends on but for where ranks lie."""
    return work.split.of_layer, work.traffic.hides_exchanges


def _of_replicas(work: Work) -> tuple[Hashable, ...]:
    """What replicas exchange depends on but for how many there are."""
    traffic = work.traffic
    return traffic.reductions, traffic.refreshes, summed_by_replicas(work.split)


def _group(family: DesignFamily) -> TimingKey:
    across = min(family.nic_byte_s, family.hb.to_nics_gbyte_s * 1e9) if family.attachment else 0.0
    sharers = family.attachment.gpus_per_nic if family.attachment else 1
    size = family.hb.size if family.rooms else 0
    inside = family.hb.gbyte_s * 1e9
    return TimingKey(
        family.gpus, family.domains, inside, across, sharers, size, family.charges_loads
    )


def _undisturbed(family: DesignFamily) -> Speeds:
    """Rates without slowdown."""
    inside = family.hb.gbyte_s * 1e9
    if family.attachment is None:
        return Speeds.everywhere(inside, 0.0)
    return Speeds.everywhere(inside, 1 / family.nic_byte_s).behind(family.hb.to_nics_gbyte_s)
