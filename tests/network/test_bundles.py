"""Bundles of links: equal ones by default, and what the numbers of uplinks are that spines share evenly."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.graphs import whole_graph
from coopt.network.parts import bill, total
from coopt.network.space import families
from tests.conftest import ask, example_count, switch
from tests.network.even_bundles import least_spines, offered, with_bundles
from tests.solving.oracle import instances

KEPT = ("gpus", "active", "fabric", "nics_per_gpu", "tiers", "leaves", "down", "optics", "planes", "core_ports")


def of_a_kind(instance: Instance, tiers: int) -> dict[object, list[Family]]:
    """The networks of so many tiers that differ in their uplinks only."""
    found: dict[object, list[Family]] = {}
    for family in families(instance):
        if family.tiers == tiers:
            parts = (
                family.hb.name,
                family.nic.name,
                family.switch.name,
                family.pods and (family.pods.l, family.pods.w),
            )
            found.setdefault((parts, *(getattr(family, key) for key in KEPT)), []).append(family)
    return found


@settings(max_examples=example_count(60), deadline=None)
@given(instances())
def test_two_tiers_have_the_uplinks_that_the_fewest_even_spines_take(instance: Instance) -> None:
    every = of_a_kind(with_bundles(instance, "any"), 2)
    even = of_a_kind(with_bundles(instance, "even"), 2)
    assert even.keys() == every.keys()
    for key, families_of_key in even.items():
        one = families_of_key[0]
        runs = [range(f.uplink_choices[0], f.uplink_choices[-1] + 1) for f in every[key]]
        expected = sorted(
            (u, least_spines(u, one.leaves, one.switch.radix))
            for run in runs
            for u in offered(run, one.leaves, one.switch.radix)
        )
        assert sorted((u, f.spines(u)) for f in families_of_key for u in f.uplink_choices) == expected


@settings(max_examples=example_count(60), deadline=None)
@given(instances())
def test_left_out_uplinks_need_more_spines_than_the_next_that_are_offered(instance: Instance) -> None:
    every = of_a_kind(with_bundles(instance, "any"), 2)
    for key, even in of_a_kind(with_bundles(instance, "even"), 2).items():
        menu = sorted(u for family in even for u in family.uplink_choices)
        for family in every[key]:
            for u in family.uplink_choices:
                after = next(one for one in menu if one >= u)
                if after > u and after != menu[-1]:
                    spines = least_spines(after, family.leaves, family.switch.radix)
                    assert least_spines(u, family.leaves, family.switch.radix) > spines


@settings(max_examples=example_count(40), deadline=None)
@given(instances(), st.data())
def test_every_switch_above_has_equally_many_links_to_each_below(instance: Instance, data: st.DataObject) -> None:
    tiered = [family for family in families(with_bundles(instance, "even")) if family.tiers > 1]
    if not tiered:
        return
    family = data.draw(st.sampled_from(tiered))
    graph = whole_graph(family, data.draw(st.sampled_from(family.uplink_choices)))
    kinds = dict(graph.nodes(data="kind"))
    planes = dict(graph.nodes(data="plane"))
    leaves = Counter(planes[name] for name, kind in kinds.items() if kind == "leaf")
    for name, kind in kinds.items():
        if kind in ("spine", "core"):
            bundles = [edge["links"] for _, below, edge in graph.edges(name, data=True)]
            assert len(set(bundles)) == 1
            assert len(bundles) == (leaves[planes[name]] if kind == "spine" else family.pods and family.pods.count)


@settings(max_examples=example_count(40), deadline=None)
@given(instances())
def test_any_bundles_are_on_as_few_switches_as_have_the_ports(instance: Instance) -> None:
    for family in families(with_bundles(instance, "any")):
        radix = family.switch.radix
        for uplinks in family.uplink_choices:
            top = levels(family, uplinks)[-1:]
            if family.tiers == 2:
                assert top[0].switches == family.planes * -(-family.leaves * uplinks // radix)
            elif family.pods:
                group = -(-family.pods.count * family.pods.w // radix)
                assert top[0].switches == family.planes * uplinks * group


@settings(max_examples=example_count(40), deadline=None)
@given(instances())
def test_more_uplinks_on_offer_never_cost_less(instance: Instance) -> None:
    for family in families(with_bundles(instance, "even")):
        usd = [total(instance.objective, bill(instance, family, u)).capex_usd for u in family.uplink_choices]
        assert usd == sorted(usd)


def test_ten_leaves_of_a_switch_of_32_ports() -> None:
    """Bundles of three at most: 16 uplinks do not go on 6 spines evenly, so that 8 of two links each take them."""
    domain = {"name": "hb", "size": 16, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    instance = ask(
        cluster__gpus=160,
        network__hb_domains=[domain],
        network__fabrics="clos",
        network__switches=[switch(32, 1000)],
        network__oversubscription=2.0,
    )
    even, top = (family for family in families(instance) if family.active == 16)
    assert (even.leaves, even.bundle, even.uplink_choices) == (10, 3, (9, 12, 15))
    assert [even.spines(u) for u in even.uplink_choices] == [3, 4, 5]
    assert (top.bundle, top.uplink_choices, top.spines(16)) == (2, (16,), 8)


def test_bundles_are_even_or_any() -> None:
    with pytest.raises(ValidationError, match=r"network\.bundles\n.*'even' or 'any'"):
        ask(network__bundles="equal")
