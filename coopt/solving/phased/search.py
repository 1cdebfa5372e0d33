"""The cheapest line: the most promising first, each by its formulation, until no bound of the rest is lower."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyomo.core as pyo

from coopt.instance.schema import Instance
from coopt.network.growth import Line, Spent, spending, whole_cost
from coopt.plan.schema import Cost
from coopt.solving.backend import Backend
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.phased.arrays import line_bounds
from coopt.solving.watching import OnStanding
from formulations.phased import FORMULATIONS, PhasedData, build

FORMULATION = "phases"


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A line with the uplinks of every phase, and what that costs, recomputed."""

    line: Line
    uplinks: tuple[int, ...]
    spent: tuple[Spent, ...]
    cost: Cost


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
) -> Drive[Growth]:
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
    bounds = line_bounds(data).tolist()
    several = [_of_line(instance, line, taken(data, f), bounds[f]) for f, line in enumerate(lines)]
    return drive(several, backend, gap=instance.solver.gap, deadline=deadline, on_standing=on_standing)


def _of_line(instance: Instance, line: Line, data: PhasedData, bound: float) -> Subproblem[Growth]:
    """One line by its formulation; its decisions are rounded, and everything is recomputed from them.

    Where a further uplink costs nothing, the formulation may pass what is on offer: of the uplinks on offer below and
    above, which rise from phase to phase as well, the cheaper are no worse.
    """

    def build_line() -> tuple[pyo.ConcreteModel, float]:
        unit = (bound if bound > 0 else 1.0) / LARGEST
        return build(scaled(data, unit), FORMULATIONS[FORMULATION]), unit

    def read(model: pyo.ConcreteModel) -> Decided[Growth]:
        decided = [round(model.u[0, t].value) for t in model.T]
        offered = [family.uplink_choices for family in line.phases]
        below = [family.most_offered(u) for family, u in zip(line.phases, decided, strict=True)]
        above = [choices[bisect_left(choices, u)] for choices, u in zip(offered, decided, strict=True)]
        return min((_at(uplinks) for uplinks in (below, above)), key=lambda found: found.value)

    def _at(uplinks: Sequence[int]) -> Decided[Growth]:
        growth = grown_at(instance, line, uplinks)
        return Decided(choice=growth, value=growth.cost.of(instance.objective.minimize))

    return Subproblem(build=build_line, read=read, bound=bound)


def taken(data: PhasedData, line: int) -> PhasedData:
    """The same problem with one of its lines."""
    one = slice(line, line + 1)
    per_line = ("least", "most", "leaves", "ports", "stood", "trunks", "fixed", "uplink", "spine")
    return replace(data, **{name: getattr(data, name)[one] for name in per_line})


def scaled(data: PhasedData, unit: float) -> PhasedData:
    """The same problem with costs in another unit, cut off where one unit costs far more than all of a best plan."""
    most = NEAR**3 * LARGEST
    return replace(
        data,
        price=np.minimum(data.price / unit, most),
        run=np.minimum(data.run / unit, most),
        labour=np.minimum(data.labour / unit, most),
    )
