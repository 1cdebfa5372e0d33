"""What a plan stands. Data only."""

from __future__ import annotations

from typing import Literal

from coopt.plan.parts import Record, WorkloadPlan


class Survived(Record):
    """The loss of any one part of a kind: NICs a domain has fewer, and the factor by which bounds are longer then.

    `slowdown` is how much longer traffic of the domain takes. A lost domain has no traffic; `workloads` then says how
    each workload runs on others, by its fastest mapping there.
    """

    part: Literal["nic", "leaf", "plane", "domain"]
    nics_lost: int
    slower: float
    slowdown: float | None = None
    workloads: tuple[WorkloadPlan, ...] = ()


class Turn(Record):
    """One way prices may turn out: factors by kind, the objective of the plan then, and that of the best plan."""

    factors: dict[str, float]
    value: float
    best: float


class Standing(Record):
    """How robust a plan is.

    With the aim "worst-case" the bill and the objective are at the worst prices, and `list_value` is the objective at
    those of the instance. With "regret" the objective is the largest excess over the best plan, `turns` hold them all,
    and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    survived: tuple[Survived, ...]
    list_value: float
    turns: tuple[Turn, ...] = ()
