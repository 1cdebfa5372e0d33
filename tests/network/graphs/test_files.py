"""What is exported opens elsewhere and is the network that is billed."""

from xml.etree.ElementTree import fromstring

import networkx as nx
import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.family import Family
from coopt.network.graph_files import graphml_text, network_dot, network_graph, network_graphml
from coopt.network.graphs import whole_graph
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from tests.conftest import ask, example_count
from tests.network.direct.test_exports import read_dot
from tests.network.graph_counts import counted
from tests.network.graphs.test_graphs import wired

FABRICS = [("rail-only", 8, 1), ("rail-only", 4, 2), ("rail-optimized", 16, 2), ("clos", 16, 2), ("clos", 8, 3)]


def solved(fabric: str, radix: int, tiers: int) -> tuple[Instance, Plan]:
    """64 GPUs on one fabric."""
    instance = ask(
        network__fabrics=fabric,
        network__hb_domains="hgx-h100-8",
        network__switches={"name": "small", "radix": radix, "port_gbit_s": 400, "usd": 1, "w": 1},
        network__max_tiers=3,
        network__oversubscription=1.0,
        workload__0__max_iteration_time_s=100.0,
    )
    plan = solve(instance)
    assert plan.design
    assert plan.design.fabric.tiers == tiers
    return instance, plan


def opened(text: str) -> nx.Graph:
    """The graph that networkx reads, without the marks it leaves on every one."""
    graph = nx.parse_graphml(text)
    del graph.graph["node_default"], graph.graph["edge_default"]
    return graph


@pytest.mark.parametrize(("fabric", "radix", "tiers"), FABRICS)
def test_graphml_opens_in_networkx_as_the_same_graph_and_dot_holds_its_nodes_and_links(fabric, radix, tiers):
    asked = solved(fabric, radix, tiers)
    for one_plane in (False, True):
        graph = network_graph(*asked, one_plane=one_plane)
        assert nx.utils.graphs_equal(opened(network_graphml(*asked, compressed=one_plane)), graph)
        assert all({"kind", "level"} <= set(data) for _, data in graph.nodes(data=True))
        assert all({"level", "links", "gbit_s"} <= set(data) for *_, data in graph.edges(data=True))
        assert {"name", "fabric", "planes", "tiers"} <= set(graph.graph)
        assert not one_plane or all(data["copies"] >= 1 for _, data in graph.nodes(data=True))
        head, about, *lines = network_dot(*asked, compressed=one_plane).splitlines()
        assert about.startswith("  graph [planes=")
        read = read_dot("\n".join([head, *lines]))
        assert list(read) == list(graph)
        assert {frozenset(edge) for edge in read.edges} == {frozenset(edge) for edge in graph.edges}
        assert all(read.edges[edge]["links"] == data["links"] for *edge, data in graph.edges(data=True))
        boxes = [line for line in lines if 'shape="box"' in line]
        assert len(boxes) == sum(level > 0 for _, level in graph.nodes(data="level"))


@settings(max_examples=example_count(300, 30))
@given(wired())
def test_a_file_holds_what_the_bill_counts(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    graph = whole_graph(family, uplinks)
    assert counted(nx.parse_graphml(graphml_text(graph))) == counted(graph)


def test_names_that_xml_knows_otherwise_are_kept() -> None:
    graph = nx.Graph(name='a "<&>" b')
    graph.add_node('x "<&>"', kind="'leaf' & <more>", idle=True)
    text = graphml_text(graph)
    assert nx.utils.graphs_equal(opened(text), graph)
    assert ">true<" in text
    assert fromstring(text.encode("utf-8")).tag.endswith("graphml")


def test_one_hb_domain_has_no_network_to_export() -> None:
    instance = ask(cluster__gpus=8, network__hb_domains="hgx-h100-8", workload__0__max_iteration_time_s=100.0)
    plan = solve(instance)
    assert family_of_plan(instance, plan)[0].tiers == 0
    for compressed in (False, True):
        with pytest.raises(InstanceError, match="one HB domain"):
            network_graphml(instance, plan, compressed=compressed)
