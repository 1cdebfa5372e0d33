"""Sections of a plan: views of its parts and couplings for questions of one kind.

A view is empty for questions of another kind. Combinations, such as growing islands at sites, are
in parts and couplings only.
"""

from typing import Literal, Protocol

from coopt.plan.couplings import (
    Couplings,
    Exchange,
    Myopic,
    Part,
    PriceScenario,
    Stored,
    Survived,
    WanPlan,
)
from coopt.plan.parts import Cost, Design, DirectLinks, Item, Record, WorkloadPlan


class PhasePlan(Record):
    """One phase: the installed network, purchases at its prices, and workloads.

    `bought` ends with the labour for uplinks added to switches of earlier phases. `stored` is
    bought but not installed yet. `power_w` is the power of all installed equipment, which runs for
    `years`.
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


class Robustness(Record):
    """Robustness of a plan.

    With the aim "worst-case", bill and objective are at the worst prices, and `list_value` is the
    objective at the prices of the instance. With "regret", the objective is the maximum excess over
    the best plan, `turns` holds all price scenarios, and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[PriceScenario, ...] = ()


class SitePlan(Record):
    """One site: its shares of GPUs and batch, its network, and how it trains its part of each
    batch.

    `cost.tco_usd` uses the site's own electricity price and PUE; `facility_w` is IT power times
    PUE, including half of its wide-area channels.
    """

    name: str
    shares: int
    design: Design
    cost: Cost
    facility_w: float
    facility_limit_w: float
    workloads: tuple[WorkloadPlan, ...]


class Together(Record):
    """Sites in the order of the ring that sums their gradients."""

    shares: int
    sites: tuple[SitePlan, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]


class HasParts(Protocol):
    """Anything with parts and couplings."""

    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def couplings(self) -> Couplings: ...


class Sections:
    """Sections of a plan, derived from its parts and couplings."""

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
    def robust(self: HasParts) -> Robustness | None:
        """Robustness of a single network."""
        outlooks = self.couplings.outlooks
        if outlooks is None or len(self.parts) != 1:
            return None
        losses = [
            loss.survived for loss in self.couplings.losses if loss.part == self.parts[0].name
        ]
        return Robustness(
            aim=outlooks.aim,
            efficiency=outlooks.efficiency,
            survived=losses[0] if losses else (),
            list_value=outlooks.list_value,
            turns=outlooks.turns,
        )

    @property
    def phases(self: HasParts) -> tuple[PhasePlan, ...]:
        """Growth of a single network."""
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
        """The result of planning each phase separately."""
        return self.couplings.myopic
