"""One option for each workload at the least cost: drop what cannot win, solve, recompute from the data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyomo.environ as pyo

from coopt.instance.schema import Solver
from coopt.solving.backend import Backend, backend_of
from coopt.solving.effort import Effort, Toll
from coopt.solving.highs import Outcome
from coopt.solving.partition.bounds import lower_bound
from coopt.solving.partition.filtering import useful
from coopt.solving.partition.parts import part_of, product_sets, subset
from coopt.solving.partition.scaling import scaled
from coopt.solving.partition.valuation import Worth, worth
from coopt.solving.watching import OnStanding, Standing, rescaled
from formulations.partition import FORMULATIONS, REGRET, Equation, add_choice_cut, build
from formulations.partition_data import Ints, PartitionData

Allowed = Callable[[Ints], bool]
ALONE = 10  # parts that are searched one by one
LONGEST_S = 1e9  # a time limit that never comes


@dataclass(frozen=True, kw_only=True, eq=False)
class Partition(Effort):
    """How a search ended: the option of each workload, None without a solution, and what they amount to.

    `options` counts those that the filter kept.
    """

    outcome: Outcome
    chosen: Ints | None
    worth: Worth | None
    options: int
    filter_s: float


def search_partition(
    data: PartitionData,
    *,
    formulation: Literal["totals", "shares"] = "totals",
    gap: float = 0.0,
    backend: Backend | None = None,
    deadline: float | None = None,
    allowed: Allowed = lambda _: True,
    on_standing: OnStanding | None = None,
) -> Partition:
    """The choice of least objective, or the best found in time.

    What the solver chose is recomputed from the data; a choice that turns out to exceed a limit is cut off, and the
    solver is asked again.

    Parameters
    ----------
    backend
        The solver, whose gap is this one; the built-in one where left out.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    allowed
        Whether options, one for each workload, keep the limits when they are written out.
    on_standing
        Hears how far the search is, in objective units.
    """
    started = time.perf_counter()
    kept = useful(data)
    few = subset(data, kept)
    filter_s = time.perf_counter() - started
    until = started + LONGEST_S if deadline is None else deadline
    ended = _Ended(
        backend=backend or backend_of(Solver(gap=gap)),
        equations=REGRET if data.outlooks else FORMULATIONS[formulation],
        gap=gap,
        deadline=until,
        on_standing=on_standing,
    )
    if len(np.unique(few.workload)) == data.workloads:  # else a workload has no option
        ended.run(few, lambda picked: allowed(kept[picked]))
    chosen = None if ended.picked is None else kept[ended.picked]
    return Partition(
        outcome=ended.outcome,
        chosen=chosen,
        worth=None if chosen is None else worth(data, chosen),
        bound=ended.bound,
        options=len(kept),
        filter_s=filter_s,
        **ended.taken(),
    )


@dataclass(kw_only=True, eq=False)
class _Ended(Toll):
    """How solving goes and ends; `picked` are options within all limits, worth `value`."""

    backend: Backend
    equations: tuple[Equation, ...]
    gap: float
    deadline: float
    on_standing: OnStanding | None
    outcome: Outcome = "infeasible"
    picked: Ints | None = None
    value: float = math.inf
    bound: float = -math.inf

    def run(self, data: PartitionData, allowed: Allowed) -> None:
        """Go through the parts by their bounds, until no other can hold a better choice.

        After `ALONE` of them those that are left are searched as one: where bounds are weak that is quicker.
        """
        started = time.perf_counter()
        sets = product_sets(data)
        parts = [part_of(data, rows) for rows in sets]
        bounds = [-math.inf] if len(sets) == 1 else [lower_bound(part) for part in parts]
        self.build_s += time.perf_counter() - started
        left = [turn for turn in np.argsort(bounds, kind="stable").tolist() if bounds[turn] < math.inf]
        proven, tried = math.inf, 0
        while left and bounds[left[0]] < self.value * (1 - self.gap):
            left = [turn for turn in left if bounds[turn] < self.value * (1 - self.gap)]
            first, left = (left[:1], left[1:]) if tried < ALONE else (left, [])
            rows = sets[first[0]] if len(first) == 1 else np.unique(np.concatenate([sets[turn] for turn in first]))
            part = parts[first[0]] if len(first) == 1 else part_of(data, rows)
            later = min([proven, *(bounds[turn] for turn in left)])
            outcome, bound = self._part(data, rows, part, allowed, later)
            proven = min(proven, math.inf if outcome == "infeasible" else max(bound, bounds[first[0]]))
            tried += 1
            if outcome not in ("optimal", "infeasible"):
                self.outcome = outcome
                break
        else:
            self.outcome = "infeasible" if self.picked is None else "optimal"
        others = [bound for bound in bounds if bound >= self.value * (1 - self.gap)]
        proven = min([proven, *others, *(bounds[turn] for turn in left)])
        self.bound = proven if math.isfinite(proven) else -math.inf

    def _part(
        self, data: PartitionData, rows: Ints, part: PartitionData, allowed: Allowed, later: float
    ) -> tuple[Outcome, float]:
        """Solve a part, recompute, cut off what does not hold, and repeat; how it ended and what is proven of it.

        `later` is a bound below all other parts.
        """
        started = time.perf_counter()
        small, scale = scaled(part)
        model = build(small, self.equations)
        self.build_s += time.perf_counter() - started
        while True:
            left = min(max(self.deadline - time.perf_counter(), 0.0), LONGEST_S)
            told = rescaled(self._told(later), scale, self.nodes)
            answer = self.backend.solve(model, left, told)
            self.add(answer)
            if answer.value is None:
                return answer.outcome, answer.bound * scale
            picked = choice(model, part)
            holds = self._take(data, rows[picked], allowed)
            if holds or answer.outcome != "optimal":
                return answer.outcome, answer.bound * scale
            add_choice_cut(model, picked.tolist())
            self.cuts += 1

    def _told(self, later: float) -> OnStanding | None:
        """The listener, who hears of the best of all parts and of a bound below all, `later` that of the others."""
        listener = self.on_standing
        if listener is None:
            return None

        def tell(now: Standing) -> None:
            best = min(self.value, math.inf if now.best is None else now.best)
            bound = None if now.bound is None or later == -math.inf else min(now.bound, later)
            listener(replace(now, best=best if math.isfinite(best) else None, bound=bound))

        return tell

    def _take(self, data: PartitionData, picked: Ints, allowed: Allowed) -> bool:
        """Whether a choice is within all limits; the best so far is kept."""
        found = worth(data, picked)
        if not found.within or not allowed(picked):
            return False
        if found.objective < self.value:
            self.picked, self.value = picked, found.objective
        return True


def choice(model: pyo.ConcreteModel, data: PartitionData) -> Ints:
    """The option of each workload in the solution."""
    z = np.array([model.z[o].value for o in model.O])
    of = [np.flatnonzero(data.workload == w) for w in range(data.workloads)]
    return np.array([rows[np.argmax(z[rows])] for rows in of])
