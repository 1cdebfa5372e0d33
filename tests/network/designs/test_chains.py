"""Chains against plain counting and as graphs: ports, connections, counts, bills."""

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings

from coopt.instance.designs import PublishedDesign
from coopt.instance.texts import InstanceError
from coopt.network.design_bills import design_bill
from coopt.network.designs import chain_of
from tests.conftest import example_count
from tests.network.designs.design_graphs import design_graph, rail_of
from tests.network.designs.oracle import Table, counts, tables


@settings(max_examples=example_count(1500, 100))
@given(tables())
def test_counts_are_those_of_plain_counting_of_the_graph_and_of_the_bill(table: Table) -> None:
    design = PublishedDesign.model_validate(table)
    expected = counts(design)
    if expected is None:
        why = r"tiers\[\d\].(ports|down) = \d+: a switch of tier|(unit|leaf)_domains = \d+: a leaf (has ports|serves)"
        with pytest.raises(InstanceError, match=rf"design 'drawn': ({why})"):
            chain_of(design)
        return
    tiers = chain_of(design).levels
    assert ([tier.switches for tier in tiers], [tier.links for tier in tiers]) == expected
    graph = design_graph(design)
    assert _of_graph(graph, len(tiers)) == expected
    for node, kind in graph.nodes(data="kind"):
        if kind != "end":
            _check_ports(graph, node, design)
    _check_connections(graph, design)
    priced = {(item.kind, item.item): item.count for item in design_bill(_with_products(table)).items}
    assert priced.pop(("nic", "adapter")) == design.gpus
    assert priced.pop(("switch", "box")) == sum(expected[0])
    assert sum(priced.values()) == 2 * sum(expected[1])


def _with_products(table: Table) -> PublishedDesign:
    """The design with a product for every part, whose rates mate."""
    price = {"usd": 1.0, "w": 1.0}
    box = price | {"name": "box", "radix": 64, "port_gbit_s": 800.0}
    rates = [tier.get("down_gbit_s", 800.0) for tier in table["tiers"]]
    optics = [price | {"name": f"{rate}", "gbit_s": rate, "reach_m": 50.0} for rate in rates]
    tiers = [tier | {"switch": box, "optic": optic} for tier, optic in zip(table["tiers"], optics, strict=True)]
    nic = price | {"name": "adapter", "gbit_s": rates[0] * table["nic_ports"]}
    return PublishedDesign.model_validate(table | {"tiers": tiers, "nic": nic})


def _of_graph(graph: nx.Graph, tiers: int) -> tuple[list[int], list[int]]:
    switches, links = Counter[int](), Counter[int]()
    for _, level in graph.nodes(data="level"):
        switches[level] += 1
    for *_, data in graph.edges(data=True):
        links[data["level"]] += data["links"]
    levels = range(1, tiers + 1)
    return [switches[level] for level in levels], [links[level] for level in levels]


def _check_ports(graph: nx.Graph, node: tuple[str, int, int], design: PublishedDesign) -> None:
    """No more cables than ports, nor than the design says; even bundles are equal where a leaf has them."""
    own = graph.nodes[node]["level"]
    below, above = (
        [d["links"] for *_, d in graph.edges(node, data=True) if d["level"] == level] for level in (own, own + 1)
    )
    tier = design.tiers[own - 1]
    split = 2 if tier.down_gbit_s else 1
    assert -(-sum(below) // split) + sum(above) <= tier.ports
    assert sum(below) <= (tier.down or tier.ports * split)
    if tier.up is not None and own < len(design.tiers):
        assert sum(above) == tier.up
    if design.bundles == "even":
        assert len(set(above)) <= 1


def _check_connections(graph: nx.Graph, design: PublishedDesign) -> None:
    """End points of a plane reach each other; rail-only: those of one rail; below pods that nothing joins: theirs."""
    part = {node: number for number, nodes in enumerate(nx.connected_components(graph)) for node in nodes}
    unit = design.unit_domains or design.domains
    groups: dict[tuple[int, ...], set[int]] = {}
    for node in graph.nodes:
        if node[0] == "end":
            _, domain, gpu, port = node
            plane = port // (design.nic_ports // design.planes)
            rail = rail_of(design, gpu, port) if design.fabric == "rail-only" or _apart(design) else 0
            which = domain // unit if _apart(design) and design.pod == "unit" else 0
            rail = 0 if design.fabric == "clos" else rail
            groups.setdefault((plane, rail, which), set()).add(part[node])
    assert all(len(parts) == 1 for parts in groups.values())


def _apart(design: PublishedDesign) -> bool:
    return design.pod is not None and len(design.tiers) == 2


@pytest.mark.parametrize("leaves", [2, 3, 5, 8])
@pytest.mark.parametrize("ports", [12, 16, 20, 24])
def test_the_worst_pair_of_leaves_has_what_the_graph_gives(leaves: int, ports: int) -> None:
    tiers = [{"ports": 2 * 10, "down": 10, "up": 10}, {"ports": ports}]
    design = PublishedDesign.model_validate(
        {"id": "x", "fabric": "clos", "domains": leaves * 10, "gpus_per_domain": 1, "bundles": "any", "tiers": tiers}
    )
    graph = design_graph(design)
    bundles = [
        {above: graph.edges[leaf, above]["links"] for above in graph[leaf] if above[0] == "spine"}
        for leaf in (node for node in graph if node[0] == "leaf")
    ]
    shared = [
        sum(min(links, other.get(spine, 0)) for spine, links in one.items()) for one, other in combinations(bundles, 2)
    ]
    assert chain_of(design).worst_pair_share() == pytest.approx(min(shared) / 10)


def test_uneven_bundles_are_fewer_spines_with_less_bandwidth() -> None:
    units = {"id": "3su", "fabric": "rail-optimized", "domains": 96, "gpus_per_domain": 8, "unit_domains": 32}
    table = units | {"tiers": [{"ports": 64}, {"ports": 64}]}
    even, uneven = (design_bill(PublishedDesign.model_validate(table | {"bundles": kind})) for kind in ("even", "any"))
    assert [bill.tier[1].switches for bill in (even, uneven)] == [16, 12]
    assert (even.pair_share, uneven.pair_share) == (1.0, 0.875)
