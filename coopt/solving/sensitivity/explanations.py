"""Explain an instance of any kind by solving it again, changed in one thing at a time, and say what
was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from coopt.instance.errors import with_names
from coopt.instance.schema import Instance
from coopt.instance.variants import rows_by_name
from coopt.plan.claims import OnProgress, Progress
from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange, Rival
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import placed_as
from coopt.solving.reasons.again import UnprovenError
from coopt.solving.reasons.labels import (
    SAYINGS,
    amount,
    changes_and_cost,
    costs_more,
)
from coopt.solving.reasons.other_gpus import left_out_of_sums
from coopt.solving.reasons.sentences import of_gpus_in_vain, of_untried, with_tp_said
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.relaxations import relaxations_of
from coopt.solving.sensitivity.resolves import Resolver, value_of
from coopt.solving.sensitivity.rivals import (
    lists_of_choices,
    price_count,
    price_range,
    prices_of,
    rivals_in,
)
from coopt.solving.sensitivity.sentences import (
    REGRETS,
    REGRETS_OF_WAYS_OUT,
    of_bound,
    of_prices,
    of_relaxation,
    of_rival,
)

Answer = TypeVar("Answer")
EXACT = 1e-9  # a gap that is none
STEP = 0.01
"""By which share a bound is moved to see its price."""

WITH_PLAN_S = 150.0
"""How long all questions about a plan take where nobody sets a limit."""


@dataclass(kw_only=True)
class _Study:
    """One explanation: who solves, who hears of it, and the keys of what was left when time ran
    out.
    """

    instance: Instance
    resolver: Resolver
    on_progress: OnProgress | None = None
    begun: float = field(default_factory=time.perf_counter)
    untried: list[str] = field(default_factory=list)
    within_s: float | None = None

    def answers(self, key: str, ask: Callable[[], Answer]) -> Iterable[Answer]:
        """The answer to a question about a key; nothing where it was not proven in time."""
        self.tell(key)
        try:
            yield ask()
        except UnprovenError:
            self.untried.append(key)

    def tell(self, message: str) -> None:
        """Say what is solved next."""
        if self.on_progress is not None:
            named = with_names(message, rows_by_name(self.instance))
            self.on_progress(
                Progress(stage="explain", message=named, elapsed_s=time.perf_counter() - self.begun)
            )

    def explanation(self, status: str, sentences: Iterable[str], **parts: Any) -> Explanation:
        """The explanation, with what is missing in it."""
        untried, instance = tuple(self.untried), self.instance
        remainder = (of_untried(untried, self.within_s),) if untried else ()
        return Explanation.model_validate(
            {
                "instance": InstanceId(name=instance.name, sha256=instance.sha256),
                "kind": instance.objective.minimize,
                "status": status,
                "sentences": (*sentences, *remainder),
                "untried": untried,
                **parts,
            }
        )


def explained(
    instance: Instance,
    plan: Plan | None,
    on_progress: OnProgress | None = None,
    *,
    ways_out_s: float | None = None,
    asked: Instance | None = None,
) -> Explanation:
    """What binds a plan and what its rivals cost, or what lets a plan in; within the time limit of
    the instance.

    Parameters
    ----------
    plan
        A plan of this instance; the cheapest where there is none, or where it builds nothing.
    on_progress
        Called with what is solved next.
    ways_out_s
        Where there is no plan, what has to give is sought no longer than this, and else what binds
        it no longer than `WITH_PLAN_S`; as long as the instance allows if left out.
    asked
        The question that left GPUs, batches or knobs open of which the instance is one choice:
        prices choose again.
    """
    study = _Study(instance=instance, resolver=Resolver(instance), on_progress=on_progress)
    study.tell("the plan itself")
    try:
        optimum = study.resolver.plan(instance)
    except UnprovenError as stop:
        return study.explanation("unknown", (f"Stopped early ({stop}); nothing is proven.",))
    study.instance, optimum = placed_as(instance, optimum)
    if ways_out_s is not None:
        study.within_s = ways_out_s if optimum.cost is None else WITH_PLAN_S
        study.resolver.end_within(
            study.within_s - (0.0 if optimum.cost is None else time.perf_counter() - study.begun)
        )
    if optimum.cost is None:
        return _infeasible(study, optimum)
    study.resolver.measure_from(optimum)
    subject = optimum if plan is None or plan.cost is None else plan
    return with_tp_said(_feasible(study, optimum, subject, asked or instance), optimum)


def _infeasible(study: _Study, answer: Plan) -> Explanation:
    in_vain: list[str] = []
    answers = relaxations_of(study.resolver, study.instance, study.answers, in_vain.append)
    kind, is_regret = study.instance.objective.minimize, study.instance.minimizes_regret
    ways_out = sorted(
        answers, key=(lambda way: len(way.changes)) if is_regret else changes_and_cost
    )
    sentences = [
        "No plan meets the bounds.",
        *answer.explanation,
        *(of_relaxation(kind, way) for way in ways_out),
    ]
    if not ways_out and not study.untried:
        sentences.append(
            "No limit that is a number, and no list, lets a plan in: what is asked has to change."
        )
    sentences += [REGRETS_OF_WAYS_OUT] if is_regret and ways_out else []
    sentences += of_gpus_in_vain(in_vain)
    sentences += left_out_of_sums(
        study.instance, (change.limit for way in ways_out for change in way.changes)
    )
    return study.explanation("infeasible", sentences, relaxations=tuple(ways_out))


def _feasible(study: _Study, optimum: Plan, plan: Plan, open_question: Instance) -> Explanation:
    instance, kind = study.instance, study.instance.objective.minimize
    value, floor = value_of(plan), value_of(optimum)
    assert value is not None
    assert floor is not None
    optimal = study.resolver.beyond(floor, value) >= 0
    question_of = partial(bound_on, study.resolver, instance, plan, value, floor)
    limits = {limit.key: limit for limit in limits_on_use(instance)}
    bounds = [
        bound
        for key, limit in limits.items()
        for bound in study.answers(key, partial(question_of, limit))
    ]
    compared = partial(rivals_in, study.resolver, instance, plan, optimum, value)
    rivals = [
        rival
        for entries in lists_of_choices(instance)
        for answer in study.answers(entries[0].part, partial(compared, entries))
        for rival in answer
    ]
    # steps come last: where time runs out, that a bound binds and what rivals cost says more
    stepped = partial(with_steps, study.resolver, instance, value)
    bounds = [
        next(
            iter(
                study.answers(
                    f"a step of {bound.limit}", partial(stepped, limits[bound.limit], bound)
                )
            ),
            bound,
        )
        for bound in bounds
    ]
    prices = _prices(study, open_question, plan, value) if optimal else ()
    sentences = [f"{_subject(instance)} {amount(kind, value)}{_proof(optimum) if optimal else ''}."]
    share_of = (
        None if instance.minimizes_regret else value
    )  # a share of a regret says nothing of what plans cost
    if not optimal:
        sentences.append(
            f"It is not the {SAYINGS[kind].best}: another"
            f" {costs_more(kind, floor - value, share_of)}."
        )
    sentences += [
        sentence
        for bound in bounds
        for sentence in of_bound(kind, share_of, bound, optimal=optimal)
    ]
    sentences += [
        of_rival(kind, share_of, rival) for rival in rivals if not _is_told(rival, rivals)
    ]
    sentences += (
        [of_prices(prices, is_all=len(prices) == price_count(open_question))] if prices else []
    )
    return study.explanation(
        optimum.status if optimal else "feasible",
        sentences,
        value=value,
        design=plan.design,
        bounds=tuple(bounds),
        rivals=tuple(rivals),
        prices=prices,
    )


def _is_told(rival: Rival, rivals: Sequence[Rival]) -> bool:
    """Whether what a plan without a choice costs is told of one with another choice alone, which is
    then the best.
    """
    peers = (peer for peer in rivals if peer.part == rival.part and not peer.excluded)
    return (
        rival.excluded
        and rival.extra is not None
        and any(peer.extra == rival.extra for peer in peers)
    )


def _prices(study: _Study, instance: Instance, plan: Plan, value: float) -> tuple[PriceRange, ...]:
    """The ranges of prices; a regret, what time weighs, and a cost that is proven within a gap only
    have none.
    """
    timed = instance.objective.minimize != instance.objective.billed
    if (
        timed
        or instance.minimizes_regret
        or plan.objective.gap is None
        or plan.objective.gap > EXACT
    ):
        return ()
    range_of = partial(price_range, study.resolver, instance, plan, value)
    return tuple(
        prices
        for price in prices_of(instance)
        for prices in study.answers(f"the price of {price.product[1]}", partial(range_of, price))
    )


def _subject(instance: Instance) -> str:
    """What the objective is of a plan."""
    if instance.minimizes_regret:
        return f"{REGRETS} The plan costs"
    return f"The plan {SAYINGS[instance.objective.minimize].does}"


def _proof(optimum: Plan) -> str:
    """What is proven of the best plan."""
    gap, does = optimum.objective.gap, SAYINGS[optimum.objective.kind].does
    return (
        f", and no plan {does} less"
        if gap is not None and gap <= EXACT
        else f", within {gap or 0:.2%} of the least"
    )


def limits_on_use(instance: Instance) -> list[NumericLimit]:
    """The limits on what a plan uses; those on the form of networks are none."""
    return [limit for limit in numeric_limits(instance) if not limit.structural]


def bound_on(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    value: float,
    optimum_value: float,
    limit: NumericLimit,
) -> Bound:
    """One limit of an instance against a plan of it that costs `value`: what is used, and whether
    it binds.

    It does where some plan beyond it is cheaper than the best one within it, which costs the
    `optimum_value`.
    """
    use = limit.used(plan)
    without = _at(resolver, instance, value, limit, limit.loosest)
    binds = without is not None and resolver.beyond(without.value, optimum_value) < 0
    return Bound(
        limit=limit.key,
        unit=limit.unit,
        bound=limit.now,
        used=use,
        slack=None if use is None else _slack(limit, use),
        binds=binds,
        tighter=None,
        looser=None,
        without=without if binds else None,
        loosest=limit.loosest,
    )


def with_steps(
    resolver: Resolver, instance: Instance, value: float, limit: NumericLimit, bound: Bound
) -> Bound:
    """The bound with the plans a step tighter than what is used, and a step looser where it
    binds.
    """
    tight = limit.moved(-STEP, bound.used)
    tighter = _at(resolver, instance, value, limit, tight) if tight > 0 else None
    looser = _at(resolver, instance, value, limit, limit.moved(STEP)) if bound.binds else None
    return bound.model_copy(update={"tighter": tighter, "looser": looser, "step": STEP})


def _at(
    resolver: Resolver, instance: Instance, value: float, limit: NumericLimit, number: float
) -> NextPlan | None:
    """The cheapest plan with another number for a limit; None where there is no plan."""
    next_value = value_of(resolver.plan(limit.within(instance, number), reasons=False))
    if next_value is None:
        return None
    return NextPlan(bound=number, value=next_value, extra=resolver.beyond(next_value, value))


def _slack(limit: NumericLimit, use: float) -> float:
    """How far what is used lies within a limit, as a share of it."""
    return use / limit.now - 1.0 if limit.falling else 1.0 - use / limit.now
