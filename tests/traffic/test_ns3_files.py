"""Files for ns-3, read word by word as its programs do."""

from collections import Counter
from functools import cache
from typing import Any

import networkx as nx
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan
from coopt.traffic.files import ns3_flows, ns3_topology
from coopt.traffic.flows import demand
from tests.conftest import ask, switch

HGX = {"network__hb_domains": "hgx-h100-8"}
QUESTIONS: dict[str, dict[str, Any]] = {
    "one tier": {**HGX, "network__fabrics": "rail-only", "network__switches": "64x400g"},
    "two tiers": {**HGX, "network__fabrics": "clos", "network__switches": [switch(16, 5000)], "network__max_tiers": 2},
    "three tiers": {**HGX, "network__fabrics": "clos", "network__switches": [switch(8, 5000)]},
    "two NICs": {"network__nics_per_gpu": 2, "network__fabrics": "rail-optimized", "network__switches": "64x400g"},
}


@cache
def solved(name: str) -> tuple[Instance, Plan]:
    instance = ask(**QUESTIONS[name])
    return instance, coopt.solve(instance)


def read_topology(text: str) -> tuple[nx.Graph, int, str]:
    """The graph, GPUs of a domain, and the GPU, by the order of words that SimAI's `SetupNetwork` reads."""
    words = iter(text.split())
    nodes, per_domain, nv_switches, switches, links = (int(next(words)) for _ in range(5))
    gpu = next(words)
    graph = nx.Graph()
    graph.add_nodes_from(range(nodes), kind="gpu")
    for kind, count in (("nv", nv_switches), ("switch", switches)):
        for _ in range(count):
            graph.nodes[int(next(words))]["kind"] = kind
    for _ in range(links):
        a, b, rate, latency, losses = (next(words) for _ in range(5))
        assert not graph.has_edge(int(a), int(b))
        assert (rate[-4:], latency[-2:], float(losses)) == ("Gbps", "ms", 0.0)
        graph.add_edge(int(a), int(b), gbit_s=float(rate[:-4]))
    assert next(words, None) is None
    return graph, per_domain, gpu


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_topology_is_the_network_of_the_plan(name: str) -> None:
    instance, plan = solved(name)
    assert plan.design is not None
    graph, per_domain, gpu = read_topology(ns3_topology(instance, plan))
    design, kinds = plan.design, Counter(kind for _, kind in graph.nodes(data="kind"))
    hb = design.hb_domain
    assert (per_domain, gpu) == (hb.size, "H100")
    assert kinds == {"gpu": hb.size * hb.count, "nv": hb.count, "switch": design.fabric.switch_count}
    assert nx.is_connected(graph)
    rate = sum(
        gbit_s
        for a, b, gbit_s in graph.edges(data="gbit_s")
        if "nv" not in (graph.nodes[a]["kind"], graph.nodes[b]["kind"])
    )
    assert rate == sum(tier.links for tier in design.fabric.tier) * 400
    for node, kind in graph.nodes(data="kind"):
        if kind == "gpu":
            domains = [other for other in graph[node] if graph.nodes[other]["kind"] == "nv"]
            assert domains == [hb.size * hb.count + node // hb.size]


@pytest.mark.parametrize("name", QUESTIONS)
def test_flows_are_those_of_an_iteration(name: str) -> None:
    instance, plan = solved(name)
    (workload,), (chosen,) = instance.workload, plan.workloads
    graph, *_ = read_topology(ns3_topology(instance, plan))
    count, *lines = ns3_flows(instance, plan).splitlines()
    flows = [(int(a), int(b), int(size), float(start)) for a, b, _, _, size, start in map(str.split, lines)]
    assert int(count) == len(flows)
    assert [start for *_, start in flows] == sorted(start for *_, start in flows)
    assert all(graph.nodes[end]["kind"] == "gpu" and a != b for a, b, *_ in flows for end in (a, b))
    sent = demand(workload, chosen)
    whole = sum(float(stream.size_bytes.sum()) for stream in sent.streams)
    assert sum(size for *_, size, _ in flows) == pytest.approx(whole, abs=len(flows))
    phases = {start for *_, start in flows}
    assert len(phases) == sum(bool(stream.size_bytes.any()) for stream in sent.streams)


def test_direct_links_and_single_domains_are_refused() -> None:
    alone = ask(cluster__gpus=8, workload__0__max_iteration_time_s=100.0, network__hb_domains="hgx-h100-8")
    with pytest.raises(InstanceError, match=r": the network .*several domains"):
        ns3_topology(alone, coopt.solve(alone))
    with pytest.raises(InstanceError, match="no switches"):
        ns3_flows(alone, coopt.solve(alone))
