"""Sections of a plan: views of its parts and couplings.

A view is empty for a question that it does not belong to.

They show what one kind of question has. What combines several, such as islands at sites that grow,
is in parts and couplings alone.
"""

from typing import Literal, Protocol

from coopt.plan.couplings import (
    Couplings,
    Exchange,
    Myopic,
    Part,
    Stored,
    Survived,
    Turn,
    WanPlan,
)
from coopt.plan.parts import Cost, Design, DirectLinks, Item, Record, WorkloadPlan


class PhasePlan(Record):
    """One phase: the whole network in place, what is bought at its prices, and what runs.

    `bought` ends with the labour for uplinks added to switches of earlier phases. `stored` is
    bought and not in place yet. `power_w` is that of everything in place, which runs for `years`.
    """

    year: float
    years: float
    design: Design
    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float
    work_usd: float = 0.0
    workloads: tuple[WorkloadPlan, ...]


class Standing(Record):
    """How robust a plan is.

    With the aim "worst-case" the bill and the objective are at the worst prices, and `list_value`
    is the objective at those of the instance. With "regret" the objective is the largest excess
    over the best plan, `turns` hold them all, and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[Turn, ...] = ()


class SitePlan(Record):
    """One site: its shares of GPUs and batch, what is built there, and how it trains its part of
    each batch.

    `cost.tco_usd` is at the site's own price of electricity and PUE; `facility_w` is IT power times
    PUE, with its half of the wide-area channels.
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


class HasParts(Protocol):
    """What consists of parts and couplings."""

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def couplings(self) -> Couplings: ...


class Sections:
    """Sections of a plan, of its parts and couplings."""

    @property
    def together(self: HasParts) -> Together | None:
        """Sites that train every batch together, in the order of their ring."""
        ring, powers = self.couplings.ring, self.couplings.sites
        site_names = tuple(part.site for part in self.parts)
        if (
            ring is None
            or site_names != ring.sites
            or tuple(site.site for site in powers) != site_names
        ):
            return None
        if len(ring.site_shares) != len(site_names):
            return None
        rows = zip(self.parts, powers, ring.site_shares, strict=True)
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
                if part.design is not None
            ),
            wan=ring.wan,
            exchanges=ring.exchanges,
        )

    @property
    def robust(self: HasParts) -> Standing | None:
        """What one network stands."""
        outlooks = self.couplings.outlooks
        if outlooks is None or len(self.parts) != 1:
            return None
        losses = [
            loss.survived for loss in self.couplings.losses if loss.part == self.parts[0].name
        ]
        return Standing(
            aim=outlooks.aim,
            efficiency=outlooks.efficiency,
            survived=losses[0] if losses else (),
            list_value=outlooks.list_value,
            turns=outlooks.turns,
        )

    @property
    def phases(self: HasParts) -> tuple[PhasePlan, ...]:
        """How one network grows."""
        growth = self.couplings.growth
        if [part.phase for part in self.parts] != [spending.year for spending in growth]:
            return ()
        return tuple(
            PhasePlan(
                year=spending.year,
                years=spending.years,
                design=part.design,
                bought=spending.bought,
                stored=spending.stored,
                capex_usd=spending.capex_usd,
                power_w=spending.power_w,
                energy_usd=spending.energy_usd,
                work_usd=spending.work_usd,
                workloads=part.workloads,
            )
            for part, spending in zip(self.parts, growth, strict=True)
            if part.design is not None
        )

    @property
    def direct(self: HasParts) -> DirectLinks | None:
        """The direct links between domains."""
        return self.parts[0].links if len(self.parts) == 1 else None

    @property
    def myopic(self: HasParts) -> Myopic | None:
        """What planning phase by phase would have built."""
        return self.couplings.myopic
