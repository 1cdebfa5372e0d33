"""A stage written out as a plan writes designs, and the graph it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import Design, Fabric, HbDomainChoice, NicChoice, SwitchChoice, Tier
from coopt.verifier.checks.verdict import agree
from coopt.verifier.parts.bills import least_racks, optics_choices
from coopt.verifier.parts.layouts import NO_NETWORK, Ports, SwitchLevel, ceil_ratio, chains, leaf_count, levels
from coopt.verifier.parts.space import DesignFamily, families
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.wiring import WiredGraph, wire


class GrowthStage(NamedTuple):
    """A network in one phase, its uplinks open.

    `ports.tiers` counts the tiers that stand; a single pod has its `pod_down` and no cores. `chassis` are the switches
    of a single tier.
    """

    family: DesignFamily
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

    def levels(self, uplinks: int) -> tuple[SwitchLevel, ...]:
        """Switches and links that stand, level by level."""
        ports, planes = self.with_up(uplinks), self.family.planes
        if ports.tiers == 1:
            return (SwitchLevel(self.chassis, self.family.domains * self.family.rails),)
        if not self.one_pod:
            return levels(self.family, ports)
        ends = SwitchLevel(self.leaves * planes, self.family.domains * self.family.rails)
        return ends, SwitchLevel(uplinks * planes, self.leaves * uplinks * planes)

    def reach(self, uplinks: int) -> Reach:
        """What the network means for bandwidth."""
        return reach_of(self.family, self.with_up(uplinks))


GrowthPath = tuple[GrowthStage, ...]  # one network, phase by phase


def growth_paths(instance: Instance, kind: ObjectiveKind) -> Iterator[GrowthPath]:
    """Every network that can grow through all phases."""
    counts = [phase.gpus for phase in instance.phase]
    for family in families(instance):
        if any(gpus % family.active for gpus in counts):
            continue
        for chain in chains(family, instance.network):
            rail_optimized = family.gear is not None and family.gear.kind == "rail-optimized"
            moves = rail_optimized and chain.ports.tiers == 3 and len(set(counts)) > 1
            for optics in () if moves else optics_choices(instance, kind, family, chain.ports.tiers):
                last_stage = GrowthStage(family, chain.ports, range(chain.uplinks[0], chain.uplinks[-1] + 1), optics)
                yield tuple(_stage(last_stage, gpus, instance.network.largest_ratio) for gpus in counts)


def _stage(last_stage: GrowthStage, gpus: int, ratio: float) -> GrowthStage:
    """The network with some of its GPUs."""
    last_family, end = last_stage.family, last_stage.ports
    chassis = _chassis(last_family) if end.tiers == 1 else 0
    if gpus == last_family.gpus:
        return last_stage._replace(chassis=chassis)
    if gpus == last_family.active:
        return GrowthStage(last_family._replace(gpus=gpus, gear=None), NO_NETWORK, range(1), ())
    family = last_family._replace(gpus=gpus)
    down = _ports_of_leaf(last_family, end.down, family.domains) if end.tiers > 1 else family.ends
    leaves = 1 if end.tiers == 1 else leaf_count(family, down)
    if leaves == 1:
        return GrowthStage(family, Ports(1, family.ends), range(1), last_stage.optics[:1], chassis or family.planes)
    tiers = 2 if end.tiers == 2 or leaves <= end.pod_down else 3
    fewest, most = math.ceil(down / ratio), min(down, last_stage.uplinks[-1])
    return GrowthStage(family, end._replace(tiers=tiers, down=down), range(fewest, most + 1), last_stage.optics[:tiers])


def _chassis(family: DesignFamily) -> int:
    """Switches of a single tier, with ports for every end point to come."""
    assert family.gear is not None
    return ceil_ratio(family.planes, family.gear.switch.radix // family.ends) if family.gear.kind == "rail-only" else 1


def _ports_of_leaf(last: DesignFamily, down: int, domains: int) -> int:
    """Ports towards NICs of the fullest leaf, when leaves are to hold `down` in the end."""
    assert last.gear is not None
    if last.gear.kind != "rail-optimized":
        return min(down, domains * last.rails // last.planes)
    rails = down // last.domains if last.domains <= down else 1
    return rails * min(domains, down)


def design_of_stage(instance: Instance, stage: GrowthStage, uplinks: int, claimed: Design) -> Design:
    """What a plan has to say of a stage; names that buy nothing where there is no network are those of the plan."""
    family, hb = stage.family, stage.family.hb
    hb_choice = HbDomainChoice(name=hb.name, size=hb.size, count=family.domains, active=family.active)
    return Design(
        gpus=family.gpus,
        spare_gpus=family.domains * (hb.size - family.active),
        hb_domain=hb_choice,
        fabric=claimed.fabric.model_copy(update=_NO_NETWORK) if family.gear is None else _fabric(stage, uplinks),
        racks=None if hb.racks is None else least_racks(family.domains, hb.racks),
    )


_NO_NETWORK = {
    "tiers": 0, "planes": 0, "oversubscription": 1.0, "routing": 1.0, "switch_count": 0, "transceiver_count": 0,
    "tier": (),
}  # fmt: skip


def same_design(claimed: Design, found: Design) -> bool:
    """Whether two designs are one, up to rounding of the oversubscription."""
    ratios = claimed.fabric.oversubscription, found.fabric.oversubscription
    alike = claimed.fabric.model_copy(update={"oversubscription": ratios[1]})
    return agree(*ratios) and claimed.model_copy(update={"fabric": alike}) == found


def _fabric(stage: GrowthStage, uplinks: int) -> Fabric:
    gear, levels = stage.family.gear, stage.levels(uplinks)
    assert gear is not None
    return Fabric(
        kind=gear.kind,
        tiers=stage.ports.tiers,
        planes=stage.family.planes,
        oversubscription=stage.reach(uplinks).beyond,
        routing=gear.routing if stage.ports.tiers > 1 else 1.0,
        nic=NicChoice(name=gear.nic.name, per_gpu=gear.per_gpu),
        switch=SwitchChoice(name=gear.switch.name),
        switch_count=sum(level.switches for level in levels),
        transceiver_count=2 * sum(level.links for level in levels),
        tier=tuple(
            Tier(
                level=number,
                switches=level.switches,
                down_ports=ports[0],
                uplinks_per_switch=ports[1],
                links=level.links,
                optic=optic.name,
            )
            for number, (level, ports, optic) in enumerate(
                zip(levels, _ports_in_use(stage, uplinks), stage.optics, strict=True), start=1
            )
        ),
    )


def _ports_in_use(stage: GrowthStage, uplinks: int) -> list[tuple[int, int]]:
    """Down-ports and uplinks of the fullest switch of each level."""
    ports, gear, leaves = stage.ports, stage.family.gear, stage.leaves
    assert gear is not None
    if ports.tiers == 1:
        return [(ports.down, 0)]
    radix, leaf = gear.switch.radix, (ports.down, uplinks)
    if stage.one_pod:
        return [leaf, (leaves, 0)]
    if ports.tiers == 2:
        return [leaf, (ceil_ratio(leaves * uplinks, ceil_ratio(leaves * uplinks, radix)), 0)]
    trunks = ceil_ratio(leaves, ports.pod_down) * ports.pod_up
    return [leaf, (ports.pod_down, ports.pod_up), (ceil_ratio(trunks, ceil_ratio(trunks, radix)), 0)]


def graph_of_stage(stage: GrowthStage, uplinks: int) -> WiredGraph:
    """The graph of a stage of two or more tiers; a single pod is drawn without its cores."""
    ports = stage.with_up(uplinks)
    if not stage.one_pod:
        return wire(stage.family, ports)
    network = wire(stage.family, ports._replace(tiers=3))
    cores = [node for node in network.graph if node[0] == 3]
    network.graph.remove_nodes_from(cores)
    return network
