from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.instance.hardware import Efficiency
from coopt.verifier.flops import hardware_flop_per_token, model_flop_per_token, utilisation
from coopt.verifier.iteration import Speeds, breakdown, gather_s, iteration_s
from coopt.verifier.split import Placement, Split
from coopt.verifier.work import Clock, Work
from tests.verifier.cases import ask
from tests.verifier.test_scalar_memory import gpt

PLAIN = Efficiency(gemm=1, gemm_k0=0, hbm=1, hb=1, rail=1, send=1, latency_s=0)
SHARES = Efficiency(gemm=1, gemm_k0=0, hbm=1, hb=0.5, rail=0.25, send=0.2, latency_s=1)


def test_gather_inside_and_across() -> None:
    # (3/4)·1000/(.5·100) + (1/2)·(1000/4)·0.01/.25 + 1
    assert gather_s(1000, 4, 2, 100, 0.01, SHARES) == pytest.approx(15 + 5 + 1)
    assert gather_s(1000, 1, 1, 100, 0.01, SHARES) == 0
    assert gather_s(1000, 1, 2, 100, 0.01, SHARES) == pytest.approx(20 + 1)


def work(**changes: object) -> Work:
    plain = Work(
        split=Split(2, 4, 3, 1, 2, "none", False, 1),
        micro_batches=8,
        stage_s=1.0,
        logits_s=0.5,
        optimizer_s=0.25,
        gathers=16.0,
        gathered_bytes=100.0,
        sent_bytes=50.0,
        received_gathers=1,
        parameters=1000.0,
        embedding_bytes=400.0,
    )
    return plain._replace(**changes)  # type: ignore[arg-type]


def test_iteration_by_hand() -> None:
    # Inside 100 byte/s, across 0.01, 0.02, 0.04 s/byte. TP inside a domain: (1/2)·100/100 = 0.5.
    # Hop across: 50·0.02 + 0.5 = 1.5. DP across: (2/3)·(4000 + 2000)·0.04 = 160. Embedding: 2·(1/2)·400·0.02 = 8.
    place, speed = Placement(2, 1, 1, 4, 1, 3), Speeds(100, 0.01, 0.02, 0.04)
    mid = 1 + 16 * 0.5 + 4 * 1.5
    last = mid - 1.5 + 0.5 + 2 * 0.5
    assert last == mid
    time_s = 8 * mid + 3 * mid / 2 + 160 + 8 + 0.25
    assert iteration_s(work(), place, speed, PLAIN) == pytest.approx(time_s)
    slower = iteration_s(work(logits_s=0.75), place, speed, PLAIN)
    assert slower == pytest.approx(time_s + 8 * 0.25)
    parts = breakdown(work(logits_s=0.75), place, speed, PLAIN)
    assert parts == pytest.approx((8, 6, 8 * 8 + 8, 8 * 3 * 1.5, 3 * mid / 2, 160, 8, 0.25))
    parts = breakdown(work(logits_s=0.25), place, speed, PLAIN)
    assert parts == pytest.approx((8, 0, 8 * 8, 8 * 4 * 1.5, 3 * mid / 2, 160, 8, 0.25))


def test_a_pipeline_inside_a_domain_uses_its_bandwidth() -> None:
    place, speed = Placement(1, 2, 4, 1, 3, 1), Speeds(100, 0.01, 0.02, 0.04)
    # TP across: (1/2)·100·0.01/.25 + 1 = 3. Hop inside: 50/(.5·100) + 3 = 4. DP inside: (2/3)·6000/50 + 2 latencies.
    # Embedding inside: 2·((1/2)·400/50 + 1) = 10.
    mid = 1 + 16 * 3 + 4 * 4
    last = mid - 4 + 0.5 + 2 * 3
    time_s = 8 * last + 3 * mid / 2 + 80 + 2 + 10 + 0.25
    assert iteration_s(work(), place, speed, SHARES) == pytest.approx(time_s)


def test_work_counts_gathers_and_bytes() -> None:
    workload = ask().workload[0]
    clock = Clock(workload, ask().cluster.gpu)
    found = clock.work(Split(4, 2, 8, 2, 4, "full", True, 1))
    assert found.micro_batches == 4
    assert found.gathers == 4 * (8 + 2 + 4)
    assert found.gathered_bytes == 2 * 2 * 2048 * 4096
    assert found.sent_bytes == 2 * 2 * 2048 * 4096 / 4
    assert found.received_gathers == 0
    assert found.embedding_bytes == 4 * 12800 * 4096
    assert clock.work(Split(4, 2, 8, 2, 4, "none", False, 1)).received_gathers == 1
    alone = clock.work(Split(1, 1, 64, 1, 1, "none", False, 0))
    assert (alone.gathers, alone.sent_bytes, alone.received_gathers, alone.embedding_bytes) == (0, 0, 0, 0)
    assert alone.optimizer_s == pytest.approx(60 * alone.parameters / (0.85 * 2e12))


RATES = st.floats(0, 1)


@given(rates=st.tuples(RATES, RATES, RATES), more=st.tuples(RATES, RATES, RATES), logits=st.floats(0, 5))
def test_parts_sum_to_the_time_and_the_time_never_falls_with_a_slowdown(
    rates: tuple[float, float, float], more: tuple[float, float, float], logits: float
) -> None:
    place, here = Placement(2, 1, 1, 4, 1, 3), work(logits_s=logits)
    speed = Speeds(100, *rates)
    time_s = iteration_s(here, place, speed, SHARES)
    assert sum(breakdown(here, place, speed, SHARES)) == pytest.approx(time_s, rel=1e-12)
    slower = Speeds(100, *(a + b for a, b in zip(rates, more, strict=True)))
    assert iteration_s(here, place, slower, SHARES) >= time_s
    assert here.compute_floor_s <= time_s


def test_flop_of_the_published_formulas() -> None:
    layers, h, s = 96, 12288, 2048
    workload = gpt(layers, h, 96, 64, attention="unfused")
    vocab = workload.model.vocab
    plain = 72 * layers * h**2 * (1 + s / (6 * h) + vocab / (12 * layers * h))
    full = 96 * layers * h**2 * (1 + s / (6 * h) + vocab / (16 * layers * h))
    selective = 72 * layers * h**2 * (1 + s / (3 * h) + vocab / (12 * layers * h))
    assert model_flop_per_token(workload.model) == pytest.approx(plain, rel=1e-12)
    assert hardware_flop_per_token(workload, "full") == pytest.approx(full, rel=1e-12)
    assert hardware_flop_per_token(workload, "selective") == pytest.approx(selective, rel=1e-12)
    flash = gpt(layers, h, 96, 64)
    assert hardware_flop_per_token(flash, "selective") == hardware_flop_per_token(flash, "none")


def test_utilisation_is_one_at_the_peak() -> None:
    workload, gpu = ask().workload[0], ask().cluster.gpu
    time_s = 7e9 * workload.tokens_per_iteration / (64 * 300e12)
    assert utilisation(workload, gpu, 64, 7e9, time_s) == pytest.approx(1)
