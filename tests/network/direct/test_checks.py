"""Graphs that are no fabric: each is refused, and the node or edge at fault is named."""

from pathlib import Path

import networkx as nx
import pytest

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import checked_fabric
from coopt.network.direct_shapes import fabric
from coopt.network.graph_files import graphml_text


def square(**attributes: object) -> nx.Graph:
    """Four domains in a circle; `attributes` replace those of the edge a -- b."""
    graph = nx.Graph(name="square")
    graph.add_nodes_from("abcd", kind="domain")
    graph.add_edges_from(["ab", "bc", "cd", "da"], links=1, gbit_s=100.0)
    graph.edges["a", "b"].update(attributes)
    return graph


def without(key: str) -> nx.Graph:
    graph = square()
    del graph.edges["a", "b"][key]
    return graph


def with_nodes(*nodes: str, **attributes: object) -> nx.Graph:
    graph = square()
    graph.add_nodes_from(nodes, **attributes)
    return graph


def with_edge(a: str, b: str, gbit_s: float, links: int = 1) -> nx.MultiGraph:
    graph = nx.MultiGraph(square())
    graph.add_edge(a, b, links=links, gbit_s=gbit_s)
    return graph


EDGE = "edge 'a' -- 'b': "
BAD = {
    "negative-rate": (square(gbit_s=-1.0), EDGE + "gbit_s = -1.0, needs a rate from 1e-09"),
    "zero-rate": (square(gbit_s=0), EDGE + "gbit_s = 0, needs"),
    "nan-rate": (square(gbit_s=float("nan")), EDGE + "gbit_s = nan, needs"),
    "infinite-rate": (square(gbit_s=float("inf")), EDGE + "gbit_s = inf, needs"),
    "vanishing-rate": (square(gbit_s=1e-300), EDGE + "gbit_s = 1e-300, needs"),
    "text-rate": (square(gbit_s="fast"), EDGE + "gbit_s = 'fast', needs"),
    "truth-rate": (square(gbit_s=True), EDGE + "gbit_s = True, needs"),
    "no-rate": (without("gbit_s"), EDGE + "gbit_s is missing, needs a rate"),
    "zero-links": (square(links=0), EDGE + "links = 0, needs a whole number from 1"),
    "negative-links": (square(links=-2), EDGE + "links = -2, needs"),
    "half-a-link": (square(links=1.5), EDGE + "links = 1.5, needs"),
    "nan-links": (square(links=float("nan")), EDGE + "links = nan, needs"),
    "many-links": (square(links=10**9), EDGE + "links = 1000000000, needs"),
    "unequal-parallels": (with_edge("b", "a", 200.0), EDGE + "parallel edges have different gbit_s, needs one rate"),
    "loop": (with_edge("c", "c", 100.0), "node 'c': an edge joins it to itself, needs edges between different nodes"),
    "apart": (with_nodes("x", "y"), "falls into 3 parts (around 'a', 'x', 'y'), needs a path"),
    "kind": (with_nodes("x", kind="router"), "node 'x': kind = 'router', needs 'domain' or 'switch'"),
    "ports": (with_nodes("b", ports=1), "node 'b': links = 2, ports = 1: needs fewer links or more ports"),
    "ports-nan": (with_nodes("b", ports=float("nan")), "node 'b': ports = nan, needs a whole number from 1"),
    "ports-zero": (with_nodes("b", ports=0), "node 'b': ports = 0, needs"),
    "one-domain": (with_nodes("b", "c", "d", kind="switch"), "1 domain, needs at least 2"),
    "nothing": (nx.Graph(), "0 domains, needs at least 2"),
    "directed": (nx.DiGraph(square()), "is directed, needs an undirected graph"),
    "names": (nx.relabel_nodes(square(), {"a": 1, "b": "1"}), "2 nodes have the same name '1'"),
    "large": (nx.path_graph(1025), "1,025 domains, needs at most 1,024"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_graph_is_refused_by_name(case: str) -> None:
    graph, says = BAD[case]
    with pytest.raises(InstanceError) as refused:
        checked_fabric(graph, "mine", gbit_s=100.0 if case == "large" else None)
    assert all(line.startswith("mine: ") for line in refused.value.complaints)
    assert says in str(refused.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    graph = square(gbit_s=0, links=0)
    graph.add_edge("c", "c")
    with pytest.raises(InstanceError) as refused:
        checked_fabric(graph, "mine")
    assert len(refused.value.complaints) == 3


def test_a_good_graph_has_all_that_is_left_out() -> None:
    """Parallel edges are summed, links are whole numbers, a port budget is kept, and a given rate holds for all."""
    assert checked_fabric(with_edge("b", "a", 100.0, 2), "mine").edges["a", "b"] == {"links": 3, "gbit_s": 100.0}
    assert repr(checked_fabric(square(links=2.0), "mine").edges["a", "b"]["links"]) == "2"
    assert checked_fabric(with_nodes("b", ports=2), "mine").nodes["b"]["ports"] == 2
    graph = checked_fabric(nx.path_graph(3), "mine", gbit_s=50)
    assert dict(graph.nodes(data=True)) == {name: {"kind": "domain"} for name in "012"}
    assert graph.edges["0", "1"] == {"links": 1, "gbit_s": 50.0}


GOOD = graphml_text(square())
FILES: dict[str, tuple[str | bytes, str]] = {
    "not-xml": ("torus", "not XML"),
    "empty": ("", "not XML"),
    "cut": (GOOD[: len(GOOD) // 2], "not XML"),
    "other-xml": ("<svg xmlns='http://www.w3.org/2000/svg'/>", "not GraphML"),
    "no-text": (b"\xff\xfe\x00", "not UTF-8 text"),
    "bad-number": (GOOD.replace(">100.0<", ">fast<", 1), "not GraphML"),
    "no-end": (GOOD.replace('source="a"', "", 1), "an edge ends at node 'None', which the file does not define"),
    "no-such-end": (
        GOOD.replace('source="a"', 'source="x"', 1),
        "an edge ends at node 'x', which the file does not define",
    ),
    "entities": (
        '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><graphml>&b;</graphml>',
        "declares a document type, needs GraphML without DOCTYPE",
    ),
    "entities-small-letters": ("<!doctype g><graphml/>", "declares a document type"),
    "directed": (GOOD.replace('edgedefault="undirected"', 'edgedefault="directed"'), "is directed"),
    "nan": (GOOD.replace(">100.0<", ">nan<", 1), "edge 'a' -- 'b': gbit_s = nan"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_refused_by_name(case: str, tmp_path: Path) -> None:
    content, says = FILES[case]
    file = tmp_path / "mine.graphml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InstanceError) as refused:
        fabric(str(file))
    assert "mine.graphml: " in str(refused.value)
    assert says in str(refused.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for place in (tmp_path / "none.graphml", tmp_path):
        with pytest.raises(InstanceError, match="needs"):
            fabric(str(place))
