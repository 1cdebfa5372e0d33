"""More bandwidth, more FLOP/s and less latency are never slower; whatever the model and the mapping."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import Iteration
from coopt.perf.mapping import Mappings
from coopt.perf.memory import memory_bytes
from tests.conftest import example_count, small_model
from tests.perf.training import gpu, mapped, run, training


def seen(r: tuple[float, float, float]) -> Reciprocals:
    """Seconds per byte of TP, of the pipeline and of all others."""
    return Reciprocals(tp=r[0], cp=r[2], dp=r[2], ep=r[2], edp=r[2], pp=r[1], tied=r[1])


MAMBA = {"mamba_layers": 3, "mamba_heads": 64, "mamba_head_dim": 64, "mamba_groups": 8, "mamba_state": 128}
MODELS = (
    small_model(),
    small_model(kv_heads=8, gated=True, ffn=14336, tied_embeddings=False),
    small_model(experts=16, top_k=4, ffn=2048, gated=True, shared_ffn=2048, dense_layers=2, dense_ffn=8192),
    small_model(q_rank=1024, kv_rank=512, rope_dim=64, head_dim=192, value_dim=128),
    small_model(window=512, window_layers=4, extra_predictions=1),
    small_model(**MAMBA, attention_layers=1, ffn_layers=4, extra_predictions=1),
    small_model(**MAMBA, experts=16, top_k=4, ffn=2048, expert_latent=1024),
)


@st.composite
def trainings(draw: st.DrawFn) -> tuple[Workload, Mappings, dict[str, int]]:
    """A workload, a mapping, and the part of each degree that lies inside an HB domain."""
    model = draw(st.sampled_from(MODELS))
    options: dict[str, Any] = {
        "software": draw(st.sampled_from(["megatron-core", "megatron-2021", "fsdp", "megatron-deepspeed"])),
        "attention": draw(st.sampled_from(["flash", "unfused"])),
        "dp_mode": draw(st.sampled_from(["sync", "overlap", "stale-1"])),
        "tp_sync_fraction": draw(st.sampled_from([1.0, 0.5])),
        "transport": draw(st.sampled_from(["rdma", "ipoib"])),
        "expert_tp": draw(st.booleans()),
        "collectives": draw(st.sampled_from(["levels", "fastest", "in-network"])),
        "schedule": draw(st.sampled_from(["1f1b", "zb-h1", "dualpipe"])),
    }
    workload = training(model, 96, draw(st.sampled_from(["bf16", "fp8"])), **options)
    hybrid = workload.model.mamba_layers > 0  # its sequences stay whole
    t, d = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 4]))
    c = 1 if hybrid else draw(st.sampled_from([1, 2]))
    turns, two_way = options["schedule"] == "1f1b", options["schedule"] == "dualpipe"
    p = draw(st.sampled_from([1, 2, 4] if two_way else [1, 2, 3, 4]))
    ranks = c * d * (1 if options["expert_tp"] else t)
    split = mapped(
        tp=t,
        cp=c,
        dp=d,
        pp=p,
        ep=draw(st.sampled_from([x for x in (1, 2, 4, 8) if ranks % x == 0])) if workload.model.experts else 1,
        interleave=draw(st.sampled_from([1, 2])) if p > 1 and turns else 1,
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
        sequence_parallel=t > 1 and options["tp_sync_fraction"] == 1.0 and draw(st.booleans()),
        zero=draw(st.sampled_from([0, 1] if two_way else [0, 1, 2, 3])),
    )
    inside = {
        name: draw(st.sampled_from([part for part in (1, 2, 3, 4) if degree % part == 0]))
        for name, degree in (("tp", t), ("cp", c), ("pp", p), ("dp", d))
    }
    return workload, split, inside


def timed(parts: Iteration, r: tuple[float, float, float]) -> float:
    return float(parts.time_s(seen(r))[0])


R = (2e-11, 3e-11, 4e-11)


@settings(max_examples=example_count(150))
@given(trainings(), st.floats(1.0, 8.0))
def test_more_of_anything_is_never_slower(asked: tuple[Workload, Mappings, dict[str, int]], factor: float) -> None:
    workload, split, inside = asked
    device = gpu()
    before = timed(run(workload, split, device, 450.0, **inside), R)
    faster: list[Gpu] = [
        device.model_copy(update={name: getattr(device, name) * factor})
        for name in ("bf16_tflop_s", "fp8_tflop_s", "hbm_gbyte_s")
    ]
    own = device.efficiency
    faster += [
        gpu(latency_s=own.latency_s / factor),
        gpu(send_s=own.send_s / factor),
        gpu(kernel_s=0.0),
        gpu(step_s=0.0),
        device.model_copy(update={"efficiency": own.times(min(factor, 1 / own.largest_share))}),
    ]
    # DualPipe has more of one pass than of the other in its bubble, and where both wait for the host their shares move
    near = 1e-2 if workload.options.schedule == "dualpipe" and workload.model.experts else 1e-12
    for better in faster:
        assert timed(run(workload, split, better, 450.0, **inside), R) <= before * (1 + near)
    assert timed(run(workload, split, device, 450.0 * factor, **inside), R) <= before * (1 + 1e-12)
    for which in range(3):
        less = tuple(r / factor if k == which else r for k, r in enumerate(R))
        assert timed(run(workload, split, device, 450.0, **inside), less) <= before * (1 + 1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tp", "cp", "pp", "dp", "ep"])
def test_every_group_inside_a_domain_is_faster_on_faster_wires(name: str) -> None:
    """What the property above says of bandwidth inside the domain, it says of something."""
    workload = training(MODELS[2], 96)
    split = mapped(**({"dp": 4, "ep": 4} if name == "ep" else {name: 4}))
    slow, fast = (timed(run(workload, split, gpu(), gbyte_s), R) for gbyte_s in (45.0, 450.0))
    assert fast < slow * (1 - 1e-4)


def test_shards_hide_behind_no_more_layers_than_the_last_stage_has() -> None:
    """Found at random: quicker kernels made an iteration slower whose last stage has fewer layers than its window."""
    workload = training(small_model(), 96, software="megatron-2021", attention="flash")
    split = mapped(tp=1, dp=2, pp=3, interleave=1, recompute="none", zero=2)
    slow, fast = (
        timed(run(workload, split, device, 450.0, tp=1, dp=1, pp=1), R) for device in (gpu(), gpu(kernel_s=0.0))
    )
    assert fast < slow


@settings(max_examples=example_count(150))
@given(trainings())
def test_pieces_have_no_negative_part_and_the_breakdown_adds_up(asked) -> None:
    workload, split, inside = asked
    parts = run(workload, split, gpu(), 450.0, **inside)
    assert np.all(parts.pieces().coefficients[:, 1:] >= -1e-6)
    seconds = parts.breakdown_s(seen(R))
    assert float(sum(seconds.values())[0]) == pytest.approx(timed(parts, R), rel=1e-12)
    assert all(float(value[0]) >= -1e-12 for value in seconds.values())


@settings(max_examples=example_count(60))
@given(trainings())
def test_memory_falls_with_every_zero_stage_but_for_what_is_gathered(asked) -> None:
    workload, split, _ = asked
    used = [float(memory_bytes(workload, _staged(split, zero))[0]) for zero in (0, 1, 2)]
    assert used[0] >= used[1] >= used[2]


def _staged(split: Mappings, zero: int) -> Mappings:
    return replace(split, zero=np.array([zero]))
