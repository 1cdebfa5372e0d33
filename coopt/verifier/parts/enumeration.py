"""Go through all designs of an instance: which is the cheapest that trains every workload in time?

Cost rises with the uplinks of a leaf and time falls with them, the rest of the ports being equal. So of all designs
of a chain that are cheap enough, the one with the most uplinks is the fastest: if it is too slow, all of them are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, islice
from typing import NamedTuple

from coopt.instance.availability import Availability
from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.verifier.checks.verdict import STRICT, below
from coopt.verifier.parts.bills import bill, bill_total, optics_choices, within_limits
from coopt.verifier.parts.layouts import Chain, Ports, SwitchLevel, chains, levels
from coopt.verifier.parts.space import DesignFamily, families
from coopt.verifier.parts.spans import Reach, reach_of, speeds_of
from coopt.verifier.parts.uptime import interrupted, lost_domain, running_share, uptime_of
from coopt.verifier.training.communication import OtherWays, Speeds
from coopt.verifier.training.gathers import Group, Summed, gather_s, summed_by_tp
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.mappings import ScalarMapping, divisors, splits
from coopt.verifier.training.memory import memory_bytes
from coopt.verifier.training.placing import Placement, placements
from coopt.verifier.training.work import Clock, Work


class TimingKey(NamedTuple):
    """Everything about a family that the time without slowdown depends on."""

    gpus: int
    active: int
    inside_byte_s: float
    across_byte_s: float
    gpus_per_nic: int
    size: int
    """GPUs of a domain where domains are not filled alike, else 0"""


class PlacedWork(NamedTuple):
    """A mapping and a placement of it."""

    work: Work
    place: Placement


class NearWorks:
    """Works that are in time if no switch slows them down, each with that time, looked for as far as they are read."""

    def __init__(self, timed: Iterator[tuple[float, PlacedWork]]) -> None:
        self._timed, self._known = timed, list[tuple[float, PlacedWork]]()

    def __iter__(self) -> Iterator[tuple[float, PlacedWork]]:
        for number in count():
            if number == len(self._known):
                self._known += islice(self._timed, 1)
            if number == len(self._known):
                return
            yield self._known[number]


class Trainer:
    """Answers for one instance; nothing is computed twice.

    A mapping is dropped where its layers alone take too long; where compute alone does, which no network changes; then
    where that and all-gathers over TP ranks, placed as well as can be, do; where it does not fit into memory, which no
    placement changes; then, with a placement, where the group's network takes too long without any slowdown, which no
    layout improves. What is left is timed on each layout.
    Bounds are taken 1e-9 short: a design that meets them by less is not held against a plan. A negative `short` gives
    a plan the benefit of that doubt.
    """

    def __init__(self, instance: Instance, short: float = STRICT) -> None:
        self._instance, self._short = instance, short
        self._clocks = [Clock(workload, instance.cluster.gpu) for workload in instance.workload]
        self._works: dict[tuple[int, int], list[Work]] = {}
        self._roomy: dict[tuple[int, ScalarMapping], bool] = {}
        self._candidates: dict[tuple[int, TimingKey], NearWorks] = {}
        self._answers: dict[tuple[TimingKey, Reach, tuple[float, ...]], bool] = {}

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """What is to be trained."""
        return self._instance.workload

    def trains(self, family: DesignFamily, reach: Reach, waits_s: tuple[float, ...] = ()) -> bool:
        """Whether every workload meets its bound on a design with that family and reach, if each waits so long for
        gradients of other sites; none does where nothing is given."""
        key = (_group(family), reach, waits_s)
        if key not in self._answers:
            each = waits_s or (0.0,) * len(self._clocks)
            in_time = (self._in_time(family, reach, i, wait_s) for i, wait_s in enumerate(each))
            self._answers[key] = self.may_train(family) and all(in_time)
        return self._answers[key]

    def may_train(self, family: DesignFamily) -> bool:
        """Whether every workload would meet its bound on a design with that family if no switch slowed it down."""
        near = (self._near(family, i) for i in range(len(self._clocks)))
        return self.fits(family.gpus) and all(any(True for _ in works) for works in near)

    def fits(self, gpus: int) -> bool:
        """Whether every workload has a mapping on so many GPUs that fits into memory, its compute alone in time."""
        return all(self._fits(gpus, i) for i in range(len(self._clocks)))

    def runs(self, family: DesignFamily, reach: Reach, index: int) -> bool:
        """Whether one workload meets its bound on a design with that family and reach."""
        return self._fits(family.gpus, index) and self._in_time(family, reach, index)

    def least_s(self, family: DesignFamily, reach: Reach, index: int) -> float:
        """The least time of an iteration of one workload; infinite where none is within its bound."""
        least = math.inf
        for undisturbed_s, (work, place) in self._near(family, index):
            if undisturbed_s < least:
                speed = speeds_of(family, reach, place, looped=work.split.interleave > 1)
                least = min(least, iteration_s(work, place, speed))
        return least

    def bound_s(self, index: int) -> float:
        """The bound of one workload, as short as bounds are taken (s)."""
        return self._clocks[index].workload.bound_s * (1 - self._short)

    def _in_time(self, family: DesignFamily, reach: Reach, index: int, wait_s: float = 0.0) -> bool:
        bound_s, free = self.bound_s(index), _undisturbed(family)
        for _, (work, place) in self._near(family, index):
            late = work._replace(wait_s=wait_s) if wait_s else work
            if wait_s and iteration_s(late, place, free) > bound_s:
                continue  # too late on any network, which spares counting its loads
            if iteration_s(late, place, speeds_of(family, reach, place, looped=work.split.interleave > 1)) <= bound_s:
                return True
        return False

    def _near(self, family: DesignFamily, index: int) -> NearWorks:
        """Mappings and placements in time if no switch slowed them down, the quickest compute first."""
        key = (index, _group(family))
        if key not in self._candidates:
            self._candidates[key] = NearWorks(self._timed(family, index))
        return self._candidates[key]

    def _timed(self, family: DesignFamily, index: int) -> Iterator[tuple[float, PlacedWork]]:
        workload, bound_s, speed = self._clocks[index].workload, self.bound_s(index), _undisturbed(family)
        gathers, turned = LeastGathers(family, speed), family.charges_loads
        for work in self._quick(family.gpus, index):
            if work.floor_s(gathers.least_s(work)) <= bound_s and self._has_room(work.split, index):
                for place in placements(workload, work.split, family.active, family.rooms, turned=turned):
                    if family.holds(place.pp_in):
                        time_s = iteration_s(work, place, speed)
                        if time_s <= bound_s:
                            yield time_s, PlacedWork(work, place)

    def _fits(self, gpus: int, index: int) -> bool:
        return any(self._has_room(work.split, index) for work in self._quick(gpus, index))

    def _has_room(self, split: ScalarMapping, index: int) -> bool:
        """Whether a mapping fits into memory."""
        if (index, split) not in self._roomy:
            capacity = self._instance.cluster.gpu.usable_bytes * (1 - self._short)
            self._roomy[index, split] = memory_bytes(self._clocks[index].workload, split) <= capacity
        return self._roomy[index, split]

    def _quick(self, gpus: int, index: int) -> list[Work]:
        """Mappings whose compute alone is in time, the quickest first, whether they fit into memory or not."""
        if (index, gpus) not in self._works:
            clock, bound_s = self._clocks[index], self.bound_s(index)
            self._works[index, gpus] = []
            if clock.least_gpu_s <= bound_s * gpus:
                quick = (split for split in splits(clock.workload, gpus) if clock.layers_s(split) <= bound_s)
                works = (work for work in map(clock.work, quick) if work.floor_s() <= bound_s)
                self._works[index, gpus] = sorted(works, key=Work.floor_s)
        return self._works[index, gpus]


SURELY = 1 - 1e-12  # where domains enough are whole for so much of the time, further spares change nothing


def fewest_spares(
    asked: Availability, trainer: Trainer, network: DesignFamily, reach: Reach, counted: Sequence[SwitchLevel]
) -> int | None:
    """The fewest spare domains with which all workloads are in time on a network; None where no number does."""
    needed = 0.0
    for index, workload in enumerate(trainer.workloads):
        share = trainer.least_s(network, reach, index) / trainer.bound_s(index)
        if share > 1.0:
            return None
        if workload.calendar:
            trained = interrupted(asked, workload, network, counted).trained
            needed = max(needed, share / trained if trained else math.inf)
    per_gpu = network.gear.per_gpu if network.gear else 0
    lost = lost_domain(asked, network.hb.size, network.active, per_gpu)
    offered = asked.spares
    at = bisect_left(offered, True, key=lambda spares: running_share(lost, network.domains, spares) >= needed)
    for spares in offered[at:] if needed <= 1.0 else ():
        family = network._replace(spares=spares)
        running = running_share(lost, family.domains, spares)
        if asked.confidence is None or all(
            trainer.least_s(family, reach, index)
            <= trainer.bound_s(index) * uptime_of(asked, workload, family, counted).promised
            for index, workload in enumerate(trainer.workloads)
            if workload.calendar
        ):
            return spares
        if running >= SURELY:
            return None
    return None


class LeastGathers:
    """The least seconds of a collective over the TP ranks of a work, wherever these lie; nothing is computed twice."""

    def __init__(self, family: DesignFamily, speed: Speeds) -> None:
        self._family, self._speed = family, speed
        self._known: dict[tuple[int, float, Summed], float] = {}

    def least_s(self, work: Work) -> float:
        """The least over all ways to put the TP ranks into domains (s)."""
        degree, size_bytes, summed = work.split.tp, work.traffic.gathered_bytes, summed_by_tp(work.split)
        if (degree, size_bytes, summed) not in self._known:
            inside = divisors(degree if self._family.rooms else math.gcd(degree, self._family.active))
            rates = self._speed.inside_byte_s, self._speed.tp_s_byte
            others = OtherWays(rates[1], rates[1]) if work.links.overlap else None
            groups = (Group(t, degree // t, *rates, others) for t in inside)
            seconds = (gather_s(size_bytes, group, work.links, summed) for group in groups)
            self._known[degree, size_bytes, summed] = min(seconds)
        return self._known[degree, size_bytes, summed]


def _group(family: DesignFamily) -> TimingKey:
    across = family.nic_byte_s if family.gear else 0.0
    shared = family.gear.gpus_per_nic if family.gear else 1
    size = family.hb.size if family.rooms else 0
    return TimingKey(family.gpus, family.active, family.hb.gbyte_s * 1e9, across, shared, size)


def _undisturbed(family: DesignFamily) -> Speeds:
    """Rates without slowdown."""
    s_byte = 1 / family.nic_byte_s if family.gear else 0.0
    return Speeds.everywhere(family.hb.gbyte_s * 1e9, s_byte)


class FoundDesign(NamedTuple):
    """A feasible design, with its value in the unit of the objective."""

    value: float
    family: DesignFamily
    ports: Ports
    optics: tuple[Optic, ...]


class DesignChain(NamedTuple):
    """The designs of one chain with one choice of optics, and what they share."""

    family: DesignFamily
    chain: Chain
    optics: tuple[Optic, ...]


Condition = Callable[[DesignFamily, Ports], bool]


def no_condition(family: DesignFamily, ports: Ports) -> bool:
    """The condition that every design meets."""
    return True


def cheapest_design_below(
    instance: Instance, kind: ObjectiveKind, bound: float, stands: Condition = no_condition, short: float = STRICT
) -> FoundDesign | None:
    """The cheapest feasible design worth less than `bound` by more than rounding; None where there is none.

    Parameters
    ----------
    stands
        What else a design has to do; with more uplinks it does no less.
    bound
        In the unit of the objective; infinite to ask for any feasible design.
    short
        By which share bounds of time and memory are taken short; negative to put rounding in favour of designs.
    """
    trainer, cheapest, ceiling = Trainer(instance, short), None, bound
    for row in design_chains(instance, kind):
        admitted = partial(_admitted, instance, kind, row, ceiling=ceiling, short=short)
        count = bisect_left(row.chain.uplinks, True, key=lambda up: not admitted(up))
        ups = row.chain.uplinks[:count]
        if not ups or not _trains(trainer, row, ups[-1], stands):
            continue  # the most uplinks are the fastest design of the chain
        least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
        ports = row.chain.with_up(ups[least_index])
        cheapest = FoundDesign(_value(instance, kind, row, ups[least_index]), row.family, ports, row.optics)
        ceiling = cheapest.value
    return cheapest


def designs_below(
    instance: Instance, kind: ObjectiveKind, bound: float, stands: Condition = no_condition, short: float = STRICT
) -> Iterator[FoundDesign]:
    """Every feasible design worth less than `bound`, in no particular order; all feasible ones where it is infinite."""
    trainer = Trainer(instance, short)
    for row in design_chains(instance, kind):
        admitted = partial(_admitted, instance, kind, row, ceiling=bound, short=short)
        count = bisect_left(row.chain.uplinks, True, key=lambda up: not admitted(up))
        ups = row.chain.uplinks[:count]
        if ups and _trains(trainer, row, ups[-1], stands):
            least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up, stands))
            for up in ups[least_index:]:
                yield FoundDesign(_value(instance, kind, row, up), row.family, row.chain.with_up(up), row.optics)


def least_designs(
    instance: Instance, kind: ObjectiveKind, short: float = STRICT
) -> Iterator[tuple[DesignFamily, Ports, tuple[Optic, ...]]]:
    """The feasible design of fewest uplinks of every chain with every choice of optics, whatever it costs."""
    trainer = Trainer(instance, short)
    for row in design_chains(instance, kind):
        ups = row.chain.uplinks
        if ups and _trains(trainer, row, ups[-1]):
            least_index = bisect_left(ups, True, key=lambda up: _trains(trainer, row, up))
            yield row.family, row.chain.with_up(ups[least_index]), row.optics


def design_chains(instance: Instance, kind: ObjectiveKind) -> Iterator[DesignChain]:
    """Every chain of designs that an instance considers, with every choice of optics to go through."""
    for family in families(instance):
        for tiers in range(instance.network.max_tiers + 1):
            by_modules: dict[tuple[int, ...], list[tuple[Optic, ...]]] = {}
            for optics in optics_choices(instance, kind, family, tiers):
                carried = tuple(family.gear.links_of(optic) for optic in optics) if family.gear else ()
                by_modules.setdefault(carried, []).append(optics)
            for carried, alike in by_modules.items():
                for chain in chains(family, instance.network, carried):
                    if chain.ports.tiers == tiers and (family.gear is None or family.gear.is_named_once(tiers)):
                        yield from (DesignChain(family, chain, optics) for optics in alike)


def _admitted(instance: Instance, kind: ObjectiveKind, row: DesignChain, up: int, ceiling: float, short: float) -> bool:
    """Whether a design is cheap enough and within the limits."""
    lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
    sums = bill_total(lines, instance.objective)
    return below(sums.of(kind), ceiling) and within_limits(instance, row.family, sums, short)


def _value(instance: Instance, kind: ObjectiveKind, row: DesignChain, up: int) -> float:
    lines = bill(instance, row.family, levels(row.family, row.chain.with_up(up)), row.optics)
    return bill_total(lines, instance.objective).of(kind)


def _trains(trainer: Trainer, row: DesignChain, up: int, stands: Condition = no_condition) -> bool:
    ports = row.chain.with_up(up)
    return trainer.trains(row.family, reach_of(row.family, ports)) and stands(row.family, ports)
