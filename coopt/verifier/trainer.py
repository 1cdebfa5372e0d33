"""Can a design train every workload in time? All mappings and placements are tried."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.verifier.collectives import Speeds
from coopt.verifier.iteration import iteration_s
from coopt.verifier.ledger import TOLERANCE
from coopt.verifier.mappings import splits
from coopt.verifier.memory import memory_bytes
from coopt.verifier.placing import Placement, placements
from coopt.verifier.space import Family
from coopt.verifier.spans import Reach, speeds_of
from coopt.verifier.work import Clock, Work


class Group(NamedTuple):
    """All of a family that the best possible time depends on."""

    gpus: int
    active: int
    inside_byte_s: float
    across_byte_s: float


class Candidate(NamedTuple):
    """A mapping and a placement of it."""

    work: Work
    place: Placement


class Trainer:
    """Answers for one instance; nothing is computed twice.

    A mapping is dropped where it does not fit into memory, which no placement changes; then where compute alone
    takes too long, which no network changes; then, with a placement, where the group's network takes too long
    without any slowdown, which no layout improves. What is left is timed on each layout.
    Bounds are taken 1e-9 short: a design that meets them by less is not held against a plan. A negative `short` gives
    a plan the benefit of that doubt.
    """

    def __init__(self, instance: Instance, short: float = TOLERANCE) -> None:
        self._instance, self._short = instance, short
        self._clocks = [Clock(workload, instance.cluster.gpu) for workload in instance.workload]
        self._works: dict[tuple[int, int], list[Work]] = {}
        self._candidates: dict[tuple[int, Group], list[Candidate]] = {}
        self._answers: dict[tuple[Group, Reach], bool] = {}

    def trains(self, family: Family, reach: Reach) -> bool:
        """Whether every workload meets its bound on a design with that family and reach."""
        group = _group(family)
        key = (group, reach)
        if key not in self._answers:
            count = range(len(self._clocks))
            self._answers[key] = (
                all(self._fitting(family.gpus, i) for i in count)
                and all(self._near(family, i) for i in count)
                and all(self._in_time(family, reach, i) for i in count)
            )
        return self._answers[key]

    def runs(self, family: Family, reach: Reach, index: int) -> bool:
        """Whether one workload meets its bound there."""
        return bool(self._fitting(family.gpus, index)) and self._in_time(family, reach, index)

    def _bound_s(self, index: int) -> float:
        return self._clocks[index].workload.bound_s * (1 - self._short)

    def _in_time(self, family: Family, reach: Reach, index: int) -> bool:
        bound_s = self._bound_s(index)
        return any(
            iteration_s(work, place, speeds_of(family, reach, place)) <= bound_s
            for work, place in self._near(family, index)
        )

    def _near(self, family: Family, index: int) -> list[Candidate]:
        """Mappings and placements that would be in time if no switch slowed them down, fastest first."""
        key = (index, _group(family))
        if key not in self._candidates:
            bound_s, speed = self._bound_s(index), _undisturbed(family)
            timed = [
                (iteration_s(work, place, speed), Candidate(work, place))
                for work in self._fitting(family.gpus, index)
                for place in placements(self._clocks[index].workload, work.split, family.active)
            ]
            kept = sorted((row for row in timed if row[0] <= bound_s), key=lambda row: row[0])
            self._candidates[key] = [candidate for _, candidate in kept]
        return self._candidates[key]

    def _fitting(self, gpus: int, index: int) -> list[Work]:
        """Mappings that fit into memory and whose compute alone is in time."""
        if (index, gpus) not in self._works:
            clock, bound_s = self._clocks[index], self._bound_s(index)
            capacity = self._instance.cluster.gpu.hbm_gb * 1e9 * (1 - self._short)
            roomy = (split for split in splits(clock.workload, gpus) if memory_bytes(clock.workload, split) <= capacity)
            works = [clock.work(split) for split in roomy]
            self._works[index, gpus] = [work for work in works if work.compute_floor_s <= bound_s]
        return self._works[index, gpus]


def _group(family: Family) -> Group:
    across = family.nic_byte_s if family.gear else 0.0
    return Group(family.gpus, family.active, family.hb.gbyte_s * 1e9, across)


def _undisturbed(family: Family) -> Speeds:
    """Rates without slowdown."""
    everything = Reach(family.domains, family.domains, family.domains, 1.0, 1.0)
    return speeds_of(family, everything, Placement(1, 1, 1, 1, 1, 1))
