"""Robust plans: what they cost, stand and say, and what nobody can stand; a lost HB domain leaves whole blocks."""

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import coopt
from coopt.columns.flows import Groups
from coopt.columns.grid import Context, DomainSet, context_left, context_of, divisors, mappings
from coopt.columns.loads import crossings
from coopt.columns.pools import place
from coopt.instance.couplings import Robust
from coopt.instance.schema import Instance
from coopt.network.family import Family, without_nics
from coopt.network.plan_networks import baseline_of, design_of, family_of_plan
from coopt.network.space import families
from coopt.perf.collectives import KINDS
from coopt.plan.couplings import Survived
from coopt.plan.schema import Plan
from coopt.plan.traffic import Fault
from coopt.report.faults import faults_report
from coopt.report.plan import headline, plan_report
from coopt.report.words import rendered
from coopt.solving.arrays import placement_of
from coopt.solving.given_mappings import pinned
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.losses import reach_of_job
from coopt.verifier.parts.design_checks import check_design, check_ports
from coopt.verifier.parts.spans import other_ways
from coopt.verifier.training.placing import Placement
from tests.changes import NOTHING_BUILT
from tests.conftest import accepted, ask, example_count, question, small_model, switch
from tests.kinds import FEW
from tests.solving.fleet_oracle import enumerated
from tests.solving.fleets import wishes
from tests.solving.oracle import instances

SMALL: dict[str, Any] = {
    "cluster__gpus": 32, "workload__0__global_batch": 24, "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "rail-only",
}  # fmt: skip


def test_worst_prices_are_those_of_the_upper_ends_and_regret_is_the_largest_of_all_turns() -> None:
    worst = coopt.solve(ask(robust={"prices": {"switch": [0.5, 2.0], "hb": [0.9, 1.0]}}))
    dearer = sum(item.usd / 2 for item in worst.cost.items if item.kind == "switch")
    assert worst.couplings.outlooks.list_value == pytest.approx(worst.cost.capex_usd - dearer)
    wish = {"aim": "regret", "prices": {"switch": [0.3, 3.0], "nic": [0.5, 2.0], "hb": [0.5, 2.0]}}
    regret = coopt.solve(ask(robust=wish))
    turns = regret.couplings.outlooks.turns
    assert len(turns) == 8
    assert regret.objective.value == pytest.approx(max(turn.value - turn.best for turn in turns))


STANDS = "What the plan withstands"
LONGER = "within 1.5 times its time bound"
TOLD = {
    "a loss and prices": (
        {"survive": ["nic"], "slower": 1.5, "prices": {"switch": [0.8, 1.4]}},
        (STANDS, "loss of any one NIC", "traffic of the affected HB domains takes", LONGER, "at list prices"),
        (),
    ),
    "nothing": ({}, (), (STANDS,)),
    "a loss": ({"survive": ["nic"], "slower": 1.5}, ("Bill of materials ",), ("worst prices",)),
    "regret": ({"aim": "regret", "prices": {"switch": [0.8, 3.0]}}, ("Bill of materials ",), ("worst prices",)),
    "lower prices": ({"prices": {"switch": [0.8, 1.0]}}, ("Bill of materials ",), ("worst prices",)),
}


@pytest.mark.parametrize(("wish", "said", "unsaid"), TOLD.values(), ids=TOLD)
def test_the_report_says_what_a_plan_stands(
    wish: dict[str, Any], said: tuple[str, ...], unsaid: tuple[str, ...]
) -> None:
    """Prices that stay as they are are not called the worst where the decision begins."""
    instance = ask(robust=wish, **FEW)
    text = " ".join(rendered(plan_report(instance, coopt.solve(instance))).split())
    assert [words for words in said if words not in text] == []
    assert [words for words in unsaid if words in text.partition("Decision")[0]] == []


def test_a_search_for_regret_counts_prices_and_claims_nothing_where_it_is_stopped_before_it_knows_them() -> None:
    for prices, total in (({"switch": [0.9, 1.1]}, "2 price scenarios"), ({"switch": [1.1, 1.1]}, "1 price scenario")):
        steps: list[coopt.Progress] = []
        coopt.solve(ask(robust={"aim": "regret", "prices": prices}), on_progress=steps.append)
        assert any(step.message.startswith(f"1 of {total}") for step in steps)
    cancel = threading.Event()
    plan = coopt.solve(
        ask(robust={"aim": "regret", "prices": {"switch": [0.3, 3.0]}}),
        cancel=cancel,
        on_progress=lambda step: cancel.set() if "price scenario" in step.message else None,
    )
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", "interrupted", None)


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
    lost_parts = ("1.5", "a NIC or a link from NIC to leaf"), ("2", "a plane")
    longer = " and ".join(f"{times} x each time bound after the loss of {of}" for times, of in lost_parts)
    assert f"[robust] allows {longer}; " in text


def test_a_mapping_that_would_be_late_gives_way_to_one_that_is_not() -> None:
    """Half a domain hangs on a leaf; TP over both domains waits for the other half."""
    instance = ask(
        cluster__gpus=16, workload__0__global_batch=16, workload__0__max_iteration_time_s=0.09,
        workload__0__options={"dp_mode": "stale-1"}, network__hb_domains="hgx-h100-8", network__fabrics="clos",
        network__switches=[switch(8, 300)], network__bundles="any", robust={"survive": "leaf", "slower": 1.5},
    )  # fmt: skip
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
    assert "restart; uses another mapping" in text
    assert "leaf switch, w: 16 GPUs" in text


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
    assert "any one part" in text
    (run,) = survived.workloads
    assert f"HB domain, w: {run.gpus} GPUs" in text
    assert "Training waits" not in text


def test_what_is_cheapest_at_low_prices_and_over_the_budget_at_the_listed_ones_hides_no_other() -> None:
    """A large domain with six idle GPUs costs least where these cost $400; the budget leaves the small ones."""
    table = question(
        cluster={"gpu": {"extends": "h100-sxm", "usd": 2000.0}, "gpus": 16},
        workload=[
            {
                "name": "w", "model": small_model(), "global_batch": 48, "gpus": [2],
                "mapping": {"micro_batch": 1, "cp": 1, "recompute": "none"}, "max_iteration_time_s": 10.0,
            }
        ],
        network={
            "hb_domains": [
                {"name": "large", "size": 8, "gbyte_s": 450.0, "usd_per_gpu": 0.0, "w_per_gpu": 30.0},
                {"name": "small", "size": 1, "gbyte_s": 450.0, "usd_per_gpu": 400.0, "w_per_gpu": 0.0},
            ],
            "fabrics": "rail-only", "nics": {"name": "n", "gbit_s": 400.0, "usd": 500.0, "w": 5.0},
            "switches": {"name": "s", "radix": 4, "port_gbit_s": 400.0, "usd": 2000.0, "w": 20.0},
            "optics": {"name": "o", "gbit_s": 400.0, "reach_m": 500.0, "usd": 100.0, "w": 12.0},
            "oversubscription": 2.0,
        },
        objective={"minimize": "capex", "include": ["hb", "nic", "switch", "optics", "gpu"]},
        limits={"capex_usd": 15_500}, sharing={"mode": "partition"},
        robust={"prices": {"gpu": [0.2, 1.1]}, "aim": "regret"},
    )  # fmt: skip
    plan = accepted(Instance.model_validate(table))
    assert (plan.status, plan.objective.value) == ("optimal", 0.0)
    (part,) = plan.parts
    assert part.design.hb_domain.name == "small"


@pytest.mark.parametrize("kind", ["capex", "tco"])
def test_a_worst_case_and_what_it_is_compared_with_are_at_the_same_prices(kind: str) -> None:
    few = FEW | {"network__fabrics": "clos", "objective": {"minimize": kind}}
    instance = ask(robust={"prices": {"switch": [0.8, 3.0]}}, **few)
    plan = coopt.solve(instance)
    found = baseline_of(instance, plan)
    assert plan.couplings.outlooks is not None
    assert (found.design, found.cost) == (plan.design, plan.cost)  # one tier has full bandwidth
    text = rendered(plan_report(instance, plan, found))
    assert "worst prices without the" in " ".join(text.split())
    assert "Bill of materials, at the worst prices\n" in text
    assert "the same cost and power" in " ".join(text.split())
    stopped = plan.model_copy(update={"status": "feasible", "stop_reason": "time limit"})
    assert "worst prices, gap " in headline(instance, stopped)


SIXTEEN = {"cluster__gpus": 128, "workload__0__global_batch": 128, "workload__0__max_iteration_time_s": 0.1075} | {
    "network__hb_domains": "hgx-h100-8", "network__switches": [switch(8, 5000)], "network__fabrics": "rail-only",
    "network__bundles": "any",
}  # fmt: skip


def solved(slower: Any, **changes: Any) -> Plan:
    """The plan that survives the loss of a domain, or the explanation, accepted by the verifier either way."""
    return accepted(ask(robust={"survive": "domain", "slower": slower}, **changes))


def lost(plan: Plan) -> Survived:
    """What a plan says of the loss of a domain."""
    return next(one for one in plan.couplings.losses[0].survived if one.part == "domain")


@pytest.mark.parametrize(("slower", "uplinks", "usd"), [(1.05, 4, 565_888), (1.1, 3, 553_152), (1.15, 2, 500_416)])
def test_the_less_time_a_loss_may_take_the_more_bandwidth_is_built(slower: float, uplinks: int, usd: float) -> None:
    plan = solved(slower, **SIXTEEN)
    assert (plan.design.fabric.tier[0].uplinks_per_switch, plan.objective.value) == (uplinks, usd)
    (run,) = lost(plan).workloads
    assert (run.gpus, run.mapping.pp, run.bound_s) == (96, 3, pytest.approx(0.1075 * slower))
    instance = ask(robust={"survive": ["domain"], "slower": slower}, **SIXTEEN)
    text = " ".join(rendered(plan_report(instance, plan)).split())
    assert f"within {slower:g} times its time bound" in text
    assert "at list prices" not in text
    assert "w: 96 GPUs, 8 in" in text


def test_a_loss_that_nobody_stands_is_named_with_the_least_that_would_do() -> None:
    plan = solved(1.0, **SIXTEEN)
    assert plan.status == "infeasible"
    (said,) = plan.explanation
    assert said.startswith("robust.survive = domain: no network meets the bounds after the loss of one HB domain: ")
    least = float(said.split("domain of at least ")[1].split(",")[0])
    assert solved(least, **SIXTEEN).status == "optimal"
    assert solved(least - 1e-4, **SIXTEEN).status == "infeasible"


def test_of_several_losses_the_fatal_one_is_named() -> None:
    """A number and a table of it ask the same, and each loss has a factor of its own."""
    instance = ask(robust={"survive": ["nic", "domain"], "slower": {"nic": 2.0}}, **SIXTEEN)
    (said,) = coopt.solve(instance).explanation
    assert said.startswith("robust.survive = domain: ")
    least = float(said.split("domain of at least ")[1].split(",")[0])
    eased = coopt.solve(ask(robust={"survive": ["nic", "domain"], "slower": {"nic": 2.0, "domain": least}}, **SIXTEEN))
    assert [(one.part, one.slower) for one in eased.couplings.losses[0].survived] == [("nic", 2.0), ("domain", least)]
    table = dict.fromkeys(("nic", "leaf", "plane", "domain", "channel"), 1.5)
    number, listed = (ask(robust={"survive": ["nic", "domain"], "slower": one}) for one in (1.5, table))
    assert number == listed


def test_idle_gpus_of_the_other_domains_may_stand_in() -> None:
    spare = {"name": "spare", "size": 12, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
    changes = {"cluster__gpus": 32, "workload__0__global_batch": 96, "network__hb_domains": spare}
    plan = solved(1.0, **changes)
    assert plan.design.hb_domain.active == 8
    (run,) = lost(plan).workloads
    active = math.prod(inside for name, (inside, _) in run.placement.items() if name != "ep")
    assert active > 8
    assert run.gpus <= 32


def test_fewer_gpus_may_train_faster_where_the_batch_divides_better() -> None:
    plan = solved(1.0, workload__0__global_batch=63, workload__0__max_iteration_time_s=0.16)
    (before,), (after,) = plan.workloads, lost(plan).workloads
    assert after.gpus < before.gpus
    assert after.iteration_time_s < before.iteration_time_s


@pytest.mark.parametrize("fabric", ["rail-only", "clos"])
@pytest.mark.parametrize(("gpus", "radix"), [(24, 4), (36, 6), (30, 12)])
def test_groups_keep_to_their_spans_whichever_domain_is_lost(fabric: str, gpus: int, radix: int) -> None:
    pair = {"name": "pair", "size": 2, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
    changes = {"cluster__gpus": gpus, "network__hb_domains": pair, "network__switches": [switch(radix, 1)]}
    changes |= {"network__charge": "loads"}
    found = [family for family in families(ask(network__fabrics=fabric, **changes)) if family.tiers > 1]
    assert found
    checked = 0
    for family in {(f.domains, f.leaf_span, f.pod_span, bool(f.pods)): f for f in found}.values():
        for domains in range(1, family.domains):
            for groups, levels in kept_groups(family, domains):
                checked += 1
                assert all(arranged(family, domains, groups, levels, gone) for gone in range(family.domains))
    assert checked


def kept_groups(family: Family, domains: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Blocks of TP, expert and DP groups on so many domains, and how high the rates say that each reaches."""
    context = context_left(family, DomainSet(gpus=domains * family.active, hb=family.hb.name, domains=domains))
    for dp in divisors(domains):
        for tp in divisors(dp):
            for ep in divisors(dp):
                levels = reached(context, tp, ep, dp)
                if min(levels) < 3 and (levels[0] < 2 or family.pods):
                    yield (tp, ep, dp), levels


def one_group(**sizes: int) -> Groups:
    """Groups of so many domains, of one where nothing is said."""
    return Groups(**{name: np.array([sizes.get(name, 1)]) for name in Groups._fields})


def reached(context: Context, tp: int, ep: int, dp: int) -> tuple[int, ...]:
    """1 for groups of which nothing leaves a leaf, 2 where nothing leaves a pod, 3 else and where nobody sends."""
    groups = one_group(tp=tp, stage=dp, experts=ep, copies=dp // ep, closes=0, two_way=0)
    loads = crossings(context.layout, context.discipline, groups)
    members = {"tp": tp, "ep": ep, "dp": dp // tp}
    flows = [(loads.leaf[k, 0], loads.pod[k, 0]) for k in (KINDS.index(name) for name in members)]
    return tuple(
        3 if size == 1 else 1 if not leaf else 2 if not pod else 3
        for size, (leaf, pod) in zip(members.values(), flows, strict=True)
    )


def arranged(family: Family, domains: int, groups: tuple[int, ...], levels: tuple[int, ...], gone: int) -> bool:
    """Whether some order of the domains left, in whole blocks, keeps every group on its leaf or in its pod."""
    leaf = max(family.leaf_span, 1)
    pod = family.pods.l * leaf if family.pods else family.domains
    spans = [{1: leaf, 2: pod, 3: family.domains}[level] for level in levels]
    for width in dict.fromkeys((family.domains, pod, leaf)):
        for start in range(0, family.domains, width):
            inside = range(start, min(start + width, family.domains))
            for unit in divisors(domains):
                blocks = [inside[i : i + unit] for i in range(0, len(inside) - unit + 1, unit)]
                order = [one for block in blocks if gone not in block for one in block][:domains]
                if len(order) == domains and all(
                    len({one // span for one in order[i : i + group]}) == 1
                    for group, span in zip(groups, spans, strict=True)
                    for i in range(0, domains, group)
                ):
                    return True
    return False


@pytest.mark.parametrize("fabric", ["rail-only", "rail-optimized", "clos"])
@pytest.mark.parametrize("routing", ["spray", "pinned", "ecmp"])
def test_ways_of_a_job_without_a_domain_are_charged_as_the_verifier_counts_them(fabric: str, routing: str) -> None:
    """Replicas on all domains but some, by halving and doubling and by trees, on two tiers and three."""
    asked = ask(
        cluster__gpus=96, network__fabrics=fabric, network__switches=[switch(8, 5000), switch(16, 11000)],
        network__hb_domains={"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 9, "w_per_gpu": 7},
        network__charge="loads", network__routing=routing, network__domain_fill="even",
    )  # fmt: skip
    compared = 0
    for family in [one for one in families(asked) if one.tiers > 1 and one.active == 4]:
        uplinks = family.uplink_choices[0]
        design, ledger = design_of(family, uplinks), Ledger()
        checked = check_design(ledger, asked, design)
        ports = None if checked is None else check_ports(ledger, asked, checked, design.fabric, "capex")
        if checked is None or ports is None:
            continue
        for domains in (23, 20, 16, 12, 7):
            site = DomainSet(gpus=domains * 4, hb=family.hb.name, domains=domains)
            sizes = {"stage": domains, "copies": domains, "closes": 0, "two_way": 0}
            groups = one_group(**sizes)
            context = context_left(family, site)
            ways = (("dp", "halving"), ("dp", "trees"))
            r = crossings(context.layout, context.discipline, groups, algorithms=ways).reciprocals(1.0, uplinks)
            job = checked._replace(gpus=domains * 4, domains=domains)
            place = Placement(tp_in=4, tp_across=1, pp_in=1, pp_across=1, dp_in=1, dp_across=domains)
            counted = other_ways(reach_of_job(checked, ports, job), 4, place, "dp")
            for flows in ("halving", "trees"):
                again = getattr(counted, flows)
                for found, charged in zip((r, r.mean or r), again, strict=True):
                    assert float(found.algorithms["dp", flows][0]) == pytest.approx(charged, rel=1e-9), (domains, ports)
                compared += 1 < again.sure < math.inf
    assert compared >= 5
