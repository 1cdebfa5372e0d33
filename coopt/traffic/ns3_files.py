"""The network and the flows of a plan in the forms of ns-3 as SimAI and HPCC read them: topology and flow files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.graph_files import network_graph
from coopt.network.part_networks import part_named
from coopt.plan.schema import Plan
from coopt.traffic.flows import Stream, TrafficDemand
from coopt.traffic.of_plan import demands, single_demand

LATENCY = {True: "0.000025ms", False: "0.0005ms"}  # inside domains and between, as SimAI's templates have them
LOSSES = "0"
PRIORITY, PORT = 3, 100  # of all flows, as in the examples of HPCC
KNOWN_GPUS = ("A100", "A800", "H100", "H800")
"""GPUs that SimAI knows by name; it takes NONE for others."""


def ns3_topology(instance: Instance, plan: Plan, *, part: str | None = None) -> str:
    """Nodes and links in SimAI's form of a topology file.

    The first line holds the numbers of nodes, GPUs of a server, NV switches, other switches and links, and the GPU; the
    second the NV switches, then the others; each further line a link: two nodes, rate, latency and rate of errors. GPUs
    are numbered first, domain by domain, then an NV switch for each domain, then switches from the leaves up. Parallel
    links are one of their whole rate, as ns-3 keeps one link between two nodes.

    Raises
    ------
    InstanceError
        When the plan has no network with switches.
    """
    chosen = part_named(instance, plan, part)
    if chosen.links is not None:
        raise InstanceError(
            f"{instance.name}: {chosen.name} joins domains by direct links, which no NV switch of SimAI has, needs a "
            "plan with switches"
        )
    graph = network_graph(instance, plan, part=part)
    kinds = dict(graph.nodes(data="kind"))
    gpus, domains = ([node for node in graph if kinds[node] == kind] for kind in ("gpu", "hb"))
    others = [node for node in graph if kinds[node] not in ("gpu", "hb", "nic")]
    switches = [*domains, *sorted(others, key=lambda node: graph.nodes[node]["level"])]
    number = {node: i for i, node in enumerate([*gpus, *switches])}
    host = {node: f"gpu/{node.split('/', 1)[1].rsplit('/', 1)[0]}" for node in graph if kinds[node] == "nic"}
    rates: Counter[tuple[str, str]] = Counter()
    for one, other, edge in graph.edges(data=True):
        a, b = sorted((host.get(one, one), host.get(other, other)), key=number.__getitem__)
        if kinds[a] == kinds[b] == "gpu" and a != b:
            raise InstanceError(
                f"{instance.name}: GPUs of {chosen.name} share NICs, through which no node of SimAI forwards, needs a "
                "NIC for each GPU"
            )
        if a != b:
            rates[a, b] += edge["links"] * edge["gbit_s"]
    known = instance.cluster.gpu.name.split("-")[0].upper()
    gpu = known if known in KNOWN_GPUS else "NONE"
    counts = (len(number), len(gpus) // len(domains), len(domains), len(others), len(rates))
    lines = [f"{' '.join(map(str, counts))} {gpu}", " ".join(str(number[node]) for node in switches)]
    for (a, b), gbit_s in rates.items():
        latency = LATENCY["hb" in (kinds[a], kinds[b])]
        lines.append(f"{number[a]} {number[b]} {gbit_s:g}Gbps {latency} {LOSSES}")
    return "\n".join(lines) + "\n"


def ns3_flows(instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None) -> str:
    """What the GPUs of a workload send each other in an iteration, as a flow file of ns-3.

    The first line holds their number, each further one a flow: sender, receiver, priority, port, bytes and start (s).
    Nodes are those of `ns3_topology`. The flows of a phase of a collective start together, and phases follow each other
    as soon as the last one would be over with every GPU at its full rate.

    Raises
    ------
    InstanceError
        When there are several workloads and none is named, or the plan has no network with switches.
    """
    family, found = demands(instance, plan, workload=workload, part=part)
    if family is None or family.tiers == 0:
        raise InstanceError(f"{instance.name}: the plan has no switches between domains, needs a plan with some")
    flows = list(_flows(family, single_demand(found, "--format ns3-flows")))
    return "\n".join([str(len(flows)), *flows]) + "\n"


def _flows(family: Family, sent: TrafficDemand) -> Iterator[str]:
    start_s = 0.0
    for stream in sent.streams:
        src, dst = (ranks // sent.active * family.hb.size + ranks % sent.active for ranks in (stream.src, stream.dst))
        sizes = np.ceil(stream.size_bytes).astype(np.int64)
        for a, b, size_bytes in zip(src.tolist(), dst.tolist(), sizes.tolist(), strict=True):
            if size_bytes:
                yield f"{a} {b} {PRIORITY} {PORT} {size_bytes} {start_s:.9f}"
        start_s += _least_s(family, sent, stream)


def _least_s(family: Family, sent: TrafficDemand, stream: Stream) -> float:
    """How long the flows of a stream take with no link between GPUs but their own (s)."""
    inside = stream.src // sent.active == stream.dst // sent.active
    rate = np.where(inside, family.hb.gbyte_s * 1e9, family.byte_s)
    busy = [np.bincount(ends, stream.size_bytes / rate).max(initial=0.0) for ends in (stream.src, stream.dst)]
    return float(max(busy))
