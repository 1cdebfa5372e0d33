"""TP, context and expert groups over several HB domains on direct links: what they send, and the links they take."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.pools import Pool
from coopt.instance.schema import Instance
from coopt.perf.collectives import NO_NETWORK
from coopt.solving.arrays import run_of
from coopt.solving.direct.grid import KINDS, DomainGrid
from coopt.solving.direct.rows import grids_of
from coopt.verifier.parts.link_demands import StageGrid, grid_of, phases_of, sends_by_kind, sends_on
from coopt.verifier.training.mappings import scalar_mapping
from coopt.verifier.training.placing import placement_of
from formulations.links_data import keeps
from tests.changes import with_part
from tests.conftest import example_count
from tests.solving.direct.oracle import pool_of, sent_by_kind
from tests.solving.direct.random_questions import agreed, random_question

CROSSING = {1004: "dp edp ep", 1010: "pp tp", 1011: "dp edp tp", 1029: "cp dp edp", 1115: "dp ep tp"}
"""Random questions with the phases of their plans."""


@given(st.integers(0, 10**9))
@settings(max_examples=example_count(200, 8))
def test_links_are_as_few_as_enumeration_finds_whatever_crosses(seed: int) -> None:
    agreed(random_question(seed))


@pytest.fixture(scope="module", params=CROSSING.items(), ids=str)
def answered(request: pytest.FixtureRequest) -> tuple[Instance, Any]:
    seed, phases = request.param
    instance = random_question(seed)
    plan, crossing = agreed(instance)
    assert sorted(crossing) == phases.split()
    return instance, plan


def test_what_crosses_domains_is_simulated_told_proven_and_needs_its_routes(answered: tuple[Instance, Any]) -> None:
    """The simulation takes as long where no stage is done early. Gradients of experts are those of replicas in the
    traffic of a plan."""
    instance, plan = answered
    (run,), (simulated,), (told,) = (
        one.workloads for one in (plan, coopt.simulate(instance, plan), coopt.traffic(instance, plan))
    )
    assert simulated.simulated_s <= run.iteration_time_s * (1 + 1e-9)
    if instance.workload[0].options.dp_mode == "sync" and run.mapping.pp == 1:
        assert simulated.simulated_s == pytest.approx(run.iteration_time_s, rel=1e-9)
    crossing, listed = {one.kind for one in told.classes if one.above_bytes}, {one.kind for one in simulated.traffic}
    across = {kind for kind, (_, domains) in run.placement.items() if domains > 1}
    assert crossing
    assert crossing - {"embedding"} <= {"dp", "pp", "tp", "cp", "ep", "edp"}
    assert across - {"cp", "dp"} <= crossing
    assert "edp" not in listed or instance.workload[0].model.experts
    # sends inside domains are followed by gathers over TP ranks, which the simulation lists with those of TP
    sends = {"pp"} if run.placement["pp"][1] == 1 else set()
    assert {"dp" if kind == "edp" else kind for kind in listed} == crossing - sends
    found = coopt.certify(instance, plan)
    assert found.ok is (sorted(crossing - {"embedding"}) != ["cp", "dp", "ep"])  # whose lengths do not suffice
    links = plan.parts[0].links
    for number, phase in enumerate(links.phases):
        fewer = phase.model_copy(update={"routes": phase.routes[1:]})
        phases = tuple(fewer if n == number else one for n, one in enumerate(links.phases))
        wrong = with_part(plan, links=links.model_copy(update={"phases": phases}))
        assert "link-routes" in {check.name for check in coopt.verify(instance, wrong).failures}


@given(st.integers(0, 10**9))
@settings(max_examples=example_count(100, 6))
def test_planner_verifier_and_enumeration_count_the_same_messages(seed: int) -> None:
    instance = random_question(seed)
    (workload,), size = instance.workload, instance.network.hb_domains[0].size
    pool = pool_of(instance, size)
    grids, position = grids_of(workload, pool.mappings, pool.placements)
    for row in np.unique(position, return_index=True)[1].tolist() if len(pool) else []:
        grid, counted = grids[position[row]], sent_by_kind(pool, row)
        listed = {kind: grid.sends((phase,))[0] for kind, phase in grid.phase_of.items()}
        stage = _stage_grid(instance, pool, row)
        assert grid.turn == stage.turn
        assert grid.phase_of == phases_of(stage)
        for kind in set(listed) - (set() if workload.model.experts else {"edp"}):
            verified = np.zeros_like(listed[kind])
            for ends, share in sends_by_kind(stage)[kind].items():
                verified[ends] = float(share)
            if kind != "cp" or pool.mappings.cp[row] > pool.placements.cp[row]:
                assert counted[kind] == pytest.approx(listed[kind], abs=1e-12)
            assert verified == pytest.approx(listed[kind], abs=1e-12)
        assert set(counted) <= set(listed)


def _stage_grid(instance: Instance, pool: Pool, row: int) -> StageGrid:
    """The grid of a mapping as the verifier has it."""
    claim = run_of(pool, instance.cluster.gpu, NO_NETWORK, row)
    place = placement_of(instance.workload[0], claim, instance.network.hb_domains[0].size)
    assert place is not None
    return grid_of(scalar_mapping(claim.mapping), place)


GRIDS = [
    DomainGrid(stages=s, replicas=t * c * d, inner=1, closed=False, tensor=t, contexts=c if d > 1 else 1,
               experts=x, apart=apart)
    for s, t, c, d in product((1, 2), (1, 2), (1, 2), (1, 2, 4))
    for x, apart in ((1, 1), (1, t), (2, 1), (2, t), (4, 1))
    if t * c * d > 1 and t * c * d % (x * apart) == 0
]  # fmt: skip


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: "-".join(map(str, grid.model_dump().values())))
def test_a_grid_sends_as_before_once_its_stages_moved_on_by_a_turn(grid: DomainGrid) -> None:
    phases = tuple(dict.fromkeys(grid.phase_of.values()))
    sends, ports = grid.sends(phases), np.full(grid.domains, 4)
    cells = np.arange(grid.domains).reshape(grid.stages, -1)
    assert keeps(np.roll(cells, -grid.turn, axis=1).ravel(), ports, sends)
    assert all(keeps(move, ports, sends) for group in grid.ladder(ports, sends) for move in group)
    assert sends.sum(axis=2) == pytest.approx(np.repeat(grid.sent(phases), grid.replicas, axis=1))
    stage = StageGrid(**grid.model_dump())
    assert tuple(sends_on(stage)) == tuple(kind for kind in KINDS if kind in phases)
