"""From a family to the design that a plan writes out, and back: the network and question of one
part of a plan, whatever else the plan holds, and what any-to-any would cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from coopt.instance.question import BILLED
from coopt.instance.schema import (
    BillKind,
    Instance,
    Limits,
    SwitchedKind,
    question_on,
    require_decided,
)
from coopt.instance.texts import InstanceError, alternatives, both
from coopt.instance.variants import as_billed, as_built, trained_on
from coopt.instance.workload import Workload
from coopt.network.cores import core_switch, links_to_core, with_core_optic
from coopt.network.family import Family, LinkEnds, TierChain
from coopt.network.growth import grown, grows
from coopt.network.laying import laid_as, least_laid
from coopt.network.optics import cable_kinds
from coopt.network.parts import cost_of, electricity_of, end_modules, racks
from coopt.network.placing import SINGLE_BAY, Bay, bay_of
from coopt.network.space import Space, families
from coopt.plan.couplings import NETWORK, CorePlan, Part, network_of
from coopt.plan.parts import (
    Cost,
    Design,
    Fabric,
    HbDomainChoice,
    NicChoice,
    SwitchChoice,
    Tier,
    TierCables,
    WorkloadPlan,
)
from coopt.plan.schema import Plan


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
            per_gpu=family.bought_per_gpu,
            ports_in_plane=family.ports_in_plane if family.tiers else 1,
            planes=family.nic_planes if family.tiers else 1,
            shared_by=family.gpus_per_nic if family.tiers else 1,
        ),
        switch=SwitchChoice(name=family.switch.name),
        switch_count=sum(level.switches for level in chain.levels),
        transceiver_count=sum(map(sum, end_modules(family, chain))),
        pod_bundle=family.pods.each if family.pods else 1,
        leaf_domains=family.leaf_span if family.takes_turns else 0,
        tier=tuple(_tiers(family, chain)),
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


def _tiers(family: Family, chain: TierChain) -> Iterator[Tier]:
    cables = list(family.runs(chain))
    names_switches = any(upper_switch.name != family.switch.name for upper_switch in family.upper)
    for number, (level, ends, switch) in enumerate(
        zip(chain.levels, family.optics, family.switches, strict=True), start=1
    ):
        kinds = cable_kinds(cables[number - 1]) if cables else ()
        yield Tier(
            level=number,
            switches=level.switches,
            down_ports=level.down_ports,
            uplinks_per_switch=level.uplinks,
            links=level.links,
            optic=ends.above.name,
            optic_below=ends.below.name if ends.below.name != ends.above.name else None,
            switch=switch.name if names_switches else None,
            cables=kinds if len(kinds) > 1 else (),
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
    if design is None or plan.parts[0].name != NETWORK or instance.stands is not None:
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
    network, nic = instance.network, design.fabric.nic
    question = instance.having(
        network={
            "fabrics": fabrics,
            "oversubscription": ratio,
            "end_to_end_oversubscription": None,
            # What is compared with may take tiers that the question does not allow.
            "max_tiers": 3,
            "max_networks": None,
            "hb_domains": tuple(
                hb for hb in network.hb_domains if hb.name == design.hb_domain.name
            ),
            "nics": tuple(entry for entry in network.nics if entry.name == nic.name),
            "nics_per_gpu": (nic.per_gpu,),
            "gpus_per_nic": (nic.shared_by,),
            "nic_planes": tuple(number for number in network.nic_planes if number in planes),
        },
        objective={"minimize": kind},
        cluster={"gpus": (design.gpus,)},
    )
    space = Space(instance=question, measures=(kind,), unlaid=True)
    fewest = [
        (replace(family, spare_domains=design.spare_domains), uplinks)
        for hb in question.network.hb_domains
        for family in space.families(design.gpus, hb, design.hb_domain.count, space.nic_options)
        # Uplinks rise, so that the first that keep the ratio are the fewest.
        for uplinks in [
            u for u in family.uplink_choices if family.slowdown(u) * family.pod_ratio <= ratio
        ][:1]
    ]

    def value(family: Family, uplinks: int) -> float:
        return cost_of(instance, family, uplinks).of(kind)

    # Without the cables that lengths choose, bills are lower bounds.
    floors = ((value(family, uplinks), uplinks, family) for family, uplinks in fewest)
    best = least_laid(question, floors, value)
    if best is None:
        return None
    uplinks = best.uplink_choices[0]
    return design_of(best, uplinks), cost_of(instance, best, uplinks)


@dataclass(frozen=True, kw_only=True)
class PartNetwork:
    """A part with switches: the question it answers alone, and the family and uplinks of its
    design.

    `waits_s` is how long each workload waits for gradients of other sites, where there are any.
    """

    question: Instance
    part: Part
    family: Family
    uplinks: int
    waits_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def runs(self) -> list[tuple[Workload, WorkloadPlan]]:
        """What trains on it: what is asked for beside what the plan says."""
        return list(zip(self.question.workload, self.part.workloads, strict=True))


def part_named(instance: Instance, plan: Plan, name: str | None = None) -> Part:
    """The part of a plan that goes by a name, or the only one.

    Raises
    ------
    InstanceError
        When there is no such part, or several and none is named.
    """
    names = _names_text(part.name for part in plan.parts)
    if not plan.parts or plan.cost is None:
        raise InstanceError(
            f"{instance.place}: the plan has no design (its status is {plan.status!r}), needs a"
            " plan that builds a network"
        )
    if name is None:
        if len(plan.parts) > 1:
            raise InstanceError(
                f"{instance.place}: the plan has {len(plan.parts)} parts, needs --part with one of"
                f" {names}"
            )
        return _only_part(instance, plan)
    match = next((part for part in plan.parts if part.name == name), None)
    if match is None and name in plan.couplings.shared_cores:
        raise InstanceError(
            f"--part {name}: the core joins islands but trains nothing itself, needs one of"
            f" {names}; coopt bom counts its cables, and coopt faults shows the effect of its loss"
        )
    if match is None:
        cores = both(map(repr, plan.couplings.shared_cores))
        only_faults = f"; coopt faults also takes {cores}" if cores else ""
        raise InstanceError(
            f"--part {name}: the plan has no part of this name, needs one of {names}{only_faults}"
        )
    return match if len(plan.parts) > 1 else _only_part(instance, plan)


def require_workload(plan: Plan, workload: str | None, part: Part | None = None) -> None:
    """Refuse the name of a workload that no part trains, or not the one that is given.

    Raises
    ------
    InstanceError
        With the names to choose from: of the whole plan, or of the parts that train it.
    """
    training = [
        repr(other.name)
        for other in plan.parts
        if workload in [run.name for run in other.workloads]
    ]
    if workload is not None and not training:
        names = dict.fromkeys(run.name for other in plan.parts for run in other.workloads)
        raise InstanceError(
            f"--workload {workload}: the plan has no workload of this name, needs"
            f" {alternatives(names)}"
        )
    if workload is not None and part is not None and repr(part.name) not in training:
        trained = both(run.name for run in part.workloads) or "nothing"
        raise InstanceError(
            f"--workload {workload}: {part.text} trains {trained}, needs --part"
            f" {alternatives(training)}"
        )


def _only_part(instance: Instance, plan: Plan) -> Part:
    """The only part, which the top of the plan repeats."""
    (part,) = plan.parts
    if (plan.design, plan.workloads) != (part.design, part.workloads):
        raise InstanceError(
            f"{instance.place}: design or workloads at the top of the plan differ from those of its"
            " only part, needs a plan that `coopt verify` accepts"
        )
    return part


def last_of_slot(plan: Plan, part: Part) -> Part:
    """What a part is once its network has grown."""
    return next(other for other in reversed(plan.parts) if other.slot == part.slot)


def question_of(instance: Instance, part: Part) -> Instance:
    """The question that a part answers alone: one network for its workloads, in the phase and at
    the site of the part.

    Prices are those of the bill without volume, efficiency is the least that must do, and limits,
    which hold for all parts together, are left out. A question of one network is its own.

    Raises
    ------
    InstanceError
        When the part runs other workloads than the instance asks for there.
    """
    if not instance.beyond_one_network:
        return _with_workloads(instance, part, instance.workload)
    network = network_of(part)
    instance, gpus = question_on(instance, network.hb_domain.name), network.gpus
    question = as_built(instance)
    workloads = trained_on(instance, part.phase, [run.name for run in part.workloads], gpus)
    alone = question.having(
        cluster={"gpus": (gpus,), "shares": None},
        network={"fabrics": question.network.switched, "panels": ()},
        objective=electricity_of(instance.objective, instance.site_named(part.site)),
        sharing=instance.sharing.of_one_part,
        **{"site": (), "wan": (), "phase": (), "robust": None, "limits": Limits()},
        # what interrupts one model at several sites is said of all of them together
        **({"availability": None} if instance.asks("ring") else {}),
    )
    return _with_workloads(alone, part, workloads)


def _with_workloads(question: Instance, part: Part, workloads: tuple[Workload, ...]) -> Instance:
    names = [workload.name for workload in workloads]
    if [run.name for run in part.workloads] != names:
        raise InstanceError(
            f"{question.place}: {part.text} trains"
            f" {_names_text(run.name for run in part.workloads)} in the plan, but"
            f" {_names_text(names)} in the instance, needs the plan of this instance"
        )
    return question.model_copy(update={"workload": workloads})


def _names_text(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def part_network(
    instance: Instance, plan: Plan, asked: str, part: str | None = None
) -> PartNetwork:
    """The network of the part that is named, or of the only one.

    Parameters
    ----------
    asked
        What it is wanted for, as a refusal calls it.

    Raises
    ------
    InstanceError
        When the part is not there, is joined by direct links, or has a design that the instance
        does not allow.
    """
    require_decided(instance, asked)
    chosen_part = part_named(instance, plan, part)
    if chosen_part.design is None:
        raise InstanceError(
            f"{instance.place}: {chosen_part.text} has direct links (their routes are in the plan,"
            f" their failures are not modelled), needs a plan with switches for {asked}"
        )
    question, joint = question_of(instance, chosen_part), plan.couplings.joint(chosen_part)
    lower_optic = None if joint is None else joint.below
    if joint is not None:
        question = with_core_optic(question, joint.core.optic)
    design = chosen_part.design
    links = None
    if joint is not None and plan.couplings.ring is not None:  # a border has any number of them
        links = range(joint.links.links, joint.links.links + 1)
    into_core = joint.links.cables if joint is not None else ()
    in_the_end = plan.couplings.joint(last_of_slot(plan, chosen_part))
    of_end = into_core if in_the_end is None else in_the_end.links.cables
    bay = bay_of(instance, chosen_part.slot)
    line = _line_of(plan, chosen_part)
    candidates = families_of_design(question, design, line, links, of_end, bay)
    match = next(
        (
            family
            for family, _ in candidates
            if family.core_end is None
            or (
                (family.core_cables or family.core_end.name == lower_optic)
                and cable_kinds(family.core_cables) == into_core
            )
        ),
        None,
    )
    if match is None or (joint is not None and not _is_listed(question, joint.core)):
        raise InstanceError(
            f"{instance.place}: the plan's network is not one this instance allows, needs the plan"
            " of this instance (`coopt verify` lists what differs)"
        )
    return PartNetwork(
        question=question,
        part=chosen_part,
        family=match,
        uplinks=uplinks_of(design),
        waits_s=plan.couplings.waits_s,
    )


def _is_listed(question: Instance, core: CorePlan) -> bool:
    """Whether a core has the switch of the question, and one of its optics."""
    asked = question.sharing.core
    optics = {optic.name for optic in question.network.optics}
    return asked is not None and core.switch.name == asked.switch and core.optic in optics


def family_of_plan(
    instance: Instance,
    plan: Plan,
    asked: str = "an evaluation of the network",
    part: str | None = None,
) -> tuple[Family, int]:
    """The family and the uplinks of a plan's only part, or of the one that is named.

    Parameters and errors are those of `part_network`.
    """
    network = part_network(instance, plan, asked, part)
    return network.family, network.uplinks


def uplinks_of(design: Design) -> int:
    """The uplinks of a leaf; 0 where nothing lies above the leaves."""
    return design.fabric.tier[0].uplinks_per_switch if design.fabric.tiers > 1 else 0


def standing_as(question: Instance, design: Design) -> Family | None:
    """The network that stands, where a design is that one."""
    stands = Space(instance=question).standing(design.gpus)
    is_it = stands is not None and design_of(stands, stands.uplink_choices[0]) == design
    return stands if is_it else None


def families_of_design(
    question: Instance,
    design: Design,
    line: Sequence[Design] = (),
    links: range | None = None,
    into_core: Sequence[TierCables] = (),
    bay: Bay = SINGLE_BAY,
) -> Iterator[tuple[Family, int]]:
    """Families and uplinks of a question that are written out as a design, of a network that grows
    as those of its `line`, phase by phase; `links` may lead into the border of a site, and are
    `into_core` by their lengths from its bay.
    """
    if (stands := standing_as(question, design)) is not None:
        yield stands, stands.uplink_choices[0]
        return
    line = line or (design,)
    if any(len(each.fabric.tier) != each.fabric.tiers for each in line):
        return
    pinned = _pinned(question, line[-1])
    families_listed = families(pinned, grow=True, links=links, unlaid=True) if pinned else ()
    for listed in families_listed:
        # What stands in an earlier phase follows from what it grows into, and so is compared in
        # that form.
        stages = _stages(question, listed, line, into_core, bay)
        written = [
            _written_as(question, stages[number], line[number])
            for number in (len(line) - 1, line.index(design))
            if stages
        ]
        if written and written[0] is not None and written[1] is not None:
            yield written[1], uplinks_of(design)


def _stages(
    question: Instance,
    listed: Family,
    line: Sequence[Design],
    into_core: Sequence[TierCables],
    bay: Bay,
) -> Sequence[Family] | None:
    """What a family has been before it is the last of some designs, and itself, with its cables as
    these have them; None where it cannot have grown so, or has no such cables.
    """
    goal, counts = line[-1], [design.gpus for design in line]
    earlier = [gpus for gpus in counts if gpus != goal.gpus]
    if any(gpus % listed.active for gpus in earlier) or not grows(listed, counts):
        return None
    ratio, uplinks = question.network.largest_ratio, uplinks_of(goal)
    stages = [
        listed
        if gpus == goal.gpus  # also on domains that are not filled alike, which never grow
        else grown(listed, gpus, ratio, links_to_core(question, gpus))
        for gpus in counts
    ]
    if not listed.unlaid:
        return stages
    fits = listed.tiers == goal.fabric.tiers and uplinks in listed.uplink_choices
    return laid_as(question, stages, goal, into_core, bay) if fits else None


def _line_of(plan: Plan, part: Part) -> list[Design]:
    """What a network that grows is in each phase, in the order of these; itself where it does not
    grow.
    """
    line = [
        other_part
        for other_part in plan.parts
        if other_part is part or (part.phase is not None and other_part.slot == part.slot)
    ]
    line.sort(key=lambda other_part: other_part.phase or 0.0)
    return [other_part.design for other_part in line if other_part.design is not None]


def _pinned(question: Instance, design: Design) -> Instance | None:
    """The question with the parts of a design alone; None where it does not list one."""
    network, fabric = question.network, design.fabric
    hb_domains = tuple(hb for hb in network.hb_domains if hb.name == design.hb_domain.name)
    nics = tuple(nic for nic in network.nics if nic.name == fabric.nic.name)
    names = {switch.name for switch in network.switches}
    is_listed = fabric.kind in network.fabrics and fabric.nic.per_gpu in network.nics_per_gpu
    if not (hb_domains and nics and names.issuperset(fabric.switch_names) and is_listed):
        return None
    # The switch of the core stays listed, since links into it run at its rate.
    core = core_switch(question)
    kept = {*fabric.switch_names, *([core.name] if core else [])}
    return question.having(
        network={
            "hb_domains": hb_domains[:1],
            "nics": nics[:1],
            "switches": tuple(switch for switch in network.switches if switch.name in kept),
            "fabrics": (fabric.kind,),
            "nics_per_gpu": (fabric.nic.per_gpu,),
        },
        cluster={"gpus": (design.gpus,), "idle_gpus": False},
    )


def _written_as(question: Instance, family: Family, design: Design) -> Family | None:
    """The family with the optics and spare domains of a design, where it is written out as that."""
    optic_of = {optic.name: optic for optic in question.network.optics}
    names = [tier.ends for tier in design.fabric.tier]
    if (
        family.tiers != design.fabric.tiers
        or family.gpus != design.gpus
        or not set(chain(*names)) <= set(optic_of)
    ):
        return None
    optics = tuple(
        LinkEnds(optic_of[lower_name], optic_of[upper_name]) for lower_name, upper_name in names
    )
    if family.cables:  # which are as the hall has them
        optics = family.optics
    candidate = replace(family, optics=optics, spare_domains=design.spare_domains)
    uplinks, fit = (
        uplinks_of(design),
        all(map(all, candidate.per_module)),
    )  # at the rate of its planes
    if question.network.keeps_cages:  # by which switches have their ports
        fit = fit and candidate.per_module == family.per_module
    if not fit or uplinks not in candidate.uplink_choices:
        return None
    return candidate if design_of(candidate, uplinks) == design else None
