"""A design as a graph: every end point, switch and cable, or one network that stands for all."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import networkx as nx

from coopt.instance.designs import PublishedDesign
from coopt.network.designs import chain_of
from coopt.network.family import PodSet, TierChain

Graph = Any  # networkx is untyped
End = tuple[str, int, int, int]  # "end", domain, GPU, port


def design_graph(design: PublishedDesign, network: int | None = None) -> Graph:
    """The network of a design, or one of its equal networks.

    Nodes are `("end", domain, gpu, port)` for the network ports of GPUs and `(kind, network, number)` for switches
    (leaf, spine, core), with `kind` and `level` (1 to 3, 0 for end points). On a single tier the number of a leaf is
    that of its switch, which several networks may share. Edges have `level` and `links`, the cables of a bundle.

    Parameters
    ----------
    network
        The number of the one that is drawn; all of them if left out.

    Raises
    ------
    InstanceError
        Where the design cannot be wired.
    """
    chain = chain_of(design)
    graph = nx.Graph(networks=chain.networks)
    for number in range(chain.networks) if network is None else (network,):
        _add_ends(graph, design, chain, number)
        if chain.pods:
            _add_switches(graph, chain, number)
    return graph


def ends_by_leaf(design: PublishedDesign, chain: TierChain, network: int) -> Iterator[tuple[End, int]]:
    """The end points of one network, each with the number of its leaf.

    GPU g of a domain is on rail g mod rails, or each of its ports on one of its own. Leaves are numbered by rail where
    they serve one, then by unit, then by domain. In a clos port p of a GPU is on rail p mod rails, which come last.
    """
    clos = design.fabric == "clos"
    rails = design.rails or (1 if clos else design.gpus_per_domain)
    ports = design.nic_ports // design.planes
    plane, rail = divmod(network, rails) if design.fabric == "rail-only" else (network, None)
    unit = design.unit_domains or design.installed
    block = design.gpus_per_domain * ports // rails
    of_unit = -(-unit * block // chain.fill)
    units = -(-design.installed // unit)
    for domain in range(design.installed):
        unit_number, place = divmod(domain, unit)
        for gpu, port in product(range(design.gpus_per_domain), range(ports)):
            own = rail_of(design, gpu, port)
            if clos:
                number = gpu * (ports // rails) + port // rails
                leaf = (unit_number * of_unit + (place * block + number) // chain.fill) * rails + port % rails
                yield ("end", domain, gpu, plane * ports + port), leaf
            elif rail in (None, own):
                units_before = 0 if rail is not None else own * units
                number = 0 if rails > design.gpus_per_domain else gpu // rails * ports + port
                leaf = (units_before + unit_number) * of_unit + (place * block + number) // chain.fill
                yield ("end", domain, gpu, plane * ports + port), leaf


def rail_of(design: PublishedDesign, gpu: int, port: int) -> int:
    """The rail of a port of a GPU, which may be its own."""
    rails = design.rails or design.gpus_per_domain
    if rails > design.gpus_per_domain:
        ports = design.nic_ports // design.planes
        return gpu * ports + port % ports
    return gpu % rails


def _add_ends(graph: Graph, design: PublishedDesign, chain: TierChain, network: int) -> None:
    single = not chain.pods
    in_plane = chain.networks // chain.planes
    plane, place = divmod(network, in_plane)
    for end, number in ends_by_leaf(design, chain, network):
        leaf = ("leaf", plane, place // chain.networks_per_switch) if single else ("leaf", network, number)
        graph.add_node(end, kind="end", level=0)
        graph.add_node(leaf, kind="leaf", level=1)
        graph.add_edge(end, leaf, level=1, links=1)


def _add_switches(graph: Graph, chain: TierChain, network: int) -> None:
    """Leaves, spines and cores of one network, leaves that no end point of the last unit needs included."""
    graph.add_nodes_from((("leaf", network, leaf) for leaf in range(chain.leaves)), kind="leaf", level=1)
    pods = [part for part in chain.pods for _ in range(part.number)]
    first_leaf = first_spine = 0
    for pod in pods:
        for leaf in range(pod.leaves):
            for cable in range(chain.uplinks):
                spine = (leaf * chain.uplinks + cable) % pod.spines
                _join(graph, ("leaf", network, first_leaf + leaf), ("spine", network, first_spine + spine), 2, 1)
        first_leaf, first_spine = first_leaf + pod.leaves, first_spine + pod.spines
    if chain.cores:
        _add_cores(graph, network, pods, (chain.cores, chain.core_step))


def _add_cores(graph: Graph, network: int, pods: list[PodSet], top: tuple[int, int]) -> None:
    """Bundles of all spines, pod by pod, go round the cores."""
    count, step = top
    ups = [pod.up for pod in pods for _ in range(pod.spines)]
    bundle = 0
    for spine, up in enumerate(ups):
        for _ in range(up // step):
            _join(graph, ("spine", network, spine), ("core", network, bundle % count), 3, step)
            bundle += 1


def _join(graph: Graph, low: tuple[str, int, int], high: tuple[str, int, int], level: int, links: int) -> None:
    graph.add_node(high, kind=high[0], level=level)
    if graph.has_edge(low, high):
        graph.edges[low, high]["links"] += links
    else:
        graph.add_edge(low, high, level=level, links=links)
