"""A clock that works through events, and transfers whose pace changes with whatever else is under way."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from coopt.verifier.simulation.fair_rates import FairRates

Action = Callable[[], None]


@dataclass
class _Transfer:
    """The rest of a phase, in units of its volume, as of the time `since`; `turn` counts changes of its pace."""

    rest: float
    pace: float
    since: float
    done: Action
    turn: int = 0


class EventClock:
    """Events in the order of time; those of one moment in the order in which they were asked for."""

    def __init__(self, rates: FairRates | None) -> None:
        self.now = 0.0
        self._rates = rates
        self._queue: list[tuple[float, int, Action]] = []
        self._order = count()
        self._transfers: dict[int, _Transfer] = {}
        self._active = 0
        self._is_stale = False

    def after(self, delay_s: float, action: Action) -> None:
        """Do something later."""
        heapq.heappush(self._queue, (self.now + delay_s, next(self._order), action))

    def transfer(self, phase: str, volume: float, done: Action) -> None:
        """Carry the volume of a phase at the pace it gets, then go on; no phase is under way twice."""
        assert self._rates is not None
        number = self._rates.number[phase]
        assert number not in self._transfers, phase
        if volume <= 0:
            self.after(0.0, done)
            return
        self._transfers[number] = _Transfer(volume, 0.0, self.now, done)
        self._active |= 1 << number
        self._is_stale = True

    def run(self) -> None:
        """Work through everything."""
        while self._queue or self._transfers:
            if self._is_stale and (not self._queue or self._queue[0][0] > self.now):
                self._set_paces()
            time, _, action = heapq.heappop(self._queue)
            self.now = time
            action()

    def _set_paces(self) -> None:
        """Give every transfer the pace that it has beside the others, and tell when it will be done."""
        assert self._rates is not None
        self._is_stale = False
        paces = self._rates.paces(self._active)
        for number, one in self._transfers.items():
            pace = paces[number]
            if pace == one.pace:
                continue
            one.rest -= (self.now - one.since) * one.pace
            one.since, one.pace, one.turn = self.now, pace, one.turn + 1
            self.after(max(one.rest, 0.0) / pace, self._end_of(number, one, one.turn))

    def _end_of(self, number: int, one: _Transfer, turn: int) -> Action:
        def end() -> None:
            if one.turn != turn:
                return  # its pace changed since, and with it its end
            del self._transfers[number]
            self._active &= ~(1 << number)
            self._is_stale = True
            one.done()

        return end
