"""What a run of the solver has to say, as a plan.

Every claim of its networks was recomputed from the decisions; of those that cost the same, the
fastest counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.table import Columns
from coopt.instance.errors import with_names
from coopt.instance.numerics import EQUAL, REORDERED
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import rows_by_name
from coopt.network.family import Family
from coopt.network.parts import Affine, cost_of, within_limits
from coopt.network.plan_networks import design_of
from coopt.plan.claims import SolverReport, Timing
from coopt.plan.schema import Alternative, Cost, Couplings, InstanceId, ObjectiveClaim, Part, Plan
from coopt.solving.arrays import SharedProblem, fastest_row
from coopt.solving.days import allowed_s, run_on
from coopt.solving.highs import Outcome
from coopt.solving.runs import Run, SearchStatistics, StoppedError, Why

NOTHING_TIED = Couplings()


def answered(
    run: Run,
    reason: str,
    claim: ObjectiveClaim,
    *,
    cost: Cost,
    parts: tuple[Part, ...],
    couplings: Couplings = NOTHING_TIED,
    **details: Any,
) -> Plan:
    """A plan with the parts that were found, "optimal" where that is the reason the search
    ended.
    """
    proven = reason == "optimal"
    run.tell(
        "done",
        "proven optimal" if proven else f"stopped: {reason}",
        best=claim.value,
        bound=claim.bound,
    )
    only = parts[0] if len(parts) == 1 else None
    return Plan(
        instance=identity(run.instance),
        status="optimal" if proven else "feasible",
        stop_reason=reason,
        objective=claim,
        solver=report_of(run),
        timing_s=timing_of(run),
        design=only.design if only else None,
        workloads=only.workloads if only else (),
        cost=cost,
        parts=parts,
        couplings=couplings,
        **details,
    )


def alternative_of(
    run: Run, result: SearchStatistics, candidate: Candidate, table: Columns
) -> Alternative:
    """A network that was found, written out with what is proven about it."""
    return written_out(run.instance, candidate, result.bound, table)


def written_out(
    instance: Instance, candidate: Candidate, bound: float, table: Columns
) -> Alternative:
    """A network with a proven lower bound (in objective units) on its cost."""
    site, kind = context_of(candidate.family).site, instance.objective.minimize
    return Alternative(
        objective=claim_of(kind, candidate.cost.of(kind), bound),
        design=design_of(candidate.family, candidate.uplinks),
        cost=candidate.cost,
        workloads=tuple(
            run_on(
                instance,
                candidate.family,
                candidate.uplinks,
                instance.workload[w],
                table.pools[w, site],
                row,
            )
            for w, row in enumerate(candidate.rows)
        ),
    )


def ending(run: Run, outcome: Outcome, claim: ObjectiveClaim) -> str:
    """Why a search that found something ended; "optimal" only with a proof within the gap that was
    asked for.
    """
    return (
        "the solver's own gap" if outcome == "optimal" and not within_gap(run, claim) else outcome
    )


def within_gap(run: Run, claim: ObjectiveClaim) -> bool:
    """Whether a claim is proven within the gap that was asked for."""
    return claim.gap is not None and claim.gap <= run.instance.solver.gap + EQUAL


def claim_of(kind: ObjectiveKind, value: float, proven: float) -> ObjectiveClaim:
    """A value with the bound that was proven and the gap between them.

    Nothing costs less than nothing, and no regret is below 0: a bound below is short by the
    solver's rounding. So is one that only the last digits keep from the value; those depend on the
    unit, which is that of the dearest network.
    """
    bound = min(max(proven, 0.0) if math.isfinite(proven) else proven, value)
    bound = value if math.isclose(bound, value, rel_tol=REORDERED, abs_tol=0.0) else bound
    gap = 0.0 if bound == value else (value - bound) / value if value else math.inf
    return ObjectiveClaim(
        kind=kind,
        value=value,
        bound=bound if math.isfinite(bound) else None,
        gap=gap if math.isfinite(gap) else None,
    )


def infeasible(run: Run, reasons: Why) -> Plan:
    """The answer that there is none, and why where that is asked for and found in time."""
    names, explanation = rows_by_name(run.instance), tuple[str, ...]()
    if run.reasons:
        try:
            explanation = tuple(with_names(sentence, names) for sentence in reasons())
        except StoppedError as stopped:
            explanation = (f"The search for the reasons ended early ({stopped}).",)
    return _without_design(run, "infeasible", "infeasible", explanation, None)


def unknown(run: Run, stop_reason: str, bound: float = -math.inf) -> Plan:
    """The answer of a search that ended with nothing but a bound (in objective units), if that."""
    return _without_design(run, "unknown", stop_reason, (), bound if math.isfinite(bound) else None)


def _without_design(
    run: Run,
    status: Literal["infeasible", "unknown"],
    stop_reason: str,
    explanation: tuple[str, ...],
    bound: float | None,
) -> Plan:
    run.tell("done", status)
    return Plan(
        instance=identity(run.instance),
        status=status,
        stop_reason=stop_reason,
        explanation=explanation,
        objective=ObjectiveClaim(
            kind=run.instance.objective.minimize, value=None, bound=bound, gap=None
        ),
        solver=report_of(run),
        timing_s=timing_of(run),
    )


def identity(instance: Instance) -> InstanceId:
    """Which question is answered."""
    return InstanceId(name=instance.name, sha256=instance.sha256)


def report_of(run: Run) -> SolverReport:
    """How the answer was found so far."""
    table, solver = run.log.table, run.instance.solver
    settings: dict[str, float | int | str | bool] = {
        "gap": solver.gap,
        "time_limit_s": solver.time_limit_s,
    }
    return SolverReport(
        formulation=run.formulation,
        name=run.backend.name,
        version=run.backend.version,
        options=run.backend.settings | settings,
        nodes=sum(search.nodes for search in run.log.searches),
        columns_enumerated=table.enumerated if table else 0,
        columns_gated=table.gated if table else {},
        columns_kept=table.kept if table else 0,
        families=run.log.families,
        cuts=sum(search.cuts for search in run.log.searches),
    )


def timing_of(run: Run) -> Timing:
    """Wall seconds so far."""
    return Timing(
        model=run.log.model_s,
        columns=run.log.columns_s,
        build=sum(search.build_s for search in run.log.searches),
        handover=sum(search.handover_s for search in run.log.searches),
        solve=sum(search.solve_s for search in run.log.searches),
        total=run.elapsed_s(),
    )


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A network, what it costs, and each workload's fastest mapping on it: its row and its share of
    the time bound.
    """

    family: Family
    uplinks: int
    cost: Cost
    rows: tuple[int, ...]
    shares: tuple[float, ...]


def recomputed(instance: Instance, table: Columns, family: Family, uplinks: int) -> Candidate:
    """What a decision amounts to; a share above 1 breaks a bound."""
    context = context_of(family)
    rows, shares = [], []
    for w, workload in enumerate(instance.workload):
        row, time_s = fastest_row(table.pools[w, context.site], context, uplinks)
        rows.append(row)
        bound_s = allowed_s(instance, family, uplinks, workload)
        shares.append(time_s / bound_s if time_s <= bound_s else np.inf)
    cost = cost_of(instance, family, uplinks)
    return Candidate(
        family=family, uplinks=uplinks, cost=cost, rows=tuple(rows), shares=tuple(shares)
    )


def fastest_of_equal_cost(
    instance: Instance, problem: SharedProblem, table: Columns, candidate: Candidate
) -> Candidate:
    """Among all networks with exactly the cost of the one found, the one whose tightest bound has
    most room.

    The solver stops at any optimum; planners want the best of them. Of equally fast ones it is one
    that joins rails, then the one that leaves most room to the other bounds, then the least
    oversubscribed. Ties go to the first family, so that the answer does not depend on the one
    found.
    """
    value = candidate.cost.of(instance.objective.minimize)
    widest: dict[Context, tuple[Family, int]] = {}

    def is_better(family: Family, uplinks: int, rival: tuple[Family, int]) -> bool:
        return (uplinks, family.joins_rails) > (rival[1], rival[0].joins_rails)

    for family, price in zip(problem.families, problem.prices, strict=True):
        uplinks = _most_uplinks(instance, family, price, value)
        context = context_of(family)
        if uplinks is not None and (
            context not in widest or is_better(family, uplinks, widest[context])
        ):
            widest[context] = family, uplinks
    equals = [recomputed(instance, table, family, uplinks) for family, uplinks in widest.values()]
    return min(equals, key=_preference)


def _preference(candidate: Candidate) -> tuple[object, ...]:
    """Less is better, with times that differ by rounding alone alike."""
    shares = sorted((round(share, 9) for share in candidate.shares), reverse=True)
    ratio = candidate.family.slowdown(candidate.uplinks) * candidate.family.pod_ratio
    return shares[0], not candidate.family.joins_rails, shares, ratio


def _most_uplinks(instance: Instance, family: Family, price: Affine, value: float) -> int | None:
    """The most uplinks a family has at exactly that cost within the limits; more uplinks are never
    slower.
    """
    u = np.array(family.uplink_choices)
    prices = price.at(family, u)
    # the affine price adds up in another order than the bill: it says which numbers to try
    for uplinks in u[np.isclose(prices, value, rtol=1e-9, atol=1e-9)][::-1].tolist():
        cost = cost_of(instance, family, uplinks)
        if cost.of(instance.objective.minimize) == value and within_limits(instance, family, cost):
            return int(uplinks)
    return None
