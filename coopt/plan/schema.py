"""The plan: what to build, what it costs, how fast it trains, and what is proven.

Data only. `solving` fills it, `verifier` doubts it, `report` shows it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.cores import Core
from coopt.plan.couplings import Couplings as Couplings
from coopt.plan.couplings import Part as Part
from coopt.plan.direct_links import DirectLinks
from coopt.plan.effort import SolverReport, Timing
from coopt.plan.islands import Island
from coopt.plan.parts import Cost as Cost
from coopt.plan.parts import Design as Design
from coopt.plan.parts import Fabric as Fabric
from coopt.plan.parts import HbDomainChoice as HbDomainChoice
from coopt.plan.parts import Item as Item
from coopt.plan.parts import MappingChoice as MappingChoice
from coopt.plan.parts import NicChoice as NicChoice
from coopt.plan.parts import SwitchChoice as SwitchChoice
from coopt.plan.parts import Tier as Tier
from coopt.plan.parts import WorkloadPlan as WorkloadPlan
from coopt.plan.phases import Myopic, PhasePlan
from coopt.plan.record import Record as Record
from coopt.plan.robust import Standing
from coopt.plan.sites import Together


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


class Rivals(Record):
    """What is known of the cheapest cluster with direct links, and of the cheapest with switches; no value without one.

    Bounds and gaps are those of each by itself.
    """

    direct: ObjectiveClaim
    switched: ObjectiveClaim


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
    In place of one design a partition has an island for each workload, and a `core` where they share one; a plan for
    several sites has them in `together`, and one on direct links has these in `direct`.
    `rivals` compares direct links with switches where an instance allows both.
    `alternatives` are the runners-up that were asked for, best first; `alternatives_stop` says why there are no more.
    With `phases`, `design` and `workloads` are those of the last phase and `cost` holds what all of them buy.
    In schema 2 `parts` are the networks and `couplings` what ties them; `cost` is the bill of everything together.
    """

    schema_: Annotated[Literal["coopt-plan/1", "coopt-plan/2"], Field(alias="schema")] = "coopt-plan/1"
    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    stop_reason: str
    explanation: tuple[str, ...] = ()
    objective: ObjectiveClaim
    design: Design | None = None
    islands: tuple[Island, ...] = ()
    core: Core | None = None
    cost: Cost | None = None
    workloads: tuple[WorkloadPlan, ...] = ()
    together: Together | None = None
    robust: Standing | None = None
    direct: DirectLinks | None = None
    rivals: Rivals | None = None
    alternatives: tuple[Alternative, ...] = ()
    alternatives_stop: AlternativesStop | None = None
    phases: tuple[PhasePlan, ...] = ()
    myopic: Myopic | None = None
    parts: tuple[Part, ...] = ()
    couplings: Couplings = Couplings()
    solver: SolverReport
    timing_s: Timing
