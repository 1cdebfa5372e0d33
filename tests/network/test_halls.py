"""Racks of a network in rows: every link has a length, as in the graph, and the hall draws what is installed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import coopt
from coopt.fabric.halls import middle, sold_m
from coopt.instance.schema import Instance
from coopt.network.family import levels
from coopt.network.graphs import whole_graph
from coopt.network.halls import network_hall
from coopt.network.part_networks import family_of_plan
from coopt.network.space import families
from tests.conftest import ask, example_count
from tests.solving.oracle import instances


@settings(max_examples=example_count(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_cables_are_the_links_of_the_graph_at_lengths_of_the_hall(instance: Instance) -> None:
    """Against the graph: a switch stands in the middle of the racks below it, weighted by the cables to them."""
    rows = instance.network.hall.model_copy(update={"racks_per_row": 2})
    instance = instance.model_copy(update={"network": instance.network.model_copy(update={"hall": rows})})
    for family in list(families(instance))[::7]:
        u = family.uplink_choices[-1] if family.tiers > 1 else 0
        found = network_hall(instance, family, u)
        if found is None:
            assert not family.tiers or family.hb.racks is None
            continue
        assert [cables.total() for cables in found.cables] == [level.links for level in levels(family, u)]
        graph = whole_graph(family, u)
        near = [(a, b, edge) for a, b, edge in graph.edges(data=True) if edge["level"] == 1]
        hung: dict[Any, Counter[int]] = {}
        for a, b, edge in near:
            nic, leaf = (a, b) if graph.nodes[b]["level"] else (b, a)
            rack = found.hall.rack_of(graph.nodes[nic]["domain"])
            hung.setdefault(leaf, Counter())[rack] += edge["links"]
        lengths = Counter[int]()
        for below in hung.values():
            for rack, count in below.items():
                lengths[sold_m(found.hall.cable_m(rack, middle(below)))] += count
        assert found.cables[0] == lengths


def test_the_hall_of_a_plan_holds_all_that_draws_power() -> None:
    everything = ["gpu", "hb", "host", "nic", "switch", "optics"]
    for include in (everything, ["switch"]):
        instance = ask(network__hb_domains="hgx-h100-8", objective={"include": include})
        plan = coopt.solve(instance)
        family, uplinks = family_of_plan(instance, plan)
        found = network_hall(instance, family, uplinks)
        assert found is not None
        full = coopt.solve(ask(network__hb_domains="hgx-h100-8", objective={"include": everything}))
        assert full.cost is not None
        assert full.design is not None
        assert found.w == pytest.approx(full.cost.power_w)
        assert found.racks == full.design.racks
        assert found.rack_w * found.racks < found.w


def test_no_plan_depends_on_how_racks_stand() -> None:
    assert ask(network__hall={"racks_per_row": 3}).sha256 == ask().sha256
