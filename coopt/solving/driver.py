"""One search for every question: subproblems by their bounds, each solved, rounded, recomputed and
cut until it holds.

A question is one subproblem or several of which one holds the optimum: a network, sets of products,
lines of growth, rings of sites. The most promising comes first. What the solver decided is
recomputed from the rounded decisions; where it breaks a bound or a limit a cut is added and the
solver is asked again. Once no bound is below the best value, within the gap, the subproblems that
are left cannot win.

What a run of the solver has to say, as a plan.

Every claim of its networks was recomputed from the decisions; of those that cost the same, the
fastest counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import pyomo.core as pyo

from coopt.columns.grid import Context, context_of
from coopt.columns.table import Columns
from coopt.instance.numerics import EQUAL, REORDERED
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.texts import with_names
from coopt.instance.variants import rows_by_name
from coopt.network.family import Family
from coopt.network.parts import Affine, cost_of, within_limits
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Part
from coopt.plan.parts import Cost
from coopt.plan.schema import Alternative, InstanceId, ObjectiveClaim, Plan, SolverReport, Timing
from coopt.solving.arrays import SharedProblem, fastest_row
from coopt.solving.days import allowed_s, run_on
from coopt.solving.highs import OnStanding, Outcome, SearchStanding, rescaled
from coopt.solving.runs import Backend, Run, SearchStatistics, StoppedError, Why

Choice = TypeVar("Choice")
UNLIMITED_S = 1e9  # a time limit that never comes
ENDINGS = ("optimal", "infeasible", "time limit", "interrupted")


@dataclass(frozen=True, kw_only=True)
class Decided(Generic[Choice]):
    """What rounded decisions amount to, and its objective (USD or W), both recomputed."""

    choice: Choice
    value: float


def _not_built(*_: object) -> Any:
    raise AssertionError("a subproblem is sharpened before it is built")


@dataclass(frozen=True, kw_only=True, eq=False)
class Subproblem(Generic[Choice]):
    """A model that is built when its turn comes.

    `build` returns the model and the objective (USD or W) in one unit of it. `read` recomputes what
    a solved model decided; where that does not hold it adds cuts and returns None. No choice of it
    is worth less than `bound`; `sharpened` is the same with a bound that takes longer to find, and
    alone is built then. With `starts` the built model holds a solution to start from. Given what
    the best choice so far is worth, `closer` is the same subproblem in units of that, None where it
    was in such units already. `close` proves, without the solver's word, that no choice is worth
    less than a value, as far as a few cases do until a time on the clock of `time.perf_counter`:
    the bound it proves, and a choice that is worth less where it meets one.
    """

    number: int = 0
    build: Callable[[], tuple[pyo.ConcreteModel, float]] = _not_built
    read: Callable[[pyo.ConcreteModel], Decided[Choice] | None] = _not_built
    bound: float = -math.inf
    sharpened: Callable[[], Subproblem[Choice]] | None = None
    starts: bool = False
    closer: Callable[[float], Subproblem[Choice] | None] | None = None
    close: Callable[[float, float], tuple[float, Decided[Choice] | None]] | None = None


@dataclass(kw_only=True, eq=False)
class Drive(SearchStatistics, Generic[Choice]):
    """How a search ended: the best choice, None without one, its value, a bound below all (in units
    of the objective), and how many subproblems were handed over.
    """

    bound: float
    found: Choice | None
    value: float
    outcome: Outcome
    tried: int


def drive(
    subproblems: Sequence[Subproblem[Choice]],
    backend: Backend,
    *,
    gap: float,
    deadline: float,
    on_standing: OnStanding | None = None,
    merge: tuple[int, Callable[[list[Subproblem[Choice]]], Subproblem[Choice]]] | None = None,
) -> Drive[Choice]:
    """The best choice of all subproblems.

    Parameters
    ----------
    gap
        The relative gap at which a choice is good enough.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    merge
        After how many subproblems those that are left are searched as one, and the function that
        makes one of them.
    """
    search = _Search[Choice](backend=backend, gap=gap, deadline=deadline, on_standing=on_standing)
    try:
        search.run(
            sorted(
                (subproblem for subproblem in subproblems if subproblem.bound < math.inf),
                key=_by_bound,
            ),
            merge,
        )
    except KeyboardInterrupt:
        search.outcome = "interrupted"
    return Drive(
        found=search.incumbent.choice if search.incumbent else None,
        value=search.value,
        outcome=search.outcome,
        tried=search.tried,
        bound=search.bound if math.isfinite(search.bound) else -math.inf,
        **search.taken(),
    )


def _by_bound(subproblem: Subproblem[Any]) -> tuple[float, int]:
    return subproblem.bound, subproblem.number


@dataclass(kw_only=True, eq=False)
class _Search(SearchStatistics, Generic[Choice]):
    """The search so far; `queue` are the subproblems whose turn has not come, `proven` bounds the
    others.
    """

    backend: Backend
    gap: float
    deadline: float
    on_standing: OnStanding | None
    queue: Sequence[Subproblem[Choice]] = ()
    incumbent: Decided[Choice] | None = None
    proven: float = math.inf
    tried: int = 0
    outcome: Outcome = "infeasible"

    @property
    def value(self) -> float:
        """The value of the best; infinite without one."""
        return self.incumbent.value if self.incumbent else math.inf

    @property
    def bound(self) -> float:
        """No choice is worth less."""
        return min([self.proven, *(subproblem.bound for subproblem in self.queue)])

    def run(
        self,
        ranked: list[Subproblem[Choice]],
        merge: tuple[int, Callable[[list[Subproblem[Choice]]], Subproblem[Choice]]] | None,
    ) -> None:
        """Go through subproblems by their bounds, until no other can hold a better choice."""
        self.queue = ranked
        while self._first_bound() < self._enough:
            if self.tried and time.perf_counter() >= self.deadline:
                self.outcome = "time limit"
                return
            subproblem, remainder = self.queue[0], list(self.queue[1:])
            if merge is not None and self.tried >= merge[0]:
                self._sharpen(len(self.queue))
                promising = [entry for entry in self.queue if entry.bound < self._enough]
                remainder = [entry for entry in self.queue if entry not in promising]
                subproblem = merge[1](promising) if len(promising) > 1 else promising[0]
            rest_bound = min([self.proven, *(entry.bound for entry in remainder)])
            outcome, bound = self._searched(subproblem, rest_bound)
            self.queue = remainder
            # the subproblem's own bound holds whatever the solver proved until its time was up
            self.proven = min(
                self.proven, math.inf if outcome == "infeasible" else max(bound, subproblem.bound)
            )
            if outcome not in ("optimal", "infeasible"):
                self.outcome = outcome
                return
            if self.on_standing and self.queue:
                value = self.value if self.incumbent else None
                self.on_standing(SearchStanding(nodes=self.nodes, best=value, bound=self.bound))
        self.outcome = "optimal" if self.incumbent else "infeasible"

    @property
    def _enough(self) -> float:
        """The bound of a subproblem that need not be looked into."""
        return self.value * (1 - self.gap)

    def _first_bound(self) -> float:
        """The bound of the subproblem that comes next, sharpened; infinite without one.

        Bounds only rise, so one that is sharp and below all others is the least of the sharp ones.
        """
        while self.queue and self.queue[0].sharpened and self.queue[0].bound < self._enough:
            self._sharpen(1)
        return self.queue[0].bound if self.queue else math.inf

    def _sharpen(self, count: int) -> None:
        """Sharpen so many of the first bounds, where they are not high enough yet."""
        first = [
            entry.sharpened() if entry.sharpened and entry.bound < self._enough else entry
            for entry in self.queue[:count]
        ]
        possible = [entry for entry in first if entry.bound < math.inf]
        self.queue = sorted([*possible, *self.queue[count:]], key=_by_bound)

    def _searched(self, subproblem: Subproblem[Choice], rest_bound: float) -> tuple[Outcome, float]:
        """Show by a few cases that a subproblem holds nothing better than the best so far; else
        solve it, and show what the solver says, as far as they do.
        """
        if self.incumbent is not None and self._is_closed(subproblem, self.value):
            return "optimal", self.value
        outcome, bound = self._looked_into(subproblem, rest_bound)
        self.tried += 1
        while outcome == "optimal" and self.incumbent is not None:
            value = self.value
            target = min(max(bound, value * (1 - self.gap)), value)
            if self._is_closed(subproblem, target):
                return outcome, target
            if self.value == value:
                break
            bound = -math.inf  # the solver overlooked a choice, so that its bound is none
        return outcome, bound

    def _is_closed(self, subproblem: Subproblem[Choice], target: float) -> bool:
        """Whether cases prove that no choice of a subproblem is worth less than a target. One that
        is, since the solver overlooked it, is the best from then on.
        """
        if subproblem.close is None:
            return False
        if self.backend.cancel.is_set():
            raise KeyboardInterrupt  # what Ctrl-C raises
        started = time.perf_counter()
        bound, better = subproblem.close(target, self.deadline)
        if better is not None and better.value < self.value:
            self.incumbent = better
        self.solve_s += time.perf_counter() - started
        return bound >= target

    def _looked_into(
        self, subproblem: Subproblem[Choice], rest_bound: float
    ) -> tuple[Outcome, float]:
        """Solve a subproblem, and again in units of the best value where its own are so large that
        the solver cannot tell values near the best apart.
        """
        outcome, bound = self._solved(subproblem, rest_bound)
        nearer: Subproblem[Choice] | None = subproblem
        while (
            outcome == "optimal"
            and nearer is not None
            and nearer.closer is not None
            and self.incumbent is not None
        ):
            nearer = nearer.closer(self.value)
            if nearer is not None:
                outcome, bound = self._solved(nearer, rest_bound)
        return outcome, bound

    def _solved(self, subproblem: Subproblem[Choice], rest_bound: float) -> tuple[Outcome, float]:
        """Solve a subproblem, recompute, cut, and repeat; how it ended and what is proven of it.

        `rest_bound` is below all other subproblems.
        """
        started = time.perf_counter()
        model, unit = subproblem.build()
        self.build_s += time.perf_counter() - started
        starts = subproblem.starts
        while True:
            left_s = min(max(self.deadline - time.perf_counter(), 0.0), UNLIMITED_S)
            listener = rescaled(self._listener(rest_bound), unit, self.nodes)
            answer = self.backend.solve(model, left_s, listener, start=starts)
            self.add(answer)
            assert answer.outcome in ENDINGS, f"{self.backend.name}: {answer.detail}"
            if answer.value is None:
                return answer.outcome, answer.bound * unit
            decided = subproblem.read(model)
            if decided is not None and decided.value < self.value:
                self.incumbent = decided
            if decided is not None or answer.outcome != "optimal":
                return answer.outcome, answer.bound * unit
            self.cuts += 1
            starts = False  # what it started from may break the cut

    def _listener(self, rest_bound: float) -> OnStanding | None:
        """The listener, who hears of the best of all subproblems and of a bound below all."""
        listener = self.on_standing
        if listener is None:
            return None

        def tell(standing: SearchStanding) -> None:
            value = min(self.value, math.inf if standing.best is None else standing.best)
            # the others are not searched yet: no more is proven of all than their bounds say
            bound = (
                None
                if standing.bound is None or rest_bound == -math.inf
                else min(standing.bound, rest_bound)
            )
            listener(replace(standing, best=value if math.isfinite(value) else None, bound=bound))

        return tell


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
        ("proven within the target gap" if (claim.gap or 0.0) > EQUAL else "proven optimal")
        if proven
        else f"not proven optimal ({reason})",
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


OWN_GAP = "the solver stopped at its own gap tolerance"
"""Why a search ended that proved less than the gap asked for."""


def ending(run: Run, outcome: Outcome, claim: ObjectiveClaim) -> str:
    """Why a search that found something ended; "optimal" only with a proof within the gap that was
    asked for.
    """
    return OWN_GAP if outcome == "optimal" and not within_gap(run, claim) else outcome


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


def bound_of(plan: Plan) -> float:
    """No plan of a question is worth less; infinite where it has none."""
    if plan.status == "infeasible":
        return math.inf
    return -math.inf if plan.objective.bound is None else plan.objective.bound


def infeasible(run: Run, reasons: Why) -> Plan:
    """The answer that there is none, and why where that is asked for and found in time."""
    names, explanation = rows_by_name(run.instance), tuple[str, ...]()
    if run.reasons:
        try:
            explanation = tuple(with_names(sentence, names) for sentence in reasons())
        except StoppedError as stopped:
            explanation = (
                f"the search for the reasons why no plan exists ended early ({stopped})",
            )
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
    # the affine price adds up in another order than the bill: it says which numbers to try
    for uplinks in u[np.isclose(price.at(family, u), value, rtol=1e-9, atol=1e-9)][::-1].tolist():
        cost = cost_of(instance, family, uplinks)
        if cost.of(instance.objective.minimize) == value and within_limits(instance, family, cost):
            return int(uplinks)
    return None
