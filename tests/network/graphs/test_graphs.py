"""Graphs of networks against the counts that are priced, and against each other."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.network.family import Family, levels
from coopt.network.graphs import PlaneGraph, plane_graph, whole_graph
from coopt.network.space import families
from tests.conftest import ask, example_count, switch
from tests.network.graph_counts import check_counts, counted_compressed
from tests.solving.oracle import instances


@st.composite
def wired(draw: st.DrawFn) -> tuple[Family, int]:
    """A network of a random instance."""
    found = [family for family in families(draw(instances())) if family.tiers]
    if not found:
        return draw(wired())
    family = draw(st.sampled_from(found))
    return family, draw(st.sampled_from(family.uplink_choices))


@settings(max_examples=example_count(1000, 40))
@given(wired())
def test_graphs_hold_what_the_bill_counts(chosen: tuple[Family, int]) -> None:
    check_counts(*chosen)


@settings(max_examples=example_count(300, 15))
@given(wired())
def test_the_compressed_graph_repeated_is_the_whole_graph(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    whole = whole_graph(family, uplinks)
    switches = whole.subgraph(name for name, level in whole.nodes(data="level") if level)
    assert _links(switches) == _links(repeated(plane_graph(family, uplinks)))


def repeated(small: PlaneGraph) -> nx.Graph:
    """Every plane and slice of a compressed graph, under the names of the whole one."""
    graph = nx.Graph()
    for plane in range(-(-small.planes // small.planes_per_switch)):
        for piece in range(small.slices):

            def name(node: tuple[str, int], plane: int = plane, piece: int = piece) -> str:
                kind, number = node
                if kind == "aggregation":
                    number = number * small.slices + piece
                elif kind == "core":
                    number += piece * sum(other == "core" for other, _ in small.graph)
                return f"{kind}/{plane}/{number}"

            graph.add_nodes_from(name(node) for node in small.graph)
            graph.add_edges_from((name(a), name(b), {"links": e["links"]}) for a, b, e in small.graph.edges(data=True))
    return graph


def _links(graph: nx.Graph) -> tuple[set[str], dict[frozenset[str], int]]:
    return set(graph), {frozenset((a, b)): edge["links"] for a, b, edge in graph.edges(data=True)}


@settings(max_examples=example_count(500, 50))
@given(wired())
def test_every_two_nics_of_a_rail_are_joined(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    graph = whole_graph(family, uplinks)
    fabric = graph.subgraph(name for name, kind in graph.nodes(data="kind") if kind not in ("gpu", "hb"))
    parts = list(nx.connected_components(fabric))
    assert len(parts) == (levels(family, uplinks)[0].switches if family.tiers == 1 else family.planes)
    for rank in range(family.hb.size):
        rail = {f"nic/{domain}/{rank}/0" for domain in range(family.domains)}
        assert any(rail <= part for part in parts)


def test_a_leaf_numbers_its_ports_by_the_page() -> None:
    """Rail-optimized, 16 domains of 8 on leaves of 4: rail 2 begins at leaf 8."""
    small = ask(
        cluster__gpus=128,
        network__hb_domains="hgx-h100-8",
        network__fabrics="rail-optimized",
        network__switches=switch(8, 1),
        network__oversubscription=1.0,
        network__max_tiers=3,
    )
    (family,) = families(small)
    graph = whole_graph(family, family.uplink_choices[-1])
    assert graph.has_edge("nic/0/2/0", "leaf/0/8")
    assert graph.has_edge("nic/5/2/0", "leaf/0/9")


@pytest.mark.parametrize("gpus", [32_768, 1_048_576])
def test_a_compressed_graph_stays_small(gpus: int) -> None:
    large = ask(
        cluster__gpus=gpus,
        network__hb_domains="hgx-h100-8",
        network__fabrics="clos",
        network__switches=switch(512, 1),
        network__oversubscription=1.0,
    )
    found = list(families(large))
    assert found
    for family in found:
        small = plane_graph(family, family.uplink_choices[-1])
        assert counted_compressed(small).nics == gpus
        assert small.graph.number_of_nodes() < gpus / 32
