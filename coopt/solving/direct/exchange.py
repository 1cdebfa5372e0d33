"""Few links by exchange: links move between pairs of domains until, as far as known cuts say, no
phase is late.

The highest pace of a phase on given links is the least of its cuts, sums of prices times links: the
multipliers of its flow program. Cuts are looked at quickly, flows are not. So flows are looked for
where no known cut says that phases are late, and bring further cuts where they are. Nothing here
proves a bound, and links that are found are routed once more.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import highspy
import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints
from coopt.solving.highs import loaded, lp_of, options, run_apart
from formulations.links_data import LinksData

SOFT = 0.02
"""Share of a pace by which a cut above the lowest counts less, by e."""
LOOKED_AT = 16
"""Orbits that lose a link, and that get one, of which every pair is looked at in a turn."""
TABU_MAX_TURNS, TABU_MIN_TURNS = 10, 3
"""Turns before a link may go back are fewer than the first, and no fewer than the second."""
LOWEST_CUTS, MOST_CUTS = 200, 4000
"""Cuts of a phase that count in a turn, and that are kept."""
IN_VAIN = 24
"""Turns for each orbit after which no fewer links are expected."""
HEAVIER = 1.1
"""How much more a cut counts after each turn that it is among the lowest in."""
EXACT = 1e-9
"""Share of the time by which phases may be late: that of other programs is more."""
SLOW = 1e-3
"""The least pace that the time of a phase is worked out for [links]."""


class PhaseFlows:
    """The highest pace of phase k on links of orbits of pairs (D2, D3, D7), and what a link of each
    adds to it.
    """

    def __init__(self, data: LinksData, k: int) -> None:
        self._pair, self._first = data.pair, len(data.balance.columns)
        rows = [*zip(data.balance.columns, data.balance.values, strict=True)]
        rows += [*zip(data.load.columns, data.load.values, strict=True)]
        pace = data.flows
        demand = np.concatenate([data.demand[k], np.zeros(len(self._pair))])
        columns = [
            np.append(entries, pace) if amount else entries
            for (entries, _), amount in zip(rows, demand, strict=True)
        ]
        values = [
            np.append(entries, -amount) if amount else entries
            for (_, entries), amount in zip(rows, demand, strict=True)
        ]
        is_balance = np.arange(len(rows)) < self._first
        lp = lp_of(
            np.where(np.arange(pace + 1) == pace, -1.0, 0.0),
            (np.zeros(pace + 1), np.full(pace + 1, np.inf)),
            (np.where(is_balance, 0.0, -np.inf), np.zeros(len(rows))),
            (np.cumsum([0, *map(len, columns)]), np.concatenate(columns), np.concatenate(values)),
            by_row=True,
        )
        self._solver = loaded(lp, options(gap=0.0, threads=1))

    def cut(self, links: Ints, deadline: float = math.inf) -> tuple[float, Floats]:
        """The highest pace on links (P,), and the prices of a cut that it keeps to (P,).

        Raises
        ------
        TimeoutError
            When it is not found in time.
        """
        # Only right-hand sides change, so the solver goes on from its last basis; its clock goes on
        # as well.
        count, time_left_s = len(self._pair), max(deadline - time.perf_counter(), 0.0)
        self._solver.setOptionValue("time_limit", self._solver.getRunTime() + time_left_s)
        rows = np.arange(self._first, self._first + count, dtype=np.int32)
        self._solver.changeRowsBounds(
            count, rows, np.full(count, -np.inf), links[self._pair].astype(np.float64)
        )
        run_apart(self._solver)
        if self._solver.getModelStatus() == highspy.HighsModelStatus.kTimeLimit:
            raise TimeoutError
        assert self._solver.getModelStatus() == highspy.HighsModelStatus.kOptimal, (
            "some pace is the highest"
        )
        prices = -np.asarray(self._solver.getSolution().row_dual)[self._first :]
        pace = -self._solver.getInfo().objective_function_value
        return pace, np.maximum(np.bincount(self._pair, weights=prices, minlength=len(links)), 0.0)


class Images:
    """What a symmetry of the demands makes of prices of orbits of pairs of a smaller group."""

    def __init__(self, data: LinksData, group: Ints, full_group: Ints) -> None:
        pairs = np.full((group.shape[1], group.shape[1]), -1)
        for (i, j), p in zip(data.arcs, data.pair, strict=True):
            pairs[group[:, i], group[:, j]] = p
        i, j = np.nonzero(np.triu(pairs >= 0))
        self._of, self._size = pairs[i, j], data.pairs
        moved = (pairs[move[i], move[j]] for move in full_group)
        self._moved = list({image.tobytes(): image for image in moved}.values())

    def of(self, prices: Floats) -> dict[bytes, Floats]:
        """All images of prices, without those that are the same."""
        pair_prices = prices / self._size
        # Images that differ by rounding alone are the same cut.
        images = (
            np.bincount(self._of, pair_prices[image], len(prices)).astype(np.float64).round(9)
            for image in self._moved
        )
        return {image.tobytes(): image for image in images}


@dataclass(kw_only=True)
class Cuts:
    """Cuts of a phase (cuts, P), and how much each counts (cuts,); `usual` is a pace that the phase
    has in time.
    """

    rows: Floats
    weight: Floats
    usual: float
    seen: set[bytes] = field(default_factory=set)

    def add(self, images: dict[bytes, Floats], links: Ints) -> None:
        """Add cuts that are not known; of too many the highest ones at some links go."""
        new = [image[None] for name, image in images.items() if name not in self.seen]
        self.seen |= images.keys()
        self.rows = np.concatenate([self.rows, *new])
        self.weight = np.append(self.weight, np.ones(len(new)))
        if len(self.rows) > MOST_CUTS:
            survivors = np.argsort(self.rows @ links)[: MOST_CUTS // 2]
            self.rows, self.weight = self.rows[survivors], self.weight[survivors]
            self.seen = {row.tobytes() for row in self.rows}

    def lowest(self, links: Ints) -> LowCuts:
        """The lowest cuts at links."""
        paces = self.rows @ links
        selection = (
            np.argpartition(paces, LOWEST_CUTS)[:LOWEST_CUTS]
            if len(paces) > LOWEST_CUTS
            else slice(None)
        )
        return LowCuts(
            self.rows[selection], paces[selection], self.weight[selection], SOFT * self.usual
        )

    def weigh(self, links: Ints) -> None:
        """Let the lowest cuts at links count more, so that a search does not go round in circles
        below them.
        """
        paces = self.rows @ links
        self.weight[paces <= paces.min() * (1 + EXACT)] *= HEAVIER
        self.weight /= self.weight.mean()


class LowCuts(NamedTuple):
    """Cuts that count (cuts, P), the paces that they allow (cuts,), how much each counts, and on
    what scale.
    """

    rows: Floats
    paces: Floats
    weight: Floats
    scale: float

    def soft(self, gains: Floats) -> tuple[Floats, Floats]:
        """A pace below all cuts, with more on each of them (cuts, n), that rises with any of the
        low ones (n,), and how much each counts there (cuts, n).
        """
        # A soft minimum: unlike the lowest cut alone, it rewards a move that lifts several low
        # ones.
        paces = self.paces[:, None] + gains
        min_paces = paces.min(axis=0)
        counts = np.exp((min_paces - paces) / self.scale)
        counts *= self.weight[:, None]
        return min_paces - self.scale * np.log(counts.sum(axis=0)), counts


def own_links(data: LinksData, sends: Floats, slowest: Floats) -> Ints:
    """Links of orbits of pairs (P,) that carry each demand (K, D, D) on links of its own, at paces
    in time.

    These need fewest links if none need be whole.
    """
    # The least sum of links times paces where the times of all phases add up to the time left
    # (Lagrange).
    shares = np.sqrt(slowest * sends.sum(axis=(1, 2)))
    paces = slowest * shares.sum() / shares
    links_needed = (paces[:, None] * sends[:, data.arcs[:, 0], data.arcs[:, 1]]).max(axis=0)
    links = np.zeros(len(data.pairs), dtype=np.int64)
    np.maximum.at(links, data.pair, np.ceil(links_needed * (1 - EXACT)).astype(np.int64))
    return links


class LinkExchange:
    """The search on the orbits of a group; `full_group` is the largest one, whose moves turn cuts
    into others.
    """

    def __init__(self, data: LinksData, group: Ints, full_group: Ints) -> None:
        self._data, self._images = data, Images(data, group, full_group)
        # Behind all orbits stands one of no links, for moves that only take a link or only give
        # one.
        self._size = np.append(data.pairs, 0)
        self._ends = np.append(data.ends, np.zeros((len(data.ends), 1), dtype=np.int64), axis=1)
        self._flows = [PhaseFlows(data, k) for k in range(data.phases)]
        self._cuts = [
            Cuts(rows=np.zeros((0, len(data.pairs))), weight=np.zeros(0), usual=1.0)
            for _ in self._flows
        ]
        self.interrupted = False
        self._random = np.random.default_rng(0)
        self._turn, self._tabu = 0, np.zeros((2, len(data.pairs)), dtype=np.int64)

    def fewest(
        self,
        links: Ints,
        max_links: int,
        goal: int,
        deadline: float,
        cancel: threading.Event,
        patience: int = 1,
    ) -> Ints | None:
        """The fewest links found (P,), no more than `max_links`; no others are looked for once
        there are no more than `goal`, none were found for long, or time is up.
        """
        links, best_links, last_success, vain = (
            links.copy(),
            None,
            0,
            patience * IN_VAIN * len(links),
        )
        limit = max(
            max_links, self._count(links)
        )  # links that are more than are of use lead to cuts
        try:
            self._paces(links, deadline)
            while (
                time.perf_counter() < deadline
                and not cancel.is_set()
                and self._turn - last_success < vain
            ):
                self._turn += 1
                # Each success lowers the limit, and frees what may not move back: the landscape has
                # changed.
                if self._in_time(links, limit, deadline):
                    limit, last_success = self._count(links) - 1, self._turn
                    self._tabu[:] = 0
                    best_links = links.copy() if limit < max_links else None
                    if best_links is not None and limit < goal:
                        break
                self._move(links, limit)
        except TimeoutError:
            pass
        except KeyboardInterrupt:
            self.interrupted = True
        return best_links

    def _count(self, links: Ints) -> int:
        return int(links @ self._data.pairs)

    def _over(self, links: Ints) -> int:
        """Ports that are missing."""
        return int(np.maximum(self._data.ends @ links - self._data.ports, 0).sum())

    def _time(self, paces: Floats) -> float:
        """The share of the time left for all phases that they take at paces (K,)."""
        return float((self._data.weight / np.maximum(paces, SLOW)).sum(axis=1).max())

    def _in_time(self, links: Ints, max_links: int, deadline: float) -> bool:
        """Whether links have flows in time, which are looked for where no cut says otherwise."""
        if self._count(links) > max_links or self._over(links) > 0:
            return False
        # Known cuts take a product of matrices, flows a linear program: most links are refused by
        # the former.
        return (
            self._time(np.array([(cuts.rows @ links).min() for cuts in self._cuts])) <= 1 + EXACT
            and self._time(self._paces(links, deadline)) <= 1 + EXACT
        )

    def _paces(self, links: Ints, deadline: float) -> Floats:
        """The highest paces on links (K,), of which the cuts are kept."""
        paces = np.zeros(len(self._flows))
        for k, (flows, cuts) in enumerate(zip(self._flows, self._cuts, strict=True)):
            paces[k], prices = flows.cut(links, deadline)
            cuts.add(self._images.of(prices), links)
        if self._time(paces) <= 1 + EXACT:
            for cuts, pace in zip(self._cuts, paces.tolist(), strict=True):
                cuts.usual = pace
        return paces

    def _move(self, links: Ints, max_links: int) -> None:
        """Take a link from one orbit or none, and give one to another or none, whatever lets phases
        be soonest.
        """
        low_cuts = [cuts.lowest(links) for cuts in self._cuts]
        losers, getters = self._promising(links, low_cuts)
        size, spare = self._size, max_links - self._count(links)
        a, b = (
            np.repeat(np.append(losers, -1), len(getters) + 1),
            np.tile(np.append(getters, -1), len(losers) + 1),
        )
        fits = (a != b) & (size[b] - size[a] <= spare) & self._keep_ports(links, a, b)
        a, b = a[fits], b[fits]
        # Where no move is left, those that wait are let go; above the limit, the link that matters
        # least goes for good.
        if not len(a):
            self._tabu[:] = 0
            if spare < 0 and len(losers):
                links[losers[0]] -= 1
            return
        soft = []
        for cuts, lows in zip(self._cuts, low_cuts, strict=True):
            wide = np.append(lows.rows, np.zeros((len(lows.rows), 1)), axis=1)
            soft.append(lows.soft(wide.take(b, axis=1) - wide.take(a, axis=1))[0])
            cuts.weigh(links)
        times = (self._data.weight @ (1.0 / np.maximum(soft, SLOW))).max(axis=0)
        self._do(links, *(int(orbits[times.argmin()]) for orbits in (a, b)))

    def _do(self, links: Ints, loser: int, getter: int) -> None:
        """Move a link, and keep it from going back for some turns."""
        for direction, orbit, change in ((1, loser, -1), (0, getter, 1)):
            if orbit >= 0:
                links[orbit] += change
                self._tabu[direction, orbit] = self._turn + self._random.integers(
                    TABU_MIN_TURNS, TABU_MAX_TURNS
                )

    def _promising(self, links: Ints, low_cuts: list[LowCuts]) -> tuple[Ints, Ints]:
        """The orbits whose links matter least, of those that may lose one, and most, of those that
        may get one.
        """
        soft, counts = zip(*(cuts.soft(np.zeros((1, 1))) for cuts in low_cuts), strict=True)
        paces = np.maximum(np.concatenate(soft), SLOW)
        # Time is the sum of w / pace, so a link is worth w / pace² times what it adds to the low
        # cuts of a phase.
        busiest = self._data.weight[(self._data.weight / paces).sum(axis=1).argmax()]
        gains = sum(
            w / pace**2 * ((count / count.sum(axis=0))[:, 0] @ cuts.rows)
            for w, pace, count, cuts in zip(
                busiest.tolist(), paces.tolist(), counts, low_cuts, strict=True
            )
        )
        # Orbits that are worth the same are told apart by chance, or moves would go round among the
        # first of them.
        gains = gains / self._data.pairs * (1 + EXACT * self._random.random(len(links)))
        may_lose = np.flatnonzero((links > 0) & (self._tabu[0] <= self._turn))
        may_get = np.flatnonzero(self._tabu[1] <= self._turn)
        return (
            may_lose[np.argsort(gains[may_lose])][:LOOKED_AT],
            may_get[np.argsort(-gains[may_get])][:LOOKED_AT],
        )

    def _keep_ports(self, links: Ints, losers: Ints, getters: Ints) -> Bools:
        """Whether moves miss no ports; where all do, whether they miss as few as any."""
        after = (
            (self._data.ends @ links)[:, None]
            - self._ends.take(losers, axis=1)
            + self._ends.take(getters, axis=1)
        )
        ports_missing = np.maximum(after - self._data.ports[:, None], 0).sum(axis=0)
        return np.asarray(ports_missing == ports_missing.min(initial=self._over(links)))
