"""The bill of a plan, or of a network of an instance: what stands, its cables, and what no plan
depends on.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from coopt.instance.catalog import entries
from coopt.instance.errors import InstanceError, counted
from coopt.instance.hardware import Optic
from coopt.instance.network import SpareRates, WorkRates, not_counted
from coopt.instance.schema import Instance
from coopt.instance.variants import as_billed
from coopt.network.chain import pair_share
from coopt.network.design_bills import (
    BESIDE,
    KINDS,
    SWITCH_RACK,
    lines_by_product,
    spare_lines,
    work_lines,
)
from coopt.network.family import Family
from coopt.network.halls import NetworkHall, network_hall
from coopt.network.island_halls import CoreHall, core_halls, placed_parts
from coopt.network.orders import order_notes, plan_order_notes
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import SharedCore
from coopt.plan.networks import BilledNetwork, BilledTier, CableLength, NetworksBill
from coopt.plan.parts import Cost, Design, Item, ItemKind, line
from coopt.plan.schema import Fabric, Part, Plan, Tier

COUNTED_AS: dict[ItemKind, str] = {"gpu": "GPUs", "hb": "HB domains", **KINDS}

WORST_PRICES = "Prices are the worst that robust.prices allows, for which the plan is made."
MAYBE_WORST_PRICES = (
    "Prices are the worst that robust.prices of the instance allows, for which the plan is made;"
    " those listed if it names none."
)


class DatedNetwork(NamedTuple):
    """A network as it stands in a phase, with what it is called in every phase."""

    name: str
    phase: float | None
    network: BilledNetwork


def plan_bill(plan: Plan, instance: Instance | None = None) -> NetworksBill:
    """The bill of each part, and that of everything with what couples the parts."""
    name = plan.instance.name
    if plan.cost is None:
        raise InstanceError(
            f"{name}: the plan is {plan.status} and has no bill, needs a plan that builds one"
        )
    parts = {} if instance is None else placed_parts(instance, plan)
    halls = {name: part.hall for name, part in parts.items() if part is not None}
    dated = [
        DatedNetwork(part.slot, part.phase, _in_hall(_part(part), halls.get(part.name)))
        for part in plan.parts
    ]
    networks, unknown = tuple(_phase_networks(instance, dated)), [*_without_lengths(plan)]
    if instance is None:
        unknown += _splitters(plan)
        return _whole_bill(
            name, networks, plan.cost, None, unknown, worst_prices=plan.at_worst_prices
        )
    if plan.couplings.cores:
        of_cores = tuple(core_halls(instance, plan, parts))
        cores = [
            DatedNetwork(core.site or "", core.phase, _core(instance, core, of_cores))
            for core in plan.couplings.cores
        ]
        networks += tuple(_phase_networks(instance, cores))
        if len(of_cores) < len(cores):
            unknown.append(
                "lengths of cables into the core, as nobody knows how many racks all islands fill"
            )
    notes = plan_order_notes(instance, plan, parts)
    return _whole_bill(
        name,
        networks,
        plan.cost,
        instance,
        unknown,
        notes,
        worst_prices=bool(instance.worst_prices),
    )


def _without_lengths(plan: Plan) -> Iterator[str]:
    """That direct links have no hall, and so their cables no lengths."""
    for part in plan.parts:
        if part.links is not None:
            yield f"cables of {counted(part.links.links, 'direct link')} by length"


def _splitters(plan: Plan) -> Iterator[str]:
    """That modules may take what splits their fibres, where nobody says how many links each
    serves.
    """
    fabrics = [part.design.fabric for part in plan.parts if part.design is not None]
    if any(
        fabric.transceiver_count < 2 * sum(tier.links for tier in fabric.tier) for fabric in fabrics
    ):
        yield "cables or panels that split fibres, where a module serves several links"


def network_bill(instance: Instance, family: Family, uplinks: int, cost: Cost) -> NetworksBill:
    """The bill of one network, with the lengths of its cables where a hall is known."""
    design, hall = design_of(family, uplinks), network_hall(instance, family, uplinks)
    (network,) = _phase_networks(
        instance, [DatedNetwork("network", None, _in_hall(_network("network", design, cost), hall))]
    )
    cabled = [] if hall is None else [(hall, family.optics)]
    return _whole_bill(
        instance.name, (network,), cost, instance, (), order_notes(instance, design, cabled)
    )


def _phase_networks(
    instance: Instance | None, dated: Sequence[DatedNetwork]
) -> Iterator[BilledNetwork]:
    """The networks with the cables and racks that each phase adds."""
    grows = Counter(entry.name for entry in dated)
    yield from _billed_racks(
        instance, _with_added(dated, {name for name, n in grows.items() if n > 1})
    )


def _core(instance: Instance, coupling: SharedCore, halls: Iterable[CoreHall]) -> BilledNetwork:
    """What joins the islands of a site in a phase: its switches, and its cables, whose ends the
    islands have bought.
    """
    core = coupling.core
    hall = next((hall for hall in halls if hall.coupling is coupling), None)
    box = next(one for one in as_billed(instance).network.switches if one.name == core.switch.name)
    is_counted = "switch" in instance.objective.include
    items = (line("switch", box.name, core.switches, box.usd, box.w),) if is_counted else ()
    lengths = {} if hall is None else hall.cables
    tier = BilledTier(
        level=1,
        switches=core.switches,
        down_ports=-(-core.ports // core.switches),
        uplinks_per_switch=0,
        links=core.ports,
        bundle=0,
        switch=box.name,
        optic=" / ".join(core.optics),
        cables=tuple(CableLength(length_m=m, count=count) for m, count in sorted(lengths.items())),
    )
    return BilledNetwork(
        name=coupling.name,
        fabric="core",
        gpus=0,
        tier=(tier,),
        switch_racks=None if hall is None else hall.switch_racks,
        items=items,
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _in_hall(network: BilledNetwork, hall: NetworkHall | None) -> BilledNetwork:
    """The network with its cables by length and the racks that its switches fill, where its racks
    are known.
    """
    if hall is None:
        return network
    lengths = [
        tuple(CableLength(length_m=m, count=n) for m, n in sorted(cables.items()))
        for cables in hall.cables
    ]
    tiers = zip(network.tier, lengths, strict=True)
    wired = tuple(tier.model_copy(update={"cables": by_length}) for tier, by_length in tiers)
    return network.model_copy(update={"tier": wired, "switch_racks": hall.switch_racks})


def _billed_racks(
    instance: Instance | None, networks: Iterable[DatedNetwork]
) -> Iterator[BilledNetwork]:
    """The networks with a line for the racks of switches that each adds to those of an earlier
    phase, where the instance has a price for them.
    """
    usd = None if instance is None else instance.network.hall.usd_per_switch_rack
    rack_counts = Counter[str]()
    for name, phase, network in networks:
        count = network.switch_racks or 0
        added, rack_counts[name] = max(0, count - rack_counts[name]), max(count, rack_counts[name])
        billed = network.model_copy(
            update={"switch_racks_added": None if network.switch_racks is None else added}
        )
        if usd is not None and added:
            racks = line("rack", SWITCH_RACK, added, usd, 0.0)
            dated = racks if phase is None else racks.bought_in(phase)
            billed = billed.model_copy(
                update={"items": (*billed.items, dated), "usd": billed.usd + racks.usd}
            )
        yield billed


def _with_added(
    networks: Iterable[DatedNetwork], growing: Collection[str]
) -> Iterator[DatedNetwork]:
    """The networks; cables of those that grow tell what each phase adds."""
    cable_counts = Counter[tuple[str, int, int]]()
    for dated in networks:
        tiers = []
        for tier in dated.network.tier if dated.name in growing else ():
            cables = []
            for cable in tier.cables:
                key = dated.name, tier.level, cable.length_m
                cables.append(
                    cable.model_copy(update={"added": max(0, cable.count - cable_counts[key])})
                )
                cable_counts[key] = max(cable_counts[key], cable.count)
            tiers.append(tier.model_copy(update={"cables": tuple(cables)}))
        yield (
            dated._replace(network=dated.network.model_copy(update={"tier": tuple(tiers)}))
            if tiers
            else dated
        )


def _part(part: Part) -> BilledNetwork:
    if part.design is not None:
        return _network(part.name, part.design, part.cost)
    assert part.links is not None, "a part has a design or direct links"
    return BilledNetwork(
        name=part.name,
        fabric="direct",
        gpus=part.links.gpus + part.links.spare_gpus,
        hb_domain=part.links.hb_domain.name,
        domain_gpus=part.links.hb_domain.size,
        tier=(),
        **_sums(part.cost),
    )


def _network(name: str, design: Design, cost: Cost) -> BilledNetwork:
    fabric = design.fabric
    return BilledNetwork(
        name=name,
        fabric=fabric.kind if fabric.tiers else "none",
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
        omitted.append("servers, where objective.include of its instance leaves out host")
    elif "host" not in instance.objective.include:
        omitted.append("servers")
    if racks:
        omitted.append("racks of HB domains")
    else:
        omitted.append(f"racks, {rack_count:,} of them for switches" if rack_count else "racks")
    omitted += unknown
    spares = SpareRates() if instance is None else instance.network.spares
    work = WorkRates() if instance is None else _work(instance)
    in_use = [item for item in cost.items if not item.spare]
    cables = tuple(_whole_cables(in_use, instance))
    extras = (*racks, *spare_lines(spares, in_use, cables), *work_lines(work, cost.capex_usd))
    items = lines_by_product((*cost.items, *extras))
    return NetworksBill(
        name=name,
        networks=networks,
        items=items,
        not_counted=(
            *omitted,
            "power distribution and cooling",
            not_counted([work], [spares]),
            BESIDE,
        ),
        notes=(*_price_notes(worst_prices), *notes),
        at_worst_prices=worst_prices is not False,
        whole_cables=cables,
        usd=math.fsum([cost.capex_usd, *(item.usd for item in extras)]),
        w=cost.power_w,
    )


def _price_notes(worst_prices: bool | None) -> Iterator[str]:
    """That prices are not those listed, or may not be."""
    if worst_prices is not False:
        yield MAYBE_WORST_PRICES if worst_prices is None else WORST_PRICES


def _whole_cables(items: Iterable[Item], instance: Instance | None) -> Iterator[str]:
    """Optics of a bill that come as cables with both of their ends, as the instance says, or the
    catalog without it.
    """
    names = {item.name for item in items if item.kind == "optics"}
    optics = entries("optic").values() if instance is None else instance.network.optics
    yield from (
        optic.name
        for optic in optics
        if isinstance(optic, Optic) and optic.whole_cable and optic.name in names
    )


def _work(instance: Instance) -> WorkRates:
    """Labour and support as the total cost of a plan holds them."""
    terms = instance.objective
    return WorkRates(
        labour_share=terms.labour_share, support_share=terms.support_share, years=terms.years
    )
