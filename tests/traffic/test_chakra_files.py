"""Chakra traces, read by the published definition of their messages: what one rank sends another receives."""

import io
import zipfile
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan
from coopt.traffic.files import chakra_traces
from coopt.traffic.of_plan import demands
from tests.conftest import ask, small_model

METADATA = {1: ("version", "string")}
NODE = {
    1: ("id", "uint64"), 2: ("name", "string"), 3: ("type", "enum"), 4: ("ctrl_deps", "packed"),
    5: ("data_deps", "packed"), 6: ("start_time_micros", "uint64"), 7: ("duration_micros", "uint64"),
    10: ("attr", "attribute"),
}  # fmt: skip
ATTRIBUTE = {1: ("name", "string"), 7: ("value", "int32"), 9: ("value", "int64"), 27: ("value", "bool")}
"""Fields of https://github.com/mlcommons/chakra, schema/protobuf/et_def.proto (6dc63e1), by number: name and type."""
READ_AS = {"is_cpu_op": "bool", "comm_src": "int32", "comm_dst": "int32", "comm_tag": "int32", "comm_size": "int64"}
"""What src/feeder/et_feeder_node.cpp reads of each attribute; another field of the `oneof` would read as 0."""
COMM_SEND_NODE, COMM_RECV_NODE = 5, 6


def varint(stream: io.BytesIO) -> int:
    value = shift = 0
    while True:
        (byte,) = stream.read(1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value


def message(content: bytes, form: dict[int, tuple[str, str]]) -> dict[str, Any]:
    """The fields of a message; `attr` as a dictionary of name to (type, value)."""
    found: dict[str, Any] = {"attr": {}}
    stream = io.BytesIO(content)
    while stream.tell() < len(content):
        number, wire = divmod(varint(stream), 8)
        name, kind = form[number]
        if wire == 0:
            assert kind in ("uint64", "int32", "int64", "bool", "enum")
            found[name], found["kind"] = varint(stream), kind
            continue
        assert wire == 2
        inner = stream.read(varint(stream))
        if kind == "attribute":
            one = message(inner, ATTRIBUTE)
            found["attr"][one["name"]] = (one["kind"], one["value"])
        elif kind == "packed":
            numbers, found[name] = io.BytesIO(inner), []
            while numbers.tell() < len(inner):
                found[name].append(varint(numbers))
        else:
            assert kind == "string"
            found[name] = inner.decode()
    return found


def traces(archive: bytes) -> list[list[dict[str, Any]]]:
    """The nodes of every rank."""
    found = []
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for rank in range(len(files.namelist())):
            content = files.read(f"trace.{rank}.et")
            stream, parts = io.BytesIO(content), []
            while stream.tell() < len(content):
                parts.append(stream.read(varint(stream)))
            assert message(parts[0], METADATA)["version"] == "0.0.4"
            found.append([message(part, NODE) for part in parts[1:]])
    return found


def solved(**changes: Any) -> tuple[Instance, Plan]:
    instance = ask(
        network__hb_domains="hgx-h100-8",
        workload__0__mapping={"tp": 4, "pp": 2},
        workload__0__max_iteration_time_s=20.0,
        **changes,
    )
    return instance, coopt.solve(instance)


def test_every_message_is_sent_and_received_with_its_bytes_and_waits_for_those_of_the_phase_before() -> None:
    instance, plan = solved()
    _, (sent,) = demands(instance, plan)
    ranks = traces(chakra_traces(instance, plan))
    assert len(ranks) == sent.ranks
    seen: defaultdict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for rank, nodes in enumerate(ranks):
        assert [node["id"] for node in nodes] == list(range(1, len(nodes) + 1))
        tags = {node["id"]: node["attr"]["comm_tag"][1] for node in nodes}
        for node in nodes:
            assert {name: kind for name, (kind, _) in node["attr"].items()} == READ_AS
            values = {name: value for name, (_, value) in node["attr"].items()}
            assert values["is_cpu_op"] == 0
            assert rank == values["comm_src" if node["type"] == COMM_SEND_NODE else "comm_dst"]
            seen[node["type"]][values["comm_src"], values["comm_dst"], values["comm_tag"], values["comm_size"]] += 1
            earlier = [one for one, tag in tags.items() if tag < tags[node["id"]]]
            last = max((tags[one] for one in earlier), default=None)
            assert node.get("data_deps", []) == [one for one in earlier if tags[one] == last]
    assert seen[COMM_SEND_NODE] == seen[COMM_RECV_NODE]
    asked: Counter[tuple[int, ...]] = Counter()
    for tag, stream in enumerate(sent.streams):
        for src, dst, size in zip(stream.src, stream.dst, np.ceil(stream.size_bytes), strict=True):
            asked[int(src), int(dst), tag, int(size)] += int(size > 0)
    assert seen[COMM_SEND_NODE] == +asked
    assert sum(asked.values()) > 100


def test_one_workload_of_several_has_to_be_named() -> None:
    table = {"model": small_model(), "global_batch": 64, "max_iteration_time_s": 20.0, "mapping": {"tp": 4, "pp": 2}}
    instance = ask(workload=[{"name": "first", **table}, {"name": "second", **table}])
    plan = coopt.solve(instance)
    with pytest.raises(InstanceError, match="--format chakra: "):
        chakra_traces(instance, plan)
    assert traces(chakra_traces(instance, plan, workload="second"))
