"""Pipelines as events against what is known of them; tests/perf/test_pipeline.py has them beside the closed form."""

from __future__ import annotations

import pytest

from coopt.verifier.simulation.pipeline import PipelineShape, StagePass
from tests.perf.pipeline_simulation import Pipeline


def seconds(shape: PipelineShape, *, hop: float = 0.0, logits: float = 0.0) -> float:
    """Until the last stage is done, with passes of one second forward and two backward."""
    p, v, m, schedule = shape
    return Pipeline(p=p, v=v, m=m, forward=1.0, backward=2.0, logits=logits, hop=hop, schedule=schedule).run()


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("m", [1, 8, 16])
def test_1f1b_has_the_bubble_of_its_stages(p: int, m: int) -> None:
    """m micro-batches and p - 1 more of waiting: (m + p - 1)·(forward + backward)."""
    assert seconds(PipelineShape(p, 1, m)) == pytest.approx((m + p - 1) * 3.0)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (4, 3, 12), (3, 4, 9)])
def test_interleaving_divides_the_bubble_by_the_chunks(p: int, v: int, m: int) -> None:
    """In passes of a chunk: m·v of work and p - 1 of waiting."""
    assert seconds(PipelineShape(p, v, m)) == pytest.approx((m * v + p - 1) * 3.0)


@pytest.mark.parametrize("v", [6, 12])
def test_no_rhythm_lets_messages_of_eight_stages_wait_for_each_other(v: int) -> None:
    """Hops as the last stage waits for them, m·(H - 1) + Q; in a fixed order there would be a third more."""
    shape, hop = PipelineShape(8, v, 64), 0.02
    waited_s = seconds(shape, hop=hop, logits=1.0) - seconds(shape, logits=1.0)
    assert waited_s / hop == pytest.approx(64 * (2 * v - 1) + 11, rel=0.05)


def test_one_micro_batch_through_two_stages() -> None:
    """Forward, hop, forward and backward of the second stage, hop, backward."""
    assert seconds(PipelineShape(2, 1, 1), hop=0.5) == pytest.approx(1 + 0.5 + 1 + 2 + 0.5 + 2)


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
