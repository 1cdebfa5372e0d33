"""What binds a plan: every limit on what it uses, and the plans that a tighter or a looser one lets
in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from coopt.explain.inquiry import Inquiry
from coopt.explain.limits import NumericLimit, numeric_limits
from coopt.explain.thresholds import exceeds, first_number, just_below
from coopt.instance.schema import Instance
from coopt.plan.explanation import Bound, NextPlan
from coopt.plan.schema import Plan
from coopt.solving.resolves import UnprovenError, value_of

STEP = 0.01
"""By which share a bound is moved of which a plan takes no number."""


def limits_on_use(instance: Instance) -> list[NumericLimit]:
    """The limits on what a plan uses; those on the form of networks are none."""
    return [limit for limit in numeric_limits(instance) if not limit.structural]


class Against(NamedTuple):
    """A limit, what it is to the plan, and the cheapest plan without it where that is cheaper."""

    limit: NumericLimit
    bound: Bound
    without: Plan | None


def _may_exceed(limit: NumericLimit, plan: Plan) -> bool:
    """Whether a plan takes more of a limit than there is now, as far as its numbers say."""
    use = None if limit.moves_use else limit.used(plan)
    return use is None or limit.exceeded_by(use)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The bounds on a plan that costs `value`, where the best one costs `least`."""

    study: Inquiry
    plan: Plan
    value: float
    least: float

    def against(self, limits: Sequence[NumericLimit]) -> Iterator[Against]:
        """Limits on use, what the plan takes of each, and whether it binds.

        It does where some plan beyond it is cheaper than the best one within it.
        """
        plans = self._without(limits)
        for limit in limits:
            if limit.key not in plans:
                continue
            without, use = plans[limit.key], limit.used(self.plan)
            bound = Bound(
                limit=limit.key,
                unit=limit.unit,
                bound=limit.now,
                used=use,
                slack=None
                if use is None
                else (use / limit.now - 1.0 if limit.falling else 1.0 - use / limit.now),
                binds=without is not None,
                tighter=None,
                looser=None,
                without=self._next(limit.loosest, without),
                loosest=limit.loosest,
                until=None if limit.start is None or use is None else limit.text(limit.enough(use)),
            )
            yield Against(limit, bound, without)

    def _without(
        self, limits: Sequence[NumericLimit], kept: Sequence[NumericLimit] = ()
    ) -> dict[str, Plan | None]:
        """The cheapest plan without each limit, by its key, where that is cheaper than with all.

        Where none is cheaper without several of them, none is without one of these. Where one is,
        limits of which it takes more are asked about one by one, and the others together; a single
        one has that plan, unless it may take more of what is `kept` as well: more GPUs in a phase
        let later ones have more.
        """
        exceeded, found = {limit.key for limit in limits}, dict[str, Plan | None]()
        if len(limits) > 1:
            with contextlib.suppress(UnprovenError):
                plan = self._cheaper([(limit, limit.loosest) for limit in limits])
                if plan is None:
                    return dict.fromkeys(exceeded)
                exceeded = {limit.key for limit in limits if _may_exceed(limit, plan)} or exceeded
                if len(exceeded) == 1 and not any(_may_exceed(limit, plan) for limit in kept):
                    found = dict.fromkeys(exceeded, plan)
            others = [limit for limit in limits if limit.key not in exceeded]
            asked_alone = [limit for limit in limits if limit.key in exceeded]
            found |= self._without(others, [*kept, *asked_alone])
        for limit in limits:
            if limit.key in exceeded and limit.key not in found:
                alone = partial(self._cheaper, [(limit, limit.loosest)])
                found.update((limit.key, plan) for plan in self.study.answers(limit.key, alone))
        return found

    def _cheaper(self, moves: Sequence[tuple[NumericLimit, float]]) -> Plan | None:
        """The cheapest plan with other numbers for limits, where it costs less than with none."""
        question = self.study.instance
        for limit, number in moves:
            question = limit.within(question, number)
        plan = self.study.resolver.plan(question, reasons=False)
        value = value_of(plan)
        is_cheaper = value is not None and self.study.resolver.beyond(value, self.least) < 0
        return plan if is_cheaper else None

    def with_neighbours(self, against: Against) -> Bound:
        """The bound with the cheapest plan that takes less than this one, and where it binds the
        first that is cheaper as it is loosened.
        """
        limit, bound, without = against
        is_exact = bound.used is not None and not limit.moves_use
        plan, tight = None, 0.0
        if is_exact:
            plan, tight = self._at(limit, just_below(limit, bound.used or 0.0))
            # a hair less may lie within the tolerance of a solver's rows
            is_exact = plan is None or plan.cost is None or not exceeds(limit, plan, tight)
        step: float | None = 0.0
        if not is_exact:
            tight, plan, step = limit.moved(-STEP, bound.used), None, None
            if tight >= limit.tightest:
                (plan, tight), step = self._at(limit, tight), STEP
        tighter, looser = self._next(tight, plan, limit if is_exact else None), None
        if without is not None:
            first = first_number(limit, lambda number: self._cheaper([(limit, number)]), without)
            looser = self._next(first.number, first.plan)
        return bound.model_copy(update={"tighter": tighter, "looser": looser, "step": step})

    def _at(self, limit: NumericLimit, number: float) -> tuple[Plan | None, float]:
        """The cheapest plan with another number for a limit, which follows; None where there is
        nothing to ask for.
        """
        if number <= 0:
            return None, number
        question = limit.within(self.study.instance, number)
        return self.study.resolver.plan(question, reasons=False), number

    def _next(
        self, number: float, plan: Plan | None, limit: NumericLimit | None = None
    ) -> NextPlan | None:
        """The plan that takes over at a number, or at what it takes itself of a limit; None where
        there is no plan.
        """
        value = None if plan is None else value_of(plan)
        if plan is None or value is None:
            return None
        use = None if limit is None else limit.used(plan)
        return NextPlan(
            bound=number if use is None else use,
            value=value,
            extra=self.study.resolver.beyond(value, self.value),
            design=plan.design,
        )
