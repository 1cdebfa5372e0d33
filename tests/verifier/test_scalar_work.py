"""What a mapping makes of a workload, before it is placed."""

from __future__ import annotations

import pytest

from coopt.verifier.training.mappings import mapping_sizes, splits
from coopt.verifier.training.work import Clock
from tests.verifier.cases import EXPERTS, ask, split, workload


@pytest.mark.parametrize(
    ("mode", "zero", "found"),
    [("sync", 1, "sync"), ("sync", 3, "sync"), ("overlap", 0, "overlap"), ("stale-1", 3, "stale-1")],
)
def test_gradients_come_as_asked_for_at_every_zero_stage(mode: str, zero: int, found: str) -> None:
    clock = Clock(workload(options={"dp_mode": mode}), ask().cluster.gpu)
    assert clock.work(split(dp=4, zero=zero)).mode == found
    assert clock.work(split(dp=4, zero=zero, pp=2)).mode == found


def test_work_of_a_mapping() -> None:
    here = workload(
        model={"layers": 11}, software={"fused_accumulation": False, "overhead": 1.1}, options={"slowdown": 1.2}
    )
    clock = Clock(here, ask().cluster.gpu)
    found = clock.work(split(tp=4, pp=3, dp=4, cp=2, micro_batch=2, zero=1))
    assert (found.micro_batches, found.layers, found.missing_last) == (8, 4, 1)
    assert found.factor == pytest.approx(1.32)
    layer = 4096 * 4 * 1024 + 2 * 4096 * 4096
    assert found.stage_s - 4 * found.layer_s == pytest.approx(6 * 4 * layer / (0.85 * 2e12))
    assert found.optimizer_s == pytest.approx(60 * (4 * layer + 12800 * 4096) / 8 / (0.85 * 2e12))
    whole = clock.work(split(dp=4))
    assert whole.optimizer_s == pytest.approx(60 * whole.parameters.common / (0.85 * 2e12))


def test_a_further_prediction_costs_logits_and_a_layer_on_the_last_stage() -> None:
    one, three = (
        Clock(workload(model=EXPERTS | {"extra_predictions": j}), ask().cluster.gpu).work(split(ep=1)) for j in (0, 2)
    )
    assert three.logits_s == pytest.approx(3 * one.logits_s + 2 * one.layer_s)


def test_the_attention_core_is_counted_in_every_pass() -> None:
    clock = Clock(workload(), ask().cluster.gpu)
    assert clock.work(split(tp=2)).core_s == 0
    # 16 heads, 1,024 queries and 1,088 keys in two kernels that lose 160 keys a block forward, 300 backward
    pairs = [16 * 1024 * (1088 + 2 * start) + 100 * 64 * (2048 + 2 * start) for start in (160, 300)]
    forward_s, backward_s = (2 * pairs[i] * (336, 900)[i] * 256 / 336 / (0.6 * 3e14) for i in range(2))
    assert clock.work(split(tp=2, cp=2)).core_s == pytest.approx(forward_s + backward_s)
    assert clock.work(split(tp=2, cp=2, recompute="full")).core_s == pytest.approx(2 * forward_s + backward_s)


@pytest.mark.parametrize("model", [{"layers": 11}, EXPERTS])
def test_no_mapping_takes_fewer_gpu_seconds_than_the_least(model: dict[str, object]) -> None:
    here = workload(model=model, mapping={"micro_batch": [1, 2], "cp": [1, 2]}, options={"slowdown": 1.2})
    clock = Clock(here, ask().cluster.gpu)
    every = [(gpus, one) for gpus in mapping_sizes(here, 64) for one in splits(here, gpus)]
    assert clock.least_gpu_s <= min(gpus * clock.work(one).floor_s() for gpus, one in every)
    assert clock.least_gpu_s > 0.9 * min(gpus * clock.layers_s(one) for gpus, one in every)
