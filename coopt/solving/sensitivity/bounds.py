"""What a plan takes of every limit, whether it binds, and what a little more or less of it costs."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.plan.explanation import Bound, NextPlan
from coopt.plan.schema import Plan
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

STEP = 0.01
"""By which share a bound is moved to see its price."""


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
