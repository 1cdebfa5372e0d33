"""Could another fleet cost less, or have less regret? Small ones are gone through, each island and
all choices.

An island is left out only where another of its workload never takes more of anything: whatever the
others are, that one is no worse, as bills never fall with units. A network is not timed, and a
choice is not billed, where islands alone, each at the least prices there are, are worth too much.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, product
from operator import add, itemgetter, sub
from typing import NamedTuple

from coopt.instance.couplings import Site
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance, questions_by_gpu
from coopt.instance.texts import exact_amount
from coopt.instance.variants import at_prices
from coopt.plan.schema import Plan
from coopt.verifier.checks.rivals import (
    Counterexample,
    check_claims,
    counterexample,
    may_check_bound,
    note_source,
    note_undecided,
)
from coopt.verifier.checks.verdict import (
    LENIENT,
    ROUNDING,
    SOLVERS_WORD,
    STRICT,
    TOLERANCE,
    Ledger,
    agree,
    is_below,
)
from coopt.verifier.couplings.core import questions_by_core_optic
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    Place,
    StandingIsland,
    products_in_use,
    standing_units,
    trained_gpus,
)
from coopt.verifier.couplings.fleet_paths import (
    GrowingNetwork,
    IslandPath,
    IslandPaths,
    TooManyError,
)
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.couplings.prices import ProductKey, product_counts
from coopt.verifier.couplings.scenarios import (
    ScenarioBest,
    certain_question,
    hopeful_question,
    scenario_bests,
)
from coopt.verifier.couplings.sites import sites_fed
from coopt.verifier.parts.bills import keeps
from coopt.verifier.parts.enumeration import NEAR
from coopt.verifier.parts.optics import undominated
from coopt.verifier.training.caching import kept

MOST_CHOICES = 200_000
MOST_BILLS = 3_000
UNPROVEN = (
    "there are too many networks, or choices of them, to enumerate, so the claim rests on"
    f" {SOLVERS_WORD}"
)


ENUMERATED = "all choices of networks were enumerated"
LACKING = (
    "networks were enumerated, but no choice of them has a value as low as the plan's, so that"
    " better ones may be missing as well"
)


def check_fleet_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility, and the best plan of every scenario, by enumeration where the
    fleet is small.

    It takes longest, and is left out where something else is wrong.
    """
    if not may_check_bound(ledger, plan):
        return
    try:
        _check_best_plans(ledger, instance, plan)
        has_own = _check_bound(ledger, instance, plan)
    except TooManyError:
        note_source(ledger, plan, UNPROVEN)
    else:
        if not any(check.name == "bound-source" for check in ledger.checks):
            note_source(ledger, plan, ENUMERATED if has_own else LACKING)


def _check_bound(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Check that no choice of islands is worth less than the bound, or that there is none; whether
    some choice is worth as little as a plan that is said to be optimal.
    """
    scenarios = scenario_bests(plan)
    if plan.objective.bound is not None and not scenarios:
        # an answer without a plan does not say what is best in each scenario
        hopeful = choices_of(hopeful_question(instance), plan.objective.kind)
        for factors in instance.price_scenarios:
            best_value = hopeful.least_value([ScenarioBest(factors, 0.0)], math.inf, LENIENT)
            scenarios.append(ScenarioBest(factors, best_value))
    choices = choices_of(certain_question(instance), plan.objective.kind)
    own, found = plan.objective.value if plan.status == "optimal" else None, list[float]()
    ceiling = -math.inf if own is None else own * (1 + 2 * TOLERANCE) + TOLERANCE

    def find(bound: float, margin: float) -> Counterexample | None:
        # a regret is rounded as the values are that it is the difference of
        size = max([abs(bound), *(scenario.best for scenario in scenarios)])
        floor = bound - ROUNDING * size if math.isfinite(bound) else bound
        value = choices.least_value(scenarios, max(floor, ceiling), margin)
        found.append(value)
        return counterexample(plan.objective.kind, value if value < floor else None)

    check_claims(ledger, plan, find, "choice of networks")
    return own is None or any(map(math.isfinite, found))


def _check_best_plans(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check what the best plan is worth at every scenario, within limits at the prices of the
    instance.
    """
    kind = plan.objective.kind
    choices = choices_of(hopeful_question(instance), kind)
    for factors, best_value in scenario_bests(plan):
        ceiling = best_value * (1 + 2 * TOLERANCE) + TOLERANCE
        scenario = [ScenarioBest(factors, 0.0)]
        least_value = choices.least_value(scenario, ceiling, STRICT)
        is_best = _is_claim(least_value, best_value)
        if not is_best and not is_below(
            least_value, best_value
        ):  # an island may be in time by rounding alone
            lenient_value = choices.least_value(scenario, ceiling, LENIENT)
            is_best = _is_claim(lenient_value, best_value) or is_below(lenient_value, best_value)
            if is_below(lenient_value, best_value):
                note_undecided(
                    ledger,
                    plan,
                    "in a price scenario, a choice of networks at"
                    f" {exact_amount(kind, lenient_value)}",
                )
        prices = ", ".join(f"{product} x {factor:g}" for product, factor in factors.items())
        fault = (
            f"no choice of networks is at or below {exact_amount(kind, best_value)}, which the"
            " plan states as the best"
            if math.isinf(least_value)
            else f"the best choice of networks is at {exact_amount(kind, least_value)}, but the"
            f" plan says {exact_amount(kind, best_value)}"
        )
        ledger.holds(
            "turns",
            is_best,
            best_value,
            least_value,
            f"In the price scenario ({prices or 'list prices'}), {fault}.",
            TOLERANCE,
        )


def _is_claim(least_value: float, claim: float) -> bool:
    """Whether the least value is the one that is claimed; an infinite one is none."""
    return (
        math.isfinite(least_value)
        and agree(least_value, claim)
        and not is_below(least_value, claim)
    )


class FleetChoices:
    """All choices of islands for one question; islands are listed once, as prices do not change
    them.
    """

    def __init__(self, question: Instance, kind: ObjectiveKind) -> None:
        self._question, self._kind = question, kind

    def least_value(
        self, scenarios: Sequence[ScenarioBest], ceiling: float, margin: float
    ) -> float:
        """The least value of a choice of islands within all limits, where it is below a ceiling;
        else infinite.

        Raises
        ------
        TooManyError
            Where there are too many islands or choices to go through.
        """
        least_value = math.inf
        for n, (fleet, menus) in enumerate(self._menus(margin)):
            below, all_factors = min(ceiling, least_value), [one.factors for one in scenarios]
            prices = [self._prices(n, tuple(factors.items())) for factors in all_factors or [{}]]
            best = [scenario.best for scenario in scenarios] or [0.0]
            for value in Search(fleet, prices, best, menus, margin, below).values():
                least_value = min(least_value, value)
        return least_value

    @cached_property
    def _fleets(self) -> list[Fleet]:
        """The fleet with each optic that its core may have."""
        questions = questions_by_core_optic(self._question, self._kind)
        return [Fleet(question, self._kind) for question in questions]

    @kept()
    def _menus(self, margin: float) -> list[tuple[Fleet, list[list[list[GrowingNetwork]]]]]:
        """The fleets with the networks that each of their workloads may have, of each kind of
        GPU.
        """
        return [(fleet, self._networks(fleet, margin)) for fleet in self._fleets]

    @kept()
    def _prices(self, n: int, factors: tuple[tuple[str, float], ...]) -> LeastPrices:
        """The least prices of a fleet in a price scenario."""
        fleet = self._fleets[n]
        if not factors:
            return LeastPrices(fleet, fleet)
        return LeastPrices(Fleet(at_prices(fleet.question, dict(factors)), fleet.kind), fleet)

    def _networks(self, fleet: Fleet, margin: float) -> list[list[list[GrowingNetwork]]]:
        """The networks that each workload of a fleet may have, of each kind of GPU."""
        # one network is gone through whatever its designs are
        most = math.inf if fleet.is_one_part else None
        by_gpu = [
            IslandPaths(Fleet(question, self._kind), margin, most)
            for question in questions_by_gpu(fleet.question)
        ]
        return [[paths.networks(name) for paths in by_gpu] for name in fleet.islands]


@lru_cache(maxsize=2)
def choices_of(question: Instance, kind: ObjectiveKind) -> FleetChoices:
    """The choices of a question, kept for what else is checked of its plans."""
    return FleetChoices(question, kind)


def _unbeaten(paths: Sequence[IslandPath]) -> Iterable[IslandPath]:
    """The islands of a workload than which no other one takes less of anything."""
    names = sorted(
        {product for path in paths for state in path if state for product in state.counts.products}
    )
    return undominated({_row(path, names): path for path in paths}).values()


def _row(path: IslandPath, names: Sequence[ProductKey]) -> tuple[int, ...]:
    """All that an island takes in each phase: units, GPUs, links into a core, racks, and links
    added to switches.
    """
    island, amounts = FleetIsland("", None, path), list[int]()
    for t, state in enumerate(path):
        if state is None:
            amounts += [0] * (len(names) + 5)
        else:
            units = state.counts
            amounts += [units.products[name] for name in names]
            amounts += [
                units.active_gpus,
                units.idle_gpus,
                units.core_ports,
                state.racks,
                island.links_added(t),
            ]
    return tuple(amounts)


class LeastPrices:
    """What islands add to the objective of a fleet at least: every unit at the lowest price up to
    the phase that needs it.

    Parameters
    ----------
    counted
        The same fleet at whatever prices, which counts units.

    Attributes
    ----------
    fleet
        The fleet at these prices.
    """

    def __init__(self, fleet: Fleet, counted: Fleet) -> None:
        self.fleet, self._counted = fleet, counted

    def of_units(self, t: int, site: Site | None, units: Mapping[ProductKey, int]) -> float:
        """What units that stand in a phase add there: what they cost less a phase later is a later
        phase's.
        """
        return sum(count * self._of_unit(t, site, name) for name, count in units.items())

    def of_island(self, island: FleetIsland) -> float:
        """What an island adds, with its labour for retrofits."""
        fleet, least = self.fleet, 0.0
        for t, state in enumerate(island.phases):
            if state is not None:
                least += self.of_units(t, island.site, self._counted.units_of(state))
                if fleet.kind != "power" and (labour_usd := fleet.labour_usd(t)):
                    least += labour_usd * island.links_added(t)
        return least

    @kept()
    def of_network(self, network: GrowingNetwork, site: Site | None) -> float:
        """What any island that grows through a network adds at least: units never fall with
        uplinks.
        """
        least, standing = 0.0, list[StandingIsland]()
        for t in self.fleet.phases:
            standing = network.fewest.get(t, standing)
            least += min(
                (self.of_units(t, site, self._counted.units_of(state)) for state in standing),
                default=0.0,
            )
        return least

    @kept()
    def _of_unit(self, t: int, site: Site | None, name: ProductKey) -> float:
        fleet, is_last = self.fleet, t + 1 == len(self.fleet.phases)
        w = fleet.prices[name].w
        if fleet.kind == "power":
            return w if is_last else 0.0
        usd = fleet.floor_usd(t, name)
        usd -= 0.0 if is_last else fleet.floor_usd(t + 1, name)
        if fleet.kind == "capex":
            return usd
        units_by_phase = [Counter({name: int(phase == t)}) for phase in fleet.phases]
        return usd + fleet.whole_work_usd(usd, units_by_phase) + w * fleet.site_usd_per_w(t, site)


class SitedIsland(NamedTuple):
    """An island at a site with the least it can be worth at every scenario."""

    island: FleetIsland
    least_values: tuple[float, ...]


class Search:
    """Go through all choices of an island for each workload, and a site for each island, that may
    be worth less than a ceiling.

    Networks are timed only where islands on them may be part of such a choice at the least prices
    there are, beside the cheapest islands of all other workloads.
    """

    def __init__(
        self,
        fleet: Fleet,
        prices: Sequence[LeastPrices],
        best: Sequence[float],
        menus: Sequence[Sequence[Sequence[GrowingNetwork]]],
        margin: float,
        ceiling: float,
    ) -> None:
        self._fleet, self._margin, self._choices, self._bills = fleet, margin, 0, 0
        self._prices, self._best, self._ceiling = prices, best, ceiling
        named = list(zip(fleet.islands, menus, strict=True))
        least = [self._least_of(name, menu) for name, menu in named]
        self._menus = [
            self._at_sites(name, menu, [*least[:n], *least[n + 1 :]])
            for n, (name, menu) in enumerate(named)
        ]
        self._rest = [(0.0,) * len(self._best)]
        for menu in reversed(self._menus):
            least_values = (
                min((choice.least_values[n] for choice in menu), default=math.inf)
                for n in range(len(self._best))
            )
            # the least that workloads still to come can add, scenario by scenario
            self._rest.insert(0, tuple(map(add, least_values, self._rest[0])))

    def _least_of(self, name: str, menu: Sequence[Sequence[GrowingNetwork]]) -> list[float]:
        """The least that any island of a workload is worth, scenario by scenario; 0 where no
        ceiling asks for it.
        """
        if math.isinf(self._ceiling):
            return [0.0 for _ in self._prices]
        networks = list(chain.from_iterable(menu))
        return [self._cheapest(prices, name, networks) for prices in self._prices]

    def _cheapest(
        self, prices: LeastPrices, name: str, networks: Sequence[GrowingNetwork]
    ) -> float:
        least_value = math.inf
        ranked = [
            (prices.of_network(network, site), n, site)
            for n, network in enumerate(networks)
            for site in self._fleet.sites
        ]
        for floor, n, site in sorted(ranked, key=itemgetter(0)):
            if floor >= least_value:
                break
            values = (
                prices.of_island(FleetIsland(name, site, path)) for path in networks[n].islands
            )
            least_value = min(least_value, min(values, default=math.inf))
        return least_value

    def _at_sites(
        self,
        name: str,
        menu: Sequence[Sequence[GrowingNetwork]],
        others: Sequence[Sequence[float]],
    ) -> list[SitedIsland]:
        """The islands of a workload that may be part of a choice below the ceiling, where others
        are worth so much at least.
        """
        sites = self._fleet.sites
        choices = list[SitedIsland]()
        for networks in menu:
            wanted = (
                network
                for network in networks
                if any(
                    self._may_win([at.of_network(network, site) for at in self._prices], others)
                    for site in sites
                )
            )
            paths = _unbeaten([path for network in wanted for path in network.islands])
            for path, site in product(paths, sites):
                island = FleetIsland(name, site, path)
                values = tuple(at.of_island(island) for at in self._prices)
                if self._may_win(values, others):
                    choices.append(SitedIsland(island, values))
        return sorted(choices, key=lambda choice: choice.least_values)

    def _may_win(self, values: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
        """Whether an island worth so much at least, scenario by scenario, may be part of a choice
        below the ceiling.
        """
        if math.isinf(self._ceiling):
            return True
        sums = [sum(of_scenario) for of_scenario in zip(values, *others, strict=True)]
        # sums in another order may come out lower
        slack = NEAR * max(map(abs, [*sums, *self._best]))
        return math.isfinite(slack) and max(map(sub, sums, self._best)) - slack < self._ceiling

    def values(self) -> Iterator[float]:
        """Values of choices within all limits, each lower than the ceiling and those before it."""
        least_value = self._ceiling

        def deeper(islands: tuple[FleetIsland, ...], so_far: tuple[float, ...]) -> Iterator[float]:
            nonlocal least_value
            floor = max(map(sub, map(add, so_far, self._rest[len(islands)]), self._best))
            may_be_less = math.isfinite(floor) and (floor < least_value or math.isinf(least_value))
            if not (may_be_less and has_room(self._fleet, islands)):
                return
            if len(islands) == len(self._menus):
                value = self._value(islands)
                if value < least_value:
                    least_value = value
                    yield value
                return
            for choice in self._menus[len(islands)]:
                self._choices += 1
                self._give_up(self._choices > MOST_CHOICES)
                yield from deeper(
                    (*islands, choice.island), tuple(map(add, so_far, choice.least_values))
                )

        yield from deeper((), (0.0,) * len(self._best))

    def _value(self, islands: Sequence[FleetIsland]) -> float:
        """What a choice is worth; infinite where it is over a limit."""
        self._bills += 1
        self._give_up(self._bills > MOST_BILLS)
        return value_of(
            self._fleet, [at.fleet for at in self._prices], self._best, islands, self._margin
        )

    def _give_up(self, many: bool) -> None:
        if many and not self._fleet.is_one_part:
            raise TooManyError


def has_room(fleet: Fleet, islands: Sequence[FleetIsland]) -> bool:
    """Whether there are as many GPUs as islands take, and products in use are few enough."""
    if any(trained_gpus(islands, t) > fleet.gpus(t) for t in fleet.phases):
        return False
    in_use = products_in_use(fleet, islands)
    return all(len(names) <= limit for _, limit, names in product_counts(fleet.question, in_use))


def value_of(
    fleet: Fleet,
    scenarios: Sequence[Fleet],
    bests: Sequence[float],
    islands: Sequence[FleetIsland],
    margin: float,
) -> float:
    """What islands of all workloads are worth, beyond the best at the worst scenario; infinite over
    a limit.
    """
    units = standing_units(fleet, islands)
    if not _keeps_limits(fleet, islands, units, margin):
        return math.inf
    totals = [fleet_total(at, islands, units).of(at.kind) for at in scenarios]
    return max(
        [0.0, *(total - best_value for total, best_value in zip(totals, bests, strict=True))]
    )


def _keeps_limits(
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    units_by_place: Mapping[Place, Counter[ProductKey]],
    margin: float,
) -> bool:
    """Whether islands keep every limit; with a negative `margin` to within the rounding of sums."""
    limits = fleet.question.limits
    for t in fleet.phases:
        states = [state for island in islands if (state := island.phases[t]) is not None]
        if trained_gpus(islands, t) > fleet.gpus(t):
            return False
        if limits.racks is not None and sum(state.racks for state in states) > limits.racks:
            return False
        if not all(
            keeps(fleet.sum_of_cap(cap, units_by_place, t), limit, margin)
            for cap, limit in fleet.caps
        ):
            return False
    site_powers = ((site, drawn_w) for _, site, drawn_w in fleet.facility_powers(units_by_place))
    if not sites_fed(site_powers, margin):
        return False
    return limits.capex_usd is None or keeps(
        fleet_total(fleet, islands, units_by_place).capex_usd, limits.capex_usd, margin
    )
