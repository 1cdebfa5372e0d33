"""An explanation in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.errors import alternatives, counted
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.explanation import Bound, Explanation, PriceRange, Relaxation, Rival, RunnerUp
from coopt.plan.schema import Design, Plan
from coopt.solving.reasons.labels import (
    SAYINGS,
    changes_of,
    costs,
    costs_more,
    label,
    limit_name,
    sentence,
    uses,
    with_unit,
)

SAME = "the same network"
SAME_WITH = f"{SAME} with "


def of_margins(instance: Instance) -> Iterator[str]:
    """That what is kept free counts as taken."""
    shares = {
        workload.name: workload.time_margin
        for workload in instance.workload
        if workload.time_margin
    }
    if shares:
        is_single = len(instance.workload) == 1
        margins = [
            f"{share:.1%}" + ("" if is_single else f" for {name}") for name, share in shares.items()
        ]
        yield f"Iteration times count with their margin on top: {', '.join(margins)}."
    if instance.cluster.gpu.memory_margin:
        yield (
            f"Memory counts with the {instance.cluster.gpu.memory_margin:.1%} of a GPU's that stays"
            " free."
        )


def with_tp_said(explanation: Explanation, plan: Plan) -> Explanation:
    """The explanation, which says after its first sentence that TP groups may extend over several
    HB domains.
    """
    opening, *remainder = explanation.sentences
    addition = (
        "No plan that keeps TP groups inside HB domains meets all bounds, so that here they may"
        " extend over several."
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
            f"The plan answers another question, {plan.instance.name!r}{solved}; what follows holds"
            " for the question as it stands here."
        )


def of_bound(
    kind: ObjectiveKind, value: float, design: Design, bound: Bound, *, optimal: bool = True
) -> Iterator[str]:
    """Whether it binds, and what comes on either side."""
    assert bound.used is not None, "a design takes of every limit"
    use_text, bound_text = with_unit(bound.used, bound.unit), with_unit(bound.bound, bound.unit)
    if bound.unit == "tokens/s":
        does, beyond, within = "makes", "makes fewer", "makes more"
        usage = f"the plan makes {use_text} and has to make {bound_text}"
    else:
        does = uses(bound.unit)
        beyond, within = f"{does} more", f"{does} less"
        usage = f"the plan {does} {use_text} of {bound_text}"
    name, saying = sentence(limit_name(bound.limit)), SAYINGS[kind]
    if bound.looser is None:
        is_plain = kind == "time" and bound.limit.startswith(
            "workload"
        )  # what is slower is not faster
        than = "" if optimal else f" than the {saying.best} within all bounds"
        ending = "" if is_plain else f", and no design that {beyond} {saying.better}{than}"
        yield f"{name} does not bind: {usage}{ending}."
    else:
        price = costs_more(kind, bound.looser.extra, value)
        neighbour = seen_from(design, bound.looser.design)
        reach_text = with_unit(bound.looser.bound, bound.unit)
        yield (
            f"{name} binds: {usage}. With {reach_text} the {saying.best} design is {neighbour}: it"
            f" {price}."
        )
    if bound.tighter is None:
        yield f"No design that keeps the other limits {within} than {use_text}."
        return
    neighbour, reach_text = (
        seen_from(design, bound.tighter.design),
        with_unit(bound.tighter.bound, bound.unit),
    )
    extra = bound.tighter.extra
    price = saying.same if extra == 0 else costs_more(kind, extra, value)
    if neighbour.startswith(SAME):
        yield (
            f"With {neighbour.removeprefix(SAME_WITH)}, the same network {does} {reach_text} and"
            f" {price}."
        )
    else:
        yield (
            f"The {saying.best} design that {within} is {neighbour}: it {does} {reach_text} and"
            f" {price}."
        )


def seen_from(ours: Design, rival: Design | None) -> str:
    """The other design, or what alone sets it apart."""
    rival = _design_of(rival)
    if rival == ours:
        return f"{SAME} with another mapping"
    if label(rival) != label(ours):
        return label(rival)
    if [tier.ends for tier in rival.fabric.tier] != [tier.ends for tier in ours.fabric.tier]:
        return f"{SAME} with other optics"
    if rival.fabric.nic != ours.fabric.nic:
        return f"{label(rival)}, with {rival.fabric.nic.per_gpu} x {rival.fabric.nic.name} a GPU"
    uplinks = "".join(
        f", with {tier.uplinks_per_switch} uplinks a leaf" for tier in rival.fabric.tier[:1]
    )
    return f"{label(rival)}{uplinks}"


def _design_of(design: Design | None) -> Design:
    """The design of an answer to a question of one network, which has one."""
    assert design is not None
    return design


def of_rival(kind: ObjectiveKind, value: float, rival: Rival) -> str:
    """`network.switches = 64x400g: the cheapest design costs $39,409,664 more (+10.5%): it needs
    ...`.
    """
    choice = f"{rival.part} = {rival.choice}"
    if rival.extra is None:
        return f"{choice}: no design keeps every limit; {rival.why}."
    if rival.extra == 0:
        return f"{choice}: the {SAYINGS[kind].best} design {rival.told}."
    return (
        f"{choice}: the {SAYINGS[kind].best} design {costs_more(kind, rival.extra, value)}:"
        f" {rival.told}."
    )


def of_runner_up(kind: ObjectiveKind, value: float, design: Design, second: RunnerUp | None) -> str:
    """What the next best design costs more."""
    if second is None:
        return "There is no other design that meets every bound."
    rival = seen_from(design, second.design)
    if second.regret == 0:
        return f"The runner-up, {rival}, {second.why}."
    return f"The runner-up, {rival}, {costs_more(kind, second.regret, value)}: {second.why}."


def of_choices(explanations: Mapping[str, Explanation]) -> list[str]:
    """What has to give at every choice first, then what is said of some, with these."""
    choices_by_sentence: dict[str, list[str]] = {}
    for choice, explanation in explanations.items():
        for phrase in explanation.sentences[1:]:
            choices_by_sentence.setdefault(phrase, []).append(choice)
    everywhere = [
        phrase
        for phrase, choices in choices_by_sentence.items()
        if len(choices) == len(explanations)
    ]
    partial = [
        (phrase, choices)
        for phrase, choices in choices_by_sentence.items()
        if len(choices) < len(explanations)
    ]
    return [
        *everywhere,
        *(
            f"With {alternatives(choices)}: {phrase[0].lower()}{phrase[1:]}"
            for phrase, choices in partial
        ),
    ]


def of_rest(untried: Sequence[str]) -> Iterator[str]:
    """The choices of which it is not said what has to give."""
    if untried:
        names = f"{'; '.join(untried[:3])}{' and others' if len(untried) > 3 else ''}"
        yield (
            f"What has to give was not sought for {counted(len(untried), 'other choice')}: {names}."
        )


def of_untried(untried: Sequence[str], within_s: float | None = None) -> str:
    """What time did not suffice for; `within_s` where nobody set a limit."""
    limit = "the time limit" if within_s is None else f"{within_s:g} s, which --time-limit replaces"
    return f"Not answered within {limit}: {', '.join(untried)}."


def of_gpus_in_vain(names: Sequence[str]) -> Iterator[str]:
    """Which other GPUs do not help alone."""
    if names:
        yield f"None of these is enough alone, with all else as it is: {'; '.join(names)}."


def of_no_prices(kind: ObjectiveKind) -> str:
    """That prices have no ranges where they are weighed by time."""
    return (
        f"Ranges of prices are not worked out for objective.minimize = {kind!r}: with the plan's"
        " time as the bound of its workload, objective.minimize = 'capex' finds within which"
        " prices it stays the cheapest."
    )


def of_prices(design: Design, ranges: tuple[PriceRange, ...]) -> str:
    """The price that has to move least to change the decision."""
    ends = [
        (price, end)
        for price in ranges
        for end in (price.low, price.high)
        if end is not None and end > 0 and price.now > 0
    ]
    if not ends:
        return "No price changes the decision when it alone moves."
    price, end = min(ends, key=lambda pair: abs(pair[1] / pair[0].now - 1))
    taker = price.above if end >= price.now and end == price.high else price.below
    instead = (
        "the plan no longer meets its limit"
        if taker is None
        else f"the best plan is {seen_from(design, taker)}"
    )
    if end == price.now:
        way = "rises" if end == price.high else "falls"
        return (
            f"Another plan costs the same: as soon as the price of {price.item} {way}, {instead}."
        )
    way = "above" if end > price.now else "below"
    return (
        f"The nearest price that changes the decision is that of {price.item}: {way} {end:,.6g}"
        f" {price.unit} (now {price.now:,.6g}, {end / price.now - 1:+.1%}) {instead}."
    )


def of_conflicts(conflicts: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """Which limits cannot be met together; a sentence for each reason, as each keeps every design
    out.
    """
    if not conflicts:
        yield (
            "No design exists even without any of these limits; the number of GPUs and the"
            " workloads have to change."
        )
    elif len(conflicts) == 1 and len(conflicts[0]) > 1:
        yield (
            "No design meets these limits together, even without the others; leaving out any one"
            f" of them lets some design in: {', '.join(map(limit_name, conflicts[0]))}."
        )
    else:
        yield from map(_of_one_conflict, conflicts)


def _of_one_conflict(conflict: tuple[str, ...]) -> str:
    if len(conflict) == 1:
        return (
            f"{sentence(limit_name(conflict[0]))} alone rules out every design, whatever the other"
            " limits are."
        )
    return (
        "No design meets these limits together, whatever the others are:"
        f" {', '.join(map(limit_name, conflict))}."
    )


def of_relaxation(kind: ObjectiveKind, relaxation: Relaxation) -> str:
    """`It is enough to set x = 3 (now 2, +50%): ...`."""
    outcome = f"{label(_design_of(relaxation.design))} then {costs(kind, relaxation.value)}."
    return " ".join([f"It is enough to set {changes_of(relaxation)}: {outcome}", *relaxation.notes])
