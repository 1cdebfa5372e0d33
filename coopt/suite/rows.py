"""What came of a case, as it is kept in a file of its own, and as one row of a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from coopt._version import __version__
from coopt.plan.evaluation import Evaluation
from coopt.plan.flat import flat_design, flat_plan
from coopt.plan.parts import Record
from coopt.plan.schema import Cost, Plan, WorkloadPlan
from coopt.suite.cases import Case
from coopt.suite.form import Action
from coopt.suite.table import COLUMNS, Row

Status = Literal["optimal", "feasible", "infeasible", "unknown", "fastest", "refused", "failed"]


class AnyToAny(Record):
    """Switches and optics of the cheapest full-bandwidth any-to-any network for the same domains."""

    network_usd: float
    network_w: float


class Outcome(Record):
    """The answer to one case: a plan, an evaluation of the fastest design, or sentences that say why there is none.

    `cpu_s` and `wall_s` are those of the process that worked on it.
    """

    schema_: Annotated[Literal["coopt-case/1"], Field(alias="schema")] = "coopt-case/1"
    case_id: str
    action: Action
    status: Status
    why: tuple[str, ...] = ()
    plan: Plan | None = None
    fastest: Evaluation | None = None
    any_to_any: AnyToAny | None = None
    cpu_s: float = 0.0
    wall_s: float = 0.0
    coopt: str = __version__

    @property
    def answered(self) -> bool:
        """Whether this is an answer for good; a case that failed may succeed when it is asked again."""
        return self.status != "failed"


def network_of(cost: Cost) -> dict[str, float]:
    """Purchase (USD) and power (W) of switches and optics alone."""
    items = [item for item in cost.items if item.kind in ("switch", "optics")]
    return {"network_usd": sum(item.usd for item in items), "network_w": sum(item.w for item in items)}


def row_of(suite: str, case: Case, outcome: Outcome) -> Row:
    """The row of a case: its axes, the columns of `COLUMNS` with None where nothing is known, all workloads."""
    answer = outcome.plan or outcome.fastest
    row: Row = dict(case.axes) | dict.fromkeys(COLUMNS)
    row |= {
        "suite": suite,
        "grid": case.grid,
        "case_id": case.case_id,
        "instance": case.instance,
        "action": case.action,
        "status": outcome.status,
        "why": "\n".join(outcome.why) or None,
        "cpu_s": outcome.cpu_s,
        "wall_s": outcome.wall_s,
        "coopt": outcome.coopt,
        "overrides": json.dumps(dict(case.overrides), default=str),
        "workloads": [],
    }
    if outcome.plan is not None:
        row |= _search_row(outcome.plan)
    if answer is not None and answer.cost is not None:
        row |= flat_plan(answer) if isinstance(answer, Plan) else flat_design(answer.design)
        row |= _cost_row(answer.cost, outcome)
        row["workloads"] = [_workload_row(workload) for workload in _runs(answer)]
        row |= row["workloads"][0]
    return row


def _runs(answer: Plan | Evaluation) -> Iterator[WorkloadPlan]:
    """How every workload runs, on an island that grows in the end; one on several sites runs on each of them."""
    if not isinstance(answer, Plan):
        yield from answer.workloads
    elif answer.together is not None:
        for site in answer.together.sites:
            for run in site.workloads:
                yield run.model_copy(update={"name": f"{run.name} at {site.name}"})
    elif answer.phases:
        yield from answer.phases[-1].workloads
    else:
        yield from {run.name: run for run in answer.runs}.values()


def _search_row(plan: Plan) -> Row:
    return {
        "stop_reason": plan.stop_reason,
        "objective": plan.objective.kind,
        "value": plan.objective.value,
        "bound": plan.objective.bound,
        "gap": plan.objective.gap,
        "families": plan.solver.families,
        "mappings": plan.solver.columns_enumerated,
        "nodes": plan.solver.nodes,
    }


def _cost_row(cost: Cost, outcome: Outcome) -> Row:
    """What the plan costs, and what its switches and optics save against any-to-any."""
    own = network_of(cost)
    row: Row = {"capex_usd": cost.capex_usd, "power_w": cost.power_w, "tco_usd": cost.tco_usd, **own}
    other = outcome.any_to_any
    if other is not None:
        row |= {"any_to_any_usd": other.network_usd, "any_to_any_w": other.network_w}
        row["saving"] = 1.0 - own["network_usd"] / other.network_usd if other.network_usd else None
        row["power_saving"] = 1.0 - own["network_w"] / other.network_w if other.network_w else None
    return row


def _workload_row(workload: WorkloadPlan) -> Row:
    return {
        "workload": workload.name,
        "iteration_time_s": workload.iteration_time_s,
        "bound_s": workload.bound_s,
        **workload.mapping.model_dump(exclude={"sequence_parallel"}),
        "memory_gib": workload.memory_gib,
        "mfu": workload.mfu,
        "hfu": workload.hfu,
        "tokens_per_s": workload.tokens_per_s,
    }
