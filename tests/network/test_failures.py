"""Losses of parts against whole graphs from which each part in turn is taken."""

import math
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings

from coopt.network.failures import losses, slower_without_leaf
from coopt.network.family import Family
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from tests.conftest import ask, example_count
from tests.network.graphs.test_graphs import wired

Effect = tuple[float, float, float]
NAMES = {"leaf": "leaf switch", "spine": "spine switch", "aggregation": "aggregation switch", "core": "core switch"}


@settings(max_examples=example_count(60))
@given(wired().filter(lambda chosen: chosen[0].installed_gpus <= 32))
def test_every_part_taken_from_the_whole_graph_has_the_effect_of_its_kind(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    found: Counter[tuple[str, Effect]] = Counter()
    for loss in losses(family, uplinks):
        found[
            loss.part, (round(loss.domain_slowdown, 9), round(loss.leaf_slowdown, 9), round(loss.pod_slowdown, 9))
        ] += loss.count
    taken = taken_one_by_one(family, whole_graph(family, uplinks))
    assert found == taken, (found - taken, taken - found)
    if family.tiers:
        worst = max(loss.domain_slowdown for loss in losses(family, uplinks) if loss.part == "leaf switch")
        assert slower_without_leaf(family) == worst


def taken_one_by_one(family: Family, graph: nx.Graph) -> Counter[tuple[str, Effect]]:
    """Counts of (part, effect) by removing each NIC, link and switch."""
    found: Counter[tuple[str, Effect]] = Counter()
    for node, kind in graph.nodes(data="kind"):
        if kind == "nic":
            found["NIC", after(family, graph, without=[node])] += 1
        elif kind in NAMES:
            found[NAMES[kind], after(family, graph, without=[node])] += 1
    for low, high, edge in graph.edges(data=True):
        ends = {graph.nodes[n]["kind"]: n for n in (low, high)}
        if edge["level"] == 0:
            continue
        below, above = (k for k in ("nic", "leaf", "spine", "aggregation", "core") if k in ends)
        name = "link from NIC to leaf" if below == "nic" else f"link from {below} to {above}"
        found[name, after(family, graph, cut=(low, high))] += edge["links"]
    return found


def after(family: Family, graph: nx.Graph, without: list[str] = [], cut: tuple[str, str] | None = None) -> Effect:  # noqa: B006
    """Slowdowns of what leaves a domain, a leaf, a pod, from NICs and links counted on the damaged graph."""
    broken = graph.copy()
    broken.remove_nodes_from(without)
    if cut:
        edge = broken.edges[cut]
        edge["links"] -= 1
        if not edge["links"]:
            broken.remove_edge(*cut)
    whole_up, up = _uplinks(graph), _uplinks(broken)
    nic = _nics(family, graph, broken, lambda leaf: True)
    ratios = [whole_up[leaf] / up[leaf] for leaf in up if 0 < up[leaf] < whole_up[leaf]]
    dead = [leaf for leaf in up if whole_up[leaf] and not up[leaf]]
    above = max(ratios, default=1.0)
    if dead:
        above = max(above, _nics(family, graph, broken, lambda leaf: leaf not in dead))
    whole_pod, pod = _pod_links(graph), _pod_links(broken)
    beyond = max((whole_pod[p] / pod[p] if pod[p] else math.inf for p in pod), default=1.0)
    if not any(n.startswith("core") for n in [*without, *(cut or ())]):
        beyond = 1.0
    return round(nic, 9), round(above, 9), round(beyond, 9)


def _nics(family: Family, graph: nx.Graph, broken: nx.Graph, usable: object) -> float:
    worst, per = 1.0, family.nics_per_gpu
    hop = family.byte_s / (family.hb.gbyte_s * 1e9)
    for domain in range(family.domains):
        works: Counter[int] = Counter()
        for rank in range(family.hb.size):
            for adapter in range(per):
                nic = f"nic/{domain}/{rank}/{adapter}"
                leaves = [n for n in broken[nic] if n.startswith("leaf")] if nic in broken else []
                works[rank] += bool(leaves and usable(leaves[0]))  # type: ignore[operator]
        total, left = family.nics_of_domain, sum(works.values())
        if left < total:
            most = family.active if family.alike else family.hb.size  # mappings may fill some domains
            spread = math.inf if not left else max(1.0, most * per / left) + hop
            own = min(works.values())
            alone = total - left == 1 and own
            worst = max(worst, min(spread, per / own) if alone else spread)
    return worst


def _uplinks(graph: nx.Graph) -> dict[str, int]:
    return {
        leaf: sum(graph.edges[leaf, n]["links"] for n in graph[leaf] if graph.nodes[n]["level"] == 2)
        for leaf, kind in graph.nodes(data="kind")
        if kind == "leaf"
    }


def _pod_links(graph: nx.Graph) -> Counter[tuple[int, int]]:
    """Links from each pod to the core: aggregation switches are numbered pod by pod."""
    found: Counter[tuple[int, int]] = Counter()
    slices = max((sum(n.startswith("aggregation") for n in graph[x]) for x in graph if x.startswith("leaf")), default=1)
    for node, kind in graph.nodes(data="kind"):
        if kind == "aggregation":
            plane, number = (int(part) for part in node.split("/")[1:])
            pod = plane, number // max(slices, 1)
            found[pod] += sum(graph.edges[node, n]["links"] for n in graph[node] if n.startswith("core"))
    return found


def test_an_idle_gpu_lends_its_nic() -> None:
    """64 of 72 GPUs train: with one NIC out, the others still carry all, after a hop through the domain."""
    large = ask(
        cluster__gpus=4096,
        network__hb_domains="gb200-nvl72",
        network__fabrics="rail-only",
        network__switches="64x400g",
        network__oversubscription=1.0,
    )
    family = next(f for f in families(large) if f.active == 64)
    (nic,) = {loss.domain_slowdown for loss in losses(family, family.uplink_choices[-1]) if loss.part == "NIC"}
    assert nic == pytest.approx(1 + family.byte_s / (family.hb.gbyte_s * 1e9))
