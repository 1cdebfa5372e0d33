"""Everything that a fabric may be at once: the optimum is that of every network, two modules, uplinks and mapping."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.graphs import whole_graph
from coopt.network.parts import end_modules
from coopt.network.plan_networks import families_of_design, uplinks_of
from coopt.network.space import families
from tests.conftest import accepted, example_count, question
from tests.network.test_planes import modules_of
from tests.solving.every_optic import cages, choices
from tests.solving.oracle import disciplined, least_over
from tests.solving.own_ends import RATE
from tests.solving.own_ends import modules as listed_modules
from tests.solving.plane_questions import domains_and_fabrics, one_workload


@st.composite
def wide(draw: st.DrawFn) -> Instance:
    """Clusters of up to 128 GPUs: planes, NICs that GPUs share, bundles in pods, any split and filling of leaves and
    pods, bundles of any size, ends of links, products by tier; bounds from hopeless to loose."""
    gpus = draw(st.sampled_from([16, 30, 32, 48, 64, 96, 128]))
    money, planes = st.integers(0, 3000), draw(st.sampled_from([(1,), (1, 2), (2,), (1, 2, 4)]))
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=1, max_size=2, unique=True))
    radices = draw(st.lists(st.sampled_from([4, 6, 8, 12]), min_size=1, max_size=2, unique=True))
    few = any(size % 2 == 0 for size in sizes)
    network: dict[str, Any] = {
        **domains_and_fabrics(draw, sizes, money),
        "nics": {"name": "nic", "gbit_s": RATE, "ports": list(planes), "usd": draw(money), "w": 20},
        "nic_planes": list(planes),
        "gpus_per_nic": draw(st.sampled_from([[1], [1, 2], [2]])) if few else [1],
        "nics_per_gpu": 1,
        "switches": [_switch(draw, radix, money, planes) for radix in radices],
        "optics": [*listed_modules(draw, money, st.integers(0, 30)), *_slow(draw, money, planes)],
        "oversubscription": draw(st.sampled_from([1.0, 1.5, 2.0, 3.5, [1.0, 2.0], [1.5, 3.0]])),
        "leaf_fill": draw(st.sampled_from(["any", "any", "ratio"])),
        "pod_uplinks": draw(st.sampled_from(["ratio", "any"])),
        "link_ends": draw(st.sampled_from(["own", "same"])),
        "tier_switches": draw(st.sampled_from(["same", "same", "any"])),
        "switch_cages": draw(st.sampled_from(["told", "kept"])),
        **disciplined(draw),
    }
    if network["routing"] not in ("pinned", "ecmp"):
        network["pod_bundles"] = draw(st.sampled_from([[1], [1, 2], [2], [1, 2, 3]]))
    if network["gpus_per_nic"] == [1]:
        network["nics_per_gpu"] = draw(st.sampled_from([1, 2, [1, 2]]))
    workload = one_workload(draw, gpus)
    workload["max_iteration_time_s"] *= draw(st.sampled_from([1.0, 4.0, 20.0]))
    table = question(
        cluster__gpus=gpus,
        workload=[workload],
        network=network,
        objective={"minimize": draw(st.sampled_from(["capex", "power", "tco"]))},
        limits=draw(st.sampled_from([{}, {}, {"power_mw": gpus / 2000}, {"capex_usd": 9000.0 * gpus}])),
    )
    try:
        return Instance.model_validate(table)
    except ValueError:
        table["network"] |= {"optics": [*table["network"]["optics"], *_all_slow(planes)]}
        return Instance.model_validate(table)


def _switch(draw: st.DrawFn, radix: int, money: st.SearchStrategy[int], planes: tuple[int, ...]) -> dict[str, Any]:
    """A switch with a mode for each number of planes, or with cages of several ports."""
    box = {"name": f"{radix}-port", "radix": radix, "port_gbit_s": RATE, "usd": draw(money), "w": 90}
    modes = [{"radix": radix * n, "port_gbit_s": RATE / n} for n in planes if n > 1]
    shared = draw(st.sampled_from([n for n in (1, 1, 2) if radix % n == 0]))
    return box | ({"modes": modes} if modes else {"cages": radix // shared})


def _slow(draw: st.DrawFn, money: st.SearchStrategy[int], planes: tuple[int, ...]) -> list[dict[str, Any]]:
    """Modules of the rate of a port, where NICs have several."""
    return [one | {"usd": draw(money)} for one in _all_slow(planes) if draw(st.booleans())]


def _all_slow(planes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [{"name": f"slow-{n}", "gbit_s": RATE / n, "reach_m": 500, "usd": 1000, "w": 7} for n in planes if n > 1]


def every_network(instance: Instance) -> Iterator[tuple[Family, int]]:
    """Every network with every two modules that split its ports as they are split, and every number of uplinks."""
    network = instance.network
    split: Callable[[Any], Any] = tuple if network.link_ends == "same" or network.switch_cages == "kept" else cages
    alike = {(replace(one, optics=()), split(one.per_module)): one for one in families(instance)}
    for (bare, ports), one in alike.items():
        for family in (replace(bare, optics=optics) for optics in choices(instance, one)):
            if split(family.per_module) == ports:
                yield from ((family, uplinks) for uplinks in family.uplink_choices)


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
    plan, expected = accepted(instance), least_over(instance, every_network(instance))
    assert plan.status == ("infeasible" if math.isinf(expected) else "optimal")
    assert plan.objective.value == (None if math.isinf(expected) else pytest.approx(expected, rel=1e-12))
    if plan.design is None or not plan.design.fabric.tiers:
        return
    family, uplinks = next(families_of_design(instance, plan.design))
    assert uplinks == uplinks_of(plan.design)
    graph = whole_graph(family, uplinks)
    for number, (level, switch) in enumerate(zip(levels(family, uplinks), family.switches, strict=True), start=1):
        switches = [node for node, at in graph.nodes(data="level") if at == number]
        links = sum(edge["links"] for *_, edge in graph.edges(data=True) if edge["level"] == number)
        assert (level.switches, level.links) == (len(switches), links)
        assert max(graph.degree(node, weight="links") for node in switches) <= switch.radix
        if instance.network.switch_cages == "kept":
            box = next(one for one in instance.network.switches if one.name == switch.name)
            assert fullest(graph, family, number) <= box.radix * box.port_gbit_s / box.cage_gbit_s
    assert list(end_modules(family, family.chain(uplinks))) == modules_of(family, uplinks)
