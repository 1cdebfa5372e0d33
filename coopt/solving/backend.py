"""The solver of an instance: ours, or one of Pyomo's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyomo.environ as pyo

from coopt.instance.schema import Solver
from coopt.solving import highs
from coopt.solving.highs import Answer, OnStanding

BUILT_IN = "built-in"


@dataclass(frozen=True, kw_only=True)
class Backend:
    """A solver with its options; `interface` is Pyomo's, None for HiGHS handed over directly."""

    name: str
    version: str
    settings: dict[str, float | int | str | bool]
    interface: Any = None

    def solve(
        self,
        model: pyo.ConcreteModel,
        time_limit_s: float,
        on_standing: OnStanding | None = None,
        *,
        start: bool = False,
    ) -> Answer:
        """Solve a model and load its solution; only our own hand-over tells how far it is.

        With `start` the search starts from the values that variables have, where the solver can.
        """
        if self.interface is None:
            return highs.solve(
                model, time_limit_s=time_limit_s, settings=self.settings, on_standing=on_standing, start=start
            )
        from coopt.solving import pyomo_solver

        return pyomo_solver.solve(
            self.interface, model, time_limit_s=time_limit_s, settings=self.settings, name=self.name, start=start
        )


def backend_of(chosen: Solver) -> Backend:
    """The solver that `[solver]` names.

    Raises
    ------
    InstanceError
        When Pyomo knows no such solver or it is not installed here.
    """
    if chosen.name == BUILT_IN:
        settings = highs.options(gap=chosen.gap, threads=chosen.threads, seed=chosen.seed)
        return Backend(name="HiGHS", version=highs.version(), settings=settings)
    from coopt.solving.pyomo_solver import found_here, settings_of

    interface, version = found_here(chosen)
    return Backend(name=chosen.name, version=version, settings=settings_of(chosen), interface=interface)
