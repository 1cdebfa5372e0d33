"""A network as it grows, from docs/phased.md: its leaves are those of the end, in every phase as many as it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.layouts import NO_NETWORK, Level, Ports, chains, leaf_count, levels, up
from coopt.verifier.optics import optics_for
from coopt.verifier.space import Family, families
from coopt.verifier.spans import Reach, reach_of


class Stage(NamedTuple):
    """A network in one phase, its uplinks open.

    `ports.tiers` counts the tiers that stand; a single pod has its `pod_down` and no cores. `chassis` are the switches
    of a single tier.
    """

    family: Family
    ports: Ports
    uplinks: range
    optics: tuple[Optic, ...]
    chassis: int = 0

    def with_up(self, uplinks: int) -> Ports:
        """Its ports with that many uplinks of a leaf."""
        return self.ports._replace(up=uplinks)

    @property
    def leaves(self) -> int:
        """Leaves of one plane; none without a network."""
        return 0 if self.family.gear is None else leaf_count(self.family, self.ports.down)

    @property
    def one_pod(self) -> bool:
        """Whether aggregation switches stand without cores."""
        return self.ports.tiers == 2 and self.ports.pod_down > 0

    def levels(self, uplinks: int) -> tuple[Level, ...]:
        """Switches and links that stand, level by level."""
        ports, planes = self.with_up(uplinks), self.family.planes
        if ports.tiers == 1:
            return (Level(self.chassis, self.family.domains * self.family.rails),)
        if not self.one_pod:
            return levels(self.family, ports)
        ends = Level(self.leaves * planes, self.family.domains * self.family.rails)
        return ends, Level(uplinks * planes, self.leaves * uplinks * planes)

    def reach(self, uplinks: int) -> Reach:
        """What the network means for bandwidth."""
        return reach_of(self.family, self.with_up(uplinks))


Path = tuple[Stage, ...]  # one network, phase by phase


def paths(instance: Instance, kind: ObjectiveKind) -> Iterator[Path]:
    """Every network that can grow through all phases."""
    counts = [phase.gpus for phase in instance.phase]
    for last in families(instance):
        if any(gpus % last.active for gpus in counts):
            continue
        for chain in chains(last, instance.network):
            rails = last.gear is not None and last.gear.kind == "rail-optimized"
            moves = rails and chain.ports.tiers == 3 and len(set(counts)) > 1
            for optics in () if moves else optics_for(instance, kind, last, chain.ports.tiers):
                whole = Stage(last, chain.ports, range(chain.uplinks[0], chain.uplinks[-1] + 1), optics)
                yield tuple(_stage(whole, gpus, instance.network.largest_ratio) for gpus in counts)


def _stage(whole: Stage, gpus: int, ratio: float) -> Stage:
    """The network with some of its GPUs."""
    last, end = whole.family, whole.ports
    chassis = _chassis(last) if end.tiers == 1 else 0
    if gpus == last.gpus:
        return whole._replace(chassis=chassis)
    if gpus == last.active:
        return Stage(last._replace(gpus=gpus, gear=None), NO_NETWORK, range(1), ())
    family = last._replace(gpus=gpus)
    down = _ports_in_use(last, end.down, family.domains) if end.tiers > 1 else family.ends
    leaves = 1 if end.tiers == 1 else leaf_count(family, down)
    if leaves == 1:
        return Stage(family, Ports(1, family.ends), range(1), whole.optics[:1], chassis or family.planes)
    tiers = 2 if end.tiers == 2 or leaves <= end.pod_down else 3
    fewest, most = math.ceil(down / ratio), min(down, whole.uplinks[-1])
    return Stage(family, end._replace(tiers=tiers, down=down), range(fewest, most + 1), whole.optics[:tiers])


def _chassis(last: Family) -> int:
    """Switches of a single tier, with ports for every end point to come."""
    assert last.gear is not None
    return up(last.planes, last.gear.switch.radix // last.ends) if last.gear.kind == "rail-only" else 1


def _ports_in_use(last: Family, down: int, domains: int) -> int:
    """Ports towards NICs of the fullest leaf, when leaves are to hold `down` in the end."""
    assert last.gear is not None
    if last.gear.kind != "rail-optimized":
        return min(down, domains * last.rails // last.planes)
    rails = down // last.domains if last.domains <= down else 1
    return rails * min(domains, down)
