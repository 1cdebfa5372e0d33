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
    limits, standing_by_place = fleet.question.limits, standing_units(fleet, islands)
    for t in fleet.phases:
        ledger.turn_to(fleet.title(t))
        standing = [here for island in islands if (here := island.phases[t]) is not None]
        check_gpus(ledger, trained_gpus(islands, t), fleet.gpus(t))
        for cap, most in fleet.caps:
            check_limit(ledger, cap.check, most, _taken(fleet, cap, standing_by_place, t), cap.unit)
        check_limit(ledger, "limit-racks", limits.racks, sum(here.racks for here in standing), "racks")
    ledger.turn_to()
    check_limit(ledger, "limit-capex", limits.capex_usd, capex_usd, "USD")
    check_products_in_use(ledger, fleet.question, products_in_use(fleet, islands))
    powers = [(fleet.year(t), site, drawn_w) for t, site, drawn_w in _fed(fleet, standing_by_place)]
    check_fed_sites(ledger, powers, fed)


Standing = Mapping[Place, Mapping[ProductKey, int]]


def _taken(fleet: Fleet, cap: LimitedSum, standing: Standing, t: int) -> float:
    """What all that stands in a phase takes of a limit, cores included, in its unit."""
    return math.fsum(cap.of(fleet.prices, units) for (phase, _), units in standing.items() if phase == t) / cap.scale


def _fed(fleet: Fleet, standing: Standing) -> Iterator[tuple[int, Site, float]]:
    """Phase, site, and facility power of all that stands there then, cores included (W)."""
    for t in fleet.phases:
        for site in fleet.sites:
            if site is not None:
                yield t, site, fleet.watts(standing[t, site.name]) * fleet.site_pue(site)


def keeps_limits(fleet: Fleet, islands: Sequence[FleetIsland], short: float) -> bool:
    """Whether islands keep every limit; with a negative `short` to within the rounding of sums."""
    limits, standing_by_place = fleet.question.limits, standing_units(fleet, islands)
    for t in fleet.phases:
        standing = [here for island in islands if (here := island.phases[t]) is not None]
        if trained_gpus(islands, t) > fleet.gpus(t):
            return False
        if limits.racks is not None and sum(here.racks for here in standing) > limits.racks:
            return False
        if not all(keeps(_taken(fleet, cap, standing_by_place, t), most, short) for cap, most in fleet.caps):
            return False
    if not sites_fed(((site, drawn_w) for _, site, drawn_w in _fed(fleet, standing_by_place)), short):
        return False
    return limits.capex_usd is None or keeps(fleet_total(fleet, islands).capex_usd, limits.capex_usd, short)
