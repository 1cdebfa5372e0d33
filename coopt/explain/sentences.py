"""An explanation in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from coopt.explain.labels import (
    SAYINGS,
    amount,
    changes_of,
    costs,
    costs_more,
    dearer_by,
    label,
    limit_name,
    sentence,
    uses,
    with_unit,
    without_optics,
)
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, ObjectiveKind, questions_by_gpu
from coopt.instance.texts import both, change_text, counted, grouped
from coopt.plan.explanation import (
    Bound,
    Explanation,
    NextPlan,
    PriceRange,
    Relaxation,
    Rival,
    RunnerUp,
)
from coopt.plan.parts import Design
from coopt.plan.schema import Plan

SAME = "the same network"
NO_BOUND = 1e4  # a bound so many times as loose is taken for none
FEWEST = dict.fromkeys(("GPUs", "products", "racks"), 1)
"""What every plan has of these."""
REGRETS = (
    "The costs below are regrets: how much more a plan may cost than the best one at the same"
    " prices. Each is measured against the best plans under the bounds as asked, so with a"
    " looser bound a regret may be below zero."
)
REGRETS_OF_WAYS_OUT = (
    "These costs are regrets: each is measured against the best plans under its own change, so"
    " they cannot be compared with each other."
)


def of_plan(instance: Instance, plan: Plan, value: float) -> str:
    """What the plan is and what it is worth, without a full stop."""
    kind = instance.objective.minimize
    if instance.minimizes_regret:
        return f"{REGRETS} The largest regret of the plan is {amount(kind, value)}"
    named = f" ({label(plan.design)})" if plan.design else ""
    return f"The plan{named} {costs(kind, value)}"


def of_margins(instance: Instance) -> Iterator[str]:
    """That what is kept free counts as taken, of each kind of GPU that islands may have."""
    several = len(instance.workload) > 1
    times, memories = list[str](), list[str]()
    for question in questions_by_gpu(instance):
        gpu = question.cluster.gpu
        on = f" on {gpu.name}" if instance.mixes_gpus else ""
        times += [
            f"{workload.time_margin:.1%}" + (f" for {workload.name}" if several else "") + on
            for workload in question.workload
            if workload.time_margin and workload.bounded
        ]
        if gpu.memory_margin:
            memories.append(f"{gpu.memory_margin:.1%}{on}")
    if times:
        yield f"Times that are compared with bounds include a margin of {both(times)}."
    if memories:
        yield (
            f"Memory figures include the share of each GPU's memory that is kept free:"
            f" {both(memories)}."
        )


def with_tp_said(explanation: Explanation, plan: Plan) -> Explanation:
    """The explanation, which says after its first sentence that TP groups may extend over several
    HB domains.
    """
    opening, *remainder = explanation.sentences
    addition = (
        "No plan is possible with each TP group inside one HB domain, so TP groups may span"
        " several HB domains here."
    )
    return (
        explanation.model_copy(update={"sentences": (opening, addition, *remainder)})
        if plan.tp_across
        else explanation
    )


def of_another_question(instance: Instance, plan: Plan) -> Iterator[str]:
    """That a plan was made for another question than the one that it is explained for."""
    if plan.instance.sha256 != instance.sha256:
        replaced = plan.overrides.replaced
        solved = f", solved with values replaced by --set: {replaced}" if replaced else ""
        yield (
            f"The plan was made for another question, {plan.instance.name!r}{solved}; what"
            " follows is about the question given here."
        )


def of_bound(
    kind: ObjectiveKind,
    share_of: float | None,
    bound: Bound,
    design: Design | None = None,
    *,
    optimal: bool = True,
    exact: bool = True,
) -> Iterator[str]:
    """Whether it binds, and what comes on either side; also as a share of such a value where there
    is one. Plans that are proven within a gap only are not `exact`: there may be a better one.
    """
    saying, name = SAYINGS[kind], sentence(limit_name(bound.limit))
    moved = f"With {limit_name(bound.limit, with_key=False)} at"
    moved = moved if bound.until is None else "With training within"
    usage = "" if bound.used is None else f": the plan {_takes(bound)}"
    if bound.without is None:
        no_plan = f"no plan {'' if exact else 'was found that '}{saying.better}"
        outcome = (
            f"{no_plan} {_gone(bound)}"
            if optimal
            else f"{_gone(bound)} {no_plan} than the {saying.best} one that meets all bounds"
        )
        yield f"{name} does not bind{usage}, and {outcome}."
    else:
        price = dearer_by(kind, bound.without.extra, share_of)
        yield f"{name} binds{usage}; {_gone(bound)} the {saying.best} plan {saying.does} {price}."
        if bound.looser is not None:
            at = with_unit(bound.looser.bound, bound.unit)
            yield f"{moved} {at}, {_next(kind, share_of, bound.looser, design)}."
    if bound.tighter is not None:
        at = with_unit(bound.tighter.bound, bound.unit)
        yield f"{moved} {at}, {_next(kind, share_of, bound.tighter, design)}."
    elif bound.step is not None and (bound.step or bound.used not in (0, FEWEST.get(bound.unit))):
        yield f"No plan within the other limits {_tighter(bound)}."


def _next(
    kind: ObjectiveKind, share_of: float | None, plan: NextPlan, design: Design | None
) -> str:
    """What the plan that takes over is, and what it costs."""
    saying = SAYINGS[kind]
    is_same = abs(plan.extra) <= abs(share_of or 0.0) * 1e-8
    outcome = saying.same if is_same else costs_more(kind, plan.extra, share_of)
    if design is not None and plan.design is not None:
        return f"the {saying.best} design is {seen_from(design, plan.design)}: it {outcome}"
    return f"the {saying.best} plan {outcome}"


def _gone(bound: Bound) -> str:
    """How loose the bound was made at most; a core stays, however slow."""
    assert bound.loosest is not None
    if bound.unit == "Gbit/s":
        return "at a core rate of nearly 0 Gbit/s"
    if bound.unit == "GB":
        return "with unlimited memory"
    wide = max(bound.loosest, bound.bound) / max(min(bound.loosest, bound.bound), 1e-9)
    return (
        "without it" if wide >= NO_BOUND else f"with it at {with_unit(bound.loosest, bound.unit)}"
    )


def _takes(bound: Bound) -> str:
    assert bound.used is not None
    used, at = with_unit(bound.used, bound.unit), with_unit(bound.bound, bound.unit)
    if bound.unit == "tokens/s":
        return f"trains {used}, of which {at} are required"
    until = "" if bound.until is None else f", by {bound.until}"
    return f"{uses(bound.unit)} {used} of {at}{until}"


def _tighter(bound: Bound) -> str:
    """`takes less than 3.2 s`: what no plan does where none meets a tighter bound."""
    if bound.used is None:
        return f"meets a bound that is {bound.step or 0.0:.0%} tighter"
    used = with_unit(bound.used, bound.unit)
    if bound.step:
        return f"meets a bound that is {bound.step:.0%} tighter than {used}"
    return (
        f"trains more than {used}"
        if bound.unit == "tokens/s"
        else f"{uses(bound.unit)} less than {used}"
    )


def seen_from(ours: Design, rival: Design) -> str:
    """The other design, or what alone sets it apart."""
    same_domain = not ours.fabric.tiers and without_optics(rival) == without_optics(ours)
    if rival == ours or same_domain:
        return f"{'the same HB domain' if same_domain else SAME} with another mapping"
    if label(rival) != label(ours):
        return label(rival)
    if rival.gpus != ours.gpus:
        return f"{label(rival)}, in which {rival.gpus:,} GPUs train"
    if rival.fabric.nic != ours.fabric.nic:
        nic, own_planes = rival.fabric.nic, ours.fabric.nic.planes
        planes = f" on {counted(nic.planes, 'plane')}" if nic.planes != own_planes else ""
        return f"{label(rival)}, with {nic.text}{planes}"
    if without_optics(rival) == without_optics(ours):
        return f"{SAME} with other optics"
    uplinks, own_uplinks = (
        [tier.uplinks_per_switch for tier in design.fabric.tier[:1]] for design in (rival, ours)
    )
    if uplinks == own_uplinks:
        return f"{label(rival)}, laid out differently"
    return f"{label(rival)}, with {counted(uplinks[0], 'uplink')} per leaf"


def of_rival(kind: ObjectiveKind, share_of: float | None, rival: Rival) -> str:
    """`Without cx7-400g in network.nics, the cheapest plan costs $1,200 more (+3%): its NICs cost
    $1,200 more.`
    """
    if rival.extra is None:
        return f"{rival.premise}, no plan is possible: {rival.why}."
    if not rival.extra:
        return f"{rival.premise}, the {SAYINGS[kind].best} plan {rival.told}."
    return (
        f"{rival.premise}, the {SAYINGS[kind].best} plan {costs_more(kind, rival.extra, share_of)}:"
        f" {rival.told}."
    )


def of_runner_up(
    kind: ObjectiveKind,
    share_of: float | None,
    design: Design | None,
    second: RunnerUp,
    *,
    of_all: bool,
) -> str:
    """What the next best plan costs more, of all or of those that were compared."""
    subject = "The runner-up" if of_all else "The closest of the plans compared"
    both_known = design is not None and second.design is not None
    named = f" ({seen_from(design, second.design)})" if both_known else ""  # type: ignore[arg-type]
    if not second.regret:
        return f"{subject}{named} {second.why}."
    return f"{subject}{named} {costs_more(kind, second.regret, share_of)}: {second.why}."


def of_choices(explanations: Mapping[str, Explanation]) -> list[str]:
    """What has to give at every choice first, then what is said of some, with these."""
    choices_by_sentence = grouped(
        (phrase, choice)
        for choice, explanation in explanations.items()
        for phrase in explanation.sentences[1:]
    )
    everywhere = [
        phrase
        for phrase, choices in choices_by_sentence.items()
        if len(choices) == len(explanations)
    ]
    of_some = [
        f"With {', or with '.join(choices)}: {phrase[0].lower()}{phrase[1:]}"
        for phrase, choices in choices_by_sentence.items()
        if len(choices) < len(explanations)
    ]
    return everywhere + of_some


def of_rest(untried: Sequence[str]) -> Iterator[str]:
    """The choices of which it is not said what has to give."""
    if untried:
        names = "; ".join(untried[:3]) + (f"; {len(untried) - 3:,} more" if untried[3:] else "")
        yield f"What would make a plan possible was not found out for {names}."


def of_untried(untried: Sequence[str], within_s: float | None = None) -> str:
    """What was not examined to a proof; `within_s` where nobody set a limit."""
    limit = "" if within_s is None else f" within {within_s:.3g} s (--time-limit allows more)"
    return f"Not examined to the end{limit}: {', '.join(untried)}."


def of_gpus_in_vain(names: Sequence[str]) -> Iterator[str]:
    """Which other GPUs do not help alone."""
    if names:
        yield f"None of these changes is enough alone: {'; '.join(names)}."


def of_no_prices(kind: ObjectiveKind) -> str:
    """That prices have no ranges where they are weighed by time."""
    return (
        f"There are no price ranges for objective.minimize = {kind!r}. To get them, set"
        " objective.minimize = 'capex' and a bound for each workload: its time in the plan."
    )


def of_prices(design: Design | None, ranges: Sequence[PriceRange], *, is_all: bool = True) -> str:
    """The price that has to move least to change the plan, of those answered where these are not
    all.
    """
    kind = "power" if any(price.unit == "W" for price in ranges) else "price"
    ends = [
        (price, end)
        for price in ranges
        for end in (price.low, price.high)
        if end is not None and (end == price.high or end > price.now * EQUAL)
    ]
    if not ends:
        items = ", ".join(price.item for price in ranges)
        return f"The plan stays the best at any {kind} of {items}, changed one at a time."
    price, end = min(ends, key=lambda pair: _share(*pair))
    taker = price.above if end >= price.now and end == price.high else price.below
    best = f"the best plan is {seen_from(design, taker)}" if design and taker else ""
    instead = best or "the plan is no longer the best"
    if end == price.now:
        way = "rises" if end == price.high else "falls"
        return f"As soon as the {kind} of {price.item} {way}, {instead}."
    examined = "" if is_all else " (of those examined)"
    way = "above" if end > price.now else "below"
    return (
        f"The plan is most sensitive to the {kind} of {price.item}{examined}: {way} {end:,.6g}"
        f" {price.unit} ({_from_now(price, end)}) {instead}."
    )


def _share(price: PriceRange, end: float) -> float:
    """How far the end is from the price, as a share of it."""
    return abs(end / price.now - 1) if price.now else math.inf if end else 0.0


def _from_now(price: PriceRange, end: float) -> str:
    """`-5.51% from 635`, or `now 0`."""
    return f"{change_text(end / price.now - 1)} from {price.now:,.6g}" if price.now else "now 0"


def of_conflicts(conflicts: Sequence[Sequence[str]]) -> Iterator[str]:
    """Which limits cannot be met together; a sentence for each reason, as each keeps every plan
    out.
    """
    for conflict in conflicts:
        names = ", ".join(map(limit_name, conflict))
        if len(conflict) == 1:
            yield (
                f"{sentence(limit_name(conflict[0]))} alone rules out every plan, even when all"
                " other limits are loosened."
            )
        else:
            yield f"These limits conflict, even when all others are loosened: {names}."


def of_relaxation(kind: ObjectiveKind, way: Relaxation, *, is_regret: bool) -> str:
    """`It is enough to set x = 3 (now 2, +50.00%): the cheapest plan then costs $12,345.`"""
    subject = label(way.design) if way.design else f"the {SAYINGS[kind].best} plan"
    worth = f"has a regret of {amount(kind, way.value)}" if is_regret else costs(kind, way.value)
    outcome = f"{subject} then {worth}."
    return " ".join([f"It is enough to set {changes_of(way)}: {outcome}", *way.notes])
