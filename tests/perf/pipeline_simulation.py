"""A discrete-event simulation of pipeline schedules, step by step as Megatron-LM runs them.

Every stage works through its own list of steps: compute, or an exchange of messages. A message leaves when sender and
receiver have both reached it and the ports of both are free; a stage goes on when all messages of its exchange have
arrived. A
port carries one message at a time in each direction.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

Channel = tuple[int, int, str]  # sender, receiver, "f" or "b"


@dataclass(frozen=True)
class Compute:
    seconds: float


@dataclass(frozen=True)
class Exchange:
    sends: tuple[Channel, ...] = ()
    receives: tuple[Channel, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """p stages of v chunks, m micro-batches; seconds of a chunk, of the logits (both ways), and of a hop."""

    p: int
    v: int
    m: int
    forward: float
    backward: float
    logits: float
    hop: float

    def run(self) -> float:
        """Seconds until the last stage is done."""
        steps = [list(self._steps(stage)) for stage in range(self.p)]
        return _Clock(steps, self.hop).run()

    def _steps(self, stage: int) -> Iterator[Compute | Exchange]:
        return self._interleaved(stage) if self.v > 1 else self._one_forward_one_backward(stage)

    def _compute(self, stage: int, chunk: int, kind: str) -> Compute:
        seconds = self.forward if kind == "f" else self.backward
        on_last = stage == self.p - 1 and chunk == self.v - 1
        return Compute(seconds + (self.logits * seconds / (self.forward + self.backward) if on_last else 0.0))

    def _one_forward_one_backward(self, s: int) -> Iterator[Compute | Exchange]:
        down, up = ((s, s + 1, "f"),) if s < self.p - 1 else (), ((s, s - 1, "b"),) if s else ()
        from_above, from_below = ((s - 1, s, "f"),) if s else (), ((s + 1, s, "b"),) if s < self.p - 1 else ()
        warm = min(self.p - s - 1, self.m)
        forward, backward = self._compute(s, 0, "f"), self._compute(s, 0, "b")
        for _ in range(warm):
            yield Exchange(receives=from_above)
            yield forward
            yield Exchange(sends=down)
        if warm < self.m:
            yield Exchange(receives=from_above)
        for i in range(self.m - warm):
            yield forward
            yield Exchange(sends=down, receives=from_below)
            yield backward
            yield Exchange(sends=up, receives=from_above if i < self.m - warm - 1 else ())
        for _ in range(warm):
            yield Exchange(receives=from_below)
            yield backward
            yield Exchange(sends=up)

    def _interleaved(self, s: int) -> Iterator[Compute | Exchange]:
        p, v, total = self.p, self.v, self.m * self.v
        all_warm = self.m == p
        warm = total if all_warm else min((p - s - 1) * 2 + (v - 1) * p, total)
        below, above = (s + 1) % p, (s - 1) % p
        first, last = s == 0, s == p - 1

        def chunk(k: int, kind: str) -> int:
            place = k % (p * v) // p
            return place if kind == "f" else v - 1 - place

        def sends(k: int, kind: str) -> tuple[Channel, ...]:
            if kind == "f":
                return () if last and chunk(k, "f") == v - 1 else ((s, below, "f"),)
            return () if first and chunk(k, "b") == 0 else ((s, above, "b"),)

        def receives(k: int, kind: str) -> tuple[Channel, ...]:
            """The input of step k of a kind, where it has one."""
            if not 0 <= k < total:
                return ()
            if kind == "f":
                return () if first and chunk(k, "f") == 0 else ((above, s, "f"),)
            return () if last and chunk(k, "b") == v - 1 else ((below, s, "b"),)

        yield Exchange(receives=receives(0, "f"))
        for k in range(warm):
            yield self._compute(s, chunk(k, "f"), "f")
            first_backward = receives(0, "b") if k == warm - 1 and not all_warm else ()
            yield Exchange(sends(k, "f"), receives(k + 1, "f") + first_backward)
        for k in range(total - warm):
            yield self._compute(s, chunk(k + warm, "f"), "f")
            yield self._compute(s, chunk(k, "b"), "b")
            yield Exchange(sends(k + warm, "f") + sends(k, "b"), receives(k + warm + 1, "f") + receives(k + 1, "b"))
        if all_warm:
            yield Exchange(receives=receives(0, "b"))
        for k in range(total - warm, total):
            yield self._compute(s, chunk(k, "b"), "b")
            yield Exchange(sends(k, "b"), receives(k + 1, "b"))


@dataclass
class _Clock:
    """Works through all stages' steps."""

    steps: list[list[Compute | Exchange]]
    hop: float
    posted: dict[tuple[Channel, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))
    arrived: dict[Channel, list[float]] = field(default_factory=lambda: defaultdict(list))
    port_free: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))

    def run(self) -> float:
        n = len(self.steps)
        now, place, waiting = [0.0] * n, [0] * n, [[] for _ in range(n)]
        taken: dict[tuple[Channel, str], int] = defaultdict(int)
        while any(place[s] < len(self.steps[s]) for s in range(n)):
            moved = False
            for s in range(n):
                while place[s] < len(self.steps[s]):
                    step = self.steps[s][place[s]]
                    if isinstance(step, Compute):
                        now[s] += step.seconds
                    else:
                        if not waiting[s]:
                            waiting[s] = [
                                (c, side) for side, cs in (("s", step.sends), ("r", step.receives)) for c in cs
                            ]
                            for c, side in waiting[s]:
                                self.posted[c, side].append(now[s])
                            waiting[s] = [(c, self._number(taken, c, side)) for c, side in waiting[s]]
                        if any(len(self.arrived[c]) <= i for c, i in waiting[s]):
                            break
                        now[s] = max([now[s], *(self.arrived[c][i] for c, i in waiting[s])])
                        waiting[s] = []
                    place[s] += 1
                    moved = True
            moved |= self._transfer()
            assert moved, "deadlock"
        return max(now)

    @staticmethod
    def _number(taken: dict[tuple[Channel, str], int], channel: Channel, side: str) -> int:
        taken[channel, side] += 1
        return taken[channel, side] - 1

    def _transfer(self) -> bool:
        """Carry the message that can leave first."""
        ready = [
            (
                max(
                    self.posted[c, "s"][0],
                    self.posted[c, "r"][0],
                    self.port_free[c[0], "out"],
                    self.port_free[c[1], "in"],
                ),
                c,
            )
            for c in {channel for channel, _ in self.posted}
            if self.posted[c, "s"] and self.posted[c, "r"]
        ]
        if not ready:
            return False
        start, channel = min(ready)
        self.posted[channel, "s"].popleft()
        self.posted[channel, "r"].popleft()
        self.arrived[channel].append(start + self.hop)
        self.port_free[channel[0], "out"] = self.port_free[channel[1], "in"] = start + self.hop
        return True
