"""The cheapest line: the most promising first, each by its formulation, until no bound of the rest is lower."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.growth import Line
from coopt.network.purchases import Spent, spending, whole_cost
from coopt.plan.schema import Cost
from coopt.solving.backend import Backend
from coopt.solving.effort import Effort, Toll
from coopt.solving.highs import LARGEST
from coopt.solving.phased.bounds import line_bounds
from coopt.solving.watching import OnStanding, Standing
from formulations.phased import FORMULATIONS, build
from formulations.phased_data import Floats, PhasedData

FORMULATION = "phases"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A line with the uplinks of every phase, and what that costs, recomputed."""

    line: Line
    uplinks: tuple[int, ...]
    spent: tuple[Spent, ...]
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class PhasedSearch(Effort):
    """How a search ended; `tried` counts the lines that were handed to the solver."""

    found: Growth | None
    outcome: str
    tried: int


def grown_at(instance: Instance, line: Line, uplinks: Sequence[int], *, ahead: bool = True) -> Growth:
    """What it amounts to when a line grows with these uplinks."""
    spent = spending(instance, line, uplinks, ahead=ahead)
    return Growth(line=line, uplinks=tuple(uplinks), spent=spent, cost=whole_cost(instance, spent))


def search_lines(
    instance: Instance,
    lines: Sequence[Line],
    data: PhasedData,
    backend: Backend,
    *,
    deadline: float,
    on_standing: OnStanding | None = None,
) -> PhasedSearch:
    """The cheapest way to grow.

    Parameters
    ----------
    lines, data
        Lines that can serve every phase, and their numbers.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears after every line how far the search is, in objective units.
    """
    gap, first = instance.solver.gap, line_bounds(data)
    state = _State(bounds=first.copy())
    try:
        for f in np.argsort(first, kind="stable").tolist():
            if first[f] >= state.value * (1 - gap):
                break  # nor is any line after it cheaper
            if time.perf_counter() >= deadline:
                state.outcome = "time limit"
                break
            _solve(instance, lines[f], taken(data, f), backend, deadline, state, f)
            if on_standing:
                on_standing(Standing(nodes=state.nodes, best=state.known, bound=state.bound))
            if state.outcome != "optimal":
                break
    except KeyboardInterrupt:
        state.outcome = "interrupted"
    return state.ended()


def taken(data: PhasedData, line: int) -> PhasedData:
    """The same problem with one of its lines."""
    one = slice(line, line + 1)
    per_line = ("least", "most", "leaves", "ports", "stood", "trunks", "fixed", "uplink", "spine")
    return replace(data, **{name: getattr(data, name)[one] for name in per_line})


def scaled(data: PhasedData, unit: float) -> PhasedData:
    """The same problem with costs in another unit."""
    return replace(data, price=data.price / unit, run=data.run / unit, labour=data.labour / unit)


@dataclass(kw_only=True)
class _State(Toll):
    """The search so far; `bounds` holds the proven bound of every line."""

    bounds: Floats
    best: Growth | None = None
    value: float = math.inf
    outcome: str = "optimal"
    tried: int = 0

    @property
    def bound(self) -> float:
        """No plan costs less."""
        return float(self.bounds.min())

    @property
    def known(self) -> float | None:
        """The value of the best; None without one."""
        return None if self.best is None else self.value

    def ended(self) -> PhasedSearch:
        """The search as it stands."""
        return PhasedSearch(
            found=self.best,
            outcome=self.outcome,
            tried=self.tried,
            bound=self.bound,
            **self.taken(),
        )


def _solve(
    instance: Instance, line: Line, data: PhasedData, backend: Backend, deadline: float, state: _State, f: int
) -> None:
    """One line by the solver; its decisions are rounded, and everything is recomputed from them."""
    started = time.perf_counter()
    unit = max(float(state.bounds[f]), 1.0) / LARGEST
    model = build(scaled(data, unit), FORMULATIONS[FORMULATION])
    state.build_s += time.perf_counter() - started
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    assert answer.outcome in ("optimal", "time limit", "interrupted"), f"{backend.name}: {answer.detail}"
    state.add(answer)
    state.outcome, state.tried = answer.outcome, state.tried + 1
    state.bounds[f] = max(float(state.bounds[f]), answer.bound * unit)
    if answer.value is not None:
        growth = grown_at(instance, line, [round(model.u[0, t].value) for t in model.T])
        value = growth.cost.of(instance.objective.minimize)
        state.bounds[f] = min(float(state.bounds[f]), value)
        if value < state.value:
            state.best, state.value = growth, value
