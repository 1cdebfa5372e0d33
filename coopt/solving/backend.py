"""The solver of an instance: our own hand-over to HiGHS, or any mixed-integer solver that Pyomo can
drive.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import pyomo.core as pyo
from pyomo.opt import SolverFactory, SolverStatus, TerminationCondition

from coopt.instance.errors import InstanceError, alternatives
from coopt.instance.schema import Solver
from coopt.solving import highs
from coopt.solving.highs import Outcome, SolverAnswer
from coopt.solving.watching import OnStanding

BUILT_IN = "built-in"
Settings = dict[str, float | int | str | bool]

ENDLESS_S = 1e9
"""Time limits above it are none; solvers refuse infinite ones."""

# what a solver calls our gap, threads and seed; others run with their own gap, and what they prove
# is taken as it is
NAMES = {
    "glpk": ("mipgap", "", "seed"),
    "cbc": ("ratioGap", "threads", "randomCbcSeed"),
    "gurobi": ("MIPGap", "Threads", "Seed"),
    "gurobi_direct": ("MIPGap", "Threads", "Seed"),
    "gurobi_direct_v2": ("MIPGap", "Threads", "Seed"),
    "appsi_gurobi": ("MIPGap", "Threads", "Seed"),
    "scip": ("limits/gap", "", "randomization/randomseedshift"),
}
HIGHS = ("appsi_highs", "highs")
OTHERS = (
    "appsi_cbc",
    "appsi_cplex",
    "cplex",
    "cplex_direct",
    "mosek_direct",
    "scip_direct",
    "xpress_direct",
)

_OUTCOMES: dict[Any, Outcome] = {
    TerminationCondition.optimal: "optimal",
    TerminationCondition.globallyOptimal: "optimal",
    TerminationCondition.infeasible: "infeasible",
    # what our formulations minimise is never below 0
    TerminationCondition.infeasibleOrUnbounded: "infeasible",
    TerminationCondition.unbounded: "unbounded",
    TerminationCondition.maxTimeLimit: "time limit",
    TerminationCondition.userInterrupt: "interrupted",
}


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A solver with its options; `interface` is Pyomo's, None for HiGHS handed over directly.

    `cancel`, once set, stops a search of our own hand-over, and keeps others from starting.
    """

    name: str
    version: str
    settings: Settings
    interface: Any = None
    cancel: threading.Event = field(default_factory=threading.Event)

    def solve(
        self,
        model: pyo.ConcreteModel,
        time_limit_s: float,
        on_standing: OnStanding | None = None,
        *,
        start: bool = False,
    ) -> SolverAnswer:
        """Solve a model and load its solution; only our own hand-over tells how far it is.

        With `start` the search starts from the values that variables have, where the solver can.
        """
        if self.interface is None:
            return highs.solve(
                model,
                time_limit_s=time_limit_s,
                settings=self.settings,
                on_standing=on_standing,
                cancel=self.cancel,
                start=start,
            )
        if self.cancel.is_set():
            raise KeyboardInterrupt  # what Ctrl-C raises just before the search
        return _solve_by(
            self.interface,
            model,
            time_limit_s=time_limit_s,
            settings=self.settings,
            name=self.name,
            start=start,
        )


def backend_of(solver: Solver, cancel: threading.Event | None = None) -> Backend:
    """The solver that `[solver]` names.

    Raises
    ------
    InstanceError
        When Pyomo knows no such solver or it is not installed here.
    """
    cancel = cancel or threading.Event()
    settings = settings_of(solver)
    if solver.name == BUILT_IN:
        return Backend(name="HiGHS", version=highs.version(), settings=settings, cancel=cancel)
    interface, version = found_here(solver)
    return Backend(
        name=solver.name, version=version, settings=settings, interface=interface, cancel=cancel
    )


def found_here(solver: Solver) -> tuple[Any, str]:
    """Pyomo's interface to the solver of an instance, and the solver's version.

    Raises
    ------
    InstanceError
        When Pyomo knows no such solver, or it is not installed or licensed here; with those that
        are.
    """
    name = solver.name
    # Pyomo lists interfaces of its own under names that begin with an underscore
    if name.startswith("_") or name not in list(_solvers()):
        reason = "Pyomo knows no solver of that name"
    elif not _available(name):
        reason = "not installed or without a licence here"
    else:
        interface = _solvers()(name)
        return interface, _version(interface)
    choices = alternatives(map(repr, (BUILT_IN, *filter(_available, (*HIGHS, *NAMES, *OTHERS)))))
    raise InstanceError(f"solver.name = {name!r}: {reason}, needs {choices}")


def settings_of(solver: Solver) -> Settings:
    """Gap, threads and seed under the names the solver has for them."""
    if solver.name in (BUILT_IN, *HIGHS):
        return highs.options(gap=solver.gap, threads=solver.threads, seed=solver.seed)
    values = (solver.gap, solver.threads, solver.seed)
    return {
        name: value for name, value in zip(NAMES.get(solver.name, ()), values, strict=False) if name
    }


def _solve_by(
    interface: Any,
    model: pyo.ConcreteModel,
    *,
    time_limit_s: float,
    settings: Settings,
    name: str,
    start: bool,
) -> SolverAnswer:
    """Solve a mixed-integer linear model and load its solution into the variables.

    With `start` a solver that can starts from the values that variables have.

    Raises
    ------
    InstanceError
        When the solver gives up, with its words.
    """
    started = time.perf_counter()
    if time_limit_s <= 0:
        return _answer("time limit", "no time left", None, -math.inf, started)
    capable = getattr(interface, "warm_start_capable", None)
    warm = {"warmstart": True} if start and capable is not None and capable() else {}
    limit_s = min(max(time_limit_s, 0.01), ENDLESS_S)
    try:
        results = interface.solve(
            model, load_solutions=False, timelimit=limit_s, options=settings, **warm
        )
    except (
        Exception
    ) as error:  # whatever a foreign program raises is its refusal, not a fault of ours
        words = " ".join(str(error).split()) or type(error).__name__
        raise InstanceError(
            f"solver.name = {name!r}: stopped with {words[:300]!r}, needs another solver"
        ) from None
    condition = results.solver.termination_condition
    outcome = _OUTCOMES.get(condition, "failed")
    if outcome == "failed":
        raise InstanceError(f"solver.name = {name!r}: stopped as {condition}, needs another solver")
    if outcome in ("infeasible", "unbounded") or not len(results.solution):
        return _answer(outcome, str(condition), None, -math.inf, started)
    results.solver.status = SolverStatus.ok  # else Pyomo warns of every search that a limit ended
    model.solutions.load_from(results)
    (objective,) = model.component_data_objects(pyo.Objective, active=True)
    bound = results.problem.lower_bound
    proven = float(bound) if isinstance(bound, int | float) else -math.inf
    return _answer(outcome, str(condition), float(pyo.value(objective)), proven, started)


def _answer(
    outcome: Outcome, detail: str, value: float | None, bound: float, started: float
) -> SolverAnswer:
    seconds = time.perf_counter() - started
    return SolverAnswer(
        outcome=outcome,
        detail=detail,
        value=value,
        bound=bound,
        nodes=0,
        handover_s=0.0,
        solve_s=seconds,
    )


def _available(name: str) -> bool:
    try:
        return bool(_solvers()(name).available(exception_flag=False))
    except Exception:  # an interface that cannot even be asked
        return False


def _version(interface: Any) -> str:
    try:
        numbers = interface.version()
    except Exception:
        return ""
    return ".".join(str(number) for number in numbers) if numbers else ""


def _solvers() -> Any:
    """What makes Pyomo's interfaces; they are all imported for it, which takes a second."""
    import pyomo.environ  # noqa: F401

    return SolverFactory
