"""Graphs as files: GraphML in and out, the DOT language of Graphviz out."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, fromstring

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_text

SWITCHES = ("switch", "leaf", "spine", "aggregation", "core")
NEEDS = "needs a GraphML file (networkx.write_graphml writes them)"


def dot_text(graph: nx.Graph, *, about: Mapping[str, Any] | None = None) -> str:
    """The graph as DOT: every name and value in quotes, switches as boxes, `about` as attributes of the whole."""
    lines = [f"graph {dot_string(graph.graph.get('name', ''))} {{"]
    if about:
        lines.append(f"  graph [{_attributes(about)}];")
    for node, data in graph.nodes(data=True):
        looks = {"shape": "box"} if data["kind"] in SWITCHES else {}
        lines.append(f"  {dot_string(node)} [{_attributes(data | looks)}];")
    for one, other, data in graph.edges(data=True):
        lines.append(f"  {dot_string(one)} -- {dot_string(other)} [{_attributes(data)}];")
    return "\n".join([*lines, "}"]) + "\n"


def dot_string(value: object) -> str:
    r"""A DOT string: `\` and `"` escaped, line breaks as `\n`."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n") + '"'


def _attributes(data: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key if key.isidentifier() else dot_string(key)}={dot_string(value)}" for key, value in data.items()
    )


def read_graphml(path: str | Path) -> nx.Graph:
    """The graph of a GraphML file as it stands there; `checked_fabric` looks at what it says.

    Raises
    ------
    InstanceError
        When the file cannot be read, is no GraphML, or declares a document type: entities can make a small file fill
        the memory, so none is read.
    """
    file = Path(path)
    text = read_text(file, "a GraphML file", "the path of a GraphML file")
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise InstanceError(f"{file.name}: declares a document type, needs GraphML without DOCTYPE and entities")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what networkx finds odd is refused below, or of no importance
            graph = nx.parse_graphml(text)
        declared = {element.get("id") for element in fromstring(text).iter() if element.tag.endswith("node")}
    except ParseError as error:
        raise InstanceError(f"{file.name}: not XML ({error}), {NEEDS}") from None
    except (nx.NetworkXException, KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise InstanceError(f"{file.name}: not GraphML ({error}), {NEEDS}") from None
    for one, other in graph.edges():
        if not {one, other} <= declared:
            missing = one if one not in declared else other
            raise InstanceError(
                f"{file.name}: an edge ends at node {missing!r}, which is not there, needs a known node"
            )
    return graph


def graphml_text(graph: nx.Graph) -> str:
    """The graph as GraphML; `read_graphml` gives it back."""
    return "\n".join(nx.generate_graphml(graph)) + "\n"


WRITERS = {".graphml": graphml_text, ".dot": dot_text}


def graph_text(graph: nx.Graph, path: str) -> str:
    """The text of a graph in the form its file name asks for.

    Raises
    ------
    InstanceError
        When the ending is neither .graphml nor .dot.
    """
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        raise InstanceError(f"{path}: ends in {ending or 'nothing'!r}, needs .graphml or .dot")
    return WRITERS[ending](graph)
