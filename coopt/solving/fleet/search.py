r"""One option for each workload at the least cost: drop what cannot win, solve, recompute from the
data.

One small linear program gives a bound below every choice of a part.

Bills are replaced by straight lines below them over the quantities that can occur, :math:`\alpha_p
+ \beta_p q`, and core switches by the share of one that an option's up-links need. What is left is
one option for each workload within linear limits. Of the linear program only the multipliers of the
limits are taken: for any :math:`\lambda \ge 0`

.. math::

    \sum_p \alpha_p + \sum_w \min_{o \in O_w} \Bigl( c_o + \sum_\ell \lambda_\ell a^\ell_o \Bigr)
    - \sum_\ell \lambda_\ell \bar{a}^\ell

is a bound (weak duality), so it holds whatever the solver's tolerance. Where the linear program has
no solution, its ray is taken: multipliers whose sum, without any cost, exceeds what the limits
leave, which no choice can.

The sum is one of floats, and multipliers may be far larger than the bound: where options differ
little in what they use of a limit, what they use and what there is cancel. So each addend is taken
short by `LEEWAY` of its own size, which is more than the rounding of all sums that it is in, and a
limit is taken as that much wider: so much a choice may be over it by the rounding of its own sum.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import highspy
import numpy as np
import pyomo.core as pyo

from coopt.instance.schema import Solver
from coopt.solving.driver import UNLIMITED_S, Decided, Drive, Subproblem, drive
from coopt.solving.fleet.arrays import worth
from coopt.solving.fleet.parts import (
    cut_off,
    part_of,
    product_sets,
    prove_part,
    scaled,
    subset,
    useful,
)
from coopt.solving.highs import COARSE, OnStanding, lp_of, solved
from coopt.solving.runs import Backend, backend_of
from formulations.choice import FORMULATIONS, REGRET, Equation, add_choice_cut, build
from formulations.choice_data import ChoiceData, Floats, Ints

LimitCheck = Callable[[Ints], bool]
MAX_PARTS = 10  # parts that are searched one by one

SAFETY = 1e-9  # of the bound, given up to rounding

LEEWAY = 1e-12
"""Of every addend: the rounding of a sum of up to 4,000 of them is less."""


def search_partition(
    data: ChoiceData,
    *,
    formulation: Literal["choice", "shares"] = "choice",
    gap: float = 0.0,
    backend: Backend | None = None,
    deadline: float | None = None,
    is_allowed: LimitCheck = lambda _: True,
    on_standing: OnStanding | None = None,
) -> Drive[Ints]:
    """The choice of least objective, the option of each workload, or the best found in time.

    What the solver chose is recomputed from the data; a choice that turns out to exceed a limit is
    cut off, and the solver is asked again.

    Parameters
    ----------
    backend
        The solver, whose gap is this one; the built-in one where left out.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    is_allowed
        Whether options, one for each workload, keep the limits when they are written out.
    on_standing
        Hears how far the search is, in objective units.
    """
    started = time.perf_counter()
    # Dropped before anything is built, since models grow with options and most of them are
    # dominated.
    useful_rows = useful(data)
    pieces = _Pieces(
        data=subset(data, useful_rows),
        equations=REGRET if data.scenarios else FORMULATIONS[formulation],
        rows=useful_rows,
        is_allowed=is_allowed,
    )
    ending = drive(
        pieces.subproblems(),
        backend or backend_of(Solver(gap=gap)),
        gap=gap,
        deadline=started + UNLIMITED_S if deadline is None else deadline,
        on_standing=on_standing,
        merge=(MAX_PARTS, pieces.merge),
    )
    return replace(
        ending,
        found=None if ending.found is None else useful_rows[ending.found],
        build_s=ending.build_s + pieces.build_s,
    )


@dataclass(kw_only=True, eq=False)
class _Pieces:
    """The filtered problem cut into parts by sets of products; `rows` are the positions of its
    options in the whole.
    """

    data: ChoiceData
    equations: tuple[Equation, ...]
    rows: Ints
    is_allowed: LimitCheck
    build_s: float = 0.0

    @cached_property
    def sets(self) -> list[Ints]:
        """The options of each part; none where a workload has no option."""
        is_complete = len(np.unique(self.data.workload)) == self.data.workloads
        return product_sets(self.data) if is_complete else []

    def subproblems(self) -> list[Subproblem[Ints]]:
        """A subproblem for each part; where there are several, with a bound from all options, and
        one from its own where that decides something.
        """
        started = time.perf_counter()
        # A single part is solved in any case, so that its bound, which takes long where several
        # islands are chosen, would decide nothing.
        if len(self.sets) == 1:
            part = part_of(self.data, self.sets[0])
            is_open = self.data.workloads > 1 or self.data.scenarios
            subproblems = [
                self._of(0, self.sets[0], part, -math.inf if is_open else lower_bound(part))
            ]
        else:
            bounds = bounds_of_sets(self.data, self.sets) if self.sets else []
            subproblems = [self._rough(*piece) for piece in enumerate(bounds)]
        self.build_s = time.perf_counter() - started
        return subproblems

    def _rough(self, number: int, bound: float) -> Subproblem[Ints]:
        """A part whose own bound is not known yet."""

        def sharpened() -> Subproblem[Ints]:
            started = time.perf_counter()
            part = part_of(self.data, self.sets[number])
            own = self._of(number, self.sets[number], part, lower_bound(part))
            self.build_s += time.perf_counter() - started
            return own

        return Subproblem(number=number, bound=bound, sharpened=sharpened)

    def merge(self, several: Sequence[Subproblem[Ints]]) -> Subproblem[Ints]:
        """Several parts as one: where bounds are weak that is quicker."""
        rows = np.unique(np.concatenate([self.sets[piece.number] for piece in several]))
        return self._of(-1, rows, part_of(self.data, rows), min(piece.bound for piece in several))

    def _of(
        self,
        number: int,
        rows: Ints,
        part: ChoiceData,
        bound: float,
        *,
        best_value: float = math.inf,
    ) -> Subproblem[Ints]:
        """A part; its numbers are in units of what the best choice is worth, where that is
        known.
        """

        @cache
        def in_units() -> tuple[ChoiceData, float]:
            near = part if math.isinf(best_value) else cut_off(part, best_value)
            return scaled(near, best_value)

        def build_part() -> tuple[pyo.ConcreteModel, float]:
            small, scale = in_units()
            return build(small, self.equations), scale

        def closer(value: float) -> Subproblem[Ints] | None:
            _, scale = in_units()
            # a regret is a difference of costs
            costs = value + max((scenario.min_value for scenario in part.scenarios), default=0.0)
            return (
                self._of(number, rows, part, bound, best_value=costs)
                if 0 < costs < COARSE * scale
                else None
            )

        def read(model: pyo.ConcreteModel) -> Decided[Ints] | None:
            picked = choice(model, part)
            found = worth(self.data, rows[picked])
            if not found.is_within or not self.is_allowed(self.rows[rows[picked]]):
                add_choice_cut(model, picked.tolist())
                return None
            return Decided(choice=rows[picked], value=found.objective)

        def worth_of(picked: Ints, floor: float) -> float:
            found = worth(self.data, rows[picked])
            keeps = found.objective >= floor or (
                found.is_within and self.is_allowed(self.rows[rows[picked]])
            )
            return found.objective if keeps else math.inf

        def close(value: float, deadline: float) -> tuple[float, Decided[Ints] | None]:
            proven, better = prove_part(part, value, deadline, worth_of)
            found = (
                None
                if better is None
                else Decided(choice=rows[better], value=worth_of(better, math.inf))
            )
            return proven, found

        return Subproblem(
            number=number, build=build_part, read=read, bound=bound, closer=closer, close=close
        )


def choice(model: pyo.ConcreteModel, data: ChoiceData) -> Ints:
    """The option of each workload in the solution."""
    z = np.array([model.z[o].value for o in model.O])
    of = [np.flatnonzero(data.workload == w) for w in range(data.workloads)]
    # The solver's values are near 0 and 1 within its tolerance: the largest of a workload is the
    # option chosen.
    return np.array([rows[np.argmax(z[rows])] for rows in of])


def lower_bound(data: ChoiceData) -> float:
    """A bound of the objective of every choice; infinite where the linear program shows that there
    is none.
    """
    (bound,) = bounds_of_sets(data, [np.arange(len(data.workload))])
    return bound


def bounds_of_sets(data: ChoiceData, sets: Sequence[Ints]) -> list[float]:
    """A bound of the objective of every choice of each set of options, which hold some of every
    workload, from one linear program of all options.

    What lies below the cost of every choice does so for those of a set, and weak duality holds at
    any multipliers: the least sum is taken over the set alone.
    """
    line = _linear(data)
    cost, uses = line.cost, line.uses
    scale = max(float(np.abs(cost).max()), 1.0)
    multipliers, ray = _multipliers(data, cost / scale, uses)
    due, slack = scale * (uses @ multipliers), scale * float(multipliers.sum())
    prices = cost + due - LEEWAY * (line.size + due)
    bounds = []
    for rows in sets:
        # A ray without costs shows that no choice keeps the limits: all use more than there is at
        # these prices.
        if _min_sum(data, uses @ ray, rows) > float(ray.sum()) * (1 + SAFETY):
            bounds.append(math.inf)
            continue
        bound = line.constant + _min_sum(data, prices, rows) - slack
        rounding = LEEWAY * (line.constant_size + slack)
        bounds.append(bound - SAFETY * (abs(line.constant) + abs(bound)) - rounding)
    return bounds


class CostLine(NamedTuple):
    """Straight lines below the cost of every choice, one option for each workload (O,).

    `size` and `constant_size` are the same sums of absolute values; `uses` (O, L) are shares of
    what is left of each limit.
    """

    cost: Floats
    size: Floats
    constant: float
    constant_size: float
    uses: Floats


def _min_sum(data: ChoiceData, prices: Floats, rows: Ints) -> float:
    """The least sum of one option for each workload, of some rows."""
    workload, some = data.workload[rows], prices[rows]
    return sum(float(some[workload == w].min()) for w in range(data.workloads))


def _linear(data: ChoiceData) -> CostLine:
    """Cost of each option, what is due in any case, and use of each limit as a share of what is
    left of it.
    """
    shares = [core.up / core.ports for core in data.cores]
    quantity, moved_units, opex = data.quantity.copy(), data.quantity.copy(), data.opex
    for core, share in zip(data.cores, shares, strict=True):
        # Only switches beyond those of the phase before are bought, in shares: whole switches would
        # cost no less.
        earlier = 0.0 if core.predecessor is None else shares[core.predecessor]
        quantity[:, core.product] += core.quantity * (share - earlier)
        moved_units[:, core.product] += core.quantity * (share + earlier)
        opex = opex + core.opex * share
    lines = [_line_below(data, p) for p in range(len(data.products))]
    offsets, slopes = np.array([line[0] for line in lines]), np.array([line[1] for line in lines])
    capex = data.usd + quantity @ slopes
    constant = float(offsets.sum())
    max_bill = float(sum(line[2] for line in lines))
    uses = [
        (
            limit.use + sum(use * share for use, share in zip(limit.core, shares, strict=False)),
            limit.cap,
        )
        for limit in data.limits
    ]
    if data.budget is not None:
        uses.append((capex, data.budget - constant + LEEWAY * (data.budget + max_bill)))
    # Of a limit of nothing there is no share: an option that uses any of it takes more than all
    # workloads may.
    columns = [
        use / cap if cap > 0 else np.where(use > 0, 2.0 * data.workloads, 0.0) for use, cap in uses
    ]
    table = np.stack(columns, axis=1) if columns else np.zeros((len(capex), 0))
    size = data.weight * (data.usd + moved_units @ slopes) + np.abs(opex)
    return CostLine(
        data.weight * capex + opex, size, data.weight * constant, data.weight * max_bill, table
    )


def _line_below(data: ChoiceData, p: int) -> tuple[float, float, float]:
    """Offset and slope of a line below the bill of a product, over the quantities that a choice can
    have, and the largest bill that the offset is a difference of.

    Between thresholds a bill is concave or flat, and it jumps down nowhere: a line below it at the
    thresholds and at both ends is below it everywhere. Of a product that may be bought ahead of its
    phase no unit costs less than the last price of any phase so far.
    """
    product, units = data.products[p], data.quantity[:, p]
    if len(product.usd) > 1 and len(data.following(p)) + len(data.chain(p)) > 2:
        return 0.0, min(float(data.products[q].usd[-1]) for q in data.chain(p)), 0.0
    if len(product.usd) == 1:
        return 0.0, float(product.usd[0]), 0.0
    min_units = float(sum(units[data.workload == w].min() for w in range(data.workloads)))
    max_units = float(data.max_units(p).sum())
    dearest = product.bill(max_units)
    if product.rises:  # a convex bill lies above the line of its last bracket and above its first
        is_beyond = min_units >= product.start[-1]
        last = float(product.offsets[-1]), float(product.usd[-1]), dearest
        return last if is_beyond else (0.0, 0.0, 0.0)
    if max_units <= min_units:
        return dearest, 0.0, dearest
    slope = (dearest - product.bill(min_units)) / (max_units - min_units)
    at = [min_units, max_units, *[float(t) for t in product.start if min_units < t < max_units]]
    return min(product.bill(q) - slope * q for q in at), slope, dearest


def _multipliers(data: ChoiceData, cost: Floats, uses: Floats) -> tuple[Floats, Floats]:
    """The multipliers of the limits in the linear program, and those of a ray where it has no
    solution; else 0.
    """
    count, workloads, limits = len(cost), data.workloads, uses.shape[1]
    rows = np.broadcast_to(np.arange(workloads, workloads + limits), (count, limits))
    lower = np.concatenate([np.ones(workloads), np.full(limits, -np.inf)])
    lp = lp_of(
        cost,
        (np.zeros(count), np.ones(count)),
        (lower, np.ones(workloads + limits)),
        (
            np.arange(count + 1) * (1 + limits),
            np.column_stack([data.workload, rows]).ravel(),
            np.column_stack([np.ones(count), uses]).ravel(),
        ),
        by_row=False,
    )
    h = solved(lp)
    status, zeros = h.getModelStatus(), np.zeros(limits)
    if status == highspy.HighsModelStatus.kInfeasible:
        _, has_ray, ray = h.getDualRay()
        return zeros, _positive(ray[workloads:]) if has_ray else zeros
    if status == highspy.HighsModelStatus.kOptimal:
        return _positive(h.getSolution().row_dual[workloads:]), zeros
    # Without a verdict no limit has a price, which still is a bound.
    return zeros, zeros


def _positive(duals: Any) -> Floats:
    """Multipliers of upper limits, which HiGHS gives a minus."""
    return np.asarray(np.maximum(-np.asarray(duals, dtype=np.float64), 0.0))
