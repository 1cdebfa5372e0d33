"""Collectives that choose their way by the size of messages: optimum against enumeration, and what plans name."""

from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.perf.algorithms import HALVING, RINGS, TREES
from coopt.plan.schema import Plan
from coopt.solving.route_files import routes_csv
from coopt.verifier.simulation.iteration import IterationSimulation
from coopt.verifier.simulation.networks import network_of
from coopt.verifier.simulation.plans import placed_runs
from coopt.verifier.training.work import Clock
from tests.conftest import ask, example_count, switch
from tests.solving.oracle import enumerated, instances

SLOW_STEP_S = 2e-4
"""So long that rounds count beside bytes among few domains."""


def choosing(instance: Instance) -> Instance:
    """The same question where steps are slow and every workload chooses its ways."""
    gpu = instance.cluster.gpu
    slow = gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update={"step_s": SLOW_STEP_S})})
    workloads = tuple(
        one.model_copy(update={"options": one.options.model_copy(update={"collectives": "fastest"})})
        for one in instance.workload
    )
    cluster = instance.cluster.model_copy(update={"gpu": slow})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})


def test_the_cheapest_network_is_found_with_ways_that_are_chosen() -> None:
    """Of random questions; the verifier counts times, flows and names again."""
    named: Counter[str] = Counter()

    @settings(max_examples=example_count(60, usual=6))
    @given(instances(64))
    def compare(asked: Instance) -> None:
        instance = choosing(asked)
        expected, plan = enumerated(instance), coopt.solve(instance, reasons=False)
        if plan.objective is None or plan.objective.value is None:
            assert expected == float("inf")
            return
        assert plan.objective.value == pytest.approx(expected, rel=1e-9)
        assert coopt.verify(instance, plan).accepted
        named.update(name for part in plan.parts for run in part.workloads for name in run.collectives.values())

    compare()
    assert named["halving and doubling"] > 1, named
    assert named["rings"] > 1, named


def renamed(plan: Plan, way: str) -> Plan:
    """The plan with another name for what adds up gradients where there is a choice."""
    part = plan.parts[0]
    runs = tuple(
        one.model_copy(update={"collectives": {**one.collectives, **dict.fromkeys(("dp", "edp"), way)}})
        for one in part.workloads
    )
    return plan.model_copy(update={"parts": (part.model_copy(update={"workloads": runs}),), "workloads": runs})


def simulated_in_rounds(instance: Instance, plan: Plan) -> bool:
    """Whether gradients go by halving and doubling between domains when the plan is simulated."""
    (part,) = plan.parts
    assert part.design is not None
    (run,), network = placed_runs(instance, part), network_of(instance, part.name, part.design)
    tied, work = run.workload.model.tied_embeddings, Clock(run.workload, instance.cluster.gpu).work(run.split)
    carrier = network.carrier(run.place, run.split, is_tied=tied, has_choice=True)
    gradients = IterationSimulation(run.workload, instance.cluster.gpu, work, run.place, carrier).gradients
    phases = [one.phase for stage in gradients for one in stage if one.phase and one.name == "dp"]
    return all(phase.startswith("round") for phase in phases)


@st.composite
def networks(draw: st.DrawFn, routing: str) -> Instance:
    """Networks of small switches, with a mapping whose replicas lie in several domains or more."""
    size = draw(st.sampled_from([4, 8]))
    hb = {"name": f"hb{size}", "size": size, "gbyte_s": 450, "usd_per_gpu": 1000, "w_per_gpu": 100}
    return choosing(
        ask(
            cluster__gpus=size * draw(st.sampled_from([6, 8, 12, 16])), network__hb_domains=hb,
            network__fabrics=draw(st.sampled_from(["rail-only", "rail-optimized", "clos"])),
            network__switches=switch(draw(st.sampled_from([8, 12, 16])), 5000),
            network__oversubscription=draw(st.sampled_from([1.0, 3.0, 7.0])), network__charge="loads",
            network__routing=routing, workload__0__global_batch=192, workload__0__max_iteration_time_s=200.0,
            workload__0__mapping={
                "tp": draw(st.sampled_from([1, 4])), "pp": draw(st.sampled_from([1, 2])),
                "zero": draw(st.integers(0, 1)),
            },
        )
    )  # fmt: skip


@pytest.mark.parametrize("routing", ["spray", "pinned", "ecmp"])
def test_routes_go_the_ways_that_plans_name_and_load_links_as_they_are_charged(routing: str) -> None:
    """By what is chosen and by all other ways there are; pinned routes hold on the verifier's graph, flow by flow."""
    seen: Counter[str] = Counter()

    @settings(max_examples=example_count(60, usual=8))
    @given(networks(routing))
    def compare(instance: Instance) -> None:
        plan = coopt.solve(instance)
        if plan.design is None:
            return
        found = coopt.route(instance, plan)
        (run,), (one,) = plan.workloads, found.workloads
        if routing == "spray":
            assert simulated_in_rounds(instance, plan) == (run.collectives["dp"] == HALVING)
            assert one.routed_time_s == pytest.approx(run.iteration_time_s, rel=1e-9)
        assert one.routed_time_s <= run.iteration_time_s * (1 + 1e-9) or run.routes
        if routing == "pinned":
            assert coopt.verify(instance, plan, routes=routes_csv(instance, plan)).accepted
        for way in dict.fromkeys((*run.collectives.values(), RINGS, HALVING, TREES)):
            named = renamed(plan, way)
            with suppress(InstanceError):  # of ways that this group has not
                found = coopt.route(instance, named)
            for each in found.collectives:
                load = max(1.0, each.stretch)
                if routing == "spray":
                    assert load == pytest.approx(each.charged, rel=1e-9)
                elif routing == "pinned":
                    assert load >= each.charged * (1 - 1e-9)
                else:
                    assert load <= each.charged * (1 + 1e-9)
                seen[each.way] += each.charged > 1
                seen["equal"] += load == pytest.approx(each.charged, rel=1e-9)
                seen["all"] += 1

    compare()
    assert min(seen[way] for way in ("rings", HALVING, TREES)) > 0, seen
    assert routing == "ecmp" or seen["equal"] > 0.9 * seen["all"]
