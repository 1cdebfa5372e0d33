"""Lower bounds by hand and by exhaustion, and the formula of the time."""

from itertools import product

import networkx as nx
import pytest

from coopt.network.direct_graphs import checked_fabric
from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import board_of, step_bound
from coopt.network.schedules.outcome import collective
from coopt.network.schedules.schedule_form import all_reduce_s
from coopt.network.schedules.trees import multitree

BY_HAND = [  # shape, steps, why
    ("torus:4x4", 4, "the links into all domains together"),  # ceil(16*15/64)
    ("mesh:4x4", 8, "the links of d0.0"),  # ceil(15/2) of a corner
    ("mesh:8x8", 32, "the links of d0.0"),
    ("torus:16x16", 64, "the links into all domains together"),
    ("mesh:1x5", 4, "the links of d0.0"),
    ("clos:8x8", 63, "the links into all domains together"),  # one port a domain
    ("clos:4x4:1", 15, "the links into all domains together"),  # an uplink brings 12 chunks from outside
]


@pytest.mark.parametrize(("text", "steps", "why"), BY_HAND)
def test_a_bound_says_what_it_comes_from(drawn, text, steps, why):
    bound = step_bound(drawn(text)[1])
    assert (bound.steps, bound.why) == (steps, why)


def test_a_bridge_between_two_halves_bounds_the_steps():
    graph = checked_fabric(nx.barbell_graph(6, 0), "barbell", gbit_s=100)
    bound = step_bound(board_of(graph))
    assert bound.steps >= 6  # six chunks cross one link
    assert multitree(board_of(graph)).steps >= bound.steps


def fewest_steps(graph: nx.Graph) -> int:
    """The least number of steps by breadth-first search over all states; for three or four domains."""
    arcs = [*graph.edges, *((b, a) for a, b in graph.edges)]
    states = {tuple(frozenset([node]) for node in graph)}
    index = {node: place for place, node in enumerate(graph)}
    steps = 0
    while not any(all(len(held) == len(graph) for held in state) for state in states):
        steps += 1
        after = set()
        for state in states:
            choices = [sorted(state[index[a]] - state[index[b]]) or [None] for a, b in arcs]
            for sent in product(*choices):
                held = [set(chunks) for chunks in state]
                for (_, head), chunk in zip(arcs, sent, strict=True):
                    if chunk is not None:
                        held[index[head]].add(chunk)
                after.add(tuple(map(frozenset, held)))
        states = after
    return steps


@pytest.mark.parametrize(
    "edges", ["ab-bc", "ab-bc-ca", "ab-bc-cd", "ab-bc-cd-da", "ab-ac-ad", "ab-bc-ca-cd", "ab-ac-ad-bc-bd-cd"]
)
def test_small_graphs_are_scheduled_optimally(edges):
    plain = nx.from_edgelist(tuple(edge) for edge in edges.split("-"))
    board = board_of(checked_fabric(plain, "small", gbit_s=100))
    fewest = fewest_steps(plain)
    assert step_bound(board).steps <= fewest == multitree(board).steps


@pytest.mark.parametrize("text", ["torus:4x4", "mesh:3x3", "full:8", "clos:4x4"])
def test_the_time_without_contention_is_that_of_the_formula(drawn, text):
    _, board = drawn(text)
    schedule = multitree(board)
    data, latency_s, link_byte_s = 3e8, 2e-6, 50e9
    expected = 2 * schedule.steps * (data / board.domains / link_byte_s + latency_s)
    assert all_reduce_s(board, schedule, data, latency_s) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("text", ["ring:8", "torus:4x4", "clos:4x4"])
def test_the_ring_takes_the_time_of_its_formula(drawn, text):
    graph, board = drawn(text)
    n = board.domains
    found, _ = collective(graph, "ring", data_bytes=1e8, latency_s=1e-5)
    assert found.time_s == pytest.approx(2 * (n - 1) * (1e8 / n / 50e9 + 1e-5), rel=1e-12)
    assert (found.speedup_over_ring, found.gap >= 0) == (1, True)


def test_the_bandwidth_gain_of_multitree_over_one_ring() -> None:
    """Gaps are measured at the grain of the data."""
    gains = {"torus:4x4": 15 / 4, "mesh:4x4": 15 / 8, "torus:8x8": 63 / 16}
    for text, gain in gains.items():
        found, _ = collective(fabric(text), "multitree", data_bytes=1e9, latency_s=0)
        assert (found.speedup_over_ring, found.gap) == (pytest.approx(gain), 0)
    halves, _ = collective(fabric("mesh:4x4"), "ring2d", data_bytes=1e9, latency_s=0)
    assert (halves.work_chunks, halves.lower_bound_steps, halves.gap) == (7.5, 8, 0)


def test_few_latencies_are_paid_behind_one_switch_and_a_step_waits_for_its_slowest_link() -> None:
    found, _ = collective(fabric("clos:1x16"), "halving-doubling", data_bytes=1.6e9, latency_s=1.0)
    assert found.time_s == pytest.approx(2 * (4 * 1.0 + 15 * 0.1e9 / 50e9))
    graph = fabric("ring:4")
    graph.edges["d0", "d1"]["gbit_s"] = 100.0
    fast, slow = (collective(one, "multitree", data_bytes=4e8, latency_s=0)[0] for one in (fabric("ring:4"), graph))
    assert slow.time_s == pytest.approx(4 * fast.time_s)
