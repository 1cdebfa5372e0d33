"""Pipelines of equal stages on the clock of `coopt simulate`, which knows nothing of the closed form."""

from dataclasses import dataclass

from coopt.verifier.simulation.events import EventClock
from coopt.verifier.simulation.pipeline import PipelineRun, StageHop
from coopt.verifier.training.steps import Channel, PipelineShape, StagePass
from tests.perf import pipeline_simulation


class Nobody:
    """Somebody who writes nothing down."""

    def passed(self, stage: int, one: StagePass, start_s: float) -> None: ...

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Pipeline(pipeline_simulation.Pipeline):
    """Such a pipeline as tests/perf simulates, whose logits take a third of their seconds forward where the backward
    pass is split; else they are shared out over both passes.
    """

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
