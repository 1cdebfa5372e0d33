"""Rings, double trees, halving and doubling: step counts, loads, refusals."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import checked_fabric
from coopt.network.schedules.board import board_of
from coopt.network.schedules.outcome import ALGORITHMS, collective
from coopt.network.schedules.schedule_form import replay
from coopt.network.schedules.textbook import (
    double_tree_schedule,
    halving_doubling_schedule,
    in_order_tree,
    ring2d_schedule,
    ring_schedule,
)
from tests.network.schedules.random_fabrics import fabrics

SHAPES = [
    "ring:8", "torus:4x4", "mesh:4x4", "mesh:3x3", "full:8", "dragonfly:5x2", "regular:12:3", "clos:4x4:1", "fattree:4",
]  # fmt: skip


@pytest.mark.parametrize("switched", [False, True])
@settings(max_examples=60)
@given(data=st.data())
def test_a_ring_never_contends_on_random_graphs(switched, data):
    graph = data.draw(fabrics(switched=switched))
    found = ring_schedule(board_of(graph))
    assert (found.steps, found.contention_free) == (found.domains - 1, True)
    assert replay(graph, found) == ()


@pytest.mark.parametrize(
    ("text", "steps", "work"), [("torus:4x4", 6, 7.5), ("torus:8x8", 14, 31.5), ("mesh:2x3", 3, 3.5)]
)
def test_rings_along_both_dimensions_halve_the_time_of_one_ring(drawn, text, steps, work):
    graph, board = drawn(text)
    found = ring2d_schedule(board)
    assert (found.steps, found.work) == (steps, work)
    assert replay(graph, found) == ()


@pytest.mark.parametrize("text", ["ring:8", "full:9", "torus:2x2x2", "clos:2x4", "mesh:1x4"])
def test_rings_along_two_dimensions_need_two(drawn, text):
    with pytest.raises(InstanceError, match=r"ring2d .* two dimensions"):
        ring2d_schedule(drawn(text)[1])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 8, 12, 31, 32, 33, 100])
def test_an_in_order_tree_is_a_shallow_binary_tree_whose_odd_ranks_are_leaves(ranks):
    tree = in_order_tree(ranks)
    children = [child for below in tree.values() for child in below]
    assert sorted(children) == list(range(1, ranks))
    assert all(len(below) <= 2 for below in tree.values())
    assert all(not below for rank, below in tree.items() if rank % 2)
    depth = {0: 0}
    for rank, below in tree.items():
        depth |= dict.fromkeys(below, depth[rank] + 1)
    assert max(depth.values()) <= ranks.bit_length()


@pytest.mark.parametrize("text", [*SHAPES, "full:2", "full:3", "clos:1x16"])
def test_a_double_tree_replays(drawn, text):
    graph, board = drawn(text)
    assert replay(graph, double_tree_schedule(board)) == ()


def test_a_double_tree_behind_one_switch_takes_little_more_than_a_ring(drawn):
    _, board = drawn("clos:1x64")
    found = double_tree_schedule(board)
    assert found.contention_free
    assert 64 <= found.steps <= 1.5 * 64


@pytest.mark.parametrize(("text", "work"), [("clos:1x16", 15), ("full:8", 7), ("hyperx:4x4", 15), ("ring:8", 10)])
def test_halving_and_doubling_takes_logarithmically_many_steps(drawn, text, work):
    graph, board = drawn(text)
    found = halving_doubling_schedule(board)
    assert 2**found.steps == board.domains
    assert found.work == work
    assert replay(graph, found) == ()


@pytest.mark.parametrize("text", ["torus:3x3", "ring:12"])
def test_halving_and_doubling_needs_a_power_of_two(drawn, text):
    with pytest.raises(InstanceError, match="power of two"):
        halving_doubling_schedule(drawn(text)[1])


@pytest.mark.parametrize("text", ["torus:8x8", "mesh:4x4"])
def test_on_grids_multitree_beats_what_contends(drawn, text):
    graph, _ = drawn(text)
    times = {name: collective(graph, name, data_bytes=1e9, latency_s=1e-6)[0].time_s for name in ALGORITHMS}
    assert times["multitree"] < min(times["ring"], times["double-tree"], times["halving-doubling"])


@pytest.mark.parametrize(
    ("text", "data_bytes", "fastest"),
    [
        ("mesh:4x4", 1e9, {"ring2d"}),
        ("torus:8x8", 1e9, {"multitree"}),
        ("clos:2x8", 1e3, {"halving-doubling"}),
        ("ring:6", 1e9, set(ALGORITHMS)),
    ],
)
def test_the_fastest_is_taken_by_graph_and_size(drawn, text, data_bytes, fastest):
    graph, _ = drawn(text)
    found, schedule = collective(graph, data_bytes=data_bytes, latency_s=1e-6)
    assert found.algorithm == schedule.algorithm
    assert found.algorithm in fastest
    others = [name for name in ALGORITHMS if text != "ring:6" or name not in ("ring2d", "halving-doubling")]
    others = [name for name in others if not (text.startswith("clos") and name == "ring2d")]
    times = [collective(graph, name, data_bytes=data_bytes, latency_s=1e-6)[0].time_s for name in others]
    assert found.time_s == min(times)


def test_two_domains_are_enough_for_every_algorithm():
    graph = checked_fabric(nx.path_graph(2), "pair", gbit_s=100)
    for name in set(ALGORITHMS) - {"ring2d"}:
        found, _ = collective(graph, name, data_bytes=8, latency_s=0)
        assert found.verified
