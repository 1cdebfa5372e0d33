"""A clock that works through events, and transfers whose pace changes with whatever else is under
way.

Flows that share resources get max-min fair rates, by progressive filling.

The flows of a phase start together, and the phase lasts until its slowest flow has arrived. Flows
and resources that nothing tells apart are filled once: the groups are those of the coarsest
equitable partition, in which every flow of a group meets as many resources of each other group, and
the reverse, so that all of a group rise alike.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import count
from operator import or_
from typing import NamedTuple

Action = Callable[[], None]

Resource = Hashable


@dataclass
class _Transfer:
    """What remains of a phase, in units of its volume, as of the time `since`; `turn` counts
    changes of its pace.
    """

    remainder: float
    pace: float
    since: float
    done: Action
    turn: int = 0


SAME_MOMENT = 1e-12
"""Share of the time by which sums of the same durations in another order may differ."""


class EventClock:
    """Events in the order of time; those of one moment in the order in which they were asked
    for.
    """

    def __init__(self, rates: FairRates | None) -> None:
        self.now = 0.0
        self._rates = rates
        self._queue: list[tuple[float, int, Action]] = []
        self._order = count()
        self._last_actions: list[Action] = []
        self._transfers: dict[int, _Transfer] = {}
        self._under_way = 0
        self._is_stale = False

    def after(self, delay_s: float, action: Action) -> None:
        """Do something later."""
        heapq.heappush(self._queue, (self.now + delay_s, next(self._order), action))

    def last(self, action: Action) -> None:
        """Do something when all events of this moment are over."""
        self._last_actions.append(action)

    def transfer(self, phase: str, volume: float, done: Action) -> None:
        """Carry the volume of a phase at the pace it gets, then go on; no phase is under way
        twice.
        """
        assert self._rates is not None
        number = self._rates.number[phase]
        assert number not in self._transfers, phase
        self._transfers[number] = _Transfer(volume, 0.0, self.now, done)
        self._under_way |= 1 << number
        self._is_stale = True

    def run(self) -> None:
        """Work through everything."""
        while self._queue or self._transfers or self._last_actions:
            is_over = not self._queue or self._queue[0][0] > self.now * (1 + SAME_MOMENT)
            if is_over and self._last_actions:
                actions, self._last_actions = self._last_actions, []
                for action in actions:
                    action()
                continue
            # only once all events of a moment are done: a phase that ends as another begins changes
            # no pace
            if is_over and self._is_stale:
                self._set_paces()
            time, _, action = heapq.heappop(self._queue)
            self.now = time
            action()

    def _set_paces(self) -> None:
        """Give every transfer the pace that it has beside the others, and tell when it will be
        done.
        """
        assert self._rates is not None
        self._is_stale = False
        paces = self._rates.paces(self._under_way)
        for number, transfer in self._transfers.items():
            pace = paces[number]
            # its end stands in the queue already
            if pace == transfer.pace:
                continue
            transfer.remainder -= (self.now - transfer.since) * transfer.pace
            transfer.since, transfer.pace, transfer.turn = self.now, pace, transfer.turn + 1
            self.after(
                max(transfer.remainder, 0.0) / pace, self._end_of(number, transfer, transfer.turn)
            )

    def _end_of(self, number: int, transfer: _Transfer, turn: int) -> Action:
        def end() -> None:
            if transfer.turn != turn:
                return  # its pace changed since, and with it its end
            del self._transfers[number]
            self._under_way &= ~(1 << number)
            self._is_stale = True
            transfer.done()

        return end


class Flow(NamedTuple):
    """What one sender sends to one receiver in a phase.

    `volume` is in units of the phase, `uses` the share of each resource that the flow takes at rate
    1.
    """

    phase: str
    volume: float
    uses: Mapping[Resource, float]


class _Group(NamedTuple):
    """Flows that are alike: of what volume each, and in which phase."""

    phase: int
    volume: float


DIGITS = 12
"""Digits to which shares are compared where flows are told apart."""
LEAST_FREE = 1e-9
"""A resource is full when no more than this share of it is left."""


class FairRates:
    """Paces of phases for any set of them that is under way.

    A pace is how many units of its volume a phase gets through in a unit of time. A set of phases
    is a number with a bit for each of them; what was filled once is kept.
    """

    def __init__(self, flows: Iterable[Flow]) -> None:
        flow_list = _without_idle(list(flows))
        names = dict.fromkeys(flow.phase for flow in flow_list)
        self.number = {name: number for number, name in enumerate(names)}
        self.flows = Counter(flow.phase for flow in flow_list)
        self._groups, self._shares = _grouped(flow_list, self.number)
        self._of_phase: defaultdict[int, list[int]] = defaultdict(list)
        for i, group in enumerate(self._groups):
            self._of_phase[group.phase].append(i)
        self._meets: defaultdict[int, list[int]] = defaultdict(list)
        self._beside = [0] * len(names)
        for r, shares in enumerate(self._shares):
            phases = {self._groups[i].phase for i in shares}
            for phase in phases:
                # sets of phases are numbers, so that they join and part in one operation
                self._beside[phase] |= sum(1 << neighbour for neighbour in phases)
            for i in shares:
                self._meets[i].append(r)
        self._paces_of_set: dict[int, dict[int, float]] = {}

    def pace(self, *phases: str) -> float:
        """The pace of the slowest of some phases when they are under way and nothing else is."""
        return min(self.paces(sum(1 << self.number[phase] for phase in phases)).values())

    def paces(self, under_way: int) -> dict[int, float]:
        """The pace of each phase of a set; phases that share nothing, directly or by others, do not
        matter.
        """
        paces: dict[int, float] = {}
        while under_way:
            # phases that resources join are filled by themselves, so that their paces are known
            # whatever else is on
            component, added = 0, under_way & -under_way
            while added:
                component |= added
                beside = reduce(or_, (self._beside[number] for number in _bits(added)))
                added = beside & under_way & ~component
            if component not in self._paces_of_set:
                self._paces_of_set[component] = self._filled(_bits(component))
            paces |= self._paces_of_set[component]
            under_way &= ~component
        return paces

    def _filled(self, phases: list[int]) -> dict[int, float]:
        """Raise all rates together; whoever meets a full resource stays, the others rise on."""
        rising = {i for phase in phases for i in self._of_phase[phase]}
        resources = {r for i in rising for r in self._meets[i]}
        users = {r: [i for i in self._shares[r] if i in rising] for r in resources}
        slopes = {r: sum(self._slope(i, r) for i in groups) for r, groups in users.items()}
        waiting = {r: len(groups) for r, groups in users.items()}
        free_shares, levels, level = dict.fromkeys(users, 1.0), dict[int, float](), 0.0
        while rising:
            # the resource that fills first ends the step for whoever meets it
            step = min(free_shares[r] / slope for r, slope in slopes.items())
            level += step
            for r, slope in slopes.items():
                free_shares[r] -= step * slope
            stopped = {i for r in slopes if free_shares[r] < LEAST_FREE for i in users[r]} & rising
            rising -= stopped
            for i in stopped:
                levels[i] = level
                for r in self._meets[i]:
                    slopes[r] -= self._slope(i, r)
                    # counted, since rounding may leave a slope that nobody has
                    waiting[r] -= 1
                    if not waiting[r]:
                        del slopes[r]
        return {phase: min(levels[i] for i in self._of_phase[phase]) for phase in phases}

    def _slope(self, group: int, resource: int) -> float:
        return self._shares[resource][group] * self._groups[group].volume


def _bits(number: int) -> list[int]:
    """The bits that are set in a number, ascending."""
    return [place for place, bit in enumerate(reversed(f"{number:b}")) if bit == "1"]


def _without_idle(flows: list[Flow]) -> list[Flow]:
    """The flows without resources that cannot be full even when every flow is as fast as if it were
    alone.
    """
    loads: defaultdict[Resource, float] = defaultdict(float)
    for flow in flows:
        largest_rate = 1 / max(flow.uses.values())
        for resource, share in flow.uses.items():
            loads[resource] += share * largest_rate
    return [
        flow._replace(
            uses={
                resource: share
                for resource, share in flow.uses.items()
                if loads[resource] > 1 - LEAST_FREE
            }
        )
        for flow in flows
    ]


def _grouped(
    flows: list[Flow], number: Mapping[str, int]
) -> tuple[list[_Group], list[dict[int, float]]]:
    """Groups of flows, and for one resource of each group of resources the share it gives each
    group of flows.
    """
    users: defaultdict[Resource, list[tuple[int, float]]] = defaultdict(list)
    for i, flow in enumerate(flows):
        for resource, share in flow.uses.items():
            users[resource].append((i, round(share, DIGITS)))
    uses: list[list[tuple[int, float]]] = [[] for _ in flows]
    for r, flow_shares in enumerate(users.values()):
        for i, share in flow_shares:
            uses[i].append((r, share))
    colours = _numbered((flow.phase, round(flow.volume, DIGITS)) for flow in flows)
    resource_users = list(users.values())
    kinds, moved_flows = [0] * len(resource_users), list(range(len(flows)))
    # flows tell resources apart and resources flows, until neither does any more
    while moved_flows:
        touched = sorted({r for i in moved_flows for r, _ in uses[i]})
        changed_resources = _split(
            kinds,
            {
                r: tuple(sorted((colours[i], share) for i, share in resource_users[r]))
                for r in touched
            },
        )
        touched = sorted({i for r in changed_resources for i, _ in resource_users[r]})
        moved_flows = _split(
            colours, {i: tuple(sorted((kinds[r], share) for r, share in uses[i])) for i in touched}
        )
    colours = _numbered(colours)
    samples = {colour: flows[i] for i, colour in reversed(list(enumerate(colours)))}
    groups = [
        _Group(number[samples[colour].phase], samples[colour].volume)
        for colour in range(len(samples))
    ]
    shares: dict[int, dict[int, float]] = {}
    for kind, flow_shares in zip(kinds, resource_users, strict=True):
        if kind not in shares:
            group_shares: defaultdict[int, float] = defaultdict(float)
            for i, share in flow_shares:
                group_shares[colours[i]] += share
            shares[kind] = dict(group_shares)
    return groups, list(shares.values())


def _split(classes: list[int], signatures: Mapping[int, Hashable]) -> list[int]:
    """Tell apart members of a class by their signatures; those without one stay as they are. Who is
    of a new class.
    """
    sizes = Counter(classes)
    by_class: defaultdict[int, dict[Hashable, list[int]]] = defaultdict(dict)
    for member, signature in signatures.items():
        by_class[classes[member]].setdefault(signature, []).append(member)
    moved, next_name = list[int](), max(classes) + 1
    for name, parts in by_class.items():
        part_list = list(parts.values())
        if sum(map(len, part_list)) == sizes[name]:
            # the largest part keeps the name of the class
            part_list.remove(max(part_list, key=len))
        for part in part_list:
            for member in part:
                classes[member] = next_name
            next_name += 1
            moved += part
    return moved


def _numbered(signatures: Iterable[Hashable]) -> list[int]:
    """Numbers from 0 for signatures, equal ones alike."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(signature, len(numbers)) for signature in signatures]
