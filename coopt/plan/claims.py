"""What every answer says, whatever it builds: which question it answers, what it is worth, and how it was found."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.choices import Chosen
from coopt.instance.question import ObjectiveKind
from coopt.instance.texts import toml_text
from coopt.plan.direct_links import LinkLengths
from coopt.plan.effort import SolverReport, Timing
from coopt.plan.parts import Cost, Design, Record, WorkloadPlan


class InstanceId(Record):
    """Which question the plan answers."""

    name: str
    sha256: str


class ObjectiveClaim(Record):
    """What is minimised, the plan's value, and the proven lower bound; units follow `kind` (USD or W)."""

    kind: ObjectiveKind
    value: float | None
    bound: float | None
    gap: float | None


class Overrides(Record):
    """What a run was asked in place of what the instance says: another objective, another relative gap.

    `values` are those that replaced values of the file before it was read, by dotted key: `instance` names the question
    that they make.
    """

    objective: ObjectiveKind | None = None
    gap: Annotated[float | None, Field(ge=0, lt=1)] = None
    values: dict[str, Any] = Field(default_factory=dict)

    @property
    def replaced(self) -> str:
        """`cluster.gpus = 128, network.fabrics = "clos"`; empty where nothing of the file was replaced."""
        return ", ".join(f"{key} = {toml_text(value)}" for key, value in self.values.items())


class Rivals(Record):
    """What is known of the cheapest cluster with direct links, and of the cheapest with switches; no value without one.

    Bounds and gaps are those of each by itself; `lengths` of links prove the bound of direct ones
    (docs/certificates.md).
    """

    direct: ObjectiveClaim
    switched: ObjectiveClaim
    lengths: tuple[LinkLengths, ...] = ()


class Alternative(Record):
    """A runner-up: the best design besides those listed before it, with a bound on all of those besides."""

    objective: ObjectiveClaim
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]


AlternativesStop = Literal["all found", "no other design", "time limit", "interrupted", "not proven"]


class Answer(Record):
    """What documents of every schema have."""

    instance: InstanceId
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    stop_reason: str
    explanation: tuple[str, ...] = ()
    objective: ObjectiveClaim
    overrides: Overrides = Overrides()
    chosen: Chosen = Chosen()
    design: Design | None = None
    cost: Cost | None = None
    workloads: tuple[WorkloadPlan, ...] = ()
    rivals: Rivals | None = None
    alternatives: tuple[Alternative, ...] = ()
    alternatives_stop: AlternativesStop | None = None
    solver: SolverReport
    timing_s: Timing
