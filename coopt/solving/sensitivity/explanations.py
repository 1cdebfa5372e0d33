"""Explain an instance of any kind by solving it again, changed in one thing at a time, and say what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.claims import OnProgress, Progress
from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange, Relaxation, Rival
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import placed_as
from coopt.solving.reasons.again import UnprovenError
from coopt.solving.reasons.labels import (
    SAYINGS,
    amount,
    changes_and_cost,
    changes_of,
    costs,
    costs_more,
    dearer_by,
    limit_name,
    number,
    sentence,
    uses,
    with_unit,
)
from coopt.solving.reasons.other_gpus import left_out_of_sums
from coopt.solving.reasons.sentences import of_gpus_in_vain, of_untried, with_tp_said
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.relaxations import relaxations_of
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of
from coopt.solving.sensitivity.rivals import lists_of_choices, price_range, prices_of, rivals_in

Found = TypeVar("Found")
EXACT = 1e-9  # a gap that is none
STEP = 0.01
"""By which share a bound is moved to see its price."""

WITH_PLAN_S = 150.0
"""How long all questions about a plan take where nobody sets a limit."""
NO_BOUND = 1e4  # a bound so many times as loose is taken for none
COUNTED = ("GPUs", "channels", "products")  # units of which a step is one


@dataclass(kw_only=True)
class _Study:
    """One explanation: who solves, who hears of it, and the keys of what was left when time ran out."""

    instance: Instance
    resolver: Resolver
    on_progress: OnProgress | None = None
    begun: float = field(default_factory=time.perf_counter)
    untried: list[str] = field(default_factory=list)
    within_s: float | None = None

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
        more = (of_untried(untried, self.within_s),) if untried else ()
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
    instance: Instance,
    plan: Plan | None,
    on_progress: OnProgress | None = None,
    *,
    ways_out_s: float | None = None,
    asked: Instance | None = None,
) -> Explanation:
    """What binds a plan and what its rivals cost, or what lets a plan in; within the time limit of the instance.

    Parameters
    ----------
    plan
        A plan of this instance; the cheapest where there is none, or where it builds nothing.
    on_progress
        Called with what is solved next.
    ways_out_s
        Where there is no plan, what has to give is sought no longer than this, and else what binds it no longer than
        `WITH_PLAN_S`; as long as the instance allows if left out.
    asked
        The question that left GPUs, batches or knobs open of which the instance is one choice: prices choose again.
    """
    study = _Study(instance=instance, resolver=Resolver(instance), on_progress=on_progress)
    study.tell("the plan itself")
    try:
        best = study.resolver.plan(instance)
    except UnprovenError as stop:
        return study.explanation("unknown", (f"Stopped early ({stop}); nothing is proven.",))
    study.instance, best = placed_as(instance, best)
    if ways_out_s is not None:
        study.within_s = ways_out_s if best.cost is None else WITH_PLAN_S
        study.resolver.end_within(study.within_s - (0.0 if best.cost is None else time.perf_counter() - study.begun))
    if best.cost is None:
        return _infeasible(study, best)
    chosen = best if plan is None or plan.cost is None else plan
    return with_tp_said(_feasible(study, best, chosen, asked or instance), best)


def _infeasible(study: _Study, answer: Plan) -> Explanation:
    in_vain: list[str] = []
    ways_out = relaxations_of(study.resolver, study.instance, study.tried, in_vain.append)
    found = sorted(ways_out, key=changes_and_cost)
    kind = study.instance.objective.minimize
    said = ["No plan meets the bounds.", *answer.explanation, *(of_relaxation(kind, one) for one in found)]
    if not found and not study.untried:
        said.append("No limit that is a number, and no list, lets a plan in: what is asked has to change.")
    said += of_gpus_in_vain(in_vain)
    said += left_out_of_sums(study.instance, (change.limit for one in found for change in one.changes))
    return study.explanation("infeasible", said, relaxations=tuple(found))


def _feasible(study: _Study, best: Plan, plan: Plan, priced: Instance) -> Explanation:
    instance, kind = study.instance, study.instance.objective.minimize
    value, least = value_of(plan), value_of(best)
    assert value is not None
    assert least is not None
    optimal = not cheaper(least, value)
    asked = partial(bound_on, study.resolver, instance, plan, value, least)
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
    prices = _prices(study, priced, plan, value) if optimal else ()
    said = [f"{_subject(instance)} {amount(kind, value)}{_proof(best) if optimal else ''}."]
    if not optimal:
        said.append(f"It is not the {SAYINGS[kind].best}: another {costs_more(kind, least - value, value)}.")
    said += [sentence for one in found for sentence in of_bound(kind, value, one, optimal=optimal)]
    said += [of_rival(kind, value, one) for one in rivals if not _is_told(one, rivals)]
    said += [of_prices(prices)] if prices else []
    return study.explanation(
        best.status if optimal else "feasible",
        said,
        value=value,
        design=plan.design,
        bounds=tuple(found),
        rivals=tuple(rivals),
        prices=prices,
    )


def _is_told(one: Rival, rivals: Sequence[Rival]) -> bool:
    """Whether what a plan without a choice costs is told of one with another choice alone, which is then the best."""
    others = (other for other in rivals if other.part == one.part and not other.excluded)
    return one.excluded and one.extra is not None and any(other.extra == one.extra for other in others)


def _prices(study: _Study, instance: Instance, plan: Plan, value: float) -> tuple[PriceRange, ...]:
    """The ranges of prices; a regret, what time weighs, and a cost that is proven within a gap only have none."""
    timed = instance.objective.minimize != instance.objective.billed
    if timed or instance.minimizes_regret or plan.objective.gap is None or plan.objective.gap > EXACT:
        return ()
    asked = partial(price_range, study.resolver, instance, plan, value)
    return tuple(
        one
        for price in prices_of(instance)
        for one in study.tried(f"the price of {price.product[1]}", partial(asked, price))
    )


def _subject(instance: Instance) -> str:
    """What the objective is of a plan."""
    if instance.minimizes_regret:
        return "Costs below are regrets: what a plan costs more than the best one, whatever prices come. The plan costs"
    return f"The plan {SAYINGS[instance.objective.minimize].does}"


def _proof(best: Plan) -> str:
    """What is proven of the best plan."""
    gap, does = best.objective.gap, SAYINGS[best.objective.kind].does
    return f", and no plan {does} less" if gap is not None and gap <= EXACT else f", within {gap or 0:.2%} of the least"


def limits_on_use(instance: Instance) -> list[NumericLimit]:
    """The limits on what a plan uses; those on the form of networks are none."""
    return [limit for limit in numeric_limits(instance) if not limit.structural]


def bound_on(
    resolver: Resolver, instance: Instance, plan: Plan, value: float, least: float, limit: NumericLimit
) -> Bound:
    """One limit of an instance against a plan of it that costs `value`: what is used, and whether it binds.

    It does where some plan beyond it is cheaper than the best one within it, which costs the `least`.
    """
    used = limit.used(plan)
    without = _at(resolver, instance, value, limit, limit.loosest)
    binds = without is not None and cheaper(without.value, least)
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
    other = value_of(resolver.plan(limit.within(instance, number), reasons=False))
    return None if other is None else NextPlan(bound=number, value=other, extra=other - value)


def _slack(limit: NumericLimit, used: float) -> float:
    """How far what is used lies within a limit, as a share of it."""
    return used / limit.now - 1.0 if limit.falling else 1.0 - used / limit.now


def of_bound(kind: ObjectiveKind, value: float, one: Bound, *, optimal: bool = True) -> Iterator[str]:
    """Whether it binds, and what more or less of it costs."""
    saying, best = SAYINGS[kind], f"the {SAYINGS[kind].best} plan {SAYINGS[kind].does}"
    name, taken = sentence(limit_name(one.limit)), "" if one.used is None else f": the plan {_takes(one)}"
    if one.without is None:
        than = "" if optimal else f" than the {saying.best} within all bounds"
        yield f"{name} does not bind{taken}, and no plan {saying.better}{than}{_even(one)} {_gone(one)}."
    else:
        gone = dearer_by(kind, one.without.extra, value)
        step = ""
        if one.looser is not None:
            price = _price(kind, value, one.looser.extra)
            step = f", and with {with_unit(one.looser.bound, one.unit)} it {saying.does} {price}"
        yield f"{name} binds{taken}; {_gone(one)} {best} {gone}{step}."
    if one.step is not None and one.tighter is None and _was_tightened(one):
        yield f"With {one.limit} {_step(one)}, no plan keeps the other limits."
    elif one.tighter is not None:
        least = with_unit(one.tighter.bound, one.unit)
        yield f"With {one.limit} = {least} {best} {_price(kind, value, one.tighter.extra)}."


def _step(one: Bound) -> str:
    """How much tighter it was made than what the plan takes."""
    assert one.step is not None
    if one.used is not None and one.unit in COUNTED:
        fewer = max(1, round(one.step * one.used))
        return f"= {with_unit(one.used - fewer, one.unit)}, {fewer:,} fewer than the plan uses"
    return f"{one.step:.0%} tighter than what the plan {'makes' if one.unit == 'tokens/s' else uses(one.unit)}"


def _was_tightened(one: Bound) -> bool:
    """Whether there was less to ask for than the plan takes: less than none, or than one of what counts, is nothing."""
    return one.used is None or one.used > (1 if one.unit in COUNTED else 0)


def _gone(one: Bound) -> str:
    """How loose the bound was made at most; a core stays, however slow."""
    assert one.loosest is not None
    if one.unit == "Gbit/s":
        return "at a rate near 0"
    wide = max(one.loosest, one.bound) / min(one.loosest, one.bound)
    return "without it" if wide >= NO_BOUND else f"with {with_unit(one.loosest, one.unit)}"


def _even(one: Bound) -> str:
    return " even" if _gone(one).startswith("with ") else ""


def _takes(one: Bound) -> str:
    assert one.used is not None
    if one.unit == "tokens/s":
        return f"makes {number(one.used)} {one.unit} and has to make {number(one.bound)} {one.unit}"
    used = number(one.used) if one.unit in COUNTED else with_unit(one.used, one.unit)
    return f"{uses(one.unit)} {used} of {with_unit(one.bound, one.unit)}"


def _price(kind: ObjectiveKind, value: float, extra: float) -> str:
    return "the same" if abs(extra) <= abs(value) * 1e-8 else dearer_by(kind, extra, value)


def of_rival(kind: ObjectiveKind, value: float, one: Rival) -> str:
    """`network.nics without cx7-400g: $1,200 more (+3%): 8 more NICs ($1,200).`"""
    choice = f"{one.part} without {one.choice}" if one.excluded else f"{one.part} = {one.choice} alone"
    if one.extra is None:
        return f"{choice}: no plan keeps every limit; {one.why}."
    if _price(kind, value, one.extra) == "the same":
        return f"{choice}: the {SAYINGS[kind].best} plan {SAYINGS[kind].same}."
    return f"{choice}: the {SAYINGS[kind].best} plan {costs_more(kind, one.extra, value)}: {one.why}."


def of_prices(ranges: tuple[PriceRange, ...]) -> str:
    """The price that has to move least to change the plan."""
    ends = [(one, end) for one in ranges for end in _ends(one)]
    if not ends:
        items = ", ".join(one.item for one in ranges)
        return f"The plan stays the best at all prices that were tried, one at a time, of {items}."
    one, end = min(ends, key=lambda pair: abs(pair[1] / pair[0].now - 1))
    way = "above" if end >= one.now else "below"
    return (
        f"The nearest price that changes the plan is that of {one.item}: {way} {end:,.6g} {one.unit} "
        f"(now {one.now:,.6g}, {end / one.now - 1:+.1%}) another plan is cheaper."
    )


def _ends(one: PriceRange) -> Iterator[float]:
    """The ends of a range at which another plan takes over."""
    assert one.tried is not None
    if one.low > one.tried[0]:
        yield one.low
    if one.high is not None:
        yield one.high


def of_relaxation(kind: ObjectiveKind, one: Relaxation) -> str:
    """`It is enough to set x = 3 (now 2, +50.00%): the cheapest plan then costs $12,345.`"""
    then = f"the {SAYINGS[kind].best} plan then {costs(kind, one.value)}."
    return " ".join([f"It is enough to set {changes_of(one)}: {then}", *one.notes])
