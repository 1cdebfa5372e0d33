"""Exchanges of links: cuts say what flows allow, and links found so are as few as enumeration finds, in time."""

from __future__ import annotations

import math
import random
import threading
import time
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import coopt
from coopt.solving.direct.exchange import Images, LinkExchange, PhaseFlows, own_links
from coopt.solving.direct.grid import DomainGrid
from formulations.links_data import LinksData, on_orbits
from tests.conftest import example_count
from tests.formulations.links import enumerated, highest_pace, without_symmetry
from tests.solving.direct.test_many_domains import SHIPPED, asked

GRID = DomainGrid(stages=2, replicas=4, inner=2, closed=False)
PORTS = np.full(8, 9)


def random_problem(seed: int) -> dict[str, Any]:
    """Three or four domains with few ports, that send to some others in one or two phases."""
    chosen = random.Random(seed)
    count, phases = chosen.choice((3, 3, 4)), chosen.choice((1, 2))
    demand = np.zeros((phases, count, count))
    for k in range(phases):
        for i, j in combinations(range(count), 2):
            if chosen.random() < 0.6 or (i, j) == (0, 1):
                demand[k, i, j] = demand[k, j, i] = chosen.choice((0.5, 1.0, 1.5))
    weight = np.array([[chosen.uniform(0.3, 1.2) for _ in range(phases)] for _ in range(chosen.choice((1, 2)))])
    return {"ports": np.array([chosen.choice((3, 4)) for _ in range(count)]), "demand": demand, "weight": weight}


def by_exchange(problem: dict[str, Any], most: int) -> int | None:
    """The fewest links that exchanges find without a symmetry."""
    data, alone = without_symmetry(problem), np.arange(len(problem["ports"]))[None, :]
    start = own_links(data, problem["demand"], problem["weight"].max(axis=0))
    found = LinkExchange(data, alone, alone).fewest(start, most, 0, math.inf, threading.Event())
    if found is None:
        return None
    assert (data.ends @ found <= data.ports).all()
    return int(found @ data.pairs)


@pytest.mark.parametrize("seed", range(example_count(60, 30)))
def test_exchanges_find_as_few_links_as_enumeration(seed: int) -> None:
    problem = random_problem(seed)
    expected = enumerated(problem)
    assert by_exchange(problem, 1000) == expected
    if expected is not None:
        assert by_exchange(problem, expected) == expected
        assert by_exchange(problem, expected - 1) is None


def on_group(*, alone: bool) -> tuple[LinksData, Any, Any]:
    """A grid on the orbits of its largest group, or of none, with both groups."""
    phases = ("pp", "dp")
    sends = GRID.sends(phases)
    whole = next(GRID.ladder(PORTS, sends))
    group = np.arange(8)[None, :] if alone else whole
    return on_orbits(group, PORTS, sends, np.ones((1, 2))), group, whole


@pytest.mark.parametrize("alone", [True, False])
def test_a_phase_is_as_fast_as_paths_carry_it(alone: bool) -> None:
    data, group, _ = on_group(alone=alone)
    chosen = np.random.default_rng(0)
    for k in (0, 1):
        links = chosen.integers(0 if alone else 1, 4, len(data.pairs))
        table = np.zeros((8, 8), dtype=np.int64)
        for (i, j), p in zip(data.arcs, data.pair, strict=True):
            table[group[:, i], group[:, j]] = links[p]
        given = {(i, j): int(table[i, j]) for i, j in combinations(range(8), 2)}
        pace, prices = PhaseFlows(data, k).cut(links)
        assert pace == pytest.approx(highest_pace(GRID.sends(("pp", "dp"))[k], given), abs=1e-7)
        assert prices @ links == pytest.approx(pace, abs=1e-7)


def test_cuts_and_their_images_hold_for_any_links() -> None:
    data, group, whole = on_group(alone=True)
    images, chosen = Images(data, group, whole), np.random.default_rng(1)
    for k in (0, 1):
        flows = PhaseFlows(data, k)
        _, prices = flows.cut(chosen.integers(0, 4, len(data.pairs)))
        found = images.of(prices)
        assert 1 <= len(found) <= len(whole)
        for _ in range(20):
            links = chosen.integers(0, 6, len(data.pairs))
            assert flows.cut(links)[0] <= min(one @ links for one in found.values()) + 1e-7


def test_links_of_each_demand_alone_are_in_time() -> None:
    data, _, _ = on_group(alone=False)
    slowest = np.array([3.0, 5.0])
    links = own_links(data, GRID.sends(("pp", "dp")), slowest)
    paces = [PhaseFlows(data, k).cut(links)[0] for k in (0, 1)]
    assert (slowest / paces).sum() <= 1 + 1e-9


def test_exchanges_end_with_their_time() -> None:
    data, group, whole = on_group(alone=True)
    links = np.full(len(data.pairs), 9)
    with pytest.raises(TimeoutError):
        PhaseFlows(data, 0).cut(links, time.perf_counter())
    assert LinkExchange(data, group, whole).fewest(links, 1000, 0, time.perf_counter(), threading.Event()) is None
    cancelled = threading.Event()
    cancelled.set()
    assert LinkExchange(data, group, whole).fewest(links, 1000, 0, math.inf, cancelled) is None


def test_an_interrupt_ends_exchanges_with_the_best_links() -> None:
    data, group, whole = on_group(alone=True)
    search = LinkExchange(data, group, whole)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    search._move = interrupted  # type: ignore[method-assign]
    links = np.full(len(data.pairs), 1)
    assert (search.fewest(links, 1000, 0, math.inf, threading.Event()) == links).all()
    assert search.interrupted


DEEPSEEK = {
    "cluster.gpus": 1024,
    "workload.0.model": "deepseek-v3",
    "workload.0.global_batch": 7680,
    "workload.0.max_iteration_time_s": 12.0,
    "workload.0.mapping": {"tp": [2], "pp": [8], "interleave": [2]},
}


@pytest.mark.parametrize(("domains", "links"), [(12, 259), (0, 228), (30, 717)])
def test_domains_are_solved_to_the_optimum(domains: int, links: int) -> None:
    """Of each the search of whole links alone ends on more; of 30 domains no two that are far apart are joined."""
    instance = asked(domains, 5.8) if domains else coopt.load(SHIPPED, DEEPSEEK)
    solver = instance.solver.model_copy(update={"gap": 1e-4, "time_limit_s": 600.0})
    instance = instance.model_copy(update={"solver": solver})
    plan = coopt.solve(instance)
    assert plan.parts[0].links.links == plan.parts[0].links.links_bound == links
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert verdict.on_trust == ""
