"""Pipelines as events against what is known of them, and against a simulation of its own of the same schedules."""

from __future__ import annotations

import random

import pytest

from coopt.verifier.simulation.events import EventClock
from coopt.verifier.simulation.pipeline import Channel, PipelineRun, PipelineShape, StageHop, StagePass
from tests.perf.pipeline_simulation import Pipeline


class Nobody:
    """Somebody who writes nothing down."""

    def passed(self, stage: int, one: StagePass, start_s: float) -> None: ...

    def sent(self, channel: Channel, start_s: float, end_s: float) -> None: ...


def seconds(
    shape: PipelineShape,
    forward_s: float,
    backward_s: float,
    hop_s: float = 0.0,
    logits_s: float = 0.0,
    weights_s: float = 0.0,
) -> float:
    """Until the last stage is done, by events; the logits are shared out over both passes of the last chunk, or a third
    of them goes forward where the backward pass is split."""
    clock, done, (p, v, *_) = EventClock(None), list[float](), shape

    def pass_s(stage: int, one: StagePass) -> float:
        plain_s, is_end = backward_s if one.is_backward else forward_s, (stage, one.chunk) == (p - 1, v - 1)
        if shape.schedule != "1f1b":
            is_end = (p - 1 - stage if one.chunk else stage) == p - 1
            parts_s = {"inputs": plain_s - weights_s, "weights": weights_s, "all": plain_s}
            share = (2 / 3 if one.is_backward else 1 / 3) * (one.gives != "weights")
            return parts_s[one.gives] + share * logits_s * is_end
        return plain_s * (1 + (logits_s / (forward_s + backward_s) if is_end else 0.0))

    ways = [(s, (s + step) % p, back) for s in range(p) for step in (1, -1) for back in (False, True)]
    hops = {Channel(*way): StageHop(hop_s, None, 0.0) for way in ways}
    PipelineRun(clock, shape, pass_s, hops, lambda _: done.append(clock.now), Nobody()).start()
    clock.run()
    assert len(done) == p
    return max(done)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("m", [8, 16])
def test_1f1b_has_the_bubble_of_its_stages(p: int, m: int) -> None:
    """m micro-batches and p - 1 more of waiting: (m + p - 1)·(forward + backward)."""
    assert seconds(PipelineShape(p, 1, m), 1.0, 2.0) == pytest.approx((m + p - 1) * 3.0)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (4, 3, 12), (3, 4, 9)])
def test_interleaving_divides_the_bubble_by_the_chunks(p: int, v: int, m: int) -> None:
    """In passes of a chunk: m·v of work and p - 1 of waiting."""
    assert seconds(PipelineShape(p, v, m), 1.0, 2.0) == pytest.approx((m * v + p - 1) * 3.0)


@pytest.mark.parametrize("v", [6, 12])
def test_no_rhythm_lets_messages_of_eight_stages_wait_for_each_other(v: int) -> None:
    """Hops as the last stage waits for them, m·(H - 1) + Q; in a fixed order there would be a third more."""
    shape, hop_s = PipelineShape(8, v, 64), 0.02
    waited_s = seconds(shape, 1.0, 2.0, hop_s=hop_s, logits_s=1.0) - seconds(shape, 1.0, 2.0, logits_s=1.0)
    assert waited_s / hop_s == pytest.approx(64 * (2 * v - 1) + 11, rel=0.05)


def test_one_micro_batch_through_two_stages() -> None:
    """Forward, hop, forward and backward of the second stage, hop, backward."""
    assert seconds(PipelineShape(2, 1, 1), 1.0, 2.0, hop_s=0.5) == pytest.approx(1 + 0.5 + 1 + 2 + 0.5 + 2)


def test_fewer_micro_batches_than_stages() -> None:
    assert seconds(PipelineShape(4, 1, 1), 1.0, 2.0) == pytest.approx(4 * 3.0)


@pytest.mark.parametrize("seed", range(40))
def test_1f1b_with_hops_is_that_of_another_simulation(seed: int) -> None:
    draw = random.Random(seed)
    p, m, forward_s = draw.randint(2, 9), draw.randint(1, 30), draw.uniform(0.5, 2.0)
    backward_s, hop_s = forward_s * draw.uniform(1.0, 2.2), forward_s * draw.uniform(0.0, 0.5)
    logits_s = forward_s * draw.choice([0.0, 0.3])
    other = Pipeline(p=p, v=1, m=m, forward=forward_s, backward=backward_s, logits=logits_s, hop=hop_s).run()
    assert seconds(PipelineShape(p, 1, m), forward_s, backward_s, hop_s, logits_s) == pytest.approx(other)


@pytest.mark.parametrize("seed", range(20))
def test_interleaving_with_hops_is_that_of_another_simulation(seed: int) -> None:
    """Which of two messages gets a free port first differs, which is worth a hop here and there."""
    draw = random.Random(seed)
    p, v = draw.randint(2, 8), draw.randint(2, 4)
    m, forward_s = p * draw.randint(1, 5), draw.uniform(0.5, 2.0)
    backward_s, hop_s = forward_s * draw.uniform(1.0, 2.2), forward_s * draw.uniform(0.0, 0.05)
    other = Pipeline(p=p, v=v, m=m, forward=forward_s, backward=backward_s, logits=0.0, hop=hop_s).run()
    assert seconds(PipelineShape(p, v, m), forward_s, backward_s, hop_s) == pytest.approx(other, rel=1e-2)


@pytest.mark.parametrize("schedule", ["zb-h1", "dualpipe"])
@pytest.mark.parametrize("seed", range(20))
def test_schedules_that_split_the_backward_pass_are_those_of_another_simulation(schedule: str, seed: int) -> None:
    """Two messages of a pair of passes leave together, the first of them by chance."""
    draw = random.Random(seed)
    p = 2 * draw.randint(1, 5) if schedule == "dualpipe" else draw.randint(2, 9)
    m, forward_s = 2 * draw.randint(p, 3 * p), draw.uniform(0.5, 2.0)
    weights_s, hop_s = forward_s * draw.uniform(0.3, 1.0), forward_s * draw.choice([0.0, draw.uniform(0.0, 0.05)])
    backward_s, logits_s = weights_s + forward_s * draw.uniform(1.0, 1.6), forward_s * draw.choice([0.0, 0.3])
    other = Pipeline(
        p=p, v=1, m=m, forward=forward_s, backward=backward_s, logits=logits_s, hop=hop_s, schedule=schedule,
        weights=weights_s,
    ).run()  # fmt: skip
    ours = seconds(PipelineShape(p, 1, m, schedule), forward_s, backward_s, hop_s, logits_s, weights_s)
    assert ours == pytest.approx(other, rel=1e-2 if hop_s and schedule == "dualpipe" else 1e-9)


@pytest.mark.parametrize("shape", [PipelineShape(4, 1, 9, "zb-h1"), PipelineShape(4, 1, 8, "dualpipe")])
def test_gradients_of_weights_follow_those_of_inputs_once_for_every_micro_batch(shape: PipelineShape) -> None:
    for stage in range(shape.stages):
        passes = [step for step in shape.steps(stage) if isinstance(step, StagePass)]
        late = [one for one in passes if one.gives == "weights"]
        assert len(set(passes)) == len(passes) == 2 * shape.micro_batches + len(late)
        assert len(late) == (shape.micro_batches if shape.schedule == "zb-h1" else (3, 2, 2, 3)[stage])
        for one in late:
            assert passes.index(one._replace(gives="inputs")) < passes.index(one)


@pytest.mark.parametrize("shape", [PipelineShape(4, 1, 6), PipelineShape(4, 3, 8), PipelineShape(2, 2, 2)])
def test_every_micro_batch_passes_every_chunk_once_each_way(shape: PipelineShape) -> None:
    for stage in range(shape.stages):
        passes = [step for step in shape.steps(stage) if isinstance(step, StagePass)]
        assert len(set(passes)) == len(passes) == 2 * shape.chunks * shape.micro_batches
        for one in passes:
            if one.is_backward:
                assert passes.index(one._replace(is_backward=False)) < passes.index(one)
