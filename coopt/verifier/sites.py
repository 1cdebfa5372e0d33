"""Check a plan for several sites: each site as a cluster of its own, then what joins them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.schema import Instance, Objective
from coopt.instance.sites import Site
from coopt.plan.schema import Plan
from coopt.plan.sites import SitePlan, Together
from coopt.verifier.claim_checks import check_objective, note_source
from coopt.verifier.cost_checks import check_bill, check_limits
from coopt.verifier.design_checks import check_design
from coopt.verifier.ledger import TOLERANCE, Ledger, near
from coopt.verifier.network_checks import check_network
from coopt.verifier.optics import names_of, optics_named
from coopt.verifier.parts import Line, bill, electricity_usd, total_of
from coopt.verifier.port_checks import check_ports
from coopt.verifier.spans import reach_of
from coopt.verifier.verdict import SOLVERS_WORD
from coopt.verifier.wide_area import check_exchanges, check_links
from coopt.verifier.workload_checks import Run, check_mapping, check_run, same_workloads


class Sound(NamedTuple):
    """A site that could be built: lines of its bill, power (W), racks."""

    site: Site
    lines: list[Line]
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
    found = []
    for site, claim in zip(sites, together.sites, strict=True):
        ledger.subject = f"Site {site.name!r}: "
        one = _site(ledger, instance, plan, site, claim, waits_s)
        if one is not None:
            found.append(one)
            _fed(ledger, instance, together, one, claim)
    ledger.subject = ""
    if len(found) == len(sites) and plan.cost is not None:
        _whole(ledger, instance, plan, together, found)


def check_sites_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Say what a bound rests on: rings, shares, networks and channels are not gone through here."""
    note_source(ledger, plan, f"rings and sites were not gone through: it rests on {SOLVERS_WORD}")


def _sites(ledger: Ledger, instance: Instance, together: Together) -> list[Site] | None:
    """The sites of the instance that the plan names; each once, with all shares between them."""
    known = {site.name: site for site in instance.site}
    named = tuple(claim.name for claim in together.sites)
    fine = bool(named) and len(set(named)) == len(named) and set(named) <= set(known)
    why = f"The plan builds at {', '.join(named) or 'no site'}, the instance has {', '.join(known)}, each once."
    if not ledger.holds("sites", fine, named, tuple(known), why):
        return None
    whole, taken = instance.cluster.shares, sum(claim.shares for claim in together.sites)
    fine = together.shares == whole == taken and all(claim.shares >= 1 for claim in together.sites)
    why = f"Sites take {taken} of the {whole} shares of the instance, at least one each."
    return [known[name] for name in named] if ledger.holds("shares", fine, taken, whole, why) else None


def _part(instance: Instance, shares: int) -> Instance:
    """The question of one site: its part of the GPUs and of every batch, in the same time; limits are of the whole."""
    whole = instance.cluster.shares or 1
    workloads = tuple(
        workload.model_copy(
            update={"global_batch": workload.global_batch * shares // whole, "max_iteration_time_s": workload.bound_s}
            | dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
        )
        for workload in instance.workload
    )
    gpus = tuple(count * shares // whole for count in instance.cluster.gpus)
    cluster = instance.cluster.model_copy(update={"gpus": gpus})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})


def _site(
    ledger: Ledger, instance: Instance, plan: Plan, site: Site, claim: SitePlan, waits_s: Sequence[float]
) -> Sound | None:
    """Check one site as a cluster of its own; None where it cannot be built."""
    part, design, kind = _part(instance, claim.shares), claim.design, plan.objective.kind
    family = check_design(ledger, part, design)
    if family is None or not same_workloads(ledger, part.workload, claim.workloads):
        return None
    runs: list[tuple[Run, float]] = []
    for workload, one, wait_s in zip(part.workload, claim.workloads, waits_s, strict=True):
        run = check_mapping(ledger, workload, one, family)
        runs += [(run, wait_s)] if run is not None else []
    ports = check_ports(ledger, part, family, design.fabric, kind)
    if ports is None:
        return None
    places = [(run.workload.name, run.place) for run, _ in runs]
    levels = check_network(ledger, family, ports, design.fabric, places)
    for run, wait_s in runs:
        check_run(ledger, run, family, reach_of(family, ports), part.cluster.gpu, wait_s)
    optics = optics_named(part, kind, family, names_of(design.fabric))
    if optics is None:
        return None
    lines = bill(part, family, levels, optics)
    sums = total_of(lines, _at(instance, site))
    check_bill(ledger, lines, sums, claim.cost)
    return Sound(site, lines, sums.power_w, design.racks or 0)


def _at(instance: Instance, site: Site) -> Objective:
    """The objective with the site's PUE and price of electricity."""
    own = {"pue": site.pue, "usd_per_kwh": site.usd_per_kwh}
    return instance.objective.model_copy(update={key: value for key, value in own.items() if value is not None})


def _channels_w(together: Together, site: Site) -> float:
    """Power of the channels that end at a site: half of each."""
    return sum(claim.w / 2 for claim in together.wan if site.name in claim.between)


def _fed(ledger: Ledger, instance: Instance, together: Together, sound: Sound, claim: SitePlan) -> None:
    """Check the facility power of a site."""
    found = (sound.power_w + _channels_w(together, sound.site)) * _at(instance, sound.site).pue
    most = sound.site.power_mw * 1e6
    why = f"It draws {found:,.0f} W with its PUE, the plan says {claim.facility_w:,.0f}."
    ledger.close("site-power", claim.facility_w, found, why)
    why = f"It can feed {most:,.0f} W and draws {found:,.0f}; the plan says {claim.facility_limit_w:,.0f}."
    fine = found <= most * (1 + TOLERANCE) and near(claim.facility_limit_w, most)
    ledger.holds("site-power-limit", fine, claim.facility_limit_w, most, why, TOLERANCE)


def _whole(ledger: Ledger, instance: Instance, plan: Plan, together: Together, found: Sequence[Sound]) -> None:
    """Check the bill of all sites and channels, the limits of the whole, and the objective."""
    assert plan.cost is not None
    names = {frozenset(wan.between): wan for wan in instance.wan}
    lines = [line for sound in found for line in sound.lines]
    for claim in together.wan:
        wan = names[frozenset(claim.between)]
        lines.append(Line("wan", wan.name, claim.channels, wan.usd, wan.w))
    energy = sum(
        electricity_usd(_at(instance, sound.site), sound.power_w + _channels_w(together, sound.site)) for sound in found
    )
    plain = total_of(lines, instance.objective)
    sums = plain._replace(tco_usd=plain.capex_usd + energy)
    check_bill(ledger, lines, sums, plan.cost)
    check_limits(ledger, instance, sums, sum(sound.racks for sound in found))
    check_objective(ledger, plan, sums)
