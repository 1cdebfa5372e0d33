"""The choices of islands whose prices add up to less than what a leaf lacks.

Prices of islands are sums over all that they take, limits among it. A limit at a price says little
of choices that come close to it in whole units, of which there are many where islands are many. So
one limit is kept exactly instead: what a choice leaves of it is worth its price, and nothing may be
over it. Of all that the islands of the last workloads can take of it, only the least price for so
many units matters to those before.
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
    """A limit that is kept exactly: what it measures, the price of a unit, how many units there
    are, and what they are worth altogether, which is rounded down.
    """

    measure: Measure
    price: int
    cap: int
    worth: int


class IslandExcess(NamedTuple):
    """An island with what it costs over the cheapest of its workload, the units it takes of the
    exact limit, and what it costs over without their price.
    """

    excess: int
    units: int
    unpriced: int
    island: OpenIsland


class OpenChoices:
    """The choices of an island for each workload whose prices add up to less than a ceiling, within
    the exact limit.

    Parameters
    ----------
    menus
        For each workload the islands that belong to such a choice by their own price, one at least.
    """

    def __init__(
        self, menus: Sequence[Sequence[OpenIsland]], limit: ExactLimit, ceiling: int
    ) -> None:
        least_prices = [min(island.price for island in menu) for menu in menus]
        self._limit, self._room, self.looked_at = limit, ceiling - sum(least_prices), 0
        self._menus = [
            [
                IslandExcess(excess, units, excess - units * limit.price, one)
                for one in sorted(menu)
                for units in [one.island.usage.amounts.get(limit.measure, 0)]
                for excess in [one.price - least_price]
            ]
            for menu, least_price in zip(menus, least_prices, strict=True)
        ]
        self._rest_frontiers = self._frontiers()
        least_rest = _within(self._rest_frontiers[0], limit.cap)
        self.least = (
            ceiling
            if least_rest is None
            else min(sum(least_prices) + limit.worth + least_rest, ceiling)
        )
        """The least that a choice within the exact limit may add up to, where that is below the
        ceiling.
        """

    def _frontiers(self) -> list[Frontier]:
        """What the islands of each workload and of those after it may take and cost, where that is
        below the room.
        """
        frontiers: list[Frontier] = [[(0, 0)]]
        for menu in reversed(self._menus):
            frontier = _frontier((step.units, step.unpriced) for step in menu)
            # what takes and costs no less than another is of no use to any workload before
            sums = ((a + c, b + d) for a, b in frontier for c, d in frontiers[-1])
            price, room = self._limit.price, self._room
            frontiers.append(
                _frontier(
                    (units, unpriced) for units, unpriced in sums if unpriced + price * units < room
                )
            )
        return frontiers[::-1]

    def choices_below(self, limit: int) -> Iterator[list[OpenIsland]]:
        """Each of these choices.

        Raises
        ------
        TooManyError
            Where more than so many islands have to be looked at.
        """
        cap, unpriced_room, islands = (
            self._limit.cap,
            self._room - self._limit.worth,
            list[OpenIsland](),
        )

        def deeper(
            n: int, room: int, unpriced_so_far: int, units: int
        ) -> Iterator[list[OpenIsland]]:
            if n == len(self._menus):
                yield islands
                return
            for step in self._menus[n]:
                # menus ascend: all that follow cost as much or more
                if step.excess >= room:
                    break
                self.looked_at += 1
                if self.looked_at > limit:
                    raise TooManyError
                least_rest = _within(self._rest_frontiers[n + 1], cap - units - step.units)
                if (
                    least_rest is not None
                    and unpriced_so_far + step.unpriced + least_rest < unpriced_room
                ):
                    islands.append(step.island)
                    yield from deeper(
                        n + 1,
                        room - step.excess,
                        unpriced_so_far + step.unpriced,
                        units + step.units,
                    )
                    islands.pop()

        yield from deeper(0, self._room, 0, 0)


def _frontier(points: Iterable[tuple[int, int]]) -> Frontier:
    """Those with the least cost for what they take."""
    frontier = Frontier()
    for units, cost in sorted(points):
        if not frontier or cost < frontier[-1][1]:
            frontier.append((units, cost))
    return frontier


def _within(frontier: Frontier, units: int) -> int | None:
    """The least cost within so many units, if any is."""
    at = bisect_right(frontier, units, key=itemgetter(0))
    return frontier[at - 1][1] if at else None
