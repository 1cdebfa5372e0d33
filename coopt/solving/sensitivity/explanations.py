"""Explain an instance of any kind by solving it again, changed in one thing at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from coopt.instance.schema import Instance
from coopt.plan.effort import OnProgress, Progress
from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange
from coopt.plan.schema import InstanceId, Plan
from coopt.solving.reasons.again import UnprovenError
from coopt.solving.reasons.labels import SAYINGS, amount, changes_and_cost, costs_more
from coopt.solving.reasons.sentences import of_untried
from coopt.solving.sensitivity import sentences as say
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.prices import price_range, prices_of
from coopt.solving.sensitivity.relaxations import relaxations_of
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of
from coopt.solving.sensitivity.rivals import lists_of_choices, rivals_in

Found = TypeVar("Found")
EXACT = 1e-9  # a gap that is none
STEP = 0.01
"""By which share a bound is moved to see its price."""


@dataclass(kw_only=True)
class _Study:
    """One explanation: who solves, who hears of it, and the keys of what was left when time ran out."""

    instance: Instance
    resolver: Resolver
    on_progress: OnProgress | None = None
    begun: float = field(default_factory=time.perf_counter)
    untried: list[str] = field(default_factory=list)
    ways_out_s: float | None = None

    def tried(self, key: str, ask: Callable[[], Found]) -> Iterable[Found]:
        """The answer to a question about a key; nothing where it was not proven in time."""
        self.tell(key)
        try:
            yield ask()
        except UnprovenError:
            self.untried.append(key)

    def tell(self, message: str) -> None:
        """Say what is solved next."""
        if self.on_progress is not None:
            spent_s = time.perf_counter() - self.begun
            self.on_progress(Progress(stage="explain", message=message, elapsed_s=spent_s))

    def explanation(self, status: str, said: Iterable[str], **parts: Any) -> Explanation:
        """The explanation, with what is missing in it."""
        untried, instance = tuple(self.untried), self.instance
        more = (of_untried(untried, self.ways_out_s),) if untried else ()
        return Explanation.model_validate(
            {
                "instance": InstanceId(name=instance.name, sha256=instance.sha256),
                "kind": instance.objective.minimize,
                "status": status,
                "sentences": (*said, *more),
                "untried": untried,
                **parts,
            }
        )


def explained(
    instance: Instance, plan: Plan | None, on_progress: OnProgress | None = None, *, ways_out_s: float | None = None
) -> Explanation:
    """What binds a plan and what its rivals cost, or what lets a plan in; within the time limit of the instance.

    Parameters
    ----------
    plan
        A plan of this instance; the cheapest where there is none, or where it builds nothing.
    on_progress
        Called with what is solved next.
    ways_out_s
        Where there is no plan, what has to give is sought no longer than this.
    """
    study = _Study(instance=instance, resolver=Resolver(instance), on_progress=on_progress)
    study.tell("the plan itself")
    try:
        best = study.resolver.plan(instance)
    except UnprovenError as stop:
        return study.explanation("unknown", (f"Stopped early ({stop}); nothing is proven.",))
    if best.cost is None:
        if ways_out_s is not None:
            study.resolver.end_within(ways_out_s)
            study.ways_out_s = ways_out_s
        return _infeasible(study, best)
    return _feasible(study, best, best if plan is None or plan.cost is None else plan)


def _infeasible(study: _Study, answer: Plan) -> Explanation:
    found = sorted(relaxations_of(study.resolver, study.instance, study.tried), key=changes_and_cost)
    kind = study.instance.objective.minimize
    said = ["No plan meets the bounds.", *answer.explanation, *(say.of_relaxation(kind, one) for one in found)]
    if not found and not study.untried:
        said.append("No limit that is a number, and no list, lets a plan in: what is asked has to change.")
    return study.explanation("infeasible", said, relaxations=tuple(found))


def _feasible(study: _Study, best: Plan, plan: Plan) -> Explanation:
    instance, kind = study.instance, study.instance.objective.minimize
    value, least = value_of(plan), value_of(best)
    assert value is not None
    assert least is not None
    optimal = not cheaper(least, value)
    asked = partial(bound_on, study.resolver, instance, plan, value)
    limits = {limit.key: limit for limit in limits_on_use(instance)}
    found = [one for key, limit in limits.items() for one in study.tried(key, partial(asked, limit))]
    compared = partial(rivals_in, study.resolver, instance, plan, value)
    rivals = [
        one
        for entries in lists_of_choices(instance)
        for some in study.tried(entries[0].part, partial(compared, entries))
        for one in some
    ]
    stepped = partial(with_steps, study.resolver, instance, value)
    found = [
        next(iter(study.tried(f"a step of {one.limit}", partial(stepped, limits[one.limit], one))), one)
        for one in found
    ]
    prices = _prices(study, plan, value) if optimal else ()
    said = [f"{_subject(instance)} {amount(kind, value)}{_proof(best) if optimal else ''}."]
    if not optimal:
        said.append(f"It is not the {SAYINGS[kind].best}: another {costs_more(kind, least - value, value)}.")
    said += [sentence for one in found for sentence in say.of_bound(kind, value, one)]
    said += [say.of_rival(kind, value, one) for one in rivals]
    said += [say.of_prices(prices)] if prices else []
    return study.explanation(
        best.status if optimal else "feasible",
        said,
        value=value,
        design=plan.design,
        bounds=tuple(found),
        rivals=tuple(rivals),
        prices=prices,
    )


def _prices(study: _Study, plan: Plan, value: float) -> tuple[PriceRange, ...]:
    """The ranges of prices; a regret, what time weighs, and a cost that is proven within a gap only have none."""
    instance = study.instance
    timed = instance.objective.minimize != instance.objective.billed
    if timed or of_regret(instance) or plan.objective.gap is None or plan.objective.gap > EXACT:
        return ()
    asked = partial(price_range, study.resolver, instance, plan, value)
    return tuple(
        one
        for price in prices_of(instance)
        for one in study.tried(f"the price of {price.product[1]}", partial(asked, price))
    )


def of_regret(instance: Instance) -> bool:
    """Whether the objective is a regret, not a cost."""
    return instance.robust is not None and instance.robust.aim == "regret"


def _subject(instance: Instance) -> str:
    """What the objective is of a plan."""
    if of_regret(instance):
        return "Costs below are regrets: what a plan costs more than the best one, whatever prices come. The plan costs"
    return f"The plan {SAYINGS[instance.objective.minimize].does}"


def _proof(best: Plan) -> str:
    """What is proven of the best plan."""
    gap, does = best.objective.gap, SAYINGS[best.objective.kind].does
    return f", and no plan {does} less" if gap is not None and gap <= EXACT else f", within {gap or 0:.2%} of the least"


def limits_on_use(instance: Instance) -> list[NumericLimit]:
    """The limits on what a plan uses; those on the form of networks are none."""
    return [limit for limit in numeric_limits(instance) if not limit.structural]


def bound_on(resolver: Resolver, instance: Instance, plan: Plan, value: float, limit: NumericLimit) -> Bound:
    """One limit of an instance against a plan of it that costs `value`: what is used, and whether it binds."""
    used = limit.used(plan)
    without = _at(resolver, instance, value, limit, limit.loosest)
    binds = without is not None and cheaper(without.value, value)
    return Bound(
        limit=limit.key,
        unit=limit.unit,
        bound=limit.now,
        used=used,
        slack=None if used is None else _slack(limit, used),
        binds=binds,
        tighter=None,
        looser=None,
        without=without if binds else None,
        loosest=limit.loosest,
    )


def with_steps(resolver: Resolver, instance: Instance, value: float, limit: NumericLimit, one: Bound) -> Bound:
    """The bound with the plans a step tighter than what is used, and a step looser where it binds."""
    tight = limit.moved(-STEP, one.used)
    tighter = _at(resolver, instance, value, limit, tight) if tight > 0 else None
    looser = _at(resolver, instance, value, limit, limit.moved(STEP)) if one.binds else None
    return one.model_copy(update={"tighter": tighter, "looser": looser, "step": STEP})


def _at(resolver: Resolver, instance: Instance, value: float, limit: NumericLimit, number: float) -> NextPlan | None:
    """The cheapest plan with another number for a limit; None where there is no plan."""
    other = value_of(resolver.plan(limit.within(instance, number)))
    return None if other is None else NextPlan(bound=number, value=other, extra=other - value)


def _slack(limit: NumericLimit, used: float) -> float:
    """How far what is used lies within a limit, as a share of it."""
    return used / limit.now - 1.0 if limit.falling else 1.0 - used / limit.now
