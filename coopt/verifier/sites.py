"""Check a plan for several sites: each site as a part of its own, then what joins them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coopt.instance.question import Limits
from coopt.instance.schema import Instance
from coopt.instance.sites import Site
from coopt.plan.schema import Plan
from coopt.plan.views import SitePlan, Together
from coopt.verifier.bounds.sites import SitesBound
from coopt.verifier.checks.claims import note_source, note_undecided
from coopt.verifier.checks.verdict import ROUNDING, SOLVERS_WORD, STRICT, Ledger
from coopt.verifier.couplings.fleet_paths import TooManyError
from coopt.verifier.couplings.limits import check_limits
from coopt.verifier.couplings.ring import check_exchanges, check_links
from coopt.verifier.couplings.sites import channels_w, check_site_power, objective_at, question_of_site
from coopt.verifier.parts.bill_checks import check_bill, check_objective
from coopt.verifier.parts.bills import CountedItem, bill, bill_total, electricity_usd
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.part_checks import check_part, check_part_bill, check_part_runs
from coopt.verifier.parts.workload_checks import match_workloads

MOST_NETWORKS = 5_000
"""Networks at sites that are listed or timed to confirm a bound."""


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
        ledger.subject = f"Site {site.name!r}: "
        built_site = _site(ledger, instance, plan, site, claim, waits_s)
        if built_site is not None:
            built_sites.append(built_site)
            check_site_power(ledger, instance, together, site, built_site.power_w, claim)
    ledger.subject = ""
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
        note_undecided(ledger, plan, f"sites worth {float(near):,.10g}")
    else:
        text = f"sites worth {float(near):,.10g} may keep the limits of all sites: it rests on {SOLVERS_WORD}"
        note_source(ledger, plan, text)
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
    sums = at_list_terms._replace(tco_usd=at_list_terms.capex_usd + energy)
    check_bill(ledger, lines, sums, plan.cost)
    check_limits(ledger, instance, sums, sum(site.racks for site in sites))
    check_objective(ledger, plan, sums)
