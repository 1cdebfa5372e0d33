"""Answer an instance."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from coopt.columns.context import Site, context_of
from coopt.columns.table import Columns, columns
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.design import design
from coopt.network.families import families
from coopt.network.family import Family
from coopt.network.prices import weigh
from coopt.plan.progress import OnProgress, Progress
from coopt.plan.schema import InstanceId, ObjectiveClaim, Plan, SolverReport, Timing
from coopt.solving import explain
from coopt.solving.assemble import assemble, viable
from coopt.solving.highs import options, version
from coopt.solving.search import Search, search
from coopt.solving.workloads import workload_plan


class _OutOfTimeError(Exception):
    """The time limit passed before the search began."""


@dataclass
class _Run:
    """One call of `solve`: its settings, its clock, and what it learned so far."""

    instance: Instance
    formulation: str
    gap: float
    threads: int
    time_limit_s: float
    on_progress: OnProgress | None
    started: float = field(default_factory=time.perf_counter)
    model_s: float = 0.0
    columns_s: float = 0.0
    families: int = 0
    table: Columns | None = None
    search: Search | None = None

    def tell(self, stage: str, message: str, best: float | None = None, bound: float | None = None) -> None:
        if self.on_progress:
            self.on_progress(Progress(stage=stage, message=message, elapsed_s=self.elapsed_s(), best=best, bound=bound))

    def elapsed_s(self) -> float:
        return time.perf_counter() - self.started


def solve(
    instance: Instance,
    *,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    formulation: str | None = None,
    objective: ObjectiveKind | None = None,
    on_progress: OnProgress | None = None,
) -> Plan:
    """The design and mappings of least cost that meet every bound, with a proof.

    Parameters
    ----------
    time_limit_s, gap, threads, formulation
        Replace the instance's `[solver]` values.
    objective
        Replaces `objective.minimize`.
    on_progress
        Called with each step.

    Returns
    -------
    Plan
        With status "optimal", "feasible", "infeasible" or "unknown"; a KeyboardInterrupt ends with the best plan so
        far.
    """
    if objective is not None:
        instance = instance.model_copy(
            update={"objective": instance.objective.model_copy(update={"minimize": objective})}
        )
    chosen = instance.solver
    run = _Run(
        instance=instance,
        formulation=formulation or chosen.formulation,
        gap=chosen.gap if gap is None else gap,
        threads=threads or chosen.threads,
        time_limit_s=chosen.time_limit_s if time_limit_s is None else time_limit_s,
        on_progress=on_progress,
    )
    try:
        return _answer(run)
    except KeyboardInterrupt:
        run.on_progress = None  # the callback may be what was interrupted
        return _empty(run, "unknown", "interrupted", ())
    except _OutOfTimeError:
        return _empty(run, "unknown", "time limit", ())


def _answer(run: _Run) -> Plan:
    instance = run.instance
    every = tuple(families(instance))
    run.model_s, run.families = run.elapsed_s(), len(every)
    if not every:
        return _empty(run, "infeasible", "infeasible", explain.no_family(instance))
    run.tell("columns", f"{len(every):,} network families")
    table = _columns(run, every)
    serving = viable(instance, every, table)
    run.tell(
        "build",
        f"{table.enumerated:,} columns enumerated, {table.kept:,} kept, "
        f"{len(serving):,} families can serve every workload",
    )
    if not serving:
        return _empty(run, "infeasible", "infeasible", explain.no_design(instance, every, table))
    problem = assemble(instance, serving, table)
    run.tell("solve", f"formulation {run.formulation!r} handed to HiGHS")
    run.search = search(
        instance,
        problem,
        table,
        formulation=run.formulation,
        gap=run.gap,
        threads=run.threads,
        deadline=run.started + run.time_limit_s,
    )
    if run.search.answer.outcome == "infeasible":
        return _empty(run, "infeasible", "infeasible", explain.over_limits(instance, serving, table))
    assert run.search.answer.outcome in ("optimal", "time limit", "interrupted"), (
        f"HiGHS stopped: {run.search.answer.detail}"
    )
    return _plan(run, run.search, table) if run.search.found else _empty(run, "unknown", run.search.answer.outcome, ())


def _columns(run: _Run, every: tuple[Family, ...]) -> Columns:
    before = run.elapsed_s()

    def on_site(site: Site) -> None:
        if run.elapsed_s() > run.time_limit_s:
            raise _OutOfTimeError
        run.tell("columns", f"{site.gpus:,} GPUs in {site.hb}, {site.active} active in each")

    run.table = columns(run.instance, every, on_site)
    run.columns_s = run.elapsed_s() - before
    return run.table


def _plan(run: _Run, result: Search, table: Columns) -> Plan:
    found, instance = result.found, run.instance
    assert found is not None
    context = context_of(found.family)
    value = weigh(instance.objective, found.cost.capex_usd, found.cost.power_w)
    bound = min(result.bound, value)
    gap = _gap(value, bound)
    proven = result.answer.outcome == "optimal"
    run.tell("done", "proven optimal" if proven else f"stopped: {result.answer.outcome}", best=value, bound=bound)
    return Plan(
        instance=_identity(instance),
        status="optimal" if proven else "feasible",
        stop_reason=result.answer.outcome,
        objective=ObjectiveClaim(
            kind=instance.objective.minimize,
            value=value,
            bound=bound if math.isfinite(bound) else None,
            gap=gap if math.isfinite(gap) else None,
        ),
        design=design(found.family, found.uplinks),
        cost=found.cost,
        workloads=tuple(
            workload_plan(table.pools[w, context.site], instance.cluster.gpu, context, found.uplinks, row)
            for w, row in enumerate(found.rows)
        ),
        solver=_report(run),
        timing_s=_timing(run),
    )


def _gap(value: float, bound: float) -> float:
    if value == bound:
        return 0.0
    return (value - bound) / value


def _empty(run: _Run, status: str, stop_reason: str, explanation: tuple[str, ...]) -> Plan:
    """The answer without a design."""
    run.tell("done", status)
    bound = run.search.bound if run.search and status != "infeasible" and math.isfinite(run.search.bound) else None
    return Plan(
        instance=_identity(run.instance),
        status=status,  # type: ignore[arg-type]
        stop_reason=stop_reason,
        explanation=explanation,
        objective=ObjectiveClaim(kind=run.instance.objective.minimize, value=None, bound=bound, gap=None),
        solver=_report(run),
        timing_s=_timing(run),
    )


def _identity(instance: Instance) -> InstanceId:
    return InstanceId(name=instance.name, sha256=instance.sha256)


def _report(run: _Run) -> SolverReport:
    table, result = run.table, run.search
    return SolverReport(
        formulation=run.formulation,
        name="HiGHS",
        version=version(),
        options=options(gap=run.gap, threads=run.threads) | {"gap": run.gap, "time_limit_s": run.time_limit_s},
        nodes=result.nodes if result else 0,
        columns_enumerated=table.enumerated if table else 0,
        columns_gated=table.gated if table else {},
        columns_kept=table.kept if table else 0,
        families=run.families,
        cuts=result.cuts if result else 0,
    )


def _timing(run: _Run) -> Timing:
    result = run.search
    return Timing(
        model=run.model_s,
        columns=run.columns_s,
        build=result.build_s if result else 0.0,
        handover=result.handover_s if result else 0.0,
        solve=result.solve_s if result else 0.0,
        total=run.elapsed_s(),
    )
