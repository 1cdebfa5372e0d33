"""The sections of schema 1, as views of parts and couplings; each is empty for a question that it does not belong to.

They show what one kind of question has. What combines several, such as islands at sites that grow, is in parts and
couplings alone.
"""

from __future__ import annotations

from coopt.plan.cores import Core
from coopt.plan.couplings import NETWORK, Couplings, Part
from coopt.plan.islands import Island
from coopt.plan.phases import PhasePlan
from coopt.plan.robust import Standing
from coopt.plan.sites import SitePlan, Together


def islands(parts: tuple[Part, ...], couplings: Couplings) -> tuple[Island, ...]:
    """The parts of a partition."""
    tied = couplings.ring or couplings.growth
    if tied or not parts or not all(_is_island(part) for part in parts):
        return ()
    if len(parts) == 1 and parts[0].name == NETWORK and not couplings.cores:
        return ()
    return tuple(
        Island(workload=part.workloads[0].name, design=part.design, power_w=part.power_w)
        for part in parts
        if part.design is not None
    )


def _is_island(part: Part) -> bool:
    return part.design is not None and [run.name for run in part.workloads] == [part.name]


def core(couplings: Couplings) -> Core | None:
    """The core, where there is one for all parts."""
    found = couplings.cores
    return found[0].core if len(found) == 1 and found[0].site is None and found[0].phase is None else None


def together(parts: tuple[Part, ...], couplings: Couplings) -> Together | None:
    """Sites with their networks, shares and facility power, and what joins them."""
    ring, fed = couplings.ring, couplings.sites
    named = tuple(part.site for part in parts)
    if ring is None or named != ring.sites or tuple(one.site for one in fed) != named:
        return None
    if len(ring.site_shares) != len(named):
        return None
    rows = zip(parts, fed, ring.site_shares, strict=True)
    return Together(
        shares=ring.shares,
        sites=tuple(
            SitePlan(
                name=part.name,
                shares=shares,
                design=part.design,
                cost=part.cost,
                facility_w=power.facility_w,
                facility_limit_w=power.facility_limit_w,
                workloads=part.workloads,
            )
            for part, power, shares in rows
            if part.design is not None and part.cost is not None
        ),
        wan=ring.wan,
        exchanges=ring.exchanges,
    )


def standing(parts: tuple[Part, ...], couplings: Couplings) -> Standing | None:
    """What one network stands: losses, and prices that turn out otherwise."""
    outlooks = couplings.outlooks
    if outlooks is None or len(parts) != 1:
        return None
    losses = [one.survived for one in couplings.losses if one.part == parts[0].name]
    return Standing(
        aim=outlooks.aim,
        efficiency=outlooks.efficiency,
        survived=losses[0] if losses else (),
        list_value=outlooks.list_value,
        turns=outlooks.turns,
    )


def phases(parts: tuple[Part, ...], couplings: Couplings) -> tuple[PhasePlan, ...]:
    """The phases of one network, each with what stands and what is spent."""
    growth = couplings.growth
    if [part.phase for part in parts] != [spent.year for spent in growth]:
        return ()
    return tuple(
        PhasePlan(
            year=spent.year,
            years=spent.years,
            design=part.design,
            bought=spent.bought,
            stored=spent.stored,
            capex_usd=spent.capex_usd,
            power_w=spent.power_w,
            energy_usd=spent.energy_usd,
            workloads=part.workloads,
        )
        for part, spent in zip(parts, growth, strict=True)
        if part.design is not None
    )
