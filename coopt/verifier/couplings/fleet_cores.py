"""The core of each site in each phase: whole switches with a port for every link of the islands there."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.instance.listings import alternatives
from coopt.plan.couplings import SharedCore
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.core import core_optic, optics_of_core
from coopt.verifier.couplings.fleet import Fleet, FleetIsland, core_links
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.space import core_switch


def check_fleet_cores(
    ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], cores: Sequence[SharedCore]
) -> None:
    """Check that a core of the switch asked for stands wherever islands do, with a port for each of their links."""
    links, switch = core_links(islands), core_switch(fleet.question)
    wanted = [
        (t, None if site is None else site.name)
        for t in fleet.phases
        for site in fleet.sites
        if links[t, None if site is None else site.name]
    ]
    places = tuple(_place(fleet.year(t), site) for t, site in wanted)
    claimed = tuple(_place(one.phase, one.site) for one in cores)
    why = f"The plan has cores {', '.join(claimed) or 'nowhere'}, islands share them {', '.join(places) or 'nowhere'}."
    if not ledger.same("core", claimed, places, why) or switch is None:
        return
    for (t, site), one in zip(wanted, cores, strict=True):
        ledger.subject = f"Core {_place(one.phase, one.site)}: "
        why = f"It has switch {one.core.switch.name}, the instance asks for {switch.name}."
        ledger.same("core", one.core.switch.name, switch.name, why)
        _check_links(ledger, [island for island in islands if _stands(island, t, site)], t, one)
        ports = links[t, site]
        found = f"{ports} ports of {ceil_ratio(ports, switch.radix)} switches"
        why = f"The links into it fill {found}."
        ledger.same("core-switches", f"{one.core.ports} ports of {one.core.switches} switches", found, why)
        may = optics_of_core(fleet.question, fleet.kind)
        fine = one.core.optic in may and one.core.optic == core_optic(fleet.question, fleet.kind).name
        why = f"All links into cores have one of the optics {alternatives(may)}, this one takes {one.core.optic}."
        ledger.holds("core-optic", fine, one.core.optic, may, why)
        counted = "switch" in fleet.question.objective.include
        power_w = ceil_ratio(ports, switch.radix) * switch.w if counted else 0.0
        why = f"It draws {power_w:,.2f} W, the plan says {one.core.power_w:,.2f} W."
        ledger.close("core-power", one.core.power_w, power_w, why)
    ledger.subject = ""


def _check_links(ledger: Ledger, islands: Sequence[FleetIsland], t: int, one: SharedCore) -> None:
    """Check the links of every island that stands there."""
    joints = [(island.name, here.joint) for island in islands if (here := island.phases[t]) is not None]
    found = tuple(f"{name}: {joint.links} links, {joint.per_leaf} from each leaf" for name, joint in joints if joint)
    claimed = tuple(f"{o.workload}: {o.links} links, {o.per_leaf} from each leaf" for o in one.core.islands)
    why = "The links of the islands into the core are not those that their GPUs need, as many from each leaf."
    ledger.same("core-links", claimed, found, why)


def _stands(island: FleetIsland, t: int, site: str | None) -> bool:
    return island.phases[t] is not None and (None if island.site is None else island.site.name) == site


def _place(year: float | None, site: str | None) -> str:
    return " ".join(words for words in (site and f"at {site}", "" if year is None else f"in {year:.10g}") if words)
