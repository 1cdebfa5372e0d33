"""What the stages of a pipeline do in an iteration, pass by pass, on one clock.

Messages between stages wait for both ends and for free ports.

Under 1F1B a stage goes on when all messages of an exchange have arrived. Under ZB-H1 and DualPipe
nobody waits to send, and receivers are ready all along.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple, Protocol

from coopt.verifier.simulation.events import Action, EventClock
from coopt.verifier.training.steps import Channel, PipelineShape, StageExchange, StagePass, Step


class StageHop(NamedTuple):
    """A message to the next stage or the one before: seconds whatever the network does, then a
    phase on the network.

    `phase` is None where the message stays in the HB domain.
    """

    fixed_s: float
    phase: str | None
    volume: float


PassSeconds = Callable[[int, StagePass], float]


class Observer(Protocol):
    """Somebody who writes down what happens when."""

    def passed(self, stage: int, stage_pass: StagePass, start_s: float) -> None:
        """A pass begins."""

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None:
        """A message has arrived."""


class _ChannelEnds(NamedTuple):
    """Ends of a channel at which a stage waits, sender's and receiver's, in the order in which they
    got there.
    """

    senders: deque[Action]
    receivers: deque[Action]


class PipelineRun:
    """One iteration of a pipeline. A port carries one message at a time in each direction.

    The message that has waited longest goes first; of those that can leave at the same moment one
    is drawn, for one seed always in the same way. With any fixed order among them, some rings of
    stages (eight of many chunks) fall into a rhythm in which messages wait for each other for ever.

    Attributes
    ----------
    is_drawn
        Whether a draw has decided which of two messages leaves first.
    """

    def __init__(
        self,
        clock: EventClock,
        shape: PipelineShape,
        pass_s: PassSeconds,
        hops: Mapping[Channel, StageHop],
        finished: Callable[[int], None],
        observer: Observer,
        seed: int = 0,
    ) -> None:
        self._clock, self._pass_s, self._hops = clock, pass_s, hops
        self._finished, self._observer = finished, observer
        self._steps = [shape.steps(stage) for stage in range(shape.stages)]
        # whether a stage goes on only when what it sends has arrived
        self._waits_to_send = shape.schedule == "1f1b"
        self._arrivals: defaultdict[Channel, int] = defaultdict(int)
        self._ends: defaultdict[Channel, _ChannelEnds] = defaultdict(
            lambda: _ChannelEnds(deque(), deque())
        )
        self.is_drawn = False
        self._moments = count()
        self._new_messages: list[Channel] = []
        self._ready_messages: list[tuple[int, float, Channel]] = []
        self._draw = random.Random(seed).random
        self._busy_ports: set[tuple[int, str]] = set()

    def start(self) -> None:
        """Let every stage begin."""
        for stage in range(len(self._steps)):
            self._go_on(stage)

    def _go_on(self, stage: int) -> None:
        step: Step | None = next(self._steps[stage], None)
        if step is None:
            self._finished(stage)
        elif isinstance(step, StageExchange):
            self._exchange(stage, step)
        else:
            self._observer.passed(stage, step, self._clock.now)
            self._clock.after(self._pass_s(stage, step), lambda: self._go_on(stage))

    def _exchange(self, stage: int, step: StageExchange) -> None:
        """Post all messages at once; the stage goes on with the last one, or where nobody waits to
        send with the last one that is received.
        """
        awaited = [channel for channel in step.receives if not self._arrivals[channel]]
        to_come = len(awaited) + len(step.sends) * self._waits_to_send

        def arrived() -> None:
            nonlocal to_come
            to_come -= 1
            if not to_come:
                self._go_on(stage)

        for channel in step.sends:
            if self._waits_to_send:
                self._post(channel, self._ends[channel], arrived)
            else:
                self._add_ready(channel)
        for channel in step.receives if not self._waits_to_send else ():
            self._arrivals[channel] -= 1  # below 0 where it is waited for
        for channel in awaited:
            self._post(channel, self._ends[channel][::-1], arrived)
        if not to_come:
            self._go_on(stage)

    def _post(self, channel: Channel, ends: Sequence[deque[Action]], arrived: Action) -> None:
        """Wait at an end of a channel; a message can leave when both have posted it."""
        this_end, other_end = ends
        this_end.append(arrived)
        # the other end has come to this message before
        if self._waits_to_send and len(other_end) >= len(this_end):
            self._add_ready(channel)

    def _add_ready(self, channel: Channel) -> None:
        """Start a message once all others that can leave at this moment are known."""
        if not self._new_messages:
            self._clock.last(self._start_ready)
        self._new_messages.append(channel)

    def _start_ready(self) -> None:
        """Start messages whose ports are free, those first that have waited longest."""
        # by when both ends were there, then by lot
        moment, started = next(self._moments), dict[tuple[int, str], int]()
        self._ready_messages += [(moment, self._draw(), channel) for channel in self._new_messages]
        self._new_messages = []
        waiting, self._ready_messages = sorted(self._ready_messages), []
        for ready in waiting:
            since, _, channel = ready
            ports = {(channel.sender, "out"), (channel.receiver, "in")}
            if self._busy_ports & ports:
                self.is_drawn |= any(started.get(port) == since for port in ports)
                self._ready_messages.append(ready)
                continue
            self._busy_ports |= ports
            started |= dict.fromkeys(ports, since)
            self._start(channel, ports)

    def _start(self, channel: Channel, ports: set[tuple[int, str]]) -> None:
        hop, ends, start_s = self._hops[channel], self._ends[channel], self._clock.now

        def arrive() -> None:
            self._busy_ports.difference_update(ports)
            self._observer.sent(channel, start_s, self._clock.now)
            if self._waits_to_send:
                ends.senders.popleft()()
            else:
                self._arrivals[channel] += 1
            if ends.receivers:
                ends.receivers.popleft()()
            if self._ready_messages:
                self._clock.last(self._start_ready)

        phase = hop.phase
        if phase is None:
            self._clock.after(hop.fixed_s, arrive)
        else:
            self._clock.after(hop.fixed_s, lambda: self._clock.transfer(phase, hop.volume, arrive))
