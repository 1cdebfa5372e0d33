"""Mixtures of experts and latent attention, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.instance.workload import Workload
from coopt.verifier.training.layer import expert_kernels
from coopt.verifier.training.memory import states_bytes, whole_layer_bytes
from coopt.verifier.training.placing import (
    attention_parameters,
    expert_copies,
    held_parameters,
    shard,
    sharded_parameters,
)
from tests.verifier.cases import SOFTWARE, layer_s, split, workload
from tests.verifier.test_scalar_layer import CORE, MACHINE, SLOW, TINY, tiny, traffic, turned

MIXED = TINY | {"layers": 4, "experts": 8, "top_k": 2, "shared_ffn": 32, "dense_layers": 1, "dense_ffn": 256}
LATENT = {"q_rank": 24, "kv_rank": 40, "rope_dim": 4, "value_dim": 8}
BESIDE = traffic([(32, 64, 64), (32, 64, 32)]) * 3 + CORE + 68 * 32 * 64 + 34 * 32 * 32
"""Bytes and FLOP of attention with b = 1, t = 2: QKV, output, core and memory-bound kernels."""


def mixed(options: dict[str, Any] | None = None, **model: Any) -> Workload:
    return workload(model=MIXED | model, options=options or {})


def all_of(shapes: list[tuple[int, int, int]]) -> int:
    return traffic(shapes) + turned(shapes)


def test_experts_get_their_share_of_the_rows() -> None:
    # 32 rows, of which each of two TP ranks routes 16 to 2 experts; x = 4: 2 experts a GPU with 16 rows each.
    part = shard(mixed(), split(tp=2, ep=4))
    assert (part.experts, part.expert_rows, part.routed_rows, part.expert_cut) == (2, 16, 32, 1)
    part = shard(mixed({"expert_tp": True}, capacity=1.25), split(tp=2, ep=4))
    assert (part.experts, part.expert_rows, part.routed_rows, part.expert_cut) == (2, 40, 80, 2)
    assert shard(mixed(), split(cp=2, micro_batch=3)).expert_rows == 3 * 16 * 2 / 8
    assert shard(tiny(), split(tp=2))[-3:] == (1, 0, 0.0)


@pytest.mark.parametrize(("expert_tp", "rows", "width"), [(False, 16, 128), (True, 32, 64)])
def test_a_layer_with_experts(expert_tp: bool, rows: int, width: int) -> None:
    routed = 2 * rows
    inner = 2 * all_of([(rows, width, 64), (rows, 64, width)]) + (4 + 6) * routed * width
    around = (16 + 24) * routed * 64 + all_of([(32, 8, 64)])
    common = all_of([(32, 16, 64), (32, 64, 16)]) + (4 + 6) * 32 * 16
    dense = all_of([(32, 128, 64), (32, 64, 128)]) + (4 + 6) * 32 * 128
    expected = BESIDE + 0.75 * (inner + around + common) + 0.25 * dense
    here = mixed({"expert_tp": expert_tp})
    assert layer_s(here, MACHINE, split(tp=2, ep=4)) == pytest.approx(expected / 1e9, rel=1e-12)


def test_sequence_parallelism_splits_the_router_too() -> None:
    here = mixed(dense_layers=0, dense_ffn=0)
    whole, parts = (layer_s(here, MACHINE, split(tp=2, ep=4, sequence_parallel=on)) for on in (False, True))
    router = all_of([(32, 8, 64)]) - all_of([(16, 8, 64)])
    assert whole - parts == pytest.approx((router + 68 * 32 * 64 / 2) / 1e9)


def test_the_kernels_of_a_layer_with_experts_are_counted() -> None:
    gap = SLOW._replace(kernel_s=1.0)
    here = mixed(dense_layers=0, dense_ffn=0, shared_ffn=0)
    found = layer_s(here, MACHINE._replace(layers=gap, wide=gap), split(ep=4)) - layer_s(here, MACHINE, split(ep=4))
    # Attention: 2 + 1 + 6 forward, 4 + 2 + 12 backward. Experts: 2·2 + 10 and 4·2 + 15, two of them. Router: 1 and 2.
    assert found == pytest.approx(9 + 18 + 14 + 23 + 3, rel=1e-9)


def test_each_expert_has_kernels_of_its_own_unless_one_works_on_all() -> None:
    part, wide = shard(mixed(), split(ep=4)), MACHINE
    narrow = MACHINE._replace(layers=SLOW._replace(input_bytes=1))
    assert part.experts == 2
    assert expert_kernels(mixed(), wide, part) == (10 + 2, 15 + 4)
    assert expert_kernels(mixed(), narrow, part) == (10 + 2 + 4, 15 + 4 + 4)
    grouped = mixed({"software": SOFTWARE | {"grouped_experts": True}})
    assert expert_kernels(grouped, narrow, part) == (10, 15)


@pytest.mark.parametrize(
    ("software", "kernels"),
    # 2 experts a GPU, three layers of four have experts
    [({}, 103 + 6 * 2), ({"grouped_experts": True}, 103 + 6), ({"graphs": True}, 0)],
)
def test_a_layer_with_experts_waits_for_the_host(software: dict[str, bool], kernels: int) -> None:
    ep = split(tp=2, ep=4)
    own = layer_s(mixed({"software": SOFTWARE | software}), MACHINE, ep)
    quick, slow = (
        layer_s(mixed({"software": SOFTWARE | software | {"host_s": host_s}}), MACHINE, ep) for host_s in (1e-9, 1e-3)
    )
    assert quick == own
    assert slow == pytest.approx(max(own, 0.75 * kernels * 1e-3), rel=1e-12)
    assert (slow > own) is (kernels > 0)


def test_the_host_takes_half_as_long_again_where_micro_batches_run_in_pairs() -> None:
    software = {"software": SOFTWARE | {"host_s": 1e-3}}
    alone, paired = (layer_s(mixed(software | {"ep_overlap": on}), MACHINE, split(ep=4)) for on in (False, True))
    assert paired == pytest.approx(1.5 * alone, rel=1e-12)


def test_what_is_recomputed_counts_where_the_host_is_waited_for() -> None:
    here = mixed({"software": SOFTWARE | {"host_s": 1e-3}})
    once, twice = (layer_s(here, MACHINE, split(ep=4, recompute=kind)) for kind in ("none", "full"))
    assert once == pytest.approx(twice, rel=1e-12)


def test_a_dense_layer_does_not_wait_for_the_host() -> None:
    slow = tiny().model_copy(update={"options": mixed({"software": SOFTWARE | {"host_s": 1e-3}}).options})
    assert layer_s(slow, MACHINE, split()) == layer_s(tiny(), MACHINE, split())


def test_latent_attention_goes_through_its_ranks() -> None:
    # t = 2: n_q/t = 32, n_v/t = 16, keys and values unfold to 4·(16 - 4 + 8)/2 = 40 columns.
    ends = [(32, 44, 64), (32, 40, 40), (32, 64, 16)]
    rest = CORE + 68 * 32 * 64 + 34 * 32 * 32 + all_of([(32, 64, 64), (32, 64, 64)]) + 10 * 32 * 64
    low = [(32, 24, 64), (32, 32, 24)]
    assert layer_s(tiny(**LATENT), MACHINE, split(tp=2)) == pytest.approx((all_of(ends + low) + rest) / 1e9)
    full = all_of([*ends, (32, 32, 64)]) + rest
    assert layer_s(tiny(**LATENT | {"q_rank": 0}), MACHINE, split(tp=2)) == pytest.approx(full / 1e9)


def test_parameters_of_latent_attention() -> None:
    ends = 64 * 44 + 40 * 40 + 64 * 16
    assert attention_parameters(tiny(**LATENT).model, 2) == 64 * 24 + 24 * 32 + ends
    assert attention_parameters(tiny(**LATENT | {"q_rank": 0}).model, 2) == 64 * 32 + ends


def test_parameters_of_experts() -> None:
    attention = 64 * (32 + 32) + 64 * 32
    common = attention + 0.75 * (2 * 64 * 16 + 64 * 8) + 0.25 * 2 * 64 * 128
    experts = 0.75 * 2 * 64 * 128 * 2
    held = held_parameters(mixed(), split(tp=2, pp=2, ep=4))
    assert held == pytest.approx((common, experts, 2 * common + 51 * 64, 2 * experts))
    cut = held_parameters(mixed({"expert_tp": True}), split(tp=2, pp=2, ep=4))
    assert cut == pytest.approx((common, experts / 2, 2 * common + 51 * 64, experts))


def test_experts_have_fewer_copies_than_the_rest() -> None:
    here = split(tp=2, cp=2, dp=6, ep=4)
    assert expert_copies(mixed(), here) == 6
    assert expert_copies(mixed({"expert_tp": True}), here) == 3
    held = held_parameters(mixed(), here)
    assert sharded_parameters(mixed(), held, here) == held.common / 12 + held.experts / 6


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("g", [2, 4])
def test_zero_shares_out_one_state_after_another(zero: int, g: int) -> None:
    here = workload(model=MIXED, software={"gradient_bytes": g})
    cut = split(dp=8, ep=2, zero=zero)
    held = held_parameters(here, cut)
    whole, shared = held.common + held.experts, held.common / 8 + held.experts / 4
    expected = {
        0: (14 + g) * whole,
        1: (2 + g) * whole + 12 * shared,
        2: 2 * whole + (12 + g) * shared,
        3: (14 + g) * shared,
    }
    assert states_bytes(here, held, cut) == pytest.approx(expected[zero])


def test_activations_of_a_layer_with_experts() -> None:
    here, cut = mixed(), split(tp=2, ep=4)
    attention = 32 * 64 * 8 + (2 * 64 + 2 * 32) * 32
    dense, common, routed = 4 * 128 * 32, 4 * 16 * 32, 32 * (64 * 2 + 4 * 128)
    expected = attention + 0.25 * dense + 0.75 * (common + routed)
    assert whole_layer_bytes(here, cut, shard(here, cut)) == pytest.approx(expected)
