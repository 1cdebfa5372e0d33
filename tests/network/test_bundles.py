"""Bundles of links: equal ones by default, and what the numbers of uplinks are that spines share evenly."""

import random
from collections import Counter
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.columns.loads import serving_uplinks
from coopt.instance.schema import Instance
from coopt.network.family import Family, common_links, levels
from coopt.network.filling import EndPoints, wirings
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from coopt.verifier.parts.layouts import pod_splits
from tests.conftest import ASK_WHY, accepted, ask, example_count, question, switch, value_of
from tests.network.even_bundles import least_spines, offered, on_gpus, up_ports, with_bundles
from tests.solving.oracle import enumerated, instances

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


@settings(max_examples=example_count(60))
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


@settings(max_examples=example_count(60))
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


@settings(max_examples=example_count(40))
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


@settings(max_examples=example_count(40))
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


def test_bundles_are_even_or_any() -> None:
    with pytest.raises(ValidationError, match=r"network\.bundles\n.*'even' or 'any'"):
        ask(network__bundles="equal")


@settings(max_examples=example_count(60))
@given(
    radix=st.integers(2, 24),
    ratio=st.sampled_from([1.0, 2.0, 2.5, 3.0, 5.0, 9.0, [1.0, 3.0], [1.5, 4.0]]),
    pod_uplinks=st.sampled_from(["ratio", "any"]),
)
def test_pods_have_every_number_of_up_ports_within_their_ratio(radix, ratio, pod_uplinks) -> None:
    network = ask(network__oversubscription=ratio, network__pod_uplinks=pod_uplinks).network
    expected = {(l, w) for l in range(1, radix) for w in up_ports(network, radix, l)}  # noqa: E741
    ends = EndPoints(fabric="clos", domains=radix * radix, rails=1)
    offered_splits = {
        (one.pods.l, one.pods.w) for one in wirings(ends, radix, network, above=(radix, 10**6)) if one.pods
    }
    assert offered_splits == expected
    assert set(pod_splits(radix, network)) == expected


@st.composite
def tall(draw: st.DrawFn) -> Instance:
    """Random questions of three tiers on switches whose splits leave a choice of up-ports."""
    drawn, gpus = draw(instances()), draw(st.sampled_from([64, 96, 128]))
    radices = draw(st.sampled_from([[4], [6], [7], [9], [10], [7, 9]]))
    own = question(network__switches=[switch(radix, draw(st.integers(0, 3000)), 400) for radix in radices])
    parts = Instance.model_validate(own | {"network": own["network"] | {"nics": "cx7-400g"}}).network
    changes = {
        "switches": parts.switches,
        "nics": parts.nics,
        "optics": parts.optics,
        "oversubscription": draw(st.sampled_from([2.0, 3.0, 5.0, (1.0, 3.0)])),
        "pod_uplinks": draw(st.sampled_from(["ratio", "any"])),
    }
    slower = draw(st.sampled_from([2.0, 6.0, 20.0]))
    network = drawn.network.model_copy(update=changes)
    return on_gpus(drawn, gpus, slower).model_copy(update={"network": network})


@settings(max_examples=example_count(30))
@given(tall())
def test_no_other_number_of_up_ports_is_cheaper(instance: Instance) -> None:
    assert value_of(accepted(instance, reasons=ASK_WHY)) == pytest.approx(enumerated(instance), rel=1e-9)


def test_21_up_ports_go_round_one_core_where_22_take_two() -> None:
    """4,096 servers of 8 in planes by rail, at 2:1: three pods on cores of 64 ports, so that 21 up-ports fill one."""
    changes = {"cluster__gpus": 32_768, "network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}
    changes |= {"network__switches": switch(64, 44_416), "network__oversubscription": 2.0}
    pods = {family.pods for family in families(ask(**changes)) if family.pods and family.pods.count == 3}
    assert {(one.w, one.cores(64)) for one in pods if one.l == 42} == {(22, 2), (21, 1)}


def test_neighbours_have_fewest_links_in_common_of_all_that_deal_theirs_in_turn() -> None:
    draw, uneven, tried = random.Random(3), 0, example_count(400)
    for _ in range(tried):
        radix, below = draw.randint(4, 40), draw.randint(2, 12)
        below = min(below, radix)
        links = draw.randint(1, radix)
        switches = -(-below * links // radix)
        deals = [Counter((i * links + j) % switches for j in range(links)) for i in range(below)]
        shared = [sum((one & other).values()) for one, other in combinations(deals, 2)]
        assert common_links(links, switches) == min(shared)
        wider = max(up[m] / other[m] for up, other in permutations(deals, 2) for m in up)
        assert common_links(links, switches, at_random=True) == pytest.approx(links / wider)
        uneven += min(shared) < links
    assert uneven > tried // 3


def test_more_uplinks_are_never_worth_less_where_bundles_differ() -> None:
    """21 leaves and spines of 64 ports: 9 uplinks are worth 8, as 10 uplinks to 4 spines are."""
    worth = serving_uplinks(21, 64, 32, at_random=False)
    common = np.array([common_links(u, -(-21 * u // 64)) for u in range(1, 33)])
    assert list(worth[1:]) == [min(common[u:]) for u in range(32)]
    assert list(common[8:10]) == [9, 8]
    assert list(worth[9:11]) == [8, 8]
    assert (np.diff(worth) >= 0).all()
