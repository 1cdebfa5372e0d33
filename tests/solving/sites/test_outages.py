"""Failures at several sites: what a run can rely on is that of all parts together, and lost channels slow it."""

import math
import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import coopt
from coopt.columns.grid import context_of
from coopt.instance.schema import Instance
from coopt.instance.variants import local_question
from coopt.network.family import Family, levels
from coopt.network.parts import bill, total
from coopt.network.space import families
from coopt.solving.sites import answer
from tests.conftest import question, switch
from tests.solving.sites.oracle import _least_s, _rings, _wait_s, _weighed

YEAR_H = 8760.0
RATES = {"gpu": 2.0, "host": 3.0, "nic": 0.5, "optic": 0.4, "switch": 5.0}  # of a part in a year
CHECKPOINT_S, INTERVAL_S, RESTART_S, REPAIR_H = 40.0, 3600.0, 900.0, 30.0


def interrupted_sites(seed: int) -> Instance:
    draw = random.Random(seed)
    rates = {name: {"per_year": rate * draw.choice([1, 8])} for name, rate in RATES.items()}
    failures = {"name": "ours", "channel": {"per_year": draw.choice([0, 4, 60, 400])}, **rates}
    table = question(
        cluster={"gpu": "h100-sxm", "gpus": 32, "shares": 2},
        site=[{"name": name, "power_mw": draw.choice([0.016, 0.02, 0.06]), "pue": 1.1} for name in ("a", "b")],
        wan=[
            {"between": ["a", "b"], "gbit_s": 100, "usd": draw.choice([2e3, 1e5]), "w": 50, "latency_ms": 1, "most": 4}
        ],
        objective={"minimize": draw.choice(["capex", "tco"]), "include": ["gpu", "hb", "nic", "switch", "optics"]},
        network__switches=[switch(16, 11_000), switch(8, draw.choice([2_000, 9_000]))], network__oversubscription=2.0,
        availability={
            "rates": failures, "checkpoint_s": CHECKPOINT_S, "checkpoint_interval_s": INTERVAL_S,
            "restart_s": RESTART_S, "restart_s_per_1000_gpus": 0.0, "checkpoint_gbyte_s_per_gpu": 1e6,
            "repair_hours": REPAIR_H, "spare_domains": draw.choice([0, 0, 1, 2]),
        },
    )  # fmt: skip
    (workload,) = table["workload"] if isinstance(table["workload"], list) else [table["workload"]]
    workload = {key: value for key, value in workload.items() if key != "max_iteration_time_s"}
    workload |= {"train_tokens": 1e12, "train_days": draw.uniform(25.0, 250.0), "mapping": {"micro_batch": 1}}
    workload |= {"options": {"dp_mode": "sync"}}
    return Instance.model_validate({**table, "workload": [workload]})


def _reliable(instance: Instance, networks: list[tuple[Family, int]], channels: tuple[int, ...], ring: Any) -> float:
    """The share of its days that a run can rely on, over its iteration; by the formulas of docs/days.md."""
    rate = {name: one.per_year for name, one in instance.availability.rates.of_part.items()}
    per_year, up = 0.0, 1.0
    for family, uplinks in networks:
        tiers, hosts = levels(family, uplinks), family.hb.size // 8
        nic = rate["nic"] if family.tiers else 0.0
        per_year += family.gpus * (rate["gpu"] + nic) + family.gpus // 8 * rate["host"]
        per_year += sum(2 * tier.links * rate["optic"] + tier.switches * rate["switch"] for tier in tiers)
        whole = (1 + (rate["gpu"] + nic) * REPAIR_H / YEAR_H) ** family.hb.size
        works = 1 / (whole * (1 + rate["host"] * REPAIR_H / YEAR_H) ** hosts)
        count, spares = family.domains + family.spare_domains, family.spare_domains
        up *= sum(math.comb(count, k) * (1 - works) ** k * works ** (count - k) for k in range(spares + 1))
    per_s = per_year / YEAR_H / 3600
    tried_s = math.exp(per_s * RESTART_S) * math.expm1(per_s * (INTERVAL_S + CHECKPOINT_S)) / per_s
    broken = instance.availability.rates.channel.per_year * REPAIR_H / YEAR_H
    left, paces = 1.0, 0.0
    for lost, lit in enumerate(channels):
        share = left * (1 - math.exp(-lit * broken))
        left -= share
        if lit > 1:
            paces += share / _slowest_s(instance, networks, ring, [c - (n == lost) for n, c in enumerate(channels)])
    paces += left / _slowest_s(instance, networks, ring, channels)
    return up * INTERVAL_S / tried_s * paces


def _slowest_s(instance: Instance, networks: list[tuple[Family, int]], ring: Any, channels: Any) -> float:
    """The iteration of the slowest site with so many channels."""
    times_s = []
    for family, uplinks in networks:
        local = local_question(instance, family.gpus // 16)
        place = local.cluster.gpu, family.hb, context_of(family), uplinks
        times_s.append(_least_s(local.workload[0], *place, _wait_s(ring, tuple(channels))))
    return max(times_s)


def _least(instance: Instance) -> float:
    """The least objective over every ring, division of shares, network and number of channels."""
    least = math.inf
    (workload,) = instance.workload
    for ring in _rings(instance):
        sites, links = ring
        for shares in [(2,)] if len(sites) == 1 else [(1, 1)]:
            menus = [
                [
                    (site, family, u, total(local.objective, bill(local, family, u)))
                    for bare in families(local)
                    for family in [replace(bare, spare_domains=instance.availability.at_each_site)]
                    for u in family.uplink_choices
                ]
                for site, share in zip(sites, shares, strict=True)
                for local in [local_question(instance, share)]
            ]
            for channels in product(*(range(1, link.most + 1) for link in links)):
                ends_w = sum(c * link.w / 2 for c, link in zip(channels, links, strict=True))
                for some in product(*menus):
                    if any((cost.power_w + ends_w) * 1.1 > site.power_mw * 1e6 for site, *_, cost in some):
                        continue
                    value = sum(_weighed(instance, site, cost.capex_usd, cost.power_w) for site, *_, cost in some)
                    halves = ((site, link, c) for site in sites for link, c in zip(links, channels, strict=True))
                    value += sum(c * _weighed(instance, site, link.usd / 2, link.w / 2) for site, link, c in halves)
                    networks = [(family, u) for _, family, u, _ in some]
                    if value < least and workload.bound_s * _reliable(instance, networks, channels, ring) >= 1:
                        least = value
    return least


@pytest.mark.parametrize("seed", range(10))
def test_days_at_several_sites_are_kept_with_all_failures_of_all(seed: int) -> None:
    instance = interrupted_sites(seed)
    least, plan = _least(instance), coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    if plan.cost is None:
        assert math.isinf(least)
        assert plan.status == "infeasible" or "more days" in plan.explanation[0]
        return
    assert plan.objective.bound * (1 - 1e-9) <= least <= plan.objective.value * (1 + 1e-9)
    uptimes = {(run.uptime.goodput, run.uptime.pace, run.bound_s) for part in plan.parts for run in part.workloads}
    assert len(uptimes) == 1
    for part in plan.parts:
        faulted = coopt.faults(instance, plan, part=part.name if len(plan.parts) > 1 else None).faults
        assert all(one.bound_s == part.workloads[0].bound_s for fault in faulted for one in fault.workloads)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"availability": {"spare_domains": [1, 2]}}, "availability.spare_domains"),
        ({"availability": {"confidence": 0.9}}, "availability.confidence"),
        ({"availability": {"rates": {"name": "x", "flap": {"per_year": 1}}}}, "availability.rates.flap"),
        ({"network": {"nic_planes": [1, 2]}}, "network.nic_planes"),
    ],
)
def test_what_is_not_counted_at_several_sites_is_refused(changes: dict[str, Any], named: str) -> None:
    table = interrupted_sites(0).model_dump(mode="json", by_alias=True, exclude_none=True)
    for key, values in changes.items():
        table[key] |= values
    with pytest.raises(coopt.InstanceError, match=rf"{named}.*: .* several"):
        coopt.load(table)


def test_a_search_that_runs_out_of_time_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The days are not to blame where the second search, with the failures of the first answer, is cut short."""
    first = answer._cheapest

    def cut_short(run: Any) -> Any:
        monkeypatch.setattr(answer, "_cheapest", lambda run: answer.unknown(run, "time limit"))
        return first(run)

    monkeypatch.setattr(answer, "_cheapest", cut_short)
    plan = coopt.solve(interrupted_sites(0))
    assert (plan.status, plan.stop_reason, plan.explanation) == ("unknown", "time limit", ())
    assert plan.objective.bound > 0


def test_most_answers_at_several_sites_are_proven() -> None:
    plans = [coopt.solve(interrupted_sites(seed)) for seed in range(10)]
    assert sum(plan.status == "optimal" for plan in plans) >= 5
    assert any(len(plan.parts) == 2 for plan in plans)
    assert any(run.uptime.pace < 1 for plan in plans for part in plan.parts for run in part.workloads)


def test_a_bound_that_only_interruptions_lift_is_not_refuted() -> None:
    """Without those of networks there is a cheaper ring, which misses its days with them."""
    instance = interrupted_sites(8)
    plan, least = coopt.solve(instance), _least(instance)
    assert plan.objective.bound < least == plan.objective.value
    lifted = plan.objective.model_copy(update={"bound": least, "gap": 0.0})
    verdict = coopt.verify(instance, plan.model_copy(update={"objective": lifted, "status": "optimal"}))
    assert verdict.accepted
    assert any("its interruptions" in str(check) for check in verdict.checks)


def test_a_front_whose_plans_interruptions_leave_open_says_so() -> None:
    front = coopt.pareto(interrupted_sites(8))
    assert (front.stop_reason, front.complete) == ("not proven", False)
