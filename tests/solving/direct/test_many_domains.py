"""Direct links between many domains: links and flows stay near, bounds hold for any links, and the verifier agrees."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.solving.backend import backend_of
from coopt.solving.direct import grid
from coopt.solving.direct.answer import listed_rows
from coopt.solving.direct.lengths import FlowProgram, _distances, _filled
from coopt.solving.direct.rows import Row
from coopt.solving.runs import Run

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
    return next(row for row in listed_rows(run) if len(row.phases) == 2)


@pytest.mark.parametrize("domains", [26, 32])
def test_links_between_far_domains_take_nothing_off_the_bound(domains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    demands = row_of(asked(domains, 5.8)).demands
    assert demands.grid.near() is not None
    near = FlowProgram(demands).prove(demands, math.inf)
    monkeypatch.setattr(grid, "ANY_PAIR_DOMAINS", domains)
    assert demands.grid.near() is None
    assert near == pytest.approx(FlowProgram(demands).prove(demands, math.inf), rel=1e-9)


def test_arcs_that_are_filled_in_shorten_no_way_that_is_asked_for() -> None:
    demands = row_of(asked(32)).demands
    near, sent = demands.grid.near(), demands.sends[1]
    assert near is not None
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
    instance = asked(domains)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert plan.direct is not None
    assert plan.direct.hb_domain.count == domains
    assert plan.rivals is not None
    assert plan.rivals.switched.value is not None
    assert plan.objective.value is not None
    assert plan.objective.value < plan.rivals.switched.value / 2
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert verdict.on_trust == ""
