"""The cheapest plans of random small questions, simulated and by the closed form; docs/simulate.md has the figures."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from tests.conftest import ask, example_count
from tests.solving.oracle import instances

LONGEST, SHORTEST = 0.05, -0.15
"""Simulated over the closed form, less 1: with hops between domains or gradients that hide."""


@st.composite
def charged_by_loads(draw: st.DrawFn) -> Instance:
    """Random questions whose flows are spread, or pinned, over even bundles: what is charged is what is sent."""
    asked, routing = draw(instances()), draw(st.sampled_from(["spray", "pinned", 1.5]))
    network = asked.network.model_copy(update={"charge": "loads", "routing": routing, "bundles": "even"})
    return asked.model_copy(update={"network": network})


def test_random_small_plans_are_simulated_as_they_are_charged() -> None:
    """Exact but for hops between domains, and for gradients that hide behind more than the closed form takes."""
    seen: Counter[str] = Counter()

    @settings(max_examples=example_count(300, usual=24))
    @given(charged_by_loads())
    def compare(asked: Instance) -> None:
        plan = coopt.solve(asked, reasons=False)
        if plan.cost is None:
            return
        (part,), options = plan.parts, {one.name: one.options for one in asked.workload}
        runs = {one.name: one for one in part.workloads}
        for one in coopt.simulate(asked, plan).workloads:
            apart = one.simulated_s / one.closed_form_s - 1
            if runs[one.name].placement["pp"][1] > 1:
                kind = "hops"
                assert SHORTEST < apart < LONGEST, runs[one.name].mapping
            elif options[one.name].dp_mode == "overlap":
                kind = "hidden"
                assert SHORTEST < apart < 0.001, runs[one.name].mapping
            else:
                kind = "plain"
                assert abs(apart) < 0.001, runs[one.name].mapping
            seen[kind] += 1
            seen["within"] += abs(apart) < 0.01

    compare()
    plans = seen["hops"] + seen["hidden"] + seen["plain"]
    assert seen["plain"] > 3, seen
    assert seen["hidden"] > 1, seen
    assert seen["hops"] > 0, seen
    assert seen["within"] >= 0.8 * plans, seen


@pytest.mark.parametrize("schedule", ["zb-h1", "dualpipe"])
def test_plans_of_pipelines_that_split_the_backward_pass_are_verified_and_simulated(schedule: str) -> None:
    """On full stages without hops between domains the simulation takes as long as the plan says."""
    mapping = {"pp": 4, "micro_batch": 1, "recompute": "none", "zero": 1}
    plain = {"cluster__gpus": 64, "workload__0__max_iteration_time_s": 1.0, "workload__0__mapping": mapping}
    asked = ask(**plain, workload__0__options={"schedule": schedule})
    plan = coopt.solve(asked)
    assert coopt.verify(asked, plan).accepted
    assert f"schedule = {schedule}" in plan.workloads[0].knobs[0]
    (simulated,) = coopt.simulate(asked, plan).workloads
    assert simulated.simulated_s == pytest.approx(simulated.closed_form_s, rel=1e-2)
    split = {key: getattr(plan.workloads[0].mapping, key) for key in ("tp", "dp", "cp", "interleave")}
    same = plain | {"workload__0__mapping": mapping | split}
    usual = coopt.solve(ask(**same)).workloads[0].breakdown_s["bubble"]
    assert plan.workloads[0].breakdown_s["bubble"] < usual
