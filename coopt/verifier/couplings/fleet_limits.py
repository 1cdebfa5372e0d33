"""Limits on a fleet: GPUs, power and racks of every phase, power of every site, budget, and products in use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.sites import Site
from coopt.plan.couplings import SitePower
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.couplings.fleet import Fleet, FleetIsland, products_in_use, standing_units
from coopt.verifier.couplings.limits import check_products_in_use
from coopt.verifier.couplings.sites import check_fed_sites
from coopt.verifier.parts.bills import keeps


def check_fleet_limits(
    ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], fed: Sequence[SitePower], capex_usd: float
) -> None:
    """Check everything that is limited, phase by phase."""
    limits, facilities = fleet.question.limits, facility_powers(fleet, islands)
    for t in fleet.phases:
        ledger.subject = f"Phase {fleet.year(t):g}: " if fleet.question.phase else ""
        standing = [here for island in islands if (here := island.phases[t]) is not None]
        gpus, there = sum(here.stage.family.gpus for here in standing), fleet.gpus(t)
        ledger.holds("limit-gpus", gpus <= there, there, gpus, f"The islands have {gpus} GPUs, there are {there}.")
        power_mw = math.fsum(it_w for phase, _, it_w in facilities if phase == t) / 1e6
        _check_limit(ledger, "limit-power", limits.power_mw, power_mw, "MW")
        _check_limit(ledger, "limit-racks", limits.racks, sum(here.racks for here in standing), "racks")
    ledger.subject = ""
    _check_limit(ledger, "limit-capex", limits.capex_usd, capex_usd, "USD")
    check_products_in_use(ledger, fleet.question, products_in_use(fleet, islands))
    powers = [(fleet.year(t), site, it_w * fleet.site_pue(site)) for t, site, it_w in facilities if site is not None]
    check_fed_sites(ledger, powers, fed)


def facility_powers(fleet: Fleet, islands: Sequence[FleetIsland]) -> list[tuple[int, Site | None, float]]:
    """Phase, site, and IT power of all that stands there then, cores included (W)."""
    return list(_powers(fleet, islands))


def _powers(fleet: Fleet, islands: Sequence[FleetIsland]) -> Iterator[tuple[int, Site | None, float]]:
    standing = standing_units(fleet, islands)
    for t in fleet.phases:
        for site in fleet.sites:
            yield t, site, fleet.watts(standing[t, None if site is None else site.name])


def _check_limit(ledger: Ledger, name: str, limit: float | None, value: float, unit: str) -> None:
    if limit is not None:
        why = f"The limit is {limit:,.10g} {unit}, what is built takes {value:,.10g}."
        ledger.holds(name, value <= limit * (1 + TOLERANCE), limit, value, why, TOLERANCE)


def keeps_limits(fleet: Fleet, islands: Sequence[FleetIsland], capex_usd: float, short: float) -> bool:
    """Whether islands keep every limit; with a negative `short` to within the rounding of sums."""
    limits, facilities = fleet.question.limits, facility_powers(fleet, islands)
    for t in fleet.phases:
        standing = [here for island in islands if (here := island.phases[t]) is not None]
        if sum(here.stage.family.gpus for here in standing) > fleet.gpus(t):
            return False
        if limits.racks is not None and sum(here.racks for here in standing) > limits.racks:
            return False
        power_mw = math.fsum(it_w for phase, _, it_w in facilities if phase == t) / 1e6
        if not keeps(power_mw, limits.power_mw, short):
            return False
    drawn = [(it_w * fleet.site_pue(site), site.power_mw * 1e6) for _, site, it_w in facilities if site is not None]
    return all(keeps(w, limit_w, short) for w, limit_w in drawn) and keeps(capex_usd, limits.capex_usd, short)
