"""The solver of an instance: ours, or one of Pyomo's."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import pyomo.core as pyo

from coopt.instance.schema import Solver
from coopt.solving import highs
from coopt.solving.highs import SolverAnswer
from coopt.solving.watching import OnStanding

BUILT_IN = "built-in"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A solver with its options; `interface` is Pyomo's, None for HiGHS handed over directly.

    `cancel`, once set, stops a search of our own hand-over, and keeps others from starting.
    """

    name: str
    version: str
    settings: dict[str, float | int | str | bool]
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
        from coopt.solving import pyomo_solver

        if self.cancel.is_set():
            raise KeyboardInterrupt  # what Ctrl-C raises just before the search
        return pyomo_solver.solve(
            self.interface, model, time_limit_s=time_limit_s, settings=self.settings, name=self.name, start=start
        )


def backend_of(chosen: Solver, cancel: threading.Event | None = None) -> Backend:
    """The solver that `[solver]` names.

    Raises
    ------
    InstanceError
        When Pyomo knows no such solver or it is not installed here.
    """
    cancel = cancel or threading.Event()
    if chosen.name == BUILT_IN:
        settings = highs.options(gap=chosen.gap, threads=chosen.threads, seed=chosen.seed)
        return Backend(name="HiGHS", version=highs.version(), settings=settings, cancel=cancel)
    from coopt.solving.pyomo_solver import found_here, settings_of

    interface, version = found_here(chosen)
    settings = settings_of(chosen)
    return Backend(name=chosen.name, version=version, settings=settings, interface=interface, cancel=cancel)
