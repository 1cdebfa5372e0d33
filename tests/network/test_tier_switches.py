"""Networks whose tiers have switches of different products: listed, counted, drawn, billed, chosen and checked."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.hardware import Switch
from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.optics import first_unmated, measures_of
from coopt.network.parts import cost_of, open_bill
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving.families import CountedNetworks, priced
from tests.conftest import ASK_WHY, accepted, ask, example_count, question, switch, value, value_of
from tests.network.graph_counts import check_counts
from tests.solving.oracle import enumerated, instances

BOXES = [switch(8, 5000), switch(12, 7000), switch(16, 20_000)]


def mixed(**changes: Any) -> Instance:
    """A small question whose tiers may have other products."""
    return ask(**{"network__tier_switches": "any", "network__switches": BOXES, **changes})


def small_below_large(**changes: Any) -> Instance:
    """A question that is answered by small leaves below large spines."""
    asked = {"cluster__gpus": 512, "workload__0__global_batch": 512, "network__hb_domains": "hgx-h100-8"}
    asked |= {"network__fabrics": "clos", "network__oversubscription": 1.0}
    asked |= {"network__switches": [switch(16, 5_000), switch(64, 40_000)]}
    return mixed(**asked | changes)


def refused(instance: Instance, plan: Plan) -> set[str]:
    """The checks that a plan fails which claims to be one of an instance."""
    named = plan.model_copy(update={"instance": plan.instance.model_copy(update={"sha256": instance.sha256})})
    return {check.name for check in coopt.verify(instance, named).failures}


def test_every_product_stands_on_every_tier_and_no_network_is_listed_twice() -> None:
    for gpus in (64, 768):
        found = list(families(mixed(cluster__gpus=gpus, workload__0__global_batch=gpus)))
        names = {(one.tiers, tuple(box.name for box in one.switches)) for one in found}
        for tiers in {one.tiers for one in found}:
            every = set(product(*([box["name"] for box in BOXES] for _ in range(tiers))))
            assert {stack for count, stack in names if count == tiers} <= every
        assert (2, ("8-port", "16-port")) in names
        shapes = [{**vars(one), "uplink_choices": (), "bundle": 0} for one in found if one.tiers != 2]
        assert all(shapes.count(shape) == 1 for shape in shapes)
    assert (3, ("12-port", "8-port", "16-port")) in names


def test_networks_of_one_product_are_those_of_tiers_that_are_the_same() -> None:
    same = list(families(mixed(network__tier_switches="same")))
    assert [one for one in families(mixed()) if not one.upper] == same


PODDED = {"cluster__gpus": 48, "network__switches": switch(8, 5000), "network__hb_domains": "hgx-h100-8"}
WIRED = {
    **{
        bundles: mixed(cluster__gpus=192, workload__0__global_batch=192, network__bundles=bundles)
        for bundles in ("even", "any")
    },
    "bundles in pods": ask(**PODDED, network__pod_bundles=[2], network__oversubscription=1.0),
}


@pytest.mark.parametrize("name", WIRED)
def test_graphs_hold_what_levels_count_and_the_bill_prices_each_product(name: str) -> None:
    instance, of_pods = WIRED[name], name == "bundles in pods"
    some = [
        one for one in families(instance) if (one.pods if of_pods else one.upper) and one.fabric != "rail-optimized"
    ]
    assert {one.tiers for one in some} == ({3} if of_pods else {2, 3})
    for family in some[:: max(1, len(some) // 40)]:
        uplinks = family.uplink_choices[len(family.uplink_choices) // 2]
        check_counts(family, uplinks)
        counted = levels(family, uplinks)
        items = {item.item: item.count for item in cost_of(instance, family, uplinks).items if item.kind == "switch"}
        asked = open_bill(instance, family)
        for name in {box.name for box in family.switches}:
            of_name = [t.switches for t, box in zip(counted, family.switches, strict=True) if box.name == name]
            assert items[name] == sum(of_name)
            key = ("switch", name)
            spines = family.spines(uplinks)
            assert asked.fixed[key] + asked.uplink[key] * uplinks + asked.spine[key] * spines == items[name]


def test_a_family_is_left_out_only_where_another_takes_its_place_in_every_design() -> None:
    instance = mixed(cluster__gpus=768, network__hb_domains="hgx-h100-8", limits={"power_mw": 10.0})
    measures = measures_of(instance)
    assert set(measures) == {"capex", "power"}
    every = list(families(instance, measures))
    counted = CountedNetworks().counted(instance, every)
    kept = [one.family for one in priced(instance, counted, measures)]
    assert 0 < len(kept) < len(every)

    def place(one: Family) -> tuple[object, ...]:
        pods = (one.pods.l, one.pods.w, one.pods.count) if one.pods else ()
        return (one.fabric, one.hb.name, one.active, one.switch.name, one.tiers, one.down, one.leaves, pods)

    sums: dict[tuple[object, ...], list[tuple[int, float, float]]] = {}
    for one in kept:
        for u in one.uplink_choices:
            cost = cost_of(instance, one, u)
            sums.setdefault(place(one), []).append((u, cost.capex_usd, cost.power_w))
    for one in every:
        for u in one.uplink_choices:
            cost = cost_of(instance, one, u)
            rivals = sums[place(one)]
            assert any(v >= u and usd <= cost.capex_usd and w <= cost.power_w for v, usd, w in rivals)


def test_leaves_of_one_product_below_spines_of_another_cost_less_than_any_one_product() -> None:
    instance = small_below_large()
    alone, together = accepted(small_below_large(network__tier_switches="same")), accepted(instance)
    assert together.objective.value < alone.objective.value
    assert [(tier.switch, tier.switches) for tier in together.design.fabric.tier] == [("16-port", 64), ("64-port", 8)]
    assert together.design.fabric.switch_text == "16-port below 64-port"
    assert coopt.faults(instance, together).faults
    again = coopt.evaluate(instance, together.design, [run.mapping for run in together.workloads])
    assert again.cost == together.cost
    assert coopt.route(instance, together)
    assert all(run.met for run in coopt.simulate(instance, together).workloads)
    (billed,) = coopt.bom(together).networks
    assert [tier.switch for tier in billed.tier] == ["16-port", "64-port"]
    rivals = coopt.explain(instance, together).rivals
    missed = {rival.choice for rival in rivals if rival.part == "network.switches" and rival.excluded}
    assert {"16-port", "64-port"} <= missed


def test_islands_have_small_leaves_below_large_spines_where_that_is_cheaper() -> None:
    def islands(**changes: Any) -> Instance:
        table = small_below_large(**changes, cluster__gpus=1024).model_dump(by_alias=True)
        (workload,) = table["workload"]
        table["workload"] = [workload | {"name": name, "gpus": [512]} for name in "ab"]
        return Instance.model_validate(table | {"sharing": {"mode": "partition"}})

    instance = islands()
    alone, together = accepted(islands(network__tier_switches="same")), accepted(instance)
    assert together.objective.value < alone.objective.value
    assert [part.design.fabric.switch_text for part in together.parts if part.design] == ["16-port below 64-port"] * 2
    assert coopt.certify(instance, together, coopt.prove(instance, together)).ok
    first, *others = together.parts
    assert coopt.route(instance, together, part=first.name).workloads[0].within_bound
    tiers = first.design.fabric.tier
    swapped = first.design.fabric.model_copy(update={"tier": (tiers[0], tiers[1].model_copy(update={"switch": None}))})
    lie = first.model_copy(update={"design": first.design.model_copy(update={"fabric": swapped})})
    assert not coopt.verify(instance, together.model_copy(update={"parts": (lie, *others)})).accepted


def test_no_tier_of_a_plan_may_name_another_product() -> None:
    instance = small_below_large()
    plan = accepted(instance)
    leaf, spine = plan.design.fabric.tier
    for names in (("64-port", "64-port"), ("16-port", "16-port"), ("16-port", None), (None, "9-port")):
        tier = tuple(one.model_copy(update={"switch": name}) for one, name in zip((leaf, spine), names, strict=True))
        design = plan.design.model_copy(update={"fabric": plan.design.fabric.model_copy(update={"tier": tier})})
        (part,) = plan.parts
        changed = {"design": design, "parts": (part.model_copy(update={"design": design}),)}
        assert refused(instance, plan.model_copy(update=changed)), names
    assert "tier-products" in refused(small_below_large(network__tier_switches="same"), plan)


@pytest.mark.parametrize(
    ("below", "above", "mates"),
    [
        ({}, {"protocol": "infiniband"}, True),
        ({"protocol": "ethernet"}, {"protocol": "infiniband"}, False),
        ({"lane_gbit_s": 100}, {"lane_gbit_s": 200}, False),
        ({"lane_gbit_s": 100, "protocol": "ethernet"}, {"lane_gbit_s": 100}, True),
    ],
)
def test_switches_of_two_protocols_or_lane_rates_are_not_linked(below, above, mates) -> None:
    instance = small_below_large(network__switches=[switch(16, 5_000) | below, switch(64, 40_000) | above])
    assert any(one.upper for one in families(instance)) == mates
    plan = accepted(instance)
    assert (len(plan.design.fabric.switch_names) > 1) == mates
    if not mates:
        assert "tier-products" in refused(instance, accepted(small_below_large()))


MATES = {"lane_gbit_s": [100, 200], "protocol": ["ethernet", "infiniband"]}


@pytest.mark.parametrize(
    ("nic", "box", "optic", "mates"),
    [
        (MATES, {"lane_gbit_s": 200, "protocol": "ethernet"}, {"lane_gbit_s": 200}, True),
        (MATES, {"lane_gbit_s": 200}, {"lane_gbit_s": 100}, False),
        (MATES, {}, {"lane_gbit_s": 50}, False),
        ({}, {}, {"lane_gbit_s": 50}, True),
        ({"lane_gbit_s": 100}, {"lane_gbit_s": 200}, {}, False),
        ({"protocol": "infiniband"}, {"protocol": "ethernet"}, {}, False),
    ],
)
def test_nics_optics_and_leaves_mate_or_another_product_is_taken(nic, box, optic, mates) -> None:
    """Cheap leaves and the cheap optic are taken where these and the NIC have lanes and a protocol in common."""
    cheap, dear = (
        {"name": name, "gbit_s": 400, "reach_m": 500, "usd": usd, "w": 9} for name, usd in (("cheap", 1), ("dear", 900))
    )
    changes = {
        "network__nics": {"name": "nic", "gbit_s": 400, "usd": 1, "w": 1} | nic,
        "network__switches": [switch(16, 1) | {"name": "cheap-box"} | box, switch(16, 9_000) | {"name": "dear-box"}],
        "network__optics": [cheap | optic, dear],
    }
    plan = accepted(mixed(**changes))
    fabric = plan.design.fabric
    assert (fabric.switch.name == "cheap-box" and {tier.optic for tier in fabric.tier} == {"cheap"}) == mates
    if not mates:
        vouched = accepted(mixed(**changes, network__tier_switches="same"))
        assert {"tier-products", "optics"} & refused(mixed(**changes), vouched)
        said = rendered(plan_screen(ask(**changes), vouched))
        assert 0 < said.index("do not mate") < said.index("Decision")
        assert said.count("do not mate") == 1
        report = rendered(plan_report(ask(**changes), vouched))
        assert report.count("do not mate") == 1


def test_a_module_at_one_end_need_not_mate_with_the_box_at_the_other() -> None:
    module = {"gbit_s": 400, "reach_m": 500, "w": 9, "fibre": "pairs"}
    changes = {
        "network__nics": {"name": "nic", "gbit_s": 400, "usd": 1, "w": 1, "lane_gbit_s": [100, 200]},
        "network__switches": [switch(16, 1) | {"lane_gbit_s": 100}],
        "network__optics": [
            module | {"name": "gear", "usd": 1, "lane_gbit_s": 200},
            module | {"name": "even", "usd": 90, "lane_gbit_s": 100},
        ],
        "network__link_ends": "any",
    }
    instance = mixed(**changes)
    fabric = accepted(instance).design.fabric
    assert fabric.tier[0].ends == ("gear", "even")
    assert first_unmated(instance.network, fabric) is None


def test_lists_of_which_nothing_mates_are_refused() -> None:
    with pytest.raises(ValueError, match=r"tier_switches = 'any': no listed switch"):
        mixed(network__nics="cx7-400g", network__switches=[switch(16, 1) | {"lane_gbit_s": 200}])


def test_what_a_question_does_not_depend_on_leaves_its_identity() -> None:
    known = [box | {"protocol": "ethernet", "lane_gbit_s": 100} for box in BOXES]
    same = [mixed(network__tier_switches="same", network__switches=boxes).sha256 for boxes in (BOXES, known)]
    assert same[0] == same[1] == ask(network__switches=BOXES).sha256
    assert mixed().sha256 != mixed(network__switches=known).sha256


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sharing": {"mode": "partition", "core": {"switch": "16-port", "gbit_s_per_gpu": 1.0}}}, "core"),
        ({"phase": [{"year": 0, "gpus": 32}, {"year": 1, "gpus": 64}]}, "phase"),
    ],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"tier_switches = 'any': .*{words}"):
        Instance.model_validate(question(network__tier_switches="any", network__charge="loads", **changes))


@st.composite
def stacked(draw: st.DrawFn) -> Instance:
    """Random questions with two or three products of a rate, some of which mate."""
    drawn = draw(instances())
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12, 16, 24]), min_size=2, max_size=3, unique=True))
    table = [
        switch(k, draw(st.integers(0, 6000)), rate)
        | {
            "name": f"{k}x{rate}",
            "reduces": True,
            "w": draw(st.integers(0, 400)),
            "lane_gbit_s": draw(st.sampled_from([None, None, 50, 100])),
        }
        for k in radices
        for rate in sorted({nic.gbit_s for nic in drawn.network.nics})
    ]
    switches = tuple(Switch.model_validate(one) for one in table)
    lanes = st.sampled_from([None, 50.0, 100.0]) if draw(st.booleans()) else st.none()
    optics = tuple(one.model_copy(update={"lane_gbit_s": draw(lanes)}) for one in drawn.network.optics)
    changes = {"switches": switches, "tier_switches": "any", "optics": optics}
    return drawn.model_copy(update={"network": drawn.network.model_copy(update=changes)})


@settings(max_examples=example_count(20, usual=2))
@given(stacked())
def test_the_optimum_is_that_of_enumeration_and_never_above_that_of_one_product(instance: Instance) -> None:
    least = value_of(accepted(instance, reasons=ASK_WHY))
    assert least == pytest.approx(enumerated(instance), rel=1e-9)
    if any(optic.lane_gbit_s for optic in instance.network.optics):
        return
    same = instance.network.model_copy(update={"tier_switches": "same"})
    assert least <= value(instance.model_copy(update={"network": same})) * (1 + 1e-9)


def test_random_questions_have_products_by_tier() -> None:
    seen: list[bool] = []

    @settings(max_examples=10)
    @given(stacked())
    def collect(instance: Instance) -> None:
        seen.append(any(family.upper for family in families(instance)))

    collect()
    assert any(seen)
