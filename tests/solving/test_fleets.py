"""A fleet's plan is the cheapest there is, or regrets least, over all sizes, uplinks, sites and times to buy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.islands.options import ListedIslands
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.fleet import standing
from tests.conftest import ask, example_count, switch
from tests.solving.fleet_oracle import TooManyError, enumerated
from tests.solving.fleets import CORE_ENDS, ENDS, JOINED, SHAPE, SIDES, fleets
from tests.solving.partition_oracle import partitions

UP_TO_THREE = (1, 2, 2, 3)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, sites=(1, 2, 2)))
def test_a_fleet_in_phases_at_sites_costs_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, cores=True, doubts=True))
def test_a_core_that_grows_at_doubtful_prices_agrees_with_enumeration(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, sites=(0, 1, 2), cores=True, doubts=True, losses=True))
def test_everything_at_once_agrees_with_enumeration(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(10))
@given(fleets(many_sided=SIDES))
def test_islands_with_planes_bundles_and_any_filling_cost_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=(2, 2, 3), sites=(0, 1, 2), doubts=True, many_sided=SIDES))
def test_planes_and_bundles_that_grow_cost_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=(1, 1, 2), sites=(0, 0, 2), cores=True, many_sided=JOINED))
def test_planes_and_shared_nics_that_join_a_core_cost_what_enumeration_finds(instance: Instance) -> None:
    plan = agrees_with_enumeration(instance)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures


@settings(max_examples=example_count(20, usual=2))
@given(fleets(many_sided=ENDS, phases=(1, 2), sites=(0, 0, 2), cores=True, doubts=True, losses=True))
def test_islands_whose_links_have_ends_of_their_own_cost_what_enumeration_finds(instance: Instance) -> None:
    own_ends_agree_with_enumeration(instance)


@settings(max_examples=example_count(40, usual=3))
@given(fleets(many_sided=CORE_ENDS, phases=(1, 1, 2), sites=(0, 0, 2), cores=True))
def test_links_into_a_core_have_ends_of_their_own_and_cost_what_enumeration_finds(instance: Instance) -> None:
    own_ends_agree_with_enumeration(instance)


def test_islands_whose_domains_are_not_filled_alike_are_enumerated() -> None:
    """Eight GPUs in three domains of three, of which the last has an idle one."""
    domains = {"name": "three", "size": 3, "gbyte_s": 450, "usd_per_gpu": 700, "w_per_gpu": 30}
    changes = {"sharing": {"mode": "partition"}, "workload__0__gpus": [8], "workload__0__max_iteration_time_s": 100.0}
    plan = agrees_with_enumeration(ask(**changes, network__hb_domains=[domains], network__domain_fill="any"))
    (part,) = plan.parts
    assert part.design is not None
    assert (part.design.hb_domain.count, part.design.spare_gpus) == (3, 1)


def agrees_with_enumeration(instance: Instance) -> Plan:
    """Enumerate, solve and compare; the plan."""
    try:
        least = enumerated(instance)
    except TooManyError:
        assume(False)
    plan = coopt.solve(instance)
    assert value_of(plan) == pytest.approx(least, rel=1e-12, abs=1e-6)
    return plan


def own_ends_agree_with_enumeration(instance: Instance) -> None:
    """The same, beside the same product at both ends of each link, and past the verifier."""
    plan = agrees_with_enumeration(instance)
    network = instance.network.model_dump(by_alias=True) | {"link_ends": "same"}
    assert value_of(plan) <= value(changed(instance, network=network)) * (1 + 1e-12)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures


def value(instance: Instance) -> float:
    """The least objective; infinity where nothing fits."""
    return value_of(coopt.solve(instance))


def value_of(plan: Plan) -> float:
    """What a plan is worth that is the best there is; infinity where nothing fits."""
    if plan.objective.value is None:
        assert plan.status == "infeasible"
        assert plan.explanation
        return math.inf
    assert plan.status == "optimal"
    assert plan.objective.bound == pytest.approx(plan.objective.value, rel=1e-9, abs=1e-3)
    return plan.objective.value


def changed(instance: Instance, **tables: Any) -> Instance:
    """An instance with other tables, checked anew."""
    table = instance.model_dump(by_alias=True) | tables
    return Instance.model_validate(table)


@settings(max_examples=example_count(12))
@given(partitions())
def test_a_fleet_of_nothing_but_islands_is_a_partition(instance: Instance) -> None:
    assert changed(instance, robust={}).problem == "fleet"
    assert value(changed(instance, robust={})) == pytest.approx(value(instance), rel=1e-12, abs=1e-6)


@settings(max_examples=example_count(12))
@given(fleets(phases=UP_TO_THREE, cores=True))
def test_one_site_with_power_enough_is_no_site(instance: Instance) -> None:
    assert value(changed(instance, site=[{"name": "here", "power_mw": 1.0}])) == value(changed(instance, robust={}))


@settings(max_examples=example_count(12))
@given(fleets(phases=(2, 3), sites=(1, 2), cores=True), st.sampled_from([0.7, 0.9, 0.99]))
def test_tighter_bounds_never_cost_less(instance: Instance, share: float) -> None:
    workloads = [
        one | {"max_iteration_time_s": one["max_iteration_time_s"] * share}
        for one in instance.model_dump(by_alias=True)["workload"]
    ]
    assert value(changed(instance, workload=workloads)) >= value(instance) * (1 - 1e-12)


@settings(max_examples=example_count(12))
@given(fleets(phases=(1, 2), sites=(2,), cores=True, doubts=True))
def test_names_and_the_order_of_workloads_and_sites_change_nothing(instance: Instance) -> None:
    table = instance.model_dump(by_alias=True)
    for one in (*table["workload"], *table["site"], *(w for phase in table["phase"] for w in phase["workloads"])):
        one["name"] = f"other {one['name']}"
    for key in ("workload", "site"):
        table[key] = table[key][::-1]
    assert value(Instance.model_validate(table)) == pytest.approx(value(instance), rel=1e-12, abs=1e-6)


@settings(max_examples=example_count(12))
@given(fleets(phases=(1, 2), sites=(0, 2), cores=True), st.sampled_from(["nic", "switch", "gpu"]))
def test_prices_that_are_known_leave_nothing_to_regret(instance: Instance, kind: str) -> None:
    known = {"prices": {kind: [2.0, 2.0]}}
    worst, regret = (changed(instance, robust=known | {"aim": aim}) for aim in ("worst-case", "regret"))
    assume(worst.limits.capex_usd is None)  # which holds at the prices of the instance where regret is minimised
    least = value(worst)
    assert value(regret) == (0.0 if math.isfinite(least) else math.inf)


def two(**changes: Any) -> Instance:
    """Two workloads on up to 32 GPUs."""
    common = {"model": SHAPE, "mapping": {"recompute": "none", "zero": 0, "micro_batch": [1, 2]}}
    table: dict[str, Any] = {
        "cluster__gpus": 32,
        "workload": [
            {"name": "large", "global_batch": 24, "max_iteration_time_s": 0.4, "gpus": [8, 16], **common},
            {"name": "small", "global_batch": 8, "max_iteration_time_s": 0.4, "gpus": [8], **common},
        ],
        "network__hb_domains": [
            {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
        ],
        "network__switches": [switch(16, 11000)],
        "objective": {"include": ["hb", "nic", "switch", "optics", "gpu"]},
        "sharing": {"mode": "partition"},
    }
    return ask(**{**table, **changes})


def test_sizes_of_islands_do_not_bind_what_is_left_after_a_loss() -> None:
    """Three of four domains are left at most, and neither list has 4 or 12 GPUs."""
    least = value_of(agrees_with_enumeration(two(robust={"survive": ["domain"], "slower": 8.0})))
    assert math.isfinite(least)


def test_volume_prices_that_only_a_budget_sees_go_with_regret() -> None:
    discount = {"kind": "gpu", "item": "h100-sxm", "from": [8], "off": [0.1]}
    power = {"minimize": "power", "include": ["hb", "nic", "switch", "optics", "gpu"]}
    doubt = {"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"}
    shared = {"mode": "partition", "discount": [discount]}
    instance = two(objective=power, sharing=shared, robust=doubt, limits={"capex_usd": 900_000.0})
    assert value_of(agrees_with_enumeration(instance)) == 0.0


def test_sites_that_an_earlier_search_looked_at_are_kept_for_other_prices_and_not_for_other_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
    common = {"model": SHAPE, "global_batch": 24, "gpus": [8, 16], "mapping": {"recompute": "none", "zero": 0}}
    slow = {"name": "slow", "max_iteration_time_s": 0.4, **common}
    changes: list[dict[str, Any]] = [
        {},
        {"network__hb_domains": [domain | {"usd_per_gpu": 900}]},
        {"network__hb_domains": [domain | {"gbyte_s": 1}]},
        {"workload": [slow]},
        {"workload": [slow | {"max_iteration_time_s": 0.25}]},
        {"margin": {"time": 0.5}},
        {},
    ]
    listed, calls, looked_into, values = ListedIslands(), [], [], []
    serve = standing._IslandSearch._serve
    monkeypatch.setattr(standing._IslandSearch, "_serve", lambda *given: calls.append(given) or serve(*given))
    for change in changes:
        asked, before = two(robust={}, **change), len(calls)
        again = value_of(solve(asked, listed=listed))
        looked_into.append(len(calls) > before)
        assert again == value(asked)
        values.append(again)
    assert looked_into == [True, False, True, True, True, True, False]
    assert len(set(values)) > 3


def test_limits_that_nothing_keeps_are_named_where_regret_is_minimised() -> None:
    doubt = {"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"}
    plan = coopt.solve(two(robust=doubt, limits={"power_mw": 0.001}))
    assert plan.status == "infeasible"
    assert plan.explanation[0].startswith("limits.power_mw = 0.001")


def growing_at(east_mw: float, west_mw: float, **changes: Any) -> Instance:
    """Two phases at two sites; the second phase takes more."""
    sites = [{"name": name, "power_mw": mw, "pue": 1.5} for name, mw in (("east", east_mw), ("west", west_mw))]
    phases = [{"year": 0, "gpus": 16, "workloads": ["small"]}, {"year": 2, "gpus": 32}]
    objective = {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]}
    return two(site=sites, phase=phases, objective=objective, **changes)


def test_a_limit_that_holds_in_every_phase_is_to_blame_alone() -> None:
    """The least power of a site with which the other one may stay as it is, in the phase that takes most."""
    plan = coopt.solve(growing_at(1e-4, 1e-4))
    named = [
        re.fullmatch(r"power_mw of site (\w+) = 0\.0001: needs at least ([\d.]+) .*", text) for text in plan.explanation
    ]
    least = {match[1]: float(match[2]) for match in named if match is not None}
    assert [*least] == ["east", "west"]
    assert len(least) == len(plan.explanation)
    for site, mw in least.items():
        for power_mw, status in ((mw, "optimal"), (mw * (1 - 1e-4), "infeasible")):
            powers = {"east_mw": 1e-4, "west_mw": 1e-4} | {f"{site}_mw": power_mw}
            assert coopt.solve(growing_at(**powers)).status == status, (site, power_mw)


def test_where_no_limit_of_a_fleet_is_to_blame_alone_those_that_the_cheapest_choice_exceeds_are_named() -> None:
    plan = coopt.solve(two(robust={"survive": ["domain"], "slower": 8.0}, limits={"power_mw": 0.001, "racks": 1.0}))
    assert re.search(
        r"the cheapest without limits takes limits\.power_mw [\d.]+, limits\.racks \d+; needs", plan.explanation[0]
    )
    plan = coopt.solve(growing_at(1e-4, 1.0, limits={"racks": 1.0, "power_mw": 1e-4}))
    assert re.search(
        r"takes limits\.power_mw [\d.]+, limits\.racks \d+, power_mw of site east [\d.]+; needs", plan.explanation[0]
    )


def in_turn(**changes: Any) -> Instance:
    """One network that both workloads have in turn, in two phases."""
    table = two().model_dump(mode="json")["workload"]
    workloads = [{key: value for key, value in one.items() if key not in ("gpus", "mapping")} for one in table]
    phases = [{"year": 0, "gpus": 16}, {"year": 2, "gpus": 16}]
    return two(cluster__gpus=16, workload=workloads, phase=phases, sharing={"mode": "time"}, **changes)


@pytest.mark.parametrize(
    ("question", "whose"), [(two, ["workload 'large'", "workload 'small'"]), (in_turn, ["no network that meets"])]
)
def test_the_loss_that_no_island_survives_is_named(question: Callable[..., Instance], whose: list[str]) -> None:
    """A lost Clos leaf cuts whole domains off, however long bounds are; a lost NIC does not."""
    robust = {"survive": ["nic", "leaf"], "slower": 100.0}
    said = coopt.solve(question(robust=robust, network__fabrics="clos")).explanation
    assert len(said) == len(whose)
    for sentence, who in zip(said, whose, strict=True):
        assert sentence.startswith("robust.survive = leaf: no ")
        assert who in sentence
        assert ", 100 times as long, after the loss of any one leaf: needs another fabric " in sentence
        assert sentence.endswith(" (no robust.slower.leaf up to 1000 is enough)")
    assert coopt.solve(question(robust=robust | {"survive": ["nic"]}, network__fabrics="clos")).status == "optimal"


def test_a_larger_factor_is_advised_where_it_helps() -> None:
    """A bound that the fastest NICs just meet, which a lost one does not."""

    def asked(slower: float) -> Plan:
        instance = two(robust={"survive": ["nic"], "slower": slower})
        large, small = instance.workload
        hasty = large.model_copy(update={"max_iteration_time_s": 0.0306})
        return coopt.solve(instance.model_copy(update={"workload": (hasty, small)}))

    (said,) = asked(1.0).explanation
    assert said.startswith("robust.survive = nic: no island of workload 'large' that meets its bound still meets it")
    assert said.endswith("needs a larger robust.slower.nic, more NICs for each GPU, or faster ones")
    assert asked(16.0).status == "optimal"


def test_losses_of_which_islands_survive_each_but_not_all_are_named_together() -> None:
    """A single domain has no leaf to lose, and several have one that cuts whole domains off."""
    sizes = [
        {"name": f"hb{n}", "size": n, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1} for n in (4, 16)
    ]

    def asked(*lost: str) -> Plan:
        robust = {"survive": lost, "slower": {part: 8.0 for part in lost if part == "domain"}}
        return coopt.solve(two(network__hb_domains=sizes, network__fabrics="clos", robust=robust))

    assert all(asked(lost).status == "optimal" for lost in ("leaf", "domain"))
    large, small = asked("leaf", "domain").explanation
    assert large == (
        "robust.survive = leaf, domain: each of these losses is survived by some island of workload 'large' that meets "
        "its bound, all of them by none: needs a larger robust.slower, or fewer losses to survive"
    )
    assert small == large.replace("'large'", "'small'")


def test_a_bound_that_is_too_short_without_any_loss_is_not_blamed_on_losses() -> None:
    instance = two(robust={"survive": ["leaf"], "slower": 2.0}, network__fabrics="clos")
    large, small = instance.workload
    hasty = small.model_copy(update={"max_iteration_time_s": 1e-4})
    said = coopt.solve(instance.model_copy(update={"workload": (large, hasty)})).explanation
    assert said[0].startswith("robust.survive = leaf: no island of workload 'large' that meets its bound still meets")
    assert said[1].startswith("workload 'small': no island meets its bound on the GPUs there are: needs a longer bound")


@pytest.mark.parametrize(
    ("slower", "note"),
    [
        (100.0, ()),
        ({"nic": 100.0, "leaf": 2.0}, ("robust.slower.leaf has to go as well.",)),
        ({"nic": 100.0}, ()),
    ],
)
def test_a_loss_that_need_not_be_survived_is_a_way_out(slower: Any, note: tuple[str, ...]) -> None:
    def asked(lost: list[str], slower: Any) -> Instance:
        return two(robust={"survive": lost, "slower": slower}, network__fabrics="clos")

    ways = coopt.explain(asked(["nic", "leaf"], slower), time_limit_s=60).relaxations
    (way,) = [one for one in ways if one.changes[0].limit == "robust.survive"]
    assert [(change.now, change.to) for change in way.changes] == [('["nic", "leaf"]', '["nic"]')]
    assert way.notes == note
    left = {"nic": slower["nic"]} if isinstance(slower, dict) else slower
    assert coopt.solve(asked(["nic"], left)).objective.value == way.value


def test_hopeless_limits_have_no_plan() -> None:
    assert math.isinf(value_of(agrees_with_enumeration(two(robust={"survive": ["plane"]}, limits={"racks": 1.0}))))


def test_a_site_of_little_power_takes_the_dearer_part_that_draws_less() -> None:
    """Without power in the objective too."""
    nics = [
        {"name": name, "gbit_s": 400, "usd": usd, "w": w} for name, usd, w in (("hot", 1000, 500), ("cool", 2000, 20))
    ]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}}
    shape["objective"] = {"minimize": "capex", "include": ["gpu", "hb", "nic", "switch", "optics"]}

    def at(power_mw: float) -> tuple[str, float]:
        instance = ask(**shape, workload__0__gpus=64, site=[{"name": "here", "power_mw": power_mw, "pue": 1.0}])
        plan = coopt.solve(instance)
        assert coopt.verify(instance, plan).accepted
        (part,) = plan.parts
        assert part.design is not None
        assert part.design.fabric.nic is not None
        return part.design.fabric.nic.name, part.cost.power_w

    name, power_w = at(1.0)
    assert name == "hot"
    assert at(power_w * 0.999e-6)[0] == "cool"


def test_a_network_that_serves_all_phases_alike_never_changes() -> None:
    """It is bought in the cheap phase before it is needed, and takes no labour."""
    phases = [
        {"year": 0, "gpus": 24, "workloads": ["large"], "price": {"gpu": 0.5, "nic": 0.5}},
        {"year": 2, "gpus": 32, "retrofit_usd_per_link": 5000.0},
    ]
    instance = two(phase=phases)
    plan = coopt.solve(instance)
    large = [part.design for part in plan.parts if part.name.startswith("large")]
    assert len(large) == 2
    assert large[0] == large[1]
    assert value_of(agrees_with_enumeration(instance)) == plan.objective.value
    assert coopt.verify(instance, plan).accepted


def test_a_phase_that_has_too_few_gpus_is_called_by_its_year() -> None:
    phases = [{"year": 2026, "gpus": 8}, {"year": 2028, "gpus": 32}]
    plan = coopt.solve(two(phase=phases))
    assert plan.explanation[0].startswith("phase['2026'].gpus = 8: needs at least 16")
