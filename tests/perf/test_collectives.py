"""Closed forms of collectives against rings played step by step on a two-level graph."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.perf.affine import Reciprocals
from coopt.perf.collectives import gather, send
from tests.conftest import ask

GPU = ask().cluster.gpu
F_GBYTE_S = 450.0
R = 1 / 50e9


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
    for ring, steps in (("rail", y - 1), ("domain", x - 1)):
        passing = {rank: frozenset(held[rank]) for rank in graph}
        for _ in range(steps):
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


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 8), st.floats(1e3, 1e10))
def test_all_gather_takes_as_long_as_the_played_rings(x: int, y: int, data_bytes: float) -> None:
    played = play_all_gather(two_levels(x, y), x, y, data_bytes)
    latency = GPU.efficiency.latency_s if x * y > 1 else 0.0
    closed = gather(GPU, F_GBYTE_S, data_bytes, x, y, "dp").at(Reciprocals(tp=0.0, pp=0.0, dp=R))
    assert float(closed) == pytest.approx(played + latency, rel=1e-12)


def test_a_collective_is_charged_to_its_own_dimension() -> None:
    parts = gather(GPU, F_GBYTE_S, 1e9, 2, 4, "tp")
    assert (float(parts.tp) > 0, float(parts.pp), float(parts.dp)) == (True, 0.0, 0.0)


def test_a_send_goes_over_the_rail_or_stays_inside() -> None:
    across, inside = send(GPU, F_GBYTE_S, 1e9, True), send(GPU, F_GBYTE_S, 1e9, False)
    assert (float(across.fixed), float(inside.pp)) == (0.0, 0.0)
    assert float(across.pp) == pytest.approx(1e9 / GPU.efficiency.send)
    assert float(inside.fixed) == pytest.approx(1e9 / (GPU.efficiency.hb * F_GBYTE_S * 1e9))
