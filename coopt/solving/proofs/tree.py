r"""Cut a choice into cases until the multipliers of each prove the bound, or few choices are left
in it.

A case is cut by whether a product is used, by how much of it is bought, or by how much of it one
workload's option has. Of a case that is left whole, multipliers leave those choices open whose
prices add up to less than the bound: who checks the proof goes through them one by one.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from coopt.solving.proofs.relaxation import CaseProof, CaseRelaxation, Multipliers, ProofCase
from formulations.choice_data import ChoiceData, Floats

MOST_OPEN = 2_000
"""Options that are looked at on the way to the choices that a case leaves open."""

ChoiceCheck = Callable[[list[int]], bool]
"""Whether a choice, the option of each workload, is billed and worth the bound, or keeps not all
limits.
"""

MIN_SHARE = 1e-6
"""Shares of options below this are rounding of the linear program."""

WORTH_A_CUT = 0.1
"""Which share of what a bound lacks a cut has to promise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CaseBranch:
    """A cut, and what has become of its sides: choices that do not use a product, then those that
    may.

    With `max_units` the first buy at most so many units of the product in its phase, and the second
    more; of a `workload` its option has at most so many, or more.
    """

    product: int
    max_units: int | None = None
    workload: int | None = None
    sides: tuple[Node, Node]


Node = CaseProof | CaseBranch
"""A case that is left whole, or both sides of a cut."""
Frontier = list[tuple[float, float]]
"""Units of a limit, ascending, and what they cost, falling."""

Cut = dict[str, int]
"""What a branch says of a cut."""


class _Place:
    """A place in the tree: a case and what its program says, and once it is cut both sides."""

    def __init__(self, case: ProofCase, proof: CaseProof) -> None:
        self.case, self.proof = case, proof
        self.cut: Cut | None = None
        self.sides: tuple[_Place, ...] = ()

    def __lt__(self, other: _Place) -> bool:
        return self.proof.bound < other.proof.bound

    def node(self) -> Node:
        """The tree from here on."""
        if self.cut is None:
            return self.proof
        first, second = self.sides
        return CaseBranch(**self.cut, sides=(first.node(), second.node()))


class Prover:
    """Cut a problem into cases that prove a bound.

    Parameters
    ----------
    target
        The bound (in units of the objective) that is to be proven; infinite to prove that nothing
        is feasible.
    deadline
        When to cut no more, on the clock of `time.perf_counter`.
    unit_limits
        Limits, by number, that are counted in whole units and that cores take nothing of.
    check
        Asked of every choice that is left open; where left out, who checks the proof asks.
    leeway
        As `CaseRelaxation` has it.
    most_cases
        After how many linear programs nothing is cut any more.
    most_open, most_billed
        Options that are looked at on the way to the choices that a case leaves open, and how many
        of these are asked for.

    Attributes
    ----------
    proven
        The bound that the cases prove: the target, or less where time ran out or nothing was left
        to cut.
    """

    def __init__(
        self,
        data: ChoiceData,
        target: float,
        deadline: float,
        unit_limits: Sequence[int],
        *,
        check: ChoiceCheck = lambda _: True,
        leeway: float = 0.0,
        most_cases: float = math.inf,
        most_open: int = MOST_OPEN,
        most_billed: int = MOST_OPEN,
    ) -> None:
        self._data, self._target, self._deadline, self.proven = data, target, deadline, target
        self._unit_limits = unit_limits
        self._check, self._most_cases, self._cases = check, most_cases, 0
        self._most_open, self._most_billed = most_open, most_billed
        scale = target if math.isfinite(target) and target > 0 else _dearest_value(data)
        self._relaxation = CaseRelaxation(data, scale, leeway)
        self._uses = np.stack([data.uses(p) for p in range(len(data.products))], axis=1)

    def tree(self) -> Node:
        """The cases of the whole problem."""
        data, products = self._data, len(self._data.products)
        # A core stands whatever islands are chosen, so its switch counts from the start; kinds
        # count by the last phase.
        cores = frozenset(max(data.following(core.product)) for core in data.cores)
        rows, max_units = np.ones(len(data.usd), dtype=bool), np.full(products, np.inf)
        root = ProofCase(
            rows=rows, min_units=np.zeros(products), max_units=max_units, counted=cores
        )
        several = [p for p in range(products) if len(data.products[p].usd) > 1]
        return self._ranged(self._among(root), several)

    def _ranged(self, case: ProofCase, products: list[int]) -> Node:
        """Set aside first that more of a product is bought than all islands could have."""
        if not products:
            return self._node(case)
        p, further = products[0], products[1:]
        max_units = math.ceil(
            sum(
                float(self._data.max_units(q).sum())
                for q in {*self._data.chain(p), *self._data.following(p)}
            )
        )
        proof = self._relaxation.solve(
            replace(case, min_units=_at(case.min_units, p, max_units + 1)), self._target
        )
        # With a range that ends, bills have finite corners. Where this side stays open, the range
        # is left as it is.
        if not self._is_closed(proof):
            return self._ranged(case, further)
        up_to = self._ranged(replace(case, max_units=_at(case.max_units, p, max_units)), further)
        return CaseBranch(product=p, max_units=max_units, sides=(up_to, proof))

    def _node(self, case: ProofCase) -> Node:
        """Cut the case with the lowest bound, until every one is closed or time is up."""
        root = self._place(case)
        queue = [root]
        # The lowest bound is the one that all cases prove together, so it is raised first.
        while queue:
            place = heappop(queue)
            if self._is_closed(place.proof):
                continue
            is_late = time.perf_counter() > self._deadline or self._cases >= self._most_cases
            branching = None if is_late else self._cut_of(place)
            if branching is None:
                self.proven = min(self.proven, self._left_open(place.proof))
            else:
                place.cut, sides = branching
                place.sides = tuple(map(self._place, sides))
                for side in place.sides:
                    heappush(queue, side)
        return root.node()

    def _place(self, case: ProofCase) -> _Place:
        self._cases += 1
        return _Place(case, self._relaxation.solve(case, self._target))

    def _cut_of(self, place: _Place) -> tuple[Cut, tuple[ProofCase, ProofCase]] | None:
        """Both sides of a cut of a case; None where it leaves few choices open, or nothing can be
        cut.
        """
        case, proof = place.case, place.proof
        # The linear program knows no limit on products in use, so these cuts come first: before,
        # its bounds are weak.
        product = self._uncounted(case, proof)
        if product is not None:
            without = replace(case, rows=case.rows & ~self._uses[:, product])
            among = self._among(replace(case, counted=case.counted | {product}))
            return {"product": product}, (without, among)
        if self._left_open(proof) >= self._target:
            return None
        return self._by_purchase(case, proof) or self._by_island(case, proof)

    def _is_closed(self, proof: CaseProof) -> bool:
        return proof.bound >= self._target if proof.multipliers.costs else proof.bound > 0

    def _uncounted(self, case: ProofCase, proof: CaseProof) -> int | None:
        """Of the products of which more might be used than may be, the one that the cheapest
        options have most of.
        """
        candidates = []
        for kind in self._data.kinds:
            products_used = [int(p) for p in kind.products if self._uses[case.rows, int(p)].any()]
            if len(products_used) > kind.max_products:
                candidates += [p for p in products_used if p not in case.counted]
        min_prices = self._relaxation.cheapest(proof.prices)
        is_cheapest = np.isfinite(proof.prices) & (proof.prices <= min_prices[self._data.workload])
        units = self._relaxation.stock[is_cheapest].sum(axis=0)
        return max(candidates, key=lambda p: float(units[p]), default=None)

    def _among(self, case: ProofCase) -> ProofCase:
        """The case without the other products of a kind of which as many are counted as may be
        used.
        """
        rows = case.rows
        for kind in self._data.kinds:
            of_kind = {int(p) for p in kind.products}
            if len(of_kind & case.counted) >= kind.max_products:
                rows = rows & ~self._uses[:, sorted(of_kind - case.counted)].any(axis=1)
        return replace(case, rows=rows)

    def _left_open(self, proof: CaseProof) -> float:
        """The bound of a case once choices are gone through, which is the target where prices leave
        few open.

        Of the limits that are counted in whole units, the dearest one is kept exactly and has no
        price.
        """
        data, multipliers, min_prices = (
            self._data,
            proof.multipliers,
            self._relaxation.cheapest(proof.prices),
        )
        # A choice costs the bound and its excesses over the cheapest options: from this room on it
        # reaches the target.
        room = self._target - proof.bound
        if not math.isfinite(room):
            return proof.bound
        uses, cap, price = self._exact(multipliers)
        menus = list[list[tuple[float, float, float, int]]]()
        for w in range(data.workloads):
            rows = np.flatnonzero((data.workload == w) & (proof.prices - min_prices[w] < room))
            excess, units = proof.prices[rows] - min_prices[w], uses[rows]
            fields = (
                excess.tolist(),
                (excess - price * units).tolist(),
                units.tolist(),
                rows.tolist(),
            )
            # Sorted by excess, so that a menu may be left at the first option beyond the budget.
            menus.append(sorted(zip(*fields, strict=True)))
        frontiers = _rests(menus, room, price)
        due, looked_at, billed = price * cap if price else 0.0, 0, 0

        def deeper(choice: list[int], budget: float, unpriced: float, use: float) -> bool:
            nonlocal looked_at, billed
            n = len(choice)
            if n == len(menus):
                billed += 1
                return billed <= self._most_billed and self._check(choice)
            for excess, unpriced_excess, units, row in menus[n]:
                if excess >= budget:
                    break
                looked_at += 1
                if looked_at > self._most_open:
                    return False
                # The dearest limit counts exactly here: others cost at least this much within what
                # is left of it.
                is_closed = (
                    unpriced + unpriced_excess + _min_cost(frontiers[n + 1], cap - use - units)
                    >= room - due
                )
                if not is_closed and not deeper(
                    [*choice, row], budget - excess, unpriced + unpriced_excess, use + units
                ):
                    return False
            return True

        bound = proof.bound + due + _min_cost(frontiers[0], cap)
        return self._target if bound >= self._target or deeper([], room, 0.0, 0.0) else bound

    def _exact(self, duals: Multipliers) -> tuple[Floats, float, float]:
        """What options take of the dearest limit of those in whole units (O,), what there is, and
        its price; without one nothing is taken.
        """
        if not self._unit_limits:
            return np.zeros(len(self._data.usd)), math.inf, 0.0
        dearest = max(
            self._unit_limits,
            key=lambda limit: float(duals.limits[limit] * self._relaxation.cap[limit]),
        )
        return (
            self._relaxation.use[dearest],
            float(self._relaxation.cap[dearest]),
            float(duals.limits[dearest]),
        )

    def _by_purchase(
        self, case: ProofCase, proof: CaseProof
    ) -> tuple[Cut, tuple[ProofCase, ProofCase]] | None:
        """Cut where the straight lines are furthest below a bill, if that is far enough."""
        gaps = [(self._gap(case, proof, p, at), p, at) for p, at in proof.purchases.items()]
        far_gaps = [gap for gap in gaps if gap[0] > WORTH_A_CUT * (self._target - proof.bound)]
        if not far_gaps:
            return None
        _, p, at = max(far_gaps)
        # Both sides keep at least one quantity, and no infinite end is made an int.
        max_units = max(
            min(math.floor(at), int(min(case.max_units[p], 1e15)) - 1), int(case.min_units[p])
        )
        up_to = replace(case, max_units=_at(case.max_units, p, max_units))
        beyond = replace(case, min_units=_at(case.min_units, p, max_units + 1))
        return {"product": p, "max_units": max_units}, (up_to, beyond)

    def _gap(self, case: ProofCase, proof: CaseProof, p: int, at: float) -> float:
        """The excess of the bill of what the linear program buys over its straight lines."""
        if case.min_units[p] >= case.max_units[p]:
            return 0.0
        relaxation, multipliers = self._relaxation, proof.multipliers
        ends, usd = relaxation.tariffs.corner_bills(p, case.min_units[p], case.max_units[p])
        mix, worth, finite = (
            relaxation.mix(multipliers),
            relaxation.worth(multipliers, p),
            np.isfinite(ends),
        )
        # At an optimum the program buys at the corners whose bill less the worth of units is least:
        # that is the line.
        lines = mix @ usd[:, finite] - worth * ends[finite]
        excess = mix @ relaxation.tariffs.bills(p, np.array([at])) - worth * at
        return float(excess[0] - lines.min())

    def _by_island(
        self, case: ProofCase, proof: CaseProof
    ) -> tuple[Cut, tuple[ProofCase, ProofCase]] | None:
        """Cut where the linear program divides a workload most evenly between few and many units of
        a product.
        """
        split: tuple[float, int, int, int] | None = None
        shares, units_of = proof.shares, self._relaxation.stock
        for w in range(self._data.workloads):
            fractional = np.flatnonzero((self._data.workload == w) & (shares > MIN_SHARE))
            for p in range(units_of.shape[1] if len(fractional) > 1 else 0):
                order = np.argsort(units_of[fractional, p])
                units, share = units_of[fractional, p][order], np.cumsum(shares[fractional][order])
                for i in np.flatnonzero(np.diff(units) > 0):
                    # An even split raises the bounds of both sides, and more so where units differ
                    # much between them.
                    score = min(share[i], 1 - share[i]) * (1 - units[0] / units[-1])
                    split = max(split or (0.0, 0, 0, 0), (float(score), w, p, int(units[i])))
        if split is None:
            return None
        _, w, p, max_units = split
        in_workload, has_few = self._data.workload == w, units_of[:, p] <= max_units
        up_to = replace(case, rows=case.rows & (has_few | ~in_workload))
        beyond = replace(case, rows=case.rows & ~(has_few & in_workload))
        return {"workload": w, "product": p, "max_units": max_units}, (up_to, beyond)


def _rests(
    menus: Sequence[Sequence[tuple[float, float, float, int]]], room: float, price: float
) -> list[Frontier]:
    """What the options of each workload and those after it take of a limit, and the least that they
    then cost over the cheapest without it, as far as that may be below a room.
    """
    rests = [[(0.0, 0.0)]]
    for menu in reversed(menus):
        frontier = _frontier((units, unpriced) for _, unpriced, units, _ in menu)
        # Sums at or beyond the room reach the target, so a frontier never grows with choices that
        # are closed anyway.
        sums = ((a + c, b + d) for a, b in frontier for c, d in rests[-1])
        rests.append(
            _frontier(
                (units, unpriced) for units, unpriced in sums if unpriced + price * units < room
            )
        )
    return rests[::-1]


def _frontier(points: Iterable[tuple[float, float]]) -> Frontier:
    """The points with the least cost for what they take, ascending."""
    frontier = Frontier()
    for units, cost in sorted(points):
        if not frontier or cost < frontier[-1][1]:
            frontier.append((units, cost))
    return frontier


def _min_cost(frontier: Frontier, units: float) -> float:
    """The least cost within so many units."""
    at = bisect_right(frontier, (units, math.inf))
    return frontier[at - 1][1] if at else math.inf


def _dearest_value(data: ChoiceData) -> float:
    """What the dearest choice is worth, about."""
    usd = data.usd + data.quantity @ np.array([product.usd.max() for product in data.products])
    return float(data.largest(np.abs(data.opex) + usd).sum()) or 1.0


def _at(values: Floats, p: int, value: float) -> Floats:
    """The values with another one at a place."""
    copy = values.copy()
    copy[p] = value
    return copy
