from __future__ import annotations

import math
from typing import Any

import pytest

from coopt.instance.hardware import Gpu
from coopt.verifier.training.communication import (
    GpuTraffic,
    LinkShares,
    OtherWays,
    SentShares,
    exchange_s,
    link_shares,
    pipeline_waits,
    places_visited,
    sent_shares,
    traffic_of,
)
from coopt.verifier.training.gathers import (
    Group,
    Repeated,
    gather_s,
    gather_ways,
    gathers_s,
    halving_shares,
    taken_ways,
)
from tests.verifier.cases import EFFICIENCY, EXPERTS, GPU, split, workload

LINKS = LinkShares(hb=0.5, rail=0.25, send=0.2, latency_s=1, step_s=0, send_s=0.25)


def traffic(mapping: dict[str, Any], **changes: Any) -> GpuTraffic:
    return traffic_of(workload(**changes), split(**mapping))


def test_gather_inside_and_across() -> None:
    # (3/4)·1000/(.5·100) + (1/2)·(1000/4)·0.01/.25 + 1
    assert gather_s(1000, Group(4, 2, 100, 0.01), LINKS) == pytest.approx(15 + 5 + 1)
    assert gather_s(1000, Group(1, 1, 100, 0.01), LINKS) == 0
    assert gather_s(1000, Group(1, 2, 100, 0.01), LINKS) == pytest.approx(20 + 1)


def test_a_gather_steps_along_rings_or_a_tree_whichever_is_shorter() -> None:
    stepping = LINKS._replace(step_s=1.0)
    # Rings 3 + 1 against trees 4 + 2; ring 63 against a tree of 12.
    assert gather_s(0, Group(4, 2, 100, 0.01), stepping) == pytest.approx(1 + 4)
    assert gather_s(0, Group(1, 64, 100, 0.01), stepping) == pytest.approx(1 + 12)


def test_exchange_inside_and_across() -> None:
    # Two experts of four domains: 4·(1 - (3/4)²)/2 = 0.875 crossings. (1/2)·1000/50 + (3/4)·.875·1000·0.01/.25 + 1
    assert places_visited(4, 2) == pytest.approx(0.875)
    assert exchange_s(1000, 2, 4, SentShares(1.0, 0.875), 100, 0.01, LINKS) == pytest.approx(10 + 26.25 + 1)
    assert exchange_s(1000, 1, 1, SentShares(1.0, 1.0), 100, 0.01, LINKS) == 0


def test_levels_that_overlap_take_as_long_as_the_longer() -> None:
    """A ring through all 8 ranks passes 7/8 of the data through each domain and, by two NICs, out of it."""
    at_once = LINKS._replace(overlap=True)
    assert gather_s(1000, Group(2, 4, 100, 0.01), at_once) == pytest.approx(max(875 / 50, 437.5 * 0.01 / 0.25) + 1)
    assert gather_s(1000, Group(2, 4, 100, 0.1), at_once) == gather_s(1000, Group(2, 4, 100, 0.1), LINKS)
    assert gather_s(1000, Group(1, 4, 100, 0.01), at_once) == gather_s(1000, Group(1, 4, 100, 0.01), LINKS)
    assert exchange_s(1000, 2, 4, SentShares(1.0, 0.875), 100, 0.01, at_once) == pytest.approx(26.25 + 1)


def test_the_size_of_a_message_decides_between_rings_and_halving() -> None:
    """Eight domains: 7 steps or 3, which take the byte rates of their own flows; trees are for sums of gradients."""
    links = LINKS._replace(overlap=True, step_s=1.0)
    group = Group(1, 8, 100, 0.01, OtherWays(halving=0.02, trees=0.015))
    assert gather_s(10, group, links) == pytest.approx(7 / 8 * 10 * 0.02 / 0.25 + 1 + 3)
    assert gather_s(1000, group, links) == pytest.approx(7 / 8 * 1000 * 0.01 / 0.25 + 1 + 7)
    assert [way.name for way in gather_ways(10, group, links)] == ["rings", "halving and doubling"]
    assert gather_s(100, group, links, "gradients") == pytest.approx(100 * 0.015 / 0.25 + 1 + 3)
    assert halving_shares(8) == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert halving_shares(6) == pytest.approx([3 / 5, 1 / 5, 1 / 5])


def test_one_way_serves_all_exchanges_of_a_group() -> None:
    """Gradients of 300 bytes for each 600 of parameters: each alone would halve, and the other go round."""
    links = LINKS._replace(overlap=True, step_s=1.0)
    group = Group(1, 8, 100, 0.01, OtherWays(halving=0.0125, trees=math.inf))
    several = [Repeated(1, 300), Repeated(1, 600)]
    apart = sum(gather_s(one.size_bytes, group, links) for one in several)
    ways = taken_ways(several, group, links)
    assert len({way.name for way in ways}) == 1
    assert (
        apart
        < gathers_s(several, group, links)
        == pytest.approx(
            min(
                sum(7 / 8 * one.size_bytes * s_byte / 0.25 + 1 + steps for one in several)
                for s_byte, steps in ((0.01, 7), (0.0125, 3))
            )
        )
    )


def test_switches_add_up_sums_and_nothing_else() -> None:
    """In the domain where it holds all ranks; in the network gradients, of which each domain sends half for a half."""
    able = LINKS._replace(hb_sum=1.0, rail_sums=True)
    assert gather_s(1000, Group(8, 1, 100, 0.01), able, "activations") == pytest.approx(875 / 100 + 1)
    assert (
        gather_s(1000, Group(8, 1, 100, 0.01), able)
        == gather_s(1000, Group(8, 1, 100, 0.01), LINKS)
        == pytest.approx(18.5)
    )
    assert gather_s(1000, Group(2, 4, 100, 0.01), able, "activations") == gather_s(1000, Group(2, 4, 100, 0.01), LINKS)
    assert gather_s(1000, Group(2, 4, 100, 0.01), able, "gradients") == pytest.approx(500 / 50 + 250 * 0.01 / 0.25 + 1)
    assert places_visited(8, 1) == 1
    assert places_visited(1, 5) == pytest.approx(1 / 5)


def test_forward_collectives_run_behind_products_with_sequence_parallelism() -> None:
    options = {"software": {"tp_forward_overlap": True, "tp_overlap": True}}
    hidden, shown = (traffic({"tp": 2, "sequence_parallel": on}, **options).gathers for on in (True, False))
    assert (hidden, shown) == pytest.approx((0.33 * (4 + 4 + 2), 4 + 0.33 * 4))


def test_a_token_crosses_to_no_more_domains_than_its_groups_lie_in() -> None:
    mixture = {"experts": 64, "top_k": 8, "expert_groups": 8, "top_groups": 4}
    here = traffic_of(workload(model=EXPERTS | mixture), split(ep=64, dp=64))
    for across, reached in ((8, 4), (2, 2), (16, 8)):
        shares = (places_visited(4 * reached, 8), places_visited(reached, 8))
        assert sent_shares(here, 4, across) == pytest.approx(shares)
    assert sent_shares(here._replace(sends_once=False), 4, 8) == (1.0, 1.0)


def test_a_transport_has_shares_of_its_own() -> None:
    gpu = Gpu.model_validate(GPU | {"efficiency": EFFICIENCY | {"send_s": 2e-6}})
    assert link_shares(workload(), gpu) == (0.78, 0.5, 0.37, 15e-6, 1e-6, 2e-6, False, 0.0, False)
    for transport, share in (("ipoib", 0.2), ("tcp", 0.9)):
        assert link_shares(workload(options={"transport": transport}), gpu)[:4] == (0.78, share, share, 15e-6)


def test_tensor_parallel_gathers() -> None:
    assert traffic({}).gathers == 0
    assert traffic({"tp": 4}).gathers == 8
    assert traffic({"tp": 4, "sequence_parallel": True, "recompute": "full"}).gathers == 14
    hidden = {"software": {"tp_overlap": True}}
    assert traffic({"tp": 4, "sequence_parallel": True}, **hidden).gathers == pytest.approx(4 + 4 * 0.33 + 2)
    part = {"options": {"tp_sync_fraction": 0.25, "tp_sync_backward": 2.0}}
    assert traffic({"tp": 4, "recompute": "full"}, **part).gathers == 0.25 * (4 + 4 + 8)
    assert traffic({"tp": 4}, **part, **hidden).gathers == pytest.approx(0.25 * (4 + 8 * 0.33))
    whole = {"options": {"tp_sync_backward": 2.0}}
    assert traffic({"tp": 4}, **whole).gathers == 8
    assert traffic({"tp": 4, "cp": 2, "micro_batch": 2}).gathered_bytes == 2 * 2 * 1024 * 4096


def test_gathers_of_logits_and_further_predictions() -> None:
    further = {"model": {"extra_predictions": 3}}
    assert traffic({"tp": 4}).logits_gathers == 2
    assert traffic({"tp": 4}, **further).logits_gathers == 2 * 4 + 3 * 8
    assert traffic({}, **further).logits_gathers == 0


def test_keys_and_values_go_round() -> None:
    assert traffic({"tp": 4}).rings == 0
    ring = traffic({"tp": 4, "cp": 2, "micro_batch": 2}, model={"kv_heads": 2, "value_dim": 64})
    assert ring.rings == 3
    assert ring.ring_bytes == 2 * 2 * 2048 * 1 * (128 + 64)
    assert traffic({"cp": 2, "recompute": "full"}).rings == 4


def test_experts_are_sent_tokens_and_send_them_back() -> None:
    model = EXPERTS | {"capacity": 1.25}
    here = traffic({"tp": 2, "cp": 2, "ep": 4}, model=model)
    assert (here.exchanges, here.row_gathers) == (4 * 6 / 8, 0)
    assert here.exchanged_bytes == 2 * 1.25 * 1024 * 2 * 4096 / 2
    assert traffic({"ep": 4, "recompute": "full"}, model=model).exchanges == 6 * 6 / 8
    assert traffic({"tp": 2}, model=model).exchanges == 0
    assert traffic({"tp": 2}).exchanges == 0


def test_experts_that_tp_splits_gather_their_rows() -> None:
    cut: dict[str, Any] = {"model": EXPERTS, "options": {"expert_tp": True}}
    here = traffic({"tp": 2, "ep": 4}, **cut)
    assert (here.exchanges, here.row_gathers) == (3, 3)
    assert here.row_bytes == 2 * 2048 * 2 * 4096
    assert traffic({"ep": 4}, **cut).row_gathers == 0
    assert traffic({"tp": 2}, **cut)[7:9] == (3, 2 * 2048 * 2 * 4096)


def test_pipeline_hops() -> None:
    here = traffic({"tp": 4, "pp": 4})
    assert (here.sent_bytes, here.received_gathers, here.hop_cost) == (2 * 2048 * 4096 / 4, 1, 1)
    assert traffic({"tp": 4, "pp": 4, "sequence_parallel": True}).received_gathers == 0
    assert traffic({"pp": 4, "interleave": 2}).hop_cost == 1
    hidden = {"software": {"pp_overlap": True}}
    assert traffic({"pp": 4, "interleave": 2}, **hidden).hop_cost == 0.33
    assert traffic({"pp": 4}, **hidden).hop_cost == 1
    assert traffic({"tp": 4}).sent_bytes == 0


@pytest.mark.parametrize(
    ("p", "v", "m", "waits"),
    [
        (1, 1, 5, (0, 0, 0, 0, 0)),
        (2, 1, 5, (6, 1, 6, 1, 0)),
        (2, 3, 6, (33, 0, 33, 0, 0)),
        (2, 3, 2, (12, 0, 12, 0, 0)),
        (3, 1, 6, (13, 1, 9, 3, 2)),
        (3, 1, 1, (3, 1, 4, 3, 1)),
        (3, 2, 6, (29, 1, 25, 3, 2)),
        (3, 2, 3, (14, 2, 14, 2, 0)),
        (4, 1, 8, (19, 3, 13, 5, 2)),
        (4, 2, 16, (67, 3, 56, 4, 5)),
        (5, 2, 10, (48, 5, 40, 7, 3)),
        (6, 2, 12, (55, 7, 46, 8, 3)),
    ],
)
def test_hops_a_stage_waits_for(p: int, v: int, m: int, waits: tuple[int, ...]) -> None:
    """All, and those that fill and drain, of a middle and of the last stage, then logits: counted in simulations."""
    assert pipeline_waits(p, v, m) == waits


@pytest.mark.parametrize(
    ("mapping", "rounds"),
    [
        ({"tp": 8}, (2, 0)),
        ({"dp": 4}, (2, 0)),
        ({"cp": 4}, (2, 0)),
        ({"dp": 4, "zero": 1}, (1, 1)),
        ({"dp": 4, "zero": 2, "micro_batch": 2}, (8, 1)),
        ({"dp": 4, "zero": 3, "micro_batch": 2}, (8, 16)),
        ({"dp": 4, "zero": 2, "pp": 2}, (16, 1)),
        ({"dp": 4, "zero": 3, "pp": 2}, (16, 32)),
    ],
)
def test_rounds_of_gradients_and_parameters(mapping: dict[str, int], rounds: tuple[int, int]) -> None:
    here = traffic(mapping)
    assert (here.reductions, here.refreshes) == rounds


@pytest.mark.parametrize(("v", "rounds"), [(1, (16, 32)), (2, (4, 8))])
def test_a_chunk_may_send_shards_once_for_the_micro_batches_of_its_turn(v: int, rounds: tuple[int, int]) -> None:
    """16 micro-batches on four stages are four turns of every chunk."""
    here = traffic({"dp": 4, "zero": 3, "pp": 4, "interleave": v}, software={"shards_in_rounds": True})
    assert (here.reductions, here.refreshes) == rounds


def test_the_tied_embedding_is_reduced_between_the_ends() -> None:
    assert traffic({"tp": 4, "pp": 2}).embedding_bytes == 4 * 12800 * 4096
    assert traffic({"pp": 2}, software={"gradient_bytes": 2}).embedding_bytes == 2 * 51200 * 4096
    assert traffic({"pp": 2}, model={"tied_embeddings": False}).embedding_bytes == 0
    assert traffic({"tp": 4}).embedding_bytes == 0
