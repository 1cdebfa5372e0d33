"""Could another fleet cost less, or have less regret? Small ones are gone through, each island and all choices.

An island is left out only where another of its workload never takes more of anything: whatever the others are, that
one is no worse, as bills never fall with units. A choice is not billed where its islands alone, each at the least
prices there are, are worth too much.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import add, le, sub
from typing import NamedTuple

from coopt.instance.couplings import Losses
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_prices
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import note_source, note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, STRICT, TOLERANCE, Ledger, agree, below
from coopt.verifier.couplings.core import questions_by_core_optic
from coopt.verifier.couplings.fleet import Fleet, FleetIsland, products_in_use
from coopt.verifier.couplings.fleet_checks import keeps_limits
from coopt.verifier.couplings.fleet_paths import IslandPath, IslandPaths, TooManyError
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.couplings.outlooks import certain_question, hopeful_question
from coopt.verifier.couplings.prices import ProductKey, product_counts

MOST_CHOICES = 200_000
MOST_BILLS = 3_000
UNPROVEN = f"too many islands to go through: it rests on {SOLVERS_WORD}"


def check_fleet_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility, and the best plan of every outlook, by enumeration where the fleet is small.

    It takes longest, and is left out where something else is wrong.
    """
    bound = plan.objective.bound
    if not all(check.ok for check in ledger.checks) or (plan.status != "infeasible" and bound is None):
        return
    try:
        _check_best_plans(ledger, instance, plan)
        _check_bound(ledger, instance, plan)
    except TooManyError:
        note_source(ledger, plan, UNPROVEN)
    else:
        if not any(check.name == "bound-source" for check in ledger.checks):
            note_source(ledger, plan, "all islands and choices were gone through")


def _check_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no choice of islands is worth less than the bound, or that there is none."""
    bound, turns = plan.objective.bound, _turns(plan)
    if bound is not None and not turns:
        turns = _best_plans(instance, plan)
    floor = math.inf if bound is None else bound - ROUNDING * max([abs(bound), *(turn.best for turn in turns)])
    choices = FleetChoices(certain_question(instance), plan.objective.kind, instance.losses)
    near = choices.least_value(turns, floor, LENIENT)
    least = choices.least_value(turns, floor, STRICT) if near < floor else near
    if near < floor <= least:
        note_undecided(ledger, plan, f"a choice of islands worth {near:,.10g}", near)
    name, claimed = ("infeasible", "no choice is feasible") if bound is None else ("bound", f"{bound!r}")
    value = least if math.isfinite(least) else "no feasible choice is worth less"
    why = f"A choice of islands within all limits is worth {least:,.2f}, the plan says {claimed}."
    ledger.holds(name, not least < floor, bound if bound is not None else claimed, value, why, ROUNDING)


class PriceTurn(NamedTuple):
    """A way prices may turn out, and what counts as nothing lost then."""

    factors: dict[str, float]
    best: float


def _turns(plan: Plan) -> list[PriceTurn]:
    """The ways prices may turn out, with the best plan of each; none where cost is minimised."""
    return [PriceTurn(turn.factors, turn.best) for turn in plan.couplings.turns]


def _best_plans(instance: Instance, plan: Plan) -> list[PriceTurn]:
    """The ways prices may turn out, for an answer without a plan that says what is best then; none where cost is
    minimised."""
    choices = FleetChoices(hopeful_question(instance), plan.objective.kind, instance.losses)
    alone = [choices.least_value([PriceTurn(factors, 0.0)], math.inf, LENIENT) for factors in instance.outlooks]
    return [PriceTurn(factors, best) for factors, best in zip(instance.outlooks, alone, strict=True)]


def _check_best_plans(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check what the best plan is worth at every outlook, within limits at the prices of the instance."""
    choices = FleetChoices(hopeful_question(instance), plan.objective.kind, instance.losses)
    for factors, best in _turns(plan):
        ceiling, alone = best * (1 + 2 * TOLERANCE) + TOLERANCE, [PriceTurn(factors, 0.0)]
        least = choices.least_value(alone, ceiling, STRICT)
        found = _found(least, best)
        if not found and not below(least, best):  # an island may be in time by rounding alone
            near = choices.least_value(alone, ceiling, LENIENT)
            found = _found(near, best) or below(near, best)
            if below(near, best):
                note_undecided(ledger, plan, f"at other prices a choice of islands worth {near:,.10g}")
        prices = ", ".join(f"{kind} x {factor:g}" for kind, factor in factors.items())
        why = f"At {prices} the best fleet is worth {least:,.2f}, the plan says {best:,.2f}."
        ledger.holds("turns", found, best, least, why, TOLERANCE)


def _found(least: float, best: float) -> bool:
    """Whether the least value is the one that is claimed; an infinite one is none."""
    return math.isfinite(least) and agree(least, best) and not below(least, best)


class FleetChoices:
    """All choices of islands for one question; islands are listed once, as no price that turns out changes them."""

    def __init__(self, question: Instance, kind: ObjectiveKind, losses: Losses) -> None:
        self._question, self._kind, self._losses = question, kind, losses
        self._listed: dict[float, list[FleetMenus]] = {}

    def least_value(self, turns: Sequence[PriceTurn], ceiling: float, margin: float) -> float:
        """The least value of a choice of islands within all limits, where it is below a ceiling; else infinite.

        Raises
        ------
        TooManyError
            Where there are too many islands or choices to go through.
        """
        found = math.inf
        for fleet, menus in self._menus(margin):
            for value in Search(fleet, turns, menus, margin).values_below(min(ceiling, found)):
                found = min(found, value)
        return found

    def _menus(self, margin: float) -> list[FleetMenus]:
        if margin not in self._listed:
            fleets = [Fleet(asked, self._kind) for asked in questions_by_core_optic(self._question, self._kind)]
            listed = ((fleet, IslandPaths(fleet, self._losses, margin)) for fleet in fleets)
            self._listed[margin] = [
                FleetMenus(fleet, [_unbeaten(paths.of(name)) for name in fleet.islands]) for fleet, paths in listed
            ]
        return self._listed[margin]


class FleetMenus(NamedTuple):
    """A fleet with one optic of its core, and the islands that each of its workloads may have."""

    fleet: Fleet
    menus: list[list[IslandPath]]


def _unbeaten(paths: Sequence[IslandPath]) -> list[IslandPath]:
    """The islands of a workload than which no other one takes less of anything."""
    names = sorted({product for path in paths for here in path if here for product in here.counts.products})
    rows = {_row(path, names): path for path in paths}
    kept: list[tuple[int, ...]] = []
    for row in sorted(rows, key=lambda row: (sum(row), row)):
        if not any(all(map(le, other, row)) for other in kept):
            kept.append(row)
    return [rows[row] for row in kept]


def _row(path: IslandPath, names: Sequence[ProductKey]) -> tuple[int, ...]:
    """All that an island takes in each phase: units, GPUs, links into a core, racks, and links added to switches."""
    island, found = FleetIsland("", None, path), list[int]()
    for t, here in enumerate(path):
        if here is None:
            found += [0] * (len(names) + 5)
        else:
            units = here.counts
            found += [units.products[name] for name in names]
            found += [units.active, units.idle, units.core_ports, here.racks, island.links_added(t)]
    return tuple(found)


class SitedIsland(NamedTuple):
    """An island at a site with the least it can be worth at every outlook."""

    island: FleetIsland
    least: tuple[float, ...]


class Search:
    """Go through all choices of an island for each workload, and a site for each island."""

    def __init__(
        self, fleet: Fleet, turns: Sequence[PriceTurn], menus: Sequence[Sequence[IslandPath]], margin: float
    ) -> None:
        self._fleet, self._margin, self._choices, self._bills = fleet, margin, 0, 0
        self._outlooks = [Fleet(at_prices(fleet.question, turn.factors), fleet.kind) for turn in turns] or [fleet]
        self._best = [turn.best for turn in turns] or [0.0]
        pairs = zip(fleet.islands, menus, strict=True)
        self._menus = [self._at_sites(name, menu) for name, menu in pairs]
        self._rest = [(0.0,) * len(self._best)]
        for menu in reversed(self._menus):
            least = (min((choice.least[n] for choice in menu), default=math.inf) for n in range(len(self._best)))
            self._rest.insert(0, tuple(map(add, least, self._rest[0])))

    def _at_sites(self, name: str, menu: Sequence[IslandPath]) -> list[SitedIsland]:
        islands = [FleetIsland(name, site, path) for path in menu for site in self._fleet.sites]
        choices = [SitedIsland(island, tuple(_least_alone(at, island) for at in self._outlooks)) for island in islands]
        return sorted(choices, key=lambda choice: choice.least)

    def values_below(self, ceiling: float) -> Iterator[float]:
        """Values of choices within all limits, each lower than the ceiling and those before it."""
        least = ceiling

        def deeper(chosen: tuple[FleetIsland, ...], so_far: tuple[float, ...]) -> Iterator[float]:
            nonlocal least
            rest = self._rest[len(chosen)]
            alone = max(map(sub, map(add, so_far, rest), self._best))
            if not (alone < least or math.isinf(least)) or math.isinf(alone) or not has_room(self._fleet, chosen):
                return
            if len(chosen) == len(self._menus):
                value = self._value(chosen)
                if value < least:
                    least = value
                    yield value
                return
            for choice in self._menus[len(chosen)]:
                self._choices += 1
                if self._choices > MOST_CHOICES:
                    raise TooManyError
                yield from deeper((*chosen, choice.island), tuple(map(add, so_far, choice.least)))

        yield from deeper((), (0.0,) * len(self._best))

    def _value(self, chosen: Sequence[FleetIsland]) -> float:
        """What a choice is worth; infinite where it is over a limit."""
        self._bills += 1
        if self._bills > MOST_BILLS:
            raise TooManyError
        return value_of(self._fleet, self._outlooks, self._best, chosen, self._margin)


def has_room(fleet: Fleet, chosen: Sequence[FleetIsland]) -> bool:
    """Whether there are as many GPUs as islands take, and products in use are few enough."""
    for t in fleet.phases:
        standing = (here for island in chosen if (here := island.phases[t]) is not None)
        if sum(here.stage.family.gpus for here in standing) > fleet.gpus(t):
            return False
    used = products_in_use(fleet, chosen)
    return all(len(names) <= most for _, most, names in product_counts(fleet.question, used))


def value_of(
    fleet: Fleet, outlooks: Sequence[Fleet], bests: Sequence[float], chosen: Sequence[FleetIsland], margin: float
) -> float:
    """What islands of all workloads are worth, beyond the best at the worst outlook; infinite over a limit."""
    if not keeps_limits(fleet, chosen, margin):
        return math.inf
    totals = [fleet_total(at, chosen).of(at.kind) for at in outlooks]
    return max([0.0, *(total - best for total, best in zip(totals, bests, strict=True))])


def _least_alone(fleet: Fleet, island: FleetIsland) -> float:
    """The least that an island adds to the objective: every unit at the lowest price up to the phase that needs it."""
    before, usd, labour, energy, power_w = Counter[ProductKey](), 0.0, 0.0, 0.0, 0.0
    standing = [fleet.units_of(here) if here is not None else Counter[ProductKey]() for here in island.phases]
    for t, here in enumerate(island.phases):
        if here is not None:
            units = fleet.units_of(here)
            usd += sum((units[product] - before[product]) * fleet.floor_usd(t, product) for product in units)
            labour += fleet.labour_usd(t) * island.links_added(t)
            before, power_w = units, fleet.watts(units)
            energy += power_w * fleet.site_usd_per_w(t, island.site)
    work = fleet.whole_work_usd(usd, standing)
    return {"capex": usd + labour, "power": power_w, "tco": usd + labour + work + energy}[fleet.kind]
