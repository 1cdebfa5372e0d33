"""The choices of islands whose prices add up to less than what a leaf lacks.

Prices of islands are sums over all that they take, limits among it. A limit at a price says little of choices that come
close to it in whole units, of which there are many where islands are many. So one limit is kept exactly instead: what a
choice leaves of it is worth its price, and nothing may be over it. Of all that the islands of the last workloads can
take of it, only the least price for so many units matters to those before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from coopt.verifier.couplings.fleet_paths import TooManyError
from coopt.verifier.proofs.menus import MenuIsland
from coopt.verifier.proofs.rivals import Measure

Frontier = list[tuple[int, int]]
"""Units of a limit, ascending, with the least that they cost without its price, falling."""


@dataclass(frozen=True, order=True)
class OpenIsland:
    """An island at a site, by its number, with its price."""

    price: int
    site: int
    island: MenuIsland = field(compare=False)


class ExactLimit(NamedTuple):
    """A limit that is kept exactly: what it measures, the price of a unit, how many units there are, and what they are
    worth altogether, which is rounded down."""

    measure: Measure
    price: int
    cap: int
    worth: int


class IslandExcess(NamedTuple):
    """An island with what it costs over the cheapest of its workload, the units it takes of the exact limit, and what
    it costs over without their price."""

    over: int
    units: int
    alone: int
    one: OpenIsland


class OpenChoices:
    """The choices of an island for each workload whose prices add up to less than a ceiling, within the exact limit.

    Parameters
    ----------
    menus
        For each workload the islands that belong to such a choice by their own price, one at least.
    """

    def __init__(self, menus: Sequence[Sequence[OpenIsland]], limit: ExactLimit, ceiling: int) -> None:
        least = [min(one.price for one in menu) for menu in menus]
        self._limit, self._room, self.looked_at = limit, ceiling - sum(least), 0
        self._menus = [[self._step(one, low) for one in sorted(menu)] for menu, low in zip(menus, least, strict=True)]
        self._rests = self._rest()
        rest = _within(self._rests[0], limit.cap)
        self.least = ceiling if rest is None else min(sum(least) + limit.worth + rest, ceiling)
        """The least that a choice within the exact limit may add up to, where that is below the ceiling."""

    def _step(self, one: OpenIsland, low: int) -> IslandExcess:
        units, over = one.island.taken.amounts.get(self._limit.measure, 0), one.price - low
        return IslandExcess(over, units, over - units * self._limit.price, one)

    def _rest(self) -> list[Frontier]:
        """What the islands of each workload and of those after it may take and cost, where that is below the room."""
        rests: list[Frontier] = [[(0, 0)]]
        for menu in reversed(self._menus):
            few = _frontier((step.units, step.alone) for step in menu)
            sums = ((a + c, b + d) for a, b in few for c, d in rests[-1])
            price, room = self._limit.price, self._room
            rests.append(_frontier((units, alone) for units, alone in sums if alone + price * units < room))
        return rests[::-1]

    def below(self, most: int) -> Iterator[list[OpenIsland]]:
        """Each of these choices.

        Raises
        ------
        TooManyError
            Where more than so many islands have to be looked at.
        """
        cap, unpriced, chosen = self._limit.cap, self._room - self._limit.worth, list[OpenIsland]()

        def deeper(n: int, left: int, alone: int, units: int) -> Iterator[list[OpenIsland]]:
            if n == len(self._menus):
                yield chosen
                return
            for step in self._menus[n]:
                if step.over >= left:
                    break
                self.looked_at += 1
                if self.looked_at > most:
                    raise TooManyError
                rest = _within(self._rests[n + 1], cap - units - step.units)
                if rest is not None and alone + step.alone + rest < unpriced:
                    chosen.append(step.one)
                    yield from deeper(n + 1, left - step.over, alone + step.alone, units + step.units)
                    chosen.pop()

        yield from deeper(0, self._room, 0, 0)


def _frontier(points: Iterable[tuple[int, int]]) -> Frontier:
    """Those with the least cost for what they take."""
    found = Frontier()
    for units, cost in sorted(points):
        if not found or cost < found[-1][1]:
            found.append((units, cost))
    return found


def _within(rest: Frontier, units: int) -> int | None:
    """The least cost within so many units, if any is."""
    at = bisect_right(rest, units, key=itemgetter(0))
    return rest[at - 1][1] if at else None
