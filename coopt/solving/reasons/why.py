"""Explain an instance: why its plan is as it is, or what has to give for one to exist."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from coopt.instance.errors import InstanceError, both, with_names
from coopt.instance.files import instance_of
from coopt.instance.schema import Chosen, Instance, at_choice, choices_of
from coopt.instance.variants import rows_by_name
from coopt.network.part_networks import family_of_plan
from coopt.plan.claims import OnProgress
from coopt.plan.explanation import Explanation, PriceRange, Relaxation, Rival, RunnerUp
from coopt.plan.schema import Design, InstanceId, Plan, WorkloadPlan
from coopt.plan.store import check_same_question, check_same_sha, decided, placed_as
from coopt.solving.evaluate import evaluate_instance
from coopt.solving.reasons import sentences as say
from coopt.solving.reasons.again import UnprovenError, conflicts_of, solved
from coopt.solving.reasons.designs import Designs, designs_of, with_design
from coopt.solving.reasons.labels import SAYINGS, changes_and_cost, costs, costs_more, label
from coopt.solving.reasons.other_gpus import left_out_of_sums
from coopt.solving.reasons.price_ranges import ranges_of
from coopt.solving.reasons.relaxations import relaxations_of, with_other_gpus
from coopt.solving.reasons.rivals import bounds_of, others_of, rival_choice, rivals_of, runner_up
from coopt.solving.runs import overridden
from coopt.solving.sensitivity.explanations import explained
from coopt.solving.sensitivity.resolves import Resolver

WAYS_OUT_S = 60.0
"""What has to give of a question of more than one network, or choice, is sought so long where
nobody says how long.
"""
MOST_CHOICES = 6
"""Choices of which it is said what has to give."""


def explain(
    instance: Instance | str | Path,
    plan: Plan | None = None,
    *,
    time_limit_s: float | None = None,
    on_progress: OnProgress | None = None,
) -> Explanation:
    """What binds a plan, what each bound and price would change, and what the alternatives cost; or
    what has to give.

    All designs of one network are known at once; every other question is solved again, changed in
    one thing at a time.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        A plan of this instance; without one, or with one that builds nothing, the instance is
        solved.
    time_limit_s
        Replaces `solver.time_limit_s`: of each solve for one network, else of all of them together.
        Where neither is given, such questions are answered for 150 s, and what has to give is
        sought for 60 s.
    on_progress
        Called with a `Progress` for every limit, choice and price that a question of more than one
        network is solved again for.

    Returns
    -------
    Explanation
        With status "unknown" where the time limit of a solve passed, and what is left out where it
        passed later; Ctrl-C is passed on.

    Raises
    ------
    InstanceError
        When the instance does not allow the plan, the plan misses a bound of it or builds nothing
        for another instance, or it is the plan of another question.

    Examples
    --------
    >>> import coopt
    >>> why = coopt.explain(coopt.load("instances/tiny-64.toml"))
    >>> why.status, why.runner_up.regret, why.runner_up.why
    ('optimal', 0.0, 'costs the same, and is no faster')
    """
    question = instance_of(instance)
    limited = time_limit_s is not None or "time_limit_s" in question.solver.model_fields_set
    objective = None if plan is None else plan.overrides.objective
    instance = overridden("explain", question, {"time_limit_s": time_limit_s}, objective)
    if instance.open_keys:
        explanation = _of_choices(
            instance, plan, on_progress, question.solver.time_limit_s if limited else None
        )
    else:
        explanation = _explained(
            instance, plan, on_progress, ways_out_s=None if limited else WAYS_OUT_S
        )
    names = rows_by_name(instance)
    opening, *remainder = (with_names(text, names) for text in explanation.sentences)
    elsewhere = () if plan is None else say.of_another_question(instance, plan)
    sentences = (*elsewhere, opening, *say.of_margins(instance), *remainder)
    identity = {
        "instance": InstanceId(name=instance.name, sha256=instance.sha256),
        "sentences": sentences,
    }
    return explanation.model_copy(update=identity | {"workloads": names["workload"], "rows": names})


def _of_choices(
    question: Instance, plan: Plan | None, on_progress: OnProgress | None, ways_out_s: float | None
) -> Explanation:
    """The chosen question explained, and what every other value of one list would cost."""
    resolver, kind = Resolver(question), question.objective.minimize
    if plan is not None:
        check_same_sha(question, plan)
    try:
        optimum = resolver.plan(question) if plan is None or plan.cost is None else plan
    except UnprovenError as stop:
        return _unknown(question, stop)
    question, optimum = placed_as(question, optimum)
    if optimum.cost is None:
        return _no_choice(
            question, optimum, on_progress, WAYS_OUT_S if ways_out_s is None else ways_out_s
        )
    designs = _other_designs(resolver, question, optimum.chosen)
    rivals, missed = list[Rival](), list[str]()
    for entry in others_of(question, optimum.chosen):
        try:
            rivals.append(rival_choice(resolver, question, optimum, entry))
        except UnprovenError:
            missed.append(f"{entry[0]} = {entry[1]}")
    by_default_s = WAYS_OUT_S if ways_out_s is None else None  # nobody set a limit
    explanation = _explained(
        *decided(question, optimum),
        on_progress,
        ways_out_s=by_default_s,
        asked=question,
        others=designs,
        rivals=rivals,
    )
    value, untried = optimum.objective.value, [*explanation.untried, *missed]
    assert value is not None
    opening, *remainder = explanation.sentences
    sentences = (
        f"With {optimum.chosen.text}: {opening[0].lower()}{opening[1:]}",
        *(say.of_rival(kind, value, rival) for rival in rivals),
        *left_out_of_sums(question, (rival.part for rival in rivals)),
        *remainder,
        *([say.of_untried(untried)] if untried else []),
    )
    update = {
        "rivals": (*rivals, *explanation.rivals),
        "untried": tuple(untried),
        "sentences": sentences,
    }
    return say.with_tp_said(explanation.model_copy(update=_heading(question) | update), optimum)


def _nearest(second: RunnerUp | None, design: Design, rivals: Sequence[Rival]) -> RunnerUp | None:
    """The runner-up of all choices: that of the chosen one, or a rival that costs less."""
    candidates = [
        rival for rival in rivals if rival.extra is not None and rival.design not in (None, design)
    ]
    nearest = min(candidates, key=lambda rival: rival.extra or 0.0, default=None)
    if second is None or nearest is None or (nearest.extra or 0.0) >= second.regret:
        return second
    assert nearest.value is not None
    return RunnerUp(
        value=nearest.value, regret=nearest.extra or 0.0, design=nearest.design, why=nearest.why
    )


def _no_choice(
    question: Instance, answer: Plan, on_progress: OnProgress | None, ways_out_s: float
) -> Explanation:
    """What has to give at each choice, for as long as there is time; what is enough for one is for
    all of them.
    """
    by_choice, untried, began = dict[str, Explanation](), list[str](), time.perf_counter()
    for choice in choices_of(question):
        left_s = ways_out_s - (time.perf_counter() - began)
        if left_s <= 0 or len(by_choice) == MOST_CHOICES:
            untried.append(choice.text)
            continue
        explanation = _explained(at_choice(question, choice), None, on_progress, ways_out_s=left_s)
        if explanation.status == "infeasible":
            by_choice[choice.text] = explanation
        else:
            untried.append(choice.text)
    ways_out: dict[tuple[tuple[str, str], ...], Relaxation] = {}
    for relaxation in sorted(
        (
            relaxation
            for explanation in by_choice.values()
            for relaxation in explanation.relaxations
        ),
        key=changes_and_cost,
    ):
        ways_out.setdefault(
            tuple((change.limit, change.to) for change in relaxation.changes), relaxation
        )
    conflicts = [set(explanation.conflicts) for explanation in by_choice.values()]
    common = tuple(sorted(set.intersection(*conflicts))) if conflicts else ()
    return Explanation(
        **_heading(question),
        status="infeasible",
        sentences=(
            "No choice meets the bounds.",
            *(say.of_choices(by_choice) or answer.explanation),
            *say.of_rest(untried),
        ),
        relaxations=tuple(ways_out.values()),
        conflict=common[0] if common else (),
        conflicts=common,
        untried=tuple(untried),
    )


def _unknown(instance: Instance, stop: UnprovenError) -> Explanation:
    text = f"Stopped early ({stop}); nothing is proven."
    return Explanation(**_heading(instance), status="unknown", sentences=(text,))


def _other_designs(resolver: Resolver, question: Instance, choice: Chosen) -> Iterator[Designs]:
    """The designs of every choice of an open question but one; UnprovenError where the time has
    passed.
    """
    for alternative in choices_of(question):
        if alternative != choice:
            resolver.check_clock()
            yield designs_of(at_choice(question, alternative))


def _explained(
    instance: Instance,
    plan: Plan | None,
    on_progress: OnProgress | None,
    *,
    ways_out_s: float | None = None,
    asked: Instance | None = None,
    others: Iterable[Designs] = (),
    rivals: Sequence[Rival] = (),
) -> Explanation:
    """One choice explained: prices have ranges over all that were `asked` for, of one network with
    `others` designs.

    The runner-up may be one of the `rivals`, the best of other choices.
    """
    if instance.beyond_one_network or instance.availability is not None:
        if plan is not None:
            check_same_question(instance, plan)
        return explained(instance, plan, on_progress, ways_out_s=ways_out_s, asked=asked)
    if plan is not None and plan.design is None:
        check_same_question(instance, plan)
    try:
        has_design = plan is not None and plan.design is not None
        known = plan if has_design else None
        question, answer = placed_as(instance, known or solved(instance))
        if answer.design is None:
            return _infeasible(question)
        return say.with_tp_said(
            _feasible(question, answer, others, rivals, proven=not has_design), answer
        )
    except UnprovenError as stop:
        return _unknown(instance, stop)


def _heading(instance: Instance) -> dict[str, Any]:
    return {
        "instance": InstanceId(name=instance.name, sha256=instance.sha256),
        "kind": instance.objective.minimize,
    }


def _infeasible(instance: Instance) -> Explanation:
    kind = instance.objective.minimize
    conflicts = conflicts_of(instance)
    by_gpus, in_vain = with_other_gpus(instance, conflicts)
    relaxations = tuple(
        sorted((*relaxations_of(instance, conflicts), *by_gpus), key=changes_and_cost)
    )
    sentences = ["No design meets the bounds.", *say.of_conflicts(conflicts)]
    sentences += (say.of_relaxation(kind, relaxation) for relaxation in relaxations)
    if not relaxations:
        sentences += solved(instance, reasons=True).explanation
    sentences += say.of_gpus_in_vain(in_vain)
    sentences += left_out_of_sums(
        instance, (change.limit for relaxation in relaxations for change in relaxation.changes)
    )
    return Explanation(
        **_heading(instance),
        status="infeasible",
        sentences=tuple(sentences),
        relaxations=relaxations,
        conflict=conflicts[0] if conflicts else (),
        conflicts=conflicts,
    )


def _feasible(
    instance: Instance,
    plan: Plan,
    choices: Iterable[Designs],
    rivals: Sequence[Rival],
    *,
    proven: bool,
) -> Explanation:
    designs, row = with_design(designs_of(instance), *family_of_plan(instance, plan))
    runs = plan.workloads if proven else _runs(instance, designs, row, plan)
    kind, value, design = (
        instance.objective.minimize,
        float(designs.value[row]),
        designs.design(row),
    )
    cheapest_row = designs.cheapest(designs.met())
    assert cheapest_row is not None, "the plan itself meets every bound"
    optimal = not (designs.met() & designs.cheaper(row)).any()
    bounds = tuple(bounds_of(designs, row, runs))
    own_rivals = tuple(rivals_of(designs, row))
    prices, untried = (
        _ranges(designs, row, choices) if optimal and not designs.is_timed else ((), ())
    )
    second = _nearest(runner_up(designs, row), design, rivals) if optimal else None
    certain = f", and no design {SAYINGS[kind].does} less" if optimal else ""
    sentences = [f"The plan, {label(design)}, {costs(kind, value)}{certain}."]
    if not optimal:
        price_text = costs_more(kind, designs.extra(cheapest_row, row), value)
        better = say.seen_from(design, designs.design(cheapest_row))
        sentences.append(
            f"It is not the {SAYINGS[kind].best}: {better} meets every bound and {price_text}."
        )
    sentences += [
        sentence
        for bound in bounds
        for sentence in say.of_bound(kind, value, design, bound, optimal=optimal)
    ]
    sentences += [say.of_rival(kind, value, rival) for rival in own_rivals]
    if optimal:
        if not untried:
            sentences.append(
                say.of_no_prices(kind) if designs.is_timed else say.of_prices(design, prices)
            )
        sentences.append(say.of_runner_up(kind, value, design, second))
    return Explanation(
        **_heading(instance),
        status="optimal" if optimal else "feasible",
        value=value,
        design=design,
        sentences=tuple(sentences),
        bounds=bounds,
        rivals=own_rivals,
        prices=prices,
        runner_up=second,
        untried=untried,
    )


def _ranges(
    designs: Designs, row: int, choices: Iterable[Designs]
) -> tuple[tuple[PriceRange, ...], tuple[str, ...]]:
    """The ranges of prices over every choice of the question; or what time did not suffice for."""
    try:
        return ranges_of(designs, row, choices), ()
    except UnprovenError:
        return (), ("the ranges of prices",)


def _runs(instance: Instance, designs: Designs, row: int, plan: Plan) -> tuple[WorkloadPlan, ...]:
    """The workloads of a plan that was handed in, worked out again."""
    missed = [key for key, use in designs.uses.items() if use[row] > designs.caps[key]]
    if missed:
        raise InstanceError(
            f"{instance.name}: the plan misses {both(missed)}, needs a plan of this instance"
        )
    mappings = [run.mapping for run in plan.workloads]
    return evaluate_instance(instance, plan.design, mappings).workloads
