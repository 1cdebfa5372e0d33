r"""Cut a choice into cases until the multipliers of each prove the bound, or few choices are left in it.

A case is cut by whether a product is used, by how much of it is bought, or by how much of it one workload's option has.
Of a case that is left whole, multipliers leave those choices open whose prices add up to less than the bound: who
checks the proof goes through them one by one.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from coopt.solving.proofs.relaxation import CaseRelaxation, Multipliers, OptionsLeft, Priced
from formulations.partition_data import Floats, PartitionData

MOST_OPEN = 2_000
"""Options that are looked at on the way to the choices that a case leaves open."""

Settled = Callable[[list[int]], bool]
"""Whether a choice, the option of each workload, is billed and worth the bound, or keeps not all limits."""

CHOSEN = 1e-6
"""Shares of options below this are rounding of the linear program."""

WORTH_A_CUT = 0.1
"""Which share of what a bound lacks a cut has to promise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenCase:
    """A case that is left whole."""

    priced: Priced


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductBranch:
    """Choices that do not use a product, and those that may."""

    product: int
    without: Node
    among: Node


@dataclass(frozen=True, kw_only=True, eq=False)
class PurchaseBranch:
    """Choices that buy at most so many units of a product in its phase, and those that buy more."""

    product: int
    most: int
    up_to: Node
    beyond: Node


@dataclass(frozen=True, kw_only=True, eq=False)
class IslandBranch:
    """Choices whose option of a workload has at most so many units of a product in its phase, and those with more."""

    workload: int
    product: int
    most: int
    up_to: Node
    beyond: Node


Node = OpenCase | ProductBranch | PurchaseBranch | IslandBranch
Counted = frozenset[int]
Frontier = list[tuple[float, float]]
"""Units of a limit, ascending, and what they cost, falling."""

Cut = Callable[[Node, Node], Node]
"""A node of what has become of both sides of a cut."""


class CaseLeft(NamedTuple):
    """A case with the products that are counted in it."""

    case: OptionsLeft
    counted: Counted


class _Place:
    """A place in the tree: a case and what its program says, and once it is cut both sides."""

    def __init__(self, left: CaseLeft, priced: Priced) -> None:
        self.left, self.priced = left, priced
        self.cut: Cut | None = None
        self.sides: tuple[_Place, ...] = ()

    def __lt__(self, other: _Place) -> bool:
        return self.priced.bound < other.priced.bound

    def node(self) -> Node:
        """The tree from here on."""
        if self.cut is None:
            return OpenCase(priced=self.priced)
        first, second = (side.node() for side in self.sides)
        return self.cut(first, second)


class Prover:
    """Cut a problem into cases that prove a bound.

    Parameters
    ----------
    target
        The bound (in units of the objective) that is to be proven; infinite to prove that nothing is feasible.
    deadline
        When to cut no more, on the clock of `time.perf_counter`.
    whole
        Limits, by number, that are counted in whole units and that cores take nothing of.
    settled
        Asked of every choice that is left open; where left out, who checks the proof asks.
    leeway
        As `CaseRelaxation` has it.
    most_cases
        After how many linear programs nothing is cut any more.
    most_open, most_billed
        Options that are looked at on the way to the choices that a case leaves open, and how many of these are asked
        for.

    Attributes
    ----------
    proven
        The bound that the cases prove: the target, or less where time ran out or nothing was left to cut.
    """

    def __init__(
        self,
        data: PartitionData,
        target: float,
        deadline: float,
        whole: Sequence[int],
        *,
        settled: Settled = lambda _: True,
        leeway: float = 0.0,
        most_cases: float = math.inf,
        most_open: int = MOST_OPEN,
        most_billed: int = MOST_OPEN,
    ) -> None:
        self._data, self._target, self._deadline, self.proven, self._whole = data, target, deadline, target, whole
        self._settled, self._most_cases, self._cases = settled, most_cases, 0
        self._most_open, self._most_billed = most_open, most_billed
        scale = target if math.isfinite(target) and target > 0 else _largest(data)
        self._relaxation = CaseRelaxation(data, scale, leeway)
        self._uses = np.stack([data.uses(p) for p in range(len(data.products))], axis=1)

    def tree(self) -> Node:
        """The cases of the whole problem."""
        data, products = self._data, len(self._data.products)
        cores = frozenset(max(data.following(core.product)) for core in data.cores)
        rows, most = np.ones(len(data.usd), dtype=bool), np.full(products, np.inf)
        whole = self._among(OptionsLeft(rows=rows, least=np.zeros(products), most=most), cores)
        return self._ranged(whole, cores, [p for p in range(products) if len(data.products[p].usd) > 1])

    def _ranged(self, case: OptionsLeft, counted: Counted, products: list[int]) -> Node:
        """Set aside first that more of a product is bought than all islands could have."""
        if not products:
            return self._node(case, counted)
        p, rest = products[0], products[1:]
        most = math.ceil(sum(float(self._data.most(q).sum()) for q in {*self._data.chain(p), *self._data.following(p)}))
        over = self._relaxation.solve(replace(case, least=_at(case.least, p, most + 1)), self._target)
        if not self._closed(over):
            return self._ranged(case, counted, rest)
        up_to = self._ranged(replace(case, most=_at(case.most, p, most)), counted, rest)
        return PurchaseBranch(product=p, most=most, up_to=up_to, beyond=OpenCase(priced=over))

    def _node(self, case: OptionsLeft, counted: Counted) -> Node:
        """Cut the case with the lowest bound, until every one is closed or time is up."""
        root = self._place(CaseLeft(case, counted))
        open_ones = [root]
        while open_ones:
            place = heappop(open_ones)
            if self._closed(place.priced):
                continue
            late = time.perf_counter() > self._deadline or self._cases >= self._most_cases
            found = None if late else self._cut(place)
            if found is None:
                self.proven = min(self.proven, self._left_open(place.priced))
            if found is not None:
                place.cut, sides = found
                place.sides = tuple(map(self._place, sides))
                for side in place.sides:
                    heappush(open_ones, side)
        return root.node()

    def _place(self, left: CaseLeft) -> _Place:
        self._cases += 1
        return _Place(left, self._relaxation.solve(left.case, self._target))

    def _cut(self, place: _Place) -> tuple[Cut, tuple[CaseLeft, CaseLeft]] | None:
        """Both sides of a cut of a case; None where it leaves few choices open, or nothing can be cut."""
        (case, counted), priced = place.left, place.priced
        product = self._uncounted(case, counted, priced)
        if product is not None:
            return self._by_product(case, counted, product)
        if self._left_open(priced) >= self._target:
            return None
        return self._by_purchase(case, counted, priced) or self._by_island(case, counted, priced)

    def _closed(self, priced: Priced) -> bool:
        return priced.bound >= self._target if priced.multipliers.costs else priced.bound > 0

    def _uncounted(self, case: OptionsLeft, counted: Counted, priced: Priced) -> int | None:
        """Of the products of which more might be used than may be, the one that the cheapest options have most of."""
        open_ones = []
        for kind in self._data.kinds:
            used = [int(p) for p in kind.products if self._uses[case.rows, int(p)].any()]
            if len(used) > kind.most:
                open_ones += [p for p in used if p not in counted]
        least = self._relaxation.cheapest(priced.prices)
        cheapest = np.isfinite(priced.prices) & (priced.prices <= least[self._data.workload])
        held = self._relaxation.standing[cheapest].sum(axis=0)
        return max(open_ones, key=lambda p: float(held[p]), default=None)

    def _by_product(self, case: OptionsLeft, counted: Counted, p: int) -> tuple[Cut, tuple[CaseLeft, CaseLeft]]:
        without = CaseLeft(replace(case, rows=case.rows & ~self._uses[:, p]), counted)
        among = CaseLeft(self._among(case, counted | {p}), counted | {p})
        return lambda a, b: ProductBranch(product=p, without=a, among=b), (without, among)

    def _among(self, case: OptionsLeft, counted: Counted) -> OptionsLeft:
        """The case without the other products of a kind of which as many are counted as may be used."""
        rows = case.rows
        for kind in self._data.kinds:
            mine = {int(p) for p in kind.products}
            if len(mine & counted) >= kind.most:
                rows = rows & ~self._uses[:, sorted(mine - counted)].any(axis=1)
        return replace(case, rows=rows)

    def _left_open(self, priced: Priced) -> float:
        """The bound of a case once choices are gone through, which is the target where prices leave few open.

        Of the limits that are counted in whole units, the dearest one is kept exactly and has no price.
        """
        data, found, least = self._data, priced.multipliers, self._relaxation.cheapest(priced.prices)
        room = self._target - priced.bound
        if not math.isfinite(room):
            return priced.bound
        taken, cap, price = self._exact(found)
        menus = list[list[tuple[float, float, float, int]]]()
        for w in range(data.workloads):
            rows = np.flatnonzero((data.workload == w) & (priced.prices - least[w] < room))
            over, units = priced.prices[rows] - least[w], taken[rows]
            each = over.tolist(), (over - price * units).tolist(), units.tolist(), rows.tolist()
            menus.append(sorted(zip(*each, strict=True)))
        rest = _rests(menus, room, price)
        due, looked_at, billed = price * cap if price else 0.0, 0, 0

        def deeper(chosen: list[int], left: float, unpriced: float, used: float) -> bool:
            nonlocal looked_at, billed
            n = len(chosen)
            if n == len(menus):
                billed += 1
                return billed <= self._most_billed and self._settled(chosen)
            for over, alone, units, row in menus[n]:
                if over >= left:
                    break
                looked_at += 1
                if looked_at > self._most_open:
                    return False
                closed = unpriced + alone + _least(rest[n + 1], cap - used - units) >= room - due
                if not closed and not deeper([*chosen, row], left - over, unpriced + alone, used + units):
                    return False
            return True

        bound = priced.bound + due + _least(rest[0], cap)
        return self._target if bound >= self._target or deeper([], room, 0.0, 0.0) else bound

    def _exact(self, found: Multipliers) -> tuple[Floats, float, float]:
        """What options take of the dearest limit of those in whole units (O,), what there is, and its price; without
        one nothing is taken."""
        if not self._whole:
            return np.zeros(len(self._data.usd)), math.inf, 0.0
        exact = max(self._whole, key=lambda limit: float(found.limits[limit] * self._relaxation.cap[limit]))
        return self._relaxation.use[exact], float(self._relaxation.cap[exact]), float(found.limits[exact])

    def _by_purchase(
        self, case: OptionsLeft, counted: Counted, priced: Priced
    ) -> tuple[Cut, tuple[CaseLeft, CaseLeft]] | None:
        """Cut where the straight lines are furthest below a bill, if that is far enough."""
        gaps = [(self._gap(case, priced, p, at), p, at) for p, at in priced.bought.items()]
        far = [one for one in gaps if one[0] > WORTH_A_CUT * (self._target - priced.bound)]
        if not far:
            return None
        _, p, at = max(far)
        most = max(min(math.floor(at), int(min(case.most[p], 1e15)) - 1), int(case.least[p]))
        up_to = CaseLeft(replace(case, most=_at(case.most, p, most)), counted)
        beyond = CaseLeft(replace(case, least=_at(case.least, p, most + 1)), counted)
        return lambda a, b: PurchaseBranch(product=p, most=most, up_to=a, beyond=b), (up_to, beyond)

    def _gap(self, case: OptionsLeft, priced: Priced, p: int, at: float) -> float:
        """By how much the bill of what the linear program buys is above its straight lines."""
        if case.least[p] >= case.most[p]:
            return 0.0
        relaxation, found = self._relaxation, priced.multipliers
        ends, usd = relaxation.tariffs.over(p, case.least[p], case.most[p])
        mix, worth, finite = relaxation.mix(found), relaxation.worth(found, p), np.isfinite(ends)
        lines = mix @ usd[:, finite] - worth * ends[finite]
        over = mix @ relaxation.tariffs.bills(p, np.array([at])) - worth * at
        return float(over[0] - lines.min())

    def _by_island(
        self, case: OptionsLeft, counted: Counted, priced: Priced
    ) -> tuple[Cut, tuple[CaseLeft, CaseLeft]] | None:
        """Cut where the linear program divides a workload most evenly between few and many units of a product."""
        best: tuple[float, int, int, int] | None = None
        shares, standing = priced.shares, self._relaxation.standing
        for w in range(self._data.workloads):
            some = np.flatnonzero((self._data.workload == w) & (shares > CHOSEN))
            for p in range(standing.shape[1] if len(some) > 1 else 0):
                order = np.argsort(standing[some, p])
                units, share = standing[some, p][order], np.cumsum(shares[some][order])
                for i in np.flatnonzero(np.diff(units) > 0):
                    score = min(share[i], 1 - share[i]) * (1 - units[0] / units[-1])
                    best = max(best or (0.0, 0, 0, 0), (float(score), w, p, int(units[i])))
        if best is None:
            return None
        _, w, p, most = best
        mine, few = self._data.workload == w, standing[:, p] <= most
        up_to = CaseLeft(replace(case, rows=case.rows & (few | ~mine)), counted)
        beyond = CaseLeft(replace(case, rows=case.rows & ~(few & mine)), counted)
        return lambda a, b: IslandBranch(workload=w, product=p, most=most, up_to=a, beyond=b), (up_to, beyond)


def _rests(menus: Sequence[Sequence[tuple[float, float, float, int]]], room: float, price: float) -> list[Frontier]:
    """What the options of each workload and those after it take of a limit, and the least that they then cost over the
    cheapest without it, as far as that may be below a room."""
    rests = [[(0.0, 0.0)]]
    for menu in reversed(menus):
        few = _frontier((units, alone) for _, alone, units, _ in menu)
        sums = ((a + c, b + d) for a, b in few for c, d in rests[-1])
        rests.append(_frontier((units, alone) for units, alone in sums if alone + price * units < room))
    return rests[::-1]


def _frontier(points: Iterable[tuple[float, float]]) -> Frontier:
    """Those with the least cost for what they take, ascending."""
    found = Frontier()
    for units, cost in sorted(points):
        if not found or cost < found[-1][1]:
            found.append((units, cost))
    return found


def _least(rest: Frontier, units: float) -> float:
    """The least cost within so many units."""
    at = bisect_right(rest, (units, math.inf))
    return rest[at - 1][1] if at else math.inf


def _largest(data: PartitionData) -> float:
    """What the dearest choice is worth, about."""
    usd = data.usd + data.quantity @ np.array([product.usd[0] for product in data.products])
    return float(data.largest(np.abs(data.other) + usd).sum()) or 1.0


def _at(values: Floats, p: int, value: float) -> Floats:
    """The values with another one at a place."""
    found = values.copy()
    found[p] = value
    return found
