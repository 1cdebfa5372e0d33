"""Closed forms of collectives against rings played step by step on a two-level graph."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.perf.algorithms import ring_algorithms
from coopt.perf.collectives import LinkRates, Reciprocals, gather, send, steps
from coopt.perf.exchanges import Visits, all_to_all
from tests.conftest import ask

GPU = ask().cluster.gpu
F_GBYTE_S = 450.0
R = 1 / 50e9
LINKS = LinkRates(
    GPU.efficiency.hb * F_GBYTE_S * 1e9,
    GPU.efficiency.rail,
    GPU.efficiency.send,
    GPU.efficiency.latency_s,
    GPU.efficiency.step_s,
    GPU.efficiency.send_s,
)


def two_levels(x: int, y: int) -> nx.DiGraph:
    """Rings of rails between y domains and rings inside them; ranks are (domain, local); links say seconds per byte."""
    graph = nx.DiGraph()
    for domain in range(y):
        for local in range(x):
            graph.add_node((domain, local))
            if y > 1:
                graph.add_edge((domain, local), ((domain + 1) % y, local), s_per_byte=R / GPU.efficiency.rail)
            if x > 1:
                inside = 1 / (GPU.efficiency.hb * F_GBYTE_S * 1e9)
                graph.add_edge((domain, local), (domain, (local + 1) % x), s_per_byte=inside)
    return graph


def play_all_gather(graph: nx.DiGraph, x: int, y: int, data_bytes: float) -> float:
    """Gather along the rails first, then inside the domains; every rank passes on what it received last."""
    held = {rank: {rank} for rank in graph}
    seconds = 0.0
    for ring, hops in (("rail", y - 1), ("domain", x - 1)):
        passing = {rank: frozenset(held[rank]) for rank in graph}
        for _ in range(hops):
            moves = {_next(rank, ring, x, y): (rank, passing[rank]) for rank in graph}
            times = [
                graph.edges[src, dst]["s_per_byte"] * len(chunks) * data_bytes / (x * y)
                for dst, (src, chunks) in moves.items()
            ]
            seconds += max(times)
            for dst, (_, chunks) in moves.items():
                assert not chunks & held[dst], "a chunk travels twice"
                held[dst] |= chunks
            passing = {dst: chunks for dst, (_, chunks) in moves.items()}
    assert all(len(chunks) == x * y for chunks in held.values())
    return seconds


def _next(rank: tuple[int, int], ring: str, x: int, y: int) -> tuple[int, int]:
    domain, local = rank
    return ((domain + 1) % y, local) if ring == "rail" else (domain, (local + 1) % x)


@settings(max_examples=60)
@given(st.integers(1, 8), st.integers(1, 8), st.floats(1e3, 1e10))
def test_all_gather_takes_as_long_as_the_played_rings(x: int, y: int, data_bytes: float) -> None:
    played = play_all_gather(two_levels(x, y), x, y, data_bytes)
    latency = GPU.efficiency.latency_s + GPU.efficiency.step_s * steps(x, y) if x * y > 1 else 0.0
    closed = gather(LINKS, data_bytes, x, y, "dp").at(Reciprocals.everywhere(R))
    assert float(closed) == pytest.approx(played + latency, rel=1e-12)


MEASURED = replace(
    LINKS, hb_byte_s=0.77 * 450e9, latency_s=4.9e-6, step_s=0.93e-6, own_share=0.45, short=0.43, long_s=13.5e-6
)


@pytest.mark.parametrize(
    ("ranks", "data_bytes", "gathered_s", "reduced_s"),
    [
        (2, 2**10, 5.2e-6, 5.9e-6),
        (8, 2**10, 10.4e-6, 15.6e-6),
        (2, 2**20, 11.3e-6, 14.7e-6),
        (8, 2**29, 1401.5e-6, None),
        (4, 2**29, 1267.5e-6, 2299.7e-6),
        (2, 2**29, 1038.6e-6, None),
    ],
)
def test_nccl_takes_what_nvidia_measured(ranks, data_bytes, gathered_s, reduced_s):
    """NCCL 2.29.2 on H100 (aiconfigurator-core 0.12.0): one start, copies of a rank's own, and two protocols."""
    once = gather(MEASURED, data_bytes, ranks, 1, "dp")
    assert float(once.fixed) == pytest.approx(gathered_s, rel=0.13)
    if reduced_s is not None:
        half = gather(replace(MEASURED, sum_byte_s=0.88 * 450e9), data_bytes, ranks, 1, "dp", summed=True)
        assert 2 * float(half.fixed) == pytest.approx(reduced_s, rel=0.17)


def test_more_domains_start_the_protocol_for_long_messages_and_are_bound_by_rails() -> None:
    plain = replace(MEASURED, own_share=0.0, short=1.0, long_s=0.0)
    for x, y in ((8, 2), (1, 8)):
        later = gather(MEASURED, 1e6, x, y, "dp") - gather(plain, 1e6, x, y, "dp")
        assert [float(part) for part in later.parts] == [pytest.approx(13.5e-6), *[0.0] * (len(later.parts) - 1)]
    for data_bytes in (1e3, 1e6, 1e9):
        alone, across = (gather(MEASURED, data_bytes, x, 8 // x, "tp") for x in (8, 4))
        assert alone.fixed < across.at(Reciprocals.everywhere(1 / 50e9))


@pytest.mark.parametrize("byte_s", [450e9, 900e9])
def test_multiprocessors_bound_an_exchange_whatever_the_links(byte_s: float) -> None:
    """20 of them copy 8 experts' tokens: 5.25 places of 8, and two rows more of each token."""
    visits = replace(visiting(8), copied_byte_s=20 * 22e9)
    kept = 8 * (1 - (7 / 8) ** 8) + 2
    exchange = all_to_all(replace(LINKS, hb_byte_s=byte_s), 1e9, 8, 1, visits)
    assert float(exchange.fixed) == pytest.approx(50e-6 + kept / 8 * 1e9 / (20 * 22e9))


def play_tree(ranks: int) -> int:
    """Rounds in which every rank's part reaches one rank and comes back, each rank talking to one other a round."""
    up = 0
    waiting = set(range(ranks))
    while len(waiting) > 1:
        pairs = sorted(waiting)
        waiting -= set(pairs[1::2])
        up += 1
    return 2 * up


@pytest.mark.parametrize(("x", "y"), [(1, 1), (2, 1), (3, 2), (8, 1), (8, 4), (1, 100), (64, 512)])
def test_large_groups_use_trees_and_small_ones_rings(x: int, y: int) -> None:
    rings = (x - 1) + (y - 1)
    assert float(steps(x, y)) == min(rings, play_tree(x) + play_tree(y))


def test_a_send_goes_over_the_rail_or_stays_inside_and_a_collective_to_its_own_dimension() -> None:
    across, inside = send(LINKS, 1e9, True), send(LINKS, 1e9, False)
    assert (float(across.fixed), float(inside.pp)) == (LINKS.send_s, 0.0)
    assert float(across.pp) == pytest.approx(1e9 / GPU.efficiency.send)
    assert float(inside.fixed) == pytest.approx(LINKS.send_s + 1e9 / (GPU.efficiency.hb * F_GBYTE_S * 1e9))
    parts = gather(LINKS, 1e9, 2, 4, "tp")
    assert (float(parts.tp) > 0, float(parts.pp), float(parts.dp)) == (True, 0.0, 0.0)


def visiting(experts: int, groups: int = 0, visited_groups: int = 0) -> Visits:
    """Tokens that visit so many experts and go once to each place."""
    return Visits(experts, groups, visited_groups, once=True)


def play_all_to_all(x: int, y: int, data_bytes: float) -> tuple[float, float]:
    """Bytes the busiest rail port and the busiest domain port carry when every rank sends 1/(x·y) to every rank.

    A message goes along its sender's rail to the domain it is for, then inside that domain to its rank.
    """
    rail, domain = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    ranks = [(d, g) for d in range(y) for g in range(x)]
    for source in ranks:
        for target in ranks:
            at = source
            if target[0] != at[0]:
                rail[at] += 1
                at = (target[0], at[1])
            if target[1] != at[1]:
                domain[at] += 1
    share = data_bytes / (x * y)
    return max(rail.values(), default=0) * share, max(domain.values(), default=0) * share


@pytest.mark.parametrize(("x", "y"), [(1, 1), (8, 1), (1, 8), (2, 3), (8, 4), (4, 16)])
def test_all_to_all_moves_what_the_played_messages_move(x: int, y: int) -> None:
    rail_bytes, domain_bytes = play_all_to_all(x, y, 1e9)
    parts = all_to_all(LINKS, 1e9, x, y, visiting(1))
    latency = LINKS.latency_s if x * y > 1 else 0.0
    assert float(parts.fixed) == pytest.approx(latency + domain_bytes / LINKS.hb_byte_s)
    assert float(parts.ep) == pytest.approx(rail_bytes / LINKS.rail)


def test_a_token_crosses_once_to_each_domain_it_visits() -> None:
    """Eight experts drawn from four domains are in 4·(1 - (3/4)^8) = 3.6 of them; of many domains all copies cross."""
    few, many = all_to_all(LINKS, 1e9, 8, 4, visiting(8)), all_to_all(LINKS, 1e9, 8, 10**6, visiting(8))
    visited = 4 * (1 - 0.75**8)
    assert float(few.ep) == pytest.approx(3 / 4 * visited / 8 * 1e9 / LINKS.rail)
    assert float(many.ep) == pytest.approx(1e9 / LINKS.rail, rel=1e-4)


@pytest.mark.parametrize(("domains", "reached"), [(2, 2), (4, 2), (8, 2), (16, 4), (32, 8)])
def test_a_token_reaches_the_domains_that_its_groups_lie_in(domains: int, reached: int) -> None:
    """Two of eight groups: of fewer domains than groups two at the most, of more those that two groups lie in."""
    limited = all_to_all(LINKS, 1e9, 8, domains, visiting(8, 8, 2))
    free = all_to_all(LINKS, 1e9, 8, reached, visiting(8))
    assert float(limited.ep) / ((domains - 1) / domains) == pytest.approx(float(free.ep) / ((reached - 1) / reached))


@settings(max_examples=200)
@given(st.integers(1, 64), st.integers(1, 512), st.floats(1e-13, 1e-8), st.floats(1.0, 10.0))
def test_the_faster_of_levels_and_one_ring_is_charged(x: int, y: int, r: float, factor: float) -> None:
    """One ring passes (n-1)/n of the data through the domain and out of it, at the same time."""
    n, one = x * y, np.array([1])
    levels = gather(LINKS, 1e9, x, y, "dp")
    found = ring_algorithms(LINKS, one * x, one * y)
    left = min([r, *(float(algorithm.charged(r)[0]) for algorithm in found)])
    start = float(levels.fixed) - (x - 1) / x * 1e9 / LINKS.hb_byte_s
    by_levels = float(levels.at(Reciprocals.everywhere(r)))
    ring = start + (n - 1) / n * 1e9 * max(1 / LINKS.hb_byte_s, r / x / LINKS.rail)
    least = min(by_levels, ring) if x > 1 and y > 1 else by_levels
    assert float(levels.at(Reciprocals.everywhere(left))) == pytest.approx(least, rel=1e-12)
    assert all(algorithm.charged(r * factor)[0] >= left for algorithm in found)


@given(st.integers(1, 64), st.integers(2, 64), st.integers(2, 64), st.floats(1e-13, 1e-8))
def test_more_ranks_in_a_domain_leave_no_more_of_a_byte_across(x: int, more: int, y: int, r: float) -> None:
    """Rows with as many domains are compared by it (`Way.costs`)."""
    levels, one = ring_algorithms(LINKS, np.array([x, x * more]), np.array([y, y]))
    few, many = np.minimum(levels.charged(r), one.charged(r))
    assert many <= few * (1 + 1e-12)
    assert one.saved[1] > one.saved[0]
