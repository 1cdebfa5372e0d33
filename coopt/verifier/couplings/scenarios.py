"""Price scenarios: what a design or a fleet costs at other prices, and the best design then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.instance.texts import exact_amount
from coopt.instance.variants import at_efficiency, at_prices
from coopt.plan.couplings import PriceScenario
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import (
    ROUNDING,
    TOLERANCE,
    Ledger,
    agree,
)
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.parts.bills import BillTotal
from coopt.verifier.parts.part_checks import check_objective


class ScenarioBest(NamedTuple):
    """A price scenario by factors of prices, and what the best plan is worth there."""

    factors: dict[str, float]
    best: float


def scenario_bests(plan: Plan) -> list[ScenarioBest]:
    """The price scenarios of a plan; none where cost is minimised."""
    return [ScenarioBest(scenario.factors, scenario.best) for scenario in plan.couplings.turns]


def certain_question(instance: Instance) -> Instance:
    """The question without intervals: at the least efficiency, and at the worst prices where these
    are minimised.

    It keeps in mind what may be lost.
    """
    robust = instance.robust
    if robust is None:
        return instance
    if robust.aim == "regret":
        return _at_list_prices(instance, robust.efficiency[0])
    question = at_efficiency(instance, robust.efficiency[0])
    # Cost never falls as a price rises, so that the upper ends of all intervals are the worst.
    worst = at_prices(
        question,
        {kind: worst_factor for kind, (_, worst_factor) in robust.prices.intervals.items()},
    )
    return worst.model_copy(update={"robust": robust.certain})


def _at_list_prices(instance: Instance, efficiency: float) -> Instance:
    """The question at list prices; it keeps the price scenarios, which make optics a choice."""
    return at_efficiency(instance, efficiency).model_copy(update={"robust": instance.robust})


def hopeful_question(instance: Instance) -> Instance:
    """The question at list prices and the best efficiency, at which the best plans are that regret
    is measured from.
    """
    return _at_list_prices(instance, instance.efficiencies[1])


def scenario_questions(instance: Instance) -> list[Instance]:
    """The instance at every corner of its price intervals, at the best efficiency; none where no
    regret counts.
    """
    # Regret is convex in prices and so largest at corners; the better the efficiency, the less the
    # best plan costs.
    question = at_efficiency(instance, instance.efficiencies[1])
    return [at_prices(question, factors) for factors in instance.price_scenarios]


def _check_scenarios(
    ledger: Ledger, instance: Instance, scenarios: Sequence[PriceScenario], values: Sequence[float]
) -> bool:
    """Check what a plan says that it costs in every scenario; whether it holds."""
    claims = [(str(scenario.factors), scenario.value) for scenario in scenarios]
    outcomes = [
        (str(factors), value)
        for factors, value in zip(instance.price_scenarios, values, strict=True)
    ]
    holds = len(claims) == len(outcomes) and all(
        claimed_factors == factors and agree(claimed_value, value)
        for (claimed_factors, claimed_value), (factors, value) in zip(claims, outcomes, strict=True)
    )
    claimed_texts, expected_texts = (
        tuple(f"{value:.12g}" for _, value in rows) for rows in (claims, outcomes)
    )
    return ledger.holds(
        "turns",
        holds,
        claimed_texts,
        expected_texts,
        "The plan misstates its price scenarios, or its value in one of them.",
        TOLERANCE,
    )


def _check_regret(
    ledger: Ledger, plan: Plan, scenarios: Sequence[PriceScenario], values: Sequence[float]
) -> None:
    """Check that the objective is the largest regret; it is a difference, so its rounding is that
    of its terms.
    """
    value, regret = (
        plan.objective.value,
        max([0.0, *(a - scenario.best for a, scenario in zip(values, scenarios, strict=False))]),
    )
    holds = value is not None and abs(value - regret) <= TOLERANCE * regret + ROUNDING * max(values)
    ledger.holds(
        "objective",
        holds,
        value,
        regret,
        f"The largest regret is {exact_amount(plan.objective.kind, regret)}, but the plan states"
        f" {exact_amount(plan.objective.kind, value)}.",
        TOLERANCE,
    )


def check_fleet_value(
    ledger: Ledger,
    instance: Instance,
    plan: Plan,
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    sums: BillTotal,
) -> None:
    """Check the objective: what the bill sums to, or the largest regret of what the fleet costs at
    every scenario; and terms, value at list prices and costs of scenarios, where there are any.
    """
    robust, claim = instance.robust, plan.couplings.outlooks
    if robust is not None and claim is not None:
        terms = robust.aim, str(robust.efficiency)
        ledger.same(
            "robust-terms",
            (claim.aim, str(claim.efficiency)),
            terms,
            "The aim or the efficiency range that the plan states is not that of [robust] in"
            " the instance.",
        )
        value = value_at(at_efficiency(instance, robust.efficiency[0]), fleet, islands)
        ledger.close(
            "list-value",
            claim.list_value,
            value,
            f"At list prices the value of the plan is {exact_amount(fleet.kind, value)}, but it"
            f" states {exact_amount(fleet.kind, claim.list_value)}.",
        )
        values = [value_at(scenario, fleet, islands) for scenario in scenario_questions(instance)]
        if _check_scenarios(ledger, instance, claim.turns, values) and values:
            _check_regret(ledger, plan, claim.turns, values)
    if not instance.minimizes_regret:
        check_objective(ledger, plan, sums)


def value_at(instance: Instance, fleet: Fleet, islands: Sequence[FleetIsland]) -> float:
    """The objective of a fleet at the prices of an instance, with the core that the fleet has."""
    # The fleet stays as it is when prices change, the optic of its core with it.
    sharing = instance.sharing.model_copy(update={"core": fleet.question.sharing.core})
    return fleet_total(
        Fleet(instance.model_copy(update={"sharing": sharing}), fleet.kind), islands
    ).of(fleet.kind)


def value_and_objective(
    instance: Instance, recomputed: float | None, cost: float, *, is_own: bool
) -> tuple[float, float | None]:
    """What a plan is worth, and what the instance minimises: a regret is known of plans of this
    instance alone.
    """
    if instance.minimizes_regret:
        return cost, recomputed if is_own else None
    value = cost if recomputed is None else recomputed
    return value, value
