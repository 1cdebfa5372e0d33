"""Outlooks of prices: what a design costs when prices turn out otherwise, and what the best design costs then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.robust import Robust, corners
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_efficiency, at_prices
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.couplings.losses import check_losses, loss_condition
from coopt.verifier.parts.bills import bill, bill_total
from coopt.verifier.parts.enumeration import designs_below
from coopt.verifier.parts.layouts import Ports, levels
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.space import DesignFamily


class EquippedDesign(NamedTuple):
    """A design with the optic of each level."""

    family: DesignFamily
    ports: Ports
    optics: tuple[Optic, ...]


def certain_question(instance: Instance, robust: Robust) -> Instance:
    """The question without intervals: at the least efficiency, and at the worst prices where these are minimised."""
    if robust.aim == "regret":
        return question_at_list_prices(instance, robust, robust.efficiency[0])
    listed = at_efficiency(instance, robust.efficiency[0])
    return at_prices(listed, {kind: high for kind, (_, high) in robust.prices.intervals.items()})


def question_at_list_prices(instance: Instance, robust: Robust, efficiency: float) -> Instance:
    """The question at list prices; it keeps in mind that prices may turn out otherwise, which makes optics a choice."""
    return at_efficiency(instance, efficiency).model_copy(update={"robust": robust})


def check_robustness(ledger: Ledger, instance: Instance, plan: Plan, part: CountedPart) -> None:
    """Check terms, losses, value at list prices and regret of a part whose design is sound."""
    robust, claim = instance.robust, plan.robust
    assert robust is not None
    assert claim is not None
    claimed, expected = (claim.aim, str(claim.efficiency)), (robust.aim, str(robust.efficiency))
    ledger.same("robust-terms", claimed, expected, "The plan states other terms of robustness than the instance.")
    check_losses(ledger, certain_question(instance, robust), robust, claim.survived, part.family, part.ports)
    if part.optics is None:
        return
    built = EquippedDesign(part.family, part.ports, part.optics)
    listed = at_efficiency(instance, robust.efficiency[0])
    value = design_value(listed, plan.objective.kind, built)
    why = f"At list prices the design is worth {value:,.2f}, the plan says {claim.list_value:,.2f}."
    ledger.close("list-value", claim.list_value, value, why)
    if robust.aim == "regret":
        check_regret(ledger, instance, robust, plan, built)


def design_value(instance: Instance, kind: ObjectiveKind, built: EquippedDesign) -> float:
    """The objective of a design at the prices of an instance."""
    network, (family, ports, optics_of_plan) = instance.network, built
    hb = next(hb for hb in network.hb_domains if hb.name == family.hb.name)
    gear = family.gear
    if gear is not None:
        nic = next(nic for nic in network.nics if nic.name == gear.nic.name)
        gear = gear._replace(nic=nic, switch=next(one for one in network.switches if one.name == gear.switch.name))
    optics = [next(one for one in network.optics if one.name == optic.name) for optic in optics_of_plan]
    lines = bill(instance, family._replace(hb=hb, gear=gear), levels(family, ports), optics)
    return bill_total(lines, instance.objective).of(kind)


def price_outlooks(instance: Instance, robust: Robust) -> list[Instance]:
    """The instance at every corner of its price intervals, at the best efficiency."""
    question = at_efficiency(instance, robust.efficiency[1])
    return [at_prices(question, factors) for factors in corners(robust.prices)]


def check_regret(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan, built: EquippedDesign) -> None:
    """Check what the plan and the best design cost in every outlook, and the largest difference."""
    assert plan.robust is not None
    kind, outlooks = plan.objective.kind, price_outlooks(instance, robust)
    best_by_outlook = best_values(instance, robust, kind, outlooks)
    values = [design_value(outlook, kind, built) for outlook in outlooks]
    turns = [(str(f), v, b) for f, v, b in zip(corners(robust.prices), values, best_by_outlook, strict=True)]
    claims = [(str(outlook.factors), outlook.value, outlook.best) for outlook in plan.robust.turns]
    holds = len(claims) == len(turns) and all(
        a[0] == b[0] and agree(a[1], b[1]) and agree(a[2], b[2]) for a, b in zip(claims, turns, strict=True)
    )
    texts = [tuple(f"{v:.12g} against {b:.12g}" for _, v, b in rows) for rows in (claims, turns)]
    why = "What the plan and the best plan cost, however prices turn out, is something else."
    ledger.holds("turns", holds, texts[0], texts[1], why, TOLERANCE)
    regret, value = max([0.0, *(v - b for _, v, b in turns)]), plan.objective.value
    scale = max(values)  # a regret is a difference: its rounding is that of what is subtracted
    holds = value is not None and abs(value - regret) <= TOLERANCE * scale
    ledger.holds("objective", holds, value, regret, f"The largest regret is {regret:,.2f}, not {value}.", TOLERANCE)


def best_values(instance: Instance, robust: Robust, kind: ObjectiveKind, outlooks: list[Instance]) -> list[float]:
    """The least objective in every way prices may turn out; limits hold at list prices."""
    question = question_at_list_prices(instance, robust, robust.efficiency[1])
    least_by_outlook = [math.inf] * len(outlooks)
    for design in designs_below(question, kind, math.inf, loss_condition(question, robust)):
        values = (design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks)
        least_by_outlook = [min(pair) for pair in zip(least_by_outlook, values, strict=True)]
    return least_by_outlook


def regrets(instance: Instance, robust: Robust, kind: ObjectiveKind, best: list[float]) -> Iterator[float]:
    """The largest regret of every design that stands what it has to."""
    question, outlooks = certain_question(instance, robust), price_outlooks(instance, robust)
    for design in designs_below(question, kind, math.inf, loss_condition(question, robust)):
        values = (design_value(outlook, kind, EquippedDesign(*design[1:])) for outlook in outlooks)
        yield max([0.0, *(v - b for v, b in zip(values, best, strict=True))])
