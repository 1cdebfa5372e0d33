"""A site: its price of electricity, and the power it can feed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from coopt.instance.couplings import Site
from coopt.instance.question import Objective
from coopt.instance.schema import Instance
from coopt.instance.texts import exact
from coopt.plan.couplings import SitePower
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import decimal, keeps


def objective_at(instance: Instance, site: Site | None) -> Objective:
    """The objective with the site's PUE and price of electricity; as it is where there are no
    sites.
    """
    terms = {} if site is None else {"pue": site.pue, "usd_per_kwh": site.usd_per_kwh}
    own = {key: value for key, value in terms.items() if value is not None}
    return instance.objective.model_copy(update=own) if own else instance.objective


def check_fed_sites(
    ledger: Ledger, powers: Sequence[tuple[float | None, Site, float]], claims: Sequence[SitePower]
) -> None:
    """Check what each site feeds in each phase.

    Parameters
    ----------
    powers
        Year of the phase, site, and facility power of everything that stands there then (W).
    """
    places = tuple(_place_text(site.name, year) for year, site, _ in powers)
    claimed_places = tuple(_place_text(claim.site, claim.phase) for claim in claims)
    places_text = ", ".join(places) or "no site"
    claimed_text = ", ".join(claimed_places) or "no site"
    if not ledger.same(
        "sites",
        claimed_places,
        places,
        f"The plan has to state the power of {places_text}, but states that of {claimed_text}.",
    ):
        return
    for (year, site, facility_w), claim in zip(powers, claims, strict=True):
        ledger.turn_to(f"Site {_place_text(site.name, year)}")
        check_facility(ledger, site, facility_w, claim)
    ledger.turn_to()


def sites_fed(powers: Iterable[tuple[Site, float]], margin: float) -> bool:
    """Whether each site can feed its facility power (W); with a negative `margin` to within the
    rounding of sums.
    """
    return all(keeps(facility_w, site.power_mw * 1e6, margin) for site, facility_w in powers)


def feeds_w(site: Site) -> Fraction:
    """The facility power that a site can feed, exactly (W)."""
    return decimal(site.power_mw) * 1_000_000


def power_name(site: Site) -> str:
    """What the power of a site goes by in proofs."""
    return f"power_w of {site.name}"


def check_facility(ledger: Ledger, site: Site, facility_w: float, claim: SitePower) -> None:
    """Check the facility power of a site against the claim and what it can feed."""
    limit_w = site.power_mw * 1e6
    ledger.close(
        "site-power",
        claim.facility_w,
        facility_w,
        f"What is billed at the site draws {exact(facility_w)} W including PUE, but the plan says"
        f" {exact(claim.facility_w)} W.",
    )
    fault = (
        f"What is billed at the site draws {exact(facility_w)} W of its supply of"
        f" {exact(limit_w)} W; the plan states a supply of {exact(claim.facility_limit_w)} W."
    )
    holds = facility_w <= limit_w * (1 + TOLERANCE) and agree(claim.facility_limit_w, limit_w)
    ledger.holds("site-power-limit", holds, claim.facility_limit_w, limit_w, fault, TOLERANCE)


def _place_text(site: str, year: float | None) -> str:
    return site if year is None else f"{site} in {year:.10g}"
