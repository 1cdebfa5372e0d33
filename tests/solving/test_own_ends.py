"""Each end of a level has its own module: the optimum is that of every two modules, and never above that of one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings

import coopt
from coopt.instance.schema import Instance
from coopt.network.parts import cost_of, end_modules, price
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.report.plan import plan_screen
from coopt.report.words import rendered
from tests.conftest import ask, example_count, small_model
from tests.network.test_planes import modules_of
from tests.solving.questions import twin_ported


@settings(max_examples=example_count(60))
@given(twin_ported())
def test_bills_of_a_family_are_affine_and_lines_of_both_ends_are_those_of_its_graph(instance: Instance) -> None:
    kind = instance.objective.minimize
    for family in list(families(instance))[::5]:
        line = price(instance, family, kind)
        for uplinks in family.uplink_choices:
            value = cost_of(instance, family, uplinks).of(kind)
            assert line.at(family, uplinks) == pytest.approx(value, rel=1e-12)
        if family.tiers:
            assert list(end_modules(family, family.chain(uplinks))) == modules_of(family, uplinks)


SUPERPOD: dict[str, Any] = {
    "network__nics": "cx7-400g",
    "network__switches": "qm9700",
    "network__optics": ["400g-sr4", "400g-dr4", "800g-sr8", "800g-dr8", "800g-fr4"],
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "rail-optimized",
    "cluster__gpus": 1024,
}


@pytest.mark.parametrize("gpus", [3072, 3104])
def test_a_module_of_two_uplinks_is_counted_whole_on_an_odd_number_of_leaves(gpus: int) -> None:
    """Uplinks are offered by twos there, and one of them adds half a module for each leaf."""
    asked = SUPERPOD | {"cluster__gpus": gpus, "network__fabrics": "clos", "network__oversubscription": 2.0}
    instance = ask(**asked)
    listed, kind = list(families(instance)), instance.objective.minimize
    assert any(len(family.uplink_choices) > 1 for family in listed)
    for family in listed:
        for uplinks in family.uplink_choices:
            value = cost_of(instance, family, uplinks).of(kind)
            assert price(instance, family, kind).at(family, uplinks) == pytest.approx(value, rel=1e-12)


def test_switches_have_twin_port_modules_and_nics_single_ones() -> None:
    plan = coopt.solve(ask(**SUPERPOD))
    tiers = plan.design.fabric.tier
    assert [tier.ends for tier in tiers] == [("400g-sr4", "800g-sr8"), ("800g-dr8", "800g-dr8")]
    counts = {item.item: item.count for item in plan.cost.items if item.kind == "optics"}
    assert counts["400g-sr4"] == tiers[0].links == 1024
    assert counts["800g-sr8"] == 512
    assert counts["800g-dr8"] == tiers[1].links
    assert plan.design.fabric.transceiver_count == sum(counts.values())


def test_modules_whose_fibres_carry_different_things_are_no_ends_of_a_link() -> None:
    """The twin-port module of the other kind of fibre is the cheaper one, and of no use at a NIC's other end."""
    single = {"name": "single", "gbit_s": 400, "fibre": "here", "reach_m": 500, "usd": 100, "w": 1}
    twin = {"name": "twin", "gbit_s": 800, "breakout": 2, "fibre": "there", "reach_m": 60, "usd": 10, "w": 1}
    asked = SUPERPOD | {"network__optics": [single, twin]}
    (first, _) = coopt.solve(ask(**asked)).design.fabric.tier
    assert first.ends == ("single", "single")
    (first, _) = coopt.solve(ask(**asked | {"network__optics": [single, twin | {"fibre": "here"}]})).design.fabric.tier
    assert first.ends == ("single", "twin")


def test_fibres_are_no_part_of_a_question_in_which_no_two_products_share_them() -> None:
    """So that plans stay answers as the catalog learns what its modules carry."""
    one = {"name": "one", "gbit_s": 400, "reach_m": 500, "usd": 100, "w": 1}
    other = one | {"name": "other", "gbit_s": 800, "breakout": 2}
    told = [one | {"fibre": "a"}, other | {"fibre": "b"}]
    ids = {ask(network__optics=optics).sha256 for optics in ([one, other], told)}
    alike = ask(network__optics=[one | {"fibre": "a"}, other | {"fibre": "a"}]).sha256
    assert len(ids) == 1
    assert alike not in ids


@pytest.mark.parametrize(
    "changes",
    [
        {"sharing": {"mode": "partition"}},
        {"phase": [{"gpus": 512, "year": 0}, {"gpus": 1024, "year": 1}]},
        {"robust": {"survive": "nic", "slower": 3.0}},
    ],
    ids=["partition", "phases", "robust"],
)
def test_elsewhere_both_ends_have_one_product(changes: dict[str, Any]) -> None:
    assert ask(**SUPERPOD, **changes).network.link_ends == "same"


def test_islands_have_ends_of_their_own_where_any_are_asked_for() -> None:
    one = {"model": small_model(), "global_batch": 64, "max_iteration_time_s": 2.0, "gpus": 128}
    teams = [one | {"name": name} for name in "ab"]
    asked = SUPERPOD | {"workload": teams, "sharing": {"mode": "partition"}}
    same, own = ask(**asked), ask(**asked, network__link_ends="any")
    assert same.sha256 != own.sha256
    plan = coopt.solve(own)
    assert any(tier.optic_below for part in plan.parts for tier in part.design.fabric.tier)
    assert plan.objective.value < coopt.solve(same).objective.value
    assert coopt.verify(own, plan).accepted


ISLANDS: dict[str, Any] = {"sharing__mode": "partition", "workload__0__gpus": 256}
COUPLED: dict[str, dict[str, Any]] = {
    "phases": {"phase": [{"gpus": 512, "year": 0}, {"gpus": 1024, "year": 1}]},
    "losses": {"robust": {"survive": "nic", "slower": 3.0}, "network__nics_per_gpu": 2},
    "a core": ISLANDS | {"sharing__core": {"switch": "qm9700", "gbit_s_per_gpu": 50}},
    "few products": ISLANDS | {"sharing__most_products": {"optics": 3}},
    "discounts": ISLANDS | {"sharing__discount": {"kind": "optics", "item": "800g-sr8", "from": 8, "off": 0.2}},
}


@pytest.mark.parametrize("changes", COUPLED.values(), ids=COUPLED)
def test_switches_have_twin_port_modules_in_what_is_coupled_too(changes: dict[str, Any]) -> None:
    asked = SUPERPOD | {"workload__0__mapping": {"micro_batch": [1], "tp": [8], "pp": [1]}, "sharing": {}} | changes
    own, same = ask(**asked, network__link_ends="any"), ask(**asked)
    plan = coopt.solve(own)
    bought = {item.item.split(",")[0] for item in plan.cost.items if item.kind == "optics"}
    assert {"400g-sr4", "800g-sr8"} <= bought
    assert plan.objective.value < coopt.solve(same).objective.value
    verdict = coopt.verify(own, plan)
    assert verdict.accepted, verdict.failures


CORED: dict[str, Any] = {
    **SUPERPOD,
    "network__link_ends": "any",
    "sharing": {"mode": "partition", "core": {"switch": "qm9700", "gbit_s_per_gpu": 50}},
    "workload__0__gpus": 256,
    "workload__0__mapping": {"micro_batch": [1], "tp": [8], "pp": [1]},
}


@pytest.fixture(scope="module")
def cored() -> tuple[Instance, Plan]:
    """An island of 256 GPUs, which send 12,800 Gbit/s over 32 links into a core."""
    instance = ask(**CORED)
    return instance, coopt.solve(instance)


def test_leaves_and_a_core_have_twin_port_modules(cored: tuple[Instance, Plan]) -> None:
    _, plan = cored
    (shared,) = plan.couplings.cores
    (joined,) = shared.core.islands
    (part,) = plan.parts
    (leaves, *upper) = part.design.fabric.tier
    assert (shared.core.optic, joined.optic_below) == ("800g-dr8", None)
    assert (joined.links, joined.per_leaf) == (32, 32 // leaves.switches)
    counts = {item.item: item.count for item in plan.cost.items if item.kind == "optics"}
    own = sum(tier.links for tier in upper)  # half as many modules at either end
    assert counts["800g-dr8"] == own + 32 // joined.per_leaf * math.ceil(joined.per_leaf / 2) + 32 // 2


def test_modules_of_links_into_a_core_are_told_where_cages_are_too_few(cored: tuple[Instance, Plan]) -> None:
    same = ask(**CORED | {"network__link_ends": "same", "sharing__core__gbit_s_per_gpu": 100})
    plan = coopt.solve(same)
    (shared,) = plan.couplings.cores
    modules = -(-shared.core.ports // shared.core.switches)
    told = " ".join(rendered(plan_screen(same, plan)).split())
    assert f"The core has {modules} modules for each qm9700, which has room for 32" in told
    leaves, (joined,) = plan.parts[0].design.fabric.tier[0], shared.core.islands
    both = leaves.down_ports + leaves.uplinks_per_switch + joined.per_leaf
    assert f"The bill has {both} modules for each qm9700 of tier 1" in told
    own = " ".join(rendered(plan_screen(*cored)).split())
    assert "The core has" not in own


def test_an_island_of_one_domain_has_single_modules_in_its_nics_and_the_core_twin_port_ones() -> None:
    one = {"workload__0__gpus": 8, "workload__0__max_iteration_time_s": 1000.0, "sharing__core__gbit_s_per_gpu": 400}
    plan = coopt.solve(ask(**CORED | one))
    (shared,) = plan.couplings.cores
    assert (shared.core.optic, shared.core.islands[0].optic_below) == ("800g-dr8", "400g-dr4")
    counts = {item.item: item.count for item in plan.cost.items if item.kind == "optics"}
    assert (shared.core.islands[0].links, counts) == (8, {"400g-dr4": 8, "800g-dr8": 4})


@pytest.mark.parametrize("below", ["800g-sr8", "400g-sr4", "400g-dr4"])
def test_the_verifier_finds_another_module_at_the_lower_ends_of_links_into_a_core(
    cored: tuple[Instance, Plan], below: str
) -> None:
    instance, plan = cored
    told = plan.model_dump(mode="json", by_alias=True)
    told["couplings"]["cores"][0]["core"]["islands"][0]["optic_below"] = below
    failures = {check.name for check in coopt.verify(instance, Plan.model_validate(told)).failures}
    assert failures & ({"core-optic"} if "sr" in below else {"bill-lines", "cost-items"})


def test_the_verifier_says_by_which_modules_islands_of_a_fleet_begin_their_links_into_a_core() -> None:
    instance = ask(**CORED | {"phase": [{"gpus": 256, "year": 0}, {"gpus": 1024, "year": 1}]})
    plan = coopt.solve(instance)
    told = plan.model_dump(mode="json", by_alias=True)
    told["couplings"]["cores"][0]["core"]["islands"][0]["optic_below"] = "400g-dr4"
    failures = coopt.verify(instance, Plan.model_validate(told)).failures
    (why,) = [check.why for check in failures if check.name == "core-links"]
    assert coopt.verify(instance, plan).accepted
    assert "need these links into the core: w: 32 links, 4 from each leaf, by 800g-dr8." in why


def test_a_module_of_several_links_may_be_named_for_a_core_where_ends_are_their_own() -> None:
    named = {"sharing__core__optic": "800g-dr8"}
    assert ask(**CORED | named).sharing.core.optic == "800g-dr8"
    with pytest.raises(ValueError, match=r"sharing.core.optic = '800g-dr8': needs a listed optic of 400 Gbit/s"):
        ask(**CORED | named | {"network__link_ends": "same"})


@pytest.mark.parametrize(
    ("below", "above", "apart"),
    [
        ("400g-sr4", "800g-dr8", True),
        ("800g-sr8", "800g-sr8", True),
        ("400g-dr4", "800g-sr8", True),
        ("400g-dr4", "800g-dr8", False),
    ],
    ids=["other fibre", "no room in a NIC", "fibres the other way round", "meets and is dearer"],
)
def test_the_verifier_says_what_ends_do_not_meet_or_fit(below: str, above: str, apart: bool) -> None:
    instance = ask(**SUPERPOD)
    plan = coopt.solve(instance).model_dump(mode="json", by_alias=True)
    for design in (plan["design"], plan["parts"][0]["design"]):
        design["fabric"]["tier"][0] |= {"optic": above, "optic_below": below}
    (why,) = [
        check.why for check in coopt.verify(instance, Plan.model_validate(plan)).failures if check.name == "optics"
    ]
    assert f"the plan takes {below} below {above}" in why or f"the plan takes {above}," in why
    assert ("level 1 do not fit" in why) is apart
