"""Collectives on two trees and by halving and doubling: what is sent is what they take, message by message."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from coopt.perf.traffic import replicas_of
from coopt.traffic.flows import TrafficDemand, demand, halving_streams, tree_edges
from coopt.traffic.ranks import RankGrid, groups, split_of
from coopt.traffic.volumes import UNIT, Volume
from tests.traffic.sums import bytes_by_kind
from tests.traffic.test_traffic import MOE, chosen

SPLITS = [
    ({"tp": 8, "pp": 1, "interleave": 1, "sequence_parallel": True}, {}),
    ({"tp": 2, "pp": 2, "interleave": 1, "sequence_parallel": True}, {}),
    ({"tp": 1, "pp": 1, "ep": 4, "interleave": 1, "sequence_parallel": False}, MOE),
]


def replayed(ranks: int, numbers: list[int]) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """Sums of both halves at every rank after an all-reduce along the trees, and who sent to whom, one entry a half."""
    child, parent = (ends.reshape(2, ranks - 1).tolist() for ends in tree_edges(ranks))
    sums, sent = [], []
    for low, high in zip(child, parent, strict=True):
        above = dict(zip(low, high, strict=True))
        assert len(above) == ranks - 1, "every rank but the root has one parent"
        held, waiting = list(numbers), Counter(high)
        ready = [rank for rank in range(ranks) if not waiting[rank]]
        for rank in ready:
            if rank in above:
                held[above[rank]] += held[rank]
                sent.append((rank, above[rank]))
                waiting[above[rank]] -= 1
                if not waiting[above[rank]]:
                    ready.append(above[rank])
        assert len(ready) == ranks
        for rank in reversed(ready):
            if rank in above:
                held[rank] = held[above[rank]]
                sent.append((above[rank], rank))
        sums.append(held)
    return sums, sent


def both(split: dict[str, object], model: dict[str, object]) -> tuple[RankGrid, TrafficDemand, TrafficDemand]:
    """Rings and trees."""
    _, workload, plan = chosen(split, **model)
    return split_of(workload, plan), demand(workload, plan), demand(workload, plan, trees=True)


@pytest.mark.parametrize("ranks", range(2, 20))
def test_every_rank_ends_with_the_sum_of_both_halves(ranks: int) -> None:
    sums, sent = replayed(ranks, [3**rank for rank in range(ranks)])
    assert sums == [[sum(3**rank for rank in range(ranks))] * ranks] * 2
    assert len(sent) == 4 * (ranks - 1)


@pytest.mark.parametrize("ranks", range(2, 20))
def test_no_rank_is_inside_both_trees_but_one_of_an_odd_number(ranks: int) -> None:
    _, parent = (ends.reshape(2, ranks - 1) for ends in tree_edges(ranks))
    inside = [{*above.tolist()} for above in parent]
    assert len(inside[0] & inside[1]) == ranks % 2


def test_every_rank_sends_and_receives_what_the_replay_does() -> None:
    """64 GPUs, 8 replicas: two in each of four domains."""
    split, _, found = both(*SPLITS[0])
    assert found.all_reduce == "tree"
    table = groups(split, "dp")
    assert table.shape == (8, 4, 2)
    replicas = replicas_of(split.workload, UNIT, split.mapping, split.placement)
    data = float(replicas.parameters[0]) * split.workload.options.software.gradient_bytes / table.shape[2]
    _, messages = replayed(4, [0] * 4)
    expected = np.zeros((split.ranks, split.ranks))
    for group in table:
        for rail in group.T:
            for src, dst in messages:
                expected[rail[src], rail[dst]] += data / 2
    sent = np.zeros_like(expected)
    for stream in found.streams:
        across = stream.src // found.active != stream.dst // found.active
        if stream.kind == "dp":
            np.add.at(sent, (stream.src[across], stream.dst[across]), stream.size_bytes[across])
    np.testing.assert_allclose(sent, expected, rtol=1e-12)


@pytest.mark.parametrize(("split", "model"), SPLITS)
def test_trees_send_as_much_as_rings_and_change_nothing_but_gradients_between_domains(split, model) -> None:
    _, ring, tree = both(split, model)
    assert tree.all_reduce == "tree"
    assert ring.all_reduce == "ring"
    assert bytes_by_kind(tree) == pytest.approx(bytes_by_kind(ring))
    kept = [
        [(s.kind, s.phase, s.src.tobytes(), s.dst.tobytes(), s.size_bytes.tobytes()) for s in d.streams if _same(d, s)]
        for d in (ring, tree)
    ]
    assert kept[0] == kept[1]


def _same(demand: TrafficDemand, stream: object) -> bool:
    inside = (stream.src // demand.active == stream.dst // demand.active).all()  # type: ignore[attr-defined]
    return bool(stream.kind != "dp" or inside)  # type: ignore[attr-defined]


def test_sharded_optimizers_keep_their_rings() -> None:
    _, ring, tree = both({**SPLITS[0][0], "zero": 1}, {})
    assert tree.all_reduce == "ring"
    assert len(tree.streams) == len(ring.streams)


@pytest.mark.parametrize("ranks", range(2, 20))
def test_halving_and_doubling_gathers_every_part_at_every_rank(ranks: int) -> None:
    """Each round sends as many parts as its bytes say: what the receiver has not got, the sender's own first."""
    gathered = Volume(
        kind="dp", phase="parameters", group="dp", inside_bytes=0.0, across_bytes=ranks - 1.0, share="once"
    )
    rounds = list(halving_streams(gathered, np.arange(ranks).reshape(1, ranks, 1)))
    assert len(rounds) == (ranks - 1).bit_length()
    held = [{rank} for rank in range(ranks)]
    for one in rounds:
        before = [set(parts) for parts in held]
        for src, dst, count in zip(one.src.tolist(), one.dst.tolist(), one.size_bytes.tolist(), strict=True):
            nearest = sorted(before[src] - before[dst], key=lambda part: (src - part) % ranks)
            held[dst] |= set(nearest[: round(count)])
    assert held == [set(range(ranks))] * ranks
    scattered = replace(gathered, phase="gradients")
    back = halving_streams(scattered, np.arange(ranks).reshape(1, ranks, 1))
    assert [one.size_bytes[0] for one in back] == [one.size_bytes[0] for one in rounds][::-1]


@pytest.mark.parametrize("way", ["halving and doubling", "double binary tree"])
@pytest.mark.parametrize(("split", "model"), SPLITS)
def test_traffic_takes_the_ways_that_a_plan_names(way: str, split: dict[str, object], model: dict[str, object]) -> None:
    """As many bytes as rings send go, and each rank sends as many, but to others."""
    _, workload, plan = chosen(split, **model)
    named = plan.model_copy(update={"collectives": {"dp": way, "tp": way, "edp": way}})
    ring, taken = demand(workload, plan), demand(workload, named)
    assert taken.all_reduce == {"halving and doubling": "halving", "double binary tree": "tree"}[way]
    assert bytes_by_kind(taken) == pytest.approx(bytes_by_kind(ring))
    across = [
        {(a, b) for s in d.streams for a, b in zip(s.src // d.active, s.dst // d.active, strict=True) if s.kind == "dp"}
        for d in (ring, taken)
    ]
    assert (across[0] != across[1]) == (plan.placement["dp"][1] > 2)
