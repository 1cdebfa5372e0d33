"""What a graph of a network holds, counted node by node and link by link."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from coopt.network.family import Family, levels
from coopt.network.graphs import PlaneGraph, plane_graph, whole_graph

Graph = Any  # networkx is untyped


@dataclass(frozen=True, kw_only=True)
class Counts:
    """GPUs, NICs, and by level from 1 up switches, links and the most ports a switch uses."""

    gpus: int | None
    nics: int
    switches: tuple[int, ...]
    links: tuple[int, ...]
    ports: tuple[int, ...]

    @property
    def transceivers(self) -> int:
        """Two on every link."""
        return 2 * sum(self.links)


def counted(graph: Graph) -> Counts:
    """The counts of a graph with every part."""
    kinds = Counter(kind for _, kind in graph.nodes(data="kind"))
    switches = Counter(level for _, level in graph.nodes(data="level") if level)
    links: Counter[int] = Counter()
    ports: Counter[str] = Counter()
    for low, high, edge in graph.edges(data=True):
        if edge["level"]:
            links[edge["level"]] += edge["links"]
            ports.update({low: edge["links"], high: edge["links"]})
    most = dict.fromkeys(switches, 0)
    for name, level in graph.nodes(data="level"):
        if level:
            most[level] = max(most[level], ports[name])
    return Counts(
        gpus=kinds["gpu"],
        nics=kinds["nic"],
        switches=tuple(switches[level] for level in sorted(switches)),
        links=tuple(links[level] for level in sorted(switches)),
        ports=tuple(most[level] for level in sorted(switches)),
    )


def counted_compressed(small: PlaneGraph) -> Counts:
    """The counts of the network that a compressed graph stands for; GPUs are not in it.

    A leaf carries all its uplinks, of which the graph draws those of one slice.
    """
    nodes = small.graph.nodes
    switches: Counter[int] = Counter()
    links: Counter[int] = Counter()
    ports: Counter[tuple[str, int]] = Counter()
    for name, node in nodes(data=True):
        switches[node["level"]] += node["copies"]
        if node["level"] == 1:
            links[1] += node["copies"] * node["ends"]
            ports[name] += node["ends"] * min(small.planes_per_switch, small.planes)
    for low, high, edge in small.graph.edges(data=True):
        links[edge["level"]] += edge["links"] * edge["copies"]
        drawn = {name: edge["links"] * (small.slices if nodes[name]["level"] == 1 else 1) for name in (low, high)}
        ports.update(drawn)
    most = {level: max(ports[n] for n, node in nodes(data=True) if node["level"] == level) for level in switches}
    switches[1] = -(-switches[1] // small.planes_per_switch)
    order = sorted(switches)
    return Counts(
        gpus=None,
        nics=links[1],
        switches=tuple(switches[level] for level in order),
        links=tuple(links[level] for level in order),
        ports=tuple(most[level] for level in order),
    )


def check_counts(family: Family, uplinks: int) -> Graph:
    """The whole graph, whose counts are those of the compressed one and of the tiers; switches have the ports."""
    tiers, graph = levels(family, uplinks), whole_graph(family, uplinks)
    whole, small = counted(graph), counted_compressed(plane_graph(family, uplinks))
    assert (whole.gpus, whole.nics) == (family.installed_gpus, family.nic_count)
    assert whole.switches == small.switches == tuple(tier.switches for tier in tiers)
    assert whole.links == small.links == tuple(tier.links for tier in tiers)
    assert whole.ports == small.ports
    assert all(ports <= box.radix for ports, box in zip(whole.ports, family.switches, strict=True))
    return graph
