"""One option for each workload at the least cost: drop what cannot win, solve, recompute from the data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

import numpy as np
import pyomo.core as pyo

from coopt.instance.schema import Solver
from coopt.solving.backend import Backend, backend_of
from coopt.solving.driver import UNLIMITED_S, Decided, Subproblem, drive
from coopt.solving.effort import Effort
from coopt.solving.highs import COARSE, Outcome
from coopt.solving.partition.bounds import lower_bound
from coopt.solving.partition.closing import closed
from coopt.solving.partition.parts import cut_off, part_of, product_sets, scaled, subset, useful
from coopt.solving.partition.valuation import Worth, worth
from coopt.solving.watching import OnStanding
from formulations.partition import FORMULATIONS, REGRET, Equation, add_choice_cut, build
from formulations.partition_data import Ints, PartitionData

Allowed = Callable[[Ints], bool]
ALONE = 10  # parts that are searched one by one


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
    pieces = _Pieces(
        data=few, equations=REGRET if data.outlooks else FORMULATIONS[formulation], kept=kept, allowed=allowed
    )
    found = drive(
        pieces.subproblems(),
        backend or backend_of(Solver(gap=gap)),
        gap=gap,
        deadline=started + UNLIMITED_S if deadline is None else deadline,
        on_standing=on_standing,
        joined=(ALONE, pieces.joined),
    )
    chosen = None if found.found is None else kept[found.found]
    effort = {field.name: getattr(found, field.name) for field in fields(Effort)}
    effort["build_s"] += pieces.build_s
    return Partition(
        outcome=found.outcome,
        chosen=chosen,
        worth=None if chosen is None else worth(data, chosen),
        options=len(kept),
        filter_s=filter_s,
        **effort,
    )


@dataclass(kw_only=True, eq=False)
class _Pieces:
    """The filtered problem cut into parts by sets of products; `kept` are the positions of its options in the whole."""

    data: PartitionData
    equations: tuple[Equation, ...]
    kept: Ints
    allowed: Allowed
    build_s: float = 0.0

    @cached_property
    def sets(self) -> list[Ints]:
        """The options of each part; none where a workload has no option."""
        whole = len(np.unique(self.data.workload)) == self.data.workloads
        return product_sets(self.data) if whole else []

    def subproblems(self) -> list[Subproblem[Ints]]:
        """A subproblem for each part, with its bound where there are several."""
        started = time.perf_counter()
        parts = [part_of(self.data, rows) for rows in self.sets]
        bounds = [-math.inf] if len(parts) == 1 else [lower_bound(part) for part in parts]
        found = [self._of(n, *one) for n, one in enumerate(zip(self.sets, parts, bounds, strict=True))]
        self.build_s = time.perf_counter() - started
        return found

    def joined(self, several: Sequence[Subproblem[Ints]]) -> Subproblem[Ints]:
        """Several parts as one: where bounds are weak that is quicker."""
        rows = np.unique(np.concatenate([self.sets[one.number] for one in several]))
        return self._of(-1, rows, part_of(self.data, rows), min(one.bound for one in several))

    def _of(
        self, number: int, rows: Ints, part: PartitionData, bound: float, *, known: float = math.inf
    ) -> Subproblem[Ints]:
        """A part; its numbers are in units of what the best choice is worth, where that is known."""
        small, scale = scaled(part if math.isinf(known) else cut_off(part, known), known)

        def build_part() -> tuple[pyo.ConcreteModel, float]:
            return build(small, self.equations), scale

        def closer(value: float) -> Subproblem[Ints] | None:
            costs = value + max((one.best for one in part.outlooks), default=0.0)  # a regret is a difference of costs
            return self._of(number, rows, part, bound, known=costs) if 0 < costs < COARSE * scale else None

        def read(model: pyo.ConcreteModel) -> Decided[Ints] | None:
            picked = choice(model, part)
            found = worth(self.data, rows[picked])
            if not found.within or not self.allowed(self.kept[rows[picked]]):
                add_choice_cut(model, picked.tolist())
                return None
            return Decided(choice=rows[picked], value=found.objective)

        def worth_of(picked: Ints, floor: float) -> float:
            found = worth(self.data, rows[picked])
            keeps = found.objective >= floor or (found.within and self.allowed(self.kept[rows[picked]]))
            return found.objective if keeps else math.inf

        def close(value: float, deadline: float) -> tuple[float, Decided[Ints] | None]:
            proven, better = closed(part, value, deadline, worth_of)
            found = None if better is None else Decided(choice=rows[better], value=worth_of(better, math.inf))
            return proven, found

        return Subproblem(number=number, build=build_part, read=read, bound=bound, closer=closer, close=close)


def choice(model: pyo.ConcreteModel, data: PartitionData) -> Ints:
    """The option of each workload in the solution."""
    z = np.array([model.z[o].value for o in model.O])
    of = [np.flatnonzero(data.workload == w) for w in range(data.workloads)]
    return np.array([rows[np.argmax(z[rows])] for rows in of])
