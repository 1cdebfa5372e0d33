"""Memory against the published figures of arXiv 2205.05198, Fig. 1, and by hand where the model is wider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from coopt.instance.workload import Workload
from coopt.perf.mapping import NONE, SELECTIVE, Mappings
from coopt.perf.memory import GIB, chunks_in_flight, layer_activation_bytes, memory_bytes, state_bytes
from coopt.perf.parameters import layer_parameters
from tests.conftest import small_model

FIG_1 = [  # model, t, p, v, B, parameters and optimizer, activations without and with SP and selective recomputation
    ("gpt-22b", 8, 1, 1, 4, 4, 45.5625, 59.25, 9.5625),
    ("gpt-175b", 8, 8, 3, 1, 64, 45.5625, 66.84375, 12.3515625),
    ("gpt-530b", 8, 35, 3, 1, 280, 31.640625, 114.0234375, 23.076171875),
    ("gpt-1t", 8, 64, 1, 1, 512, 32.958984375, 131.25, 26.5625),
]


def one(**changes: Any) -> Mappings:
    row = {"tp": 1, "cp": 1, "pp": 1, "dp": 1, "ep": 1, "micro_batch": 1, "interleave": 1, "recompute": NONE, "zero": 0}
    row |= changes
    sequence = row.pop("sequence_parallel", False)
    columns = {name: np.array([value]) for name, value in row.items()}
    return Mappings(sequence_parallel=np.array([sequence]), **columns)


def training(model: Any, batch: int = 64, **options: Any) -> Workload:
    table = {"name": "w", "model": model, "global_batch": batch, "max_iteration_time_s": 1.0, "options": options}
    return Workload.model_validate(table)


@pytest.mark.parametrize(("name", "t", "p", "v", "b", "batch", "states", "plain", "small"), FIG_1)
def test_figure_1(
    name: str, t: int, p: int, v: int, b: int, batch: int, states: float, plain: float, small: float
) -> None:
    workload = training(name, batch, attention="unfused")
    model = workload.model
    assert 18 * model.layers / p * layer_parameters(model, t) / GIB == states
    for recompute, sp, published in ((NONE, False, plain), (SELECTIVE, True, small)):
        rows = one(tp=t, pp=p, micro_batch=b, interleave=v, recompute=recompute, sequence_parallel=sp)
        chunk = layer_activation_bytes(workload, rows) * model.layers / (p * v)
        first, _ = chunks_in_flight(rows, batch)
        assert float((chunk * first)[0]) / GIB == published


@pytest.mark.parametrize(("stage", "whole", "spread"), [(0, 18, 0), (1, 6, 12), (2, 2, 16), (3, 0, 18)])
def test_zero_spreads_states_over_data_and_context_ranks(stage: int, whole: int, spread: int) -> None:
    workload = training(small_model())
    parameters = 8 * (4 * 4096**2 + 2 * 4096 * 16384) + 51200 * 4096
    gathered = 2 * 2 * (4 * 4096**2 + 2 * 4096 * 16384) if stage == 3 else 0
    found = state_bytes(workload, one(dp=4, cp=2, zero=stage))
    assert float(found[0]) == whole * parameters + spread * parameters / 8 + gathered


def test_experts_are_spread_over_their_own_copies() -> None:
    """16 ranks, expert groups of 4: each GPU holds 2 of 8 experts, and 4 GPUs hold the same ones."""
    model = small_model(experts=8, top_k=2, ffn=4096)
    workload = training(model)
    experts = 8 * 2 * 4096 * 4096 * 2
    shared = 8 * (4 * 4096**2 + 4096 * 8) + 51200 * 4096
    found = state_bytes(workload, one(dp=16, ep=4, zero=1))
    assert float(found[0]) == 6 * (shared + experts) + 12 * (shared / 16 + experts / 4)


@pytest.mark.parametrize(("layers", "predictions", "extra"), [(12, 2, 2), (11, 2, 1), (10, 1, 0), (9, 2, 0)])
def test_further_predictions_fill_the_last_stage(layers: int, predictions: int, extra: int) -> None:
    """Three layers a stage: what finds no missing layer on the last stage makes it the fullest."""
    plain, further = (training(small_model(layers=layers, extra_predictions=j)) for j in (0, predictions))
    rows = one(pp=4)
    layer = float(layer_activation_bytes(plain, rows)[0])
    parameters = 4 * 4096**2 + 2 * 4096 * 16384
    states = state_bytes(further, rows) - state_bytes(plain, rows)
    assert float(states[0]) == 18 * extra * parameters
    # One micro-batch (4 chunks of 3 layers on the first stage, 1 on the last) with one set of logits for each.
    found = memory_bytes(further, rows) - state_bytes(further, rows)
    last = (3 + extra) * layer + (1 + predictions) * 4 * 2048 * 51200
    assert float(found[0]) == max(4 * 3 * layer, last)
    shallow = one(pp=4, dp=64)
    found = memory_bytes(further, shallow) - state_bytes(further, shallow)
    assert float(found[0]) == last


def test_context_ranks_share_the_activations() -> None:
    workload = training(small_model())
    whole, half = (memory_bytes(workload, one(cp=c)) - state_bytes(workload, one(cp=c)) for c in (1, 2))
    assert float(whole[0]) == 2 * float(half[0])


def test_missing_layers_leave_the_fullest_stage_full() -> None:
    """Ten layers on four stages: three layers a stage, two of them missing at the ends."""
    workload = training(small_model(layers=10))
    found = memory_bytes(workload, one(pp=4)) - memory_bytes(training(small_model(layers=12)), one(pp=4))
    assert float(found[0]) == 0.0
