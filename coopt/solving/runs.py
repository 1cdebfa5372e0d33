"""One run of a search: what was asked, its clock, whom it tells, and what it learned so far.

What it took to find an answer is counted beside. The solver of a run is our own hand-over to HiGHS,
or any mixed-integer solver that Pyomo can drive.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

import pyomo.core as pyo
from pyomo.opt import SolverFactory, SolverStatus, TerminationCondition

from coopt.instance.catalog import refusing
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, Objective, Solver, choice_complaints
from coopt.instance.texts import InstanceError, alternatives
from coopt.plan.schema import OnProgress, Overrides, Plan, Progress
from coopt.solving import highs
from coopt.solving.highs import OnStanding, Outcome, SearchStanding, SolverAnswer

if TYPE_CHECKING:
    import pyomo.core as pyo

    from coopt.columns.islands.options import ListedIslands
    from coopt.columns.table import Columns


Listed = TypeVar("Listed")
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
        reason = "it is not installed or has no licence here"
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
        return _answer("time limit", "no time was left", None, -math.inf, started)
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
            f"solver.name = {name!r}: the solver failed with {words[:300]!r}, needs another solver"
        ) from None
    condition = results.solver.termination_condition
    outcome = _OUTCOMES.get(condition, "failed")
    if outcome == "failed":
        raise InstanceError(
            f"solver.name = {name!r}: the solver ended as {condition}, needs another solver"
        )
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


@dataclass(kw_only=True, eq=False)
class SearchStatistics:
    """Statistics of one search, also in progress: cuts added after recomputation, nodes, and
    wall-clock seconds.
    """

    cuts: int = 0
    nodes: int = 0
    build_s: float = 0.0
    handover_s: float = 0.0
    solve_s: float = 0.0

    def add(self, answer: SolverAnswer) -> None:
        """Add the nodes and times of a solver's answer."""
        self.nodes += answer.nodes
        self.handover_s += answer.handover_s
        self.solve_s += answer.solve_s

    def taken(self) -> dict[str, Any]:
        """Return all fields, for another search that continues this one."""
        return {field.name: getattr(self, field.name) for field in fields(SearchStatistics)}


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Statistics of an enumeration given as numbers: everything listed was dropped or kept."""

    gated: dict[str, int]
    kept: int

    @property
    def enumerated(self) -> int:
        """How many were listed."""
        return sum(self.gated.values()) + self.kept


Why = Callable[[], tuple[str, ...]]
"""Finds the reasons why there is no plan, which may take longer than to see that there is none."""


class StoppedError(Exception):
    """The time limit passed, or the run was cancelled, before the search began; says which."""


@dataclass(kw_only=True)
class RunLog:
    """What a run has listed and searched so far: wall seconds of listing, network families,
    mappings, searches.
    """

    model_s: float = 0.0
    columns_s: float = 0.0
    families: int = 0
    table: Counted | Columns | None = None
    searches: list[SearchStatistics] = field(default_factory=list)


@dataclass(kw_only=True)
class Run:
    """One call of `solve` or `pareto`.

    What a run asks along the way, such as the same question with switches alone, is the run with
    another instance: it shares clock and log.
    """

    instance: Instance
    backend: Backend
    on_progress: OnProgress | None
    started: float = field(default_factory=time.perf_counter)
    formulation: str = "network"
    log: RunLog = field(default_factory=RunLog)
    listed: ListedIslands | None = None
    reasons: bool = True
    least_costs: tuple[float, ...] | None = None
    is_routed: bool = False

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
        done: tuple[int, int] | None = None,
    ) -> None:
        """Report a step to the caller."""
        if self.on_progress:
            s = self.elapsed_s()
            step = Progress(
                stage=stage,
                message=message,
                elapsed_s=s,
                best=best,
                bound=bound,
                nodes=nodes,
                done=done,
            )
            self.on_progress(step)

    def tell_standing(self, standing: SearchStanding) -> None:
        """Report how far the solver is, in objective units; a caller that interrupts is not called
        again.
        """
        message = f"{standing.nodes:,} {'node' if standing.nodes == 1 else 'nodes'}"
        try:
            self.tell(
                "solve", message, best=standing.best, bound=standing.bound, nodes=standing.nodes
            )
        except KeyboardInterrupt:
            self.on_progress = None
            raise

    def check_clock(self) -> None:
        """Raise StoppedError when the time limit has passed or the run is cancelled."""
        if self.elapsed_s() > self.instance.solver.time_limit_s:
            raise StoppedError("time limit")
        if self.backend.cancel.is_set():
            raise StoppedError("interrupted")

    def elapsed_s(self) -> float:
        """Seconds since the call."""
        return time.perf_counter() - self.started

    def in_time(self, listed: Iterable[Listed]) -> Iterator[Listed]:
        """What is listed, as long as there is time."""
        for one in listed:
            self.check_clock()
            yield one


def overridden(
    caller: str, instance: Instance, solver: dict[str, Any], objective: str | None
) -> Instance:
    """The instance with the values that a caller gave in place of its own.

    Raises
    ------
    InstanceError
        When a value is out of range, or does not go with the rest; `caller` names who was called.
    """
    settings = {key: value for key, value in solver.items() if value is not None}
    aim = {} if objective is None else {"minimize": objective}
    with refusing(caller, Solver):
        parts = {
            "solver": Solver.model_validate({**instance.solver.model_dump(), **settings}),
            "objective": Objective.model_validate({**instance.objective.model_dump(), **aim}),
        }
    question = instance.model_copy(update=parts)
    if instance.open_keys:
        if wrong := list(choice_complaints(question)):
            raise InstanceError(f"{caller}: {sentence}" for sentence in wrong)
        return question
    # what the instance breaks by itself is not the caller's doing
    complaints = set(disagreements(instance))
    if new := [sentence for sentence in disagreements(question) if sentence not in complaints]:
        raise InstanceError(f"{caller}: {sentence}" for sentence in new)
    return question


def overrides_of(instance: Instance, question: Instance) -> Overrides:
    """What a plan has to say where a run is asked for another objective or gap than the instance
    names.
    """
    kind, gap = question.objective.minimize, question.solver.gap
    return Overrides(
        objective=None if kind == instance.objective.minimize else kind,
        gap=None if gap == instance.solver.gap else gap,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A model; `base` plus `unit` times its objective is one of the instance (USD or W)."""

    model: pyo.ConcreteModel
    unit: float = 1.0
    base: float = 0.0


NamedPrograms = Callable[[str], Iterator[Program]]
"""By the name of a formulation the programs of which the cheapest is the answer; none where nothing
serves.
"""


def no_programs(name: str) -> Iterator[Program]:
    """Those of an instance where nothing serves."""
    return iter(())


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a kind of question is answered: its plan, its formulations, and the programs that these
    are before any search.
    """

    plan: Callable[[Run], Plan]
    programs: Callable[[Run], NamedPrograms]
    formulations: Callable[[Instance], tuple[str, ...]]
