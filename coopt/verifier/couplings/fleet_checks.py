"""What couples the islands of a fleet: limits and products, and the cores of its sites."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.couplings import Site
from coopt.instance.errors import alternatives, counted
from coopt.plan.couplings import SharedCore, SitePower
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.core import core_optic, optics_of_core
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    Place,
    core_joints,
    core_places,
    products_in_use,
    standing_units,
    trained_gpus,
)
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.couplings.prices import LimitedSum, ProductKey, check_gpus, check_limit, check_products_in_use
from coopt.verifier.couplings.sites import check_fed_sites, sites_fed
from coopt.verifier.parts.bills import keeps
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.space import core_switch


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


def check_fleet_cores(ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], plan: Plan) -> None:
    """Check that a core of the switch asked for stands wherever islands do, with a port for each of their links."""
    taken, switch, cores = core_places(islands), core_switch(fleet.question), plan.couplings.cores
    wanted = [
        (t, None if site is None else site.name)
        for t in fleet.phases
        for site in fleet.sites
        if taken[t, None if site is None else site.name]
    ]
    places = tuple(_place(fleet.year(t), site) for t, site in wanted)
    claimed = tuple(_place(one.phase, one.site) for one in cores)
    why = f"The plan has cores {', '.join(claimed) or 'nowhere'}, islands share them {', '.join(places) or 'nowhere'}."
    if not ledger.same("core", claimed, places, why) or switch is None:
        return
    for (t, site), one in zip(wanted, cores, strict=True):
        ledger.turn_to(f"Core {_place(one.phase, one.site)}")
        why = f"It has switch {one.core.switch.name}, the instance asks for {switch.name}."
        ledger.same("core", one.core.switch.name, switch.name, why)
        _check_links(ledger, [island for island in islands if _stands(island, t, site)], t, one)
        count = ceil_ratio(taken[t, site], switch.radix)
        links = sum(joint.links for place, joint in core_joints(islands) if place == (t, site))
        claimed_ports = f"{counted(one.core.ports, 'port')} of {counted(one.core.switches, 'switch')}"
        found = f"{counted(links, 'port')} of {counted(count, 'switch')}"
        ledger.same("core-switches", claimed_ports, found, f"The links into it fill {found}.")
        may = optics_of_core(fleet.question, fleet.kind)
        fine = one.core.optic in may and one.core.optic == core_optic(fleet.question, fleet.kind).name
        why = f"All links into cores have one of the optics {alternatives(may)}, this one takes {one.core.optic}."
        ledger.holds("core-optic", fine, one.core.optic, may, why)
        billed = "switch" in fleet.question.objective.include
        power_w = count * switch.w if billed else 0.0
        why = f"It draws {power_w:,.2f} W, the plan says {one.core.power_w:,.2f} W."
        ledger.close("core-power", one.core.power_w, power_w, why)
    ledger.turn_to()


def _check_links(ledger: Ledger, islands: Sequence[FleetIsland], t: int, one: SharedCore) -> None:
    """Check the links of every island that stands there."""
    joints = [(island.name, here.joint) for island in islands if (here := island.phases[t]) is not None]
    rows = [(name, joint.links, joint.per_leaf, joint.ends.below.name) for name, joint in joints if joint]
    told = [(o.workload, o.links, o.per_leaf, o.optic_below or one.core.optic) for o in one.core.islands]
    found, claimed = (
        tuple(f"{name}: {links} links, {each} from each leaf, by {below}" for name, links, each, below in some)
        for some in (rows, told)
    )
    why = f"The islands need these links into the core: {'; '.join(found) or 'none'}."
    ledger.same("core-links", claimed, found, why)


def _stands(island: FleetIsland, t: int, site: str | None) -> bool:
    return island.phases[t] is not None and (None if island.site is None else island.site.name) == site


def _place(year: float | None, site: str | None) -> str:
    return " ".join(words for words in (site and f"at {site}", "" if year is None else f"in {year:.10g}") if words)
