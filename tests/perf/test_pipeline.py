"""The closed form of the pipeline against the simulated schedules."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.perf.collectives import NO_NETWORK, AffineSeconds, Algorithms
from coopt.perf.iterations import Iteration
from coopt.perf.kernels import Passes
from coopt.perf.pipelines import PassChain, StageLayers, pipeline_waits, schedule_chains
from tests.conftest import example_count
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
    """T_pipe of docs/model.md, by coopt/perf: nothing but layers, logits and hops takes time."""
    p, v, m = np.array([pipeline.p]), np.array([pipeline.v]), np.array([pipeline.m])
    iteration = Iteration(
        layer=AffineSeconds(pipeline.forward + pipeline.backward),
        forward=AffineSeconds(pipeline.forward),
        hop=AffineSeconds(pipeline.hop),
        logits=AffineSeconds(pipeline.logits),
        layers=v * pipeline.layers,
        chunk_layers=np.array([pipeline.layers]),
        first_missing=np.array([pipeline.first_lacks]),
        missing_layers=np.array([pipeline.last_lacks]),
        further_predictions=0,
        further_exchanges=0.0,
        waits=pipeline_waits(p, v, m),
        micro_batches=m,
        bubbles=(p - 1) / v,
        factor=1.0,
        stale=False,
        dp_share=np.ones(1),
        behind=np.zeros(1),
        met=np.zeros(1),
        algorithms=Algorithms(),
        chains=chains(pipeline),
        forward_shares=(0.0, 0.0, 0.0) if pipeline.weights else (),
        **dict.fromkeys(SILENT, AffineSeconds()),
    )
    return float(iteration.time_s(NO_NETWORK)[0])


def chains(pipeline: Pipeline) -> tuple[PassChain, ...]:
    """Those of its schedule."""
    if pipeline.schedule == "1f1b":
        return ()
    counts = (pipeline.layers, pipeline.first_lacks, pipeline.last_lacks)
    passes = Passes(*(np.array([one]) for one in (pipeline.forward, pipeline.backward, pipeline.weights)))
    layers = StageLayers(*(np.array([count]) for count in counts), further_s=0.0)
    return schedule_chains(pipeline.schedule, np.array([pipeline.p]), np.array([pipeline.m]), passes, 0.0, layers)


@settings(max_examples=example_count(450))
@given(pipelines(), st.none() | st.integers(1, 4), st.floats(0.0, 3.0))
def test_pipelines_with_few_micro_batches_or_many_are_exact_without_hops(pipeline, few, logits):
    """The last stage sets the pace where logits are heavy."""
    m = pipeline.m if few is None else few * pipeline.p if pipeline.v > 1 else few
    heavy = replace(pipeline, m=m, logits=logits * pipeline.forward)
    assert closed_form(heavy) == pytest.approx(heavy.run(), rel=1e-9)


@settings(max_examples=example_count(100))
@given(pipelines(logits=True), st.floats(0.01, 0.05))
def test_long_hops_are_met_within_five_thousandths(pipeline: Pipeline, hop: float) -> None:
    slow = replace(pipeline, hop=hop * pipeline.forward)
    assert closed_form(slow) == pytest.approx(slow.run(), rel=5e-3)


@st.composite
def uneven_pipelines(draw: st.DrawFn) -> Pipeline:
    """Layers are missing on the first and the last stage, up to three where stages have several chunks; logits from
    none to heavy, any micro-batches."""
    pipeline, layers = draw(pipelines(logits=True)), draw(st.integers(1, 8))
    missing = draw(st.integers(1, 3 if pipeline.v > 1 else max(3, 2 * layers - 2)))
    first = draw(st.sampled_from([0, missing // 2]))
    assume(missing < pipeline.p * pipeline.v and missing - first <= layers)
    m = draw(st.integers(1, 6)) * pipeline.p if pipeline.v > 1 else draw(st.integers(1, 6 * pipeline.p))
    logits = draw(st.sampled_from([0.0, 0.3, 1.0, 5.0])) * pipeline.logits * layers
    return replace(pipeline, m=m, layers=layers, first_lacks=first, last_lacks=missing - first, logits=logits)


@settings(max_examples=example_count(300))
@given(uneven_pipelines())
def test_missing_layers_are_exact_without_hops(uneven: Pipeline) -> None:
    assert closed_form(uneven) == pytest.approx(uneven.run(), rel=1e-9)


@settings(max_examples=example_count(1000, 50))
@given(uneven_pipelines(), st.floats(0.0, 0.01))
def test_missing_layers_with_hops_agree_within_a_thousandth(uneven: Pipeline, hop: float) -> None:
    slow = replace(uneven, hop=hop * uneven.forward * uneven.layers)
    assert closed_form(slow) == pytest.approx(slow.run(), rel=1e-3)


@settings(max_examples=example_count(1000, 50))
@given(st.booleans().flatmap(lambda logits: pipelines(hops=True, logits=logits)))
def test_pipelines_with_hops_agree_within_a_thousandth(pipeline: Pipeline) -> None:
    assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-3)


@st.composite
def split_pipelines(draw: st.DrawFn, schedule: str, *, hops: float = 0.0, lacks: int = 0) -> Pipeline:
    """Of a schedule that splits the backward pass, with logits from none to two stages' work, hops up to a share of a
    pass forward, and up to so many layers missing."""
    p = draw(st.sampled_from([2, 4, 6, 8, 10, 12, 16] if schedule == "dualpipe" else STAGES))
    m = 2 * draw(st.integers(p, 4 * p)) if schedule == "dualpipe" else draw(st.integers(2, 8 * p))
    forward = draw(st.floats(0.5, 2.0))
    weights, missing = forward * draw(st.floats(0.05, 1.0)), draw(st.integers(0, min(lacks, p - 1)))
    layers, first = draw(st.sampled_from([4, 8])) if lacks else 1, draw(st.sampled_from([0, missing // 2]))
    backward = forward * draw(st.floats(1.0, 1.6)) + weights
    return Pipeline(
        p=p,
        v=1,
        m=max(m, p) if lacks else m,
        forward=forward,
        backward=backward,
        logits=(forward + backward) * layers * draw(st.sampled_from([0.0, 0.1, 2.0])) * draw(st.floats(0.0, 1.0)),
        hop=forward * draw(st.floats(0.0, hops)),
        layers=layers,
        first_lacks=first,
        last_lacks=missing - first,
        schedule=schedule,
        weights=weights,
    )


@settings(max_examples=example_count(150))
@given(st.sampled_from(["zb-h1", "dualpipe"]).flatmap(lambda schedule: split_pipelines(schedule, lacks=7)))
def test_missing_layers_of_split_schedules_are_exact_without_hops(pipeline: Pipeline) -> None:
    assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-9)


@settings(max_examples=example_count(1000, 50))
@given(split_pipelines("zb-h1", hops=0.2))
def test_zero_bubble_is_exact_with_hops_up_to_a_fifth_of_a_pass(pipeline: Pipeline) -> None:
    assert closed_form(pipeline) == pytest.approx(pipeline.run(), rel=1e-9)


@settings(max_examples=example_count(1000, 20))
@given(split_pipelines("dualpipe", hops=0.01))
def test_dualpipe_is_met_within_a_thousandth_and_exact_without_hops(pipeline: Pipeline) -> None:
    assert 1 - 1e-9 <= closed_form(pipeline) / pipeline.run() <= 1 + 1e-3
    silent = replace(pipeline, hop=0.0)
    assert closed_form(silent) == pytest.approx(silent.run(), rel=1e-9)


@settings(max_examples=example_count(300))
@given(split_pipelines("dualpipe", hops=0.2))
def test_dualpipe_is_never_charged_less_than_it_takes(pipeline: Pipeline) -> None:
    """Messages wait for each other at ports, in orders that no maximum of affine functions has."""
    assert 1 - 1e-9 <= closed_form(pipeline) / pipeline.run() <= 1.03


def test_the_most_that_dualpipe_was_found_to_be_charged_beyond_what_it_takes() -> None:
    longest = Pipeline(
        p=8, v=1, m=16, forward=1, backward=1.065, logits=0.548, hop=0.199, schedule="dualpipe", weights=0.0624
    )
    assert closed_form(longest) / longest.run() == pytest.approx(1.0254, abs=1e-4)


@pytest.mark.parametrize(
    ("logits", "fill_s"), [(0.0, 2 + 23 * 0.2), (0.2, 2 + 23 * 0.2 + 3 * 0.2), (4.0, 6 * 0.2 + 8 * 4)]
)
def test_round_trips_of_hops_meet_the_logits_of_dualpipe(logits: float, fill_s: float) -> None:
    """Four stages, 16 micro-batches of 3 s: 2 F + B - W, 23 hops and three visits of the last stage, or all eight.

    Two hops are added for messages that may wait at ports, and here do not.
    """
    trips = Pipeline(
        p=4, v=1, m=16, forward=1.0, backward=2.0, logits=logits, hop=0.2, schedule="dualpipe", weights=1.0
    )
    assert trips.run() == pytest.approx(16 * 3.0 + fill_s)
    assert closed_form(trips) == pytest.approx(16 * 3.0 + fill_s + 2 * 0.2)


@pytest.mark.parametrize(("p", "m"), [(4, 4), (4, 12), (8, 24)])
def test_zero_bubble_leaves_the_bubble_of_its_authors(p: int, m: int) -> None:
    """(p - 1)(F + B - W), with F = 1, B = 1.3 and W = 0.9: arXiv 2401.10241, section 2.1."""
    pipeline = Pipeline(p=p, v=1, m=m, forward=1.0, backward=2.2, logits=0.0, hop=0.0, schedule="zb-h1", weights=0.9)
    assert closed_form(pipeline) - m * 3.2 == pytest.approx((p - 1) * (1.0 + 1.3 - 0.9))
    assert closed_form(replace(pipeline, schedule="1f1b", weights=0.0)) - m * 3.2 == pytest.approx((p - 1) * 3.2)


@pytest.mark.parametrize("p", [4, 8, 16])
@pytest.mark.parametrize("inputs", [1.0, 1.3, 2.0])
def test_dualpipe_leaves_at_most_the_bubble_of_its_authors(p: int, inputs: float) -> None:
    """(p/2 - 1)(F&B + B - 3W) of arXiv 2412.19437, Table 2; a pass forward less where the first pair runs apart."""
    pipeline = Pipeline(
        p=p, v=1, m=2 * p, forward=1.0, backward=inputs + 0.9, logits=0.0, hop=0.0, schedule="dualpipe", weights=0.9
    )
    whole = 1.0 + inputs + 0.9
    theirs = (p // 2 - 1) * (whole + (inputs + 0.9) - 3 * 0.9)
    bubble = closed_form(pipeline) - 2 * p * whole
    assert theirs - 1.0 - 1e-9 <= bubble <= theirs + 1e-9


@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("logits", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("hop", [0.05, 0.2, 0.5, 1.0])
def test_hops_as_long_as_a_pass_are_exact_in_1f1b(p: int, logits: float, hop: float) -> None:
    """A middle stage waits for the logits of two micro-batches, and for those of one where there is no other."""
    for m in (1, 2, p, 3 * p):
        slow = Pipeline(p=p, v=1, m=m, forward=1.0, backward=2.0, logits=logits, hop=hop)
        assert closed_form(slow) == pytest.approx(slow.run(), rel=1e-12)


@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("logits", [0.0, 1.0])
@pytest.mark.parametrize("hop", [0.05, 0.5, 1.0])
def test_interleaved_pipelines_are_never_charged_more_than_they_take(p: int, logits: float, hop: float) -> None:
    """The sends of a long ring meet in other orders the longer they take, up to 2% of its time here."""
    for v, rounds in ((2, 2), (2, 4), (3, 3)):
        slow = Pipeline(p=p, v=v, m=rounds * p, forward=1.0, backward=2.0, logits=logits, hop=hop)
        assert 1 - 4e-3 < slow.run() / closed_form(slow) < (1.005 if hop < 0.5 else 1.02)


@pytest.mark.parametrize("p", STAGES)
@pytest.mark.parametrize("logits", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("hop", [0.01, 0.5, 3.0])
def test_hops_are_exact_where_all_passes_forward_go_ahead(p: int, logits: float, hop: float) -> None:
    slow = Pipeline(p=p, v=3, m=p, forward=1.0, backward=2.0, logits=logits, hop=hop)
    assert closed_form(slow) == pytest.approx(slow.run(), rel=1e-12)


def test_a_deeper_pipeline_by_hand() -> None:
    """Two stages, three micro-batches, 1 s forward and 2 s backward: 3 rounds of 3 s and one stage's wait of 3 s."""
    assert Pipeline(p=2, v=1, m=3, forward=1.0, backward=2.0, logits=0.0, hop=0.0).run() == 12.0
