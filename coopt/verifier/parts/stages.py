"""A network as it grows (docs/phased.md): in every phase it has as many of its last leaves as it
needs.

Stages are counted, written out as a plan writes designs, and drawn as graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.network import Network
from coopt.instance.schema import Instance
from coopt.plan.parts import (
    Design,
    Fabric,
    HbDomainChoice,
    NicChoice,
    SwitchChoice,
    Tier,
    TierCables,
)
from coopt.verifier.checks.verdict import agree
from coopt.verifier.parts.bills import (
    SwitchLevel,
    least_racks,
    levels,
    levels_of_pod,
    levels_of_switch,
)
from coopt.verifier.parts.fibres import Bought
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
from coopt.verifier.parts.space import DesignFamily, OpticPair, in_cages, links_needed
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.wiring import WiredGraph, wire


class LaidCables(NamedTuple):
    """The cables of a level that have the same ends, with their modules at either end."""

    ends: OpticPair
    longest_m: int
    links: int
    below: int
    above: int
    fibre: tuple[Bought, ...] = ()


Laid = tuple[tuple[LaidCables, ...], ...]
"""The kinds of cables of each level, from the shortest on."""


class GrowthStage(NamedTuple):
    """A network in one phase, its uplinks open.

    `ports.tiers` counts the tiers that stand; a single pod has its `pod_down` and no cores. Where
    cables are chosen by their lengths, `laid` has each kind of them with `laid_up` uplinks, and
    `optics` each kind as a level, the first one of each tier before all others. `chassis` are the
    switches of a single tier. From each leaf start `to_core` links into a core that islands share,
    with modules `core_end` at their lower ends; those of the core where that is None. Where lengths
    choose their cables, `into_core` has the kinds of these.
    """

    family: DesignFamily
    ports: Ports
    uplinks: Sequence[int]
    optics: tuple[OpticPair, ...]
    chassis: int = 0
    to_core: int = 0
    core_end: Optic | None = None
    laid: Laid = ()
    laid_up: int = 0
    into_core: tuple[LaidCables, ...] = ()

    def with_up(self, uplinks: int) -> Ports:
        """The ports of the stage when every leaf has that many uplinks."""
        return self.ports._replace(up=uplinks)

    @property
    def by_tier(self) -> GrowthStage:
        """The same with its levels by tiers, of the longest cables of each."""
        longest = tuple(of[-1].ends for of in self.laid)
        return self._replace(laid=(), optics=longest or self.optics)

    @property
    def leaves(self) -> int:
        """Leaves of one plane; none without a network."""
        return 0 if self.family.attachment is None else leaf_count(self.family, self.ports.down)

    @property
    def one_pod(self) -> bool:
        """Whether aggregation switches stand without cores."""
        return self.ports.tiers == 2 and self.ports.pod_down > 0

    @property
    def core_links(self) -> int:
        """Links into a core: as many from each leaf switch, or those that a single domain needs."""
        if self.family.attachment is None:
            return self.family.to_core
        every_leaf = self.leaves * self.family.planes * self.family.copies
        return self.to_core * (self.chassis if self.ports.tiers == 1 else every_leaf)

    @property
    def per_module(self) -> tuple[tuple[int, int], ...]:
        """Links that a module carries at the ends of each level."""
        attachment = self.family.attachment
        return tuple(map(attachment.carried, self.optics)) if attachment else ()

    def levels(self, uplinks: int) -> tuple[SwitchLevel, ...]:
        """Switches and links that stand, level by level."""
        if self.laid:
            counts = self.by_tier.levels(uplinks)
            tiers = [self.kinds(tier, uplinks) for tier in range(len(self.laid))]
            rows = [(level.switches, of[0]) for level, of in zip(counts, tiers, strict=True)]
            rows += [(0, kind) for of in tiers for kind in of[1:]]
            # as if each module were in a device of its own, with a single link
            return tuple(
                SwitchLevel(switches, one.links, ((one.below, 1),), ((one.above, 1),), one.fibre)
                for switches, one in rows
            )
        ports = self.with_up(uplinks)
        if ports.tiers == 1:
            return levels_of_switch(
                self.family, self.chassis, ports.shared or planes_on_switch(self.family)
            )
        return levels_of_pod(self.family, ports) if self.one_pod else levels(self.family, ports)

    def kinds(self, tier: int, uplinks: int) -> list[LaidCables]:
        """The kinds of cables of a tier (from 0): above the leaves in proportion to uplinks."""
        share = Fraction(uplinks, self.laid_up) if tier else Fraction(1)
        return [
            one._replace(
                links=int(one.links * share),
                below=int(one.below * share),
                above=int(one.above * share),
                fibre=tuple((name, int(of * share), usd) for name, of, usd in one.fibre),
            )
            for one in self.laid[tier]
        ]

    def reach(self, uplinks: int) -> Reach:
        """What the network means for bandwidth."""
        return reach_of(self.family, self.with_up(uplinks))


Optics = tuple[OpticPair, ...]


def chain_groups(
    network: Network,
    family: DesignFamily,
    optics_of: Callable[[int], Iterable[Optics]],
    *,
    chosen_later: bool = False,
) -> Iterator[tuple[DesignFamily, Chain, list[Optics]]]:
    """Every chain of designs of a family, with the family on switches that have cages for modules,
    and the choices of optics for so many tiers that go with it.

    Parameters
    ----------
    chosen_later
        Whether each chain is to have the cheapest of these. On three tiers all modules above leaves
        are there as often as a leaf has uplinks, so that of two choices one is no dearer at every
        number of uplinks where it is at the fewest and at the most. On two, spines buy whole
        modules.
    """
    known: dict[tuple[object, ...], list[Chain]] = {}
    caged: dict[tuple[tuple[int, int], ...], DesignFamily] = {}  # of few modules, many optics
    for tiers in range(network.max_tiers + 1):
        if family.attachment is not None and not family.attachment.is_named_once(tiers):
            continue
        groups: dict[tuple[object, ...], tuple[DesignFamily, tuple[int, int], list[Optics]]] = {}
        for optics in optics_of(tiers):
            carried = tuple(map(family.attachment.carried, optics)) if family.attachment else ()
            # Modules decide how many ports of a switch can be used at all, and so which chains of
            # ports there are.
            if carried not in caged:
                caged[carried] = in_cages(network, family, carried)
            caged_family = caged[carried]
            if spares_core(caged_family, optics):
                boxes = caged_family.attachment
                radices = tuple(boxes.at(tier).radix for tier in (1, 2, 3)) if boxes else ()
                key = cages(carried), radices
                groups.setdefault(key, (caged_family, cages(carried), []))[2].append(optics)
        for group, (caged_family, ports_together, choices) in groups.items():
            # where whole modules are bought above the leaves, cost need not rise with every uplink
            broken_out = any(
                max(caged_family.network.carried(ends)) > 1
                for optics in choices
                for ends in optics[1:]
            )
            apart = broken_out and (tiers == 2 or not (chosen_later and len(choices) > 1))
            if (*group, apart) not in known:
                known[*group, apart] = list(
                    chains(caged_family, network, ports_together, apart=apart)
                )
            for chain in known[*group, apart]:
                if chain.ports.tiers == tiers:
                    yield caged_family, chain, choices


def last_stages(
    network: Network,
    family: DesignFamily,
    optics_of: Callable[[int], Iterable[Optics]],
    core_end: Optic | None = None,
) -> Iterator[GrowthStage]:
    """Every whole network of a family, with every choice of optics for so many tiers, as the end of
    its growth.

    Parameters
    ----------
    core_end
        What is at the lower ends of links into a core, where that is not what is at the upper ones.
    """
    for caged_family, (ports, uplinks), choices in chain_groups(network, family, optics_of):
        runs = [uplinks] if ports.pod_each == 1 else [(up,) for up in uplinks]
        for optics, run in product(choices, runs):
            yield last_stage(caged_family, ports, run, optics, core_end)


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


def earlier_stage(
    last_network: GrowthStage, gpus: int, ratio: float, links: int = 0
) -> GrowthStage:
    """The network with some of its GPUs.

    Parameters
    ----------
    ratio
        The largest oversubscription allowed.
    links
        Links into a core that so many GPUs need; where one domain holds all of them, they start at
        its NICs.
    """
    last_family, end = last_network.family, last_network.ports
    if gpus == last_family.gpus:
        return last_network
    if gpus == last_family.active:
        single_domain = last_family._replace(gpus=gpus, domains=1, attachment=None, to_core=links)
        fits = last_family.core_module == 1  # no NIC takes the modules of leaves that carry more
        return GrowthStage(
            single_domain, NO_NETWORK, range(1 if fits else 0), (), core_end=last_network.core_end
        )
    # Leaves are filled as in the end; a phase has as many of them as its domains need.
    family = last_family._replace(gpus=gpus, domains=gpus // last_family.active)
    down = _ports_of_leaf(last_family, end.down, family.domains) if end.tiers > 1 else family.ends
    leaves = 1 if end.tiers == 1 else leaf_count(family, down)
    if leaves == 1:
        ports = Ports(1, family.ends, shared=planes_on_switch(last_family) if end.tiers == 1 else 1)
        chassis, optics = (
            last_network.chassis or family.planes * family.copies,
            last_network.optics[:1],
        )
        return GrowthStage(
            family, ports, range(1), optics, chassis, last_network.to_core, last_network.core_end
        )
    # A single pod needs no cores yet: its aggregation switches keep those ports free.
    tiers = 2 if end.tiers == 2 or leaves <= end.pod_leaves else 3
    uplinks: Sequence[int] = _earlier_uplinks(last_network, down, ratio)
    if end.tiers == 2 and end.bundle:  # bundles stay as they can be in the end
        uplinks = [
            up for up in uplinks if switches_above(up, end.bundle) == ceil_ratio(up, end.bundle)
        ]
    family = family._replace(to_core=last_network.to_core * leaves * family.planes * family.copies)
    ports, optics = end._replace(tiers=tiers, down=down), last_network.optics[:tiers]
    return GrowthStage(
        family, ports, uplinks, optics, 0, last_network.to_core, last_network.core_end
    )


def grown_from(instance: Instance, last_network: GrowthStage, gpus: int) -> GrowthStage | None:
    """The network that a phase with so many GPUs may have of the last one; None where it may have
    none.

    It grows by whole domains of the GPUs that each has active in the end, and moves no leaves. As
    many links into a core start from each leaf as in the end: on fewer leaves they may be too few.
    """
    family = last_network.family
    # rail-optimized networks of three tiers would put new domains into pods that are full
    rails = family.attachment is not None and family.attachment.kind == "rail-optimized"
    moves_leaves = rails and last_network.ports.tiers == 3 and gpus != family.gpus
    if gpus > family.gpus or gpus % family.active or moves_leaves:
        return None
    links = links_needed(instance, gpus)
    stage = earlier_stage(last_network, gpus, instance.network.largest_ratio, links)
    # NICs of a domain alone have no cables that lead from leaves in the end
    by_length = instance.network.cables == "hall" and last_network.core_end is not None
    if by_length and stage.family.attachment is None and family.attachment is not None:
        return None
    return stage if links <= stage.core_links else None


def _earlier_uplinks(last_network: GrowthStage, down: int, ratio: float) -> list[int]:
    """The uplinks of a leaf with `down` ports in use: whole cages, and those of the end where
    switches and modules above are shared by several links of a leaf.
    """
    cage, _ = cages(last_network.per_module)
    fewest, most_uplinks = (
        math.ceil(down / ratio),
        min(cage * ceil_ratio(down, cage), last_network.uplinks[-1]),
    )
    uplinks = [up for up in range(fewest, most_uplinks + 1) if up % cage == 0]
    if last_network.ports.pod_each == 1 and all(
        max(links) == 1 for links in last_network.per_module[1:]
    ):
        return uplinks
    return [up for up in uplinks if up in last_network.uplinks]


def _ports_of_leaf(last_family: DesignFamily, down: int, domains: int) -> int:
    """Ports towards NICs of the fullest leaf, when leaves are to hold `down` in the end."""
    if last_family.network.kind != "rail-optimized":
        return min(down, domains * last_family.rails // last_family.planes)
    # A rail-optimized leaf keeps the rails that it will have, for fewer domains.
    rails = down // last_family.domains if last_family.domains <= down else 1
    return rails * min(domains, down)


def design_of_stage(instance: Instance, stage: GrowthStage, uplinks: int, claim: Fabric) -> Design:
    """What a plan has to say of a stage; names that buy nothing where there is no network are those
    of the plan.
    """
    family, hb = stage.family, stage.family.hb
    hb_choice = HbDomainChoice(
        name=hb.name, size=hb.size, count=family.domains, active=family.active
    )
    return Design(
        gpus=family.gpus,
        spare_gpus=family.bought * hb.size - family.gpus,
        spare_domains=family.spares,
        hb_domain=hb_choice,
        fabric=(
            claim.model_copy(update=_NO_NETWORK)
            if family.attachment is None
            else _fabric(stage, uplinks)
        ),
        racks=None if hb.racks is None else least_racks(family.bought, hb.racks),
    )


_NO_NETWORK = {
    "tiers": 0,
    "planes": 0,
    "oversubscription": 1.0,
    "routing": 1.0,
    "switch_count": 0,
    "transceiver_count": 0,
    "tier": (),
}


def same_design(claim: Design, design: Design) -> bool:
    """Whether two designs are one, up to rounding of the oversubscription."""
    ratios = claim.fabric.oversubscription, design.fabric.oversubscription
    fabric = claim.fabric.model_copy(update={"oversubscription": ratios[1]})
    return agree(*ratios) and claim.model_copy(update={"fabric": fabric}) == design


def _fabric(stage: GrowthStage, uplinks: int) -> Fabric:
    attachment, plain = stage.family.network, stage.by_tier
    levels = plain.levels(uplinks)
    mixed = len({attachment.at(tier).name for tier in range(1, stage.ports.tiers + 1)}) > 1
    return Fabric(
        kind=attachment.kind,
        tiers=stage.ports.tiers,
        planes=stage.family.planes * stage.family.copies,
        oversubscription=stage.reach(uplinks).beyond,
        routing=attachment.discipline.routing if stage.ports.tiers > 1 else 1.0,
        nic=NicChoice(
            name=attachment.nic.name,
            per_gpu=attachment.per_gpu,
            planes=attachment.nic_planes,
            shared_by=attachment.gpus_per_nic,
        ),
        switch=SwitchChoice(name=attachment.switch.name),
        switch_count=sum(level.switches for level in levels),
        transceiver_count=sum(
            sum(level.modules(per_module))
            for level, per_module in zip(levels, plain.per_module, strict=True)
        ),
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
                switch=attachment.at(number).name if mixed else None,
                cables=_several_kinds(stage, number - 1, uplinks),
            )
            for number, (level, ports, ends) in enumerate(
                zip(levels, _ports_in_use(stage, uplinks), plain.optics, strict=True), start=1
            )
        ),
    )


def _several_kinds(stage: GrowthStage, tier: int, uplinks: int) -> tuple[TierCables, ...]:
    """The cables of a tier (from 0) that has several kinds of them."""
    kinds = stage.kinds(tier, uplinks) if stage.laid else []
    return tuple(
        TierCables(
            optic=kind.ends.above.name,
            optic_below=None if len({*kind.ends}) == 1 else kind.ends.below.name,
            longest_m=kind.longest_m,
            links=kind.links,
        )
        for kind in kinds
        if len(kinds) > 1
    )


def _ports_in_use(stage: GrowthStage, uplinks: int) -> list[tuple[int, int]]:
    """Down-ports and uplinks of the fullest switch of each level."""
    ports, attachment, leaves = stage.ports, stage.family.network, stage.leaves
    if ports.tiers == 1:
        return [(ports.down, 0)]
    leaf = (ports.down, uplinks)
    if stage.one_pod:
        return [leaf, (leaves * ports.pod_each, 0)]
    if ports.tiers == 2:
        return [
            leaf,
            (
                ceil_ratio(
                    leaves * uplinks,
                    spine_count(leaves, stage.with_up(uplinks), attachment.at(2).radix),
                ),
                0,
            ),
        ]
    trunks = ceil_ratio(leaves, ports.pod_leaves) * ports.pod_up
    return [
        leaf,
        (ports.pod_down, ports.pod_up),
        (ceil_ratio(trunks, core_count(leaves, ports, attachment.at(3).radix)), 0),
    ]


def graph_of_stage(stage: GrowthStage, uplinks: int) -> WiredGraph:
    """The graph of a stage of two or more tiers; a single pod is drawn without its cores."""
    ports = stage.with_up(uplinks)
    if not stage.one_pod:
        return wire(stage.family, ports)
    # Pods are drawn below cores only, so that these are drawn first and then taken away.
    network = wire(stage.family, ports._replace(tiers=3))
    network.graph.remove_nodes_from([node for node in network.graph if node[0] == 3])
    return network


def links_per_uplink(earlier: GrowthStage, stage: GrowthStage) -> tuple[int, int]:
    """Links added to switches of an earlier phase: for each new uplink on its leaves, and for each
    uplink they had.
    """
    if stage.ports.tiers < 2 or earlier.ports.tiers < 1:
        return 0, 0
    planes = stage.family.planes * stage.family.copies
    # Aggregation switches of a single pod keep their ports up free until cores come with the second
    # pod.
    cores_come = earlier.one_pod and stage.ports.tiers == 3
    return planes * earlier.leaves, planes * stage.ports.pod_up if cores_come else 0


def links_added(earlier: GrowthStage, stage: GrowthStage, uplinks_before: int, uplinks: int) -> int:
    """Links up that are added to switches of an earlier phase: on its leaves, and on its
    aggregation switches.
    """
    links_per_new, links_per_old = links_per_uplink(earlier, stage)
    bundles_before = uplinks_before // stage.ports.pod_each
    return links_per_new * (uplinks - uplinks_before) + links_per_old * bundles_before
