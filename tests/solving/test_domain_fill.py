"""Domains that are not filled alike: the optimum by enumeration, confirmed, and never dearer than with even fills."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance, Limits
from coopt.network.space import active_choices, families
from coopt.plan.schema import Design, Plan
from tests.conftest import DISCIPLINES, ask, example_count, question, switch
from tests.solving.oracle import enumerated, instances

RACKS: dict[str, Any] = {"name": "rack", "size": 72, "gbyte_s": 900, "usd_per_gpu": 700, "w_per_gpu": 100}


def filled(instance: Instance, fill: str) -> Instance:
    """The instance with domains filled that way."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"domain_fill": fill})})


def solved(instance: Instance) -> tuple[Plan, Design]:
    """The optimal plan, which the verifier accepts, and its design."""
    plan = coopt.solve(instance)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    assert plan.design is not None
    return plan, plan.design


@pytest.mark.parametrize(("gpus", "even", "uneven"), [(4096, 64, 57), (1000, 20, 14)])
def test_a_last_rack_that_is_not_full_saves_racks(gpus: int, even: int, uneven: int) -> None:
    changes = {"cluster__gpus": gpus, "workload__0__global_batch": gpus, "network__hb_domains": [RACKS]}
    instance = ask(**changes, network__fabrics=["rail-only"], workload__0__max_iteration_time_s=100.0)
    values = {}
    assert instance.network.domain_fill == "fewest"
    for fill, racks in (("even", even), ("fewest", uneven), ("any", uneven)):
        plan, design = solved(filled(instance, fill))
        assert design.hb_domain.count == racks
        assert design.spare_gpus == 72 * racks - gpus
        values[fill] = plan.objective.value
    most, count = plan.workloads[0].placement["dp"]
    split = plan.workloads[0].mapping
    assert most == -(-split.dp // count)
    assert most * count > split.dp
    assert values["any"] is not None
    assert values["even"] is not None
    assert values["any"] == values["fewest"] < values["even"]


@st.composite
def racked(draw: st.DrawFn) -> Instance:
    """Random questions whose domains are dear and seldom come out even."""
    drawn, gpus = draw(instances()), draw(st.sampled_from([20, 28, 40, 44, 56, 60, 72, 84, 100]))
    sizes = draw(st.lists(st.sampled_from([6, 7, 8, 11, 12, 16]), min_size=1, max_size=2, unique=True))
    price, rate = draw(st.sampled_from([1000, 9000])), draw(st.sampled_from([50, 450]))
    table = {"gbyte_s": rate, "usd_per_gpu": price, "w_per_gpu": price, "racks": 1}
    slower = draw(st.sampled_from([2.0, 6.0, 20.0]))
    workloads = [
        one.model_copy(
            update={
                "global_batch": gpus * 2,
                "max_iteration_time_s": (one.max_iteration_time_s or 1.0) * slower,
                "options": one.options.model_copy(update={"collectives": "levels"}),
            }
        )
        for one in drawn.workload
    ]
    domains = [HbDomain.model_validate({"name": f"hb{size}", "size": size, **table}) for size in sizes]
    charged = draw(
        st.sampled_from([one for one in DISCIPLINES if one["charge"] == "loads" and one["routing"] != "pinned"])
    )
    network = drawn.network.model_copy(update={"hb_domains": tuple(domains), "domain_fill": "any", **charged})
    changes = {"network": network, "workload": tuple(workloads), "limits": Limits()}
    return drawn.model_copy(update={**changes, "cluster": drawn.cluster.model_copy(update={"gpus": (gpus,)})})


@settings(max_examples=example_count(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(racked())
def test_the_optimum_is_that_of_enumeration_and_no_dearer_than_with_even_fills(instance: Instance) -> None:
    least = coopt.solve(filled(instance, "even")).objective.value or math.inf
    for fill in ("fewest", "any"):
        asked = filled(instance, fill)
        plan = coopt.solve(asked)
        verdict = coopt.verify(asked, plan)
        assert verdict.accepted, verdict.failures
        value = math.inf if plan.objective.value is None else plan.objective.value
        assert value == pytest.approx(enumerated(asked), rel=1e-9)
        assert value == least or value <= least * (1 + 1e-9)
        least = value


def test_every_number_of_domains_is_offered_that_some_fill_needs() -> None:
    instance = ask(cluster__gpus=100, network__hb_domains=[RACKS | {"size": 8}], network__domain_fill="any")
    counts = {-(-100 // active) for active in range(5, 9)}
    assert {family.domains for family in families(instance)} == counts
    (hb,) = instance.network.hb_domains
    assert [-(-100 // active) for active in active_choices(100, hb, "any")] == sorted(counts, reverse=True)


def test_uneven_fills_are_offered_by_default_where_they_take_fewer_domains() -> None:
    (hb,) = ask(network__hb_domains=[RACKS]).network.hb_domains
    assert active_choices(4096, hb, "fewest") == (64, 66, 67, 68, 69, 70, 71, 72)
    assert active_choices(4104, hb, "fewest") == active_choices(4104, hb)
    assert active_choices(1009, hb, "fewest") == active_choices(1009, hb, "any")


@pytest.mark.parametrize(
    "changes",
    [
        {"workload__0__options": {"collectives": "fastest"}},
        {"network__gpus_per_nic": 2},
        {"sharing": {"mode": "partition"}, "workload__0__gpus": [8]},
        {"robust": {"prices": {"nic": [0.5, 2.0]}}},
    ],
)
def test_the_default_is_even_beside_what_asks_for_it(changes: dict[str, Any]) -> None:
    instance = ask(**changes)
    assert instance.network.domain_fill == "even"
    assert Instance.model_validate(instance.model_dump(mode="json", by_alias=True)).sha256 == instance.sha256


def test_even_fills_are_among_them_as_before() -> None:
    instance = ask(cluster__gpus=96, network__hb_domains=[RACKS | {"size": 8}])
    assert set(families(instance)) < set(families(filled(instance, "any")))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"site": [{"name": "a", "power_mw": 1.0}], "cluster__shares": 4}, "site"),
        (
            {"phase": [{"gpus": 32, "year": 0, "workloads": ["w"]}, {"gpus": 64, "year": 1, "workloads": ["w"]}]},
            "phase",
        ),
        ({"robust": {"survive": "nic", "slower": 3.0}}, "robust.survive"),
        ({"network__gpus_per_nic": 2}, "gpus_per_nic"),
        ({"network__charge": "loads", "network__routing": "pinned"}, "pinned"),
        ({"workload__0__options": {"collectives": "fastest"}}, "collectives"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"domain_fill = 'any'.*{words}"):
        Instance.model_validate(question(network__domain_fill="any", **changes))


def test_what_follows_single_ranks_is_refused_in_a_sentence() -> None:
    changes = {"cluster__gpus": 1000, "workload__0__global_batch": 1000, "network__hb_domains": [RACKS]}
    instance = ask(**changes, network__domain_fill="any", workload__0__max_iteration_time_s=100.0)
    plan, _ = solved(instance)
    for study in (coopt.route, coopt.faults, coopt.traffic):
        with pytest.raises(InstanceError, match="filled alike"):
            study(instance, plan)
    assert coopt.bom(plan).usd == pytest.approx(plan.objective.value)
    assert coopt.explain(instance, plan).status == "optimal"


def test_plans_are_simulated_as_they_are_charged() -> None:
    """Replicas alone lie across domains, so that there are no hops between passes to wait for."""
    seen = 0
    for gpus, radix in product((28, 84, 100), (8, 12, 64)):
        changes = {"cluster__gpus": gpus, "workload__0__global_batch": gpus, "workload__0__mapping": {"pp": [1]}}
        changes |= {"network__hb_domains": [RACKS | {"size": 8}], "network__switches": switch(radix, 5000)}
        changes |= {"network__charge": "loads", "network__fabrics": ["clos", "rail-optimized"]}
        instance = ask(**changes, network__domain_fill="any", workload__0__max_iteration_time_s=100.0)
        plan, _ = solved(instance)
        for one in coopt.simulate(instance, plan).workloads:
            assert one.simulated_s == pytest.approx(one.closed_form_s, rel=1e-9)
            assert plan.design is not None
            uneven = plan.design.hb_domain.active * plan.design.hb_domain.count != gpus
            assert ("counts as the fullest" in one.simulated) == uneven
            seen += uneven and any(flow.slowdown > 1 for flow in one.traffic)
    assert seen
