r"""The linear program of a case: one option for each workload, bills by straight lines below them.

A case leaves some options, and for every product in every phase a range of what is bought then. Over its range a bill
is replaced by the straight lines between its values at both ends and at the thresholds in between. The multipliers of
the program prove a bound by weak duality, whatever the tolerances of the solver (docs/certificates.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import highspy
import numpy as np

from coopt.solving.highs import solved
from formulations.partition_data import Bools, Floats, PartitionData, Product, given

MISSES = (1e4, 1e6, 1e8)
"""What missing a row costs where a program has no solution, in units of a thousandth of the bound."""

HARMLESS = 1e-13
"""By which share the price of a unit stays below the last price of its product, so that more is never worth buying."""


def corners(product: Product, least: float, most: float) -> Floats:
    """The quantities of a range between which the bill of exactly so many units is straight; the end may be
    infinite."""
    inner = [t - step for t in product.start[1:].tolist() for step in (1, 0)]
    return np.array([least, *(q for q in inner if least < q < most), *([most] if most > least else [])])


class Tariffs:
    """Bills of all products at the prices of a problem, then at those of each of its outlooks (K price lists).

    A bill is linear in prices, so that at a mix of several price lists it is the same mix of their bills: those at the
    ends of a range are looked up once, whatever multipliers make of prices.
    """

    def __init__(self, data: PartitionData) -> None:
        self._products = data.products
        self._usd = [
            np.stack([product.usd, *(one.prices[p] for one in data.outlooks)])
            for p, product in enumerate(data.products)
        ]
        self._given = [
            np.stack([given(product.start, usd, product.discount) for usd in table])
            for product, table in zip(data.products, self._usd, strict=True)
        ]
        self._known: dict[tuple[int, float, float], tuple[Floats, Floats]] = {}

    def last(self, p: int) -> Floats:
        """The last price of a product (K,)."""
        return np.asarray(self._usd[p][:, -1])

    def bills(self, p: int, units: Floats) -> Floats:
        """What exactly so many units cost, by price list (K, N)."""
        bracket = np.searchsorted(self._products[p].start, units, side="right") - 1
        return np.asarray(self._given[p][:, bracket] + self._usd[p][:, bracket] * units)

    def over(self, p: int, least: float, most: float) -> tuple[Floats, Floats]:
        """The corners of a range (N,) with their bills (K, N); at an end that is infinite, what a unit more costs."""
        key = p, least, most
        if key not in self._known:
            ends = corners(self._products[p], least, most)
            endless = bool(np.isinf(ends[-1]))
            finite = self.bills(p, ends[:-1] if endless else ends)
            self._known[key] = ends, np.column_stack([finite, self.last(p)]) if endless else finite
        return self._known[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class OptionsLeft:
    """Options that are left (O,), and the least and the most that is bought of each product (P,), in units."""

    rows: Bools
    least: Floats
    most: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Multipliers:
    """Multipliers of a case, in units of the objective.

    `units` (P,) are prices of a unit that stands in a phase, `limits` (L,) those of limits, `budget` that of a USD of
    capex, `links` (C,) those of a link into a core, `outlooks` (Q,) weights of the outlooks. Without `costs` nothing
    but limits counts, and a bound above 0 shows that no choice keeps them.
    """

    costs: bool
    units: Floats
    limits: Floats
    budget: float
    links: Floats
    outlooks: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """What multipliers prove: `prices` (O,) of options, infinite for those left out, `fixed` what is due beside the
    cheapest of each workload, and the bound, the sum of both. `shares` (O,) of options and what is `bought` of products
    are those of the linear program, empty where multipliers are not of one."""

    multipliers: Multipliers
    prices: Floats
    fixed: float
    bound: float
    shares: Floats = field(default_factory=lambda: np.zeros(0))
    bought: dict[int, float] = field(default_factory=dict)


class CaseRelaxation:
    """Linear programs of the cases of a problem, and what their multipliers prove.

    Parameters
    ----------
    data
        The problem, in units and USD.
    worth
        About what the best choice is worth, in units of the objective, which costs are scaled by.
    leeway
        By which share every addend is taken short, and every limit wide: so that the rounding of sums is paid for where
        nobody adds up whole numbers.
    """

    def __init__(self, data: PartitionData, worth: float, leeway: float = 0.0) -> None:
        self.data, self.scale, self.leeway = data, worth / 1e3 or 1.0, leeway
        chains = [data.chain(p) for p in range(len(data.products))]
        self.standing = np.stack([data.quantity[:, chain].sum(axis=1) for chain in chains], axis=1)
        self.following = [data.following(p) for p in range(len(data.products))]
        self.use = np.array([limit.use for limit in data.limits]).reshape(len(data.limits), len(data.usd))
        self.cap = np.array([limit.cap for limit in data.limits])
        self.up = np.array([core.up for core in data.cores]).reshape(len(data.cores), len(data.usd))
        self.tariffs = Tariffs(data)
        self.usd = np.stack([data.usd, *(one.usd for one in data.outlooks)])
        self.other = np.stack([one.other for one in data.outlooks] or [data.other])

    def priced(self, case: OptionsLeft, found: Multipliers) -> Priced:
        """What multipliers prove of a case."""
        data, mix, nothing = self.data, self.mix(found), np.full(len(self.data.usd), np.inf)
        weights = found.outlooks if data.outlooks else np.array([float(found.costs)])
        due = mix @ self.usd + self.standing @ found.units + found.limits @ self.use + found.links @ self.up
        prices = weights @ self.other + due - self.leeway * (weights @ np.abs(self.other) + due)
        prices = np.where(case.rows, prices, np.inf)
        left = [float(found.limits @ self.cap), found.budget * (data.budget or 0.0)]
        left += [rho * one.best for rho, one in zip(found.outlooks, data.outlooks, strict=False)]
        fixed = -sum(left) - self.leeway * sum(map(abs, left))
        for p in range(len(data.products)):
            ends, usd = self.tariffs.over(p, case.least[p], case.most[p])
            bills, beta = mix @ usd, self.worth(found, p)
            if np.isinf(ends[-1]):
                if bills[-1] * (1 - self.leeway) < beta:
                    return Priced(multipliers=found, prices=nothing, fixed=-np.inf, bound=-np.inf)
                ends, bills = ends[:-1], bills[:-1]
            fixed += float((bills - beta * ends - self.leeway * (bills + beta * ends)).min())
        if any(self.spare(found, c) < 0 for c in range(len(data.cores))):
            return Priced(multipliers=found, prices=nothing, fixed=-np.inf, bound=-np.inf)
        bound = fixed + float(self.cheapest(prices).sum())
        return Priced(multipliers=found, prices=prices, fixed=fixed, bound=bound)

    def cheapest(self, prices: Floats) -> Floats:
        """The least price of the options of each workload (W,)."""
        least = np.full(self.data.workloads, np.inf)
        np.minimum.at(least, self.data.workload, prices)
        return least

    def spare(self, found: Multipliers, c: int) -> float:
        """What a core switch costs by multipliers beyond what its ports are worth."""
        core, costs = self.data.cores[c], 1.0 if found.costs else 0.0
        other = costs * core.other
        if self.data.outlooks:
            other = sum(rho * one.core[c] for rho, one in zip(found.outlooks, self.data.outlooks, strict=True))
        limits = sum(
            float(price) * limit.core[c]
            for price, limit in zip(found.limits, self.data.limits, strict=True)
            if limit.core
        )
        return other + limits + core.quantity * float(found.units[core.product]) - core.ports * float(found.links[c])

    def worth(self, found: Multipliers, p: int) -> float:
        """What multipliers say that a unit is worth which is bought in the phase of a product."""
        return float(found.units[self.following[p]].sum())

    def mix(self, found: Multipliers) -> Floats:
        """What multipliers make of a USD at the prices of the problem, then of each outlook (K,)."""
        if self.data.outlooks:
            return np.append(found.budget, self.data.weight * found.outlooks)
        return np.array([found.budget + (self.data.weight if found.costs else 0.0)])

    def solve(self, case: OptionsLeft, target: float) -> Priced:
        """The multipliers of the linear program of a case.

        Where it has no solution, every row may be missed at a price that rises until the bound reaches a target; with
        an infinite target, by as little as possible, whatever that costs.
        """
        program = _Program(self, case)
        solved = program.solved()
        if solved is None and np.isinf(target):
            return self.priced(case, self._safe(case, program.multipliers(program.missing(None), costs=False)))
        found = None if solved is None else self.priced(case, self._safe(case, program.multipliers(solved)))
        for miss in MISSES if found is None else ():
            found = self.priced(case, self._safe(case, program.multipliers(program.missing(miss))))
            if found.bound >= target:
                break
        assert found is not None
        shares = np.zeros(len(self.data.usd))
        shares[program.kept] = program.shares
        return replace(found, shares=shares, bought=program.bought)

    def _safe(self, case: OptionsLeft, found: Multipliers) -> Multipliers:
        """Multipliers with few digits, so small that no bought unit and no core switch has a price below nothing."""
        units, mix = found.units.copy(), self.mix(found)
        for p in np.flatnonzero(np.isinf(case.most)).tolist():
            last, beta = float(mix @ self.tariffs.last(p)), float(units[self.following[p]].sum())
            if beta > last * (1 - HARMLESS):
                units[self.following[p]] *= last * (1 - HARMLESS) / beta
        found = replace(found, units=_rounded(units), limits=_rounded(found.limits))
        spare = [self.spare(found, c) for c in range(len(found.links))]
        ports = np.array([core.ports for core in self.data.cores])
        short = np.array([max(-one, 0.0) for one in spare])
        links = np.maximum(found.links - short / ports, 0.0) * (1 - HARMLESS) if len(ports) else found.links
        return replace(found, links=_rounded(links))


def _rounded(values: Floats) -> Floats:
    return np.array([float(f"{value:.14g}") for value in values.tolist()])


class _Program:
    """A linear program with all its rows and columns, scaled to numbers near 1."""

    def __init__(self, relaxation: CaseRelaxation, case: OptionsLeft) -> None:
        data = relaxation.data
        self.r, self.case, self.data = relaxation, case, data
        self.kept = np.flatnonzero(case.rows)
        self.goods = [p for p in range(len(data.products)) if self._matters(p)]
        self.unit = np.maximum(np.array([data.most(p).sum() for p in range(len(data.products))]), 1.0)
        self.cap = np.where(relaxation.cap > 0, relaxation.cap, 1.0)
        over = [(p, *relaxation.tariffs.over(p, case.least[p], case.most[p])) for p in self.goods]
        self.points = [(p, q) for p, ends, _ in over for q in ends.tolist()]
        self.bills = np.hstack([np.zeros((1 + len(data.outlooks), 0)), *(usd for *_, usd in over)])
        self.first_point = len(self.kept)
        self.first_core = self.first_point + len(self.points)
        self.columns = self.first_core + len(data.cores) + 1
        self.bought: dict[int, float] = {}
        self.shares = np.zeros(len(self.kept))
        self.blocks: list[Floats] = []
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []
        self.most_up = np.array([core.up.max(initial=1.0) for core in data.cores])
        self.cost = self._build()

    def _matters(self, p: int) -> bool:
        held = self.r.standing[self.kept, p].any() or any(core.product == p for core in self.data.cores)
        return bool(held) or self.case.least[p] > 0

    def _cost_row(self, capex: Floats, other: Floats, bills: Floats, core: Sequence[float]) -> Floats:
        """The objective at some prices, by column."""
        row = np.zeros(self.columns)
        row[: self.first_point] = self.data.weight * capex[self.kept] + other[self.kept]
        row[self.first_point : self.first_core] = self.data.weight * bills
        row[self.first_core : -1] = core
        return row / self.r.scale

    def _add(self, rows: Floats, lower: Any, upper: Any) -> None:
        self.blocks.append(rows)
        self.lower.append(np.broadcast_to(lower, len(rows)).astype(float))
        self.upper.append(np.broadcast_to(upper, len(rows)).astype(float))

    def _build(self) -> Floats:
        """All rows; the costs of the columns."""
        data, n = self.data, len(self.kept)
        one = np.zeros((data.workloads, self.columns))
        one[data.workload[self.kept], np.arange(n)] = 1.0
        self._add(one, 1.0, 1.0)
        convex = np.zeros((len(self.goods), self.columns))
        bought = np.zeros((len(self.goods), self.columns))
        at = {p: i for i, p in enumerate(self.goods)}
        for k, (p, q) in enumerate(self.points):
            column = self.first_point + k
            if np.isfinite(q):
                convex[at[p], column] = 1.0
            for later in self.r.following[p]:
                if later in at:
                    bought[at[later], column] += (1.0 if np.isinf(q) else q) / self.unit[later]
        bought[:, :n] = -(self.r.standing[self.kept][:, self.goods] / self.unit[self.goods]).T
        for c, core in enumerate(data.cores):
            bought[at[core.product], self.first_core + c] -= core.quantity / self.unit[core.product]
        self._add(convex, 1.0, 1.0)
        self._add(bought, 0.0, np.inf)
        limits = np.zeros((len(data.limits), self.columns))
        limits[:, :n] = self.r.use[:, self.kept]
        for i, limit in enumerate(data.limits):
            if limit.core:
                limits[i, self.first_core : -1] = limit.core
        self._add(limits / self.cap[:, None], -np.inf, self.r.cap / self.cap)
        ports = np.zeros((len(data.cores), self.columns))
        for c, core in enumerate(data.cores):
            ports[c, self.first_core + c] = core.ports
            ports[c, :n] = -core.up[self.kept]
        self._add(ports / self.most_up.reshape(-1, 1), 0.0, np.inf)
        if data.budget is not None:
            row = np.zeros((1, self.columns))
            row[0, :n] = data.usd[self.kept]
            row[0, self.first_point : self.first_core] = self.bills[0]
            self._add(row / data.budget, -np.inf, 1.0)
        for then, bills in zip(data.outlooks, self.bills[1:], strict=True):
            row = self._cost_row(then.usd, then.other, bills, then.core)[None, :]
            row[0, -1] = -1.0
            self._add(row, -np.inf, then.best / self.r.scale)
        cost = np.zeros(self.columns)
        if data.outlooks:
            cost[-1] = 1.0
        else:
            cost = self._cost_row(data.usd, data.other, self.bills[0], [core.other for core in data.cores])
        return cost

    def solved(self) -> tuple[Floats, Floats] | None:
        """Multipliers of the rows, and columns; None where there is no solution."""
        return _solved(self.cost, np.vstack(self.blocks), np.concatenate(self.lower), np.concatenate(self.upper))

    def missing(self, price: float | None) -> tuple[Floats, Floats]:
        """The same where rows may be missed at a price, beside the costs or without them."""
        rows, lower, upper = np.vstack(self.blocks), np.concatenate(self.lower), np.concatenate(self.upper)
        misses = np.hstack([np.diag(np.isfinite(lower).astype(float)), -np.diag(np.isfinite(upper).astype(float))])
        cost = 0.0 * self.cost if price is None else self.cost
        whole = np.concatenate([cost, np.full(2 * len(rows), 1.0 if price is None else price)])
        solved = _solved(whole, np.hstack([rows, misses]), lower, upper)
        assert solved is not None, "every row may be missed"
        return solved

    def multipliers(self, solved: tuple[Floats, Floats], *, costs: bool = True) -> Multipliers:
        """What a solution amounts to."""
        duals, columns = solved
        self.shares, self.bought = columns[: len(self.kept)], {}
        for (p, q), share in zip(self.points, columns[self.first_point : self.first_core], strict=True):
            self.bought[p] = self.bought.get(p, 0.0) + (1.0 if np.isinf(q) else q) * share
        return self._read(costs, duals)

    def _read(self, costs: bool, duals: Floats) -> Multipliers:
        data, scale = self.data, self.r.scale
        parts = np.split(duals, np.cumsum([len(block) for block in self.blocks])[:-1])
        _, _, bought, limits, ports, *rest = parts
        units = np.zeros(len(data.products))
        units[self.goods] = np.maximum(bought, 0.0) * scale / self.unit[self.goods]
        budget = 0.0
        if data.budget is not None:
            budget = max(-float(rest.pop(0)[0]), 0.0) * scale / data.budget
        rho = np.array([max(-float(one[0]), 0.0) for one in rest])
        if rho.sum() > 1 - HARMLESS:  # weights are rounded, and must not add up to more than 1
            rho = rho / rho.sum() * (1 - HARMLESS)
        return Multipliers(
            costs=costs,
            units=units,
            limits=np.maximum(-limits, 0.0) * scale / self.cap,
            budget=float(f"{budget:.14g}"),
            links=np.maximum(ports, 0.0) * scale / self.most_up,
            outlooks=_rounded(rho),
        )


def _solved(cost: Floats, rows: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats] | None:
    """Multipliers and columns; None where there is no solution."""
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(cost)), np.full(len(cost), np.inf)
    lp.row_lower_, lp.row_upper_ = lower, upper
    column, row = np.nonzero(rows.T)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.searchsorted(column, np.arange(len(cost) + 1)).astype(np.int32)
    lp.a_matrix_.index_ = row.astype(np.int32)
    lp.a_matrix_.value_ = rows.T[column, row]
    h = solved(lp)
    if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    solution = h.getSolution()  # multipliers prove something whether the solver is content with them or not
    return np.asarray(solution.row_dual), np.asarray(solution.col_value)


def amount(value: float) -> str:
    """A number of 0 or more as proofs write it."""
    return f"{Decimal(repr(value)):.30f}".rstrip("0").rstrip(".") if value > 0 else "0"
