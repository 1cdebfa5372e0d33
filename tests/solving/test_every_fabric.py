"""Everything that a fabric may be at once: the optimum is that of every network, two modules, uplinks and mapping."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.graphs import whole_graph
from coopt.network.parts import end_modules
from coopt.network.plan_networks import families_of_design, uplinks_of
from tests.conftest import accepted, example_count
from tests.network.test_planes import modules_of
from tests.solving.fleet_oracle import enumerated
from tests.solving.questions import wide


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
    plan, expected = accepted(instance), enumerated(instance)
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
