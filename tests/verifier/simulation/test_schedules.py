"""Pipelines as events against what is known of them, and against a simulation of its own of the same schedules."""

import random
from itertools import product
from types import SimpleNamespace

import pytest

from coopt.verifier.simulation.events import EventClock
from coopt.verifier.simulation.pipeline import PipelineRun, StageHop
from coopt.verifier.training.steps import Channel, PipelineShape, StageExchange, StagePass
from tests.perf import pipeline_simulation
from tests.perf.test_pipeline import STAGES, closed_form
from tests.verifier.simulation.pipelines import Nobody, Pipeline


def seconds(shape: PipelineShape, *, hop: float = 0.0, logits: float = 0.0, seed: int = 0) -> float:
    """Until the last stage is done, with passes of one second forward and two backward."""
    p, v, m, schedule = shape
    return Pipeline(p=p, v=v, m=m, forward=1.0, backward=2.0, logits=logits, hop=hop, schedule=schedule).run(seed)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("m", [1, 8, 16])
def test_1f1b_has_the_bubble_of_its_stages(p: int, m: int) -> None:
    """m micro-batches and p - 1 more of waiting: (m + p - 1)·(forward + backward)."""
    assert seconds(PipelineShape(p, 1, m)) == pytest.approx((m + p - 1) * 3.0)


@pytest.mark.parametrize(("p", "v", "m"), [(2, 2, 4), (4, 2, 8), (4, 3, 12), (3, 4, 9)])
def test_interleaving_divides_the_bubble_by_the_chunks(p: int, v: int, m: int) -> None:
    """In passes of a chunk: m·v of work and p - 1 of waiting."""
    assert seconds(PipelineShape(p, v, m)) == pytest.approx((m * v + p - 1) * 3.0)


def test_messages_of_eight_stages_that_meet_wait_a_fifth_longer_than_charged() -> None:
    """The closed form charges m·(H - 1) + Q hops, as when all messages one way leave first. Drawn, some leave in three
    rounds in place of two; in a rhythm in which they all do there would be a third more."""
    v, hop = 6, 0.02
    shape = PipelineShape(8, v, 64)
    drawn = {seconds(shape, hop=hop, logits=1.0, seed=seed) for seed in range(4)}
    waited = [(whole_s - seconds(shape, logits=1.0)) / hop for whole_s in drawn]
    assert len(drawn) > 1
    assert all(1.1 < count / (64 * (2 * v - 1) + 11) < 1.25 for count in waited)


@pytest.mark.parametrize("senders", [(1, 2), (2, 1)])
def test_which_of_two_messages_of_a_moment_leaves_first_is_drawn(senders: tuple[int, int]) -> None:
    """Stages 1 and 2 are ready at once, in either order of events, and both send to stage 0."""
    firsts = []
    for seed in range(100):
        clock, sent = EventClock(None), list[int]()
        hops = {Channel(s, r, False): StageHop(1.0, None, 0.0) for s in range(3) for r in range(3)}
        shape = PipelineShape(3, 1, 1, "zb-h1")
        run = PipelineRun(clock, shape, lambda *_: 1.0, hops, lambda _: None, Nobody(), seed)
        run._observer = SimpleNamespace(sent=lambda channel, *_, sent=sent: sent.append(channel.sender))  # type: ignore[assignment]
        for sender in senders:
            message = StageExchange((Channel(sender, 0, False),), ())
            clock.after(1.0, lambda sender=sender, message=message, run=run: run._exchange(sender, message))
        run._steps = [iter(()) for _ in run._steps]
        clock.run()
        assert run.is_drawn
        assert sorted(sent) == [1, 2]
        firsts.append(sent[0])
    assert 25 < firsts.count(1) < 75


def test_a_pipeline_in_which_no_messages_meet_draws_nothing() -> None:
    assert len({seconds(PipelineShape(2, 1, 8), hop=0.1, seed=seed) for seed in range(4)}) == 1


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


@pytest.mark.parametrize("seed", range(40))
def test_1f1b_with_hops_is_that_of_another_simulation(seed: int) -> None:
    draw = random.Random(seed)
    forward = draw.uniform(0.5, 2.0)
    asked = {"p": draw.randint(2, 9), "v": 1, "m": draw.randint(1, 30), "forward": forward}
    asked |= {"backward": forward * draw.uniform(1.0, 2.2), "hop": forward * draw.uniform(0.0, 0.5)}
    asked |= {"logits": forward * draw.choice([0.0, 0.3])}
    other = pipeline_simulation.Pipeline(**asked).run()
    assert Pipeline(**asked).run() == pytest.approx(other)


@pytest.mark.parametrize("seed", range(20))
def test_interleaving_with_hops_is_that_of_another_simulation(seed: int) -> None:
    """Which of two messages gets a free port first differs, which is worth a hop here and there."""
    draw = random.Random(seed)
    p, forward = draw.randint(2, 8), draw.uniform(0.5, 2.0)
    asked = {"p": p, "v": draw.randint(2, 4), "m": p * draw.randint(1, 5), "forward": forward, "logits": 0.0}
    asked |= {"backward": forward * draw.uniform(1.0, 2.2), "hop": forward * draw.uniform(0.0, 0.05)}
    other = pipeline_simulation.Pipeline(**asked).run()
    assert Pipeline(**asked).run() == pytest.approx(other, rel=1e-2)


@pytest.mark.parametrize("schedule", ["zb-h1", "dualpipe"])
@pytest.mark.parametrize("seed", range(20))
def test_schedules_that_split_the_backward_pass_are_those_of_another_simulation(schedule: str, seed: int) -> None:
    """Two messages of a pair of passes leave together, the first of them by chance."""
    draw = random.Random(seed)
    p = 2 * draw.randint(1, 5) if schedule == "dualpipe" else draw.randint(2, 9)
    m, forward = 2 * draw.randint(p, 3 * p), draw.uniform(0.5, 2.0)
    weights, hop = forward * draw.uniform(0.3, 1.0), forward * draw.choice([0.0, draw.uniform(0.0, 0.05)])
    asked = {"p": p, "v": 1, "m": m, "forward": forward, "hop": hop, "schedule": schedule, "weights": weights}
    asked |= {"backward": weights + forward * draw.uniform(1.0, 1.6), "logits": forward * draw.choice([0.0, 0.3])}
    other = pipeline_simulation.Pipeline(**asked).run()
    assert Pipeline(**asked).run() == pytest.approx(other, rel=1e-2 if hop and schedule == "dualpipe" else 1e-9)


@pytest.mark.parametrize(
    ("logits", "hop", "off"), [(0.0, 0.05, 0.008), (1.0, 0.2, 0.03), (0.0, 0.5, 0.06), (1.0, 1.0, 0.1)]
)
def test_interleaved_pipelines_are_charged_what_they_take_but_for_who_sends_first(logits, hop, off):
    """Of the sends of a ring that meet at a port one is drawn, which is worth the more the longer they take."""
    for p, (v, rounds) in product(STAGES, ((2, 2), (2, 4), (3, 3))):
        slow = Pipeline(p=p, v=v, m=rounds * p, forward=1.0, backward=2.0, logits=logits, hop=hop)
        assert closed_form(slow) == pytest.approx(slow.run(), rel=off)
