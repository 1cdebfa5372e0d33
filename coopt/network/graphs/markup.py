"""GraphML of large graphs, line by line, where networkx first builds a tree of all elements in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

Graph = Any  # networkx is untyped
Keys = dict[tuple[str, str], tuple[str, str]]

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">',
)
TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def graphml_lines(graph: Graph) -> Iterator[str]:
    """The lines of a GraphML file; attributes of one name have one type on all nodes, and on all edges."""
    keys: Keys = {}
    for scope, tables in (
        ("graph", (graph.graph,)),
        ("node", (data for _, data in graph.nodes(data=True))),
        ("edge", (data for *_, data in graph.edges(data=True))),
    ):
        for table in tables:
            for name, value in table.items():
                kind = TYPES[type(value)]
                assert keys.setdefault((scope, name), (f"d{len(keys)}", kind))[1] == kind, name
    yield from HEAD
    for (scope, name), (number, kind) in keys.items():
        yield f'  <key id="{number}" for="{scope}" attr.name={quoteattr(name)} attr.type="{kind}" />'
    yield '  <graph edgedefault="undirected">'
    yield f"    {_data(keys, 'graph', graph.graph)}"
    for node, data in graph.nodes(data=True):
        yield f"    <node id={quoteattr(node)}>{_data(keys, 'node', data)}</node>"
    for one, other, data in graph.edges(data=True):
        yield f"    <edge source={quoteattr(one)} target={quoteattr(other)}>{_data(keys, 'edge', data)}</edge>"
    yield "  </graph>"
    yield "</graphml>"


def _data(keys: Keys, scope: str, table: Mapping[str, Any]) -> str:
    return "".join(f'<data key="{keys[scope, name][0]}">{_text(value)}</data>' for name, value in table.items())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else escape(str(value))
