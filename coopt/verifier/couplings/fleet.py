"""A fleet: islands over phases and sites, what of theirs stands where and when, and the terms that
hold there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from coopt.instance.couplings import Site
from coopt.instance.hardware import HbDomain, Nic
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance, question_on
from coopt.instance.variants import phases_of, years_of
from coopt.instance.workload import Workload
from coopt.plan.parts import Item, ItemKind
from coopt.verifier.checks.claims import grows_alone, island_names
from coopt.verifier.couplings.core import Joint, joint_of
from coopt.verifier.couplings.prices import (
    LimitedSum,
    ProductKey,
    UnitCounts,
    caps_of,
    counted_units,
    counts_of_island,
    list_prices,
)
from coopt.verifier.couplings.sites import objective_at
from coopt.verifier.parts.bills import LineKey, UnitPrice, least_racks, owned_units, owned_usd
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.space import core_switch
from coopt.verifier.parts.stages import GrowthStage, links_added
from coopt.verifier.training.caching import kept


@dataclass(frozen=True, eq=False)
class StandingIsland:
    """An island as it stands in a phase, with its links into a core."""

    stage: GrowthStage
    uplinks: int
    joint: Joint | None

    @cached_property
    def counts(self) -> UnitCounts:
        """Everything it consists of."""
        return counts_of_island(
            self.stage.family, self.stage.levels(self.uplinks), self.stage.optics, self.joint
        )

    @property
    def racks(self) -> int:
        """Racks that its HB domains fill; 0 where they do not say."""
        return filled_racks(self.stage.family.hb, self.stage.family.bought)


def filled_racks(hb: HbDomain, domains: int) -> int:
    """Racks that so many HB domains fill; 0 where they do not say."""
    return 0 if hb.racks is None else least_racks(domains, hb.racks)


class FleetIsland(NamedTuple):
    """An island by its name: its site, where there are sites, and what stands in each phase, None
    before it does.
    """

    name: str
    site: Site | None
    phases: tuple[StandingIsland | None, ...]

    def links_added(self, phase: int) -> int:
        """Links up that a phase adds to switches that stood before it."""
        state, previous = self.phases[phase], self.phases[phase - 1] if phase else None
        if state is None or previous is None:
            return 0
        return links_added(previous.stage, state.stage, previous.uplinks, state.uplinks)


class Tariff(NamedTuple):
    """Prices of a product in a phase by the units bought there: (threshold, USD of a unit), rising
    from 0.
    """

    steps: tuple[tuple[int, float], ...]
    all_units: bool

    def lines(self, units: int) -> list[tuple[int, float]]:
        """Units and their price when exactly so many are bought."""
        # One price for every unit, that of the highest threshold reached; else units of each
        # bracket have its own.
        if self.all_units:
            return (
                [(units, [usd for begin, usd in self.steps if begin <= units][-1])]
                if units > 0
                else []
            )
        ends = [*(begin for begin, _ in self.steps[1:]), math.inf]
        parts = [
            (min(units, end) - begin, usd)
            for (begin, usd), end in zip(self.steps, ends, strict=True)
        ]
        return [(int(count), usd) for count, usd in parts if count > 0]

    def usd(self, units: int) -> float:
        """Price of buying exactly so many."""
        return math.fsum(count * usd for count, usd in self.lines(units))


Place = tuple[int, str | None]  # number of a phase, name of a site
StandingUnits = Mapping[Place, Mapping[ProductKey, int]]


class Fleet:
    """Phases, sites and prices of a question without intervals, at which a fleet is billed.

    Attributes
    ----------
    left
        Units that stand and that no island checked so far has.
    """

    def __init__(self, question: Instance, kind: ObjectiveKind) -> None:
        self.question, self.kind, self.left = question, kind, owned_units(question)
        self.phases = range(len(question.years))
        self.sites = question.sites
        self.islands = island_names(question)
        self.questions = phases_of(question)

    def on(self, hb_domain: str) -> Fleet:
        """The same with the GPUs that an HB domain is sold with."""
        question = question_on(self.question, hb_domain)
        return self if question is self.question else Fleet(question, self.kind)

    @property
    def is_one_part(self) -> bool:
        """Whether all that is built is one network that is bought at once."""
        return len(self.phases) == len(self.sites) == len(self.islands) == 1

    @cached_property
    def prices(self) -> dict[ProductKey, UnitPrice]:
        """Price and power of a unit of every product."""
        gpu, prices = self.question.cluster.gpu, list_prices(self.question)
        return prices | {("hb", gpu.idle_name): prices["gpu", gpu.name]}

    @cached_property
    def idle_apart(self) -> bool:
        """Whether phases pay for idle GPUs as for HB domains; else all GPUs are one product."""
        return grows_alone(self.question, self.kind)

    def product_of(self, item: Item) -> tuple[ItemKind, str]:
        """What a line of a bill has units of."""
        idle_apart = item.idle and self.idle_apart
        return ("hb", self.question.cluster.gpu.idle_name) if idle_apart else item.product

    def line_of(self, product: ProductKey) -> LineKey:
        """What the lines of a product name."""
        gpu = self.question.cluster.gpu
        is_idle = product == ("hb", gpu.idle_name)
        return LineKey("hb", gpu.name, idle=True) if is_idle else LineKey(*product)

    @kept()
    def tariff(self, phase: int, product: ProductKey) -> Tariff:
        """The prices of a product in a phase."""
        factor, usd = self.price_factor(phase, product[0]), self.prices[product].usd
        discounts = self.question.sharing.discount
        discount = next((entry for entry in discounts if (entry.kind, entry.item) == product), None)
        steps = [(0, usd * factor)]
        if discount is not None:
            prices = discount.prices(usd)
            steps += [
                (begin, step_usd * factor)
                for begin, step_usd in zip(discount.begins, prices, strict=True)
            ]
        all_units = discount is None or discount.applies == "all-units"
        if owned := owned_units(self.question)[product]:
            return Tariff(((0, 0.0), (owned, usd * factor)), all_units=False)
        return Tariff(tuple(steps), all_units)

    def floor_usd(self, phase: int, product: ProductKey) -> float:
        """The lowest price of a unit up to a phase, whatever the quantity (USD)."""
        # Units may be bought in any earlier phase and stored.
        return min(usd for t in range(phase + 1) for _, usd in self.tariff(t, product).steps)

    def year(self, phase: int) -> float | None:
        """When a phase begins; None where nothing grows."""
        return self.question.years[phase]

    def title(self, phase: int) -> str:
        """`Phase 2027`; empty where nothing grows."""
        year = self.year(phase)
        return "" if year is None else f"Phase {year:g}"

    def years(self, phase: int) -> float:
        """How long a phase lasts."""
        return years_of(self.question, phase)

    def gpus(self, phase: int) -> int:
        """GPUs that may train in a phase."""
        return self.questions[phase].cluster.most_gpus

    def price_factor(self, phase: int, kind: str) -> float:
        """What a phase pays over the prices of the question; fibre follows optics."""
        phases, priced = self.question.phase, {"fibre": "optics"}.get(kind, kind)
        return float(getattr(phases[phase].price, priced)) if phases else 1.0

    def labour_usd(self, phase: int) -> float:
        """Labour for a link added to a switch that stood (USD)."""
        phases = self.question.phase
        return phases[phase].retrofit_usd_per_link if phases else 0.0

    def workloads_in(self, phase: int, island: str) -> tuple[Workload, ...]:
        """What an island trains in a phase, as the phase asks for it."""
        return tuple(
            workload
            for workload in self.questions[phase].workload
            if workload.name in self.islands[island]
        )

    def training_phases(self, island: str) -> list[int]:
        """The phases in which an island trains."""
        return [t for t in self.phases if self.workloads_in(t, island)]

    def site_usd_per_w(self, phase: int, site: Site | None) -> float:
        """Price of drawing a watt at a site until the next phase (USD/W)."""
        terms = objective_at(self.question, site)
        per_kwh = terms.usd_per_kwh * self.price_factor(phase, "energy")
        return self.years(phase) * 8760 / 1000 * terms.pue * per_kwh

    @property
    def supports_standing(self) -> bool:
        """Whether support is of what stands in each phase; else it is a share of what is bought at
        once.
        """
        return len(self.phases) > 1

    def work_usd(
        self, goods_usd: Sequence[float], units_by_phase: Sequence[Mapping[ProductKey, int]]
    ) -> list[float]:
        """Labour for what each phase buys and support of what stands in it, at its prices of one
        unit; of what is bought at once both are shares of that (USD).
        """
        terms = self.question.objective
        # Nothing is bought ahead where there is one phase, so that what stands is what is bought.
        if not self.supports_standing:
            return [owned_usd(terms, usd) - usd for usd in goods_usd]
        return [
            usd * terms.labour_share
            + math.fsum(count * self.support_usd(t, product) for product, count in units.items())
            for t, (usd, units) in enumerate(zip(goods_usd, units_by_phase, strict=True))
        ]

    def whole_work_usd(
        self, goods_usd: float, units_by_phase: Sequence[Mapping[ProductKey, int]]
    ) -> float:
        """The same of all phases together, as labour is one share of whatever is bought (USD)."""
        return math.fsum(
            self.work_usd([goods_usd, *(0.0 for _ in self.phases[1:])], units_by_phase)
        )

    def support_usd(self, phase: int, product: ProductKey) -> float:
        """What the support of a unit that stands costs until the next phase (USD)."""
        return (
            self.question.objective.support_share
            * self.years(phase)
            * self.tariff(phase, product).steps[0][1]
        )

    def joint(self, stage: GrowthStage, nic: Nic) -> Joint | None:
        """The links of an island into the core of its site; None where there are no cores."""
        return joint_of(self.question, self.kind, stage, nic)

    @cached_property
    def caps(self) -> list[tuple[LimitedSum, float]]:
        """The limits on sums over products."""
        return caps_of(self.question)

    def priced_units(self, units: UnitCounts) -> Counter[ProductKey]:
        """The products that `include` counts, idle GPUs among GPUs unless they are apart."""
        counts = Counter(counted_units(self.question, units))
        if self.idle_apart and "hb" in self.question.objective.include:
            gpu = self.question.cluster.gpu
            counts["gpu", gpu.name] -= units.idle_gpus
            counts["hb", gpu.idle_name] += units.idle_gpus
        return counts

    @kept()
    def units_of(self, island: StandingIsland) -> Counter[ProductKey]:
        """The same of an island as it stands, counted once."""
        return self.priced_units(island.counts)

    def watts(self, units: Mapping[ProductKey, int]) -> float:
        """What units draw (W)."""
        return math.fsum(count * self.prices[product].w for product, count in units.items())

    def sum_of_cap(self, cap: LimitedSum, units_by_place: StandingUnits, t: int) -> float:
        """What all that stands in a phase takes of a limit, cores included, in its unit."""
        units_of_sites = (units for (phase, _), units in units_by_place.items() if phase == t)
        return math.fsum(cap.of(self.prices, units) for units in units_of_sites) / cap.scale

    def facility_powers(self, units_by_place: StandingUnits) -> Iterator[tuple[int, Site, float]]:
        """Phase, site, and facility power of all that stands there then, cores included (W)."""
        for t in self.phases:
            for site in filter(None, self.sites):
                pue = objective_at(self.question, site).pue
                yield t, site, self.watts(units_by_place[t, site.name]) * pue


def core_joints(fleet: Fleet, islands: Sequence[FleetIsland]) -> dict[Place, dict[str, Joint]]:
    """How islands join the core of each site in each phase, by their names, wherever some stand."""
    return {
        (t, _site_name(site)): joints
        for t in fleet.phases
        for site in fleet.sites
        if (
            joints := {
                island.name: state.joint
                for island in islands
                if (state := island.phases[t]) is not None and island.site == site
                if state.joint is not None
            }
        )
    }


def standing_units(
    fleet: Fleet, islands: Sequence[FleetIsland]
) -> dict[Place, Counter[ProductKey]]:
    """What stands in each phase at each site, with the whole switches of its core."""
    units_by_place = {
        (t, _site_name(site)): Counter[ProductKey]() for t in fleet.phases for site in fleet.sites
    }
    for island in islands:
        for t, state in enumerate(island.phases):
            if state is not None:
                units_by_place[t, _site_name(island.site)].update(fleet.units_of(state))
    core = core_switch(fleet.question)
    # Switches of a core are whole for all islands of its site together.
    if core is not None and "switch" in fleet.question.objective.include:
        for place, joints in core_joints(fleet, islands).items():
            ports = sum(joint.core_ports for joint in joints.values())
            units_by_place[place]["switch", core.name] += ceil_ratio(ports, core.radix)
    return units_by_place


def trained_gpus(islands: Iterable[FleetIsland], phase: int) -> int:
    """GPUs on which islands train together in a phase."""
    return sum(
        state.stage.family.gpus for island in islands if (state := island.phases[phase]) is not None
    )


def units_by_phase(
    fleet: Fleet, units_by_place: Mapping[Place, Counter[ProductKey]]
) -> list[Counter[ProductKey]]:
    """What stands in each phase at all sites together."""
    counters = [Counter[ProductKey]() for _ in fleet.phases]
    for (t, _), units in units_by_place.items():
        counters[t].update(units)
    return counters


def products_in_use(fleet: Fleet, islands: Iterable[FleetIsland]) -> Counter[ProductKey]:
    """Units of every product that ever stand, whether they have a price or not; cores among
    them.
    """
    units: Counter[ProductKey] = Counter()
    for island in islands:
        # Nothing is thrown away: what ever stood stands in the last phase.
        last_state = island.phases[-1]
        assert last_state is not None, "an island stands from some phase on"
        units.update(last_state.counts.products)
    if (core := core_switch(fleet.question)) is not None:
        units["switch", core.name] += 1
    return units


def electricity_usd(
    fleet: Fleet, units_by_place: Mapping[Place, Counter[ProductKey]], phase: int
) -> float:
    """Electricity of everything that stands in a phase, each site at its own price (USD)."""
    return math.fsum(
        fleet.watts(units_by_place[phase, _site_name(site)]) * fleet.site_usd_per_w(phase, site)
        for site in fleet.sites
    )


def _site_name(site: Site | None) -> str | None:
    return None if site is None else site.name
