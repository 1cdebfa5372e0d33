"""Direct links between many domains: exchanges find as few as enumeration, bounds hold for any links."""

import math
import random
import threading
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.solving.direct import grid
from coopt.solving.direct.answer import listed_rows
from coopt.solving.direct.climbing import LinkProgress, climb
from coopt.solving.direct.exchange import Images, LinkExchange, PhaseFlows, own_links
from coopt.solving.direct.grid import DomainGrid, paces_on
from coopt.solving.direct.lengths import FlowProgram, _distances, _filled
from coopt.solving.direct.rows import Row
from coopt.solving.runs import Run, backend_of
from formulations.links_data import LinksData, keeps, on_orbits
from tests.conftest import PLAIN, example_count
from tests.formulations.links import enumerated, highest_pace, without_symmetry

SHIPPED = Path(__file__).parents[3] / "instances" / "direct-32.toml"


def asked(domains: int, bound_s: float = 6.0) -> Instance:
    """As `direct-32`, on so many domains."""
    changes = {
        "cluster.gpus": 64 * domains, "workload.0.global_batch": 16 * domains, "workload.0.mapping.dp": [domains],
    }  # fmt: skip
    changes |= {"workload.0.mapping.dp": [domains], "workload.0.max_iteration_time_s": bound_s}
    return coopt.load(SHIPPED, changes)


def row_of(instance: Instance) -> Row:
    """The mapping with stages and replicas across domains."""
    run = Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)
    return next(row for row in listed_rows(run) if row.phases == ("pp", "dp") and row.demands.grid.tensor == 1)


@pytest.mark.parametrize("domains", [26, 32])
def test_links_between_far_domains_take_nothing_off_the_bound(domains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    demands = row_of(asked(domains, 5.8)).demands
    assert demands.grid.neighbourhoods is not None
    near = FlowProgram(demands).prove(demands, math.inf)
    monkeypatch.setattr(grid, "ANY_PAIR_DOMAINS", domains)
    assert demands.grid.neighbourhoods is None
    assert near == pytest.approx(FlowProgram(demands).prove(demands, math.inf), rel=1e-9)


def test_arcs_that_are_filled_in_shorten_no_way_that_is_asked_for() -> None:
    demands = row_of(asked(32)).demands
    near, sent = demands.grid.neighbourhoods, demands.sends[1]
    among, random = near[0], np.random.default_rng(3)
    length_of = {tuple(steps): random.uniform(0.1, 1.0) for steps in demands.on_orbits(demands.symmetry).arcs}
    arcs = np.full(among.shape, np.inf)
    for (i, j), length in length_of.items():
        arcs[demands.symmetry[:, i], demands.symmetry[:, j]] = length
    filled, needed = _filled(arcs, sent, demands.symmetry)
    assert np.isfinite(filled).all()
    assert (filled[np.isfinite(arcs)] == arcs[np.isfinite(arcs)]).all()
    distances = _distances(filled, demands.symmetry)
    assert needed == pytest.approx(float((sent * distances).sum()), rel=1e-12)
    assert needed == pytest.approx(float((sent * _distances(arcs, demands.symmetry))[sent > 0].sum()), rel=1e-12)


def test_more_than_64_domains_are_joined_and_accepted_without_the_solvers_word() -> None:
    """The groups of the ladder share the time that is allowed: with little of it a busy machine ends on more links."""
    asked_for = asked(66)
    instance = asked_for.model_copy(update={"solver": asked_for.solver.model_copy(update={"time_limit_s": 600.0})})
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert plan.parts[0].links.hb_domain.count == 66
    assert plan.objective.value < plan.rivals.switched.value / 2
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert verdict.on_trust == ""


def test_groups_of_a_ladder_differ_and_keep_what_is_sent() -> None:
    demands = row_of(asked(24)).demands
    groups = list(demands.grid.ladder(demands.ports, demands.sends))
    assert len({group.tobytes() for group in groups}) == len(groups) > 6
    assert len(groups[0]) == max(map(len, groups)) == 48
    assert all(keeps(move, demands.ports, demands.sends) for group in groups for move in group)


def test_equal_grids_are_equal_after_either_was_asked_for_neighbours() -> None:
    one, other = (grid.DomainGrid(stages=4, replicas=8, inner=1, closed=False) for _ in range(2))
    assert one.neighbourhoods is not None
    assert other.neighbourhoods is not None
    assert one == other
    assert one.sends(("dp",)) is other.sends(("dp",))


@pytest.mark.parametrize("ports", [1, 31, 5])
def test_little_traffic_takes_a_tree_as_flat_as_ports_allow(ports: int) -> None:
    demands = replace(row_of(asked(32, 4000.0)).demands, ports=np.full(32, ports))
    progress = LinkProgress(bound=31.0)
    climb(demands, progress, backend_of(asked(32).solver), 0.0, 0.0, 1000, is_alone=True)
    if ports == 1:
        assert progress.incumbent is None
        return
    assert progress.incumbent.count == 31
    assert progress.incumbent.links.sum(axis=0).max() == ports
    assert all(
        paces_on(progress.incumbent.links, *each) > 0
        for each in zip(demands.sends, progress.incumbent.routes, strict=True)
    )


def test_a_plan_on_a_tree_is_accepted() -> None:
    instance = asked(16, 4000.0)
    plan = coopt.solve(instance)
    assert (plan.parts[0].links.links, plan.parts[0].links.links_bound) == (15, 15)
    assert coopt.verify(instance, plan).accepted


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


@pytest.mark.parametrize("seed", range(example_count(60, 15)))
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
    "cluster.gpu": {"extends": "gb200", "efficiency": PLAIN | {"gemm": 0.5495, "hbm": 0.553, "kernel_s": 5.59e-6}},
    "cluster.gpus": 768, "workload.0.model": "deepseek-v3", "workload.0.global_batch": 5760,
    "workload.0.max_iteration_time_s": 12.0, "workload.0.balance": "forced",
    "workload.0.mapping": {"tp": [2], "pp": [8], "interleave": [2]},
}  # fmt: skip


@pytest.mark.parametrize(("domains", "links"), [(0, 232), (30, 695)])
def test_domains_are_solved_to_the_optimum(domains: int, links: int) -> None:
    """Of each the search of whole links alone ends on more; of 30 domains no two that are far apart are joined."""
    instance = asked(domains, 5.82) if domains else coopt.load(SHIPPED, DEEPSEEK)
    solver = instance.solver.model_copy(update={"gap": 1e-4, "time_limit_s": 600.0})
    instance = instance.model_copy(update={"solver": solver})
    plan = coopt.solve(instance)
    assert plan.parts[0].links.links == plan.parts[0].links.links_bound == links
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert verdict.on_trust == ""
