"""The traffic of a plan as files of simulators: Chakra traces, which ASTRA-sim replays, and the
forms of ns-3.

A Chakra trace is what one rank sends in an iteration; ns-3 as SimAI and HPCC use it reads a
topology and flows.

A trace is a series of messages of `et_def.proto` (MLCommons Chakra), each after its length: the
version, then a node for every message that is sent or received. Attributes have the types that
Chakra's feeder reads.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.graph_files import network_graph
from coopt.network.part_networks import part_named
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
    """A zip archive of `trace.RANK.et` for every rank of a workload.

    Ranks are numbered as in `--format ranks`. The messages of a phase of a collective have its
    number as their tag, and wait for all that their rank sends and receives in the phase before.

    Raises
    ------
    InstanceError
        When there are several workloads and none is named, or the plan does not split its workload
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
    """The trace of every rank."""
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
    """A message that is sent or received, after those whose numbers are its dependencies."""
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
    """A field of a message."""
    if isinstance(value, int):
        return _varint(number << 3 | NUMBER) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | TEXT) + _delimited(content)


def _delimited(content: bytes) -> bytes:
    return _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def ns3_topology(instance: Instance, plan: Plan, *, part: str | None = None) -> str:
    """Nodes and links in SimAI's form of a topology file.

    The first line holds the numbers of nodes, GPUs of a server, NV switches, other switches and
    links, and the GPU; the second the NV switches, then the others; each further line a link: two
    nodes, rate, latency and rate of errors. GPUs are numbered first, domain by domain, then an NV
    switch for each domain, then switches from the leaves up. Parallel links are one of their whole
    rate, as ns-3 keeps one link between two nodes.

    Raises
    ------
    InstanceError
        When the plan has no network with switches.
    """
    chosen_part = part_named(instance, plan, part)
    if chosen_part.links is not None:
        raise InstanceError(
            f"{instance.name}: {chosen_part.name} joins domains by direct links, which no NV switch"
            " of SimAI has, needs a plan with switches"
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
                f"{instance.name}: GPUs of {chosen_part.name} share NICs, through which no node of"
                " SimAI forwards, needs a NIC for each GPU"
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
    """What the GPUs of a workload send each other in an iteration, as a flow file of ns-3.

    The first line holds their number, each further one a flow: sender, receiver, priority, port,
    bytes and start (s). Nodes are those of `ns3_topology`. The flows of a phase of a collective
    start together, and phases follow each other as soon as the last one would be over with every
    GPU at its full rate.

    Raises
    ------
    InstanceError
        When there are several workloads and none is named, or the plan has no network with
        switches.
    """
    family, all_demands = demands(instance, plan, workload=workload, part=part)
    if family is None or family.tiers == 0:
        raise InstanceError(
            f"{instance.name}: the plan has no switches between domains, needs a plan with some"
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
    """How long the flows of a stream take with no link between GPUs but their own (s)."""
    inside = stream.src // demand.active == stream.dst // demand.active
    rate = np.where(inside, family.hb.gbyte_s * 1e9, family.byte_s)
    busy = [
        np.bincount(ends, stream.size_bytes / rate).max(initial=0.0)
        for ends in (stream.src, stream.dst)
    ]
    # senders and receivers work at the same time, so that the busiest end of either kind counts
    return float(max(busy))
