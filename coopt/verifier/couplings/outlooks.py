"""Outlooks of prices: what a design or a fleet costs when prices turn out otherwise, and the best
design then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coopt.instance.couplings import Robust
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_efficiency, at_prices
from coopt.plan.couplings import Outlooks, Turn
from coopt.plan.schema import Plan
from coopt.plan.schema_one import Standing
from coopt.verifier.checks.claims import note_undecided
from coopt.verifier.checks.verdict import (
    LENIENT,
    ROUNDING,
    STRICT,
    TOLERANCE,
    Ledger,
    agree,
    is_below,
)
from coopt.verifier.couplings.fleet import Fleet, FleetIsland
from coopt.verifier.couplings.losses import check_losses, loss_condition
from coopt.verifier.couplings.orders import fleet_total
from coopt.verifier.parts.bills import BillTotal, bill, bill_total, levels
from coopt.verifier.parts.enumeration import designs_below
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.part_checks import CountedPart, check_objective
from coopt.verifier.parts.space import DesignFamily, OpticPair, run_for


class EquippedDesign(NamedTuple):
    """A design with the optics of each level."""

    family: DesignFamily
    ports: Ports
    optics: tuple[OpticPair, ...]


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
    """The question at list prices; it keeps in mind that prices may turn out otherwise, which makes
    optics a choice.
    """
    return at_efficiency(instance, efficiency).model_copy(update={"robust": instance.robust})


def hopeful_question(instance: Instance) -> Instance:
    """The question at list prices and the best efficiency, at which the best plans are that regret
    is measured from.
    """
    return _at_list_prices(instance, instance.efficiencies[1])


def check_terms(ledger: Ledger, robust: Robust, claim: Standing | Outlooks) -> None:
    """Check that a plan states the aim and the efficiency that its question asks for."""
    claimed_terms, terms = (claim.aim, str(claim.efficiency)), (robust.aim, str(robust.efficiency))
    ledger.same(
        "robust-terms",
        claimed_terms,
        terms,
        "The plan states other terms of robustness than the instance.",
    )


def check_list_value(ledger: Ledger, claim: Standing | Outlooks, value: float, words: str) -> None:
    """Check what a design or a fleet, as `words` call it, is worth at the prices of the
    instance.
    """
    fault = (
        f"At list prices the {words} is worth {value:,.2f}, the plan says {claim.list_value:,.2f}."
    )
    ledger.close("list-value", claim.list_value, value, fault)


def check_robustness(ledger: Ledger, instance: Instance, plan: Plan, part: CountedPart) -> None:
    """Check terms, losses, value at list prices and regret of a part whose design is sound."""
    robust, claim = instance.robust, plan.robust
    assert robust is not None
    assert claim is not None
    check_terms(ledger, robust, claim)
    check_losses(ledger, certain_question(instance), claim.survived, part.family, part.ports)
    if part.optics is None:
        return
    design = EquippedDesign(part.family, part.ports, part.optics)
    question = at_efficiency(instance, robust.efficiency[0])
    check_list_value(ledger, claim, design_value(question, plan.objective.kind, design), "design")
    values = [
        design_value(outlook, plan.objective.kind, design) for outlook in price_outlooks(instance)
    ]
    stated = check_turns(ledger, instance, claim.turns, values, "design")
    if stated and values:
        _check_best(ledger, instance, plan)
    if values:
        check_regret_value(ledger, plan, claim.turns, values)


def design_value(instance: Instance, kind: ObjectiveKind, design: EquippedDesign) -> float:
    """The objective of a design at the prices of an instance."""
    network, (family, ports, optics_of_plan) = instance.network, design
    hb = next(hb for hb in network.hb_domains if hb.name == family.hb.name)
    gear = family.gear
    if gear is not None:
        nic = next(nic for nic in network.nics if nic.name == gear.nic.name)
        boxes = {
            switch.name: run_for(switch, nic, gear.nic_planes) or switch
            for switch in network.switches
        }
        upper_switches = tuple(boxes[switch.name] for switch in gear.above)
        gear = gear._replace(nic=nic, switch=boxes[gear.switch.name], above=upper_switches)
    optics_by_name = {optic.name: optic for optic in network.optics}
    optics = [
        OpticPair(optics_by_name[ends.below.name], optics_by_name[ends.above.name])
        for ends in optics_of_plan
    ]
    lines = bill(instance, family._replace(hb=hb, gear=gear), levels(family, ports), optics)
    return bill_total(lines, instance.objective).of(kind)


def price_outlooks(instance: Instance) -> list[Instance]:
    """The instance at every corner of its price intervals, at the best efficiency; none where no
    regret counts.
    """
    # Regret is convex in prices and so largest at corners; the better the efficiency, the less the
    # best plan costs.
    question = at_efficiency(instance, instance.efficiencies[1])
    return [at_prices(question, factors) for factors in instance.outlooks]


def check_turns(
    ledger: Ledger, instance: Instance, turns: Sequence[Turn], values: Sequence[float], words: str
) -> bool:
    """Check what a plan says that a design or a fleet, as `words` call it, costs in every outlook;
    whether it holds.
    """
    claims = [(str(turn.factors), turn.value) for turn in turns]
    outcomes = [
        (str(factors), value) for factors, value in zip(instance.outlooks, values, strict=True)
    ]
    holds = len(claims) == len(outcomes) and all(
        claimed_factors == factors and agree(claimed_value, value)
        for (claimed_factors, claimed_value), (factors, value) in zip(claims, outcomes, strict=True)
    )
    claimed_texts, expected_texts = (
        tuple(f"{value:.12g}" for _, value in rows) for rows in (claims, outcomes)
    )
    fault = f"What the {words} costs in each outlook of prices differs from what the plan says."
    return ledger.holds("turns", holds, claimed_texts, expected_texts, fault, TOLERANCE)


def check_regret_value(
    ledger: Ledger, plan: Plan, turns: Sequence[Turn], values: Sequence[float]
) -> None:
    """Check that the objective is the largest regret; it is a difference, so its rounding is that
    of its terms.
    """
    value, regret = (
        plan.objective.value,
        max([0.0, *(a - turn.best for a, turn in zip(values, turns, strict=False))]),
    )
    holds = value is not None and abs(value - regret) <= TOLERANCE * regret + ROUNDING * max(values)
    ledger.holds(
        "objective",
        holds,
        value,
        regret,
        f"The largest regret is {regret:,.2f}, not {value}.",
        TOLERANCE,
    )


def _check_best(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that in every outlook some design is worth what the plan says is least, and that none
    is worth less.
    """
    assert plan.robust is not None
    kind, outlooks, turns = plan.objective.kind, price_outlooks(instance), plan.robust.turns
    lenient_values = [
        list(column)
        for column in zip(*outlook_values(instance, kind, outlooks, LENIENT), strict=True)
    ]
    least_values = [min(values) for values in lenient_values] or [math.inf] * len(turns)
    if any(
        is_below(value, turn.best) for value, turn in zip(least_values, turns, strict=True)
    ):  # by rounding alone?
        least_values = best_values(instance, kind, outlooks, STRICT)
    for n, turn in enumerate(turns):
        values = lenient_values[n] if lenient_values else []
        prices = ", ".join(f"{kind} x {factor:g}" for kind, factor in turn.factors.items())
        # The best plan has to exist, whatever rounding does to it, and none may be cheaper by more
        # than rounding.
        holds = any(agree(value, turn.best) for value in values) and not is_below(
            least_values[n], turn.best
        )
        fault = (
            f"At {prices} the best design is worth {least_values[n]:,.2f}, the plan says"
            f" {turn.best:,.2f}."
        )
        ledger.holds("turns", holds, turn.best, least_values[n], fault, ROUNDING)
        if holds and is_below(min(values), turn.best):
            note_undecided(ledger, plan, f"at {prices} a design of {min(values):,.10g}")


def outlook_values(
    instance: Instance, kind: ObjectiveKind, outlooks: Sequence[Instance], margin: float
) -> Iterator[tuple[float, ...]]:
    """What every design that stands what it has to is worth at every outlook; limits hold at list
    prices.
    """
    question = hopeful_question(instance)
    for design in designs_below(question, kind, math.inf, loss_condition(question, margin), margin):
        yield tuple(
            design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks
        )


def best_values(
    instance: Instance, kind: ObjectiveKind, outlooks: Sequence[Instance], margin: float
) -> list[float]:
    """The least objective in every way prices may turn out; infinite where nothing stands what it
    has to.
    """
    rows = list(outlook_values(instance, kind, outlooks, margin))
    return [min(column) for column in zip(*rows, strict=True)] or [math.inf] * len(outlooks)


def regrets(
    instance: Instance, kind: ObjectiveKind, least_values: Sequence[float], margin: float
) -> Iterator[float]:
    """The largest regret of every design that stands what it has to."""
    question, outlooks = certain_question(instance), price_outlooks(instance)
    for design in designs_below(question, kind, math.inf, loss_condition(question, margin), margin):
        values = (design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks)
        yield max(
            [
                0.0,
                *(
                    value - least_value
                    for value, least_value in zip(values, least_values, strict=True)
                ),
            ]
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
    every outlook.
    """
    _check_fleet_outlooks(ledger, instance, plan, fleet, islands)
    if not instance.minimizes_regret:
        check_objective(ledger, plan, sums)


def _check_fleet_outlooks(
    ledger: Ledger, instance: Instance, plan: Plan, fleet: Fleet, islands: Sequence[FleetIsland]
) -> None:
    """Check terms, value at list prices and, where regret is minimised, what the fleet costs at
    every outlook.
    """
    robust, claim = instance.robust, plan.couplings.outlooks
    fault = "A plan has outlooks of prices where its question asks for them, and nowhere else."
    if (
        not ledger.same("robust-terms", claim is not None, robust is not None, fault)
        or robust is None
        or claim is None
    ):
        return
    check_terms(ledger, robust, claim)
    check_list_value(
        ledger,
        claim,
        value_at(at_efficiency(instance, robust.efficiency[0]), fleet, islands),
        "fleet",
    )
    values = [value_at(outlook, fleet, islands) for outlook in price_outlooks(instance)]
    if check_turns(ledger, instance, claim.turns, values, "fleet") and values:
        check_regret_value(ledger, plan, claim.turns, values)


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
