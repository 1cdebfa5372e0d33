"""A clock that works through events, and transfers whose pace changes with whatever else is under way.

Flows that share resources get max-min fair rates, by progressive filling.

The flows of a phase start together, and the phase lasts until its slowest flow has arrived. Flows and resources that
nothing tells apart are filled once: the groups are those of the coarsest equitable partition, in which every flow of a
group meets as many resources of each other group, and the reverse, so that all of a group rise alike.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

Action = Callable[[], None]

Resource = Hashable


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


class Flow(NamedTuple):
    """What one sender sends to one receiver in a phase.

    `volume` is in units of the phase, `uses` the share of each resource that the flow takes at rate 1.
    """

    phase: str
    volume: float
    uses: Mapping[Resource, float]


class _Group(NamedTuple):
    """Flows that are alike: of what volume each, and in which phase."""

    phase: int
    volume: float


ROUNDING = 12
"""Digits to which shares are compared where flows are told apart."""
FULL = 1e-9
"""A resource is full when no more than this share of it is left."""


class FairRates:
    """Paces of phases for any set of them that is under way.

    A pace is how many units of its volume a phase gets through in a unit of time. A set of phases is a number with a
    bit for each of them; what was filled once is kept.
    """

    def __init__(self, flows: Iterable[Flow]) -> None:
        listed = _without_idle(list(flows))
        names = dict.fromkeys(flow.phase for flow in listed)
        self.number = {name: number for number, name in enumerate(names)}
        self.flows = Counter(flow.phase for flow in listed)
        self._groups, self._shares = _grouped(listed, self.number)
        self._of_phase: defaultdict[int, list[int]] = defaultdict(list)
        for i, group in enumerate(self._groups):
            self._of_phase[group.phase].append(i)
        self._meets: defaultdict[int, list[int]] = defaultdict(list)
        self._beside = [0] * len(names)
        for r, shares in enumerate(self._shares):
            phases = {self._groups[i].phase for i in shares}
            for phase in phases:
                self._beside[phase] |= sum(1 << other for other in phases)
            for i in shares:
                self._meets[i].append(r)
        self._known: dict[int, dict[int, float]] = {}

    def pace(self, *phases: str) -> float:
        """The pace of the slowest of some phases when they are under way and nothing else is."""
        return min(self.paces(sum(1 << self.number[phase] for phase in phases)).values())

    def paces(self, active: int) -> dict[int, float]:
        """The pace of each phase of a set; phases that share nothing, directly or by others, do not matter."""
        found: dict[int, float] = {}
        while active:
            together, new = 0, active & -active
            while new:
                together |= new
                new = self._next(new, active) & ~together
            if together not in self._known:
                self._known[together] = self._filled(_bits(together))
            found |= self._known[together]
            active &= ~together
        return found

    def _next(self, phases: int, active: int) -> int:
        """The phases of a set that share something with one of these."""
        reached = 0
        for number in _bits(phases):
            reached |= self._beside[number] & active
        return reached

    def _filled(self, phases: list[int]) -> dict[int, float]:
        """Raise all rates together; whoever meets a full resource stays, the others rise on."""
        rising = {i for phase in phases for i in self._of_phase[phase]}
        met = {r for i in rising for r in self._meets[i]}
        users = {r: [i for i in self._shares[r] if i in rising] for r in met}
        slopes = {r: sum(self._slope(i, r) for i in listed) for r, listed in users.items()}
        waiting = {r: len(listed) for r, listed in users.items()}
        left, levels, level = dict.fromkeys(users, 1.0), dict[int, float](), 0.0
        while rising:
            step = min(left[r] / slope for r, slope in slopes.items())
            level += step
            for r, slope in slopes.items():
                left[r] -= step * slope
            stopped = {i for r in slopes if left[r] < FULL for i in users[r]} & rising
            rising -= stopped
            for i in stopped:
                levels[i] = level
                for r in self._meets[i]:
                    slopes[r] -= self._slope(i, r)
                    waiting[r] -= 1
                    if not waiting[r]:
                        del slopes[r]
        return {phase: min(levels[i] for i in self._of_phase[phase]) for phase in phases}

    def _slope(self, group: int, resource: int) -> float:
        return self._shares[resource][group] * self._groups[group].volume


def _bits(number: int) -> list[int]:
    """The bits that are set in a number, ascending."""
    found = []
    while number:
        lowest = number & -number
        found.append(lowest.bit_length() - 1)
        number -= lowest
    return found


def _without_idle(flows: list[Flow]) -> list[Flow]:
    """The flows without resources that cannot be full even when every flow is as fast as if it were alone."""
    loads: defaultdict[Resource, float] = defaultdict(float)
    for flow in flows:
        fastest = 1 / max(flow.uses.values())
        for resource, share in flow.uses.items():
            loads[resource] += share * fastest
    return [
        flow._replace(uses={resource: share for resource, share in flow.uses.items() if loads[resource] > 1 - FULL})
        for flow in flows
    ]


def _grouped(flows: list[Flow], number: Mapping[str, int]) -> tuple[list[_Group], list[dict[int, float]]]:
    """Groups of flows, and for one resource of each group of resources the share it gives each group of flows."""
    users: defaultdict[Resource, list[tuple[int, float]]] = defaultdict(list)
    for i, flow in enumerate(flows):
        for resource, share in flow.uses.items():
            users[resource].append((i, round(share, ROUNDING)))
    uses: list[list[tuple[int, float]]] = [[] for _ in flows]
    for r, listed in enumerate(users.values()):
        for i, share in listed:
            uses[i].append((r, share))
    colours = _numbered((flow.phase, round(flow.volume, ROUNDING)) for flow in flows)
    met = list(users.values())
    kinds, moved = [0] * len(met), list(range(len(flows)))
    while moved:
        touched = sorted({r for i in moved for r, _ in uses[i]})
        changed = _split(kinds, {r: tuple(sorted((colours[i], share) for i, share in met[r])) for r in touched})
        touched = sorted({i for r in changed for i, _ in met[r]})
        moved = _split(colours, {i: tuple(sorted((kinds[r], share) for r, share in uses[i])) for i in touched})
    colours = _numbered(colours)
    first = {colour: flows[i] for i, colour in reversed(list(enumerate(colours)))}
    groups = [_Group(number[first[colour].phase], first[colour].volume) for colour in range(len(first))]
    shares: dict[int, dict[int, float]] = {}
    for kind, listed in zip(kinds, met, strict=True):
        if kind not in shares:
            given: defaultdict[int, float] = defaultdict(float)
            for i, share in listed:
                given[colours[i]] += share
            shares[kind] = dict(given)
    return groups, list(shares.values())


def _split(classes: list[int], signatures: Mapping[int, Hashable]) -> list[int]:
    """Tell apart members of a class by their signatures; those without one stay as they are. Who is of a new class."""
    sizes = Counter(classes)
    by_class: defaultdict[int, dict[Hashable, list[int]]] = defaultdict(dict)
    for member, signature in signatures.items():
        by_class[classes[member]].setdefault(signature, []).append(member)
    moved, following = list[int](), max(classes) + 1
    for one, parts in by_class.items():
        listed = list(parts.values())
        if sum(map(len, listed)) == sizes[one]:
            listed.remove(max(listed, key=len))  # the largest part keeps the name of the class
        for part in listed:
            for member in part:
                classes[member] = following
            following += 1
            moved += part
    return moved


def _numbered(signatures: Iterable[Hashable]) -> list[int]:
    """Numbers from 0 for signatures, equal ones alike."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(signature, len(known)) for signature in signatures]
