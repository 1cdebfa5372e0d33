"""GraphML in and out."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from xml.etree.ElementTree import ParseError, fromstring

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_text

NEEDS = "needs a GraphML file (networkx.write_graphml writes them)"


def read_graphml(path: str | Path) -> nx.Graph:
    """The graph of a GraphML file as it stands there; `checks.checked` looks at what it says.

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
