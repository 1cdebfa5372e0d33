"""The form of a fabric graph, all complaints about one that does not have it, what fabrics are made
of and cost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, TypeGuard

import networkx as nx

from coopt.instance.base import MIN_DIVISOR
from coopt.instance.catalog import find
from coopt.instance.hardware import Nic, Optic, Panel, Switch
from coopt.instance.texts import InstanceError, broken, counted
from coopt.plan.parts import Item, ItemKind, line

DOMAIN, SWITCH = "domain", "switch"
GBIT_S = 400.0  # of a link whose rate nobody named (Gbit/s)
MOST_DOMAINS = 1024
"""End points of the largest fabric; schedules grow with their square."""
MAX_COMPLAINTS = 8  # complaints at most, of a file that may have thousands
MOST_LINKS = 4096  # in parallel
MOST_GBIT_S = 1e15


def fabric_bill(
    graph: nx.Graph,
    *,
    nic: Nic | None = None,
    optic: Optic | None = None,
    panel: Panel | None = None,
    switch: Switch | None = None,
) -> tuple[Item, ...]:
    """The bill of a fabric: NICs, transceivers, panel ports and switches; what is None is not
    bought.

    Every link has two transceivers, and two panel ports where it is patched. A domain has a NIC for
    each link.

    Raises
    ------
    InstanceError
        When a part does not run at the rate of a link, or a node has more links than the switch has
        ports.
    """
    _check_rates(
        graph, {part.name: part.gbit_s for part in (nic, optic) if part is not None}, switch
    )
    links = link_count(graph)
    nics = sum(ports_used(graph, domain) for domain in domains_of(graph))
    counts: tuple[tuple[ItemKind, Nic | Switch | Optic | None, int], ...] = (
        ("nic", nic, nics),
        ("switch", switch, len(switches_of(graph))),
        ("optics", optic, 2 * links),
    )
    items = [
        line(kind, part.name, count, part.usd, part.w)
        for kind, part, count in counts
        if part is not None
    ]
    if panel is not None:
        items.append(line("panel", panel.name, 2 * links, panel.usd_per_port, panel.w_per_port))
    return tuple(item for item in items if item.count)


def catalog_parts(names: Mapping[str, str | None]) -> dict[str, Any]:
    """Catalog entries for `fabric_bill`: {"nic": "cx7-400g", "panel": None} as {"nic": Nic(...)}.

    Raises
    ------
    InstanceError
        When the catalog has no such entry; the message names the closest.
    """
    parts = {}
    for kind, name in names.items():
        if name is not None:
            try:
                parts[kind] = find(kind, name)
            except ValueError as error:
                raise InstanceError(f"--{kind} {name}: {error}") from None
    return parts


def _check_rates(graph: nx.Graph, rates: dict[str, float], switch: Switch | None) -> None:
    name, kinds = graph.graph["name"], dict(graph.nodes(data="kind"))
    # A switch has to run at the rates of its own links alone.
    of_switch = {} if switch is None else {switch.name: switch.port_gbit_s}
    for tail, head, gbit_s in graph.edges(data="gbit_s"):
        switched = of_switch if SWITCH in (kinds[tail], kinds[head]) else {}
        for part, rate in (rates | switched).items():
            if rate != gbit_s:
                raise InstanceError(
                    f"{name}: edge {edge_name(tail, head)} runs at {gbit_s:g} Gbit/s,"
                    f" but {part!r} at {rate:g} Gbit/s, needs parts of {gbit_s:g} Gbit/s"
                )
    for node in switches_of(graph):
        if switch is not None and ports_used(graph, node) > switch.radix:
            raise InstanceError(
                f"{name}: switch {node!r} has {ports_used(graph, node)} links, but"
                f" {switch.name!r} only {switch.radix} ports, needs a larger switch"
            )


def fabric_graph(
    name: str,
    domains: Iterable[str],
    edges: Iterable[tuple[str, str]],
    *,
    switches: Iterable[str] = (),
    gbit_s: float = GBIT_S,
) -> nx.Graph:
    """A graph of domains and switches joined by single links.

    Parameters
    ----------
    name
        Kept as the graph attribute `name`.
    gbit_s
        Rate of every link, each way (Gbit/s).

    Returns
    -------
    nx.Graph
        Node attribute `kind` ("domain" or "switch"); edge attributes `links` (parallel links) and
        `gbit_s` (of one link, each way).
    """
    graph = nx.Graph(name=name)
    graph.add_nodes_from(domains, kind=DOMAIN)
    graph.add_nodes_from(switches, kind=SWITCH)
    graph.add_edges_from(edges, links=1, gbit_s=float(gbit_s))
    return graph


def domains_of(graph: nx.Graph) -> list[str]:
    """The HB domains, in the order of the graph."""
    return [node for node, data in graph.nodes(data=True) if data["kind"] == DOMAIN]


def switches_of(graph: nx.Graph) -> list[str]:
    """The switches, in the order of the graph."""
    return [node for node, data in graph.nodes(data=True) if data["kind"] == SWITCH]


def link_count(graph: nx.Graph) -> int:
    """Cables: parallel links of an edge count each."""
    return sum(data["links"] for _, _, data in graph.edges(data=True))


def cells(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Coordinates of a grid, the last one fastest."""
    return product(*map(range, shape))


def cell_name(cell: Sequence[int]) -> str:
    """`d3`, `d0.2`, `d1.0.3`."""
    return "d" + ".".join(map(str, cell))


def grid_of(graph: nx.Graph) -> tuple[int, ...] | None:
    """The shape under which the domains are listed row by row (graph attribute `grid`, such as
    `4x4`), if it fits.
    """
    text = str(graph.graph.get("grid", ""))
    parts = text.split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return None
    shape = tuple(map(int, parts))
    return shape if math.prod(shape) == len(domains_of(graph)) else None


def checked_fabric(graph: nx.Graph, place: str, *, gbit_s: float | None = None) -> nx.Graph:
    """The graph in the form of `fabric_graph`: names as text, `kind`, `links` and `gbit_s`
    everywhere.

    Parallel edges become one with the sum of their links. A node without `kind` is a domain, an
    edge without `links` has one; `ports`, where a node has it, limits its links.

    Parameters
    ----------
    place
        What to call the graph in messages.
    gbit_s
        Rate of every link in place of what the edges say (Gbit/s).

    Raises
    ------
    InstanceError
        Directed or disconnected graphs, self loops, bad names, kinds, counts, rates or port
        budgets, fewer than two or more than `MOST_DOMAINS` domains.
    """
    if graph.is_directed():
        raise InstanceError(
            f"{place}: is directed, needs an undirected graph (every link carries both ways)"
        )
    # Only a graph whose nodes and edges are sound can be merged and walked, so those are looked at
    # first.
    complaints = [*_nodes(graph), *_edges(graph, gbit_s)]
    if not complaints:
        graph = _checked_form(graph, place, gbit_s)
        complaints = [*_built(graph)]
    if complaints:
        raise InstanceError(f"{place}: {complaint}" for complaint in complaints[:MAX_COMPLAINTS])
    return graph


def edge_name(tail: object, head: object) -> str:
    """`'a' -- 'b'`."""
    return f"{str(tail)!r} -- {str(head)!r}"


def _nodes(graph: nx.Graph) -> Iterator[str]:
    names = Counter(map(str, graph))
    yield from (
        f"{n} nodes have the same name {name!r} once written as text, needs different names"
        for name, n in names.items()
        if n > 1
    )
    for node, data in graph.nodes(data=True):
        kind, ports = data.get("kind", DOMAIN), data.get("ports")
        place = f"node {str(node)!r}"
        yield from broken(
            (
                kind not in (DOMAIN, SWITCH),
                f"{place}: kind = {kind!r}, needs 'domain' or 'switch'",
            ),
            (
                ports is not None and (not _whole_number(ports) or ports < 1),
                f"{place}: ports = {ports!r}, needs a whole number from 1",
            ),
        )


def _edges(graph: nx.Graph, gbit_s: float | None) -> Iterator[str]:
    rates: dict[frozenset[Any], float] = {}
    for tail, head, data in graph.edges(data=True):
        if tail == head:
            yield (
                f"node {str(tail)!r}: an edge joins it to itself, needs edges between different"
                " nodes"
            )
            continue
        place, links = f"edge {edge_name(tail, head)}", data.get("links", 1)
        rate = data.get("gbit_s") if gbit_s is None else gbit_s
        is_rate = _number(rate) and MIN_DIVISOR <= rate <= MOST_GBIT_S
        is_other = is_rate and rates.setdefault(frozenset((tail, head)), rate) != rate
        yield from broken(
            (
                not _whole_number(links) or not 1 <= links <= MOST_LINKS,
                f"{place}: links = {links!r}, needs a whole number from 1 to {MOST_LINKS:,}",
            ),
            (
                rate is None,
                f"{place}: gbit_s is missing, needs a rate in Gbit/s (--gbit-s sets one for all"
                " links)",
            ),
            (
                rate is not None and not is_rate,
                f"{place}: gbit_s = {rate!r}, needs a rate from {MIN_DIVISOR:g} to"
                f" {MOST_GBIT_S:g} Gbit/s (not GB/s)",
            ),
            (is_other, f"{place}: parallel edges have different gbit_s, needs one rate"),
        )


def _checked_form(graph: nx.Graph, place: str, gbit_s: float | None) -> nx.Graph:
    checked = nx.Graph(name=str(graph.graph.get("name") or place))
    if "grid" in graph.graph:
        checked.graph["grid"] = str(graph.graph["grid"])
    for node, data in graph.nodes(data=True):
        ports = {"ports": int(data["ports"])} if data.get("ports") is not None else {}
        checked.add_node(str(node), kind=data.get("kind", DOMAIN), **ports)
    for tail, head, data in graph.edges(data=True):
        links, rate = int(data.get("links", 1)), float(data["gbit_s"] if gbit_s is None else gbit_s)
        if checked.has_edge(str(tail), str(head)):
            checked.edges[str(tail), str(head)]["links"] += links
        else:
            checked.add_edge(str(tail), str(head), links=links, gbit_s=rate)
    return checked


def _built(graph: nx.Graph) -> Iterator[str]:
    """Yield complaints about sizes, parts without a path between them, and port budgets."""
    ends = len(domains_of(graph))
    components = nx.connected_components(graph)
    parts = [next(node for node in graph if node in part) for part in components]
    more = ", ..." if len(parts) > MAX_COMPLAINTS else ""
    names = f"{', '.join(map(repr, parts[:MAX_COMPLAINTS]))}{more}"
    return broken(
        (ends < 2, f"{counted(ends, 'domain')}, needs at least 2"),
        (ends > MOST_DOMAINS, f"{ends:,} domains, needs at most {MOST_DOMAINS:,}"),
        (
            len(parts) > 1,
            f"the graph falls into {len(parts)} parts (around {names}), needs a path between any"
            " two nodes",
        ),
        *(
            (
                ports_used(graph, node) > ports,
                f"node {node!r}: links = {ports_used(graph, node)}, ports = {ports}: needs fewer"
                " links or more ports",
            )
            for node, ports in graph.nodes(data="ports", default=math.inf)
        ),
    )


def ports_used(graph: nx.Graph, node: str) -> int:
    """Links that end at a node."""
    return int(graph.degree(node, weight="links"))


def _number(value: object) -> TypeGuard[float]:
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _whole_number(value: object) -> TypeGuard[float]:
    """3, or 3.0 as some tools write it."""
    return _number(value) and (isinstance(value, int) or value.is_integer())
