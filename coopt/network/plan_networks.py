"""From a family to the design that a plan writes out, and back; and what any-to-any would cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from coopt.instance.question import BILLED
from coopt.instance.schema import BillKind, Instance, SwitchedKind
from coopt.instance.variants import as_billed
from coopt.network.chain import TierLevel
from coopt.network.family import Family
from coopt.network.modules import end_modules
from coopt.network.parts import cost_of, racks
from coopt.network.space import Space
from coopt.plan.couplings import NETWORK
from coopt.plan.schema import (
    Cost,
    Design,
    Fabric,
    HbDomainChoice,
    NicChoice,
    Plan,
    SwitchChoice,
    Tier,
)


def design_of(family: Family, uplinks: int) -> Design:
    """The design of a family at u uplinks."""
    chain = family.chain(uplinks)
    fabric = Fabric(
        kind=family.fabric,
        tiers=family.tiers,
        planes=family.all_planes if family.tiers else 0,
        oversubscription=family.slowdown(uplinks) * family.pod_ratio,
        routing=family.discipline.routing if family.tiers > 1 else 1.0,
        nic=NicChoice(
            name=family.nic.name,
            per_gpu=family.nics_per_gpu,
            planes=family.nic_planes if family.tiers else 1,
            shared_by=family.gpus_per_nic if family.tiers else 1,
        ),
        switch=SwitchChoice(name=family.switch.name),
        switch_count=sum(level.switches for level in chain.levels),
        transceiver_count=sum(map(sum, end_modules(family, chain))),
        pod_bundle=family.pods.each if family.pods else 1,
        tier=tuple(_tiers(family, chain.levels)),
    )
    hb = HbDomainChoice(
        name=family.hb.name, size=family.hb.size, count=family.domains, active=family.active
    )
    return Design(
        gpus=family.gpus,
        spare_gpus=family.installed_gpus - family.gpus,
        spare_domains=family.spare_domains,
        hb_domain=hb,
        fabric=fabric,
        racks=racks(family),
    )


def _tiers(family: Family, counted_levels: Sequence[TierLevel]) -> Iterator[Tier]:
    names_switches = any(upper_switch.name != family.switch.name for upper_switch in family.upper)
    for number, (level, ends, switch) in enumerate(
        zip(counted_levels, family.optics, family.switches, strict=True), start=1
    ):
        yield Tier(
            level=number,
            switches=level.switches,
            down_ports=level.down_ports,
            uplinks_per_switch=level.uplinks,
            links=level.links,
            optic=ends.above.name,
            optic_below=ends.below.name if ends.below.name != ends.above.name else None,
            switch=switch.name if names_switches else None,
        )


class Baseline(NamedTuple):
    """The cheapest network that joins any two GPUs at full bandwidth, and what the cheapest one
    costs that does so at the oversubscription of a rail-only plan; None where the plan joins rails
    or is not oversubscribed.
    """

    design: Design
    cost: Cost
    same_ratio: Cost | None = None


def baseline_of(instance: Instance, plan: Plan) -> Baseline | None:
    """What a plan is compared with; None where `any_to_any` finds nothing."""
    full_bandwidth, design = any_to_any(instance, plan), plan.design
    if full_bandwidth is None or design is None:
        return None
    fabric = design.fabric
    if fabric.kind != "rail-only" or fabric.tiers < 2 or fabric.oversubscription <= 1.0:
        return Baseline(*full_bandwidth)
    kind, ports = BILLED[plan.objective.kind], set(instance.network.nic_planes)
    joins: tuple[SwitchedKind, ...] = ("rail-optimized", "clos")
    joining = _joining(as_billed(instance), design, kind, joins, fabric.oversubscription, ports)
    return Baseline(*full_bandwidth, same_ratio=joining[1] if joining else None)


def any_to_any(instance: Instance, plan: Plan) -> tuple[Design, Cost] | None:
    """The cheapest full-bisection flat Clos with the plan's HB domain and NICs, at the prices of
    the plan's bill.

    It has the same GPUs, so its iteration time is at most the plan's. None where the catalog has no
    such network, and for plans of several networks and of islands: what is bought together or over
    years has no one list of prices.
    """
    design, instance = plan.design, as_billed(instance)
    if design is None or plan.parts[0].name != NETWORK:
        return None
    return _joining(
        instance, design, BILLED[plan.objective.kind], ("clos",), 1.0, {design.fabric.nic.planes}
    )


def _joining(
    instance: Instance,
    design: Design,
    kind: BillKind,
    fabrics: tuple[SwitchedKind, ...],
    ratio: float,
    planes: Collection[int],
) -> tuple[Design, Cost] | None:
    """The cheapest network of some fabrics for the HB domains and NICs of a design, down to a
    ratio, on some planes.

    More uplinks cost no less, so each family is billed with the fewest that keep the ratio.
    """
    objective, nic = instance.objective.model_copy(update={"minimize": kind}), design.fabric.nic
    restriction = {
        "fabrics": fabrics,
        "oversubscription": ratio,
        # What is compared with may take tiers that the question does not allow.
        "max_tiers": 3,
        "hb_domains": tuple(
            hb for hb in instance.network.hb_domains if hb.name == design.hb_domain.name
        ),
        "nics": tuple(entry for entry in instance.network.nics if entry.name == nic.name),
        "nics_per_gpu": (nic.per_gpu,),
        "gpus_per_nic": (nic.shared_by,),
        "nic_planes": tuple(number for number in instance.network.nic_planes if number in planes),
    }
    question = instance.model_copy(
        update={
            "network": instance.network.model_copy(update=restriction),
            "objective": objective,
            "cluster": instance.cluster.model_copy(update={"gpus": (design.gpus,)}),
        }
    )
    space = Space(instance=question, measures=(kind,))
    fewest = [
        (replace(family, spare_domains=design.spare_domains), uplinks)
        for hb in question.network.hb_domains
        for family in space.families(design.gpus, hb, design.hb_domain.count, space.nic_options)
        # Uplinks rise, so that the first that keep the ratio are the fewest.
        for uplinks in [
            u for u in family.uplink_choices if family.slowdown(u) * family.pod_ratio <= ratio
        ][:1]
    ]
    bills = [(cost_of(instance, *network), network) for network in fewest]
    cost, best_network = min(bills, key=lambda pair: pair[0].of(kind), default=(None, None))
    return None if cost is None or best_network is None else (design_of(*best_network), cost)
