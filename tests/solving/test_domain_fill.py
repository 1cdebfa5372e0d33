"""Domains that are not filled alike: the optimum by enumeration, confirmed, and never dearer than with even fills."""

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.grid import divisors, uneven_splits
from coopt.columns.table import columns
from coopt.instance.hardware import HbDomain
from coopt.instance.network import DomainFill
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.parts import price
from coopt.network.space import Space, domain_counts, families
from coopt.plan.parts import Design, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report.csv_files import ranks_csv
from coopt.solving.arrays import viable
from coopt.solving.shared import _is_quick, site_floor
from coopt.traffic.flows import demand
from coopt.traffic.ranks import RankGrid, groups, rank_table, split_of
from tests.conftest import accepted, ask, example_count, small_model, switch
from tests.solving.oracle import instances
from tests.solving.questions import racked

RACKS: dict[str, Any] = {"name": "rack", "size": 72, "gbyte_s": 900, "usd_per_gpu": 700, "w_per_gpu": 100}


def filled(instance: Instance, fill: str) -> Instance:
    """The instance with domains filled that way."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"domain_fill": fill})})


def solved(instance: Instance) -> tuple[Plan, Design]:
    """The optimal plan, which the verifier accepts, and its design."""
    plan = accepted(instance)
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
    assert values["any"] == values["fewest"] < values["even"]
    asked = filled(instance, "any")
    assert coopt.solve(asked).solver.families < len(list(families(asked))) / 5  # more idle GPUs are not looked at


def test_replicas_that_share_experts_stay_together() -> None:
    """13 groups of four replicas on domains of twelve: three in the first domains, two in the last."""
    experts = small_model(experts=8, top_k=2, ffn=2048)
    changes = {"cluster__gpus": 52, "workload__0__global_batch": 52, "network__hb_domains": [RACKS | {"size": 12}]}
    split = {"tp": 1, "cp": 1, "pp": 1, "ep": 4}
    changes |= {"workload__0__model": experts, "workload__0__mapping": split, "network__fabrics": "rail-only"}
    instance = ask(**changes, workload__0__max_iteration_time_s=100.0)
    plan, design = solved(instance)
    (run,) = plan.workloads
    assert (design.hb_domain.count, run.placement["dp"], run.placement["ep"]) == (5, (12, 5), (4, 1))
    _check_ranks(split_of(instance.workload[0], run), run, 5, 12)
    _check_gradients(instance.workload[0], run)


def test_an_even_filling_that_holds_no_group_whole_hides_no_uneven_one() -> None:
    """16 racks hold 65 of 1,040 GPUs each, in which no TP groups of four lie, and 20 hold 52; 17 do unevenly."""
    changes = {"cluster__gpus": 1040, "workload__0__global_batch": 1040, "network__hb_domains": [RACKS]}
    changes |= {"workload__0__mapping": {"tp": 4, "pp": 4}, "network__fabrics": "rail-only"}
    changes |= {"workload__0__allow_tp_across": False}
    instance = ask(**changes, workload__0__max_iteration_time_s=100.0)
    built = {fill: solved(filled(instance, fill))[1].hb_domain.count for fill in ("even", "fewest", "any")}
    assert built == {"even": 20, "fewest": 17, "any": 17}


@settings(max_examples=example_count(40))
@given(st.one_of(racked(), instances()), st.sampled_from(["capex", "power", "tco"]))
def test_no_network_is_worth_less_than_the_floor_of_its_site(instance: Instance, kind: Any) -> None:
    asked = instance.model_copy(update={"objective": instance.objective.model_copy(update={"minimize": kind})})
    space = Space(instance=asked)
    for family in families(filled(asked, "any")):
        worth = price(asked, family, kind).at(family, family.uplink_choices[0])
        assert site_floor(space, family.gpus, family.hb, family.domains) <= worth * (1 + 1e-12)


@settings(max_examples=example_count(40))
@given(racked(), st.floats(0.3, 3.0))
def test_a_site_that_is_left_out_as_late_has_no_mapping_in_time(drawn: Instance, slower: float) -> None:
    bounds = [{"max_iteration_time_s": one.bound_s * slower / 20} for one in drawn.workload]
    late = tuple(one.model_copy(update=bound) for one, bound in zip(drawn.workload, bounds, strict=True))
    instance = drawn.model_copy(update={"workload": late})
    nic_options, every = Space(instance=instance).nic_options, tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    for family in viable(instance, every, table):
        assert _is_quick(instance, nic_options, family.gpus, family.hb, family.domains)


def test_every_number_of_domains_is_offered_that_some_fill_needs() -> None:
    instance = ask(cluster__gpus=100, network__hb_domains=[RACKS | {"size": 8}], network__domain_fill="any")
    (workload,), (hb,) = instance.workload, instance.network.hb_domains
    blocks = [b for b in (1, 2, 4, 5, 10, 20, 25, 50, 100) if b <= workload.model.layers]
    full = [8 // group * group for group in (1, 2, 4, 5)]
    counts = {next(d for d in range(b, 101, b) if d * k >= 100) for b in blocks for k in full}
    counts = {d for d in counts if d <= 20} | {-(-100 // k) for k in range(5, 9)}
    assert {family.domains for family in families(instance)} == counts
    assert domain_counts(100, hb, "any", most_blocks=workload.model.layers) == tuple(sorted(counts, reverse=True))


@settings(max_examples=example_count(200))
@given(st.sampled_from([36, 48, 60, 84, 96, 100, 126]), st.sampled_from([5, 6, 8, 9, 12]), st.data())
def test_a_split_that_more_domains_hold_lies_on_no_more_that_are_offered(
    gpus: int, size: int, data: st.DataObject
) -> None:
    """For every placement on any number of domains one with its parts of TP, context and stages, on fewer at most."""
    degrees = data.draw(st.sampled_from([d for d in product(divisors(gpus), repeat=4) if math.prod(d) == gpus]))
    together = data.draw(st.sampled_from(divisors(degrees[-1])))
    hb = HbDomain.model_validate(RACKS | {"size": size})
    offered = domain_counts(gpus, hb, "any", most_blocks=degrees[2])
    for count in range(-(-gpus // size), -(-gpus // (size // 2 + 1)) + 1):
        for *parts, _, _, _ in uneven_splits(*degrees, together, count, size):
            fewer = [d for d in offered if d <= count]
            assert any(parts == list(other[:3]) for d in fewer for other in uneven_splits(*degrees, together, d, size))


def test_uneven_fills_are_offered_by_default_where_they_take_fewer_domains() -> None:
    (hb,) = ask(network__hb_domains=[RACKS]).network.hb_domains
    assert domain_counts(4096, hb, "fewest") == (64, 63, 62, 61, 60, 59, 58, 57)
    assert domain_counts(4104, hb, "fewest") == domain_counts(4104, hb)
    assert domain_counts(1009, hb, "fewest") == domain_counts(1009, hb, "any")
    instance = ask(cluster__gpus=96, network__hb_domains=[RACKS | {"size": 8}])
    assert set(families(instance)) < set(families(filled(instance, "any")))


@settings(max_examples=example_count(200))
@given(st.integers(1, 2000), st.integers(2, 72), st.integers(1, 128))
@example(gpus=22, size=8, layers=11)  # blocks of stages on 11 domains, of which each would be a quarter full
def test_fewest_offers_what_takes_fewer_domains_than_even_ones_with_the_same_groups(
    gpus: int, size: int, layers: int
) -> None:
    hb = HbDomain.model_validate(RACKS | {"size": size})
    kinds: tuple[DomainFill, ...] = ("even", "any", "fewest")
    even, every, fewest = (set(domain_counts(gpus, hb, fill, most_blocks=layers)) for fill in kinds)
    assert even | {count for count in every if count < min(even, default=gpus + 1)} <= fewest <= every
    for group, blocks in product(divisors(gpus), divisors(gpus)):
        if group <= size and blocks <= layers:
            count = next(d for d in range(blocks, gpus * blocks + 1, blocks) if d * (size // group) * group >= gpus)
            as_even = any(d <= count and gpus // d % group == 0 for d in even)
            assert count in fewest or count not in every or as_even


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


@settings(max_examples=example_count(40))
@given(racked())
def test_ranks_traffic_routes_and_losses_are_those_of_the_domains(instance: Instance) -> None:
    asked = filled(instance, "any")
    plan = coopt.solve(asked)
    assume(plan.design is not None)
    for workload, run in zip(asked.workload, plan.workloads, strict=True):
        split = split_of(workload, run)
        _check_ranks(split, run, plan.design.hb_domain.count, plan.design.hb_domain.size)
        _check_gradients(workload, run)
    routed = coopt.route(asked, plan)
    assert routed.algorithm == "ecmp" or all(one.within_bound for one in routed.workloads)
    (part, *_) = coopt.faults(asked, plan).faults
    assert (part.part, part.count) == ("GPU", asked.cluster.gpus[0])
    for traffic in coopt.traffic(asked, plan).workloads:
        assert traffic.gpus == asked.cluster.gpus[0]
        assert sum(one.mean_sent_bytes for one in traffic.per_gpu) * traffic.gpus == pytest.approx(traffic.whole_bytes)
    assert ranks_csv(asked, plan).count("\n") == 1 + sum(run.gpus for run in plan.workloads)


def _check_ranks(split: RankGrid, run: WorkloadPlan, domains: int, size: int) -> None:
    """Every rank has a GPU of its own, groups that lie inside a domain do so, and replicas are as even as they go."""
    table, degrees = rank_table(split), run.mapping
    assert len(set(table.gpu.tolist())) == run.gpus
    places = np.stack([table.tp, table.cp, table.dp, table.pp], axis=1)
    assert len(np.unique(places, axis=0)) == run.gpus
    assert (places.max(0) + 1).tolist() == [degrees.tp, degrees.cp, degrees.dp, degrees.pp]
    domain = table.gpu // split.active
    held = np.bincount(domain, minlength=domains)
    assert len(held) == domains
    assert held.max() <= size
    inside, together = run.placement["dp"][0] * run.placement["dp"][1] > degrees.dp, _together(split.workload, run)
    for stage in range(degrees.pp):
        replicas = np.unique(np.stack([domain, table.dp], axis=1)[table.pp == stage], axis=0)[:, 0]
        counts = np.unique(replicas, return_counts=True)[1]
        assert counts.max() - counts.min() <= inside * together
        assert not inside or not (counts % together).any()
    for kind in ("tp", "cp", "ep") if inside else ():
        members = groups(split, kind).reshape(-1, getattr(degrees, kind))  # type: ignore[arg-type]
        assert all(len(set(one // split.active)) == 1 for one in members)


def _together(workload: Workload, run: WorkloadPlan) -> int:
    """Replicas of a stage whose ranks make up whole expert groups."""
    ranks = run.mapping.cp * (1 if workload.options.expert_tp else run.mapping.tp)
    return math.lcm(run.mapping.ep, ranks) // ranks


def _check_gradients(workload: Workload, run: WorkloadPlan) -> None:
    """A domain sends to others of its stages what it would if all domains held as many replicas as the emptiest."""
    _, count = run.placement["dp"]
    together = _together(workload, run) if count * run.placement["dp"][0] > run.mapping.dp else 1
    fewest = run.mapping.dp // together // count * together
    mapping = run.mapping.model_copy(update={"dp": fewest * count})
    even = run.model_copy(update={"mapping": mapping, "placement": {**run.placement, "dp": (fewest, count)}})
    sent = []
    for one in (run, even):
        found = demand(workload, one)
        across: Counter[tuple[str, int]] = Counter()
        for stream in found.streams:
            if stream.kind == "dp":
                leaves = stream.src // found.active != stream.dst // found.active
                for domain, size in zip((stream.src // found.active)[leaves], stream.size_bytes[leaves], strict=True):
                    across[stream.phase, int(domain)] += float(size)
        sent.append(across)
    assert sent[0] == pytest.approx(sent[1], rel=1e-9)


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
            uneven = plan.design.hb_domain.active * plan.design.hb_domain.count != gpus
            assert ("as the fullest" in one.simulated) == uneven
            seen += uneven and any(flow.slowdown > 1 for flow in one.traffic)
    assert seen
