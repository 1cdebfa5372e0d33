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
    shares = {one.name: one.time_margin for one in instance.workload if one.time_margin}
    if shares:
        alone = len(instance.workload) == 1
        named = [f"{share:.1%}" + ("" if alone else f" for {name}") for name, share in shares.items()]
        yield f"Iteration times count with their margin on top: {', '.join(named)}."
    if instance.cluster.gpu.memory_margin:
        yield f"Memory counts with the {instance.cluster.gpu.memory_margin:.1%} of a GPU's that stays free."


def with_tp_said(found: Explanation, plan: Plan) -> Explanation:
    """The explanation, which says after its first sentence that TP groups may extend over several HB domains."""
    first, *others = found.sentences
    told = "No plan that keeps TP groups inside HB domains meets all bounds, so that here they may extend over several."
    return found.model_copy(update={"sentences": (first, told, *others)}) if plan.tp_across else found


def of_another_question(instance: Instance, plan: Plan) -> Iterator[str]:
    """That a plan was made for another question than the one that it is explained for."""
    if plan.instance.sha256 != instance.sha256:
        replaced = plan.overrides.replaced
        solved = f", solved with values replaced by --set: {replaced}" if replaced else ""
        yield (
            f"The plan answers another question, {plan.instance.name!r}{solved}; what follows holds for the question "
            "as it stands here."
        )


def of_bound(kind: ObjectiveKind, value: float, design: Design, one: Bound, *, optimal: bool = True) -> Iterator[str]:
    """Whether it binds, and what comes on either side."""
    assert one.used is not None, "a design takes of every limit"
    used, bound = with_unit(one.used, one.unit), with_unit(one.bound, one.unit)
    if one.unit == "tokens/s":
        does, beyond, within = "makes", "makes fewer", "makes more"
        taken = f"the plan makes {used} and has to make {bound}"
    else:
        does = uses(one.unit)
        beyond, within = f"{does} more", f"{does} less"
        taken = f"the plan {does} {used} of {bound}"
    name, saying = sentence(limit_name(one.limit)), SAYINGS[kind]
    if one.looser is None:
        known = kind == "time" and one.limit.startswith("workload")  # what is slower is not faster
        than = "" if optimal else f" than the {saying.best} within all bounds"
        yield f"{name} does not bind: {taken}{'' if known else f', and no design that {beyond} {saying.better}{than}'}."
    else:
        price = costs_more(kind, one.looser.extra, value)
        other = seen_from(design, one.looser.design)
        reached = with_unit(one.looser.bound, one.unit)
        yield f"{name} binds: {taken}. With {reached} the {saying.best} design is {other}: it {price}."
    if one.tighter is None:
        yield f"No design that keeps the other limits {within} than {used}."
        return
    other, reached = seen_from(design, one.tighter.design), with_unit(one.tighter.bound, one.unit)
    extra = one.tighter.extra
    price = saying.same if extra == 0 else costs_more(kind, extra, value)
    if other.startswith(SAME):
        yield f"With {other.removeprefix(SAME_WITH)}, the same network {does} {reached} and {price}."
    else:
        yield f"The {saying.best} design that {within} is {other}: it {does} {reached} and {price}."


def seen_from(ours: Design, other: Design | None) -> str:
    """The other design, or what alone sets it apart."""
    other = _one(other)
    if other == ours:
        return f"{SAME} with another mapping"
    if label(other) != label(ours):
        return label(other)
    if [tier.ends for tier in other.fabric.tier] != [tier.ends for tier in ours.fabric.tier]:
        return f"{SAME} with other optics"
    if other.fabric.nic != ours.fabric.nic:
        return f"{label(other)}, with {other.fabric.nic.per_gpu} x {other.fabric.nic.name} a GPU"
    uplinks = "".join(f", with {tier.uplinks_per_switch} uplinks a leaf" for tier in other.fabric.tier[:1])
    return f"{label(other)}{uplinks}"


def _one(design: Design | None) -> Design:
    """The design of an answer to a question of one network, which has one."""
    assert design is not None
    return design


def of_rival(kind: ObjectiveKind, value: float, one: Rival) -> str:
    """`network.switches = 64x400g: the cheapest design costs $39,409,664 more (+10.5%): it needs ...`."""
    choice = f"{one.part} = {one.choice}"
    if one.extra is None:
        return f"{choice}: no design keeps every limit; {one.why}."
    if one.extra == 0:
        return f"{choice}: the {SAYINGS[kind].best} design {one.told}."
    return f"{choice}: the {SAYINGS[kind].best} design {costs_more(kind, one.extra, value)}: {one.told}."


def of_runner_up(kind: ObjectiveKind, value: float, design: Design, one: RunnerUp | None) -> str:
    """What the next best design costs more."""
    if one is None:
        return "There is no other design that meets every bound."
    other = seen_from(design, one.design)
    if one.regret == 0:
        return f"The runner-up, {other}, {one.why}."
    return f"The runner-up, {other}, {costs_more(kind, one.regret, value)}: {one.why}."


def of_choices(found: Mapping[str, Explanation]) -> list[str]:
    """What has to give at every choice first, then what is said of some, with these."""
    told: dict[str, list[str]] = {}
    for choice, one in found.items():
        for said in one.sentences[1:]:
            told.setdefault(said, []).append(choice)
    everywhere = [said for said, choices in told.items() if len(choices) == len(found)]
    some = [(said, choices) for said, choices in told.items() if len(choices) < len(found)]
    return [*everywhere, *(f"With {alternatives(choices)}: {said[0].lower()}{said[1:]}" for said, choices in some)]


def of_rest(untried: Sequence[str]) -> Iterator[str]:
    """The choices of which it is not said what has to give."""
    if untried:
        named = f"{'; '.join(untried[:3])}{' and others' if len(untried) > 3 else ''}"
        yield f"What has to give was not sought for {counted(len(untried), 'other choice')}: {named}."


def of_untried(untried: Sequence[str], within_s: float | None = None) -> str:
    """What time did not suffice for; `within_s` where nobody set a limit."""
    limit = "the time limit" if within_s is None else f"{within_s:g} s, which --time-limit replaces"
    return f"Not answered within {limit}: {', '.join(untried)}."


def of_gpus_in_vain(tried: Sequence[str]) -> Iterator[str]:
    """Which other GPUs do not help alone."""
    if tried:
        yield f"None of these is enough alone, with all else as it is: {'; '.join(tried)}."


def of_no_prices(kind: ObjectiveKind) -> str:
    """That prices have no ranges where they are weighed by time."""
    return (
        f"Ranges of prices are not worked out for objective.minimize = {kind!r}: with the plan's time as the bound of "
        "its workload, objective.minimize = 'capex' finds within which prices it stays the cheapest."
    )


def of_prices(design: Design, ranges: tuple[PriceRange, ...]) -> str:
    """The price that has to move least to change the decision."""
    ends = [(one, end) for one in ranges for end in (one.low, one.high) if end is not None and end > 0 and one.now > 0]
    if not ends:
        return "No price changes the decision when it alone moves."
    one, end = min(ends, key=lambda pair: abs(pair[1] / pair[0].now - 1))
    taker = one.above if end >= one.now and end == one.high else one.below
    instead = "the plan no longer meets its limit" if taker is None else f"the best plan is {seen_from(design, taker)}"
    if end == one.now:
        way = "rises" if end == one.high else "falls"
        return f"Another plan costs the same: as soon as the price of {one.item} {way}, {instead}."
    way = "above" if end > one.now else "below"
    return (
        f"The nearest price that changes the decision is that of {one.item}: {way} {end:,.6g} {one.unit} "
        f"(now {one.now:,.6g}, {end / one.now - 1:+.1%}) {instead}."
    )


def of_conflicts(conflicts: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """Which limits cannot be met together; a sentence for each reason, as each keeps every design out."""
    if not conflicts:
        yield "No design exists even without any of these limits; the number of GPUs and the workloads have to change."
    elif len(conflicts) == 1 and len(conflicts[0]) > 1:
        yield (
            "No design meets these limits together, even without the others; leaving out any one of them lets some "
            f"design in: {', '.join(map(limit_name, conflicts[0]))}."
        )
    else:
        yield from map(_of_one_conflict, conflicts)


def _of_one_conflict(conflict: tuple[str, ...]) -> str:
    if len(conflict) == 1:
        return f"{sentence(limit_name(conflict[0]))} alone rules out every design, whatever the other limits are."
    return f"No design meets these limits together, whatever the others are: {', '.join(map(limit_name, conflict))}."


def of_relaxation(kind: ObjectiveKind, one: Relaxation) -> str:
    """`It is enough to set x = 3 (now 2, +50%): ...`."""
    then = f"{label(_one(one.design))} then {costs(kind, one.value)}."
    return " ".join([f"It is enough to set {changes_of(one)}: {then}", *one.notes])
