"""What a run of the solver has to say, as a plan."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from coopt.columns.context import context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.blueprint import design
from coopt.plan.effort import SolverReport, Timing
from coopt.plan.progress import OnProgress, Progress
from coopt.plan.schema import Alternative, AlternativesStop, InstanceId, ObjectiveClaim, Plan
from coopt.solving.backend import Backend
from coopt.solving.candidates import Candidate
from coopt.solving.effort import Effort, Tally
from coopt.solving.highs import Standing
from coopt.solving.loop import Search
from coopt.solving.workloads import workload_plan

ROUNDING = 1e-9
"""A gap this far beyond the one asked for is still that gap."""


class OutOfTimeError(Exception):
    """The time limit passed before the search began."""


@dataclass(kw_only=True)
class Run:
    """One call of `solve`: its clock, and what it learned so far."""

    instance: Instance
    backend: Backend
    on_progress: OnProgress | None
    started: float = field(default_factory=time.perf_counter)
    model_s: float = 0.0
    columns_s: float = 0.0
    families: int = 0
    formulation: str = ""
    table: Tally | None = None
    searches: list[Effort] = field(default_factory=list)

    @property
    def deadline(self) -> float:
        """When to stop, on the clock of `time.perf_counter`."""
        return self.started + self.instance.solver.time_limit_s

    def tell(
        self,
        stage: str,
        message: str,
        best: float | None = None,
        bound: float | None = None,
        nodes: int | None = None,
    ) -> None:
        """Report a step to the caller."""
        if self.on_progress:
            s = self.elapsed_s()
            step = Progress(stage=stage, message=message, elapsed_s=s, best=best, bound=bound, nodes=nodes)
            self.on_progress(step)

    def tell_standing(self, now: Standing) -> None:
        """Report how far the solver is, in objective units; a caller that interrupts is not called again."""
        message = f"{now.nodes:,} {'node' if now.nodes == 1 else 'nodes'}"
        try:
            self.tell("solve", message, best=now.best, bound=now.bound, nodes=now.nodes)
        except KeyboardInterrupt:
            self.on_progress = None
            raise

    def check_clock(self) -> None:
        """Raise OutOfTimeError when the time limit has passed."""
        if self.elapsed_s() > self.instance.solver.time_limit_s:
            raise OutOfTimeError

    def elapsed_s(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self.started


def plan_of(
    run: Run,
    result: Search,
    found: Candidate,
    table: Columns,
    alternatives: tuple[Alternative, ...] = (),
    alternatives_stop: AlternativesStop | None = None,
) -> Plan:
    """The plan of a network that was found."""
    first, reason = alternative_of(run, result, found, table), ending(run, result)
    parts = {"design": first.design, "cost": first.cost, "workloads": first.workloads}
    return answered(
        run, reason, first.objective, **parts, alternatives=alternatives, alternatives_stop=alternatives_stop
    )


def answered(run: Run, reason: str, claim: ObjectiveClaim, **parts: Any) -> Plan:
    """A plan with what was found, "optimal" where that is the reason the search ended."""
    proven = reason == "optimal"
    run.tell("done", "proven optimal" if proven else f"stopped: {reason}", best=claim.value, bound=claim.bound)
    return Plan(
        instance=_identity(run.instance),
        status="optimal" if proven else "feasible",
        stop_reason=reason,
        objective=claim,
        solver=_report(run),
        timing_s=_timing(run),
        **parts,
    )


def alternative_of(run: Run, result: Search, found: Candidate, table: Columns) -> Alternative:
    """A network that was found, written out with what is proven about it."""
    instance, context = run.instance, context_of(found.family)
    return Alternative(
        objective=_claim(instance, result, found),
        design=design(found.family, found.uplinks),
        cost=found.cost,
        workloads=tuple(
            workload_plan(table.pools[w, context.site], instance.cluster.gpu, context, found.uplinks, row)
            for w, row in enumerate(found.rows)
        ),
    )


def ending(run: Run, result: Search) -> str:
    """Why a search ended; "optimal" only with a proof within the gap that was asked for."""
    outcome, target = result.answer.outcome, run.instance.solver.gap
    if outcome == "optimal" and result.found is not None and run.backend.interface is not None:
        gap = _claim(run.instance, result, result.found).gap
        if gap is None or gap > target + ROUNDING:
            return "the solver's own gap"
    return outcome


def _claim(instance: Instance, result: Search, found: Candidate) -> ObjectiveClaim:
    return claim_of(instance.objective.minimize, found.cost.of(instance.objective.minimize), result.bound)


def claim_of(kind: ObjectiveKind, value: float, proven: float) -> ObjectiveClaim:
    """A value with the bound that was proven and the gap between them."""
    bound = min(proven, value)
    gap = 0.0 if bound == value else (value - bound) / value if value else math.inf
    return ObjectiveClaim(
        kind=kind,
        value=value,
        bound=bound if math.isfinite(bound) else None,
        gap=gap if math.isfinite(gap) else None,
    )


def without_design(
    run: Run, status: Literal["infeasible", "unknown"], stop_reason: str, explanation: tuple[str, ...] = ()
) -> Plan:
    """The answer without a design."""
    run.tell("done", status)
    bounds = [search.bound for search in run.searches[:1] if status == "unknown" and math.isfinite(search.bound)]
    bound = bounds[0] if bounds else None
    return Plan(
        instance=_identity(run.instance),
        status=status,
        stop_reason=stop_reason,
        explanation=explanation,
        objective=ObjectiveClaim(kind=run.instance.objective.minimize, value=None, bound=bound, gap=None),
        solver=_report(run),
        timing_s=_timing(run),
    )


def _identity(instance: Instance) -> InstanceId:
    return InstanceId(name=instance.name, sha256=instance.sha256)


def _report(run: Run) -> SolverReport:
    table, chosen = run.table, run.instance.solver
    settings: dict[str, float | int | str | bool] = {"gap": chosen.gap, "time_limit_s": chosen.time_limit_s}
    return SolverReport(
        formulation=run.formulation or chosen.formulation,
        name=run.backend.name,
        version=run.backend.version,
        options=run.backend.settings | settings,
        nodes=sum(search.nodes for search in run.searches),
        columns_enumerated=table.enumerated if table else 0,
        columns_gated=table.gated if table else {},
        columns_kept=table.kept if table else 0,
        families=run.families,
        cuts=sum(search.cuts for search in run.searches),
    )


def _timing(run: Run) -> Timing:
    return Timing(
        model=run.model_s,
        columns=run.columns_s,
        build=sum(search.build_s for search in run.searches),
        handover=sum(search.handover_s for search in run.searches),
        solve=sum(search.solve_s for search in run.searches),
        total=run.elapsed_s(),
    )
