"""The closed form of the pipeline against the simulated schedules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perf.pipeline_simulation import Pipeline


@st.composite
def pipelines(
    draw: st.DrawFn, *, hops: bool = False, logits: bool = False, stages: tuple[int, ...] = (2, 3, 4, 6, 8)
) -> Pipeline:
    p, v = draw(st.sampled_from(stages)), draw(st.integers(1, 3))
    m = p * draw(st.integers(1, 6)) if v > 1 else draw(st.integers(p, 6 * p))
    forward = draw(st.floats(0.5, 2.0))
    return Pipeline(
        p=p,
        v=v,
        m=m,
        forward=forward,
        backward=forward * draw(st.floats(1.0, 2.2)),
        logits=forward * draw(st.floats(0.0, 0.4)) if logits else 0.0,
        hop=forward * draw(st.floats(0.0, 0.05)) if hops else 0.0,
    )


@settings(max_examples=150, deadline=None)
@given(pipelines())
def test_bubble_and_steady_state_are_exact(pipeline: Pipeline) -> None:
    assert pipeline.closed_form() == pytest.approx(pipeline.run(), rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(pipelines(logits=True))
def test_the_last_stage_sets_the_pace(pipeline: Pipeline) -> None:
    assert pipeline.closed_form() == pytest.approx(pipeline.run(), rel=1e-3)


@settings(max_examples=100, deadline=None)
@given(pipelines(logits=True, hops=True, stages=(3, 4, 6, 8)))
def test_hops_are_charged_as_the_schedule_meets_them(pipeline: Pipeline) -> None:
    assert pipeline.closed_form() == pytest.approx(pipeline.run(), rel=0.015)


@settings(max_examples=50, deadline=None)
@given(pipelines(hops=True, stages=(2,)))
def test_two_stages_are_never_promised_too_much(pipeline: Pipeline) -> None:
    """A stage of two has one neighbour and may meet half the hops."""
    assert pipeline.closed_form() >= pipeline.run() * (1 - 0.015)


def test_a_deeper_pipeline_by_hand() -> None:
    """Two stages, three micro-batches, 1 s forward and 2 s backward: 3 rounds of 3 s and one stage's wait of 3 s."""
    assert Pipeline(p=2, v=1, m=3, forward=1.0, backward=2.0, logits=0.0, hop=0.0).run() == 12.0
