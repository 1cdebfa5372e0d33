"""The bill of networks alone: of a plan, of an instance that leaves one design, or of designs without a workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coopt.fabric.bills import BESIDE, SWITCH_RACK, design_bill, designs_bill, spare_lines, together, work_lines
from coopt.instance.designs import read_designs
from coopt.instance.errors import InstanceError
from coopt.instance.files import instance_of, load
from coopt.instance.kinds import OTHERS
from coopt.instance.network import SpareRates, WorkRates, not_counted
from coopt.instance.schema import Instance
from coopt.instance.texts import read_toml
from coopt.instance.variants import as_billed
from coopt.network.halls import NetworkHall, network_hall
from coopt.network.island_halls import CoreHall, core_halls, placed_part
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import SharedCore
from coopt.plan.networks import BilledNetwork, BilledTier, CableLength, NetworksBill
from coopt.plan.parts import Cost, Design, ItemKind, line
from coopt.plan.schema import Fabric, Part, Plan, Tier
from coopt.plan.store import check_same_question, decided, read_plan
from coopt.solving.evaluate import cheapest_design, open_design

COUNTED_AS: dict[ItemKind, str] = {
    "gpu": "GPUs",
    "hb": "HB domains",
    "nic": "NICs",
    "switch": "switches",
    "optics": "optics",
}


def bom(
    source: str | Path | Instance | Plan,
    plan: Plan | None = None,
    *,
    design: str | None = None,
    beside: str | Path | None = None,
) -> NetworksBill:
    """Counts and bill of networks, without training on them.

    Parameters
    ----------
    source
        A plan, an instance whose lists leave one network, or a file of either or of designs (docs/designs.md).
    plan
        A plan of the instance, whose networks are billed: with the lengths of their cables, where a hall is known.
    design
        The id of one design of several.
    beside
        A file of designs that are built beside the network of a plan or an instance, as those for storage and
        management; they may count what they join by its HB domains.

    Returns
    -------
    NetworksBill
        Tier by tier what is built, and line by line what it costs (USD) and draws (W).

    Raises
    ------
    InstanceError
        When the file is of no such kind, a choice is open (with the keys to pin), a design cannot be wired, or there
        is no design of that id.

    Examples
    --------
    >>> import coopt
    >>> bill = coopt.bom("instances/designs/published.toml", design="dgx-h100-4su")
    >>> [tier.switches for tier in bill.networks[0].tier]
    [32, 16]
    """
    if plan is not None:
        if isinstance(source, Plan) or design is not None:
            raise InstanceError("bom: a plan goes with its instance alone, needs no other plan and no design")
        question, chosen = decided(instance_of(source), plan)
        check_same_question(question, chosen)
        return _with_designs(_plan_bill(chosen, question), _domains_of(chosen), beside)
    if isinstance(source, Plan):
        found: Instance | Plan = source
    elif isinstance(source, Instance):
        found = source
    elif Path(source).suffix.lower() == ".json":
        found = read_plan(source)
    elif _holds_designs(Path(source)):
        if beside is not None:
            raise InstanceError("--beside: goes with a plan or an instance, needs one in place of a file of designs")
        return _designs_bill(Path(source), design)
    else:
        found = load(source)
    if design is not None:
        raise InstanceError(f"--design {design}: only a file of designs has several to choose from, needs one")
    if isinstance(found, Plan):
        return _with_designs(_plan_bill(found), _domains_of(found), beside)
    bill, domains = _instance_bill(found)
    return _with_designs(bill, domains, beside)


def _holds_designs(file: Path) -> bool:
    table = read_toml(file, "an instance, a plan (.json) or a file of designs (docs/designs.md describes it)")
    return "design" in table and "cluster" not in table


def _designs_bill(file: Path, design: str | None) -> NetworksBill:
    designs = read_designs(file)
    chosen = tuple(each for each in designs if design in (None, each.id))
    if not chosen:
        names = ", ".join(each.id for each in designs)
        raise InstanceError(f"{file.name}: --design {design}: there is none of this id, needs one of {names}")
    return designs_bill(file.stem, chosen, file.name)


def _domains_of(plan: Plan) -> int:
    """HB domains of everything that a plan builds, as it stands in the end."""
    last = {part.slot: part for part in plan.parts}
    designs = [part.design for part in last.values() if part.design is not None]
    linked = [part.links.hb_domain.count for part in last.values() if part.links is not None]
    return sum(design.hb_domain.count + design.spare_domains for design in designs) + sum(linked)


def _with_designs(bill: NetworksBill, domains: int, file: str | Path | None) -> NetworksBill:
    """The bill with the networks of a file of designs beside it."""
    if file is None:
        return bill
    networks = tuple(design_bill(design, Path(file).name) for design in read_designs(file, domains))
    items = together((*bill.items, *(item for network in networks for item in network.items)))
    return bill.model_copy(
        update={
            "networks": (*bill.networks, *networks),
            "items": items,
            "not_counted": tuple(what for what in bill.not_counted if what != BESIDE),
            "usd": math.fsum(item.usd for item in items),
            "w": math.fsum([bill.w, *(network.w for network in networks)]),
        }
    )


def _instance_bill(instance: Instance) -> tuple[NetworksBill, int]:
    """The bill of the only network, and its HB domains; wiring and optics, which have no key, are the cheapest."""
    if instance.problem != "shared":
        words, table = OTHERS[instance.problem]
        raise InstanceError(
            f"{instance.name}: {words} ({table}), and bom solves nothing: needs its plan as well (coopt bom INSTANCE "
            "PLAN.json)"
        )
    if complaints := list(open_design(instance)):
        raise InstanceError(f"{instance.name}: {text}, or a plan beside it" for text in complaints)
    family, uplinks, cost = cheapest_design(instance, None)
    built = design_of(family, uplinks)
    bare = _network("network", built, cost)
    (standing,) = _billed_racks(instance, [(bare.name, _in_hall(bare, network_hall(instance, family, uplinks)))])
    return _whole_bill(instance.name, (standing,), cost, instance), built.hb_domain.count


def _in_hall(bare: BilledNetwork, hall: NetworkHall | None) -> BilledNetwork:
    """The network with its cables by length and the racks that its switches fill, where its racks are known."""
    if hall is None:
        return bare
    lengths = [tuple(CableLength(length_m=m, count=n) for m, n in sorted(cables.items())) for cables in hall.cables]
    tiers = zip(bare.tier, lengths, strict=True)
    wired = tuple(tier.model_copy(update={"cables": each}) for tier, each in tiers)
    return bare.model_copy(update={"tier": wired, "switch_racks": hall.switch_racks})


def _billed_racks(instance: Instance | None, networks: Sequence[tuple[str, BilledNetwork]]) -> Iterator[BilledNetwork]:
    """The networks, with what they are called in every phase, with a line for the racks of switches that each adds to
    those of an earlier phase, where the instance has a price for them."""
    usd = None if instance is None else instance.network.hall.usd_per_switch_rack
    before = Counter[str]()
    for name, network in networks:
        count = network.switch_racks or 0
        added, before[name] = max(0, count - before[name]), max(count, before[name])
        network = network.model_copy(update={"switch_racks_added": None if network.switch_racks is None else added})
        if usd is not None and added:
            racks = line("rack", SWITCH_RACK, added, usd, 0.0)
            network = network.model_copy(update={"items": (*network.items, racks), "usd": network.usd + racks.usd})
        yield network


def _plan_bill(plan: Plan, instance: Instance | None = None) -> NetworksBill:
    """The bill of each part, and that of everything with what couples the parts."""
    name = plan.instance.name
    if plan.cost is None:
        raise InstanceError(f"{name}: the plan is {plan.status} and has no bill, needs a plan that builds one")
    standing = [(part.slot, _in_hall(_part(part), _hall_of(instance, plan, part))) for part in plan.parts]
    networks, unknown = tuple(_bought(instance, standing)), ""
    if instance is not None and plan.couplings.cores:
        halls = tuple(core_halls(instance, plan))
        cores = [(shared.site or "", _core(instance, shared, halls)) for shared in plan.couplings.cores]
        networks += tuple(_bought(instance, cores))
        unknown = "" if len(halls) == len(cores) else "lengths of cables into the core, as nobody knows all racks"
    return _whole_bill(name, networks, plan.cost, instance, unknown)


def _bought(instance: Instance | None, standing: Sequence[tuple[str, BilledNetwork]]) -> Iterator[BilledNetwork]:
    """The networks, with what they are called in every phase, with the cables and racks that each phase adds."""
    grows = Counter(name for name, _ in standing)
    yield from _billed_racks(instance, list(_with_added(standing, {name for name, n in grows.items() if n > 1})))


def _core(instance: Instance, shared: SharedCore, halls: Iterable[CoreHall]) -> BilledNetwork:
    """What joins the islands of a site in a phase: its switches, and its cables, whose ends the islands have bought."""
    core, where = shared.core, "" if shared.site is None else f" at {shared.site}"
    hall = next((one for one in halls if one.shared is shared), None)
    box = next(one for one in as_billed(instance).network.switches if one.name == core.switch.name)
    counted = "switch" in instance.objective.include
    items = (line("switch", box.name, core.switches, box.usd, box.w),) if counted else ()
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
        name=f"core{where}" if shared.phase is None else f"core{where}, {shared.phase:g}",
        fabric="core",
        gpus=0,
        tier=(tier,),
        switch_racks=None if hall is None else hall.switch_racks,
        items=items,
        usd=math.fsum(item.usd for item in items),
        w=math.fsum(item.w for item in items),
    )


def _with_added(
    networks: Iterable[tuple[str, BilledNetwork]], growing: Collection[str]
) -> Iterator[tuple[str, BilledNetwork]]:
    """The networks, with what they are called in every phase; cables of those that grow tell what each phase adds."""
    before = Counter[tuple[str, int, int]]()
    for name, network in networks:
        tiers = []
        for tier in network.tier if name in growing else ():
            cables = []
            for cable in tier.cables:
                key = name, tier.level, cable.length_m
                cables.append(cable.model_copy(update={"added": max(0, cable.count - before[key])}))
                before[key] = max(before[key], cable.count)
            tiers.append(tier.model_copy(update={"cables": tuple(cables)}))
        yield name, network.model_copy(update={"tier": tuple(tiers)}) if tiers else network


def _hall_of(instance: Instance | None, plan: Plan, part: Part) -> NetworkHall | None:
    """The hall of a part; None without its question."""
    placed = None if instance is None else placed_part(instance, plan, part)
    return None if placed is None else placed.hall


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


def _network(name: str, design: Design, cost: Cost | None) -> BilledNetwork:
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
                down_ports=tier.down_ports,
                uplinks_per_switch=tier.uplinks_per_switch,
                links=tier.links,
                bundle=_bundle(fabric, tier),
                switch=tier.switch or fabric.switch.name,
                optic=" / ".join(tier.optics),
            )
            for tier in fabric.tier
        ),
        **_sums(cost),
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


def _sums(cost: Cost | None) -> dict[str, Any]:
    """The lines of a bill and what they come to; plans of schema 1 have no bills of islands and phases."""
    if cost is None:
        return {"items": (), "usd": 0.0, "w": 0.0, "unpriced": ("this network alone, in a plan of schema 1",)}
    return {"items": cost.items, "usd": cost.capex_usd, "w": cost.power_w}


def _whole_bill(
    name: str,
    networks: tuple[BilledNetwork, ...],
    cost: Cost,
    instance: Instance | None = None,
    unknown: str = "",
) -> NetworksBill:
    """The bill of a plan with what no plan depends on: racks of switches, spare parts, labour and support."""
    kinds = {item.kind for item in cost.items}
    racks = [item for network in networks for item in network.items if item.kind == "rack"]
    standing = sum(network.switch_racks_added or 0 for network in networks)
    omitted = [noun for kind, noun in COUNTED_AS.items() if kind not in kinds]
    if instance is None:
        omitted.append("servers, where objective.include of its instance leaves out host")
    elif "host" not in instance.objective.include:
        omitted.append("servers")
    if racks:
        omitted.append("racks of HB domains")
    else:
        omitted.append(f"racks, {standing:,} of them for switches" if standing else "racks")
    omitted += [unknown] if unknown else []
    spares = SpareRates() if instance is None else instance.network.spares
    work = WorkRates() if instance is None else _work(instance)
    in_use = [item for item in cost.items if not item.spare]
    extras = (*racks, *spare_lines(spares, in_use), *work_lines(work, cost.capex_usd))
    items = together((*cost.items, *extras))
    return NetworksBill(
        name=name,
        networks=networks,
        items=items,
        not_counted=(*omitted, "power distribution and cooling", not_counted([work], [spares]), BESIDE),
        usd=math.fsum([cost.capex_usd, *(item.usd for item in extras)]),
        w=cost.power_w,
    )


def _work(instance: Instance) -> WorkRates:
    """Labour and support as the total cost of a plan holds them."""
    terms = instance.objective
    return WorkRates(labour_share=terms.labour_share, support_share=terms.support_share, years=terms.years)
