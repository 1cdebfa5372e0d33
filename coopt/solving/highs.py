"""Hand a linear Pyomo model to HiGHS as arrays, so that the search can be heard, interrupted and
cancelled, and say honestly what came back.

Rows are walked once and handed over without a detour: Pyomo's compiled standard form does the same
through scipy, whose import alone takes longer than most of our solves.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, NamedTuple

import highspy
import numpy as np
import pyomo.core as pyo
from numpy.typing import NDArray
from pyomo.core.staleflag import StaleFlagManager
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.util import OrderedVarRecorder

ALONE = threading.Lock()
"""Held by the thread whose turn it is."""

POLL_S = 0.1
"""Most seconds until a thread that waits or searches notices that it is cancelled."""


def turn_came(deadline: float, cancel: threading.Event) -> bool:
    """Wait for `ALONE` and take it; False where `cancel` is set or the deadline
    (`time.perf_counter`) passes before.
    """
    while not cancel.is_set():
        left_s = deadline - time.perf_counter()
        if ALONE.acquire(timeout=min(max(left_s, 0.0), POLL_S)):
            return True
        if left_s <= 0:
            return False
    return False


DEAF_S = 10.0
"""Seconds that a search has to stop; one of HiGHS's may hear neither its time limit nor an
interrupt.
"""

TELL_S = 0.5
"""Least seconds between two reports of how far a search is."""


@dataclass(frozen=True, kw_only=True)
class SearchStanding:
    """How far a search is, in the model's units: `best` is None without a solution, `bound` without
    a proof.
    """

    nodes: int
    best: float | None
    bound: float | None


OnStanding = Callable[[SearchStanding], None]


def rescaled(on_standing: OnStanding | None, scale: float, past_nodes: int) -> OnStanding | None:
    """The listener as one in the model's units; `past_nodes` were searched in the models before
    this one.
    """
    if on_standing is None:
        return None

    def tell(standing: SearchStanding) -> None:
        value, bound = (
            None if figure is None else figure * scale for figure in (standing.best, standing.bound)
        )
        on_standing(SearchStanding(nodes=past_nodes + standing.nodes, best=value, bound=bound))

    return tell


@contextmanager
def interrupts_heard(heard: threading.Event, *, raised: bool = True) -> Iterator[None]:
    """Let Ctrl-C set an event besides what it does otherwise, or in place of that.

    A KeyboardInterrupt is lost where a callback of a library runs, and ends the process where that
    library cannot stand one. Only the main thread may listen to signals, and a shell's background
    job is to ignore this one; there nothing sets the event.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        heard.set()
        if raised:
            handler(number, frame)

    signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


class Ending(NamedTuple):
    """How a search came to its end; `abandoned` where it was told to stop, or should have, and was
    not waited for.

    HiGHS then runs on in its thread, which a process need not wait for, and says no more than what
    it had told: how far it was, and its best solution, column by column.
    """

    interrupted: bool
    abandoned: bool
    standing: SearchStanding | None
    solution: NDArray[np.float64] | None


def watched(
    h: Any, on_standing: OnStanding | None, cancel: threading.Event, deadline: float
) -> Ending:
    """Run in HiGHS's own thread so that Ctrl-C and `cancel` reach us; a search that has not ended
    `DEAF_S` after one of them, or after its deadline (`time.perf_counter`), is left.

    Ctrl-C sets `cancel`, so that searches to come hear it too where this one had just ended.
    """
    with interrupts_heard(cancel, raised=False):
        return _watched(h, on_standing, cancel.is_set, deadline)


def _watched(
    h: Any, on_standing: OnStanding | None, cancelled: Callable[[], bool], deadline: float
) -> Ending:
    h.HandleUserInterrupt = True
    latest, solutions = list[SearchStanding](), list[NDArray[np.float64]]()
    h.cbMipInterrupt.subscribe(lambda event: _put(latest, _standing_of(event.data_out)))
    h.cbMipImprovingSolution.subscribe(
        lambda event: _put(solutions, np.array(event.data_out.mip_solution))
    )
    search = threading.Thread(
        target=_run, args=(h,), daemon=True
    )  # highspy's own allows one search in a process
    search.start()
    interrupted, told_s = False, time.perf_counter()

    def ending(*, abandoned: bool) -> Ending:
        return Ending(
            interrupted,
            abandoned,
            latest[0] if latest else None,
            solutions[0] if solutions else None,
        )

    try:
        while True:
            try:
                search.join(POLL_S)
                done, now_s = not search.is_alive(), time.perf_counter()
                if done or now_s > deadline + DEAF_S:
                    return ending(abandoned=not done)
                if cancelled() and not interrupted:
                    # from here it has DEAF_S to stop, whatever time it had left
                    interrupted, deadline = True, min(deadline, now_s)
                    h.cancelSolve()
                if on_standing and latest and not interrupted and now_s - told_s >= TELL_S:
                    told_s = now_s
                    on_standing(latest[0])
            except KeyboardInterrupt:  # of the callback
                interrupted, deadline = True, min(deadline, time.perf_counter())
                h.cancelSolve()
    except BaseException:  # of the callback: HiGHS must not run on behind it
        h.cancelSolve()
        search.join(DEAF_S)
        raise


def _run(h: Any) -> None:
    """Run HiGHS as highspy does in a thread, which ends its workers, or on Windows may wait for
    them for ever.
    """
    try:
        h.run()
    finally:
        ended = (
            "resetThreadScheduler" if hasattr(h, "resetThreadScheduler") else "resetGlobalScheduler"
        )
        getattr(h, ended)(False)


def _put(place: list[Any], value: Any) -> None:
    """Keep a value in place of one before it."""
    place[:] = [value]


def _standing_of(data: Any) -> SearchStanding:
    value, bound = float(data.mip_primal_bound), float(data.mip_dual_bound)
    return SearchStanding(
        nodes=max(int(data.mip_node_count), 0),
        best=value if math.isfinite(value) else None,
        bound=bound if math.isfinite(bound) else None,
    )


Outcome = Literal["optimal", "infeasible", "unbounded", "time limit", "interrupted", "failed"]

PROBING = 1 << 15
"""Its bit among the rules of presolve."""

SEARCHES_WITHIN = (
    "mip_heuristic_run_rins",
    "mip_heuristic_run_rens",
    "mip_heuristic_run_root_reduced_cost",
)
"""The options of HiGHS's heuristics that search a smaller model."""

LARGEST = 1e3
"""What models scale their dearest choice to, far above the feasibility tolerance of 1e-9 below."""

NEAR = 10.0
"""Prices this many times what the best choice is worth lead to no better one: models in its units
cut them off there, so that the dearest item on a list does not hide what the cheapest ones cost.
"""

COARSE = LARGEST / NEAR**2
"""Models in which the best choice is worth less than this are built again in its units."""


class QuietHighs(highspy.Highs):
    """HiGHS without a word on the terminal: 1.16 prints its version while it is made, before an
    option can be set.
    """

    def enableCallbacks(self) -> Any:  # noqa: N802 - the name of the method that it overrides
        """Enable callbacks, which is what prints."""
        self.setOptionValue("output_flag", False)
        return super().enableCallbacks()


@dataclass(frozen=True, kw_only=True)
class SolverAnswer:
    """What a solver reports; `value` is None without a solution, `bound` is -inf without a
    proof.
    """

    outcome: Outcome
    detail: str
    value: float | None
    bound: float
    nodes: int
    handover_s: float
    solve_s: float


def options(*, gap: float, threads: int, seed: int = 0) -> dict[str, float | int | str | bool]:
    """The options a search runs with.

    The absolute gap is 0, so that only the relative one decides. Presolve is off: HiGHS 1.15.1
    loses the optimum of small models of ours with it and reports a worse solution as optimal
    (tests/solving/test_highs.py holds one). Probing off and the rest of presolve on answers 400
    random models right but loses that one as well, and takes 1.3 to 2.4 times as long on the
    shipped instances. Probing is off in the searches within the search, too: its budget is a share
    of the time limit, so that answers would depend on that.

    Heuristics that search a smaller model within the search are off: they presolve it whatever
    `presolve` says, and HiGHS 1.16 never leaves the presolve of one model of `fleet-131k-w64`, deaf
    to its time limit and to interrupts (tests/solving/test_highs.py holds that model). In single
    runs without them, shipped fleets of islands and direct links took 0.73 to 0.84 of the CPU
    seconds, one shared network and fleets with a core, phases or sites 1.07 to 1.26.
    """
    return {
        "mip_rel_gap": gap,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
        "presolve": "off",
        "presolve_rule_off": PROBING,
        **dict.fromkeys(SEARCHES_WITHIN, False),
        "random_seed": seed,
        "threads": threads,
        "output_flag": False,
    }


def solve(
    model: pyo.ConcreteModel,
    *,
    time_limit_s: float,
    settings: dict[str, float | int | str | bool],
    on_standing: OnStanding | None = None,
    cancel: threading.Event | None = None,
    start: bool = False,
) -> SolverAnswer:
    """Solve a mixed-integer linear model and load its solution into the variables.

    With `start` the search starts from the values that variables have; those of whole ones are
    enough. HiGHS checks such a solution like any it finds, and drops it where it breaks a row.

    A KeyboardInterrupt, or `cancel` once it is set, stops the search and keeps its best solution.
    `on_standing` hears how far the search is, in the caller's thread and at most twice a second; an
    interrupt it raises counts as one. Waiting for the turn of this thread counts against the time
    limit. Where HiGHS does not stop in time, its best solution is the answer, and nobody waits for
    its thread.
    """
    started = time.perf_counter()
    cancel = cancel or threading.Event()
    lp, columns = linear_program(model)
    h = loaded(lp, settings)
    if start:
        _begin(h, columns)
    handed_over = time.perf_counter()
    if not turn_came(started + time_limit_s, cancel):
        return SolverAnswer(
            outcome=("interrupted" if cancel.is_set() else "time limit"),
            detail="not started",
            value=None,
            bound=-math.inf,
            nodes=0,
            handover_s=(handed_over - started),
            solve_s=0.0,
        )
    try:
        left_s = max(started + time_limit_s - time.perf_counter(), 0.0)
        _checked(h.setOptionValue("time_limit", left_s), f"option time_limit = {left_s!r}")
        ended = watched(h, on_standing, cancel, started + time_limit_s)
    finally:
        ALONE.release()
    if ended.abandoned:
        return _abandoned_answer(
            lp, columns, ended, handed_over - started, time.perf_counter() - handed_over
        )
    outcome, detail = _outcome(h, ended.interrupted)
    info = h.getInfo()
    has_solution = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if has_solution:
        _load(columns, np.asarray(h.getSolution().col_value))
    return SolverAnswer(
        outcome=outcome,
        detail=detail,
        value=info.objective_function_value if has_solution else None,
        bound=_proven_bound(h, lp, outcome),
        nodes=max(int(info.mip_node_count), 0),  # -1 without whole variables
        handover_s=handed_over - started,
        solve_s=time.perf_counter() - handed_over,
    )


def _proven_bound(h: Any, lp: Any, outcome: Outcome) -> float:
    # HiGHS's own bound holds within its tolerances only; multipliers prove one where no variable is
    # whole or endless
    is_bounded = np.isfinite(lp.col_lower_).all() and np.isfinite(lp.col_upper_).all()
    if outcome == "optimal" and is_bounded and highspy.HighsVarType.kInteger not in lp.integrality_:
        return safe_bound(lp, np.asarray(h.getSolution().row_dual))
    # a search that proved nothing claims nothing
    proves_nothing = outcome in ("infeasible", "unbounded", "failed")
    return -math.inf if proves_nothing else float(h.getInfo().mip_dual_bound)


def safe_bound(lp: Any, multipliers: NDArray[np.float64]) -> float:
    r"""No solution of a program is worth less, whatever the multipliers of its rows and the
    tolerances they come from.

    With rows between :math:`b^-` and :math:`b^+`, columns between :math:`l` and :math:`u`, and
    :math:`y` split by sign, weak duality says

    .. math:: c x \ge y^+ b^- - y^- b^+ + \sum_j \min(r_j l_j, r_j u_j), \qquad r = c - A^T y

    A multiplier of a side that a row does not have counts as 0. The rounding of all sums is taken
    off: `doubt` of each addend is more than that of a sum of as many as there are rows or columns.
    """
    row_lower, row_upper = np.asarray(lp.row_lower_), np.asarray(lp.row_upper_)
    y = np.clip(
        multipliers,
        np.where(np.isinf(row_upper), 0.0, -np.inf),
        np.where(np.isinf(row_lower), 0.0, np.inf),
    )
    rows = np.repeat(np.arange(lp.num_row_), np.diff(lp.a_matrix_.start_))
    addends, columns = np.asarray(lp.a_matrix_.value_) * y[rows], np.asarray(lp.a_matrix_.index_)
    cost, doubt = np.asarray(lp.col_cost_), 2.0**-52 * (lp.num_row_ + lp.num_col_ + 16)
    reduced_cost = cost - np.bincount(columns, weights=addends, minlength=lp.num_col_)
    error = doubt * (
        np.abs(cost) + np.bincount(columns, weights=np.abs(addends), minlength=lp.num_col_)
    )
    ends = [
        np.where(at == 0, 0.0, slope * at)
        for at in (lp.col_lower_, lp.col_upper_)
        for slope in (reduced_cost - error, reduced_cost + error)
    ]
    sides = np.where(
        y > 0, y * np.where(y > 0, row_lower, 0.0), y * np.where(y < 0, row_upper, 0.0)
    )
    terms = np.min(ends, axis=0)
    size = abs(lp.offset_) + float(np.abs(sides).sum()) + float(np.abs(terms).sum())
    return (
        float(lp.offset_ + sides.sum() + terms.sum()) - doubt * size
        if np.isfinite(size)
        else -math.inf
    )


def multipliers_of(model: pyo.ConcreteModel) -> pyo.ComponentMap:
    """The multiplier of every row of a linear model that has a solution, without whole
    variables.
    """
    h = loaded(linear_program(model)[0], options(gap=0.0, threads=1) | {"presolve": "on"})
    run_apart(h)
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal, "the model has a solution"
    rows = model.component_data_objects(pyo.Constraint, active=True)
    return pyo.ComponentMap(zip(rows, h.getSolution().row_dual, strict=True))


def solved(lp: highspy.HighsLp) -> Any:
    """HiGHS after it solved a linear program as it stands."""
    h = loaded(lp, {"threads": 1, "presolve": "off"})
    run_apart(h)
    return h


def lp_of(
    cost: NDArray[np.float64],
    ends: tuple[Any, Any],
    sides: tuple[Any, Any],
    entries: tuple[Any, Any, Any],
    *,
    by_row: bool,
) -> Any:
    """A linear program as HiGHS takes it.

    Parameters
    ----------
    ends, sides
        The least and the most of each column, and of each row.
    entries
        Where those of each row, or of each column, begin; the column, or row, of each; its value.
    """
    lp, formats = highspy.HighsLp(), highspy.MatrixFormat
    lp.num_col_, lp.num_row_ = len(cost), len(sides[0])
    lp.col_cost_, lp.row_lower_, lp.row_upper_ = cost, *sides
    lp.col_lower_, lp.col_upper_ = ends
    lp.a_matrix_.format_ = formats.kRowwise if by_row else formats.kColwise
    start, index, lp.a_matrix_.value_ = entries
    lp.a_matrix_.start_ = np.asarray(start, dtype=np.int32)
    lp.a_matrix_.index_ = np.asarray(index, dtype=np.int32)
    return lp


def loaded(lp: Any, settings: dict[str, float | int | str | bool]) -> Any:
    """HiGHS with its options and a program, before it runs."""
    h: Any = QuietHighs()
    for name, value in settings.items():
        _checked(h.setOptionValue(name, value), f"option {name} = {value!r}")
    _checked(h.passModel(lp), "model")
    return h


def run_apart(h: QuietHighs) -> None:
    """Run HiGHS in a thread of its own: in each thread it keeps the number of threads of the first
    search, which may be somebody else's, and refuses another.
    """
    apart = threading.Thread(target=h.run)
    apart.start()
    apart.join()


def version() -> str:
    """The version of HiGHS."""
    return str(QuietHighs().version())


def _checked(status: Any, subject: str) -> None:
    assert status != highspy.HighsStatus.kError, f"HiGHS refused {subject}"


def _abandoned_answer(
    lp: Any, columns: list[Any], ended: Ending, handover_s: float, solve_s: float
) -> SolverAnswer:
    """What HiGHS had told of a search that it does not end: a solution is worth what it costs,
    whatever it said.
    """
    solution, progress = ended.solution, ended.standing
    if solution is not None:
        _load(columns, solution)
    return SolverAnswer(
        outcome="interrupted" if ended.interrupted else "time limit",
        detail="deaf",
        value=None if solution is None else float(lp.offset_ + np.asarray(lp.col_cost_) @ solution),
        bound=-math.inf if progress is None or progress.bound is None else progress.bound,
        nodes=0 if progress is None else progress.nodes,
        handover_s=handover_s,
        solve_s=solve_s,
    )


def _begin(h: Any, columns: list[Any]) -> None:
    """Hand over the values that variables have, as a solution to start from."""
    starts = {
        i: float(column.value) for i, column in enumerate(columns) if column.value is not None
    }
    index, values = (
        np.array(list(starts), dtype=np.int32),
        np.array(list(starts.values()), dtype=np.float64),
    )
    _checked(h.setSolution(len(starts), index, values), "start")


def _outcome(h: Any, interrupted: bool) -> tuple[Outcome, str]:
    status = h.getModelStatus()
    detail = h.modelStatusToString(status)
    kinds: dict[Any, Outcome] = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kUnbounded: "unbounded",
        highspy.HighsModelStatus.kTimeLimit: "time limit",
        highspy.HighsModelStatus.kInterrupt: "interrupted",
    }
    if interrupted and kinds.get(status) != "optimal":
        return "interrupted", detail
    return kinds.get(status, "failed"), detail


def _load(columns: list[Any], values: NDArray[np.float64]) -> None:
    StaleFlagManager.mark_all_as_stale()
    for column, value in zip(columns, values, strict=True):
        column.set_value(float(value), skip_validation=True)


def linear_program(model: pyo.ConcreteModel) -> tuple[Any, list[Any]]:
    """The model as a `HighsLp`, and its variables in the order of the columns.

    The model minimises one objective; its expressions are linear and no variable is fixed.
    """
    recorder = OrderedVarRecorder({}, {}, None)
    visitor = LinearRepnVisitor({}, var_recorder=recorder)
    (objective,) = model.component_data_objects(pyo.Objective, active=True)
    assert objective.is_minimizing(), "formulations minimise"
    cost = _linear(visitor, objective.expr)
    rows = [_row(visitor, row) for row in model.component_data_objects(pyo.Constraint, active=True)]
    order = recorder.var_order
    variables = list(recorder.var_map.values())
    assert len(variables) == len(order), "a variable is fixed"

    least = [-np.inf if v.lb is None else v.lb for v in variables]
    most = [np.inf if v.ub is None else v.ub for v in variables]
    lp = lp_of(
        _dense(cost.linear, order),
        (np.array(least, dtype=np.float64), np.array(most, dtype=np.float64)),
        (
            np.array([low for low, _, _ in rows], dtype=np.float64),
            np.array([high for _, high, _ in rows], dtype=np.float64),
        ),
        (
            np.cumsum([0, *(len(terms) for _, _, terms in rows)]),
            [order[key] for _, _, terms in rows for key in terms],
            np.array([x for _, _, terms in rows for x in terms.values()], dtype=np.float64),
        ),
        by_row=True,
    )
    lp.offset_ = float(cost.constant)
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    lp.integrality_ = [kinds[not variable.is_continuous()] for variable in variables]
    return lp, variables


def _linear(visitor: Any, expression: Any) -> Any:
    terms = visitor.walk_expression(expression)
    assert terms.nonlinear is None, "formulations are linear"
    return terms


def _row(visitor: Any, row: Any) -> tuple[float, float, dict[int, float]]:
    """Lower and upper side, and coefficients by variable; the body's constant moves to the
    sides.
    """
    low, body, high = row.to_bounded_expression(evaluate_bounds=True)
    terms = _linear(visitor, body)
    sides = (
        -np.inf if low is None else low - terms.constant,
        np.inf if high is None else high - terms.constant,
    )
    return *sides, terms.linear


def _dense(terms: dict[int, float], order: dict[int, int]) -> Any:
    values = np.zeros(len(order))
    for key, value in terms.items():
        values[order[key]] = value
    return values
