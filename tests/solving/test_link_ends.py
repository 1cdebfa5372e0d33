"""What networks are made of: modules at either end of links, cages, optics under caps, planes, and their bills."""

import math
from collections import Counter
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings

import coopt
from coopt.instance.catalog import find, ports_of_modules
from coopt.instance.hardware import Switch
from coopt.instance.schema import Instance, Limits
from coopt.network.family import Family, levels
from coopt.network.graphs import whole_graph
from coopt.network.orders import order_notes_of_parts
from coopt.network.parts import cost_of, end_modules, price
from coopt.network.plan_networks import design_of, families_of_design, uplinks_of
from coopt.network.space import families
from coopt.plan.schema import InstanceId, Plan
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving.plan_bills import _network
from coopt.verifier.parts import design_checks
from coopt.verifier.parts.space import cage_count
from tests.conftest import ASK_WHY, accepted, ask, example_count, question, switch
from tests.explain.changed import way_out
from tests.network.test_planes import large, modules_of
from tests.network.test_products import CHEAP, FRUGAL
from tests.solving.fleet_oracle import enumerated
from tests.solving.questions import capped, twin_ported, wide
from tests.solving.test_partitions import cored as two


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
    "network__nics": "cx7-400g", "network__switches": "qm9700",
    "network__optics": ["400g-sr4", "400g-dr4", "800g-sr8", "800g-dr8", "800g-fr4"],
    "network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-optimized", "cluster__gpus": 1024,
}  # fmt: skip


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


ISLANDS: dict[str, Any] = {"sharing__mode": "partition", "workload__0__gpus": 256}
COUPLED: dict[str, dict[str, Any]] = {
    "islands": ISLANDS,
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
    assert f"of the core has only 32 cages for {modules} modules" in told
    leaves, (joined,) = plan.parts[0].design.fabric.tier[0], shared.core.islands
    both = leaves.down_ports + leaves.uplinks_per_switch + joined.per_leaf
    assert f"of tier 1 has only 32 cages for {both} modules" in told
    own = " ".join(rendered(plan_screen(*cored)).split())
    assert "of the core has" not in own


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
    assert "w: 32 links, 4 from" in why
    assert "by 800g-dr8." in why


def test_a_module_of_several_links_may_be_named_for_a_core_where_ends_are_their_own() -> None:
    named = {"sharing__core__optic": "800g-dr8"}
    assert ask(**CORED | named).sharing.core.optic == "800g-dr8"
    with pytest.raises(ValueError, match=r"sharing.core.optic = '800g-dr8': needs a listed optic"):
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
    assert f"the plan has {below} below {above}" in why or f"the plan has {above};" in why
    assert ("optics of level 1" in why) is apart


QM9700: dict[str, Any] = {
    "network__nics": "cx7-400g", "network__switches": "qm9700", "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "clos", "network__oversubscription": 1.0, "network__link_reach_m": [40, 40, 40],
    "workload__0__max_iteration_time_s": 9.0,
}  # fmt: skip


def kept(instance: Instance, cages: str = "kept") -> Instance:
    """The instance with cages that are kept, or told."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"switch_cages": cages})})


def counts(instance: Instance) -> tuple[int, set[str]]:
    """Switches of the cheapest plan, which the verifier accepts, and its optics."""
    plan = accepted(instance)
    return plan.design.fabric.switch_count, {name for tier in plan.design.fabric.tier for name in tier.ends}


def test_single_modules_halve_a_switch_of_twin_cages_and_twin_ones_fill_it() -> None:
    """64 end points fill 64 ports of one switch; with 32 cages four leaves have 16 down and 16 up, to two spines."""
    single = ask(**QM9700, network__optics="400g-sr4")
    assert counts(single) == (1, {"400g-sr4"})
    assert counts(kept(single)) == (6, {"400g-sr4"})
    twin = ask(**QM9700, network__optics=["400g-sr4", "800g-sr8"])
    assert counts(kept(twin)) == (1, {"400g-sr4", "800g-sr8"})


def test_a_plan_with_more_modules_than_cages_is_rejected_where_they_are_kept_and_told_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Modules are counted on the graph as well, whatever ports the switches are said to have."""
    single = ask(**QM9700, network__optics="400g-sr4")
    plan, other = coopt.solve(single), coopt.solve(kept(single))
    named = InstanceId(name=single.name, sha256=kept(single).sha256)
    claim = plan.model_copy(update={"instance": named})
    assert "tiers" in {check.name for check in coopt.verify(kept(single), claim).failures}
    monkeypatch.setattr(design_checks, "in_cages", lambda network, family, carried: family)
    assert "cages" in {check.name for check in coopt.verify(kept(single), claim).failures}
    assert plan.design is not None
    assert other.design is not None
    notes = " ".join(order_notes_of_parts(single, {"network": plan.design}))
    assert "has only 32 cages" in notes
    assert "network.switch_cages = 'kept'" in notes
    assert "cages for" not in " ".join(order_notes_of_parts(kept(single), {"network": other.design}))


@pytest.mark.parametrize(
    ("name", "cages", "single", "double"),
    [("qm9700", 32, 32, 64), ("51t", 64, 64, 64), ("128x400g", 64, 64, 128), ("64x400g", 64, 64, 64)],
)
def test_cages_are_those_of_the_box(name: str, cages: int, single: int, double: int) -> None:
    box = find("switch", name)
    assert isinstance(box, Switch)
    assert [ports_of_modules(box, links) for links in (1, 2)] == [single, double]
    for way in box.in_each_mode:
        assert cage_count(way) == cages


def test_a_core_has_a_port_for_each_of_its_cages() -> None:
    """Two islands of 36 GPUs at 100 Gbit/s have nine links each: three switches of eight ports, five of four cages."""
    core = {"gbit_s_per_gpu": 100.0}
    boxes = [switch(8, 5000) | {"cages": 4}, switch(16, 11000)]
    asked = two((36, 36), core, network__switches=boxes)
    for cages, switches in (("told", 3), ("kept", 5)):
        plan = accepted(kept(asked, cages))
        assert plan.couplings.cores
        assert (plan.couplings.cores[0].core.switches, plan.couplings.cores[0].core.ports) == (switches, 18)


@settings(max_examples=example_count(20, usual=2))
@given(capped())
def test_the_front_under_a_cap_goes_through_the_optimum(instance: Instance) -> None:
    front, value = coopt.pareto(instance, points=30), coopt.solve(instance).objective.value
    within = [point.best.objective.value for point in front.points if point.pace <= 1.0]
    assert (min(within) if within else None) == (None if value is None else pytest.approx(value, rel=1e-9))


def small(**changes: Any) -> Instance:
    """Eight servers on one tier, 128 transceivers: 100 USD and 20 W each, or 300 USD and 8 W."""
    where: dict[str, Any] = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}
    return ask(**(where | {"network__optics": [CHEAP | {"reach_m": 600}, FRUGAL]} | changes))


def optics(plan: Plan) -> list[str]:
    """The optic of every level."""
    return [tier.optic for tier in plan.design.fabric.tier]


def test_a_cap_on_power_that_only_the_dearer_optic_keeps_is_kept_by_it() -> None:
    plain = coopt.solve(small())
    assert optics(plain) == ["cheap"]
    rest_w = plain.cost.power_w - 128 * 20
    plan = coopt.solve(small(limits={"power_mw": (rest_w + 128 * 8) / 1e6}))
    assert (plan.status, optics(plan)) == ("optimal", ["frugal"])
    assert plan.cost.capex_usd == plain.cost.capex_usd + 128 * (300 - 100)
    assert coopt.verify(small(limits={"power_mw": (rest_w + 128 * 8) / 1e6}), plan).accepted
    _, change = way_out(small(limits={"power_mw": (rest_w + 128 * 8 - 100) / 1e6}), "limits.power_mw")
    assert change.least == pytest.approx((rest_w + 128 * 8) / 1e6, rel=1e-12)  # where no optic keeps it


def test_levels_take_different_optics_where_that_is_enough() -> None:
    instance = small(cluster__gpus=256, network__switches=[{**ask().network.switches[0].model_dump(), "usd": 100}])
    plain = coopt.solve(instance)
    links = [tier.links for tier in plain.design.fabric.tier]
    assert len(links) > 1
    cap = plain.cost.power_w - 2 * min(links) * (20 - 8)
    plan = coopt.solve(instance.model_copy(update={"limits": Limits(power_mw=cap / 1e6)}))
    assert sorted(optics(plan)) == ["cheap", "frugal"]
    assert plan.cost.capex_usd == plain.cost.capex_usd + 2 * min(links) * (300 - 100)


@pytest.mark.parametrize(("limits", "accepted"), [({}, False), ({"limits": {"power_mw": 1}}, True)])
def test_the_verifier_takes_a_dearer_optic_only_where_a_limit_may_ask_for_it(
    limits: dict[str, Any], accepted: bool
) -> None:
    """The claim to be the cheapest is another matter."""
    instance, other = small(**limits), coopt.solve(small(network__optics=[FRUGAL], **limits))
    claimed = other.model_copy(update={"instance": other.instance.model_copy(update={"sha256": instance.sha256})})
    verdict = coopt.verify(instance, claimed)
    assert next(check.ok for check in verdict.checks if check.name == "optics") is accepted
    assert {"bound"} <= {check.name for check in verdict.checks if not check.ok}
    if accepted:
        assert all(check.ok for check in verdict.checks if check.name in ("capex", "power", "bill-lines"))


def test_evaluation_takes_the_cheapest_optic_within_the_limits_and_without_one_the_cheapest() -> None:
    one = {"network__switches": [switch(16, 11000)], "network__oversubscription": [1.0]}
    mappings = [run.mapping for run in coopt.solve(small(**one)).workloads]
    free = coopt.evaluate(small(**one), mappings=mappings)
    rest_w = free.cost.power_w - 128 * 20

    def taken(watts: float) -> tuple[str, bool]:
        found = coopt.evaluate(small(limits={"power_mw": (rest_w + watts) / 1e6}, **one), mappings=mappings)
        (tier,) = found.design.fabric.tier
        return tier.optic, next(check.ok for check in found.limits if check.name.startswith("power"))

    assert taken(128 * 20) == ("cheap", True)
    assert taken(128 * 8) == ("frugal", True)
    assert taken(128 * 8 - 1) == ("cheap", False)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"robust": {"survive": "nic", "slower": 3.0}},
        {"sharing": {"mode": "partition"}},
        {"phase": [{"gpus": 32, "year": 0}, {"gpus": 64, "year": 1}]},
    ],
    ids=["shared", "robust", "partition", "phases"],
)
def test_a_box_with_modes_is_as_good_as_a_switch_of_each(changes: dict[str, Any]) -> None:
    """Slower ports of the same box join more GPUs to a switch, here at half the rate."""
    table: dict[str, Any] = {
        "nics": [],
        "optics": [],
        "switches": [switch(8, 900), {**switch(16, 900), "port_gbit_s": 200}],
    }
    for rate in (200, 400):
        table["nics"].append({"name": f"n{rate}", "gbit_s": rate, "usd": rate, "w": 1})
        table["optics"].append({"name": f"o{rate}", "gbit_s": rate, "reach_m": 500, "usd": rate / 2, "w": 1})
    one = question(**changes)
    one["network"] |= table | {"oversubscription": 1.0, "hb_domains": "hgx-h100-8"}
    if "sharing" in changes:
        one["workload"] = [one["workload"][0] | {"name": name, "gpus": [16, 32]} for name in ("a", "b")]
    if "phase" in changes:
        one["phase"] = [phase | {"workloads": ["w"]} for phase in one["phase"]]
    box = {**switch(8, 900), "modes": [{"radix": 16, "port_gbit_s": 200}]}
    other = {**one, "network": one["network"] | {"switches": [box]}}
    plans = []
    for instance in map(Instance.model_validate, (one, other)):
        plans.append(coopt.solve(instance))
        verdict = coopt.verify(instance, plans[-1])
        assert verdict.accepted, verdict.failures
    assert plans[0].objective.value is not None
    assert plans[0].objective.value == plans[1].objective.value
    assert all(item.item.startswith("8-port") for item in plans[1].cost.items if item.kind == "switch")


def test_a_plan_on_planes_is_explained_routed_and_simulated() -> None:
    changes = {"cluster__gpus": 512, "network__nic_planes": [1, 8], "network__charge": "loads"}
    instance = large(**changes, workload__0__global_batch=512, workload__0__max_iteration_time_s=0.2)
    plan = coopt.solve(instance)
    assert isinstance(plan, Plan)
    assert plan.design.fabric.nic.planes == 8
    assert plan.design.fabric.planes == 8
    rivals = coopt.explain(instance, plan).rivals
    planes = {rival.choice: rival.excluded for rival in rivals if rival.part == "network.nic_planes"}
    assert planes == {"1": False, "8": True}
    assert coopt.route(instance, plan).workloads[0].within_bound
    assert coopt.simulate(instance, plan).workloads[0].simulated_s > 0
    assert coopt.faults(instance, plan)


def fullest(graph: nx.Graph, family: Family, tier: int) -> int:
    """The most modules in a switch of a tier, switch by switch on the graph."""
    most = 0
    for node in (node for node, at in graph.nodes(data="level") if at == tier):
        links: Counter[int] = Counter()
        for *_, edge in graph.edges(node, data=True):
            links[edge["level"]] += edge["links"]
        ends = {level: family.optics[level - 1][level == tier] for level in links}
        most = max(most, sum(-(-links[n] // ends[n].links_of(family.link_gbit_s)) for n in links))
    return most


@settings(max_examples=example_count(300, usual=5))
@given(wide())
def test_the_optimum_over_all_fabrics_is_what_enumeration_finds_and_its_parts_are_those_of_the_graph(
    instance: Instance,
) -> None:
    plan, expected = accepted(instance, reasons=ASK_WHY), enumerated(instance)
    assert plan.status == ("infeasible" if math.isinf(expected) else "optimal")
    assert plan.objective.value == (None if math.isinf(expected) else pytest.approx(expected, rel=1e-12))
    if plan.design is None or not plan.design.fabric.tiers:
        return
    family, uplinks = next(families_of_design(instance, plan.design))
    assert uplinks == uplinks_of(plan.design)
    graph = whole_graph(family, uplinks)
    for number, (level, product) in enumerate(zip(levels(family, uplinks), family.switches, strict=True), start=1):
        switches = [node for node, at in graph.nodes(data="level") if at == number]
        links = sum(edge["links"] for *_, edge in graph.edges(data=True) if edge["level"] == number)
        assert (level.switches, level.links) == (len(switches), links)
        assert max(graph.degree(node, weight="links") for node in switches) <= product.radix
        if instance.network.switch_cages == "kept":
            box = next(one for one in instance.network.switches if one.name == product.name)
            assert fullest(graph, family, number) <= box.radix * box.port_gbit_s / box.cage_gbit_s
    assert list(end_modules(family, family.chain(uplinks))) == modules_of(family, uplinks)


def bundles(family: Family, uplinks: int) -> list[int]:
    """The fewest parallel links of a bundle above each tier."""
    if family.tiers < 2:
        return [0] * family.tiers
    return [int(wires.links.min()) for wires in family.chain(uplinks).wires()] + [0]


@settings(max_examples=example_count(60, usual=8))
@given(twin_ported((1, 2, 4)))
def test_bundles_are_those_of_the_graph(instance: Instance) -> None:
    for family in list(families(instance))[::7]:
        for uplinks in family.uplink_choices[::3]:
            cost = cost_of(instance, family, uplinks)
            told = _network("network", design_of(family, uplinks), cost).tier
            assert [tier.bundle for tier in told] == bundles(family, uplinks)
