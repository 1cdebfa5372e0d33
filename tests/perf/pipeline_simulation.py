"""A discrete-event simulation of pipeline schedules, step by step as Megatron-LM, and for those that split the backward
pass as their authors, run them.

Every stage works through its own list of steps: compute, or an exchange of messages. A message leaves when sender and
receiver have both reached it and the ports of both are free; a stage goes on when all messages of its exchange have
arrived. Where the backward pass is split nobody waits to send, and receivers are ready from the beginning. A port
carries one message at a time in each direction.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush, heapreplace

Channel = tuple[int, int, str]  # sender, receiver, "f" or "b"; in two directions "f0", "f1", "b0", "b1"
Pass = tuple[str, int]  # "F", "B" or "W", or both of the latter, "BW"; the direction in which the micro-batch goes


@dataclass(frozen=True)
class Compute:
    seconds: float


@dataclass(frozen=True)
class Exchange:
    sends: tuple[Channel, ...] = ()
    receives: tuple[Channel, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """p stages of v chunks, m micro-batches; seconds of a layer, of the logits (both ways), and of a hop.

    A chunk has `layers` layers; the first of all lacks `first_lacks` of them, the last `last_lacks`. Where a schedule
    splits the backward pass, `weights` of its seconds are those of gradients of weights, none of them of the logits.
    Where `chunks` has the seconds of every chunk both ways, in the order of the model, they are those.
    """

    p: int
    v: int
    m: int
    forward: float
    backward: float
    logits: float
    hop: float
    layers: int = 1
    first_lacks: int = 0
    last_lacks: int = 0
    schedule: str = "1f1b"
    weights: float = 0.0
    chunks: tuple[tuple[float, float], ...] = ()

    def run(self) -> float:
        """Seconds until the last stage is done."""
        steps = [list(self._steps(stage)) for stage in range(self.p)]
        return _Clock(steps, self.hop, eager=self.schedule != "1f1b").run()

    def _steps(self, stage: int) -> Iterator[Compute | Exchange]:
        if self.schedule != "1f1b":
            passes = zero_bubble if self.schedule == "zb-h1" else two_way
            return self._split(stage, passes(stage, self.p, self.m))
        return self._interleaved(stage) if self.v > 1 else self._one_forward_one_backward(stage)

    def _compute(self, stage: int, chunk: int, kind: str) -> Compute:
        if self.chunks:
            return Compute(self.chunks[chunk * self.p + stage][kind == "b"])
        seconds = self.forward if kind == "f" else self.backward
        on_first, on_last = (stage, chunk) == (0, 0), (stage, chunk) == (self.p - 1, self.v - 1)
        layers = self.layers - self.first_lacks * on_first - self.last_lacks * on_last
        logits = self.logits * seconds / (self.forward + self.backward) if on_last else 0.0
        return Compute(seconds * layers + logits)

    def _split(self, rank: int, groups: Iterator[tuple[Pass, ...]]) -> Iterator[Compute | Exchange]:
        """Groups of passes: each begins when all inputs are there, and sends all results when it ends."""
        for group in groups:
            sends, receives, seconds = [], [], 0.0
            for kind, direction in group:
                seconds += self._split_s(rank if direction == 0 else self.p - 1 - rank, kind)
                if kind != "W":
                    step = 1 if (kind == "F") == (direction == 0) else -1
                    name = f"{kind[0].lower()}{direction}"
                    sends += [(rank, rank + step, name)] if 0 <= rank + step < self.p else []
                    receives += [(rank - step, rank, name)] if 0 <= rank - step < self.p else []
            yield Exchange(receives=tuple(receives))
            yield Compute(seconds)
            yield Exchange(sends=tuple(sends))

    def _split_s(self, stage: int, kind: str) -> float:
        inputs = self.backward - self.weights
        seconds = {"F": self.forward, "B": inputs, "W": self.weights, "BW": self.backward}[kind]
        lacks = self.first_lacks * (stage == 0) + self.last_lacks * (stage == self.p - 1)
        logits = {"F": 1 / 3, "W": 0.0}.get(kind, 2 / 3) * self.logits * (stage == self.p - 1)
        return seconds * (self.layers - lacks) + logits

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


def zero_bubble(stage: int, p: int, m: int) -> Iterator[tuple[Pass, ...]]:
    """ZB-H1 (arXiv 2401.10241, section 2): the order of 1F1B, where stage i puts off gradients of weights by i
    micro-batches."""
    ahead = min(p - stage - 1, m)
    yield from [(("F", 0),)] * ahead
    for i in range(m):
        if i + ahead < m:
            yield (("F", 0),)
        yield (("B", 0),)
        if i >= stage:
            yield (("W", 0),)
    yield from [(("W", 0),)] * min(stage, m)


def two_way(rank: int, p: int, m: int) -> Iterator[tuple[Pass, ...]]:
    """The eight steps of DualPipe (deepseek-ai/DualPipe, `dualpipe/dualpipe.py`), m/2 micro-batches in each direction.

    The near direction of a rank is that whose pipeline begins at its own end.
    """
    far_half = rank >= p // 2
    near, far = int(far_half), 1 - int(far_half)
    place = min(rank, p - 1 - rank)
    inner, late = p // 2 - place - 1, deque[int]()

    def put_off(direction: int) -> tuple[Pass, ...]:
        late.append(direction)
        return (("B", direction),)

    def weights() -> tuple[Pass, ...]:
        return (("W", late.popleft()),)

    yield from [(("F", near),)] * (2 * inner)
    yield from [(("F", near),), (("F", far),)] * (place + 1)
    for _ in range(inner):
        yield put_off(far)
        yield weights()
        yield (("F", far),)
    for i in range(m // 2 - p + place + 1):
        apart = i == 0 and inner == 0
        yield from [(("F", near),), (("BW", far),)] if apart else [(("F", near), ("BW", far))]
        yield ("F", far), ("BW", near)
    for _ in range(inner):
        yield (("BW", far),)
        yield ("F", far), ("BW", near)
    for i in range(2 * (place + 1)):
        direction = near if i % 2 else far
        yield put_off(direction) if i > place else (("BW", direction),)
    for _ in range(inner):
        yield weights()
        yield put_off(near)
    yield from [weights() for _ in range(place + 1)]
    assert not late


@dataclass
class _Clock:
    """Works through all stages' steps; a transfer lets its two ends go on, and nobody else.

    If `eager`, senders go on at once, and receivers wait for nothing but what they need.
    """

    steps: list[list[Compute | Exchange]]
    hop: float
    eager: bool = False
    posted: dict[tuple[Channel, str], deque[float]] = field(default_factory=lambda: defaultdict(deque))
    arrived: dict[Channel, list[float]] = field(default_factory=lambda: defaultdict(list))
    port_free: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    taken: dict[tuple[Channel, str], int] = field(default_factory=lambda: defaultdict(int))
    ready: list[tuple[float, Channel]] = field(default_factory=list)
    """A heap of channels whose sender and receiver both wait, by the time at which their ports were last seen free."""

    def run(self) -> float:
        n = len(self.steps)
        self.now, self.place = [0.0] * n, [0] * n
        self.posting = [False] * n  # whether the exchange at which a stage stands has been posted
        self.waiting: list[list[tuple[Channel, int]]] = [[] for _ in range(n)]
        for s in range(n):
            self._advance(s)
        while self.ready:
            sender, receiver, _ = self._transfer()
            self._advance(sender)
            self._advance(receiver)
        assert self.place == [len(steps) for steps in self.steps], "deadlock"
        return max(self.now)

    def _advance(self, s: int) -> None:
        """Let a stage work until it waits for a message."""
        steps, waiting = self.steps[s], self.waiting[s]
        while self.place[s] < len(steps):
            step = steps[self.place[s]]
            if isinstance(step, Compute):
                self.now[s] += step.seconds
            else:
                if not self.posting[s]:
                    self.posting[s] = True
                    sent = [self._post(c, "s", self.now[s]) for c in step.sends]
                    waiting += [] if self.eager else sent
                    waiting += [self._post(c, "r", self.now[s]) for c in step.receives]
                while waiting:
                    channel, number = waiting[-1]
                    if len(self.arrived[channel]) <= number:
                        return
                    self.now[s] = max(self.now[s], self.arrived[channel][number])
                    waiting.pop()
                self.posting[s] = False
            self.place[s] += 1

    def _post(self, channel: Channel, side: str, now: float) -> tuple[Channel, int]:
        """Say that a side waits for the next message of a channel, and which one that is."""
        mine, others = self.posted[channel, side], self.posted[channel, "r" if side == "s" else "s"]
        if not self.eager or side == "s":
            mine.append(now)
        if (others or (self.eager and side == "s")) and len(mine) == 1:
            heappush(self.ready, (self._start(channel), channel))
        self.taken[channel, side] += 1
        return channel, self.taken[channel, side] - 1

    def _transfer(self) -> Channel:
        """Carry the message that can leave first."""
        asked, channel = self.ready[0]
        while (start := self._start(channel)) > asked:  # ports may have been taken since
            heapreplace(self.ready, (start, channel))
            asked, channel = self.ready[0]
        sender, receiver = self.posted[channel, "s"], self.posted[channel, "r"]
        sender.popleft()
        if not self.eager:
            receiver.popleft()
        heappop(self.ready)
        self.arrived[channel].append(start + self.hop)
        self.port_free[channel[0], "out"] = self.port_free[channel[1], "in"] = start + self.hop
        if sender and (receiver or self.eager):
            heappush(self.ready, (self._start(channel), channel))
        return channel

    def _start(self, c: Channel) -> float:
        posted, free = self.posted, self.port_free
        met = 0.0 if self.eager else posted[c, "r"][0]
        return max(posted[c, "s"][0], met, free[c[0], "out"], free[c[1], "in"])
