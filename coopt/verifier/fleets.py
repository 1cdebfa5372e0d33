"""Check what a plan builds: the network of every island in every phase, then what couples them
(docs/fleets.md).

One network that all workloads have in turn is an island of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from coopt.instance.couplings import Site, limit_check
from coopt.instance.hardware import Optic
from coopt.instance.question import BILLED, ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives, both, counted
from coopt.plan.couplings import Part, SitePower, one_network
from coopt.plan.parts import Design
from coopt.plan.schema import Alternative, Cliff, NextBest, ObjectiveClaim, Plan
from coopt.verifier.bounds.assumptions import (
    check_assumptions,
    faults_of_nearest,
    faults_of_next_best,
)
from coopt.verifier.bounds.designs import check_beside, check_order
from coopt.verifier.bounds.divisibility import (
    LEAST_SAVED,
    bounded_as,
    check_better_numbers,
    share_taken,
)
from coopt.verifier.bounds.ties import check_ties
from coopt.verifier.bounds.timed import check_timed_value
from coopt.verifier.checks.claims import (
    bought_at_once,
    check_form,
    check_gap,
    grows_alone,
    island_places,
)
from coopt.verifier.checks.verdict import Ledger, UnsoundError, agree
from coopt.verifier.couplings.core import (
    ClaimedEnd,
    check_core_end,
    check_cores,
    core_end_of,
    core_ends,
    joined_part,
    joining_nic,
    question_as_built,
)
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    StandingIsland,
    core_joints,
    products_in_use,
    standing_units,
    trained_gpus,
)
from coopt.verifier.couplings.fleet_paths import never_falls
from coopt.verifier.couplings.growth import is_drawn, uplinks_of
from coopt.verifier.couplings.losses import check_survival
from coopt.verifier.couplings.myopic import check_myopic
from coopt.verifier.couplings.orders import check_orders
from coopt.verifier.couplings.prices import (
    check_days_in_turn,
    check_gpus,
    check_limit,
    check_products_in_use,
    question_of_island,
)
from coopt.verifier.couplings.scenarios import certain_question, check_fleet_value
from coopt.verifier.couplings.sites import check_fed_sites, objective_at
from coopt.verifier.parts.bills import bill, bill_total, counting, owned_units
from coopt.verifier.parts.design_checks import check_attachment, check_design, check_spare_domains
from coopt.verifier.parts.layouts import cages, uplink_menus
from coopt.verifier.parts.network_checks import check_network
from coopt.verifier.parts.part_checks import (
    CountedPart,
    check_bill,
    check_interruptions,
    check_part,
    check_part_runs,
)
from coopt.verifier.parts.stages import (
    GrowthStage,
    graph_of_stage,
    grown_from,
    standing_by,
)
from coopt.verifier.parts.workload_checks import check_mappings, check_run, match_workloads
from coopt.verifier.simulation.interruptions import check_promises


def check_fleet(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check parts and couplings, what planning phase by phase ends in, and runners-up."""
    last_parts = list[CountedPart]()
    with suppress(UnsoundError):
        last_parts += _check_built(ledger, instance, plan)
    if grows_alone(instance, plan.objective.kind):
        check_myopic(ledger, instance, plan)
    check_assumptions(ledger, certain_question(instance), plan, last_parts)
    check_ties(ledger, certain_question(instance), plan, last_parts)
    if instance.beyond_one_network:
        return
    for part in last_parts:
        check_better_numbers(ledger, instance, plan, part)
    bought = Counter(cliff.buys for cliff in plan.cliffs)
    if twice := tuple(sorted(buys for buys, count in bought.items() if count > 1)):
        fault = f"The plan has several designs that save {both(twice)}, but may have one of each."
        ledger.holds("cliff", False, twice, (), fault)
    if len(plan.workloads) == len(instance.workload):  # else the plan is rejected for that
        for cliff in plan.cliffs:
            _check_cliff(ledger, instance, plan, cliff)
    if not check_beside(ledger, instance, plan) or not plan.alternatives_stop:
        return
    for rank, alternative in enumerate(plan.alternatives, start=1):
        claim, beside = as_plan(plan, alternative, alternative.objective), Ledger()
        check_gap(beside, claim)
        last_parts += _built_beside(ledger, instance, claim, f"Runner-up {rank}", beside)
    ledger.turn_to()
    # The order counts only among designs that can be built.
    if len(last_parts) == 1 + len(plan.alternatives):
        check_order(ledger, instance, plan, [(part.family, part.ports) for part in last_parts])


def as_plan(plan: Plan, other: Alternative | Cliff | NextBest, claim: ObjectiveClaim) -> Plan:
    """What stands beside a plan in its place, with such a claim on its value."""
    if isinstance(other, NextBest) and other.parts:
        parts, ties = other.parts, other.couplings
    else:
        one = one_network(other.cost, other.workloads, design=other.design)
        parts, ties = (one,), plan.couplings
    only = parts[0] if len(parts) == 1 else None
    return plan.model_copy(
        update={
            "objective": claim,
            "cost": other.cost,
            "parts": parts,
            "couplings": ties,
            "design": None if only is None else only.design,
            "workloads": () if only is None else only.workloads,
        }
    )


def _as_valued(plan: Plan, other: Cliff | NextBest, kind: ObjectiveKind) -> Plan:
    """The same of what has a value and no bound."""
    return as_plan(plan, other, ObjectiveClaim(kind=kind, value=other.value, bound=None, gap=None))


def _built_beside(
    ledger: Ledger,
    question: Instance,
    claim: Plan,
    subject: str,
    beside: Ledger,
    spared: Container[str] = (),
) -> list[CountedPart]:
    """Check parts and couplings of what stands beside a plan, but for some names of checks; the
    networks of the last phase.
    """
    last_parts = list[CountedPart]()
    with suppress(UnsoundError):
        last_parts += _check_built(beside, question, claim)
    ledger.turn_to(subject, aside=True)
    ledger.take(check for check in beside.checks if check.name not in spared)
    return last_parts


def _check_cliff(ledger: Ledger, instance: Instance, plan: Plan, cliff: Cliff) -> None:
    """Check that a design near the answer can be built and trains as it says, and that what it
    saves is clearly more than what it takes.
    """
    assert plan.cost is not None
    kind, question = BILLED[plan.objective.kind], bounded_as(instance, plan)
    saved = "power" if kind == "power" else "cost"
    title = f"The design for a little more {saved if cliff.buys == 'time' else 'time'}"
    # more time than bounds allow is what may be given
    more_time = {"deadline", limit_check("train_days_total")}
    _built_beside(ledger, question, _as_valued(plan, cliff, kind), title, Ledger(), more_time)
    if len(cliff.workloads) != len(instance.workload):  # which the checks taken reject
        ledger.turn_to()
        return
    taken = share_taken(question, plan.workloads)
    pace, own = share_taken(question, cliff.workloads) / taken, max(taken, 1.0) / taken
    cost, longer = cliff.value / plan.cost.of(kind) - 1.0, pace / own - 1.0
    gained, given = (1.0 - pace, cost) if cliff.buys == "time" else (-cost, longer)
    need = (
        f"take at least {LEAST_SAVED:.0%} less time than the plan, and its {saved} may be at most"
        f" {LEAST_SAVED:.0%} higher"
        if cliff.buys == "time"
        else f"have at least {LEAST_SAVED:.0%} less {saved} than the plan, and to take at most"
        f" {LEAST_SAVED:.0%} longer than the time bound or, where there is none, than the plan"
    )
    ledger.holds(
        "cliff",
        agree(cliff.pace, pace) and gained >= LEAST_SAVED and given <= LEAST_SAVED,
        cliff.pace,
        pace,
        f"The design takes {pace:.9g} times as long as the plan (stated: {cliff.pace:.9g}) at"
        f" {1 + cost:.6g} times the {saved}. It has to {need}.",
    )
    ledger.turn_to()


def check_next_best(ledger: Ledger, instance: Instance, question: Instance, plan: Plan) -> None:
    """Check that the next best choice can be built and is in time, and which price turns it.

    Parameters
    ----------
    question
        That of its choice, where the instance leaves GPUs open.
    """
    claim = plan.next_best
    assert claim is not None
    beside, several = Ledger(), bool(question.several_networks)
    given = "only parts" if several else "a design and no parts"
    if several != bool(claim.parts) or several == (claim.design is not None):
        ledger.holds("next-best", False, None, None, f"The next best choice needs {given}.")
        return
    as_valued = _as_valued(plan, claim, plan.objective.kind)
    if several:
        check_form(beside, question, as_valued)
    if all(check.ok for check in beside.checks):
        _built_beside(ledger, question, as_valued, "The next best choice", beside)
    else:
        ledger.turn_to("The next best choice", aside=True)
        ledger.take(beside.checks)
    find_faults = faults_of_nearest if several else faults_of_next_best
    faults = list(find_faults(instance, plan, claim))
    ledger.holds("next-best", not faults, claim.product, None, f"{'; '.join(faults)}.")
    ledger.turn_to()


def _check_built(ledger: Ledger, instance: Instance, plan: Plan) -> list[CountedPart]:
    """Check parts and couplings; the networks of the last phase."""
    assert plan.cost is not None
    # at the terms at which the plan is billed, with the optic that its cores have
    kind = BILLED[plan.objective.kind]
    fleet = Fleet(question_as_built(certain_question(instance), kind, plan), kind)
    islands, last_parts = map(list, zip(*_check_islands(ledger, fleet, plan), strict=True))
    check_survival(ledger, fleet, plan, islands)
    if fleet.question.sharing.core is not None:
        joints = core_joints(fleet, islands).items()
        places = {(fleet.year(t), site): joined for (t, site), joined in joints}
        check_cores(ledger, fleet.question, plan, places)
    sums = check_orders(ledger, fleet, islands, plan.couplings, plan.cost)
    _check_limits(ledger, fleet, islands, plan.couplings.sites, sums.capex_usd)
    if len(plan.parts) == 1:
        check_days_in_turn(ledger, fleet.question, plan.parts[0].workloads)
    if plan.objective.kind == fleet.kind:
        check_fleet_value(ledger, instance, plan, fleet, islands, sums)
    else:
        check_timed_value(ledger, instance, plan, last_parts[0], sums)
    return last_parts


def _check_islands(
    ledger: Ledger, fleet: Fleet, plan: Plan
) -> list[tuple[FleetIsland, CountedPart]]:
    """Check every part, island by island; each island, and how its last network was counted.

    Raises
    ------
    UnsoundError
        Where one is so wrong that no bill can be made.
    """
    by_name = {part.name: part for part in plan.parts}
    places = list(island_places(fleet.question))
    fleet.left = owned_units(fleet.question)
    if set(by_name) != {name for _, _, name in places} or len(by_name) != len(plan.parts):
        raise UnsoundError
    years = [fleet.year(t) for t in fleet.phases]
    checked = []
    for island in fleet.islands:
        parts = {years.index(year): by_name[name] for of, year, name in places if of == island}
        with suppress(UnsoundError):
            checked.append(_check_island(ledger, fleet, island, parts, core_end_of(plan, island)))
        ledger.turn_to()
    if len(checked) < len(fleet.islands):
        raise UnsoundError
    return checked


def _check_island(
    ledger: Ledger, fleet: Fleet, name: str, parts: dict[int, Part], core_end: ClaimedEnd
) -> tuple[FleetIsland, CountedPart]:
    """Check place, network, bill and training of an island, phase by phase; its last phase says how
    it may grow.
    """
    sites_by_name = {site.name: site for site in fleet.sites if site is not None}
    claimed_sites = tuple(dict.fromkeys(part.site for part in parts.values()))
    fine = len(claimed_sites) == 1 and claimed_sites[0] in (sites_by_name or (None,))
    named = f"Island of {name!r}" if fleet.question.sharing.mode == "partition" else "The network"
    ledger.turn_to("" if fleet.is_one_part else named)
    years, own_years = tuple(part.phase for part in parts.values()), tuple(map(fleet.year, parts))
    ledger.require(
        "place",
        fine and years == own_years,
        tuple(map(str, claimed_sites)),
        tuple(sites_by_name),
        f"This network is at {both(str(site or 'no site') for site in claimed_sites)}"
        f" {_phases_text(years)}, but has to stay at {alternatives(sites_by_name) or 'no site'}"
        f" {_phases_text(own_years)}.",
    )
    site = None if claimed_sites[0] is None else sites_by_name[claimed_sites[0]]
    # The last phase comes first: what stands earlier is that network with fewer of its leaves.
    end = _check_end(ledger, fleet, name, parts, core_end)
    stages = _check_growth(ledger, fleet, name, parts, end)
    phases: list[StandingIsland | None] = [None] * len(fleet.phases)
    for t, part in parts.items():
        _turn_to(ledger, fleet, part)
        phases[t] = _check_standing(ledger, fleet, site, t, (name, part), *stages[t])
    return FleetIsland(name, site, tuple(phases)), end.part


def _phases_text(years: Iterable[float | None]) -> str:
    texts = [f"{year:.10g}" for year in years if year is not None]
    return f"in the phase{'s' * (len(texts) > 1)} {both(texts)}" if texts else "without phases"


def _turn_to(ledger: Ledger, fleet: Fleet, part: Part) -> None:
    """Say that checks to come are of a part, where there are several."""
    ledger.turn_to(part="" if fleet.is_one_part else part.name)


class End(NamedTuple):
    """The last phase in which an island trains, its network there, and how that was counted."""

    phase: int
    stage: GrowthStage
    part: CountedPart


def _check_end(
    ledger: Ledger, fleet: Fleet, name: str, parts: dict[int, Part], core_end: ClaimedEnd
) -> End:
    """Check design, network and training of the last phase in which an island trains."""
    t = fleet.training_phases(name)[-1]
    _turn_to(ledger, fleet, parts[t])
    design = _sized_design(ledger, fleet, t, name, parts[t])
    own = fleet.on(design.hb_domain.name)
    question = question_of_island(own.question, own.workloads_in(t, name), design.gpus)
    domains, gpu = check_design(ledger, question, design), question.cluster.gpu
    optic_below, family = check_core_end(ledger, fleet.question, fleet.kind, domains, core_end.name)
    joins = core_ends(fleet.question, domains, optic_below, name)
    pairs = match_workloads(ledger, question.workload, parts[t].workloads)
    designs = [other.design for other in parts.values() if other.design is not None]
    earlier = sorted({other.gpus for other in designs} - {design.gpus})
    part = check_part(ledger, question, family, design, pairs, fleet.kind, earlier)
    part = joined_part(ledger, part, joins, fleet.question, fleet.kind, core_end, earlier)
    check_part_runs(ledger, part, gpu, availability=question.availability)
    if question.availability is not None:
        check_promises(ledger, question.availability, part, gpu)
    return End(t, _last_network(fleet, part, optic_below), part)


def _last_network(fleet: Fleet, part: CountedPart, core_end: Optic | None) -> GrowthStage:
    """The network of a part as the end of growth."""
    family, ports = part.family, part.ports
    uplinks: Sequence[int] = (ports.up,)
    if ports.tiers > 1 and len(fleet.phases) > 1:
        carried = tuple(map(family.network.carried, part.optics))
        menus = uplink_menus(family, ports.down, fleet.question.network, cages(carried)[0])
        # Whole bundles or modules above leaves do not rise with every uplink: only those of the
        # plan count.
        if ports.pod_each == 1 and all(max(links) == 1 for links in carried[1:]):
            uplinks = next(menu for _, menu in menus if ports.up in menu)
    return part.stage(uplinks, core_end)


def _sized_design(ledger: Ledger, fleet: Fleet, t: int, name: str, part: Part) -> Design:
    """The design of a part that trains, of a size that its phase allows."""
    if part.design is None:
        raise UnsoundError
    gpus, gpus_there = part.design.gpus, fleet.gpus(t)
    in_turn = fleet.question.sharing.mode == "time"
    sizes = fleet.questions[t].cluster.gpus if in_turn else fleet.workloads_in(t, name)[0].gpus
    if fleet.question.cluster.idle_gpus is not False:
        sizes = None  # which of them may be idle is checked with the domains
    sizes_text = f"1 to {gpus_there}" if sizes is None else ", ".join(map(str, sizes))
    ledger.require(
        "island-size",
        1 <= gpus <= gpus_there and (sizes is None or gpus in sizes),
        gpus,
        sizes_text,
        f"This network trains on {counted(gpus, 'GPU')}; allowed: {sizes_text}.",
    )
    return part.design


def _check_growth(
    ledger: Ledger, fleet: Fleet, name: str, parts: dict[int, Part], end: End
) -> dict[int, tuple[GrowthStage, int]]:
    """Check that one network of docs/phased.md stands in every phase as its part says; stage and
    uplinks of each.
    """
    if len(parts) == 1:
        return {end.phase: (end.stage, end.part.ports.up)}
    stages: dict[int, tuple[GrowthStage, int]] = {}
    for t, part in parts.items():
        _turn_to(ledger, fleet, part)
        stage_and_uplinks = before = stages.get(t - 1)
        # What stands stays in a phase in which its workload does not train.
        if fleet.workloads_in(t, name):
            design = _sized_design(ledger, fleet, t, name, part)
            stage_and_uplinks = _stage_of(fleet, end, t, design)
            is_grown = stage_and_uplinks is not None and _grows(before, stage_and_uplinks)
            is_grown = is_grown and _same_attachment(design, parts[end.phase].design)
            fault = (
                "The network of this phase is no stage in the growth to that of the last phase"
                " (docs/phased.md)."
            )
        else:
            is_grown = before is not None and part.design == parts[t - 1].design
            fault = "Where nothing trains, a network has to stay as in the phase before."
        needed = "one network that can grow to that of the last phase"
        ledger.require("growth", is_grown, part.name, needed, fault)
        assert stage_and_uplinks is not None
        stages[t] = stage_and_uplinks
    return stages


def _stage_of(fleet: Fleet, end: End, t: int, design: Design) -> tuple[GrowthStage, int] | None:
    """What a network has to be in a phase with so many GPUs, and its uplinks; None where it is
    not.
    """
    stage = grown_from(fleet.question, end.stage.by_tier, design.gpus)
    if stage is None:
        return None
    stage = standing_by(end.part.with_cables(stage), design.spare_domains)
    uplinks = uplinks_of(design)
    return (stage, uplinks) if is_drawn(fleet.question, stage, uplinks, design) else None


def _grows(earlier: tuple[GrowthStage, int] | None, later: tuple[GrowthStage, int]) -> bool:
    """Whether nothing falls from a phase to the next."""
    if earlier is None:
        return True
    (earlier_stage, earlier_uplinks), (stage, uplinks) = earlier, later
    rises = never_falls([earlier_stage, stage]) and (
        earlier_uplinks <= uplinks or stage.ports.tiers < 2
    )
    return rises and earlier_stage.family.spares <= stage.family.spares


def _same_attachment(design: Design, last_design: Design | None) -> bool:
    """Whether fabric, NIC and switch are those of the last phase; without a network no NIC has
    planes or is shared.
    """
    assert last_design is not None
    fabric, last_fabric = design.fabric, last_design.fabric
    # An earlier phase may have been a single domain, of whose NICs only the product is told.
    nic = (
        last_fabric.nic
        if fabric.tiers
        else last_fabric.nic.model_copy(update={"planes": 1, "shared_by": 1})
    )
    return (fabric.kind, fabric.nic, fabric.switch) == (last_fabric.kind, nic, last_fabric.switch)


def _check_standing(
    ledger: Ledger,
    fleet: Fleet,
    site: Site | None,
    t: int,
    named_part: tuple[str, Part],
    stage: GrowthStage,
    uplinks: int,
) -> StandingIsland:
    """Check bill and training of a part, by its island, whose network is sound."""
    name, part = named_part
    assert part.design is not None
    _check_training(ledger, fleet, t, name, part, stage, uplinks)
    joint = fleet.joint(stage, joining_nic(ledger, fleet.question, part.design))
    # the bill of a network that is bought alone and at once is that of the plan
    if not (fleet.is_one_part and bought_at_once(fleet.question)):
        core_lines = counting(fleet.question, joint.lines() if joint else ())
        network = stage.family, stage.levels(uplinks), stage.optics
        network_lines = bill(fleet.on(stage.family.hb.name).question, *network, fleet.left)
        lines = [*network_lines, *core_lines]
        sums = bill_total(lines, objective_at(fleet.question, site))
        check_bill(ledger, lines, sums, part.cost)
    return StandingIsland(stage, uplinks, joint)


def _check_training(
    ledger: Ledger, fleet: Fleet, t: int, name: str, part: Part, stage: GrowthStage, uplinks: int
) -> None:
    """Check graph and training of a part of an island; those of the last phase that trains have
    been checked before.
    """
    workloads, failures = fleet.workloads_in(t, name), fleet.question.availability
    if t == fleet.training_phases(name)[-1]:
        return
    assert part.design is not None
    pairs = match_workloads(ledger, workloads, part.workloads)
    if not workloads:
        return
    check_attachment(ledger, fleet.question, part.design)
    check_spare_domains(ledger, fleet.question, part.design)
    runs = check_mappings(ledger, pairs, stage.family)
    # One tier keeps switches and ports for all domains to come, which an early phase of its own
    # would not have.
    if stage.ports.tiers != 1:
        wiring = graph_of_stage(stage, uplinks) if stage.ports.tiers > 1 else None
        ports, fabric = stage.with_up(uplinks), part.design.fabric
        optics = stage.by_tier.optics
        check_network(ledger, stage.family, ports, fabric, runs, wiring, optics)
    for run in runs:
        gpu, reach = fleet.question.cluster.gpu, stage.reach(uplinks)
        goodput = check_interruptions(
            ledger, run, failures, stage.family, reach, stage.by_tier.levels(uplinks), gpu
        )
        check_run(ledger, run, stage.family, reach, gpu, goodput=goodput)


def _check_limits(
    ledger: Ledger,
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    fed: Sequence[SitePower],
    capex_usd: float,
) -> None:
    """Check everything that is limited, phase by phase."""
    units_by_place = standing_units(fleet, islands)
    for t in fleet.phases:
        ledger.turn_to(fleet.title(t))
        states = [state for island in islands if (state := island.phases[t]) is not None]
        check_gpus(ledger, trained_gpus(islands, t), fleet.gpus(t))
        for cap, _ in fleet.caps:
            check_limit(ledger, fleet.question, cap.key, fleet.sum_of_cap(cap, units_by_place, t))
        check_limit(ledger, fleet.question, "racks", sum(state.racks for state in states))
    ledger.turn_to()
    check_limit(ledger, fleet.question, "capex_usd", capex_usd)
    check_products_in_use(ledger, fleet.question, products_in_use(fleet, islands))
    powers = [
        (fleet.year(t), site, drawn_w) for t, site, drawn_w in fleet.facility_powers(units_by_place)
    ]
    if powers:
        check_fed_sites(ledger, powers, fed)
