"""Data parallelism over direct links against sums by hand."""

from __future__ import annotations

import networkx as nx
import pytest

from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import board_of
from coopt.network.schedules.trees import multitree
from coopt.perf.mapping import held_parameters
from coopt.plan.schema import Plan
from coopt.plan.traffic import Trained
from coopt.solving.answer import solve
from coopt.solving.plan_traffic import train_on
from coopt.traffic.ranks import split_of
from tests.conftest import ask


def planned(**mapping: object) -> tuple[Instance, Plan]:
    """Four domains of 16 with TP inside and DP across."""
    instance = ask(
        network__hb_domains="h100-hb16",
        network__fabrics="rail-only",
        network__switches="64x400g",
        network__oversubscription=1.0,
        workload__0__max_iteration_time_s=100.0,
        workload__0__mapping={"tp": 8, "pp": 1, "zero": 0, **mapping},
    )
    return instance, solve(instance)


def trained(graph: nx.Graph, **mapping: object) -> tuple[Trained, Instance, Plan]:
    instance, plan = planned(**mapping)
    board = board_of(graph)
    (one,) = train_on(instance, plan, board, multitree(board, 0), latency_s=1e-6)
    return one, instance, plan


def test_gradients_take_what_the_schedule_takes_for_all_parameters() -> None:
    """On a ring of four: two steps a phase; every domain has all gradients of the model, 4 bytes each."""
    one, instance, plan = trained(fabric("ring:4"))
    split = split_of(instance.workload[0], plan.workloads[0])
    total = 4 * 8 * float(held_parameters(instance.workload[0].model, split.mapping)[0])
    steps = multitree(board_of(fabric("ring:4")), 0).steps
    assert steps == 2
    assert one.between_domains_s == pytest.approx(2 * steps * (total / 4 / 50e9 + 1e-6))


def test_only_the_gradients_move_to_other_links() -> None:
    one, _, plan = trained(fabric("full:4"))
    (workload,) = plan.workloads
    rest = sum(seconds for part, seconds in workload.breakdown_s.items() if part != "dp")
    assert one.planned_time_s == workload.iteration_time_s
    assert rest + one.between_domains_s <= one.iteration_time_s <= rest + one.between_domains_s + 0.1 * rest


def test_more_links_are_never_slower() -> None:
    times = [trained(fabric(text))[0].iteration_time_s for text in ("ring:4", "full:4")]
    assert times == sorted(times, reverse=True)


def test_sharded_parameters_come_back_in_sixteen_bits() -> None:
    whole, sharded = trained(fabric("ring:4"))[0], trained(fabric("ring:4"), zero=1)[0]
    assert sharded.between_domains_s == pytest.approx(whole.between_domains_s * 6 / 8, rel=1e-3)


def test_another_number_of_domains_is_refused() -> None:
    with pytest.raises(InstanceError, match="joins 5 domains and the plan has 4, needs as many"):
        trained(fabric("ring:5"))


def test_a_plan_whose_pipeline_crosses_domains_is_refused() -> None:
    instance = ask(
        network__hb_domains="h100-hb16",
        workload__0__max_iteration_time_s=100.0,
        workload__0__mapping={"tp": 4, "pp": 8, "dp": 2},
    )
    board = board_of(fabric("ring:4"))
    plan = solve(instance)
    assert plan.workloads[0].placement["pp"][1] > 1
    with pytest.raises(InstanceError, match="PP crosses domains"):
        train_on(instance, plan, board, multitree(board, 0), latency_s=1e-6)
