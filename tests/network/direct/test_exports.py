"""What is written can be read again and is the same graph."""

import re
from pathlib import Path

import networkx as nx
import pytest

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import checked_fabric
from coopt.network.direct_shapes import fabric
from coopt.network.graph_files import dot_string, dot_text, graph_text

SHAPES = ["ring:5", "torus:4x4", "hyperx:3x3", "dragonfly:5x2", "regular:10:3", "clos:3x2:2", "fattree:4"]
AWKWARD = ['plain "quoted"', "back\\slash\\", "two words -- ü", "<&>"]
STRING = r'"((?:[^"\\]|\\.)*)"'


def awkward() -> nx.Graph:
    graph = nx.cycle_graph(AWKWARD)
    graph.graph["name"] = 'a "name" \\'
    nx.set_edge_attributes(graph, 2, "links")
    return checked_fabric(graph, "mine", gbit_s=12.5)


def same(one: nx.Graph, other: nx.Graph) -> bool:
    return bool(nx.utils.graphs_equal(one, other)) and list(one) == list(other)


def unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text)


def read_dot(text: str) -> nx.Graph:
    """The subset of DOT that is written, read without a line of the writer."""
    head, *lines, end = text.splitlines()
    assert end == "}"
    found = re.fullmatch(rf"graph {STRING} {{", head)
    assert found
    graph = nx.Graph(name=unquoted(found[1]))
    for line in lines:
        body = re.fullmatch(rf"  {STRING}(?: -- {STRING})? \[(.*)\];", line)
        assert body, line
        data = {key: unquoted(value) for key, value in re.findall(rf"(\w+)={STRING}", body[3])}
        data.pop("shape", None)
        if body[2] is None:
            graph.add_node(unquoted(body[1]), **data)
        else:
            graph.add_edge(unquoted(body[1]), unquoted(body[2]), links=int(data["links"]), gbit_s=float(data["gbit_s"]))
    return graph


@pytest.mark.parametrize("shape", [*SHAPES, "awkward"])
def test_a_graph_comes_back_from_both_forms(shape: str, tmp_path: Path) -> None:
    graph, file = awkward() if shape == "awkward" else fabric(shape), tmp_path / "mine.graphml"
    file.write_text(graph_text(graph, str(file)), "utf-8")
    assert same(fabric(str(file)), graph)
    graph.graph.pop("grid", None)  # DOT keeps nodes and edges
    assert same(read_dot(dot_text(graph)), graph)


def test_port_budgets_are_kept_and_other_endings_refused() -> None:
    graph = fabric("ring:3")
    nx.set_node_attributes(graph, 4, "ports")
    assert all('[kind="domain", ports="4"]' in line for line in dot_text(graph).splitlines()[1:4])
    for name in ("graph.png", "graph"):
        with pytest.raises(InstanceError, match=r"needs \.graphml or \.dot"):
            graph_text(graph, name)


def test_a_dot_string_reads_as_written() -> None:
    assert dot_string('a "b" \\ c\nd') == '"a \\"b\\" \\\\ c\\nd"'
