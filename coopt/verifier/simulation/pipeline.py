"""Stages that work through their steps on one clock; messages between them wait for both ends and for free ports."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from coopt.verifier.simulation.events import Action, EventClock
from coopt.verifier.simulation.schedules import Channel, GradientExchange, PipelineShape, StagePass, Step


class StageHop(NamedTuple):
    """A message to the next stage or the one before: seconds whatever the network does, then a phase on the network.

    `phase` is None where the message stays in the HB domain.
    """

    fixed_s: float
    phase: str | None
    volume: float


PassSeconds = Callable[[int, StagePass], float]


class Observer(Protocol):
    """Somebody who writes down what happens when."""

    def passed(self, stage: int, one: StagePass, start_s: float) -> None:
        """A pass begins."""

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None:
        """A message has arrived."""


class _Waiting(NamedTuple):
    """Ends of a channel at which a stage waits, sender's and receiver's, in the order in which they got there."""

    senders: deque[Action]
    receivers: deque[Action]


class PipelineRun:
    """One iteration of a pipeline. A port carries one message at a time in each direction.

    The message that has waited longest goes first; of those that can leave at the same moment one is drawn, always in
    the same way. With any fixed order among them, some rings of stages (eight of many chunks) fall into a rhythm in
    which messages wait for each other for ever.
    """

    def __init__(
        self,
        clock: EventClock,
        shape: PipelineShape,
        pass_s: PassSeconds,
        hops: Mapping[Channel, StageHop],
        finished: Callable[[int], None],
        observer: Observer,
    ) -> None:
        self._clock, self._pass_s, self._hops = clock, pass_s, hops
        self._finished, self._observer = finished, observer
        self._steps = [shape.steps(stage) for stage in range(shape.stages)]
        self._open: defaultdict[Channel, _Waiting] = defaultdict(lambda: _Waiting(deque(), deque()))
        self._ready: list[tuple[float, float, Channel]] = []
        self._draw = random.Random(0).random
        self._busy: set[tuple[int, str]] = set()

    def start(self) -> None:
        """Let every stage begin."""
        for stage in range(len(self._steps)):
            self._go_on(stage)

    def _go_on(self, stage: int) -> None:
        step: Step | None = next(self._steps[stage], None)
        if step is None:
            self._finished(stage)
        elif isinstance(step, GradientExchange):
            self._exchange(stage, step)
        else:
            self._observer.passed(stage, step, self._clock.now)
            self._clock.after(self._pass_s(stage, step), lambda: self._go_on(stage))

    def _exchange(self, stage: int, step: GradientExchange) -> None:
        """Post all messages at once; the stage goes on with the last one."""
        left = len(step.sends) + len(step.receives)
        if not left:
            self._go_on(stage)
            return

        def arrived() -> None:
            nonlocal left
            left -= 1
            if not left:
                self._go_on(stage)

        for channel in step.sends:
            self._open[channel].senders.append(arrived)
            self._check_ready(channel, self._open[channel].receivers, self._open[channel].senders)
        for channel in step.receives:
            self._open[channel].receivers.append(arrived)
            self._check_ready(channel, self._open[channel].senders, self._open[channel].receivers)
        self._start_ready()

    def _check_ready(self, channel: Channel, others: deque[Action], own: deque[Action]) -> None:
        """A message can leave when both ends have posted it."""
        if len(others) >= len(own):
            self._ready.append((self._clock.now, self._draw(), channel))

    def _start_ready(self) -> None:
        """Start messages whose ports are free, those first that have waited longest."""
        waiting, self._ready = sorted(self._ready), []
        for ready in waiting:
            channel = ready[2]
            ports = {(channel.sender, "out"), (channel.receiver, "in")}
            if self._busy & ports:
                self._ready.append(ready)
                continue
            self._busy |= ports
            self._start(channel, ports)

    def _start(self, channel: Channel, ports: set[tuple[int, str]]) -> None:
        hop, ends, start_s = self._hops[channel], self._open[channel], self._clock.now

        def arrive() -> None:
            self._busy.difference_update(ports)
            self._observer.sent(channel, start_s, self._clock.now)
            sender, receiver = ends.senders.popleft(), ends.receivers.popleft()
            sender()
            receiver()
            self._start_ready()

        phase = hop.phase
        if phase is None:
            self._clock.after(hop.fixed_s, arrive)
        else:
            self._clock.after(hop.fixed_s, lambda: self._clock.transfer(phase, hop.volume, arrive))
