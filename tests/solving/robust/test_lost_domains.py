"""The loss of an HB domain: anchors by hand, whole blocks on what is left, and costs that move one way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import coopt
from coopt.columns.flows import Groups
from coopt.columns.grid import Context, DomainSet, context_left, divisors
from coopt.columns.loads import crossings
from coopt.network.family import Family
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.perf.collectives import KINDS
from coopt.plan.couplings import Survived
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.words import rendered
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.losses import job_family, reach_of_job
from coopt.verifier.parts.design_checks import check_design, check_ports
from coopt.verifier.parts.spans import other_ways
from coopt.verifier.training.placing import Placement
from tests.conftest import accepted, ask, switch
from tests.verifier.test_mutations import survivors

SIXTEEN = {"cluster__gpus": 128, "workload__0__global_batch": 128, "workload__0__max_iteration_time_s": 0.1075} | {
    "network__hb_domains": "hgx-h100-8",
    "network__switches": [switch(8, 5000)],
    "network__fabrics": "rail-only",
    "network__bundles": "any",
}
PAIR = {"cluster__gpus": 16, "workload__0__global_batch": 16, "workload__0__mapping": {"micro_batch": 1}}


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


def test_a_loss_that_nobody_stands_is_named_with_the_least_that_would_do() -> None:
    plan = solved(1.0, **SIXTEEN)
    assert plan.status == "infeasible"
    (said,) = plan.explanation
    assert said.startswith(
        "robust.survive = domain: no network that meets the bounds still meets them, 1 times as long"
    )
    least = float(said.split("robust.slower.domain of at least ")[1].split(",")[0])
    assert solved(least, **SIXTEEN).status == "optimal"
    assert solved(least - 1e-4, **SIXTEEN).status == "infeasible"


def test_of_several_losses_the_fatal_one_is_named() -> None:
    instance = ask(robust={"survive": ["nic", "domain"], "slower": {"nic": 2.0}}, **SIXTEEN)
    (said,) = coopt.solve(instance).explanation
    assert said.startswith("robust.survive = domain: ")
    least = float(said.split("needs robust.slower.domain of at least ")[1].split(",")[0])
    eased = ask(robust={"survive": ["nic", "domain"], "slower": {"nic": 2.0, "domain": least}}, **SIXTEEN)
    assert coopt.solve(eased).status == "optimal"


def test_losses_that_only_clash_are_named_together() -> None:
    one_domain = {"name": "all", "size": 16, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
    two = {"network__hb_domains": [one_domain, "hgx-h100-8"], "network__fabrics": "clos"} | PAIR
    two["network__switches"] = [switch(16, 11000)]
    wish = {"survive": ["leaf", "domain"], "slower": {"domain": 3.0}}
    plan = coopt.solve(ask(robust=wish, **two))
    assert plan.status == "infeasible"
    (said,) = plan.explanation
    assert said.startswith("robust.survive = leaf, domain: each of these losses is survived by some network")


def test_a_single_domain_is_cheapest_and_survives_nothing() -> None:
    one_domain = {"name": "all", "size": 16, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
    choice = {"network__hb_domains": [one_domain, "hgx-h100-8"]} | PAIR
    plain = coopt.solve(ask(**choice))
    assert (plain.design.hb_domain.count, plain.objective.value) == (1, 0.0)
    plan = solved(3.0, **choice)
    assert (plan.design.hb_domain.name, plan.design.hb_domain.count) == ("hgx-h100-8", 2)
    assert solved(3.0, **choice | {"network__hb_domains": [one_domain]}).status == "infeasible"


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


def test_a_number_and_a_table_of_it_ask_the_same() -> None:
    wish = {"survive": ["nic", "domain"]}
    number = ask(robust=wish | {"slower": 1.5})
    table = ask(robust=wish | {"slower": dict.fromkeys(("nic", "leaf", "plane", "domain"), 1.5)})
    assert number == table
    plan = coopt.solve(ask(robust=wish | {"slower": {"nic": 1.2, "domain": 1.6}}))
    assert [(one.part, one.slower) for one in plan.couplings.losses[0].survived] == [("nic", 1.2), ("domain", 1.6)]


def test_every_mutant_of_a_restart_is_rejected() -> None:
    wish = {"survive": ["domain"], "slower": 3.0}
    instance = ask(robust=wish, network__fabrics="rail-only", network__hb_domains="hgx-h100-8", **PAIR)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert survivors(instance, plan.model_dump(mode="json", by_alias=True)) == []


def test_the_report_says_how_training_goes_on() -> None:
    instance = ask(robust={"survive": ["domain"], "slower": 1.05}, **SIXTEEN)
    text = " ".join(rendered(plan_report(instance, coopt.solve(instance))).split())
    assert (
        "any one domain lost: training goes on with fewer GPUs; every bound, 1.05 times as long, is still met" in text
    )
    assert "at list prices" not in text, "there are no others"
    assert "w: 96 GPUs, 8 in each of 12 domains, TP 4, PP 3, DP 8, 0.1113 s of 0.1129 s" in text


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


def reached(context: Context, tp: int, ep: int, dp: int) -> tuple[int, ...]:
    """1 for groups of which nothing leaves a leaf, 2 where nothing leaves a pod, 3 else and where nobody sends."""
    sizes = {"tp": tp, "cp": 1, "stage": dp, "stages": 1, "stages_inside": 1, "closes": 0, "experts": ep, "apart": 1}
    sizes |= {"copies": dp // ep, "filled": 1, "step": 1, "two_way": 0}
    groups = Groups(**{name: np.array([size]) for name, size in sizes.items()})
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
        cluster__gpus=96,
        network__fabrics=fabric,
        network__switches=[switch(8, 5000), switch(16, 11000)],
        network__hb_domains={"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 9, "w_per_gpu": 7},
        network__charge="loads",
        network__routing=routing,
        network__domain_fill="even",
    )
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
            sizes = {
                "tp": 1,
                "cp": 1,
                "stage": domains,
                "stages": 1,
                "stages_inside": 1,
                "closes": 0,
                "experts": 1,
                "apart": 1,
            }
            sizes |= {"copies": domains, "filled": 1, "step": 1, "two_way": 0}
            groups = Groups(**{name: np.array([size]) for name, size in sizes.items()})
            context = context_left(family, site)
            ways = (("dp", "halving"), ("dp", "trees"))
            r = crossings(context.layout, context.discipline, groups, algorithms=ways).reciprocals(1.0, uplinks)
            job = job_family(checked, domains * 4, domains)
            place = Placement(tp_in=4, tp_across=1, pp_in=1, pp_across=1, dp_in=1, dp_across=domains)
            counted = other_ways(reach_of_job(checked, ports, job), 4, place, "dp")
            for flows in ("halving", "trees"):
                again = getattr(counted, flows)
                assert float(r.algorithms["dp", flows][0]) == pytest.approx(again, rel=1e-9), (domains, ports)
                compared += 1 < again < math.inf
    assert compared >= 5
