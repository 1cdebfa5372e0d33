"""Check plans of one cluster, of islands that divide it, and of several sites.

Each island and each site is checked as a design of its own, then what couples them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coopt.instance.couplings import Site
from coopt.instance.question import Limits
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.schema import Cost, Design, Part, Plan
from coopt.plan.schema_one import SitePlan, Together
from coopt.verifier.bounds.designs import check_beside, check_order, check_rivals
from coopt.verifier.bounds.sites import SitesBound
from coopt.verifier.bounds.timed import billed, check_timed_value
from coopt.verifier.checks.claims import check_gap, note_source, note_undecided
from coopt.verifier.checks.verdict import ROUNDING, SOLVERS_WORD, STRICT, Ledger
from coopt.verifier.couplings.core import Joint, check_core, joining_nic, joint_of, question_as_built
from coopt.verifier.couplings.fleet_paths import TooManyError
from coopt.verifier.couplings.outlooks import certain_question, check_robustness
from coopt.verifier.couplings.prices import (
    UnitCounts,
    check_gpus,
    check_limits,
    check_products_in_use,
    check_volume_bill,
    counts_of_island,
    counts_together,
    question_of_island,
)
from coopt.verifier.couplings.sites import (
    channels_w,
    check_exchanges,
    check_links,
    check_site_power,
    objective_at,
    question_of_site,
)
from coopt.verifier.parts.bills import (
    CountedItem,
    bill,
    bill_total,
    check_bill,
    check_objective,
    electricity_usd,
    owned_usd,
)
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.direct_links import check_direct
from coopt.verifier.parts.part_checks import CountedPart, check_part, check_part_bill, check_part_runs
from coopt.verifier.parts.workload_checks import match_workloads
from coopt.verifier.simulation.interruptions import check_promises

MOST_NETWORKS = 5_000
"""Networks at sites that are listed or timed to confirm a bound."""


def check_shared(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster that all workloads have in turn, and its runners-up."""
    if plan.design is not None and plan.cost is not None:
        part = _check_cluster(ledger, instance, plan, plan.design, plan.cost)
        _check_runners_up(ledger, instance, plan, part)


def check_on_links(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster with direct links or with switches, and what it says of the other."""
    if plan.rivals is not None:
        check_rivals(ledger, instance, plan, plan.rivals)
    if plan.direct is not None:
        sums = check_direct(ledger, instance, plan, plan.direct)
        if sums is not None:
            check_limits(ledger, instance, sums, plan.direct.racks)
            check_objective(ledger, plan, sums)
    elif plan.design is not None and plan.cost is not None:
        _check_cluster(ledger, instance, plan, plan.design, plan.cost)


def check_robust(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check the plan as an answer to the question without intervals, then its losses and its values at other prices."""
    robust = instance.robust
    if robust is not None and plan.design is not None and plan.cost is not None and plan.robust is not None:
        at_worst_prices = robust.aim == "worst-case"
        part = _check_cluster(
            ledger, certain_question(instance), plan, plan.design, plan.cost, objective=at_worst_prices
        )
        if part is not None:
            check_robustness(ledger, instance, plan, part)


def _check_cluster(
    ledger: Ledger, instance: Instance, plan: Plan, design: Design, cost: Cost, *, objective: bool = True
) -> CountedPart | None:
    """Check design, network, cost and workloads; the part they make, None where no network can be built."""
    family = check_design(ledger, instance, design)
    workloads = match_workloads(ledger, instance.workload, plan.workloads)
    if family is None:
        return None
    kind = plan.objective.kind
    part = check_part(ledger, instance, family, design, workloads, billed(kind))
    if part is None:
        return None
    sums = check_part_bill(ledger, instance, part, cost)
    if sums is not None:
        check_limits(ledger, instance, sums, design.racks)
    if sums is not None and kind != billed(kind):
        check_timed_value(ledger, instance, plan, part, sums)
    elif sums is not None and objective:
        check_objective(ledger, plan, sums)
    check_part_runs(ledger, part, instance.cluster.gpu, availability=instance.availability)
    if instance.availability is not None:
        check_promises(ledger, instance.availability, part, instance.cluster.gpu)
    return part


def _check_runners_up(ledger: Ledger, instance: Instance, plan: Plan, first: CountedPart | None) -> None:
    """Check each runner-up as the plan itself, and then that they are the next best designs."""
    if not check_beside(ledger, instance, plan) or not plan.alternatives_stop:
        return
    listed = [first]
    for rank, alternative in enumerate(plan.alternatives, start=1):
        ledger.turn_to(f"Runner-up {rank}", aside=True)
        sections = {
            "objective": alternative.objective,
            "design": alternative.design,
            "cost": alternative.cost,
            "workloads": alternative.workloads,
        }
        claim = plan.model_copy(update=sections)
        check_gap(ledger, claim)
        listed.append(_check_cluster(ledger, instance, claim, alternative.design, alternative.cost))
    ledger.turn_to()
    parts = [part for part in listed if part is not None]
    if len(parts) == len(listed):
        check_order(ledger, instance, plan, [(part.family, part.ports) for part in parts])


class BuiltIsland(NamedTuple):
    """An island as derived from the plan: what it takes, its racks, and its links into a core."""

    units: UnitCounts
    racks: int | None
    joint: Joint | None


def check_partition(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check islands, bill and couplings."""
    if plan.cost is not None and plan.parts:
        islands = _islands(ledger, question_as_built(instance, plan.objective.kind, plan), plan)
        if islands is not None:
            check_core(ledger, instance, plan, [island.joint for island in islands])
            units = [island.units for island in islands]
            sums = check_volume_bill(ledger, instance, units, plan.cost)
            counts, racks = counts_together(instance, units), [island.racks for island in islands]
            check_gpus(ledger, instance, counts.active)
            filled = None if None in racks else sum(count or 0 for count in racks)
            check_limits(ledger, instance, sums, filled, counts)
            check_products_in_use(ledger, instance, counts.products)
            check_objective(ledger, plan, sums)


def _islands(ledger: Ledger, instance: Instance, plan: Plan) -> list[BuiltIsland] | None:
    """Check each island; None where no bill can be made for one of them."""
    expected = tuple(workload.name for workload in instance.workload)
    names = tuple(part.name for part in plan.parts)
    why = f"The instance has workloads {', '.join(expected)}, the plan islands of {', '.join(names)}."
    if not ledger.same("islands", names, expected, why):
        return None
    islands = []
    for workload, part in zip(instance.workload, plan.parts, strict=True):
        ledger.turn_to(f"Island of {workload.name!r}")
        if part.design is not None and match_workloads(ledger, (workload,), part.workloads):
            fits = _check_size(ledger, instance, workload, part.design.gpus)
            question = question_of_island(instance, (workload,), part.design.gpus)
            islands.append(_island(ledger, question, plan.objective.kind, part, part.design) if fits else None)
        else:
            islands.append(None)
    ledger.turn_to()
    sound_islands = [built_island for built_island in islands if built_island is not None]
    return sound_islands if len(sound_islands) == len(islands) else None


def _check_size(ledger: Ledger, instance: Instance, workload: Workload, gpus: int) -> bool:
    most, sizes = instance.cluster.most_gpus, workload.gpus
    fits = 1 <= gpus <= most and (sizes is None or gpus in sizes)
    allowed = f"1 to {most}" if sizes is None else ", ".join(map(str, sizes))
    why = f"It trains on {gpus} GPUs, sizes allowed are {allowed}."
    return ledger.holds("island-size", fits, gpus, allowed, why)


def _island(ledger: Ledger, instance: Instance, kind: ObjectiveKind, claim: Part, design: Design) -> BuiltIsland | None:
    family, runs = check_design(ledger, instance, design), zip(instance.workload, claim.workloads, strict=True)
    part = check_part(ledger, instance, family, design, runs, kind) if family else None
    if part is None:
        return None
    check_part_runs(ledger, part, instance.cluster.gpu)
    nic = joining_nic(ledger, instance, design)
    if part.optics is None or nic is None:
        return None
    joint = joint_of(instance, kind, part.family, part.ports, nic)
    core_lines = [] if joint is None else [line for line in joint.lines() if line.kind in instance.objective.include]
    lines = [*bill(instance, part.family, part.levels, part.optics), *core_lines]
    sums = bill_total(lines, instance.objective)
    why = f"It draws {sums.power_w:,.2f} W, the plan says {claim.power_w:,.2f} W."
    ledger.close("island-power", claim.power_w, sums.power_w, why)
    if claim.cost is not None:  # plans of schema 1 have no bills of islands
        check_bill(ledger, lines, sums, claim.cost)
    return BuiltIsland(counts_of_island(part.family, part.levels, part.optics, joint), design.racks, joint)


class BuiltSite(NamedTuple):
    """A site that could be built: lines of its bill, power (W), racks."""

    site: Site
    lines: list[CountedItem]
    power_w: float
    racks: int


def check_sites(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check shares, links, exchanges, every site, and the bill of everything."""
    together = plan.together
    if together is None:
        return
    sites = _sites(ledger, instance, together)
    links = None if sites is None else check_links(ledger, instance, sites, together)
    if sites is None or links is None:
        return
    waits_s = check_exchanges(ledger, instance, together, links)
    built_sites = []
    for site, claim in zip(sites, together.sites, strict=True):
        ledger.turn_to(f"Site {site.name!r}")
        built_site = _site(ledger, instance, plan, site, claim, waits_s)
        if built_site is not None:
            built_sites.append(built_site)
            check_site_power(ledger, instance, together, site, built_site.power_w, claim)
    ledger.turn_to()
    if len(built_sites) == len(sites) and plan.cost is not None:
        _whole(ledger, instance, plan, together, built_sites)


def check_sites_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility by every ring, slowest rate and division into shares, where networks are few.

    Limits of all sites together are not counted: where there are some, what is found below a bound may break them and
    refutes nothing. It takes longest, and is left out where something else is wrong.
    """
    bound, kind = plan.objective.bound, plan.objective.kind
    if not all(check.ok for check in ledger.checks) or (plan.status != "infeasible" and bound is None):
        return
    ceiling = math.inf if bound is None else bound
    try:
        near = SitesBound(instance, kind, ceiling, most=MOST_NETWORKS).least
        found = None
        if near is not None and instance.limits == Limits():
            found = SitesBound(instance, kind, ceiling, STRICT, MOST_NETWORKS).least
    except TooManyError:
        note_source(ledger, plan, f"too many networks at sites to go through: it rests on {SOLVERS_WORD}")
        return
    if near is None or found is not None:
        note_source(ledger, plan, "every ring, slowest rate and division into shares was gone through")
    elif instance.limits == Limits():
        note_undecided(ledger, plan, f"sites worth {float(near):,.10g}", float(near))
    else:
        text = f"sites worth {float(near):,.10g} may keep the limits of all sites: it rests on {SOLVERS_WORD}"
        note_source(ledger, plan, text, float(near))
    name, claimed = ("infeasible", "no ring of sites is feasible") if bound is None else ("bound", bound)
    value = "nothing feasible is worth less" if found is None else float(found)
    why = f"Sites that keep every limit are worth {value}, the plan says {claimed}."
    ledger.holds(name, found is None, claimed, value, why, ROUNDING)


def _sites(ledger: Ledger, instance: Instance, together: Together) -> list[Site] | None:
    """The sites of the instance that the plan names; each once, with all shares between them."""
    sites_by_name = {site.name: site for site in instance.site}
    names = tuple(claim.name for claim in together.sites)
    holds = bool(names) and len(set(names)) == len(names) and set(names) <= set(sites_by_name)
    why = f"The plan builds at {', '.join(names) or 'no site'}, the instance has {', '.join(sites_by_name)}, each once."
    if not ledger.holds("sites", holds, names, tuple(sites_by_name), why):
        return None
    all_shares, taken = instance.cluster.shares, sum(claim.shares for claim in together.sites)
    holds = together.shares == all_shares == taken and all(claim.shares >= 1 for claim in together.sites)
    why = f"Sites take {taken} of the {all_shares} shares of the instance, at least one each."
    return [sites_by_name[name] for name in names] if ledger.holds("shares", holds, taken, all_shares, why) else None


def _site(
    ledger: Ledger, instance: Instance, plan: Plan, site: Site, claim: SitePlan, waits_s: Mapping[str, float]
) -> BuiltSite | None:
    """Check one site as a cluster of its own; None where it cannot be built."""
    question, design = question_of_site(instance, claim.shares), claim.design
    family = check_design(ledger, question, design)
    if family is None:
        return None
    workloads = match_workloads(ledger, question.workload, claim.workloads)
    part = check_part(ledger, question, family, design, workloads, plan.objective.kind) if workloads else None
    if part is None:
        return None
    check_part_runs(ledger, part, question.cluster.gpu, waits_s)
    sums = check_part_bill(ledger, question, part, claim.cost, objective_at(instance, site))
    if sums is None or part.optics is None:
        return None
    return BuiltSite(site, bill(question, part.family, part.levels, part.optics), sums.power_w, design.racks or 0)


def _whole(ledger: Ledger, instance: Instance, plan: Plan, together: Together, sites: Sequence[BuiltSite]) -> None:
    """Check the bill of all sites and channels, the limits of the whole, and the objective."""
    assert plan.cost is not None
    links_by_ends = {frozenset(wan.between): wan for wan in instance.wan}
    lines = [line for site in sites for line in site.lines]
    for claim in together.wan:
        wan = links_by_ends[frozenset(claim.between)]
        lines.append(CountedItem("wan", wan.name, claim.channels, wan.usd, wan.w))
    energy = sum(
        electricity_usd(objective_at(instance, site.site), site.power_w + channels_w(together, site.site))
        for site in sites
    )
    at_list_terms = bill_total(lines, instance.objective)
    sums = at_list_terms._replace(tco_usd=owned_usd(instance.objective, at_list_terms.capex_usd) + energy)
    check_bill(ledger, lines, sums, plan.cost)
    check_limits(ledger, instance, sums, sum(site.racks for site in sites))
    check_objective(ledger, plan, sums)
