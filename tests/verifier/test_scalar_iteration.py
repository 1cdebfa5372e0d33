from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.verifier.training.communication import GpuTraffic, LinkShares, Speeds, pipeline_waits
from coopt.verifier.training.iteration import (
    breakdown,
    communication_times,
    iteration_s,
    layer_traffic,
    met_hops_s,
    pipeline_times,
)
from coopt.verifier.training.placing import HeldParameters, Placement
from coopt.verifier.training.work import Clock, Work, end_visits
from tests.verifier.cases import EXPERTS, MODEL, ask, split

PLAIN = LinkShares(hb=1, rail=1, send=1, latency_s=0, step_s=0, send_s=0)
SHARES = LinkShares(hb=0.5, rail=0.25, send=0.2, latency_s=1, step_s=0, send_s=0.25)
SENT = GpuTraffic(
    gathers=4.0,
    gathered_bytes=100.0,
    logits_gathers=2.0,
    rings=0,
    ring_bytes=0.0,
    exchanges=0.0,
    exchanged_bytes=0.0,
    row_gathers=0.0,
    row_bytes=0.0,
    visits=0,
    groups=(0, 0),
    sends_once=False,
    hides_exchanges=False,
    further_layers=0,
    further_exchanges=0.0,
    sent_bytes=50.0,
    received_gathers=1,
    hop_cost=1.0,
    waits=pipeline_waits(4, 2, 8),
    gradient_bytes=4,
    reductions=1.0,
    refreshes=1.0,
    embedding_bytes=400.0,
)
EXCHANGED = SENT._replace(
    rings=2,
    ring_bytes=200.0,
    exchanges=3.0,
    exchanged_bytes=80.0,
    visits=1,
    further_layers=1,
    further_exchanges=1.0,
    logits_gathers=8.0,
)
SPEED = Speeds(100, 0.01, 0.04, 0.04, 0.04, 0.04, 0.02, 0.02)
APART = Placement(2, 1, 1, 4, 1, 3)


def work(traffic: GpuTraffic = SENT, **changes: object) -> Work:
    """Two chunks of two layers on each of four stages; t = 2, d = 3."""
    plain = Work(
        split=split(tp=2, pp=4, dp=3, interleave=2, zero=1),
        micro_batches=8,
        layers=4,
        missing_last=0,
        missing_first=0,
        layer_s=0.25,
        forward_s=0.1,
        core_s=0.0,
        idle_s=0.0,
        stage_s=1.0,
        logits_s=0.5,
        optimizer_s=0.25,
        parameters=HeldParameters(0, 0, 1000.0, 0.0),
        traffic=traffic,
        links=PLAIN,
        mode="sync",
        factor=1.0,
        ends=(),
    )
    return with_ends(plain._replace(**changes))  # type: ignore[arg-type]


def with_ends(here: Work) -> Work:
    """The work with the visits of the last stage that belong to it."""
    lacks, chunk = (here.missing_last, here.missing_first), here.layers // here.split.interleave
    met_logits = here.traffic.waits.met_logits
    ends = end_visits(here.split, here.micro_batches, lacks, chunk, here.forward_s, met_logits)
    return here._replace(ends=ends)


def test_iteration_by_hand() -> None:
    # Inside 100 byte/s, across 0.01, 0.02, 0.04 s/byte. TP inside a domain: (1/2)·100/100 = 0.5, of 16: 8.
    # Hop across: 50·0.02 + 0.5 = 1.5. DP across: (2/3)·(4000 + 2000)·0.04 = 160. Embedding: 2·(1/2)·400·0.02 = 8.
    # A middle stage waits for 8·4 + 3 hops and for the logits of 3 micro-batches, 0.5 + 2·0.5 each; the last one for
    # 3/4 of a hop of a micro-batch less and for one more: as long here.
    busy, rest = 8 * 9 + 3 / 2 * 9, 160 + 8 + 0.25
    assert 35 * 1.5 + 3 * 1.5 == (35 - 6 + 1) * 1.5 + 8 * 1.5
    assert iteration_s(work(), APART, SPEED) == pytest.approx(busy + 57 + rest)
    slower, quicker = work(logits_s=0.75), work(logits_s=0.25)
    assert iteration_s(slower, APART, SPEED) == pytest.approx(busy + 57 + 8 * 0.25 + rest)
    parts = breakdown(slower, APART, SPEED)
    assert parts == pytest.approx((8, 6, 8 * 8 + 8, 0, 0, (32 - 6) * 1.5, 13.5 + 4 * 1.5, 160, 0, 8, 0.25, 0))
    assert iteration_s(quicker, APART, SPEED) == pytest.approx(busy + 57 - 3 * 0.25 + rest)
    parts = breakdown(quicker, APART, SPEED)
    assert parts == pytest.approx((8, 0.75, 8 * 8 + 3, 0, 0, 8 * 4 * 1.5, 13.5 + 3 * 1.5, 160, 0, 8, 0.25, 0))


def test_a_pipeline_inside_a_domain_uses_its_bandwidth() -> None:
    # TP across: (1/2)·100·0.01/.25 + 1 = 3. Hop inside: 50/(.5·100) + .25 + 3 = 4.25. DP inside: (2/3)·6000/50 + 2
    # latencies. Embedding inside: 2·((1/2)·400/50 + 1) = 10.
    time_s = 8 * (49 + 0.5 + 2 * 3) + 3 / 2 * 49 + 30 * 4.25 + 80 + 2 + 10 + 0.25
    assert iteration_s(work(links=SHARES), Placement(1, 2, 4, 1, 3, 1), SPEED) == pytest.approx(time_s)


def test_hidden_hops_cost_a_share() -> None:
    third = work(SENT._replace(hop_cost=0.33), links=SHARES)
    assert communication_times(third, APART, SPEED).hop_s == pytest.approx(0.33 * (50 * 0.02 / 0.2 + 0.25 + 2))


def test_the_last_stage_lacks_layers_and_some_hops() -> None:
    # A layer with its TP takes 0.25 + 4·0.5.
    short = work(missing_last=1, logits_s=3.0)
    last = 1 + 8 - 2.25 + 3 + 1
    assert iteration_s(short, APART, SPEED) == pytest.approx(8 * last + 3 / 2 * 9 + 30 * 1.5 + 160 + 8 + 0.25)
    parts = breakdown(short, APART, SPEED)
    assert parts[:6] == pytest.approx((8 * 0.75, 8 * 3, 8 * (6 + 1), 0, 0, 26 * 1.5))
    two = with_ends(short._replace(traffic=SENT._replace(waits=pipeline_waits(2, 2, 8))))
    assert breakdown(two, APART, SPEED).pp == pytest.approx(8 * 3.5 * 1.5)


def test_context_and_expert_traffic_by_hand() -> None:
    # c = 2 across: (1/2)·200·0.04 = 4, twice. Experts 2 inside x 2 across: (1/2)·80/100 + (1/2)·80·0.04 = 2, 3 times.
    place = Placement(2, 1, 1, 4, 1, 3, 1, 2, 2, 2, 1, 3)
    here = work(EXCHANGED, parameters=HeldParameters(0, 0, 1000.0, 300.0), logits_s=0.0)
    busy = 1 + 8 + 4 * 8 + 4 * 6
    last, bubble = busy + 8 * 0.5 + 8 + 6, 3 / 2 * busy + 30 * 1.5
    # DP over 6 domains: (5/6)·6000·0.04; experts over 3: (2/3)·1800·0.04.
    data = 200 + 48
    assert iteration_s(here, place, SPEED) == pytest.approx(8 * last + bubble + data + 8 + 0.25)
    parts = breakdown(here, place, SPEED)
    assert (parts.cp, parts.ep, parts.tp) == pytest.approx((8 * (32 + 8), 8 * (24 + 6), 8 * (8 + 4)))


@pytest.mark.parametrize(
    ("core_s", "idle_s", "ring_s"), [(0.0, 0.0, 8.0), (2.0, 0.0, 6.0), (2.0, 1.5, 4.5), (7.0, 0.0, 0.33 * 8)]
)
def test_a_ring_hides_behind_the_attention_core_and_behind_the_host(
    core_s: float, idle_s: float, ring_s: float
) -> None:
    place = Placement(2, 1, 1, 4, 1, 3, 1, 2, 2, 2, 1, 3)
    here = work(EXCHANGED, core_s=core_s, idle_s=idle_s)
    assert communication_times(here, place, SPEED).ring_s == pytest.approx(ring_s)


@pytest.mark.parametrize(("layer_s", "core_s", "left_s"), [(0.5, 0.0, 5.5), (3.0, 1.0, 4.0), (5.0, 0.0, 0.33 * 6)])
def test_exchanges_hide_behind_the_compute_of_another_micro_batch(layer_s: float, core_s: float, left_s: float) -> None:
    place = Placement(2, 1, 1, 4, 1, 3, 1, 2, 2, 2, 1, 3)
    hidden = work(EXCHANGED._replace(hides_exchanges=True), layer_s=layer_s, core_s=core_s)
    assert communication_times(hidden, place, SPEED).experts_s == pytest.approx(left_s)
    gathered = work(EXCHANGED._replace(hides_exchanges=True, row_gathers=3.0, row_bytes=160.0), layer_s=layer_s)
    assert communication_times(gathered, place, SPEED).experts_s >= 3 * 0.5 * 160 / 100


def test_rows_of_split_experts_are_gathered_at_the_rate_of_tp() -> None:
    here = work(EXCHANGED._replace(row_gathers=3.0, row_bytes=160.0))
    place = Placement(2, 1, 1, 4, 1, 3, 1, 2, 2, 2, 1, 3)
    assert communication_times(here, place, SPEED).experts_s == pytest.approx(3 * 2 + 3 * 0.5 * 160 / 100)
    across = place._replace(tp_in=1, tp_across=2)
    assert communication_times(here, across, SPEED).experts_s == pytest.approx(3 * 2 + 3 * 0.5 * 160 * 0.01)


def test_gradients_hide_behind_the_last_backward_pass_or_a_whole_step() -> None:
    sync, overlap, late = (work(mode=mode) for mode in ("sync", "overlap", "stale-1"))
    assert [here.exposed_s(7.0, 10.0) for here in (sync, overlap, late)] == pytest.approx([10, 9, 3])
    assert [here.exposed_s(17.0, 1.2) for here in (sync, overlap, late)] == pytest.approx([1.2, 0.396, 0])
    assert [here.exposed_s(17.0, 1.2, 2.0) for here in (sync, overlap, late)] == pytest.approx([1.2, 4.2, 2])
    assert overlap.exposed_s(17.0, 1.2, 0.5) == pytest.approx(1.2)
    assert overlap.exposed_s(17.0, 1.2, 0.1) == pytest.approx(0.496)
    alone = overlap._replace(split=split(dp=3, zero=3))
    assert alone.window_s == 8
    assert alone.exposed_s(7.0, 10.0) == pytest.approx(3.3)
    assert overlap._replace(split=split(dp=3, pp=4, zero=3)).window_s == 8
    assert alone._replace(core_s=0.125).window_s == 4


def test_gradients_one_step_late_meet_every_hop_that_crosses_domains_like_them() -> None:
    late = work(mode="stale-1")
    assert met_hops_s(late, APART, SPEED) == pytest.approx((8 * 4 + 3) * 50 * 0.02)
    assert iteration_s(late, APART, SPEED) == pytest.approx(
        max(160.0, 8 * (1 + 8 + 4 * 1.5) + 18.0) + 35 * 50 * 0.02 + 8 + 0.25
    )
    assert met_hops_s(late, APART._replace(dp_in=3, dp_across=1), SPEED) == 0.0
    assert met_hops_s(late, APART._replace(pp_in=4, pp_across=1), SPEED) == 0.0


def test_stragglers_and_software_stretch_everything() -> None:
    plain, slow = work(), work(factor=1.25)
    assert iteration_s(slow, APART, SPEED) == pytest.approx(1.25 * iteration_s(plain, APART, SPEED))
    parts = breakdown(slow, APART, SPEED)
    assert parts[:-1] == breakdown(plain, APART, SPEED)[:-1]
    assert parts.straggler == pytest.approx(0.25 * iteration_s(plain, APART, SPEED))


RATES = st.floats(0, 1)


@given(
    rates=st.tuples(*[RATES] * 7),
    more=st.tuples(*[RATES] * 7),
    logits=st.floats(0, 5),
    missing=st.sampled_from([0, 1]),
    mode=st.sampled_from(["sync", "overlap", "stale-1"]),
)
def test_parts_sum_to_the_time_and_the_time_never_falls_with_a_slowdown(
    rates: tuple[float, ...], more: tuple[float, ...], logits: float, missing: int, mode: str
) -> None:
    place = Placement(2, 1, 1, 4, 1, 3, 1, 2, 2, 2, 1, 3)
    here = work(EXCHANGED, logits_s=logits, missing_last=missing, mode=mode, links=SHARES, factor=1.1)
    speed = Speeds(100, *rates)
    time_s = iteration_s(here, place, speed)
    assert sum(breakdown(here, place, speed)) == pytest.approx(time_s, rel=1e-12)
    slower = Speeds(100, *(a + b for a, b in zip(rates, more, strict=True)))
    assert iteration_s(here, place, slower) >= time_s * (1 - 1e-12)
    step = communication_times(here, place, speed)
    traffic = layer_traffic(here, place, speed)
    assert here.floor_s() <= here.floor_s(traffic) <= here.floor_s(traffic, step.data_s) <= time_s


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "dualpipe"])
def test_a_floor_has_all_of_a_pipeline_but_hops_and_what_the_last_stage_sends_more(schedule: str) -> None:
    model = MODEL | EXPERTS | {"extra_predictions": 0}
    options = {"schedule": schedule, "dp_mode": "overlap"}
    changes = {"workload__0__model": model, "workload__0__options": options}
    instance = ask(cluster__gpus=64, **changes)
    here = Clock(instance.workload[0], instance.cluster.gpu).work(split(tp=2, pp=4, dp=4, cp=2, ep=4, zero=1))
    place = Placement(2, 1, 1, 4, 2, 2, 1, 2, 2, 2, 2, 4)
    speed = Speeds(1e11, 1e-10, 1e-9, *[1e-10] * 5)
    step = communication_times(here, place, speed)._replace(hop_s=0.0)
    few = here._replace(traffic=here.traffic._replace(logits_gathers=0.0))
    traffic = layer_traffic(here, place, speed)
    assert min(traffic) > 0
    pipeline_s = pipeline_times(few, step).whole_s
    assert few.floor_s(traffic) == pytest.approx(few.factor * (pipeline_s + few.optimizer_s), rel=1e-11)
