"""The value of one given design and mapping, without a claim that it is the best."""

from __future__ import annotations

from coopt.instance.question import ObjectiveKind
from coopt.plan.schema import Cost, Design, InstanceId, Record, WorkloadPlan


class LimitCheck(Record):
    """One limit of the instance against what the design does; `value <= limit` when `ok`."""

    name: str
    value: float
    limit: float
    unit: str
    ok: bool

    @property
    def slack(self) -> float | None:
        """How far the value stays below the limit, as a share of it; None of a limit of nothing."""
        return (self.limit - self.value) / self.limit if self.limit else None


class Evaluation(Record):
    """What `coopt evaluate` answers."""

    instance: InstanceId
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]
    limits: tuple[LimitCheck, ...]


class RankedMappings(Record):
    """The fastest mappings of a workload on a network, each with its fastest placement.

    `listed` divide evenly, `fitting` of them fit into memory.
    """

    name: str
    bound_s: float
    listed: int
    fitting: int
    mappings: tuple[WorkloadPlan, ...]


class MappingRanking(Record):
    """What `coopt evaluate --mappings` answers: on this design, which mapping."""

    instance: InstanceId
    design: Design
    workloads: tuple[RankedMappings, ...]


class PlanFigure(Record):
    """A number that follows from the decisions of a plan; `of` names the workload or site, empty for everything."""

    name: str
    of: str
    value: float
    unit: str


class PlanEvaluation(Record):
    """What the decisions of a plan amount to: `value` is the objective, `kind` says of which kind (USD or W)."""

    instance: InstanceId
    kind: ObjectiveKind
    value: float
    figures: tuple[PlanFigure, ...]
    limits: tuple[LimitCheck, ...]
