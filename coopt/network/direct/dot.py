"""Graphs in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import networkx as nx

SWITCHES = ("switch", "leaf", "spine", "aggregation", "core")


def dot_text(graph: nx.Graph, *, about: Mapping[str, Any] | None = None) -> str:
    """The graph as DOT: every name and value in quotes, switches as boxes, `about` as attributes of the whole."""
    lines = [f"graph {quoted(graph.graph.get('name', ''))} {{"]
    if about:
        lines.append(f"  graph [{_attributes(about)}];")
    for node, data in graph.nodes(data=True):
        looks = {"shape": "box"} if data["kind"] in SWITCHES else {}
        lines.append(f"  {quoted(node)} [{_attributes(data | looks)}];")
    for one, other, data in graph.edges(data=True):
        lines.append(f"  {quoted(one)} -- {quoted(other)} [{_attributes(data)}];")
    return "\n".join([*lines, "}"]) + "\n"


def quoted(value: object) -> str:
    r"""A DOT string: `\` and `"` escaped, line breaks as `\n`."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n") + '"'


def _attributes(data: Mapping[str, Any]) -> str:
    return ", ".join(f"{key if key.isidentifier() else quoted(key)}={quoted(value)}" for key, value in data.items())
