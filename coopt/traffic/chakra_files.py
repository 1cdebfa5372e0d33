"""What ranks send each other in an iteration as Chakra traces, which ASTRA-sim replays: one file a rank.

A trace is a series of messages of `et_def.proto` (MLCommons Chakra), each after its length: the version, then a node
for every message that is sent or received. Attributes have the types that Chakra's feeder reads.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable

import numpy as np

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.traffic.flows import TrafficDemand
from coopt.traffic.of_plan import demands, single_demand

VERSION = "0.0.4"
SEND, RECEIVE = 5, 6  # of the enumeration NodeType
NODE = {"id": 1, "name": 2, "type": 3, "data_deps": 5, "attr": 10}
ATTRIBUTE = {"name": 1, "int32": 7, "int64": 9, "bool": 27}
NUMBER, TEXT = 0, 2  # wire types
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # so that the same plan gives the same archive


def chakra_traces(instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None) -> bytes:
    """A zip archive of `trace.RANK.et` for every rank of a workload.

    Ranks are numbered as in `--format ranks`. The messages of a phase of a collective have its number as their tag, and
    wait for all that their rank sends and receives in the phase before.

    Raises
    ------
    InstanceError
        When there are several workloads and none is named, or the plan does not split its workload over its GPUs.
    """
    _, found = demands(instance, plan, workload=workload, part=part)
    sent = single_demand(found, "--format chakra")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for rank, trace in enumerate(_traces(sent)):
            info = zipfile.ZipInfo(f"trace.{rank}.et", LONG_AGO)
            info.compress_type = zipfile.ZIP_DEFLATED
            files.writestr(info, bytes(trace))
    return archive.getvalue()


def _traces(sent: TrafficDemand) -> list[bytearray]:
    """The trace of every rank."""
    header = _delimited(_field(1, VERSION))
    traces = [bytearray(header) for _ in range(sent.ranks)]
    count, before = [0] * sent.ranks, [range(0)] * sent.ranks
    for tag, stream in enumerate(sent.streams):
        starts = list(count)
        sizes = np.ceil(stream.size_bytes).astype(np.int64)
        ends = (sent.rank_of(gpus).tolist() for gpus in (stream.src, stream.dst))
        for src, dst, size in zip(*ends, sizes.tolist(), strict=True):
            for rank, kind in ((src, SEND), (dst, RECEIVE)) if size else ():
                count[rank] += 1
                name = f"{stream.collective} {stream.phase} {'to' if kind == SEND else 'from'} {src + dst - rank}"
                numbers = {"comm_src": src, "comm_dst": dst, "comm_tag": tag}
                traces[rank] += _delimited(_node(count[rank], name, kind, before[rank], numbers, size))
        before = [
            range(start + 1, end + 1) if end > start else last
            for start, end, last in zip(starts, count, before, strict=True)
        ]
    return traces


def _node(number: int, name: str, kind: int, before: Iterable[int], numbers: dict[str, int], size_bytes: int) -> bytes:
    """A message that is sent or received, after those with the numbers before."""
    attributes = [_field(ATTRIBUTE["name"], "is_cpu_op") + _field(ATTRIBUTE["bool"], 0)]
    attributes += [_field(ATTRIBUTE["name"], key) + _field(ATTRIBUTE["int32"], one) for key, one in numbers.items()]
    attributes.append(_field(ATTRIBUTE["name"], "comm_size") + _field(ATTRIBUTE["int64"], size_bytes))
    packed = b"".join(map(_varint, before))
    parts = [_field(NODE["id"], number), _field(NODE["name"], name), _field(NODE["type"], kind)]
    parts += [_field(NODE["data_deps"], packed)] * bool(packed)
    return b"".join([*parts, *(_field(NODE["attr"], one) for one in attributes)])


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
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
