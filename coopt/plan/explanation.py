"""Why a plan is as it is, or why there is none: what `coopt explain` answers. Data only.

Limits go by their keys in the instance (`workload[0].max_iteration_time_s`, `limits.power_mw`). Values of the objective
are in USD, or in W where power is minimised.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.record import Record
from coopt.plan.schema import Design, InstanceId


class NextPlan(Record):
    """The plan that takes over when a bound moves to `bound`, and what it costs more than the plan (or less)."""

    bound: float
    value: float
    extra: float
    design: Design


class Bound(Record):
    """A bound on the plan; it binds where a cheaper plan waits beyond it.

    `used` is what the plan takes of it, and so the tightest bound that keeps the plan. `tighter` is the cheapest plan
    that takes less, `looser` the one that comes in first as the bound gives way.
    """

    limit: str
    unit: str
    bound: float
    used: float
    slack: Annotated[float, Field(description="distance from `used` to `bound`, as a share of `bound`")]
    binds: bool
    tighter: NextPlan | None
    looser: NextPlan | None


class Rival(Record):
    """The cheapest plan with another choice of one part; without `design` none meets the bounds, and `why` says so."""

    part: str
    choice: str
    value: float | None
    extra: float | None
    design: Design | None
    why: str


class PriceRange(Record):
    """Between `low` and `high` the plan stays optimal while every other price stays; no `high` means however dear.

    `below` and `above` are the designs that take over just outside.
    """

    item: str
    unit: Annotated[str, Field(description="USD, W (where power is minimised) or USD/kWh")]
    now: float
    low: float
    high: float | None
    below: Design | None
    above: Design | None


class RunnerUp(Record):
    """The best design besides the plan, and what choosing it instead costs."""

    value: float
    regret: float
    design: Design
    why: str


class Change(Record):
    """One limit and what it has to become; `to` is text as one types it, `least` the exact threshold of a number."""

    limit: str
    now: str
    to: str
    least: float | None
    share: Annotated[float | None, Field(description="how far a number moves, as a share of what it is now")]


class Relaxation(Record):
    """Limits that, moved together, let a plan in: found by solving the changed instance, with what it then costs."""

    changes: tuple[Change, ...]
    value: float
    design: Design


class Explanation(Record):
    """What binds a plan and what would change it; without a plan, what has to give.

    `conflict` is a set of limits that no design keeps together, even without all others; without any one of them some
    design does.
    `status` is "unknown" where time ran out.
    """

    schema_: Annotated[Literal["coopt-explanation/1"], Field(alias="schema")] = "coopt-explanation/1"
    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    kind: Literal["capex", "power", "tco"]
    value: float | None = None
    design: Design | None = None
    sentences: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    rivals: tuple[Rival, ...] = ()
    prices: tuple[PriceRange, ...] = ()
    runner_up: RunnerUp | None = None
    relaxations: tuple[Relaxation, ...] = ()
    conflict: tuple[str, ...] = ()
