"""The bill of a plan, or of a network of an instance: what stands, its cables, and what no plan
depends on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from coopt.instance.catalog import entries
from coopt.instance.hardware import Optic
from coopt.instance.network import SpareRates, WorkRates, not_counted
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, counted
from coopt.instance.variants import as_billed
from coopt.network.design_bills import (
    BESIDE,
    KINDS,
    SWITCH_RACK,
    lines_by_product,
    spare_lines,
    work_lines,
)
from coopt.network.family import Family, pair_share
from coopt.network.halls import (
    CoreHall,
    NetworkHall,
    core_halls,
    network_hall,
    placed_parts,
)
from coopt.network.orders import PlacedOptics, order_notes, plan_order_notes
from coopt.network.placing import Lengths
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Part, SharedCore
from coopt.plan.networks import BilledNetwork, BilledTier, CableLength, NetworksBill
from coopt.plan.parts import Cost, Design, Fabric, Item, ItemKind, Tier, line
from coopt.plan.schema import Plan

COUNTED_AS: dict[ItemKind, str] = {"gpu": "GPUs", "hb": "HB domains", **KINDS}

WORST_PRICES = "Prices are the worst that robust.prices allows; the plan is made for these."
MAYBE_WORST_PRICES = (
    "Prices are the worst that robust.prices of the plan's instance allows, or the listed prices"
    " where it has no robust.prices."
)


class NetworkInPhase(NamedTuple):
    """A network as it stands in a phase, with what it is called in every phase, its cables by
    length below each tier and the racks of its switches, where its hall is known.
    """

    name: str
    phase: float | None
    network: BilledNetwork
    cables: Sequence[Lengths] = ()
    switch_racks: int | None = None


def plan_bill(plan: Plan, instance: Instance | None = None) -> NetworksBill:
    """The bill of each part, and that of everything with what couples the parts."""
    name = plan.instance.name
    if plan.cost is None:
        place = name if instance is None else instance.place
        raise InstanceError(
            f"{place}: the plan has no bill (its status is {plan.status!r}), needs a plan that"
            " builds a network"
        )
    parts = {} if instance is None else placed_parts(instance, plan)
    halls = {name: part.hall for name, part in parts.items() if part is not None}
    networks = tuple(
        _in_halls(instance, [_built(part, halls.get(part.name)) for part in plan.parts])
    )
    # direct links have no hall, and so their cables no lengths
    unknown = [
        f"lengths of the cables of {counted(part.links.links, 'direct link')}"
        for part in plan.parts
        if part.links is not None
    ]
    if instance is None:
        unknown += _splitters(plan, plan.cost)
        return _whole_bill(
            name, networks, plan.cost, None, unknown, worst_prices=plan.at_worst_prices
        )
    if plan.couplings.cores:
        of_cores = tuple(core_halls(instance, plan, parts))
        cores = [_core(instance, core, of_cores) for core in plan.couplings.cores]
        networks += tuple(_in_halls(instance, cores))
        if len(of_cores) < len(cores):
            unknown.append(
                "lengths of cables into the core, because the racks of the islands are not"
                " all known"
            )
    return _whole_bill(
        name,
        networks,
        plan.cost,
        instance,
        unknown,
        plan_order_notes(instance, plan, parts),
        worst_prices=bool(instance.worst_prices),
    )


def _splitters(plan: Plan, cost: Cost) -> Iterator[str]:
    """That modules may take what splits their fibres, where nobody says how many links each
    serves and the bill has no fibre.
    """
    if any(item.kind == "fibre" for item in cost.items):
        return
    fabrics = [part.design.fabric for part in plan.parts if part.design is not None]
    if any(
        fabric.transceiver_count < 2 * sum(tier.links for tier in fabric.tier) for fabric in fabrics
    ):
        yield "cables or panels that split fibres between the links of one module"


def network_bill(instance: Instance, family: Family, uplinks: int, cost: Cost) -> NetworksBill:
    """The bill of one network, with the lengths of its cables where a hall is known."""
    design, hall = design_of(family, uplinks), network_hall(instance, family, uplinks)
    built = NetworkInPhase("network", None, _network("network", design, cost))
    networks = tuple(_in_halls(instance, [_placed(built, hall)]))
    cabled = [] if hall is None else [PlacedOptics.of(hall, family, uplinks)]
    return _whole_bill(
        instance.name, networks, cost, instance, (), order_notes(instance, design, cabled)
    )


def _placed(built: NetworkInPhase, hall: NetworkHall | None) -> NetworkInPhase:
    if hall is None:
        return built
    return built._replace(cables=hall.cables, switch_racks=hall.switch_racks)


def _in_halls(
    instance: Instance | None, built: Sequence[NetworkInPhase]
) -> Iterator[BilledNetwork]:
    """The networks with their cables by length and the racks of their switches: those that grow
    tell which of them each phase adds, and racks have a line where the instance has a price.
    """
    phases = Counter(entry.name for entry in built)
    usd = None if instance is None else instance.network.hall.usd_per_switch_rack
    cables, rack_counts = Counter[tuple[str, int, int]](), Counter[str]()
    for name, phase, network, lengths, racks in built:
        tiers = []
        below = lengths or [Lengths()] * len(network.tier)
        for tier, by_length in zip(network.tier, below, strict=True):
            of_tier = []
            for length_m, count in sorted(by_length.items()):
                key = name, tier.level, length_m
                added = max(0, count - cables[key]) if phases[name] > 1 else None
                cables[key] = max(cables[key], count)
                of_tier.append(CableLength(length_m=length_m, count=count, added=added))
            tiers.append(tier.model_copy(update={"cables": tuple(of_tier)}))
        added = max(0, (racks or 0) - rack_counts[name])
        rack_counts[name] += added
        items = list[Item]()
        if usd is not None and added:
            item = line("rack", SWITCH_RACK, added, usd, 0.0)
            items.append(item if phase is None else item.bought_in(phase))
        yield network.model_copy(
            update={
                "tier": tuple(tiers),
                "switch_racks": racks,
                "switch_racks_added": None if racks is None else added,
                "items": (*network.items, *items),
                "usd": network.usd + sum(item.usd for item in items),
            }
        )


def _core(instance: Instance, coupling: SharedCore, halls: Iterable[CoreHall]) -> NetworkInPhase:
    """What joins the islands of a site in a phase: its switches, and its cables, whose ends the
    islands have bought.
    """
    core = coupling.core
    hall = next((hall for hall in halls if hall.coupling is coupling), None)
    box = next(one for one in as_billed(instance).network.switches if one.name == core.switch.name)
    is_counted = "switch" in instance.objective.include
    items = (line("switch", box.name, core.switches, box.usd, box.w),) if is_counted else ()
    tier = BilledTier(
        level=1,
        switches=core.switches,
        down_ports=-(-(core.ports + core.channel_ports) // core.switches),
        uplinks_per_switch=0,
        links=core.ports,
        bundle=0,
        switch=box.name,
        optic=" / ".join(core.optics),
    )
    network = BilledNetwork(
        name=coupling.name,
        fabric="core",
        gpus=0,
        tier=(tier,),
        items=items,
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )
    built = NetworkInPhase(coupling.site or "", coupling.phase, network)
    return (
        built
        if hall is None
        else built._replace(cables=[hall.cables], switch_racks=hall.switch_racks)
    )


def _built(part: Part, hall: NetworkHall | None) -> NetworkInPhase:
    if part.design is not None:
        network = _network(part.name, part.design, part.cost)
        return _placed(NetworkInPhase(part.slot, part.phase, network), hall)
    assert part.links is not None, "a part has a design or direct links"
    network = BilledNetwork(
        name=part.name,
        fabric="direct",
        gpus=part.links.gpus + part.links.spare_gpus,
        hb_domain=part.links.hb_domain.name,
        domain_gpus=part.links.hb_domain.size,
        tier=(),
        **_sums(part.cost),
    )
    return NetworkInPhase(part.slot, part.phase, network)


def _network(name: str, design: Design, cost: Cost) -> BilledNetwork:
    fabric = design.fabric
    return BilledNetwork(
        name=name,
        fabric=fabric.title if fabric.tiers else "none",
        gpus=design.gpus + design.spare_gpus,
        hb_domain=design.hb_domain.name,
        domain_gpus=design.hb_domain.size,
        tier=tuple(
            BilledTier(
                level=tier.level,
                switches=tier.switches,
                down_ports=tier.down_ports if fabric.tiers > 1 else -(-tier.links // tier.switches),
                uplinks_per_switch=tier.uplinks_per_switch,
                links=tier.links,
                bundle=_bundle(fabric, tier),
                switch=tier.switch or fabric.switch.name,
                optic=" / ".join(tier.optics),
            )
            for tier in fabric.tier
        ),
        oversubscription=fabric.oversubscription if fabric.tiers else None,
        pair_share=_pair_share(fabric),
        **_sums(cost),
    )


def _pair_share(fabric: Fabric) -> float | None:
    """What two leaves of a pod can use between them; a pod of three tiers has equally many links to
    each switch.
    """
    if fabric.tiers != 2:
        return 1.0 if fabric.tiers else None
    leaf, spine = fabric.tier
    return pair_share(
        leaf.switches // fabric.planes, spine.switches // fabric.planes, leaf.uplinks_per_switch
    )


def _bundle(fabric: Fabric, tier: Tier) -> int:
    """Cables from a switch to each one above that it reaches, at least; 0 at the top."""
    if tier.level == fabric.tiers:
        return 0
    if tier.level == 1 and fabric.tiers == 3:
        return fabric.pod_bundle
    uplinks = fabric.tier[0].uplinks_per_switch
    groups = fabric.planes * (uplinks // fabric.pod_bundle if fabric.tiers == 3 else 1)
    return tier.uplinks_per_switch // (fabric.tier[tier.level].switches // groups)


def _sums(cost: Cost) -> dict[str, Any]:
    """The lines of a bill and what they come to."""
    return {"items": cost.items, "usd": cost.capex_usd, "w": cost.power_w}


def _whole_bill(
    name: str,
    networks: tuple[BilledNetwork, ...],
    cost: Cost,
    instance: Instance | None = None,
    unknown: Iterable[str] = (),
    notes: Iterable[str] = (),
    *,
    worst_prices: bool | None = False,
) -> NetworksBill:
    """The bill of a plan with what no plan depends on: racks of switches, spare parts, labour and
    support.

    `worst_prices` is None where nobody knows whether prices are those listed.
    """
    kinds = {item.kind for item in cost.items}
    racks = [item for network in networks for item in network.items if item.kind == "rack"]
    racks.sort(key=lambda item: item.year or 0.0)
    rack_count = sum(network.switch_racks_added or 0 for network in networks)
    omitted = [noun for kind, noun in COUNTED_AS.items() if kind not in kinds]
    if instance is None:
        omitted.append('servers (unless objective.include of its instance has "host")')
    elif "host" not in instance.objective.include:
        omitted.append("servers")
    if racks:
        omitted.append("racks of HB domains")
    else:
        omitted.append(f"racks, {rack_count:,} of them for switches" if rack_count else "racks")
    omitted += unknown
    spares = SpareRates() if instance is None else instance.network.spares
    terms, work = None if instance is None else instance.objective, WorkRates()
    if terms is not None:  # labour and support as the total cost of a plan holds them
        work = WorkRates(
            labour_share=terms.labour_share, support_share=terms.support_share, years=terms.years
        )
    in_use = [item for item in cost.items if not item.spare]
    in_bill = {item.name for item in in_use if item.kind == "optics"}
    optics = entries("optic").values() if instance is None else instance.network.optics
    # as the instance says, or the catalog without it
    billed = [optic for optic in optics if isinstance(optic, Optic) and optic.name in in_bill]
    cables = tuple(optic.name for optic in billed if optic.whole_cable)  # with both ends
    if "fibre" not in kinds and any(optic.pairs_of(optic.gbit_s) for optic in billed):
        omitted.append("fibre between modules")
    at_worst = WORST_PRICES if worst_prices else MAYBE_WORST_PRICES
    extras = (*racks, *spare_lines(spares, in_use, cables), *work_lines(work, cost.capex_usd))
    return NetworksBill(
        name=name,
        networks=networks,
        items=lines_by_product((*cost.items, *extras)),
        not_counted=(
            *omitted,
            "power distribution and cooling",
            not_counted([work], [spares]),
            BESIDE,
        ),
        notes=(*([] if worst_prices is False else [at_worst]), *notes),
        at_worst_prices=worst_prices is not False,
        whole_cables=cables,
        usd=math.fsum([cost.capex_usd, *(item.usd for item in extras)]),
        w=cost.power_w,
    )
