"""Pipelines of equal stages on the clock of `coopt simulate`, which knows nothing of the closed form."""

from __future__ import annotations

from dataclasses import dataclass

from coopt.verifier.simulation.events import EventClock
from coopt.verifier.simulation.pipeline import PipelineRun, StageHop
from coopt.verifier.training.steps import Channel, PipelineShape, StagePass


class Nobody:
    """Somebody who writes nothing down."""

    def passed(self, stage: int, one: StagePass, start_s: float) -> None: ...

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """p stages of v chunks, m micro-batches; seconds of a layer, of the logits (both ways), and of a hop.

    A chunk has `layers` layers; the first of all lacks `first_lacks` of them, the last `last_lacks`. Where a schedule
    splits the backward pass, `weights` of its seconds are those of gradients of weights, none of them of the logits, of
    which a third goes forward; else they are shared out over both passes.
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

    def run(self, seed: int = 0) -> float:
        """Seconds until the last stage is done."""
        clock, done = EventClock(None), list[float]()
        ways = [(s, (s + step) % self.p, back) for s in range(self.p) for step in (1, -1) for back in (False, True)]
        hops = {Channel(*way): StageHop(self.hop, None, 0.0) for way in ways}
        shape = PipelineShape(self.p, self.v, self.m, self.schedule)
        PipelineRun(clock, shape, self._pass_s, hops, lambda _: done.append(clock.now), Nobody(), seed).start()
        clock.run()
        assert len(done) == self.p
        return max(done)

    def _pass_s(self, stage: int, one: StagePass) -> float:
        plain = self.backward if one.is_backward else self.forward
        if self.schedule == "1f1b":
            on_first, on_last = (stage, one.chunk) == (0, 0), (stage, one.chunk) == (self.p - 1, self.v - 1)
            share = plain / (self.forward + self.backward)
        else:
            place = self.p - 1 - stage if one.chunk else stage
            on_first, on_last = place == 0, place == self.p - 1
            share = (2 / 3 if one.is_backward else 1 / 3) * (one.gives != "weights")
            plain = {"inputs": plain - self.weights, "weights": self.weights, "all": plain}[one.gives]
        layers = self.layers - self.first_lacks * on_first - self.last_lacks * on_last
        return plain * layers + share * self.logits * on_last
