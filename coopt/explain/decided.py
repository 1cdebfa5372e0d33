"""Explain a question that leaves no choice open: what binds its plan, or what lets one in."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial

from coopt.explain import sentences as say
from coopt.explain.bounds import Bounds, limits_on_use
from coopt.explain.conflicts import conflicts_of
from coopt.explain.gpus import left_out_of_sums
from coopt.explain.inquiry import Inquiry
from coopt.explain.labels import SAYINGS, changes_and_cost, costs_more
from coopt.explain.prices import Turns, price_count, prices_of
from coopt.explain.relaxations import relaxations_of
from coopt.explain.rivals import RivalPlans, lists_of_choices
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both
from coopt.plan.couplings import one_network
from coopt.plan.explanation import Explanation, PriceRange, Rival, RunnerUp
from coopt.plan.schema import OnProgress, Plan
from coopt.plan.store import check_same_question, placed_as
from coopt.solving.evaluate import evaluate_instance
from coopt.solving.fronts.designs import weight_of
from coopt.solving.resolves import Resolver, UnprovenError, value_of

WAYS_OUT_S = 60.0
"""How long what has to give is sought where nobody says how long."""
CONFLICTS_SHARE = 0.5
"""Share of that time for which limits conflict, so that ways out are tried all the same."""
WITH_PLAN_S = 150.0
"""How long all questions about a plan take where nobody sets a limit."""


def unknown(study: Inquiry, stop: UnprovenError) -> Explanation:
    return study.explanation(
        "unknown", (f"The search ended ({stop}) before a best plan was proven.",)
    )


def explained(
    instance: Instance,
    plan: Plan | None,
    on_progress: OnProgress | None,
    ways_out_s: float | None,
    *,
    asked: Instance | None = None,
    rivals: Sequence[Rival] = (),
) -> Explanation:
    """What binds a plan and what its rivals cost, or what lets a plan in; within the time limit of
    the instance.

    Parameters
    ----------
    plan
        A plan of this instance; the cheapest where there is none, or where it builds nothing.
    ways_out_s
        Where there is no plan, what has to give is sought no longer than this, and else what binds
        it no longer than `WITH_PLAN_S`; as long as the instance allows if left out.
    asked
        The question that left GPUs, batches or knobs open of which the instance is one choice:
        prices choose again.
    rivals
        The best plans of other choices, of which one may be the runner-up.
    """
    given = None if plan is None else _as_asked(instance, plan)
    study = Inquiry(instance=instance, resolver=Resolver(instance), on_progress=on_progress)
    study.tell("the best plan for the question as asked")
    try:
        optimum = study.resolver.plan(instance)
    except UnprovenError as stop:
        return unknown(study, stop)
    study.instance, optimum = placed_as(instance, optimum)
    if ways_out_s is not None:
        study.within_s = ways_out_s if optimum.cost is None else WITH_PLAN_S
        study.resolver.end_within(
            study.within_s - (0.0 if optimum.cost is None else time.perf_counter() - study.begun)
        )
    if optimum.cost is None:
        return _infeasible(study, optimum)
    study.resolver.measure_from(optimum)
    subject = optimum if given is None or given.cost is None else given
    return say.with_tp_said(_feasible(study, optimum, subject, asked or instance, rivals), optimum)


def _as_asked(instance: Instance, plan: Plan) -> Plan:
    """A plan, worked out again where it is that of one network for another question.

    Raises
    ------
    InstanceError
        When it misses a bound of this one, or is no plan of one network.
    """
    if plan.instance.sha256 == instance.sha256 or plan.design is None:
        check_same_question(instance, plan)
        return plan
    found = evaluate_instance(instance, plan.design, [run.mapping for run in plan.workloads])
    objective, seconds = instance.objective, found.workloads[0].iteration_time_s
    value = found.cost.of(objective.billed)
    if objective.minimize != objective.billed:
        value = weight_of(instance) * seconds * (1.0 if objective.minimize == "time" else value)
    part = one_network(found.cost, found.workloads, design=found.design)
    claim = plan.objective.model_copy(update={"value": value})
    here = plan.model_copy(update={"cost": found.cost, "parts": (part,), "objective": claim})
    uses = [(limit, limit.used(here)) for limit in limits_on_use(instance)]
    missed = [
        f"{limit.key} = {limit.now:,.10g} (it takes {use:,.10g} {limit.unit})"
        for limit, use in uses
        if use is not None and limit.exceeded_by(use)
    ]
    if missed:
        raise InstanceError(
            f"{instance.place}: the plan violates {both(missed)}, needs a plan within its limits"
        )
    return here


def _infeasible(study: Inquiry, answer: Plan) -> Explanation:
    instance, resolver, in_vain = study.instance, study.resolver, list[str]()
    found = study.answers(
        "which limits conflict", partial(conflicts_of, instance, resolver.has_plan)
    )
    with resolver.within_share(CONFLICTS_SHARE):
        conflicts = next(iter(found), None)
    in_all = (
        None if conflicts is None else frozenset.intersection(*map(frozenset, conflicts or ((),)))
    )
    ways_out = list(relaxations_of(resolver, instance, study.answers, in_vain.append, in_all))
    kind, is_regret = instance.objective.minimize, instance.minimizes_regret
    ways_out.sort(key=(lambda way: len(way.changes)) if is_regret else changes_and_cost)
    sentences = [f"No plan {lacks(instance)}.", *say.of_conflicts(conflicts or ())]
    sentences += answer.explanation if not (conflicts and ways_out) else ()
    sentences += (say.of_relaxation(kind, way, is_regret=is_regret) for way in ways_out)
    if not ways_out and not study.untried:
        sentences.append(
            "No plan became possible when a single limit or list was changed, or several limits"
            " together. Change the workload, or limits and lists together."
        )
    sentences += [say.REGRETS_OF_WAYS_OUT] if is_regret and ways_out else []
    sentences += say.of_gpus_in_vain(in_vain)
    sentences += left_out_of_sums(
        instance, (change.limit for way in ways_out for change in way.changes)
    )
    return study.explanation(
        "infeasible",
        sentences,
        relaxations=tuple(ways_out),
        conflict=conflicts[0] if conflicts else (),
        conflicts=conflicts or (),
    )


def _feasible(
    study: Inquiry, optimum: Plan, plan: Plan, asked: Instance, others: Sequence[Rival]
) -> Explanation:
    instance, kind = study.instance, study.instance.objective.minimize
    value, least = value_of(plan), value_of(optimum)
    assert value is not None
    assert least is not None
    optimal = study.resolver.beyond(least, value) >= 0
    bounds_on = Bounds(study=study, plan=plan, value=value, least=least)
    against = list(bounds_on.against(limits_on_use(instance)))
    beside = RivalPlans(study=study, plan=plan, optimum=optimum, value=value)
    rivals = [
        rival
        for entries in lists_of_choices(instance)
        for answer in study.answers(entries[0].part, partial(beside.among, entries))
        for rival in answer
    ]
    second, prices = None, tuple[PriceRange, ...]()
    if optimal:
        for found in study.answers("the runner-up", beside.runner_up):
            second = _nearest(found, plan, others)
        prices = _prices(study, asked, plan, value)
    # neighbours come last: where time runs out, that a bound binds and what rivals cost says more
    bounds = [
        next(
            iter(
                study.answers(
                    f"the nearest values of {one.bound.limit} that change the plan",
                    partial(bounds_on.with_neighbours, one),
                )
            ),
            one.bound,
        )
        for one in against
    ]
    # a share of a regret says nothing of what plans cost
    share_of = None if instance.minimizes_regret else value
    opening = say.of_plan(instance, plan, value)
    sentences = [_proven(opening, instance, optimum) if optimal else f"{opening}."]
    if not optimal:
        costs = costs_more(kind, least - value, share_of)
        both_known = plan.design and optimum.design
        better = say.seen_from(plan.design, optimum.design) if both_known else "another plan"  # type: ignore[arg-type]
        sentences.append(f"The plan is not the {SAYINGS[kind].best} one: {better} {costs}.")
    exact = (optimum.objective.gap or 0.0) <= EQUAL
    for bound in bounds:
        sentences += say.of_bound(kind, share_of, bound, plan.design, optimal=optimal, exact=exact)
    told = [rival for rival in rivals if not _is_told(rival, rivals)]
    sentences += [say.of_rival(kind, share_of, rival) for rival in told]
    if prices:
        sentences.append(
            say.of_prices(plan.design, prices, is_all=len(prices) == price_count(asked))
        )
    elif optimal and kind != instance.objective.billed and not instance.network.given:
        sentences.append(say.of_no_prices(kind))
    if second is not None:
        sentences.append(
            say.of_runner_up(kind, share_of, plan.design, second, of_all=beside.has_second)
        )
    return study.explanation(
        optimum.status if optimal else "feasible",
        sentences,
        value=value,
        design=plan.design,
        bounds=tuple(bounds),
        rivals=tuple(rivals),
        prices=prices,
        runner_up=second,
    )


def _nearest(second: RunnerUp | None, plan: Plan, rivals: Sequence[Rival]) -> RunnerUp | None:
    """The runner-up of all choices: that of the chosen one, or a rival that costs less."""
    others = [
        RunnerUp(value=rival.value, regret=rival.extra, design=rival.design, why=rival.why)
        for rival in rivals
        if rival.value is not None and rival.extra is not None and rival.design != plan.design
    ]
    found = ([] if second is None else [second]) + others
    return min(found, key=lambda one: one.regret, default=None)


def _is_told(rival: Rival, rivals: Sequence[Rival]) -> bool:
    """Whether what a plan without a choice costs, or why there is none, is told of one with another
    choice alone, which is then the best.
    """
    peers = (peer for peer in rivals if peer.part == rival.part and not peer.excluded)
    return rival.excluded and any(
        peer.extra == rival.extra and (rival.extra is not None or peer.why == rival.why)
        for peer in peers
    )


def _prices(study: Inquiry, asked: Instance, plan: Plan, value: float) -> tuple[PriceRange, ...]:
    """The ranges of prices; a regret, what time weighs, and a cost that is proven within a gap only
    have none.
    """
    timed = asked.objective.minimize != asked.objective.billed
    gap = plan.objective.gap
    if timed or asked.minimizes_regret or gap is None or gap > EQUAL:
        return ()
    return tuple(Turns(study, asked, plan, value).ranges(list(prices_of(asked))))


def _proven(opening: str, instance: Instance, optimum: Plan) -> str:
    """What is proven of the best plan, after what it is; a gap is rounded up."""
    gap, does = optimum.objective.gap, SAYINGS[optimum.objective.kind].does
    if gap is None:
        return f"{opening}."
    if gap <= EQUAL:
        return f"{opening}, and no plan {'has' if instance.minimizes_regret else does} less."
    return f"{opening}. At most {math.ceil(1e4 * gap) / 1e4:.2%} of it could be saved."


def lacks(instance: Instance) -> str:
    """What no plan of an infeasible instance does."""
    return "meets the bounds" if instance.has_limits else "is possible"
