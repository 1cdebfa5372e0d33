"""The closed form of the pipeline against the simulated schedules."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.perf.affine import NO_NETWORK, AffineSeconds, Overlaps
from coopt.perf.iterations import Iteration, bubble_hops, late_hops, spared_hops, stage_hops
from tests.perf.pipeline_simulation import Pipeline

SILENT = ("accumulation", "tp", "cp", "cp_left", "ep", "ep_left", "tp_logits", "dp", "window", "embedding", "optimizer")
STAGES = (2, 3, 4, 5, 6, 7, 8, 12)


@st.composite
def pipelines(draw: st.DrawFn, *, hops: bool = False, logits: bool = False) -> Pipeline:
    p, v = draw(st.sampled_from(STAGES)), draw(st.integers(1, 4))
    m = p * draw(st.integers(4, 8)) if v > 1 else draw(st.integers(2 * p, 8 * p))
    forward = draw(st.floats(0.5, 2.0))
    return Pipeline(
        p=p,
        v=v,
        m=m,
        forward=forward,
        backward=forward * draw(st.floats(1.0, 2.2)),
        logits=forward * draw(st.floats(0.0, 0.4)) if logits else 0.0,
        hop=forward * draw(st.floats(0.0, 0.01)) if hops else 0.0,
    )


def closed_form(pipeline: Pipeline) -> float:
    """T_pipe of docs/model.md, by coopt/perf: a chunk stands for a layer, and nothing else takes time."""
    p, v = np.array([pipeline.p]), np.array([pipeline.v])
    iteration = Iteration(
        layer=AffineSeconds(pipeline.forward + pipeline.backward),
        hop=AffineSeconds(pipeline.hop),
        logits=AffineSeconds(pipeline.logits),
        layers=v,
        missing_layers=np.array([0]),
        further_predictions=0,
        hops=stage_hops(p, v),
        spared_hops=spared_hops(p),
        bubble_hops=bubble_hops(p, v),
        late_hops=late_hops(p, v),
        micro_batches=np.array([pipeline.m]),
        bubbles=(p - 1) / v,
        factor=1.0,
        stale=False,
        dp_share=np.ones(1),
        overlaps=Overlaps(),
        **dict.fromkeys(SILENT, AffineSeconds()),
    )
    return float(iteration.time_s(NO_NETWORK)[0])


@settings(max_examples=150, deadline=None)
@given(pipelines())
def test_bubble_and_steady_state_are_exact(pipeline: Pipeline) -> None:
    assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-9)


@settings(max_examples=150, deadline=None)
@given(pipelines(logits=True))
def test_the_last_stage_sets_the_pace(pipeline: Pipeline) -> None:
    assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-3)


def test_a_thousand_pipelines_with_hops_agree_within_a_thousandth() -> None:
    draw = random.Random(1)
    for _ in range(1000):
        p, v = draw.choice(STAGES), draw.randint(1, 4)
        forward = draw.uniform(0.5, 2.0)
        pipeline = Pipeline(
            p=p,
            v=v,
            m=p * draw.randint(4, 8) if v > 1 else draw.randint(2 * p, 8 * p),
            forward=forward,
            backward=forward * draw.uniform(1.0, 2.2),
            logits=forward * draw.choice([0.0, draw.uniform(0.0, 0.4)]),
            hop=forward * draw.uniform(0.0, 0.01),
        )
        assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-3), pipeline


@pytest.mark.parametrize(("p", "v", "m"), [(2, 1, 9), (2, 3, 8), (4, 1, 8), (5, 2, 20), (6, 3, 24)])
def test_hops_are_counted_as_the_schedule_meets_them(p: int, v: int, m: int) -> None:
    """With all else equal, one more second per hop adds H·m + Q seconds, to within a few hops at either end."""
    without, with_hops = (
        Pipeline(p=p, v=v, m=m, forward=1.0, backward=2.0, logits=0.0, hop=hop).run() for hop in (0.0, 0.01)
    )
    closed = closed_form(Pipeline(p=p, v=v, m=m, forward=1.0, backward=2.0, logits=0.0, hop=0.01)) - without
    assert closed == pytest.approx(with_hops - without, abs=0.045)


@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_hops_are_exact_where_the_last_stage_of_1f1b_sets_the_pace(p: int, rounds: int) -> None:
    slow = Pipeline(p=p, v=1, m=rounds * p, forward=1.0, backward=2.0, logits=0.5, hop=0.001)
    assert closed_form(slow) == pytest.approx(slow.run(), rel=1e-12)


def test_a_deeper_pipeline_by_hand() -> None:
    """Two stages, three micro-batches, 1 s forward and 2 s backward: 3 rounds of 3 s and one stage's wait of 3 s."""
    assert Pipeline(p=2, v=1, m=3, forward=1.0, backward=2.0, logits=0.0, hop=0.0).run() == 12.0
