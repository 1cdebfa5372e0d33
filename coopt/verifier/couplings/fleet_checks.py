"""What couples the islands of a fleet: limits and products."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.couplings import Site
from coopt.plan.couplings import SitePower
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    Place,
    products_in_use,
    standing_units,
    trained_gpus,
)
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.couplings.prices import LimitedSum, ProductKey, check_gpus, check_limit, check_products_in_use
from coopt.verifier.couplings.sites import check_fed_sites, sites_fed
from coopt.verifier.parts.bills import keeps


def check_fleet_limits(
    ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], fed: Sequence[SitePower], capex_usd: float
) -> None:
    """Check everything that is limited, phase by phase."""
    limits, units_by_place = fleet.question.limits, standing_units(fleet, islands)
    for t in fleet.phases:
        ledger.turn_to(fleet.title(t))
        states = [state for island in islands if (state := island.phases[t]) is not None]
        check_gpus(ledger, trained_gpus(islands, t), fleet.gpus(t))
        for cap, limit in fleet.caps:
            check_limit(ledger, cap.check, limit, _sum_of_cap(fleet, cap, units_by_place, t), cap.unit)
        check_limit(ledger, "limit-racks", limits.racks, sum(state.racks for state in states), "racks")
    ledger.turn_to()
    check_limit(ledger, "limit-capex", limits.capex_usd, capex_usd, "USD")
    check_products_in_use(ledger, fleet.question, products_in_use(fleet, islands))
    powers = [(fleet.year(t), site, drawn_w) for t, site, drawn_w in _facility_powers(fleet, units_by_place)]
    check_fed_sites(ledger, powers, fed)


StandingUnits = Mapping[Place, Mapping[ProductKey, int]]


def _sum_of_cap(fleet: Fleet, cap: LimitedSum, units_by_place: StandingUnits, t: int) -> float:
    """What all that stands in a phase takes of a limit, cores included, in its unit."""
    units_of_sites = (units for (phase, _), units in units_by_place.items() if phase == t)
    return math.fsum(cap.of(fleet.prices, units) for units in units_of_sites) / cap.scale


def _facility_powers(fleet: Fleet, units_by_place: StandingUnits) -> Iterator[tuple[int, Site, float]]:
    """Phase, site, and facility power of all that stands there then, cores included (W)."""
    for t in fleet.phases:
        for site in fleet.sites:
            if site is not None:
                yield t, site, fleet.watts(units_by_place[t, site.name]) * fleet.site_pue(site)


def keeps_limits(fleet: Fleet, islands: Sequence[FleetIsland], margin: float) -> bool:
    """Whether islands keep every limit; with a negative `margin` to within the rounding of sums."""
    limits, units_by_place = fleet.question.limits, standing_units(fleet, islands)
    for t in fleet.phases:
        states = [state for island in islands if (state := island.phases[t]) is not None]
        if trained_gpus(islands, t) > fleet.gpus(t):
            return False
        if limits.racks is not None and sum(state.racks for state in states) > limits.racks:
            return False
        if not all(keeps(_sum_of_cap(fleet, cap, units_by_place, t), limit, margin) for cap, limit in fleet.caps):
            return False
    site_powers = ((site, drawn_w) for _, site, drawn_w in _facility_powers(fleet, units_by_place))
    if not sites_fed(site_powers, margin):
        return False
    return limits.capex_usd is None or keeps(fleet_total(fleet, islands).capex_usd, limits.capex_usd, margin)
