"""What a question that leaves GPUs, batches or knobs open would come to with another choice."""

from __future__ import annotations

import time
from collections.abc import Iterator

from coopt.explain import sentences as say
from coopt.explain.decided import explained, lacks, unknown
from coopt.explain.gpus import left_out_of_sums
from coopt.explain.inquiry import Inquiry
from coopt.explain.labels import SAYINGS, changes_and_cost, panels_apart, why_worse
from coopt.explain.rivals import PROVEN_NONE, times_of
from coopt.instance.schema import (
    Chosen,
    Instance,
    at_choice,
    choices_of,
    seconds_weight,
    with_part,
)
from coopt.instance.texts import alternatives
from coopt.plan.explanation import Explanation, Relaxation, Rival
from coopt.plan.schema import OnProgress, Plan
from coopt.plan.store import check_same_sha, decided, placed_as
from coopt.solving.resolves import Resolver, UnprovenError, cheaper, value_of

OtherChoice = tuple[str, str, Chosen]
MOST_CHOICES = 6
"""Choices of which it is said what has to give."""


def of_choices(
    question: Instance, plan: Plan | None, on_progress: OnProgress | None, ways_out_s: float | None
) -> Explanation:
    """The chosen question explained, and what every other value of one list would cost."""
    resolver, kind, began = Resolver(question), question.objective.minimize, time.perf_counter()
    if plan is not None:
        check_same_sha(question, plan)
    try:
        optimum = resolver.plan(question) if plan is None or plan.cost is None else plan
    except UnprovenError as stop:
        return unknown(Inquiry(instance=question, resolver=resolver), stop)
    question, optimum = placed_as(question, optimum)
    if optimum.cost is None:
        own_s = question.solver.time_limit_s - (time.perf_counter() - began)
        return _no_choice(question, optimum, on_progress, ways_out_s, own_s)
    rivals, missed = list[Rival](), list[str]()
    for entry in others_of(question, optimum.chosen):
        try:
            rivals.append(rival_choice(resolver, question, optimum, entry))
        except UnprovenError:
            missed.append(f"{entry[0]} = {entry[1]}")
    explanation = explained(
        *decided(question, optimum), on_progress, ways_out_s, asked=question, rivals=rivals
    )
    opening, *remainder = explanation.sentences
    untried = [*explanation.untried, *missed]
    return explanation.model_copy(
        update={
            "rivals": (*rivals, *explanation.rivals),
            "untried": tuple(untried),
            "sentences": (
                f"With {optimum.chosen.text}: {opening[0].lower()}{opening[1:]}",
                *(say.of_rival(kind, explanation.value, rival) for rival in rivals),
                *left_out_of_sums(question, (rival.part for rival in rivals)),
                f"What follows is about plans with {optimum.chosen.text} alone.",
                *remainder,
                *([say.of_untried(missed)] if missed else []),
            ),
        }
    )


def _no_choice(
    question: Instance,
    answer: Plan,
    on_progress: OnProgress | None,
    ways_out_s: float | None,
    own_s: float,
) -> Explanation:
    """What has to give at each choice, for as long as there is time: `ways_out_s`, or `own_s` where
    somebody set a limit; what is enough for one is for all of them.
    """
    by_choice, untried, began = dict[str, Explanation](), list[str](), time.perf_counter()
    for choice in choices_of(question):
        left_s = (own_s if ways_out_s is None else ways_out_s) - (time.perf_counter() - began)
        if left_s <= 0 or len(by_choice) == MOST_CHOICES:
            untried.append(choice.text)
            continue
        limited, limit_s = question, None if ways_out_s is None else left_s
        if limit_s is None:
            limited = with_part(question, "solver", {"time_limit_s": left_s})
        explanation = explained(at_choice(limited, choice), None, on_progress, limit_s)
        if explanation.status == "infeasible":
            by_choice[choice.text] = explanation
        else:
            untried.append(choice.text)
    ways_out: dict[tuple[tuple[str, str], ...], Relaxation] = {}
    every_way = (way for explanation in by_choice.values() for way in explanation.relaxations)
    for way in sorted(every_way, key=changes_and_cost):
        ways_out.setdefault(tuple((change.limit, change.to) for change in way.changes), way)
    conflicts = [set(explanation.conflicts) for explanation in by_choice.values()]
    common = tuple(sorted(set.intersection(*conflicts))) if conflicts else ()
    found = Inquiry(instance=question, resolver=Resolver(question)).explanation(
        "infeasible",
        (
            f"No plan {lacks(question)} at any allowed value of"
            f" {alternatives(question.open_keys)}.",
            *(say.of_choices(by_choice) or answer.explanation),
            *say.of_rest(untried),
        ),
        relaxations=tuple(ways_out.values()),
        conflict=common[0] if common else (),
        conflicts=common,
    )
    return found.model_copy(update={"untried": tuple(untried)})


def others_of(instance: Instance, choice: Chosen) -> Iterator[OtherChoice]:
    """Every choice that differs in one value from the chosen one: the key of its list, the value,
    the choice.
    """
    for gpu in instance.cluster.generations:
        if gpu.name != choice.gpu:
            yield "cluster.gpu", gpu.name, choice.model_copy(update={"gpu": gpu.name})
    for w, workload in enumerate(instance.workload):
        batch_size = choice.global_batch.get(workload.name)
        for batch in () if workload.batch_tolerance else workload.open_batches:
            if batch != batch_size:
                batches = choice.global_batch | {workload.name: batch}
                yield (
                    f"workload[{w}].global_batch",
                    str(batch),
                    choice.model_copy(update={"global_batch": batches}),
                )
        knobs = choice.options.get(workload.name, {})
        for key, values in workload.options.allowed.listed.items():
            for value in values:
                if value != knobs[key]:
                    options = choice.options | {workload.name: knobs | {key: value}}
                    yield (
                        f"workload[{w}].options.{key}",
                        str(value),
                        choice.model_copy(update={"options": options}),
                    )


def rival_choice(
    resolver: Resolver, open_question: Instance, plan: Plan, entry: OtherChoice
) -> Rival:
    """The best plan of another choice beside a plan of the chosen one.

    Raises
    ------
    UnprovenError
        When the time for all choices has passed.
    """
    part, name, choice = entry
    question, kind = at_choice(open_question, choice), open_question.objective.minimize
    rival = resolver.plan(question)
    value, ours = value_of(rival), value_of(plan)
    assert ours is not None
    assert plan.cost is not None
    if value is None or rival.cost is None:
        reason = "; ".join(rival.explanation) or PROVEN_NONE
        return Rival(part=part, choice=name, value=None, extra=None, design=None, why=reason)
    # batches differ: a time of an iteration counts by what it comes to over the training
    answered = at_choice(open_question, plan.chosen)
    value *= seconds_weight(question, kind) / seconds_weight(answered, kind)
    is_equal = not cheaper(value, ours) and not cheaper(ours, value)
    reason = (
        SAYINGS[kind].same
        if is_equal
        else why_worse(
            open_question.objective,
            *(panels_apart(open_question, bill) for bill in (plan.cost, rival.cost)),
        )
    )
    reason = (
        f"{reason or 'its bill is the same'}, and {times_of((answered, plan), (question, rival))}"
    )
    return Rival(
        part=part,
        choice=name,
        value=value,
        extra=0.0 if is_equal else value - ours,
        design=rival.design,
        why=reason,
    )
