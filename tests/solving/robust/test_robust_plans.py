"""Robust plans: the optimum is that of enumeration, the verifier agrees, and what nobody can stand is said."""

from __future__ import annotations

import math
import re
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from pydantic import ValidationError

import coopt
from coopt.columns.grid import context_of, mappings
from coopt.columns.pools import place
from coopt.instance.catalog import sentences
from coopt.instance.couplings import Robust
from coopt.instance.schema import Instance
from coopt.network.family import without_nics
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan
from coopt.plan.traffic import Fault
from coopt.report.faults import faults_report
from coopt.report.plan import plan_report
from coopt.report.words import rendered
from coopt.solving.arrays import placement_of
from coopt.solving.evaluate import pinned
from tests.changes import NOTHING_BUILT
from tests.conftest import accepted, ask, example_count, question, small_model, switch
from tests.solving.fleet_oracle import KINDS, enumerated
from tests.solving.fleets import wishes
from tests.solving.oracle import instances
from tests.verifier.test_mutations import survivors

SMALL: dict[str, Any] = {
    "cluster__gpus": 32,
    "workload__0__global_batch": 24,
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "rail-only",
}


def test_price_intervals_leave_the_rest_alone_at_one() -> None:
    plain = ask()
    robust = ask(robust={"aim": "worst-case"})
    assert coopt.solve(robust).design == coopt.solve(plain).design


def test_worst_prices_are_those_of_the_upper_ends() -> None:
    plan = coopt.solve(ask(robust={"prices": {"switch": [0.5, 2.0], "hb": [0.9, 1.0]}}))
    dearer = sum(item.usd / 2 for item in plan.cost.items if item.kind == "switch")
    assert plan.couplings.outlooks.list_value == pytest.approx(plan.cost.capex_usd - dearer)


def test_regret_is_no_more_than_that_of_the_plan_for_today() -> None:
    wish = {"aim": "regret", "prices": {"switch": [0.3, 3.0], "nic": [0.5, 2.0], "hb": [0.5, 2.0]}}
    plan = coopt.solve(ask(robust=wish))
    assert plan.objective.value == pytest.approx(max(turn.value - turn.best for turn in plan.couplings.outlooks.turns))
    assert len(plan.couplings.outlooks.turns) == 8


def test_surviving_more_never_costs_less() -> None:
    values = []
    for survive in ([], ["nic"], ["nic", "plane"]):
        wish = {"survive": survive, "slower": 1.1} if survive else {}
        values.append(coopt.solve(ask(network__fabrics="rail-only", robust=wish)).objective.value or math.inf)
    assert values == sorted(values)


@pytest.mark.parametrize(
    "wish", [{"survive": ["nic"], "slower": 1.5}, {"aim": "regret", "prices": {"nic": [0.5, 2.0]}}]
)
def test_every_mutant_is_rejected(wish: dict[str, Any]) -> None:
    few = {"cluster__gpus": 16, "workload__0__global_batch": 16, "workload__0__mapping": {"micro_batch": 1}}
    instance = ask(robust=wish, network__fabrics="rail-only", network__hb_domains="hgx-h100-8", **few)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert survivors(instance, plan.model_dump(mode="json", by_alias=True)) == []


def test_a_single_domain_has_no_network_to_lose() -> None:
    few = {"cluster__gpus": 8, "workload__0__global_batch": 16, "workload__0__max_iteration_time_s": 9.0}
    instance = ask(robust={"survive": ["nic", "plane"]}, network__hb_domains="hgx-h100-8", **few)
    plan = accepted(instance)
    assert plan.design.fabric.tiers == 0


def test_the_report_says_what_the_plan_stands() -> None:
    instance = ask(robust={"survive": ["nic"], "slower": 1.5, "prices": {"switch": [0.8, 1.4]}})
    text = rendered(plan_report(instance, coopt.solve(instance)))
    assert "What it stands" in text
    assert "any one nic lost" in text
    assert "traffic of a domain takes" in text
    assert "every bound, 1.5 times as long, is still met" in " ".join(text.split())
    assert "at list prices" in text


def test_a_plan_that_nothing_can_happen_to_says_nothing_of_what_it_stands() -> None:
    instance = ask(robust={})
    assert "What it stands" not in rendered(plan_report(instance, coopt.solve(instance)))


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        ({"slower": 1.5}, "robust.slower = 1.5: allows slower iterations after a loss, needs robust.survive"),
        ({"aim": "regret"}, "robust.aim = 'regret': nothing may turn out otherwise"),
        ({"efficiency": [1.0, 0.9]}, r"robust.efficiency = \[1, 0.9\]: needs the smaller factor first"),
        (
            {"efficiency": [1.0, 1.6]},
            r"\[1, 1.6\]: more than the peaks of h100-sxm, needs at most 1.47",
        ),
        ({"prices": {"nic": [2.0, 1.0]}}, r"nic = \[2, 1\]: needs the smaller factor first"),
        ({"survive": ["pod"]}, "needs one of 'nic', 'leaf', 'plane' or 'domain'"),
        ({"survive": ["nic"], "slower": 0.5}, "robust.slower = 0.5: needs a factor from 1 to 1000, or a table"),
        ({"survive": ["nic"], "slower": "twice"}, "robust.slower = 'twice': needs a factor from 1 to 1000, or a table"),
        ({"survive": ["nic"], "slower": {"nic": 0.5}}, "robust.slower.nic = 0.5: needs at least 1"),
        ({"survive": ["nic"], "slower": {"gpu": 2.0}}, "robust.slower.gpu: unknown key"),
        (
            {"survive": ["nic"], "slower": {"domain": 2.0}},
            "robust.slower.domain = 2: belongs to no loss, needs 'domain' in robust.survive",
        ),
        ({"survive": ["nic", "nic"]}, "robust.survive: 'nic' appears twice"),
        ({"prices": {"nic": [1.0, 2.0, 3.0]}}, "nic"),
    ],
)
def test_what_makes_no_sense_is_refused(wish: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ask(robust=wish)
    assert re.search(complaint, "\n".join(sentences(refused.value, Instance)))


def test_what_nobody_survives_is_said() -> None:
    plan = coopt.solve(ask(network__fabrics="clos", robust={"survive": ["plane"], "slower": 9.0}))
    assert plan.status == "infeasible"
    assert plan.explanation[0].startswith("robust.survive = plane: no network")


def test_a_search_stopped_before_regret_is_known_claims_nothing_of_it() -> None:
    cancel = threading.Event()
    plan = coopt.solve(
        ask(robust={"aim": "regret", "prices": {"switch": [0.3, 3.0]}}),
        cancel=cancel,
        on_progress=lambda step: cancel.set() if "prices may turn out" in step.message else None,
    )
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", "interrupted", None)


def test_progress_counts_the_ways_prices_may_turn_out_of_all_there_are() -> None:
    for prices, total in (({"switch": [0.9, 1.1]}, "2 ways"), ({"switch": [1.1, 1.1]}, "1 way")):
        steps: list[coopt.Progress] = []
        coopt.solve(ask(robust={"aim": "regret", "prices": prices}), on_progress=steps.append)
        assert f"1 of {total} prices may turn out" in [step.message for step in steps]


def test_a_bound_on_regret_is_doubted_without_a_plan_as_well() -> None:
    instance = ask(robust={"aim": "regret", "prices": {"nic": [0.5, 2.0]}}, cluster__gpus=16)
    plan = coopt.solve(instance)
    empty = NOTHING_BUILT | {"status": "unknown"}
    for bound, right in ((0.0, True), (plan.objective.value, True), (1e12, False)):
        claim = plan.objective.model_copy(update={"value": None, "bound": bound, "gap": None})
        verdict = coopt.verify(instance, plan.model_copy(update=empty | {"objective": claim}))
        assert verdict.accepted == right
        assert {check.name for check in verdict.failures} <= {"bound"}


def test_regret_is_measured_from_optima_whatever_the_gap() -> None:
    instance = ask(robust={"aim": "regret", "prices": {"switch": [0.3, 3.0], "hb": [0.5, 2.0]}})
    exact, loose = coopt.solve(instance), coopt.solve(instance, gap=0.5)
    assert [turn.best for turn in loose.couplings.outlooks.turns] == [
        turn.best for turn in exact.couplings.outlooks.turns
    ]
    assert coopt.verify(instance, loose).accepted


@pytest.mark.parametrize("fabric", ["rail-only", "rail-optimized", "clos"])
def test_a_lost_nic_slows_an_iteration_as_slower_nics_would(fabric: str) -> None:
    instance = ask(network__fabrics=fabric, network__hb_domains="hgx-h100-8")
    plan = coopt.solve(instance)
    (chosen,), (workload,) = plan.workloads, pinned(instance, [run.mapping for run in plan.workloads])
    family, uplinks = family_of_plan(instance, plan)
    slower = family.nic.gbit_s / without_nics(family, 1)[0]
    weak = replace(family, nic=family.nic.model_copy(update={"gbit_s": slower}))
    whole, _ = mappings(workload, family.gpus)
    pool = place(workload, instance.cluster.gpu, family.hb, context_of(weak).site, whole)
    rows = (np.array([row]) for row in range(len(pool)))
    taken = [placement_of(workload, pool.mappings.take(row), pool.placements.take(row)) for row in rows]
    time_s = pool.time_s(context_of(weak), uplinks)[taken.index(chosen.placement)]
    (after,) = next(fault for fault in coopt.faults(instance, plan).faults if fault.part == "NIC").workloads
    assert after.iteration_time_s == pytest.approx(time_s, rel=1e-12)


def test_idle_gpus_turn_out_as_dear_as_gpus_and_not_as_their_domains() -> None:
    """Two domains of 12 with 8 active each: 8 idle GPUs at the list price, whatever HB domains cost."""
    asked: dict[str, Any] = {
        "cluster__gpus": 16,
        "workload__0__global_batch": 16,
        "network__hb_domains": [{"name": "hb12", "size": 12, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}],
        "objective": {"include": ["hb"]},
    }
    for kind, share in (("hb", 1.0), ("gpu", 2.0)):
        instance = ask(robust={"prices": {kind: [0.5, 2.0]}}, **asked)
        plan = coopt.solve(instance)
        assert plan.objective.value == 8 * 30_000 * share == enumerated(instance)
        assert coopt.verify(instance, plan).accepted


def robust_faults(instance: Instance, plan: Plan) -> dict[str, list[Fault]]:
    """What `coopt faults` says of each kind of part that the plan has to stand without."""
    asked: dict[str, list[Fault]] = {}
    for fault in coopt.faults(instance, plan).faults:
        if fault.slower is not None:
            asked.setdefault(fault.part, []).append(fault)
    return asked


@settings(max_examples=example_count(10))
@given(base=instances(), robust=wishes())
def test_every_loss_that_a_plan_has_to_stand_keeps_the_longer_bounds(base: Instance, robust: Robust) -> None:
    instance = base.model_copy(update={"robust": robust})
    plan = coopt.solve(instance, reasons=False)
    for faults in robust_faults(instance, plan).values() if plan.status == "optimal" else ():
        for workload in (workload for fault in faults for workload in fault.workloads):
            assert workload.within_bound
            assert workload.iteration_time_s <= workload.bound_s * (1 + 1e-9)


def test_the_longer_bounds_are_told_of_what_a_plan_has_to_stand_alone() -> None:
    instance = ask(**SMALL, robust={"survive": ["nic", "plane"], "slower": {"nic": 1.5, "plane": 2}})
    plan = coopt.solve(instance)
    bound_s = instance.workload[0].bound_s
    asked = robust_faults(instance, plan)
    told = {part: {(fault.slower, fault.workloads[0].bound_s / bound_s) for fault in asked[part]} for part in asked}
    assert told == {"NIC": {(1.5, 1.5)}, "link from NIC to leaf": {(1.5, 1.5)}, "plane": {(2.0, 2.0)}}
    of_leaves = [fault for fault in coopt.faults(instance, plan).faults if fault.part == "leaf switch"]
    assert {fault.workloads[0].bound_s for fault in of_leaves} == {bound_s}
    # a plane has one NIC of each domain
    assert asked["plane"][0].workloads[0].iteration_time_s == asked["NIC"][0].workloads[0].iteration_time_s
    text = " ".join(rendered(faults_report(coopt.faults(instance, plan))).split())
    longer = "1.5 times as long without a NIC or a link from NIC to leaf and 2 times as long without a plane"
    assert f"[robust] makes bounds {longer}; every bound is kept then." in text


def test_a_mapping_that_would_be_late_gives_way_to_one_that_is_not() -> None:
    """Half a domain hangs on a leaf; TP over both domains waits for the other half."""
    instance = ask(
        cluster__gpus=16,
        workload__0__global_batch=16,
        workload__0__max_iteration_time_s=0.09,
        workload__0__options={"dp_mode": "stale-1"},
        network__hb_domains="hgx-h100-8",
        network__fabrics="clos",
        network__switches=[switch(8, 300)],
        network__bundles="any",
        robust={"survive": "leaf", "slower": 1.5},
    )
    plan = accepted(instance)
    leaves = robust_faults(instance, plan)["leaf switch"]
    (late,) = (fault for fault in leaves if fault.workloads[0].job is not None)
    (workload,) = late.workloads
    plain = next(
        fault
        for fault in coopt.faults(instance.model_copy(update={"robust": None}), plan).faults
        if (fault.part, fault.count) == ("leaf switch", late.count)
    )
    assert plain.workloads[0].iteration_time_s > 0.09 * 1.5
    assert workload.job.mapping != plan.workloads[0].mapping
    assert (workload.within_bound, workload.iteration_time_s) == (True, workload.job.iteration_time_s)
    assert late.restarts
    text = " ".join(rendered(faults_report(coopt.faults(instance, plan))).split())
    assert "restart; by another mapping" in text
    assert "Without a leaf switch, w: 16 GPUs" in text


def test_a_domain_that_a_plan_stands_is_lost_by_the_job_that_the_plan_names() -> None:
    instance = ask(**SMALL, robust={"survive": "domain", "slower": 3})
    plan = accepted(instance)
    assert plan.couplings.outlooks is not None
    (survived,) = plan.couplings.losses[0].survived
    asked = robust_faults(instance, plan)
    assert list(asked) == ["GPU", "HB domain"]
    for (fault,) in asked.values():
        assert tuple(workload.job for workload in fault.workloads) == survived.workloads
        assert (fault.effect, fault.slower) == ("slower", 3.0)
    text = " ".join(rendered(faults_report(coopt.faults(instance, plan))).split())
    assert text.startswith("Training survives the loss of any one part, at worst")
    (run,) = survived.workloads
    assert f"Without an HB domain, w: {run.gpus} GPUs" in text
    assert "Training waits for a GPU" not in text


def test_what_is_cheapest_at_low_prices_and_over_the_budget_at_the_listed_ones_hides_no_other() -> None:
    """A large domain with six idle GPUs costs least where these cost $400; the budget leaves the small ones."""
    table = question(
        cluster={"gpu": {"extends": "h100-sxm", "usd": 2000.0}, "gpus": 16},
        workload=[
            {
                "name": "w",
                "model": small_model(),
                "global_batch": 48,
                "gpus": [2],
                "mapping": {"micro_batch": 1, "cp": 1, "recompute": "none"},
                "max_iteration_time_s": 10.0,
            }
        ],
        network={
            "hb_domains": [
                {"name": "large", "size": 8, "gbyte_s": 450.0, "usd_per_gpu": 0.0, "w_per_gpu": 30.0},
                {"name": "small", "size": 1, "gbyte_s": 450.0, "usd_per_gpu": 400.0, "w_per_gpu": 0.0},
            ],
            "fabrics": "rail-only",
            "nics": {"name": "n", "gbit_s": 400.0, "usd": 500.0, "w": 5.0},
            "switches": {"name": "s", "radix": 4, "port_gbit_s": 400.0, "usd": 2000.0, "w": 20.0},
            "optics": {"name": "o", "gbit_s": 400.0, "reach_m": 500.0, "usd": 100.0, "w": 12.0},
            "oversubscription": 2.0,
        },
        objective={"minimize": "capex", "include": [*KINDS]},
        limits={"capex_usd": 15_500},
        sharing={"mode": "partition"},
        robust={"prices": {"gpu": [0.2, 1.1]}, "aim": "regret"},
    )
    plan = accepted(Instance.model_validate(table))
    assert (plan.status, plan.objective.value) == ("optimal", 0.0)
    (part,) = plan.parts
    assert part.design.hb_domain.name == "small"
