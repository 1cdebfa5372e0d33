"""Go through the cases of a proof: what each of its leaves proves, and the choices that it leaves open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from coopt.instance.couplings import Losses
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_prices
from coopt.plan.claims import Cases, IslandCut, Leaf, Node, ProductCut, Proof, PurchaseCut
from coopt.plan.schema import Plan
from coopt.verifier.bounds.fleets import has_room, value_of
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, agree
from coopt.verifier.couplings.core import questions_by_core_optic
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.couplings.fleet_paths import IslandPaths, TooManyError
from coopt.verifier.couplings.outlooks import certain_question, question_at_list_prices
from coopt.verifier.proofs.choices import OpenChoices, OpenIsland
from coopt.verifier.proofs.leaves import SLACK, LeafPrices, NothingProvenError, Terms, UnitRange
from coopt.verifier.proofs.menus import FloorPrices, IslandMenu, OpenDomains, PriceFloors
from coopt.verifier.proofs.rivals import Measure, Taken, UnbeatenIslands

JUST_ABOVE = 1 + 1e-12
"""The best plan at other prices has to be left open by a bound just above it, which shows that it is there."""

MOST_OPEN = 200_000
"""Choices that all cases together may leave open."""


@dataclass(frozen=True)
class CaseLimits:
    """What a case allows: products that are counted and barred, ranges of purchases and of what islands have."""

    counted: frozenset[str] = frozenset()
    barred: frozenset[str] = frozenset()
    bought: dict[tuple[int, str], UnitRange] = field(default_factory=dict)
    islands: dict[str, tuple[tuple[Measure, int, int | None], ...]] = field(default_factory=dict)

    def allows(self, name: str, taken: Taken) -> bool:
        """Whether an island of a workload that takes this is in the case."""
        amounts = taken.amounts
        cuts = self.islands.get(name, ())
        return self.may_allow(name, taken) and all(amounts.get(measure, 0) >= least for measure, least, _ in cuts)

    def may_allow(self, name: str, least: Taken) -> bool:
        """Whether an island that takes at least this may be in the case."""
        if not self.barred.isdisjoint(least.uses):
            return False
        cuts, amounts = self.islands.get(name, ()), least.amounts
        return all(most is None or amounts.get(measure, 0) <= most for measure, _, most in cuts)


class CheapIslands:
    """Islands of a workload that are in a case and cost less than a ceiling at some site."""

    def __init__(self, prices: LeafPrices, case: CaseLimits, name: str, floors: PriceFloors, ceiling: int) -> None:
        self.ceiling, self._prices, self._case, self._name = ceiling, prices, case, name
        self._gears = floors.gears

    def __call__(self, least: Taken) -> bool:
        """Whether an island that takes at least so much may be one of them."""
        sites = range(len(self._gears))
        return self._case.may_allow(self._name, least) and any(
            self._prices.price(least.amounts, site) < self.ceiling for site in sites
        )

    def gears(self, domains: OpenDomains) -> Iterator[int]:
        """The gears of networks on HB domains that may belong to one of them."""
        if not self._case.may_allow(self._name, domains.least):
            return
        for site, gears in enumerate(self._gears):
            price = self._prices.price(domains.least.amounts, site)
            if price < self.ceiling:
                yield id(None)
            for usd, gear in gears:
                if domains.installed * usd >= self.ceiling - price:  # a float would round a large price
                    break
                yield gear


class CaseReader:
    """Prove that no choice of islands is worth less than a bound, case by case.

    Parameters
    ----------
    fleet
        The question at the prices of its bill.
    menus
        The islands of each workload.
    outlooks
        The question at the prices of each outlook, and what the best plan then is worth; none where cost is minimised.
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
        self, fleet: Fleet, menus: Sequence[IslandMenu], outlooks: Sequence[tuple[Fleet, float]], bound: float
    ) -> None:
        self._fleet, self._terms, self._menus, self._bound = fleet, Terms(fleet, outlooks), menus, bound
        self._price_floors = FloorPrices(fleet, menus[0].gears)
        self.least, self.leaves, self.opened, self.why = bound, 0, 0, ""
        self._floors = PriceFloors(0.0, 0.0, [])
        self._kinds = {name: product[0] for name, product in self._terms.products.items()}
        self._most = fleet.question.sharing.most_products.given

    def read(self, tree: Node) -> None:
        """Go through all cases of a tree."""
        core = self._terms.core
        start = CaseLimits()
        self._read(tree, start if core is None else self._with_product(start, f"switch {core.name}"))

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
            least, most = case.bought.get(key, UnitRange())
            yield (
                node.up_to,
                replace(
                    case,
                    bought=case.bought | {key: UnitRange(least, node.most if most is None else min(most, node.most))},
                ),
            )
            yield node.beyond, replace(case, bought=case.bought | {key: UnitRange(max(least, node.most + 1), most)})
        else:
            cuts, measure = case.islands.get(node.island, ()), (node.phase, node.product)
            yield node.up_to, replace(case, islands=case.islands | {node.island: (*cuts, (measure, 0, node.most))})
            yield (
                node.beyond,
                replace(case, islands=case.islands | {node.island: (*cuts, (measure, node.most + 1, None))}),
            )

    def _with_product(self, case: CaseLimits, name: str) -> CaseLimits:
        """The case in which a product may be used; where as many of its kind are as may be, the others are not."""
        counted, kind = case.counted | {name}, self._kinds.get(name)
        mine = {other for other, its in self._kinds.items() if its == kind}
        if kind in self._most and len(mine & counted) >= self._most[kind]:
            return replace(case, counted=counted, barred=case.barred | (mine - counted))
        return replace(case, counted=counted)

    def _leaf(self, leaf: Leaf, case: CaseLimits) -> None:
        """Note what a leaf proves, and the value of choices it leaves open."""
        self.leaves += 1
        if any(most is not None and most < least for least, most in case.bought.values()):
            return  # no choice buys so, and of none everything is true
        if leaf.costs and math.isinf(self._bound):
            self._lower(-math.inf, "it counts costs, which do not show that no choice keeps all limits")
            return
        try:
            prices = LeafPrices(self._terms, leaf, case.bought)
        except NothingProvenError as error:
            self._lower(-math.inf, str(error))
            return
        goal = self._goal(leaf, prices)
        self._floors = self._price_floors.floors(prices.by_site, case.barred)
        least = self._cheapest(prices, case, goal)
        bound = prices.fixed + sum(least)
        if bound >= goal:
            return
        if not leaf.costs:
            self._lower(-math.inf, "some choice may be within all limits")
        elif (proven := self._go_through(prices, case, least, goal)) < goal:
            self._lower(proven / prices.scale, "it proves less, and leaves many choices open")

    def _goal(self, leaf: Leaf, prices: LeafPrices) -> int:
        """From which sum on a leaf is closed: without costs, limits are exceeded above 0."""
        if not leaf.costs:
            return 1
        return math.ceil(Fraction(self._bound) * (1 - SLACK) * prices.scale)

    def _lower(self, bound: float, why: str) -> None:
        if bound < self.least:
            self.least, self.why = bound, f"case {self.leaves}: {why}"

    def _cheapest(self, prices: LeafPrices, case: CaseLimits, goal: int) -> list[int]:
        """The least price of an island of each workload, as far as it takes to close the leaf.

        Workloads that have an island in the case, as far as is known, come first: their prices leave less to those for
        which the list has to go on to find one, or to show that none costs little.
        """
        floors = [self._floor(menu.fewest) for menu in self._menus]
        found = [0 if math.isinf(floor) else math.floor(floor) for floor in floors]
        known = [any(case.allows(menu.name, island.taken) for island in menu.listed) for menu in self._menus]
        for w in sorted(range(len(found)), key=lambda w: not known[w]):
            least = goal - prices.fixed - sum(found) + found[w]  # from here on the leaf is closed, whatever others cost
            if least <= found[w]:
                break
            for one in self._below(prices, case, self._menus[w], least, falling=True):
                least = one.price
            found[w] = least
        return found

    def _floor(self, gpus: int) -> float:
        """The least price of an island of so many GPUs in the leaf that is looked into."""
        with_network = gpus > max(hb.size for hb in self._fleet.question.network.hb_domains)
        return gpus * (self._floors.with_network if with_network else self._floors.alone)

    def _below(
        self, prices: LeafPrices, case: CaseLimits, menu: IslandMenu, ceiling: int, *, falling: bool = False
    ) -> Iterator[OpenIsland]:
        """The islands of a workload, at each site, that cost less than a ceiling; a falling one falls to each."""
        cheap = CheapIslands(prices, case, menu.name, self._floors, ceiling)
        for gpus in menu.sizes:
            if self._floor(gpus) >= cheap.ceiling:
                return
            for island in menu.of_size(gpus, cheap):
                if case.allows(menu.name, island.taken):
                    for site in range(len(prices.by_site)):
                        price = prices.price(island.taken.amounts, site)
                        if price < cheap.ceiling:
                            cheap.ceiling = price if falling else ceiling
                            yield OpenIsland(price, site, island)

    def _go_through(self, prices: LeafPrices, case: CaseLimits, least: Sequence[int], goal: int) -> int:
        """Work out every choice that the prices leave open; what is proven, the goal where they are few enough."""
        ceiling = goal - prices.fixed
        room, pairs = ceiling - sum(least), zip(self._menus, least, strict=True)
        menus = [list(self._below(prices, case, menu, low + room)) for menu, low in pairs]
        choices = OpenChoices(menus, prices.exact, ceiling)
        if choices.least >= ceiling:
            return goal
        try:
            for chosen in choices.below(MOST_OPEN - self.opened):
                names = zip(self._menus, chosen, strict=True)
                sites = self._fleet.sites
                self._work_out([FleetIsland(menu.name, sites[one.site], one.island.path) for menu, one in names])
        except TooManyError:
            return prices.fixed + choices.least
        finally:
            self.opened += choices.looked_at
        return goal

    def _work_out(self, chosen: Sequence[FleetIsland]) -> None:
        """Bill a choice as plans are billed."""
        outlooks = self._terms.outlooks
        if has_room(self._fleet, chosen):
            fleets, bests = [one for one, _ in outlooks] or [self._fleet], [best for _, best in outlooks] or [0.0]
            value = value_of(self._fleet, fleets, bests, chosen, LENIENT)
            if value < self._bound * (1 - ROUNDING):
                self._lower(value, "a choice is worth less")


class ProvenCases(NamedTuple):
    """The bound that holds, infinite where nothing is feasible; where it is less than was to be proven, why."""

    least: float
    leaves: int
    opened: int
    why: str


def prove_cases(instance: Instance, plan: Plan, proof: Proof) -> ProvenCases:
    """What a proof proves of the bound of a plan.

    Where regret is minimised, the best plan of every way prices may turn out is proven first: that one is worth what
    the plan says it is.
    """
    kind, losses = plan.objective.kind, instance.losses
    bound = math.inf if plan.objective.bound is None else plan.objective.bound
    if proof.bound is not None:
        bound = min(bound, float(proof.bound))
    if not instance.minimizes_regret or math.isinf(bound):  # limits hold at list prices
        return _asked(instance, kind).proven([], bound, proof.cases)
    turns = [(turn.factors, turn.best) for turn in plan.couplings.turns]
    if [factors for factors, _ in turns] != instance.outlooks or len(proof.bests) != len(turns):
        return ProvenCases(-math.inf, 0, 0, "plan and proof do not have every way that prices may turn out")
    least, most = (question_at_list_prices(instance, factor) for factor in instance.efficiencies)
    certain, leaves, opened = AskedIslands(least, kind, losses), 0, 0
    hopeful = certain if least == most else AskedIslands(most, kind, losses)
    for (factors, best), cases in zip(turns, proof.bests, strict=True):
        found = hopeful.proven([(factors, 0.0)], best * JUST_ABOVE, cases)
        leaves, opened = leaves + found.leaves, opened + found.opened
        # a bound that no choice lowered says that nothing is worth as little as the plan says
        if not agree(found.least, best) or found.least == best * JUST_ABOVE:
            why = f"the best plan at other prices is not shown to be {best:,.2f}"
            return ProvenCases(-math.inf, leaves, opened, why)
    found = certain.proven(turns, bound, proof.cases)
    return found._replace(leaves=leaves + found.leaves, opened=opened + found.opened)


def prove_without_multipliers(instance: Instance, kind: ObjectiveKind) -> ProvenCases:
    """What is shown of a question with no feasible choice by its islands alone: that some workload has none."""
    islands = _asked(instance, kind)
    return islands.proven([], math.inf, [Cases(optic=optic, tree=Leaf(costs=False)) for optic in islands.optics])


def _asked(instance: Instance, kind: ObjectiveKind) -> AskedIslands:
    """The islands of a question at the prices of its bill."""
    return AskedIslands(certain_question(instance), kind, instance.losses)


class AskedIslands:
    """A question with every optic that its core may have, and the islands of each, listed once."""

    def __init__(self, question: Instance, kind: ObjectiveKind, losses: Losses) -> None:
        self._asked: list[tuple[str | None, Fleet, list[IslandMenu]]] = []
        for asked in questions_by_core_optic(question, kind):
            fleet = Fleet(asked, kind)
            paths = IslandPaths(fleet, losses, LENIENT, math.inf)
            by_bill = not question.minimizes_regret
            menus = [IslandMenu(fleet, paths, name, UnbeatenIslands(fleet, by_bill=by_bill)) for name in fleet.islands]
            self._asked.append((asked.sharing.optic_in_use, fleet, menus))

    @property
    def optics(self) -> list[str | None]:
        """The optics that a core may have; None where there is no core."""
        return [optic for optic, _, _ in self._asked]

    def proven(
        self, turns: Sequence[tuple[dict[str, float], float]], bound: float, cases: Sequence[Cases]
    ) -> ProvenCases:
        """What cases prove, at these ways prices may turn out where regret counts."""
        trees, proven = {one.optic: one.tree for one in cases}, ProvenCases(bound, 0, 0, "")
        for optic, fleet, menus in self._asked:
            if optic not in trees:
                return proven._replace(least=-math.inf, why=f"it has no cases for a core with optic {optic!r}")
            outlooks = [(Fleet(at_prices(fleet.question, factors), fleet.kind), best) for factors, best in turns]
            reader = CaseReader(fleet, menus, outlooks, bound)
            reader.read(trees[optic])
            least, why = min((proven.least, proven.why), (reader.least, reader.why), key=lambda one: one[0])
            proven = ProvenCases(least, proven.leaves + reader.leaves, proven.opened + reader.opened, why)
        return proven
