"""Go through the cases of a proof: what each of its leaves proves, and the choices that it leaves
open.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance, questions_by_gpu
from coopt.instance.texts import exact_amount
from coopt.instance.variants import at_prices
from coopt.plan.schema import Cases, IslandCut, Leaf, Node, Plan, ProductCut, Proof, PurchaseCut
from coopt.verifier.bounds.fleets import has_room, value_of
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, agree
from coopt.verifier.couplings.core import questions_by_core_optic
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.couplings.fleet_paths import IslandPaths, TooManyError
from coopt.verifier.couplings.scenarios import (
    ScenarioBest,
    certain_question,
    hopeful_question,
    scenario_bests,
)
from coopt.verifier.parts.enumeration import SLACK
from coopt.verifier.proofs.choices import OpenChoices, OpenIsland
from coopt.verifier.proofs.leaves import LeafPrices, NothingProvenError, Terms, UnitRange
from coopt.verifier.proofs.menus import (
    FloorPrices,
    IslandMenu,
    MenuIsland,
    OpenDomains,
    PriceFloors,
)
from coopt.verifier.proofs.rivals import Measure, UnbeatenIslands, Usage

JUST_ABOVE = 1 + 1e-12
"""The best plan at other prices has to be left open by a bound just above it, which shows that it
is there.
"""

MOST_OPEN = 200_000
"""Choices that all cases together may leave open."""


@dataclass(frozen=True)
class CaseLimits:
    """What a case allows: products that are counted and barred, ranges of purchases and of what
    islands have.
    """

    in_use: frozenset[str] = frozenset()
    barred: frozenset[str] = frozenset()
    purchases: dict[tuple[int, str], UnitRange] = field(default_factory=dict)
    islands: dict[str, tuple[tuple[Measure, int, int | None], ...]] = field(default_factory=dict)

    def allows(self, name: str, usage: Usage) -> bool:
        """Whether an island of a workload that takes this is in the case."""
        amounts = usage.amounts
        cuts = self.islands.get(name, ())
        return self.may_allow(name, usage) and all(
            amounts.get(measure, 0) >= fewest for measure, fewest, _ in cuts
        )

    def may_allow(self, name: str, usage: Usage) -> bool:
        """Whether an island that takes at least this may be in the case."""
        if not self.barred.isdisjoint(usage.uses):
            return False
        cuts, amounts = self.islands.get(name, ()), usage.amounts
        return all(limit is None or amounts.get(measure, 0) <= limit for measure, _, limit in cuts)


class WorkloadMenu(NamedTuple):
    """The islands of a workload, or of the network that all have in turn, by their kind of GPUs."""

    name: str
    kinds: list[IslandMenu]

    @property
    def listed_islands(self) -> Iterator[MenuIsland]:
        """The islands that were listed so far."""
        return (island for menu in self.kinds for island in menu.listed_islands)


class CheapIslands:
    """Islands of a workload that are in a case and cost less than a ceiling at some site."""

    def __init__(
        self, prices: LeafPrices, case: CaseLimits, name: str, floors: PriceFloors, ceiling: int
    ) -> None:
        self.ceiling, self._prices, self._case, self._name = ceiling, prices, case, name
        self._attachments = floors.attachments

    def __call__(self, usage: Usage) -> bool:
        """Whether an island that takes at least so much may be one of them."""
        sites = range(len(self._attachments))
        return self._case.may_allow(self._name, usage) and any(
            self._prices.price(usage.amounts, site) < self.ceiling for site in sites
        )

    def attachments(self, domains: OpenDomains) -> Iterator[int]:
        """The NIC attachments of networks on HB domains that may belong to one of them."""
        if not self._case.may_allow(self._name, domains.usage):
            return
        for site, attachments in enumerate(self._attachments):
            price = self._prices.price(domains.usage.amounts, site)
            if price < self.ceiling:
                # networks of a single domain have no NIC attachment
                yield id(None)
            for usd, attachment in attachments:
                if (
                    domains.installed * usd >= self.ceiling - price
                ):  # a float would round a large price
                    break
                yield attachment


class CaseReader:
    """Prove that no choice of islands is worth less than a bound, case by case.

    Parameters
    ----------
    fleet
        The question at the prices of its bill.
    menus
        The islands of each workload.
    scenarios
        The question in each price scenario, and what the best plan is worth there; none where cost
        is minimised.
    bound
        In the unit of the objective; infinite where nothing is to be feasible.

    Attributes
    ----------
    least
        The bound that is proven, so far.
    leaves, opened
        Cases looked into, and choices that they left open.
    """

    def __init__(
        self,
        fleet: Fleet,
        menus: Sequence[WorkloadMenu],
        scenarios: Sequence[tuple[Fleet, float]],
        bound: float,
    ) -> None:
        self._fleet, self._terms, self._menus, self._bound = (
            fleet,
            Terms(fleet, scenarios),
            menus,
            bound,
        )
        self._price_floors = {menu.paths: FloorPrices(menu.paths) for menu in menus[0].kinds}
        self.least, self.leaves, self.opened, self.why = bound, 0, 0, ""
        self._floors = dict[IslandPaths, PriceFloors]()
        self._kinds = {name: product[0] for name, product in self._terms.products.items()}
        self._most = fleet.question.sharing.most_products.given

    def read(self, tree: Node) -> None:
        """Go through all cases of a tree."""
        core = self._terms.core
        start = CaseLimits()
        self._read(
            tree, start if core is None else self._with_product(start, f"switch {core.name}")
        )

    def _read(self, node: Node, case: CaseLimits) -> None:
        if isinstance(node, Leaf):
            self._leaf(node, case)
            return
        for child, limits in self._children(node, case):
            self._read(child, limits)

    def _children(
        self, node: ProductCut | PurchaseCut | IslandCut, case: CaseLimits
    ) -> Iterator[tuple[Node, CaseLimits]]:
        """Both sides of a cut; together they hold every choice of the case."""
        if isinstance(node, ProductCut):
            yield node.without, replace(case, barred=case.barred | {node.product})
            yield node.among, self._with_product(case, node.product)
        elif isinstance(node, PurchaseCut):
            key = node.phase, node.bought
            fewest, limit = case.purchases.get(key, UnitRange())
            yield (
                node.up_to,
                replace(
                    case,
                    purchases=case.purchases
                    | {
                        key: UnitRange(
                            fewest, node.most if limit is None else min(limit, node.most)
                        )
                    },
                ),
            )
            yield (
                node.beyond,
                replace(
                    case,
                    purchases=case.purchases | {key: UnitRange(max(fewest, node.most + 1), limit)},
                ),
            )
        else:
            cuts, measure = case.islands.get(node.island, ()), (node.phase, node.product)
            yield (
                node.up_to,
                replace(
                    case, islands=case.islands | {node.island: (*cuts, (measure, 0, node.most))}
                ),
            )
            yield (
                node.beyond,
                replace(
                    case,
                    islands=case.islands | {node.island: (*cuts, (measure, node.most + 1, None))},
                ),
            )

    def _with_product(self, case: CaseLimits, name: str) -> CaseLimits:
        """The case in which a product may be used; where as many of its kind are as may be, the
        others are not.
        """
        in_use, kind = case.in_use | {name}, self._kinds.get(name)
        same_kind = {
            product for product, product_kind in self._kinds.items() if product_kind == kind
        }
        if kind in self._most and len(same_kind & in_use) >= self._most[kind]:
            return replace(case, in_use=in_use, barred=case.barred | (same_kind - in_use))
        return replace(case, in_use=in_use)

    def _leaf(self, leaf: Leaf, case: CaseLimits) -> None:
        """Note what a leaf proves, and the value of choices it leaves open."""
        self.leaves += 1
        if any(limit is not None and limit < fewest for fewest, limit in case.purchases.values()):
            return  # no choice buys so, and of none everything is true
        if leaf.costs and math.isinf(self._bound):
            self._lower(
                -math.inf,
                "the proof bounds costs, but has to show that no choice meets all bounds and"
                " limits",
            )
            return
        try:
            prices = LeafPrices(self._terms, leaf, case.purchases)
        except NothingProvenError as error:
            self._lower(-math.inf, str(error))
            return
        # from which sum on a leaf is closed: without costs, limits are exceeded above 0; the bound
        # of a plan has its last digits rounded
        of_bound = Fraction(self._bound) * (1 - SLACK) * prices.scale if leaf.costs else 1
        goal = math.ceil(of_bound)
        self._floors = {
            paths: floors.floors(prices.by_site, case.barred)
            for paths, floors in self._price_floors.items()
        }
        least_prices = self._least_prices(prices, case, goal)
        if prices.fixed + sum(least_prices) >= goal:
            return
        if not leaf.costs:
            self._lower(-math.inf, "some choice may meet all bounds and limits")
        elif (proven := self._go_through(prices, case, least_prices, goal)) < goal:
            self._lower(
                proven / prices.scale,
                "the proof's multipliers prove less than the bound and leave too many choices to"
                " price",
            )

    def _lower(self, bound: float, reason: str) -> None:
        if bound < self.least:
            self.least, self.why = bound, f"case {self.leaves}: {reason}"

    def _least_prices(self, prices: LeafPrices, case: CaseLimits, goal: int) -> list[int]:
        """The least price of an island of each workload, as far as it takes to close the leaf.

        Workloads that have an island in the case, as far as is known, come first: their prices
        leave less to those for which the list has to go on to find one, or to show that none costs
        little.
        """
        floors = [
            min(self._floor(kind.paths, kind.fewest) for kind in menu.kinds) for menu in self._menus
        ]
        prices_found = [0 if math.isinf(floor) else math.floor(floor) for floor in floors]
        has_island = [
            any(case.allows(menu.name, island.usage) for island in menu.listed_islands)
            for menu in self._menus
        ]
        for w in sorted(range(len(prices_found)), key=lambda w: not has_island[w]):
            # from here on the leaf is closed, whatever others cost
            ceiling = goal - prices.fixed - sum(prices_found) + prices_found[w]
            if ceiling <= prices_found[w]:
                break
            for open_island in self._islands_below(
                prices, case, self._menus[w], ceiling, falling=True
            ):
                ceiling = open_island.price
            prices_found[w] = ceiling
        return prices_found

    def _floor(self, paths: IslandPaths, gpus: int) -> float:
        """The least price of an island of so many GPUs of a kind in the leaf that is looked
        into.
        """
        with_network = gpus > max(hb.size for hb in paths.fleet.question.network.hb_domains)
        floors = self._floors[paths]
        return gpus * (floors.with_network if with_network else floors.domain)

    def _islands_below(
        self,
        prices: LeafPrices,
        case: CaseLimits,
        menu: WorkloadMenu,
        ceiling: int,
        *,
        falling: bool = False,
    ) -> Iterator[OpenIsland]:
        """The islands of a workload, at each site, that cost less than a ceiling; a falling one
        falls to each.
        """
        for kind in menu.kinds:
            floors = self._floors[kind.paths]
            selection = CheapIslands(prices, case, menu.name, floors, ceiling)
            for gpus in kind.sizes:
                if self._floor(kind.paths, gpus) >= ceiling:
                    break
                for island in kind.of_size(gpus, selection):
                    if not case.allows(menu.name, island.usage):
                        continue
                    for site in range(len(prices.by_site)):
                        price = prices.price(island.usage.amounts, site)
                        if price < ceiling:
                            ceiling = selection.ceiling = price if falling else ceiling
                            yield OpenIsland(price, site, island)

    def _go_through(
        self, prices: LeafPrices, case: CaseLimits, least_prices: Sequence[int], goal: int
    ) -> int:
        """Work out every choice that the prices leave open; what is proven, the goal where they are
        few enough.
        """
        ceiling = goal - prices.fixed
        # an island costs no more above the cheapest of its workload than the cheapest choice leaves
        # below the goal
        room, pairs = ceiling - sum(least_prices), zip(self._menus, least_prices, strict=True)
        menus = [
            list(self._islands_below(prices, case, menu, least_price + room))
            for menu, least_price in pairs
        ]
        choices = OpenChoices(menus, prices.exact, ceiling)
        if choices.least >= ceiling:
            return goal
        try:
            for islands in choices.choices_below(MOST_OPEN - self.opened):
                names = zip(self._menus, islands, strict=True)
                sites = self._fleet.sites
                self._work_out(
                    [
                        FleetIsland(menu.name, sites[island.site], island.island.path)
                        for menu, island in names
                    ]
                )
        except TooManyError:
            return prices.fixed + choices.least
        finally:
            self.opened += choices.looked_at
        return goal

    def _work_out(self, islands: Sequence[FleetIsland]) -> None:
        """Bill a choice as plans are billed."""
        scenarios = self._terms.scenarios
        if has_room(self._fleet, islands):
            fleets = [scenario_fleet for scenario_fleet, _ in scenarios] or [self._fleet]
            bests = [best_value for _, best_value in scenarios] or [0.0]
            value = value_of(self._fleet, fleets, bests, islands, LENIENT)
            if value < self._bound * (1 - ROUNDING):
                self._lower(value, "some choice has a value below the bound")


class ProvenCases(NamedTuple):
    """The bound that holds, infinite where nothing is feasible; where it is less than was to be
    proven, why.
    """

    least: float
    leaves: int
    opened: int
    why: str


def prove_cases(instance: Instance, plan: Plan, proof: Proof) -> ProvenCases:
    """What a proof proves of the bound of a plan.

    Where regret is minimised, the best plan of every price scenario is proven first: that
    one is worth what the plan says it is.
    """
    kind = plan.objective.kind
    bound = math.inf if plan.objective.bound is None else plan.objective.bound
    if proof.bound is not None:
        bound = min(bound, float(proof.bound))
    if not instance.price_scenarios or math.isinf(bound):  # limits hold at list prices
        return _islands_of(instance, kind).proven([], bound, proof.cases)
    scenarios = scenario_bests(plan)
    if [factors for factors, _ in scenarios] != instance.price_scenarios or len(proof.bests) != len(
        scenarios
    ):
        return ProvenCases(
            -math.inf, 0, 0, "plan or proof have other price scenarios than the instance"
        )
    certain, leaves, opened = _islands_of(instance, kind), 0, 0
    least, best = instance.efficiencies
    hopeful = certain if least == best else QuestionIslands(hopeful_question(instance), kind)
    for (factors, best_value), cases in zip(scenarios, proof.bests, strict=True):
        outcome = hopeful.proven([ScenarioBest(factors, 0.0)], best_value * JUST_ABOVE, cases)
        leaves, opened = leaves + outcome.leaves, opened + outcome.opened
        # a bound that no choice lowered says that nothing is worth as little as the plan says
        if not agree(outcome.least, best_value) or outcome.least == best_value * JUST_ABOVE:
            reason = (
                "the proof does not show that the best plan of a price scenario is at"
                f" {exact_amount(kind, best_value)}"
            )
            return ProvenCases(-math.inf, leaves, opened, reason)
    outcome = certain.proven(scenarios, bound, proof.cases)
    return outcome._replace(leaves=leaves + outcome.leaves, opened=opened + outcome.opened)


def prove_without_multipliers(instance: Instance, kind: ObjectiveKind) -> ProvenCases:
    """What is shown of a question with no feasible choice by its islands alone: that some workload
    has none.
    """
    islands = _islands_of(instance, kind)
    return islands.proven(
        [], math.inf, [Cases(optic=optic, tree=Leaf(costs=False)) for optic in islands.optics]
    )


def _islands_of(instance: Instance, kind: ObjectiveKind) -> QuestionIslands:
    """The islands of a question at the prices of its bill."""
    return QuestionIslands(certain_question(instance), kind)


class QuestionIslands:
    """A question with every optic that its core may have, and the islands of each, listed once."""

    def __init__(self, question: Instance, kind: ObjectiveKind) -> None:
        self._variants: list[tuple[str | None, Fleet, list[WorkloadMenu]]] = []
        for core_question in questions_by_core_optic(question, kind):
            fleet = Fleet(core_question, kind)
            by_gpu = [
                IslandPaths(Fleet(of_gpu, kind), LENIENT, math.inf)
                for of_gpu in questions_by_gpu(core_question)
            ]
            menus = list[WorkloadMenu]()
            for name in fleet.islands:
                rivals = UnbeatenIslands(fleet, by_bill=not question.price_scenarios)
                kinds = [IslandMenu(fleet, paths, name, rivals) for paths in by_gpu]
                menus.append(WorkloadMenu(name, kinds))
            self._variants.append((core_question.sharing.optic_in_use, fleet, menus))

    @property
    def optics(self) -> list[str | None]:
        """The optics that a core may have; None where there is no core."""
        return [optic for optic, _, _ in self._variants]

    def proven(
        self,
        scenarios: Sequence[ScenarioBest],
        bound: float,
        cases: Sequence[Cases],
    ) -> ProvenCases:
        """What cases prove, in these price scenarios where regret counts."""
        trees, proven = {case.optic: case.tree for case in cases}, ProvenCases(bound, 0, 0, "")
        for optic, fleet, menus in self._variants:
            if optic not in trees:
                return proven._replace(
                    least=-math.inf,
                    why="the proof has no case"
                    + ("" if optic is None else f" for a core with optic {optic!r}"),
                )
            priced_fleets = [
                (Fleet(at_prices(fleet.question, factors), fleet.kind), best_value)
                for factors, best_value in scenarios
            ]
            reader = CaseReader(fleet, menus, priced_fleets, bound)
            reader.read(trees[optic])
            bound_held, reason = min(
                (proven.least, proven.why), (reader.least, reader.why), key=lambda pair: pair[0]
            )
            proven = ProvenCases(
                bound_held, proven.leaves + reader.leaves, proven.opened + reader.opened, reason
            )
        return proven
