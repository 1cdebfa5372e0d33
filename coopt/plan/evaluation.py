"""The value of one given design and mapping, without a claim that it is the best."""

from __future__ import annotations

from coopt.plan.schema import Cost, Design, InstanceId, Record, WorkloadPlan


class LimitCheck(Record):
    """One limit of the instance against what the design does; `value <= limit` when `ok`."""

    name: str
    value: float
    limit: float
    unit: str
    ok: bool


class Evaluation(Record):
    """What `coopt evaluate` answers."""

    instance: InstanceId
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]
    limits: tuple[LimitCheck, ...]
