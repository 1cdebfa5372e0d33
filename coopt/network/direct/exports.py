"""Graphs as files, by the ending of their name."""

from __future__ import annotations

from pathlib import Path

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.network.direct.dot import dot_text
from coopt.network.direct.graphml import graphml_text

WRITERS = {".graphml": graphml_text, ".dot": dot_text}


def exported(graph: nx.Graph, path: str) -> str:
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
