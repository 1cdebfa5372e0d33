"""A site: its part of the question, its price of electricity, and the power it can feed."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.instance.schema import Instance, Objective
from coopt.instance.sites import Site, part_of
from coopt.plan.couplings import SitePower
from coopt.plan.views import SitePlan, Together
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree


def question_of_site(instance: Instance, shares: int) -> Instance:
    """The question of one site: its part of the GPUs and batches, the same times, the limits of all sites."""
    all_shares = instance.cluster.shares or 1
    workloads = tuple(part_of(workload, shares, all_shares) for workload in instance.workload)
    gpus = tuple(count * shares // all_shares for count in instance.cluster.gpus)
    cluster = instance.cluster.model_copy(update={"gpus": gpus})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})


def objective_at(instance: Instance, site: Site) -> Objective:
    """The objective with the site's PUE and price of electricity."""
    terms = {"pue": site.pue, "usd_per_kwh": site.usd_per_kwh}
    return instance.objective.model_copy(update={key: value for key, value in terms.items() if value is not None})


def channels_w(together: Together, site: Site) -> float:
    """Power of the channels that end at a site: half of each."""
    return sum(claim.w / 2 for claim in together.wan if site.name in claim.between)


def check_site_power(
    ledger: Ledger, instance: Instance, together: Together, site: Site, power_w: float, claim: SitePlan
) -> None:
    """Check the facility power of a site whose network and GPUs draw `power_w`."""
    facility_w = (power_w + channels_w(together, site)) * objective_at(instance, site).pue
    _check_facility(ledger, site, facility_w, claim)


def check_fed_sites(
    ledger: Ledger, powers: Sequence[tuple[float | None, Site, float]], claims: Sequence[SitePower]
) -> None:
    """Check what each site feeds in each phase.

    Parameters
    ----------
    powers
        Year of the phase, site, and facility power of everything that stands there then (W).
    """
    expected = tuple(_when(site.name, year) for year, site, _ in powers)
    claimed = tuple(_when(claim.site, claim.phase) for claim in claims)
    asked = ", ".join(expected) or "no site"
    why = f"The plan states the power of {', '.join(claimed) or 'no site'}, the instance asks for that of {asked}."
    if not ledger.same("sites", claimed, expected, why):
        return
    for (year, site, facility_w), claim in zip(powers, claims, strict=True):
        ledger.subject = f"Site {_when(site.name, year)}: "
        _check_facility(ledger, site, facility_w, claim)
    ledger.subject = ""


def _check_facility(ledger: Ledger, site: Site, facility_w: float, claim: SitePlan | SitePower) -> None:
    """Check the facility power of a site against the claim and what it can feed."""
    limit_w = site.power_mw * 1e6
    why = f"It draws {facility_w:,.0f} W with its PUE, the plan says {claim.facility_w:,.0f}."
    ledger.close("site-power", claim.facility_w, facility_w, why)
    why = f"It can feed {limit_w:,.0f} W and draws {facility_w:,.0f}; the plan says {claim.facility_limit_w:,.0f}."
    holds = facility_w <= limit_w * (1 + TOLERANCE) and agree(claim.facility_limit_w, limit_w)
    ledger.holds("site-power-limit", holds, claim.facility_limit_w, limit_w, why, TOLERANCE)


def _when(site: str, year: float | None) -> str:
    return site if year is None else f"{site} in {year:.10g}"
