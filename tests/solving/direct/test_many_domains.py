"""Direct links between many domains: links and flows stay near, bounds hold for any links, and the verifier agrees."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.solving.direct import grid
from coopt.solving.direct.answer import listed_rows
from coopt.solving.direct.climbing import LinkProgress, climb
from coopt.solving.direct.grid import paces_on
from coopt.solving.direct.lengths import FlowProgram, _distances, _filled
from coopt.solving.direct.rows import Row
from coopt.solving.runs import Run, backend_of
from formulations.links_data import keeps

SHIPPED = Path(__file__).parents[3] / "instances" / "direct-32.toml"


def asked(domains: int, bound_s: float = 6.0) -> Instance:
    """As `direct-32`, on so many domains."""
    changes = {
        "cluster.gpus": 64 * domains,
        "workload.0.global_batch": 16 * domains,
        "workload.0.mapping.dp": [domains],
    }
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


@pytest.mark.parametrize("domains", [66, 130])
def test_more_than_64_domains_are_joined_and_accepted_without_the_solvers_word(domains: int) -> None:
    """The groups of the ladder share the time that is allowed: with little of it a busy machine ends on more links."""
    asked_for = asked(domains)
    instance = asked_for.model_copy(update={"solver": asked_for.solver.model_copy(update={"time_limit_s": 600.0})})
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert plan.parts[0].links.hb_domain.count == domains
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
    instance = asked(32, 4000.0)
    plan = coopt.solve(instance)
    assert (plan.parts[0].links.links, plan.parts[0].links.links_bound) == (31, 31)
    assert coopt.verify(instance, plan).accepted
