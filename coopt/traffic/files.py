"""Traffic of a plan as input files of simulators: Chakra traces (for ASTRA-sim) and ns-3 files.

A Chakra trace holds the messages of one rank in an iteration; ns-3, as used by SimAI and HPCC,
reads a topology and flows.

A trace is a series of messages of `et_def.proto` (MLCommons Chakra), each preceded by its length:
the version, then a node for every message sent or received. Attributes have the types that Chakra's
feeder reads.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.family import Family
from coopt.network.graph_files import network_graph
from coopt.network.plan_networks import part_named
from coopt.plan.schema import Plan
from coopt.traffic.flows import Stream, TrafficDemand
from coopt.traffic.of_plan import demands, single_demand

VERSION = "0.0.4"
SEND, RECEIVE = 5, 6  # of the enumeration NodeType
NODE = {"id": 1, "name": 2, "type": 3, "data_deps": 5, "attr": 10}
ATTRIBUTE = {"name": 1, "int32": 7, "int64": 9, "bool": 27}
NUMBER, TEXT = 0, 2  # wire types
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # so that the same plan gives the same archive

LATENCY = {
    True: "0.000025ms",
    False: "0.0005ms",
}  # inside domains and between, as SimAI's templates have them
LOSSES = "0"
PRIORITY, PORT = 3, 100  # of all flows, as in the examples of HPCC
KNOWN_GPUS = ("A100", "A800", "H100", "H800")
"""GPUs that SimAI knows by name; it takes NONE for others."""


def chakra_traces(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> bytes:
    """Return a zip archive of `trace.RANK.et` for every rank of a workload.

    Ranks are numbered as in `--format ranks`. The messages of a phase of a collective have its
    number as their tag, and depend on all messages that their rank sends and receives in the
    previous phase.

    Raises
    ------
    InstanceError
        If there are several workloads and none is named, or the plan does not split its workload
        over its GPUs.
    """
    _, all_demands = demands(instance, plan, workload=workload, part=part)
    demand = single_demand(all_demands, "--format chakra")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for rank, trace in enumerate(_traces(demand)):
            info = zipfile.ZipInfo(f"trace.{rank}.et", LONG_AGO)
            info.compress_type = zipfile.ZIP_DEFLATED
            files.writestr(info, bytes(trace))
    return archive.getvalue()


def _traces(demand: TrafficDemand) -> list[bytearray]:
    """Return the trace of every rank."""
    header = _delimited(_field(1, VERSION))
    traces = [bytearray(header) for _ in range(demand.ranks)]
    count, dependencies = [0] * demand.ranks, [range(0)] * demand.ranks
    for tag, stream in enumerate(demand.streams):
        starts = list(count)
        sizes = np.ceil(stream.size_bytes).astype(np.int64)
        ends = (demand.rank_of(gpus).tolist() for gpus in (stream.src, stream.dst))
        for src, dst, size in zip(*ends, sizes.tolist(), strict=True):
            for rank, kind in ((src, SEND), (dst, RECEIVE)) if size else ():
                count[rank] += 1
                name = (
                    f"{stream.collective} {stream.phase} {'to' if kind == SEND else 'from'}"
                    f" {src + dst - rank}"
                )
                numbers = {"comm_src": src, "comm_dst": dst, "comm_tag": tag}
                traces[rank] += _delimited(
                    _node(count[rank], name, kind, dependencies[rank], numbers, size)
                )
        dependencies = [
            range(start + 1, end + 1) if end > start else dependency
            for start, end, dependency in zip(starts, count, dependencies, strict=True)
        ]
    return traces


def _node(
    number: int,
    name: str,
    kind: int,
    dependencies: Iterable[int],
    numbers: dict[str, int],
    size_bytes: int,
) -> bytes:
    """Encode a message that is sent or received, with the numbers of its dependencies."""
    attributes = [_field(ATTRIBUTE["name"], "is_cpu_op") + _field(ATTRIBUTE["bool"], 0)]
    attributes += [
        _field(ATTRIBUTE["name"], key) + _field(ATTRIBUTE["int32"], value)
        for key, value in numbers.items()
    ]
    attributes.append(
        _field(ATTRIBUTE["name"], "comm_size") + _field(ATTRIBUTE["int64"], size_bytes)
    )
    numbers_before = b"".join(map(_varint, dependencies))
    parts = [_field(NODE["id"], number), _field(NODE["name"], name), _field(NODE["type"], kind)]
    parts += [_field(NODE["data_deps"], numbers_before)] * bool(numbers_before)
    return b"".join([*parts, *(_field(NODE["attr"], attribute) for attribute in attributes)])


def _field(number: int, value: int | str | bytes) -> bytes:
    """Encode a field of a protobuf message."""
    if isinstance(value, int):
        return _varint(number << 3 | NUMBER) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | TEXT) + _delimited(content)


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Encode an integer as a varint: groups of seven bits, lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def ns3_topology(instance: Instance, plan: Plan, *, part: str | None = None) -> str:
    """Return nodes and links as a topology file of SimAI.

    The first line holds the numbers of nodes, GPUs per server, NV switches, other switches and
    links, and the GPU; the second the NV switches, then the others; each further line a link: two
    nodes, rate, latency and error rate. GPUs are numbered first, domain by domain, then an NV
    switch per domain, then switches from the leaves up. Parallel links are merged into one with
    their total rate, as ns-3 allows one link between two nodes.

    Raises
    ------
    InstanceError
        If the plan has no switched network.
    """
    chosen_part = part_named(instance, plan, part)
    if chosen_part.links is not None:
        raise InstanceError(
            f"{instance.place}: {chosen_part.text} joins domains by direct links, which SimAI"
            " cannot represent, needs a plan with switches"
        )
    graph = network_graph(instance, plan, part=part)
    kinds = dict(graph.nodes(data="kind"))
    gpus, domains = ([node for node in graph if kinds[node] == kind] for kind in ("gpu", "hb"))
    other_switches = [node for node in graph if kinds[node] not in ("gpu", "hb", "nic")]
    switches = [*domains, *sorted(other_switches, key=lambda node: graph.nodes[node]["level"])]
    number = {node: i for i, node in enumerate([*gpus, *switches])}
    host = {
        node: f"gpu/{node.split('/', 1)[1].rsplit('/', 1)[0]}"
        for node in graph
        if kinds[node] == "nic"
    }
    rates: Counter[tuple[str, str]] = Counter()
    for near_node, far_node, edge in graph.edges(data=True):
        # NICs are folded into their GPUs: SimAI's nodes are GPUs and switches alone
        a, b = sorted(
            (host.get(near_node, near_node), host.get(far_node, far_node)), key=number.__getitem__
        )
        if kinds[a] == kinds[b] == "gpu" and a != b:
            raise InstanceError(
                f"{instance.place}: GPUs of {chosen_part.text} share NICs, which SimAI cannot"
                " represent, needs a NIC for each GPU"
            )
        if a != b:
            rates[a, b] += edge["links"] * edge["gbit_s"]
    gpu_name = instance.cluster.gpu.name.split("-")[0].upper()
    gpu = gpu_name if gpu_name in KNOWN_GPUS else "NONE"
    counts = (len(number), len(gpus) // len(domains), len(domains), len(other_switches), len(rates))
    lines = [
        f"{' '.join(map(str, counts))} {gpu}",
        " ".join(str(number[node]) for node in switches),
    ]
    for (a, b), gbit_s in rates.items():
        latency = LATENCY["hb" in (kinds[a], kinds[b])]
        lines.append(f"{number[a]} {number[b]} {gbit_s:g}Gbps {latency} {LOSSES}")
    return "\n".join(lines) + "\n"


def ns3_flows(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """Return the traffic between the GPUs of a workload in an iteration as a flow file of ns-3.

    The first line holds the number of flows, each further line a flow: sender, receiver, priority,
    port, bytes and start (s). Nodes are those of `ns3_topology`. The flows of a phase of a
    collective start together, and the next phase starts when the last one would end with every GPU
    at its full rate.

    Raises
    ------
    InstanceError
        If there are several workloads and none is named, or the plan has no switched network.
    """
    family, all_demands = demands(instance, plan, workload=workload, part=part)
    if family is None or family.tiers == 0:
        name = part_named(instance, plan, part).name
        raise InstanceError(
            f"{instance.place}: part {name!r} has no switches between domains, needs a part with"
            " switches"
        )
    flows = list(_flows(family, single_demand(all_demands, "--format ns3-flows")))
    return "\n".join([str(len(flows)), *flows]) + "\n"


def _flows(family: Family, demand: TrafficDemand) -> Iterator[str]:
    start_s = 0.0
    for stream in demand.streams:
        src, dst = (
            ranks // demand.active * family.hb.size + ranks % demand.active
            for ranks in (stream.src, stream.dst)
        )
        sizes = np.ceil(stream.size_bytes).astype(np.int64)
        for a, b, size_bytes in zip(src.tolist(), dst.tolist(), sizes.tolist(), strict=True):
            if size_bytes:
                yield f"{a} {b} {PRIORITY} {PORT} {size_bytes} {start_s:.9f}"
        start_s += _least_s(family, demand, stream)


def _least_s(family: Family, demand: TrafficDemand, stream: Stream) -> float:
    """Lower bound on the duration of the flows of a stream (s): only the links of the GPUs
    themselves limit it.
    """
    inside = stream.src // demand.active == stream.dst // demand.active
    across_byte_s = min(family.byte_s, family.hb.to_nics_gbyte_s * 1e9)
    rate = np.where(inside, family.hb.gbyte_s * 1e9, across_byte_s)
    busy = [
        np.bincount(ends, stream.size_bytes / rate).max(initial=0.0)
        for ends in (stream.src, stream.dst)
    ]
    # senders and receivers work at the same time, so that the busiest end of either kind counts
    return float(max(busy))
