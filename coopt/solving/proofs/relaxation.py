r"""The linear program of a case: one option for each workload, bills by straight lines below them.

A case leaves some options, and for every product in every phase a range of what is bought then.
Over its range a bill is replaced by the straight lines between its values at both ends and at the
thresholds in between. The multipliers of the program prove a bound by weak duality, whatever the
tolerances of the solver (docs/certificates.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import highspy
import numpy as np

from coopt.solving.highs import lp_of, solved
from formulations.choice_data import Bools, ChoiceData, Floats, Product, bracket_offsets

MISSES = (1e4, 1e6, 1e8)
"""What missing a row costs where a program has no solution, in units of a thousandth of the bound.
"""

HARMLESS = 1e-13
"""By which share the price of a unit stays below the last price of its product, so that more is
never worth buying.
"""


def corners(product: Product, low: float, high: float) -> Floats:
    """The quantities of a range between which the bill of exactly so many units is straight; the
    end may be infinite.
    """
    # The bill of whole units may jump from the last unit of a bracket to the first of the next, so
    # both are corners.
    thresholds = [t - step for t in product.start[1:].tolist() for step in (1, 0)]
    return np.array(
        [low, *(q for q in thresholds if low < q < high), *([high] if high > low else [])]
    )


class Tariffs:
    """Bills of all products at the prices of a problem, then at those of each of its scenarios (K
    price lists).

    A bill is linear in prices, so that at a mix of several price lists it is the same mix of their
    bills: those at the ends of a range are looked up once, whatever multipliers make of prices.
    """

    def __init__(self, data: ChoiceData) -> None:
        self._products = data.products
        self._usd = [
            np.stack([product.usd, *(scenario.prices[p] for scenario in data.scenarios)])
            for p, product in enumerate(data.products)
        ]
        self._offsets = [
            np.stack([bracket_offsets(product.start, usd, product.discount) for usd in table])
            for product, table in zip(data.products, self._usd, strict=True)
        ]
        self._cache: dict[tuple[int, float, float], tuple[Floats, Floats]] = {}

    def last_price(self, p: int) -> Floats:
        """The last price of a product (K,)."""
        return np.asarray(self._usd[p][:, -1])

    def bills(self, p: int, units: Floats) -> Floats:
        """What exactly so many units cost, by price list (K, N)."""
        # A threshold itself has the price of the bracket that it begins: hence "right".
        bracket = np.searchsorted(self._products[p].start, units, side="right") - 1
        return np.asarray(self._offsets[p][:, bracket] + self._usd[p][:, bracket] * units)

    def corner_bills(self, p: int, min_units: float, max_units: float) -> tuple[Floats, Floats]:
        """The corners of a range (N,) with their bills (K, N); at an end that is infinite, what a
        unit more costs.
        """
        key = p, min_units, max_units
        if key not in self._cache:
            ends = corners(self._products[p], min_units, max_units)
            endless = bool(np.isinf(ends[-1]))
            finite = self.bills(p, ends[:-1] if endless else ends)
            self._cache[key] = (
                ends,
                np.column_stack([finite, self.last_price(p)]) if endless else finite,
            )
        return self._cache[key]


@dataclass(frozen=True, kw_only=True, eq=False)
class ProofCase:
    """Options that are left (O,), and the least and the most that is bought of each product (P,),
    in units; `counted` are the products that count towards the limit of their kind.
    """

    rows: Bools
    min_units: Floats
    max_units: Floats
    counted: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, eq=False)
class Multipliers:
    """Multipliers of a case, in units of the objective.

    `units` (P,) are prices of a unit that stands in a phase, `limits` (L,) those of limits,
    `budget` that of a USD of capex, `links` (C,) those of a link into a core, `scenarios` (Q,)
    weights of the scenarios. Without `costs` nothing but limits counts, and a bound above 0 shows
    that no choice keeps them.
    """

    costs: bool
    units: Floats
    limits: Floats
    budget: float
    links: Floats
    scenarios: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseProof:
    """What multipliers prove: `prices` (O,) of options, infinite for those left out, `constant`
    what is due beside the cheapest of each workload, and the bound, the sum of both. `shares` (O,)
    of options and `purchases` of products are those of the linear program, empty where multipliers
    are not of one.
    """

    multipliers: Multipliers
    prices: Floats
    constant: float
    bound: float
    shares: Floats = field(default_factory=lambda: np.zeros(0))
    purchases: dict[int, float] = field(default_factory=dict)


class CaseRelaxation:
    """Linear programs of the cases of a problem, and what their multipliers prove.

    Parameters
    ----------
    data
        The problem, in units and USD.
    worth
        About what the best choice is worth, in units of the objective, which costs are scaled by.
    leeway
        By which share every addend is taken short, and every limit wide: so that the rounding of
        sums is paid for where nobody adds up whole numbers.
    """

    def __init__(self, data: ChoiceData, worth: float, leeway: float = 0.0) -> None:
        self.data, self.scale, self.leeway = data, worth / 1e3 or 1.0, leeway
        # What stands in a phase was bought in it or before, so that stock is the sum along the
        # chain of a product.
        chains = [data.chain(p) for p in range(len(data.products))]
        self.stock = np.stack([data.quantity[:, chain].sum(axis=1) for chain in chains], axis=1)
        self.following = [data.following(p) for p in range(len(data.products))]
        self.unit = np.maximum(
            np.array([data.max_units(p).sum() for p in range(len(data.products))]), 1.0
        )
        self.use = np.array([limit.use for limit in data.limits]).reshape(
            len(data.limits), len(data.usd)
        )
        self.cap = np.array([limit.cap for limit in data.limits])
        self.up = np.array([core.up for core in data.cores]).reshape(len(data.cores), len(data.usd))
        self.tariffs = Tariffs(data)
        self.usd = np.stack([data.usd, *(scenario.usd for scenario in data.scenarios)])
        self.opex = np.stack([scenario.opex for scenario in data.scenarios] or [data.opex])

    def evaluate(self, case: ProofCase, duals: Multipliers) -> CaseProof:
        """What multipliers prove of a case."""
        data, mix, nothing = self.data, self.mix(duals), np.full(len(self.data.usd), np.inf)
        # Without scenarios the objective has weight 1, or 0 where only the limits are asked about.
        weights = duals.scenarios if data.scenarios else np.array([float(duals.costs)])
        due = (
            mix @ self.usd
            + self.stock @ duals.units
            + duals.limits @ self.use
            + duals.links @ self.up
        )
        # Addends may cancel, so that each is taken short by a share of its own size and not of the
        # sum's.
        prices = weights @ self.opex + due - self.leeway * (weights @ np.abs(self.opex) + due)
        prices = np.where(case.rows, prices, np.inf)
        slacks = [float(duals.limits @ self.cap), duals.budget * (data.budget or 0.0)]
        slacks += [
            rho * scenario.min_value
            for rho, scenario in zip(duals.scenarios, data.scenarios, strict=False)
        ]
        constant = -sum(slacks) - self.leeway * sum(map(abs, slacks))
        for p in range(len(data.products)):
            ends, usd = self.tariffs.corner_bills(p, case.min_units[p], case.max_units[p])
            bills, beta = mix @ usd, self.worth(duals, p)
            # Beyond the last corner a unit costs the last price: worth more than that, ever more of
            # it would be bought.
            if np.isinf(ends[-1]):
                if bills[-1] * (1 - self.leeway) < beta:
                    return CaseProof(
                        multipliers=duals, prices=nothing, constant=-np.inf, bound=-np.inf
                    )
                ends, bills = ends[:-1], bills[:-1]
            constant += float((bills - beta * ends - self.leeway * (bills + beta * ends)).min())
        # Neither is the number of core switches bounded: one that is worth more than it costs
        # leaves no bound.
        if any(self.spare(duals, c) < 0 for c in range(len(data.cores))):
            return CaseProof(multipliers=duals, prices=nothing, constant=-np.inf, bound=-np.inf)
        bound = constant + float(self.cheapest(prices).sum())
        return CaseProof(multipliers=duals, prices=prices, constant=constant, bound=bound)

    def cheapest(self, prices: Floats) -> Floats:
        """The least price of the options of each workload (W,)."""
        min_prices = np.full(self.data.workloads, np.inf)
        np.minimum.at(min_prices, self.data.workload, prices)
        return min_prices

    def spare(self, duals: Multipliers, c: int) -> float:
        """What a core switch costs by multipliers beyond what its ports are worth."""
        core, costs = self.data.cores[c], 1.0 if duals.costs else 0.0
        opex = costs * core.opex
        if self.data.scenarios:
            opex = sum(
                rho * scenario.core[c]
                for rho, scenario in zip(duals.scenarios, self.data.scenarios, strict=True)
            )
        limits = zip(duals.limits, self.data.limits, strict=True)
        return (
            opex
            + sum(float(price) * limit.core[c] for price, limit in limits if limit.core)
            + core.quantity * float(duals.units[core.product])
            - core.ports * float(duals.links[c])
        )

    def worth(self, duals: Multipliers, p: int) -> float:
        """What multipliers say that a unit is worth which is bought in the phase of a product."""
        return float(duals.units[self.following[p]].sum())

    def mix(self, duals: Multipliers) -> Floats:
        """What multipliers make of a USD at the prices of the problem, then of each scenario
        (K,).
        """
        if self.data.scenarios:
            return np.append(duals.budget, self.data.weight * duals.scenarios)
        return np.array([duals.budget + (self.data.weight if duals.costs else 0.0)])

    def solve(self, case: ProofCase, target: float) -> CaseProof:
        """The multipliers of the linear program of a case.

        Where it has no solution, every row may be missed at a price that rises until the bound
        reaches a target; with an infinite target, by as little as possible, whatever that costs.
        """
        program = _Program(self, case)
        solution = program.solution()
        if solution is None and np.isinf(target):
            duals = program.multipliers(program.elastic_solution(None), costs=False)
            return self.evaluate(case, self._safe(case, duals))
        proof = (
            None
            if solution is None
            else self.evaluate(case, self._safe(case, program.multipliers(solution)))
        )
        # Each price gives a bound; a higher one gives larger multipliers, whose sums lose more to
        # rounding.
        for miss in MISSES if proof is None else ():
            proof = self.evaluate(
                case, self._safe(case, program.multipliers(program.elastic_solution(miss)))
            )
            if proof.bound >= target:
                break
        assert proof is not None
        shares = np.zeros(len(self.data.usd))
        shares[program.rows] = program.shares
        return replace(proof, shares=shares, purchases=program.purchases)

    def _safe(self, case: ProofCase, duals: Multipliers) -> Multipliers:
        """Multipliers with few digits, so small that no bought unit and no core switch has a price
        below nothing.
        """
        units, mix = duals.units.copy(), self.mix(duals)
        # The linear program keeps these rows up to its tolerance only, and a hair too much would
        # leave no bound at all.
        for p in np.flatnonzero(np.isinf(case.max_units)).tolist():
            last_price, beta = (
                float(mix @ self.tariffs.last_price(p)),
                float(units[self.following[p]].sum()),
            )
            if beta > last_price * (1 - HARMLESS):
                units[self.following[p]] *= last_price * (1 - HARMLESS) / beta
        duals = replace(duals, units=_rounded(units), limits=_rounded(duals.limits))
        spare = [self.spare(duals, c) for c in range(len(duals.links))]
        ports = np.array([core.ports for core in self.data.cores])
        shortfalls = np.array([max(-value, 0.0) for value in spare])
        links = (
            np.maximum(duals.links - shortfalls / ports, 0.0) * (1 - HARMLESS)
            if len(ports)
            else duals.links
        )
        return replace(duals, links=_rounded(links))


def _rounded(values: Floats) -> Floats:
    # A proof then writes short decimals that mean just these floats; what they prove is computed
    # after the rounding.
    return np.array([float(f"{value:.14g}") for value in values.tolist()])


class _Program:
    """A linear program with all its rows and columns, scaled to numbers near 1."""

    def __init__(self, relaxation: CaseRelaxation, case: ProofCase) -> None:
        data = relaxation.data
        self.r, self.case, self.data = relaxation, case, data
        self.rows = np.flatnonzero(case.rows)
        self.goods = [p for p in range(len(data.products)) if self._matters(p)]
        self.unit = relaxation.unit
        self.cap = np.where(relaxation.cap > 0, relaxation.cap, 1.0)
        over = [
            (p, *relaxation.tariffs.corner_bills(p, case.min_units[p], case.max_units[p]))
            for p in self.goods
        ]
        self.points = [(p, q) for p, ends, _ in over for q in ends.tolist()]
        self.bills = np.hstack([np.zeros((1 + len(data.scenarios), 0)), *(usd for *_, usd in over)])
        self.first_point = len(self.rows)
        self.first_core = self.first_point + len(self.points)
        self.columns = self.first_core + len(data.cores) + 1
        self.purchases: dict[int, float] = {}
        self.shares = np.zeros(len(self.rows))
        self.blocks: list[Floats] = []
        self.row_lower: list[Floats] = []
        self.row_upper: list[Floats] = []
        self.most_up = np.array([core.up.max(initial=1.0) for core in data.cores])
        self.cost = self._build()

    def _matters(self, p: int) -> bool:
        is_held = self.r.stock[self.rows, p].any() or any(
            core.product == p for core in self.data.cores
        )
        return bool(is_held) or self.case.min_units[p] > 0

    def _cost_row(
        self, capex: Floats, opex: Floats, bills: Floats, core: Sequence[float]
    ) -> Floats:
        """The objective at some prices, by column."""
        row = np.zeros(self.columns)
        row[: self.first_point] = self.data.weight * capex[self.rows] + opex[self.rows]
        row[self.first_point : self.first_core] = self.data.weight * bills
        row[self.first_core : -1] = core
        return row / self.r.scale

    def _add(self, rows: Floats, row_lower: Any, row_upper: Any) -> None:
        self.blocks.append(rows)
        self.row_lower.append(np.broadcast_to(row_lower, len(rows)).astype(float))
        self.row_upper.append(np.broadcast_to(row_upper, len(rows)).astype(float))

    def _build(self) -> Floats:
        """Add all rows, and return the costs of the columns."""
        # `_multipliers_of` takes the multipliers apart in the order in which blocks are added here.
        data, n = self.data, len(self.rows)
        choice = np.zeros((data.workloads, self.columns))
        choice[data.workload[self.rows], np.arange(n)] = 1.0
        self._add(choice, 1.0, 1.0)
        convex = np.zeros((len(self.goods), self.columns))
        balance = np.zeros((len(self.goods), self.columns))
        at = {p: i for i, p in enumerate(self.goods)}
        for k, (p, q) in enumerate(self.points):
            column = self.first_point + k
            # An infinite end is a direction, of units beyond the last corner, and no point of the
            # convex combination.
            if np.isfinite(q):
                convex[at[p], column] = 1.0
            for q_later in self.r.following[p]:
                if q_later in at:
                    balance[at[q_later], column] += (1.0 if np.isinf(q) else q) / self.unit[q_later]
        balance[:, :n] = -(self.r.stock[self.rows][:, self.goods] / self.unit[self.goods]).T
        for c, core in enumerate(data.cores):
            balance[at[core.product], self.first_core + c] -= (
                core.quantity / self.unit[core.product]
            )
        self._add(convex, 1.0, 1.0)
        self._add(balance, 0.0, np.inf)
        limits = np.zeros((len(data.limits), self.columns))
        limits[:, :n] = self.r.use[:, self.rows]
        for i, limit in enumerate(data.limits):
            if limit.core:
                limits[i, self.first_core : -1] = limit.core
        self._add(limits / self.cap[:, None], -np.inf, self.r.cap / self.cap)
        ports = np.zeros((len(data.cores), self.columns))
        for c, core in enumerate(data.cores):
            ports[c, self.first_core + c] = core.ports
            ports[c, :n] = -core.up[self.rows]
        self._add(ports / self.most_up.reshape(-1, 1), 0.0, np.inf)
        if data.budget is not None:
            row = np.zeros((1, self.columns))
            row[0, :n] = data.usd[self.rows]
            row[0, self.first_point : self.first_core] = self.bills[0]
            self._add(row / data.budget, -np.inf, 1.0)
        for scenario, bills in zip(data.scenarios, self.bills[1:], strict=True):
            row = self._cost_row(scenario.usd, scenario.opex, bills, scenario.core)[None, :]
            row[0, -1] = -1.0
            self._add(row, -np.inf, scenario.min_value / self.r.scale)
        cost = np.zeros(self.columns)
        if data.scenarios:
            cost[-1] = 1.0
        else:
            cost = self._cost_row(
                data.usd, data.opex, self.bills[0], [core.opex for core in data.cores]
            )
        return cost

    def solution(self) -> tuple[Floats, Floats] | None:
        """Multipliers of the rows, and columns; None where there is no solution."""
        return _solved(
            self.cost,
            np.vstack(self.blocks),
            np.concatenate(self.row_lower),
            np.concatenate(self.row_upper),
        )

    def elastic_solution(self, price: float | None) -> tuple[Floats, Floats]:
        """A solution where rows may be missed at a price, beside the costs or without them."""
        rows, lower = np.vstack(self.blocks), np.concatenate(self.row_lower)
        upper = np.concatenate(self.row_upper)
        misses = np.hstack(
            [np.diag(np.isfinite(lower).astype(float)), -np.diag(np.isfinite(upper).astype(float))]
        )
        cost = 0.0 * self.cost if price is None else self.cost
        total_cost = np.concatenate([cost, np.full(2 * len(rows), 1.0 if price is None else price)])
        solution = _solved(total_cost, np.hstack([rows, misses]), lower, upper)
        assert solution is not None, "every row may be missed"
        return solution

    def multipliers(self, solution: tuple[Floats, Floats], *, costs: bool = True) -> Multipliers:
        """What a solution amounts to."""
        duals, columns = solution
        self.shares, self.purchases = columns[: len(self.rows)], {}
        for (p, q), share in zip(
            self.points, columns[self.first_point : self.first_core], strict=True
        ):
            # A share of a direction counts units, a share of a corner that part of the corner's
            # units.
            self.purchases[p] = self.purchases.get(p, 0.0) + (1.0 if np.isinf(q) else q) * share
        return self._multipliers_of(costs, duals)

    def _multipliers_of(self, costs: bool, duals: Floats) -> Multipliers:
        data, scale = self.data, self.r.scale
        parts = np.split(duals, np.cumsum([len(block) for block in self.blocks])[:-1])
        _, _, balance_duals, limit_duals, port_duals, *tail = parts
        units = np.zeros(len(data.products))
        # Signs are those of weak duality: what HiGHS leaves on the wrong side of 0 by its tolerance
        # is cut off.
        units[self.goods] = np.maximum(balance_duals, 0.0) * scale / self.unit[self.goods]
        budget = 0.0
        if data.budget is not None:
            budget = max(-float(tail.pop(0)[0]), 0.0) * scale / data.budget
        rho = np.array([max(-float(dual[0]), 0.0) for dual in tail])
        if rho.sum() > 1 - HARMLESS:  # weights are rounded, and must not add up to more than 1
            rho = rho / rho.sum() * (1 - HARMLESS)
        return Multipliers(
            costs=costs,
            units=units,
            limits=np.maximum(-limit_duals, 0.0) * scale / self.cap,
            budget=float(f"{budget:.14g}"),
            links=np.maximum(port_duals, 0.0) * scale / self.most_up,
            scenarios=_rounded(rho),
        )


def _solved(
    cost: Floats, rows: Floats, row_lower: Floats, row_upper: Floats
) -> tuple[Floats, Floats] | None:
    """Multipliers and columns; None where there is no solution."""
    column, row = np.nonzero(rows.T)
    lp = lp_of(
        cost,
        (np.zeros(len(cost)), np.full(len(cost), np.inf)),
        (row_lower, row_upper),
        (np.searchsorted(column, np.arange(len(cost) + 1)), row, rows.T[column, row]),
        by_row=False,
    )
    h = solved(lp)
    if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    solution = (
        h.getSolution()
    )  # multipliers prove something whether the solver is content with them or not
    return np.asarray(solution.row_dual), np.asarray(solution.col_value)


def amount(value: float) -> str:
    """A number of 0 or more as proofs write it."""
    return f"{Decimal(repr(value)):.30f}".rstrip("0").rstrip(".") if value > 0 else "0"
