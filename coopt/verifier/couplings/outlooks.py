"""Outlooks of prices: what a design costs when prices turn out otherwise, and what the best design costs then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coopt.instance.couplings import Robust, corners
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_efficiency, at_prices
from coopt.plan.couplings import Outlooks
from coopt.plan.schema import Plan
from coopt.plan.schema_one import Standing
from coopt.verifier.checks.claims import note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, STRICT, TOLERANCE, Ledger, agree, below
from coopt.verifier.couplings.losses import check_losses, loss_condition
from coopt.verifier.parts.bills import bill, bill_total, levels
from coopt.verifier.parts.enumeration import designs_below
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.space import DesignFamily, OpticPair, run_for


class EquippedDesign(NamedTuple):
    """A design with the optics of each level."""

    family: DesignFamily
    ports: Ports
    optics: tuple[OpticPair, ...]


def certain_question(instance: Instance) -> Instance:
    """The question without intervals: at the least efficiency, and at the worst prices where these are minimised."""
    robust = instance.robust
    if robust is None:
        return instance
    if robust.aim == "regret":
        return question_at_list_prices(instance, robust, robust.efficiency[0])
    listed = at_efficiency(instance, robust.efficiency[0])
    return at_prices(listed, {kind: high for kind, (_, high) in robust.prices.intervals.items()})


def question_at_list_prices(instance: Instance, robust: Robust, efficiency: float) -> Instance:
    """The question at list prices; it keeps in mind that prices may turn out otherwise, which makes optics a choice."""
    return at_efficiency(instance, efficiency).model_copy(update={"robust": robust})


def hopeful_question(instance: Instance, robust: Robust) -> Instance:
    """The question at list prices and the best efficiency, at which the best plans are that regret is measured from."""
    return question_at_list_prices(instance, robust, robust.efficiency[1])


def check_terms(ledger: Ledger, robust: Robust, claim: Standing | Outlooks) -> None:
    """Check that a plan states the aim and the efficiency that its question asks for."""
    claimed, expected = (claim.aim, str(claim.efficiency)), (robust.aim, str(robust.efficiency))
    ledger.same("robust-terms", claimed, expected, "The plan states other terms of robustness than the instance.")


def check_list_value(ledger: Ledger, claim: Standing | Outlooks, value: float, words: str) -> None:
    """Check what a design or a fleet, as `words` call it, is worth at the prices of the instance."""
    why = f"At list prices the {words} is worth {value:,.2f}, the plan says {claim.list_value:,.2f}."
    ledger.close("list-value", claim.list_value, value, why)


def check_robustness(ledger: Ledger, instance: Instance, plan: Plan, part: CountedPart) -> None:
    """Check terms, losses, value at list prices and regret of a part whose design is sound."""
    robust, claim = instance.robust, plan.robust
    assert robust is not None
    assert claim is not None
    check_terms(ledger, robust, claim)
    check_losses(ledger, certain_question(instance), robust, claim.survived, part.family, part.ports)
    if part.optics is None:
        return
    built = EquippedDesign(part.family, part.ports, part.optics)
    listed = at_efficiency(instance, robust.efficiency[0])
    check_list_value(ledger, claim, design_value(listed, plan.objective.kind, built), "design")
    if robust.aim == "regret":
        check_regret(ledger, instance, robust, plan, built)


def design_value(instance: Instance, kind: ObjectiveKind, built: EquippedDesign) -> float:
    """The objective of a design at the prices of an instance."""
    network, (family, ports, optics_of_plan) = instance.network, built
    hb = next(hb for hb in network.hb_domains if hb.name == family.hb.name)
    gear = family.gear
    if gear is not None:
        nic = next(nic for nic in network.nics if nic.name == gear.nic.name)
        boxes = {one.name: run_for(one, nic, gear.nic_planes) or one for one in network.switches}
        above = tuple(boxes[one.name] for one in gear.above)
        gear = gear._replace(nic=nic, switch=boxes[gear.switch.name], above=above)
    listed = {optic.name: optic for optic in network.optics}
    optics = [OpticPair(listed[ends.below.name], listed[ends.above.name]) for ends in optics_of_plan]
    lines = bill(instance, family._replace(hb=hb, gear=gear), levels(family, ports), optics)
    return bill_total(lines, instance.objective).of(kind)


def price_outlooks(instance: Instance, robust: Robust) -> list[Instance]:
    """The instance at every corner of its price intervals, at the best efficiency."""
    question = at_efficiency(instance, robust.efficiency[1])
    return [at_prices(question, factors) for factors in corners(robust.prices)]


def check_regret(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan, built: EquippedDesign) -> None:
    """Check what the plan and the best design cost in every outlook, and the largest difference."""
    assert plan.robust is not None
    kind, outlooks, turns = plan.objective.kind, price_outlooks(instance, robust), plan.robust.turns
    values = [design_value(outlook, kind, built) for outlook in outlooks]
    told = [(str(turn.factors), turn.value) for turn in turns]
    wanted = [(str(factors), value) for factors, value in zip(corners(robust.prices), values, strict=True)]
    holds = len(told) == len(wanted) and all(
        a[0] == b[0] and agree(a[1], b[1]) for a, b in zip(told, wanted, strict=True)
    )
    texts = [tuple(f"{value:.12g}" for _, value in rows) for rows in (told, wanted)]
    why = "What the plan costs in each outlook of prices differs from what it says."
    if ledger.holds("turns", holds, texts[0], texts[1], why, TOLERANCE):
        _check_best(ledger, instance, robust, plan)
    regret = max([0.0, *(value - turn.best for value, turn in zip(values, turns, strict=False))])
    check_regret_value(ledger, plan, regret, values)


def check_regret_value(ledger: Ledger, plan: Plan, regret: float, values: Sequence[float]) -> None:
    """Check that the objective is the largest regret; it is a difference, so its rounding is that of its terms."""
    value = plan.objective.value
    holds = value is not None and abs(value - regret) <= TOLERANCE * regret + ROUNDING * max(values)
    ledger.holds("objective", holds, value, regret, f"The largest regret is {regret:,.2f}, not {value}.", TOLERANCE)


def _check_best(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan) -> None:
    """Check that in every outlook some design is worth what the plan says is least, and that none is worth less."""
    assert plan.robust is not None
    kind, outlooks, turns = plan.objective.kind, price_outlooks(instance, robust), plan.robust.turns
    near = [list(column) for column in zip(*outlook_values(instance, robust, kind, outlooks, LENIENT), strict=True)]
    least = [min(values) for values in near] or [math.inf] * len(turns)
    if any(below(value, turn.best) for value, turn in zip(least, turns, strict=True)):  # by rounding alone?
        least = best_values(instance, robust, kind, outlooks, STRICT)
    for n, turn in enumerate(turns):
        values = near[n] if near else []
        prices = ", ".join(f"{kind} x {factor:g}" for kind, factor in turn.factors.items())
        holds = any(agree(value, turn.best) for value in values) and not below(least[n], turn.best)
        why = f"At {prices} the best design is worth {least[n]:,.2f}, the plan says {turn.best:,.2f}."
        ledger.holds("turns", holds, turn.best, least[n], why, ROUNDING)
        if holds and below(min(values), turn.best):
            note_undecided(ledger, plan, f"at {prices} a design of {min(values):,.10g}")


def outlook_values(
    instance: Instance, robust: Robust, kind: ObjectiveKind, outlooks: Sequence[Instance], short: float
) -> Iterator[tuple[float, ...]]:
    """What every design that stands what it has to is worth at every outlook; limits hold at list prices."""
    question = hopeful_question(instance, robust)
    for design in designs_below(question, kind, math.inf, loss_condition(question, robust, short), short):
        yield tuple(design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks)


def best_values(
    instance: Instance, robust: Robust, kind: ObjectiveKind, outlooks: Sequence[Instance], short: float
) -> list[float]:
    """The least objective in every way prices may turn out; infinite where nothing stands what it has to."""
    rows = list(outlook_values(instance, robust, kind, outlooks, short))
    return [min(column) for column in zip(*rows, strict=True)] or [math.inf] * len(outlooks)


def regrets(
    instance: Instance, robust: Robust, kind: ObjectiveKind, best: Sequence[float], short: float
) -> Iterator[float]:
    """The largest regret of every design that stands what it has to."""
    question, outlooks = certain_question(instance), price_outlooks(instance, robust)
    for design in designs_below(question, kind, math.inf, loss_condition(question, robust, short), short):
        values = (design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks)
        yield max([0.0, *(v - b for v, b in zip(values, best, strict=True))])
