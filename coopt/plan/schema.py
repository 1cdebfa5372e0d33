"""The plan: what to build, what it costs, how fast it trains, and what is proven.

Data only. `solving` fills it, `verifier` doubts it, `report` shows it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.design import Design as Design
from coopt.plan.design import Fabric as Fabric
from coopt.plan.design import HbDomainChoice as HbDomainChoice
from coopt.plan.design import NicChoice as NicChoice
from coopt.plan.design import SwitchChoice as SwitchChoice
from coopt.plan.design import Tier as Tier
from coopt.plan.effort import SolverReport, Timing
from coopt.plan.islands import Island
from coopt.plan.record import Record as Record


class InstanceId(Record):
    """Which question the plan answers."""

    name: str
    sha256: str


class ObjectiveClaim(Record):
    """What is minimised, the plan's value, and the proven lower bound; units follow `kind` (USD or W)."""

    kind: Literal["capex", "power", "tco"]
    value: float | None
    bound: float | None
    gap: float | None


class Item(Record):
    """A line of the bill of materials; usd = count * unit_usd, w = count * unit_w."""

    item: str
    kind: Literal["hb", "nic", "switch", "optics", "gpu"]
    count: int
    unit_usd: float
    usd: float
    unit_w: float
    w: float


class Cost(Record):
    """What it costs; the items sum to it."""

    capex_usd: float
    power_w: float
    tco_usd: float
    items: tuple[Item, ...]

    def of(self, kind: Literal["capex", "power", "tco"]) -> float:
        """The value of an objective: USD for capex and tco, W for power."""
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


class MappingChoice(Record):
    """How a workload is split."""

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    interleave: int
    recompute: Literal["none", "selective", "full"]
    sequence_parallel: bool
    zero: int


class WorkloadPlan(Record):
    """How one workload runs.

    `placement` maps each dimension to [inside HB domain, across]; `knobs` names what departs from ordinary training.
    """

    name: str
    gpus: int
    mapping: MappingChoice
    placement: dict[str, tuple[int, int]]
    iteration_time_s: float
    bound_s: float
    breakdown_s: dict[str, float]
    memory_gib: float
    memory_limit_gib: float
    mfu: float
    hfu: float
    tokens_per_s: float
    knobs: tuple[str, ...] = ()


class Alternative(Record):
    """A runner-up: the best design besides those listed before it, with a bound on all of those besides."""

    objective: ObjectiveClaim
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]


AlternativesStop = Literal["all found", "no other design", "time limit", "interrupted", "not proven"]


class Plan(Record):
    """The answer to an instance.

    `design`, `cost` and `workloads` are empty where there is no plan; `explanation` then says why, in sentences.
    A partition has an island for each workload in place of the one design.
    `alternatives` are the runners-up that were asked for, best first; `alternatives_stop` says why there are no more.
    """

    schema_: Annotated[Literal["coopt-plan/1"], Field(alias="schema")] = "coopt-plan/1"
    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    stop_reason: str
    explanation: tuple[str, ...] = ()
    objective: ObjectiveClaim
    design: Design | None = None
    islands: tuple[Island, ...] = ()
    cost: Cost | None = None
    workloads: tuple[WorkloadPlan, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    alternatives_stop: AlternativesStop | None = None
    solver: SolverReport
    timing_s: Timing
