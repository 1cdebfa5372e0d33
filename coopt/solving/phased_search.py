"""The cheapest line: the most promising first, each by its formulation, until no bound of the rest
is lower.

What every phase asks of every line, how few uplinks meet its bounds and how many its limits allow,
are its arrays.

What each line costs at least: the length of a shortest path through the uplinks of its phases.

A unit first needed in a phase costs the least price so far. Then the cost of a line is a sum over
its phases, each depending on the uplinks of that phase alone, and uplinks never fall from one to
the next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyomo.core as pyo

from coopt.columns.context import context_of
from coopt.columns.table import Columns, columns, needs
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance, Limits
from coopt.instance.variants import phases_of
from coopt.network.family import Family
from coopt.network.growth import (
    Line,
    bought_share,
    energy_usd_per_w,
    factor,
    link_labour_usd,
    spending,
    support_share,
    whole_cost,
)
from coopt.network.growth import lines as lines_of
from coopt.network.parts import Key, LineItem, Quantities, cost_of, open_bill, within_limits
from coopt.plan.couplings import PhaseSpending
from coopt.plan.schema import Cost
from coopt.solving.backend import Backend
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.runs import NamedPrograms, Program, Run, no_programs
from coopt.solving.watching import OnStanding
from formulations.phased import FORMULATIONS, Floats, Ints, PhasedData, build

Uplinks = tuple[int, ...]  # rising

FORMULATION = "phases"


@dataclass(frozen=True, kw_only=True)
class Demand:
    """For every line and phase the uplinks a leaf may have; none where the phase's bounds or limits
    are not met.

    `questions` are the phases, each as a question of its own; `tables` hold the mappings on their
    networks.
    """

    lines: tuple[Line, ...]
    questions: tuple[Instance, ...]
    tables: tuple[Columns, ...]
    timely: tuple[tuple[Uplinks, ...], ...]
    allowed: tuple[tuple[Uplinks, ...], ...]

    @property
    def enumerated(self) -> int:
        """Mappings of all phases."""
        return sum(table.enumerated for table in self.tables)

    @property
    def gated(self) -> dict[str, int]:
        """Those dropped, by cause."""
        drops: Counter[str] = Counter()
        for table in self.tables:
            drops.update(table.gated)
        return dict(drops)

    @property
    def kept(self) -> int:
        """Those kept."""
        return sum(table.kept for table in self.tables)

    @property
    def serving(self) -> tuple[int, ...]:
        """Positions of lines that can serve every phase."""
        return tuple(f for f, uplinks in enumerate(self.allowed) if _rises(uplinks))


def _rises(phases: Sequence[Uplinks]) -> bool:
    """Whether there are uplinks for every phase that never fall."""
    floor = 0
    for uplinks in phases:
        floor = max(floor, uplinks[0]) if uplinks else floor
        if not uplinks or floor > uplinks[-1]:
            return False
    return True


def demanded(
    instance: Instance,
    lines: tuple[Line, ...],
    on_phase: Callable[[int], None],
    on_context: Callable[[], None],
) -> Demand:
    """List the mappings of every phase, and what they need of every line."""
    questions = phases_of(instance)
    tables: list[Columns] = []
    timely: list[tuple[Uplinks, ...]] = []
    for t, question in enumerate(questions):
        on_phase(t)
        families = tuple(line.phases[t] for line in lines)
        tables.append(columns(question, families, lambda _site: None, on_context))
        need = needs(tables[-1].columns, len(question.workload))
        timely.append(
            tuple(
                _timely(family, need.get(tables[-1].numbers[context_of(family)]))
                for family in families
            )
        )
    by_line = tuple(zip(*timely, strict=True))
    return Demand(
        lines=lines,
        questions=questions,
        tables=tuple(tables),
        timely=by_line,
        allowed=tuple(
            tuple(_within(*part) for part in zip(questions, line.phases, uplinks, strict=True))
            for line, uplinks in zip(lines, by_line, strict=True)
        ),
    )


def _timely(family: Family, need: int | None) -> Uplinks:
    """Uplinks with which every workload meets its bound."""
    return () if need is None else tuple(u for u in family.uplink_choices if u >= need)


def _within(question: Instance, family: Family, uplinks: Uplinks) -> Uplinks:
    """Those that keep the limits; use of what is limited never falls with uplinks."""

    def over(u: int) -> bool:
        return not within_limits(question, family, cost_of(question, family, u))

    if question.limits == Limits():
        return uplinks
    return uplinks[: bisect_left(uplinks, True, key=over)]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """A line with the uplinks of every phase, and what that costs, recomputed."""

    line: Line
    uplinks: tuple[int, ...]
    spending: tuple[PhaseSpending, ...]
    cost: Cost


def grown_at(
    instance: Instance, line: Line, uplinks: Sequence[int], *, ahead: bool = True
) -> Growth:
    """What it amounts to when a line grows with these uplinks."""
    bills = spending(instance, line, uplinks, ahead=ahead)
    return Growth(line=line, uplinks=tuple(uplinks), spending=bills, cost=whole_cost(bills))


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
    several = [
        _of_line(instance, line, of_line(data, f), bounds[f]) for f, line in enumerate(lines)
    ]
    return drive(
        several, backend, gap=instance.solver.gap, deadline=deadline, on_standing=on_standing
    )


def _of_line(instance: Instance, line: Line, data: PhasedData, bound: float) -> Subproblem[Growth]:
    """One line by its formulation; its decisions are rounded, and everything is recomputed from
    them.

    Where a further uplink costs nothing, the formulation may pass what is on offer: of the uplinks
    on offer below and above, which rise from phase to phase as well, the cheaper are no worse.
    """

    def build_line() -> tuple[pyo.ConcreteModel, float]:
        unit = (bound if bound > 0 else 1.0) / LARGEST
        return build(scaled(data, unit), FORMULATIONS[FORMULATION]), unit

    def read(model: pyo.ConcreteModel) -> Decided[Growth]:
        decided = [round(model.u[0, t].value) for t in model.T]
        offered = [family.uplink_choices for family in line.phases]
        floors = [family.most_offered(u) for family, u in zip(line.phases, decided, strict=True)]
        ceilings = [
            choices[bisect_left(choices, u)] for choices, u in zip(offered, decided, strict=True)
        ]
        return min(
            (_at(uplinks) for uplinks in (floors, ceilings)), key=lambda decision: decision.value
        )

    def _at(uplinks: Sequence[int]) -> Decided[Growth]:
        growth = grown_at(instance, line, uplinks)
        return Decided(choice=growth, value=growth.cost.of(instance.objective.minimize))

    return Subproblem(build=build_line, read=read, bound=bound)


def of_line(data: PhasedData, line: int) -> PhasedData:
    """The same problem with one of its lines."""
    row = slice(line, line + 1)
    per_line = (
        "min_uplinks",
        "max_uplinks",
        "leaves",
        "ports",
        "stood",
        "trunks",
        "fixed",
        "uplink",
        "spine",
    )
    return replace(data, **{name: getattr(data, name)[row] for name in per_line})


def scaled(data: PhasedData, unit: float) -> PhasedData:
    """The same problem with costs in another unit, cut off where one unit costs far more than all
    of a best plan.
    """
    ceiling = NEAR**3 * LARGEST
    return replace(
        data,
        price=np.minimum(data.price / unit, ceiling),
        run=np.minimum(data.run / unit, ceiling),
        labour=np.minimum(data.labour / unit, ceiling),
    )


@dataclass(frozen=True, kw_only=True)
class PhasePrices:
    """What a unit of each item costs: bought in a phase, and standing in it; shape (T, I).
    Objective units.
    """

    purchase: Floats
    upkeep: Floats


def numbers_of(
    instance: Instance, lines: Sequence[Line], uplinks_by_line: Sequence[Sequence[tuple[int, ...]]]
) -> PhasedData:
    """The numbers of some lines, in units of the objective."""
    bills = [[open_bill(instance, family) for family in line.phases] for line in lines]
    units = {
        key: item for row in bills for quantities in row for key, item in quantities.units.items()
    }
    prices = _prices(instance, list(units.values()))
    retrofits = [[line.retrofit(t) for t in range(len(line.phases))] for line in lines]
    return PhasedData(
        min_uplinks=_table([[uplinks[0] for uplinks in row] for row in uplinks_by_line]),
        max_uplinks=_table([[uplinks[-1] for uplinks in row] for row in uplinks_by_line]),
        leaves=_table(
            [
                [family.leaves if family.tiers == 2 else 0 for family in line.phases]
                for line in lines
            ]
        ),
        ports=_table([[family.spine_ports for family in line.phases] for line in lines]),
        stood=_table([[retrofit.leaves for retrofit in row] for row in retrofits]),
        trunks=_table([[retrofit.trunks for retrofit in row] for row in retrofits]),
        fixed=_counts(bills, list(units), "fixed"),
        uplink=_counts(bills, list(units), "uplink"),
        spine=_counts(bills, list(units), "spine"),
        price=prices.purchase,
        run=prices.upkeep,
        labour=np.array([link_labour_usd(instance, t) for t in range(len(instance.years))]),
    )


def _prices(instance: Instance, items: list[LineItem]) -> PhasePrices:
    phases = range(len(instance.phase))
    usd = np.array(
        [[item.unit_usd * factor(instance, t, item.kind) for item in items] for t in phases]
    )
    if instance.objective.minimize != "tco":
        return PhasePrices(purchase=usd, upkeep=np.zeros_like(usd))
    energy = np.outer(
        [energy_usd_per_w(instance, t) for t in phases], [item.unit_w for item in items]
    )
    support = usd * np.array([[support_share(instance, t)] for t in phases])
    return PhasePrices(purchase=usd * bought_share(instance), upkeep=energy + support)


def _table(rows: list[list[int]]) -> Ints:
    return np.array(rows, dtype=np.int64)


def _counts(bills: list[list[Quantities]], keys: list[Key], part: str) -> Ints:
    """Shape (F, T, I)."""
    return np.array(
        [[[getattr(quantities, part)[key] for key in keys] for quantities in row] for row in bills],
        dtype=np.int64,
    )


def line_bounds(data: PhasedData) -> Floats:
    """No plan on line f costs less than entry f; shape (F,)."""
    unit_usd = np.minimum.accumulate(data.price, axis=0)
    next_usd = np.vstack([unit_usd[1:], np.zeros_like(unit_usd[:1])])
    # a unit is charged at the least price so far and credited at the next phase's, where it stands
    # again: the sum over phases telescopes to each unit's price in the phase that first needs it
    weight = (
        unit_usd - next_usd + data.run
    )  # of a unit in place in a phase, beside those in place in the next one
    fixed, uplink, spine = (
        (part * weight).sum(axis=2) for part in (data.fixed, data.uplink, data.spine)
    )
    uplink += data.labour * data.stood
    uplink[:, :-1] += data.labour[1:] * (data.trunks - data.stood)[:, 1:]
    bounds = fixed.sum(axis=1) + _shortest(uplink, spine, data)
    # rounding grows with what was added up: what a phase is charged and the next one credited may
    # be far larger than the sum of all
    spines = -(-data.leaves * data.max_uplinks // data.ports)
    summed = np.abs(fixed) + np.abs(uplink) * data.max_uplinks + np.abs(spine) * spines
    return np.asarray(np.maximum(bounds - REORDERED * summed.sum(axis=1), 0.0), dtype=np.float64)


def _shortest(uplink: Floats, spine: Floats, data: PhasedData) -> Floats:
    """The least cost of uplinks that never fall and of the spines they need; shape (F,)."""
    u = np.arange(int(data.max_uplinks.max(initial=0)) + 1)
    costs = np.zeros((len(uplink), len(u)))
    for t in range(uplink.shape[1]):
        spines = -(-data.leaves[:, t, None] * u // data.ports[:, t, None])
        cost = uplink[:, t, None] * u + spine[:, t, None] * spines
        inside = (u >= data.min_uplinks[:, t, None]) & (u <= data.max_uplinks[:, t, None])
        # of all numbers of uplinks no larger, which the phase before may have had, the cheapest
        # counts
        costs = np.where(inside, np.minimum.accumulate(costs, axis=1) + cost, np.inf)
    return np.asarray(costs.min(axis=1), dtype=np.float64)


def phased_programs(run: Run) -> NamedPrograms:
    """All lines in one program."""
    candidates = tuple(lines_of(run.instance))
    demand = demanded(run.instance, candidates, lambda _: None, run.check_clock)
    serving = demand.serving
    if not serving:
        return no_programs
    data = numbers_of(
        run.instance, [candidates[f] for f in serving], [demand.allowed[f] for f in serving]
    )
    unit = max(float(line_bounds(data).min()), 1.0) / LARGEST
    small = scaled(data, unit)
    return lambda name: iter([Program(model=build(small, FORMULATIONS[name]), unit=unit)])
