"""The sections of schema 1, as views of parts and couplings; each is empty for a question that it does not belong to.

They show what one kind of question has. What combines several, such as islands at sites that grow, is in parts and
couplings alone.
"""

from __future__ import annotations

from typing import Literal

from coopt.plan.couplings import NETWORK, CorePlan, Couplings, Exchange, Part, Stored, Survived, Turn, WanPlan
from coopt.plan.parts import Cost, Design, Item, Record, WorkloadPlan


class Island(Record):
    """What one workload has to itself, and what that draws, as far as `include` counts it (W)."""

    workload: str
    design: Design
    power_w: float


class PhasePlan(Record):
    """One phase: the whole network in place, what is bought at its prices, and what runs.

    `bought` ends with the labour for uplinks added to switches of earlier phases. `stored` is bought and not in place
    yet. `power_w` is that of everything in place, which runs for `years`.
    """

    year: float
    years: float
    design: Design
    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float
    workloads: tuple[WorkloadPlan, ...]


class Standing(Record):
    """How robust a plan is.

    With the aim "worst-case" the bill and the objective are at the worst prices, and `list_value` is the objective at
    those of the instance. With "regret" the objective is the largest excess over the best plan, `turns` hold them all,
    and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[Turn, ...] = ()


class SitePlan(Record):
    """One site: its shares of GPUs and batch, what is built there, and how it trains its part of each batch.

    `cost.tco_usd` is at the site's own price of electricity and PUE; `facility_w` is IT power times PUE, with its half
    of the wide-area channels.
    """

    name: str
    shares: int
    design: Design
    cost: Cost
    facility_w: float
    facility_limit_w: float
    workloads: tuple[WorkloadPlan, ...]


class Together(Record):
    """Sites in the order of the ring that adds up their gradients."""

    shares: int
    sites: tuple[SitePlan, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]


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


def core(couplings: Couplings) -> CorePlan | None:
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
