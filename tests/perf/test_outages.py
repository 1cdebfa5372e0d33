"""Ports of NICs that are out while training goes on: shares by drawing outages one by one."""

import random
from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.network.space import families
from coopt.report.plan import evaluation_report
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.solving.days import fastest_on
from coopt.solving.evaluate import evaluate_instance
from coopt.solving.without_parts import plan_faults
from coopt.verifier.audit import verify
from tests.conftest import question
from tests.solving.interrupted import ITERATIONS, in_days

RATES = {"name": "ports", "optic": {"per_year": 8.0}, "switch": {"per_year": 80.0}, "flap": {"per_year": 500.0}}
YEAR_S = 365 * 86400.0


def planar(planes: int, train_days: float = 20.0, **changes: Any) -> Instance:
    """32 GPUs whose NICs have so many ports, in days."""
    nic = {"name": "nic", "gbit_s": 400, "ports": [1, 2, 4], "usd": 1000, "w": 20}
    modes = [{"radix": 16 * n, "port_gbit_s": 400 / n} for n in (2, 4)]
    box = {"name": "box", "radix": 16, "port_gbit_s": 400, "modes": modes, "usd": 9000, "w": 90}
    optic = {"name": "wide", "gbit_s": 400, "breakout": [2, 4], "reach_m": 500, "usd": 500, "w": 17}
    network = {"nics": [nic], "switches": [box], "optics": [optic], "nic_planes": planes, "fabrics": ["clos"]}
    table = question(cluster__gpus=32, availability={"rates": RATES, "flap_s": 600.0, "spare_domains": 0})
    table["network"] |= network
    table["workload"][0] = in_days(table["workload"][0], 1.0) | {"train_days": train_days}
    del table["workload"][0]["max_iteration_time_s"]
    return Instance.model_validate({**table, **changes})


def drawn_share(per_s: float, out_s: float, draw: random.Random, count: int) -> float:
    """The share of the time in which something is out, of so many outages drawn one after the other."""
    clock = ends = out = 0.0
    for _ in range(count):
        clock += draw.expovariate(per_s)
        back = clock + draw.expovariate(1 / out_s)
        out += max(back - max(ends, clock), 0.0)
        ends = max(ends, back)
    return out / clock


@pytest.mark.parametrize("planes", [1, 2, 4])
def test_outages_drawn_one_by_one_take_the_share_of_the_closed_form(planes: int) -> None:
    family = next(one for one in families(planar(planes)) if one.tiers)
    shares = [share for share, _ in family.slow_times]
    ends, repair_s, draw = 2 * 32 * planes, 24 * 3600.0, random.Random(1)
    flaps = drawn_share(ends * 500 / YEAR_S, 600.0, draw, 50_000)
    broken = drawn_share(ends * 8 / YEAR_S, repair_s, draw, 50_000) if planes > 1 else 0.0
    leaf = drawn_share(family.chassis * 80 / YEAR_S, repair_s, draw, 50_000) if planes > 1 else 0.0
    link = (1 - leaf) * (1 - (1 - flaps) * (1 - broken))
    assert shares == pytest.approx([leaf, link] if planes > 1 else [link], rel=0.02)


def test_an_outage_costs_less_the_more_ports_a_nic_has_and_training_waits_for_the_only_one() -> None:
    slower = [next(one for one in families(planar(planes)) if one.tiers).slow_times for planes in (1, 2, 4)]
    assert slower[0][0].slower == float("inf")
    for state in (0, 1):
        assert 1.0 < slower[2][state].slower < slower[1][state].slower <= 2.0


def test_a_plan_counts_ports_that_are_out_as_its_faults_do() -> None:
    """A link or a leaf that breaks slows an iteration; the mean of the pace lies between, and is part of the days."""
    plan = solve(planar(2))
    (run,) = plan.workloads
    assert 0.0 < run.uptime.port_out < 1.0
    faults = {fault.part: fault for fault in plan_faults(planar(2), plan).faults}
    (link,), nic = (fault for part, fault in faults.items() if "NIC to leaf" in part), faults["NIC"]
    assert (link.restarts, nic.restarts) == (False, True)
    assert link.slowdown is not None
    assert 1.0 - run.uptime.port_out * (1 - 1 / 2) <= run.uptime.pace < 1.0
    tight = run.iteration_time_s * ITERATIONS / 86400 / run.uptime.goodput
    again = solve(planar(2, tight * 1.0001))
    assert again.objective.value == plan.objective.value
    assert verify(planar(2, tight * 1.0001), again).accepted
    said = " ".join(rendered(plan_screen(planar(2), plan)).split())
    assert "link of a NIC" in said


def test_flaps_shorten_days_of_networks_with_one_port_and_end_no_run() -> None:
    """Training waits for a link that flaps; the time between failures stays."""
    without = {name: rate for name, rate in RATES.items() if name != "flap"}
    quiet = planar(1, availability={"rates": without, "spare_domains": 0})
    (flapping,), (calm,) = solve(planar(1)).workloads, solve(quiet).workloads
    assert flapping.uptime.failure_s == calm.uptime.failure_s
    assert flapping.uptime.pace == pytest.approx(1.0 - flapping.uptime.port_out)
    assert flapping.uptime.goodput == pytest.approx(calm.uptime.goodput * flapping.uptime.pace)
    assert calm.uptime.pace == 1.0


def test_a_bound_in_days_counts_ports_that_are_out_after_one_in_seconds_did_not() -> None:
    """Runs are kept from plan to plan by what they depend on."""
    instance = planar(1)
    (days,) = instance.workload
    seconds = days.model_copy(update={"train_days": None, "max_iteration_time_s": days.bound_s})
    family = next(one for one in families(instance) if one.tiers)
    runs = [fastest_on(instance, family, family.uplink_choices[-1], workload) for workload in (seconds, days, seconds)]
    waits = 1.0 - family.slow_times[0].share
    assert [run.uptime.pace for run in runs] == pytest.approx([1.0, waits, 1.0])


def test_a_network_whose_links_always_flap_never_trains() -> None:
    """A thousand flaps a year of a day each leave no moment in which all links are up; one domain has no links."""
    always = {"name": "flaps", "flap": {"per_year": 1000.0}}
    asked = {"availability": {"rates": always, "flap_s": 86400.0}}
    hopeless = planar(1, **asked)
    few = hopeless.workload[0].mapping.model_copy(update={"tp": (8,), "micro_batch": (1,)})
    hopeless = hopeless.having(workload=(hopeless.workload[0].having(mapping=few),))
    plan = solve(hopeless)
    assert plan.status == "infeasible"
    assert any("no design" in text for text in plan.explanation)
    assert verify(hopeless, plan).accepted
    domains = [{"name": "hb32", "size": 32, "gbyte_s": 450, "usd_per_gpu": 9e6, "w_per_gpu": 1}, "hgx-h100-8"]
    table = hopeless.model_dump(by_alias=True)
    table["network"] |= {"hb_domains": domains}
    alone = Instance.model_validate(table)
    plan = solve(alone)
    assert plan.design.hb_domain.name == "hb32"
    assert verify(alone, plan).accepted


def test_domains_that_are_never_enough_are_explained() -> None:
    lost = {"name": "lost", "gpu": {"per_year": 1000.0}}
    instance = planar(1, availability={"rates": lost, "repair_hours": 1e6, "spare_domains": 0})
    plan = solve(instance)
    assert plan.status == "infeasible"
    assert plan.explanation
    assert verify(instance, plan).accepted


def test_a_design_that_never_trains_can_still_be_worked_out() -> None:
    always = {"name": "flaps", "flap": {"per_year": 1000.0}}
    table = planar(1, availability={"rates": always, "flap_s": 86400.0}).model_dump(by_alias=True, exclude_unset=True)
    degrees = {"tp": 2, "pp": 2, "micro_batch": 1, "interleave": 1}
    table["workload"][0]["mapping"] = {**degrees, "recompute": "none", "sequence_parallel": True, "zero": 0}
    table["network"] |= {"hb_domains": "hgx-h100-8", "oversubscription": 1.0}
    instance = Instance.model_validate(table)
    worked_out = evaluate_instance(instance)
    assert worked_out.workloads[0].uptime.goodput == 0.0
    assert not worked_out.limits[0].ok
    assert "infinitely long" in rendered(evaluation_report(instance, worked_out))


@pytest.mark.parametrize("claimed", [0.0, 1e-300, 2.0])
def test_a_claimed_pace_is_never_relied_on(claimed: float) -> None:
    """A plan that says a wrong pace is rejected for it, and the verifier divides by none."""
    instance = planar(4)
    plan = solve(instance)
    run = plan.workloads[0]
    told = run.model_copy(update={"uptime": run.uptime.model_copy(update={"pace": claimed})})
    changed = {"workloads": (told,)}
    lied = plan.model_copy(update=changed | {"parts": (plan.parts[0].model_copy(update=changed),)})
    verdict = verify(instance, lied)
    assert [check.name for check in verdict.checks if not check.ok] == ["uptime"]
