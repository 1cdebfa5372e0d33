"""A network as it grows (docs/phased.md): in every phase it has as many of its last leaves as it needs.

Stages are counted, written out as a plan writes designs, and drawn as graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, Network
from coopt.plan.schema import Design, Fabric, HbDomainChoice, NicChoice, SwitchChoice, Tier
from coopt.verifier.checks.verdict import agree
from coopt.verifier.parts.bills import SwitchLevel, least_racks, levels, levels_of_pod, levels_of_switch
from coopt.verifier.parts.layouts import (
    NO_NETWORK,
    Chain,
    Ports,
    cages,
    ceil_ratio,
    chains,
    core_count,
    core_ports,
    leaf_count,
    planes_on_switch,
    spine_count,
    switches_above,
)
from coopt.verifier.parts.optics import spares_core
from coopt.verifier.parts.space import DesignFamily, OpticPair, in_cages, radices
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.wiring import WiredGraph, wire


class GrowthStage(NamedTuple):
    """A network in one phase, its uplinks open.

    `ports.tiers` counts the tiers that stand; a single pod has its `pod_down` and no cores. `chassis` are the switches
    of a single tier. From each leaf start `to_core` links into a core that islands share, with modules `core_end` at
    their lower ends; those of the core where that is None.
    """

    family: DesignFamily
    ports: Ports
    uplinks: Sequence[int]
    optics: tuple[OpticPair, ...]
    chassis: int = 0
    to_core: int = 0
    core_end: Optic | None = None

    def with_up(self, uplinks: int) -> Ports:
        """The ports of the stage when every leaf has that many uplinks."""
        return self.ports._replace(up=uplinks)

    @property
    def leaves(self) -> int:
        """Leaves of one plane; none without a network."""
        return 0 if self.family.gear is None else leaf_count(self.family, self.ports.down)

    @property
    def one_pod(self) -> bool:
        """Whether aggregation switches stand without cores."""
        return self.ports.tiers == 2 and self.ports.pod_down > 0

    @property
    def core_links(self) -> int:
        """Links into a core: as many from each leaf switch, or those that a single domain needs."""
        if self.family.gear is None:
            return self.family.to_core
        every_leaf = self.leaves * self.family.planes * self.family.copies
        return self.to_core * (self.chassis if self.ports.tiers == 1 else every_leaf)

    @property
    def per_module(self) -> tuple[tuple[int, int], ...]:
        """Links that a module carries at the ends of each level."""
        gear = self.family.gear
        return tuple(map(gear.carried, self.optics)) if gear else ()

    def levels(self, uplinks: int) -> tuple[SwitchLevel, ...]:
        """Switches and links that stand, level by level."""
        ports = self.with_up(uplinks)
        if ports.tiers == 1:
            return levels_of_switch(self.family, self.chassis, ports.shared or planes_on_switch(self.family))
        return levels_of_pod(self.family, ports) if self.one_pod else levels(self.family, ports)

    def reach(self, uplinks: int) -> Reach:
        """What the network means for bandwidth."""
        return reach_of(self.family, self.with_up(uplinks))


def last_stages(
    network: Network,
    family: DesignFamily,
    optics_of: Callable[[int], Iterable[tuple[OpticPair, ...]]],
    core_end: Optic | None = None,
) -> Iterator[GrowthStage]:
    """Every whole network of a family, with every choice of optics for so many tiers, as the end of its growth.

    Parameters
    ----------
    core_end
        What is at the lower ends of links into a core, where that is not what is at the upper ones.
    """
    known: dict[tuple[object, ...], list[Chain]] = {}
    for tiers in range(network.max_tiers + 1):
        for optics in optics_of(tiers):
            carried = tuple(map(family.gear.carried, optics)) if family.gear else ()
            held = in_cages(network, family, carried)
            if not spares_core(held, optics):
                continue
            apart = any(max(each) > 1 for each in carried[1:])
            key = cages(carried), apart, radices(held)
            if key not in known:
                known[key] = list(chains(held, network, cages(carried), apart=apart))
            for chain in known[key]:
                if chain.ports.tiers == tiers:
                    runs = [chain.uplinks] if chain.ports.pod_each == 1 else [(up,) for up in chain.uplinks]
                    yield from (last_stage(held, chain.ports, run, optics, core_end) for run in runs)


def last_stage(
    family: DesignFamily,
    ports: Ports,
    uplinks: Sequence[int],
    optics: tuple[OpticPair, ...],
    core_end: Optic | None = None,
) -> GrowthStage:
    """A whole network as the end of its growth."""
    chassis = levels(family, ports)[0].switches if ports.tiers == 1 else 0
    return GrowthStage(family, ports, uplinks, optics, chassis, core_ports(family, ports), core_end)


def standing_by(stage: GrowthStage, spares: int) -> GrowthStage:
    """The network with so many HB domains that stand by."""
    return stage._replace(family=stage.family._replace(spares=spares))


def moves_leaves(whole: GrowthStage, counts: Iterable[int]) -> bool:
    """Whether growth over these numbers of GPUs would put new leaves into pods that are full."""
    rails = whole.family.gear is not None and whole.family.gear.kind == "rail-optimized"
    return rails and whole.ports.tiers == 3 and len(set(counts)) > 1


def earlier_stage(whole: GrowthStage, gpus: int, ratio: float, links: int = 0) -> GrowthStage:
    """The network with some of its GPUs.

    Parameters
    ----------
    ratio
        The largest oversubscription allowed.
    links
        Links into a core that so many GPUs need; where one domain holds all of them, they start at its NICs.
    """
    last, end = whole.family, whole.ports
    if gpus == last.gpus:
        return whole
    if gpus == last.active:
        alone = last._replace(gpus=gpus, domains=1, gear=None, to_core=links)
        fits = last.core_module == 1  # no NIC takes the modules of leaves that carry more
        return GrowthStage(alone, NO_NETWORK, range(1 if fits else 0), (), core_end=whole.core_end)
    family = last._replace(gpus=gpus, domains=gpus // last.active)
    down = _ports_of_leaf(last, end.down, family.domains) if end.tiers > 1 else family.ends
    leaves = 1 if end.tiers == 1 else leaf_count(family, down)
    if leaves == 1:
        shared = planes_on_switch(last) if end.tiers == 1 else 1
        ports, chassis = Ports(1, family.ends, shared=shared), whole.chassis or family.planes * family.copies
        return GrowthStage(family, ports, range(1), whole.optics[:1], chassis, whole.to_core, whole.core_end)
    tiers = 2 if end.tiers == 2 or leaves <= end.pod_leaves else 3
    uplinks: Sequence[int] = _earlier_uplinks(whole, down, ratio)
    if end.tiers == 2 and end.bundle:  # bundles stay as they can be in the end
        uplinks = [up for up in uplinks if switches_above(up, end.bundle) == ceil_ratio(up, end.bundle)]
    family = family._replace(to_core=whole.to_core * leaves * family.planes * family.copies)
    ports, optics = end._replace(tiers=tiers, down=down), whole.optics[:tiers]
    return GrowthStage(family, ports, uplinks, optics, 0, whole.to_core, whole.core_end)


def _earlier_uplinks(whole: GrowthStage, down: int, ratio: float) -> list[int]:
    """The uplinks of a leaf with `down` ports in use: whole cages, and those of the end where switches and modules
    above are shared by several links of a leaf."""
    cage, _ = cages(whole.per_module)
    fewest, most = math.ceil(down / ratio), min(cage * ceil_ratio(down, cage), whole.uplinks[-1])
    found = [up for up in range(fewest, most + 1) if up % cage == 0]
    if whole.ports.pod_each == 1 and all(max(each) == 1 for each in whole.per_module[1:]):
        return found
    return [up for up in found if up in whole.uplinks]


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
        spare_gpus=family.bought * hb.size - family.gpus,
        spare_domains=family.spares,
        hb_domain=hb_choice,
        fabric=claimed.fabric.model_copy(update=_NO_NETWORK) if family.gear is None else _fabric(stage, uplinks),
        racks=None if hb.racks is None else least_racks(family.bought, hb.racks),
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
    mixed = len({gear.at(tier).name for tier in range(1, stage.ports.tiers + 1)}) > 1
    return Fabric(
        kind=gear.kind,
        tiers=stage.ports.tiers,
        planes=stage.family.planes * stage.family.copies,
        oversubscription=stage.reach(uplinks).beyond,
        routing=gear.discipline.routing if stage.ports.tiers > 1 else 1.0,
        nic=NicChoice(name=gear.nic.name, per_gpu=gear.per_gpu, planes=gear.nic_planes, shared_by=gear.gpus_per_nic),
        switch=SwitchChoice(name=gear.switch.name),
        switch_count=sum(level.switches for level in levels),
        transceiver_count=sum(sum(level.modules(each)) for level, each in zip(levels, stage.per_module, strict=True)),
        pod_bundle=stage.ports.pod_each if stage.ports.tiers == 3 else 1,
        tier=tuple(
            Tier(
                level=number,
                switches=level.switches,
                down_ports=ports[0],
                uplinks_per_switch=ports[1],
                links=level.links,
                optic=ends.above.name,
                optic_below=None if ends.below.name == ends.above.name else ends.below.name,
                switch=gear.at(number).name if mixed else None,
            )
            for number, (level, ports, ends) in enumerate(
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
    leaf = (ports.down, uplinks)
    if stage.one_pod:
        return [leaf, (leaves * ports.pod_each, 0)]
    if ports.tiers == 2:
        return [leaf, (ceil_ratio(leaves * uplinks, spine_count(leaves, stage.with_up(uplinks), gear.at(2).radix)), 0)]
    trunks = ceil_ratio(leaves, ports.pod_leaves) * ports.pod_up
    return [leaf, (ports.pod_down, ports.pod_up), (ceil_ratio(trunks, core_count(leaves, ports, gear.at(3).radix)), 0)]


def graph_of_stage(stage: GrowthStage, uplinks: int) -> WiredGraph:
    """The graph of a stage of two or more tiers; a single pod is drawn without its cores."""
    ports = stage.with_up(uplinks)
    if not stage.one_pod:
        return wire(stage.family, ports)
    network = wire(stage.family, ports._replace(tiers=3))
    cores = [node for node in network.graph if node[0] == 3]
    network.graph.remove_nodes_from(cores)
    return network
