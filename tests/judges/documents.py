"""Documents, tables, traces and flows in the programs that they are written for."""

from __future__ import annotations

import json
import math
import tomllib
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import coopt
from coopt.plan.json_schema import schema_json
from coopt.plan.store import plan_json
from coopt.verifier.simulation.plans import simulate
from coopt.verifier.simulation.traces import TraceRecord, chrome_trace
from tests.judges.exports import exported, tables
from tests.judges.judge import Bench, Judge, agree, js_answers, run
from tests.judges.plans import cases
from tests.traffic.test_ns3_files import read_topology

PROTOBUF = "grpcio-tools==1.85.1"  # brings protobuf, and the compiler of definitions
SCHEMAS = "JSON Schema of instances and plans"
TABLES = "CSV of bills, ranks and routes"
INSTANCES = Path(__file__).parents[2] / "instances"


def _documents(folder: Path) -> list[dict[str, Any]]:
    """JSON Schemas with documents that they allow: instances as shipped and as drawn, and plans."""
    found = []
    shipped = [tomllib.loads(path.read_text("utf-8")) for path in sorted(INSTANCES.glob("*.toml"))]
    drawn = [case.instance.model_dump(mode="json", by_alias=True, exclude_none=True) for case in cases()]
    plans = [json.loads(plan_json(case.plan)) for case in cases()]
    for which, documents in (("instance", shipped + drawn), ("plan", plans)):
        schema = folder / f"{which}.schema.json"
        schema.write_text(schema_json(which), "utf-8")
        paths = [folder / f"{which}-{number}.json" for number in range(len(documents))]
        for path, document in zip(paths, documents, strict=True):
            path.write_text(json.dumps(document), "utf-8")
        found.append({"schema": str(schema), "documents": [str(path) for path in paths]})
    return found


def _allowed_by_ajv(bench: Bench) -> str:
    asked = _documents(bench.folder)
    return agree(js_answers(bench, "schemas", asked), sum(len(one["documents"]) for one in asked), "documents")


def _allowed_by_jsonschema(bench: Bench) -> str:
    asked = _documents(bench.folder)
    program = str(bench.python.with_name("check-jsonschema"))
    for one in asked:
        run([program, "--check-metaschema", one["schema"]])
        run([program, "--schemafile", one["schema"], *one["documents"]])
    return agree([], sum(len(one["documents"]) for one in asked), "documents")


def _linted(bench: Bench) -> str:
    schema = bench.folder / "instance.schema.json"
    schema.write_text(schema_json("instance"), "utf-8")
    files = sorted(str(path) for path in INSTANCES.glob("*.toml"))
    run([str(bench.python.with_name("taplo")), "lint", "--no-auto-config", "--schema", schema.as_uri(), *files])
    return agree([], len(files), "instances")


def _same_table(bench: Bench, library: str) -> str:
    expected = list(tables())
    answers = bench.answers("tables", library, question=[str(file.path) for file, *_ in expected])
    faults = []
    for (file, rows, sums), (said_rows, said_sums) in zip(expected, answers, strict=True):
        close = all(math.isclose(said_sums.get(name, math.nan), value, rel_tol=1e-9) for name, value in sums.items())
        if said_rows != rows or not close:
            faults.append(f"{file.path.name} of {file.case.name}: {said_rows}, {said_sums} for {rows}, {sums}")
    return agree(faults, len(expected), "tables")


def _messages_meet(bench: Bench) -> str:
    """What one rank sends another receives, and on switches as much as flows for ns-3 carry."""
    files = exported("chakra", True)
    answers = bench.answers("traces", question=[str(file.path) for file in files])
    flows = {(file.case.name, file.part, file.workload): file for file in exported("ns3-flows", True)}
    faults = []
    for file, said in zip(files, answers, strict=True):
        sent = sum(said["sent"].values())
        other = flows.get((file.case.name, file.part, file.workload))
        _, *lines = other.path.read_text("utf-8").splitlines() if other else [""]
        carried = sum(int(line.split()[4]) for line in lines)
        if said["sent"] != said["received"] or (other and sent != carried):
            faults.append(f"{file.case.name}: {sent} bytes sent, {carried} carried")
    return agree(faults, len(files), "archives")


def _simulated(_: Bench) -> str:
    topologies = {(file.case.name, file.part): file for file in exported("ns3-topology", False)}
    files, faults = exported("ns3-flows", True), []
    for file in files:
        graph, *_rest = read_topology(topologies[file.case.name, file.part].path.read_text("utf-8"))
        count, *lines = file.path.read_text("utf-8").splitlines()
        flows = [line.split() for line in lines]
        gpus = {node for node, kind in graph.nodes(data="kind") if kind == "gpu"}
        ends = {int(word) for flow in flows for word in flow[:2]}
        starts = [float(flow[5]) for flow in flows]
        if (
            int(count) != len(flows)
            or not ends <= gpus
            or starts != sorted(starts)
            or {len(flow) for flow in flows} > {6}
        ):
            faults.append(file.case.name)
    return agree(faults, len(files), "files of flows")


def _nested(_: Bench) -> str:
    """Slices of a track lie within each other or apart, in the whole nanoseconds that Perfetto cuts times to."""
    faults, count = [], 0
    for case in cases():
        for part in case.parts:
            records: list[TraceRecord] = []
            try:
                simulate(case.instance, case.plan, part=part, trace=records)
            except coopt.InstanceError:
                continue
            count += 1
            tracks = defaultdict(list)
            for event in json.loads(chrome_trace(records)):
                if event["ph"] == "X":
                    start_ns = int(event["ts"] * 1000)
                    tracks[event["pid"], event["tid"]].append((start_ns, -int(event["dur"] * 1000)))
            faults += [f"{case.name}, track {track}" for track, slices in tracks.items() if crossing(slices)]
    return agree(faults, count, "traces")


def crossing(slices: list[tuple[int, int]]) -> bool:
    """Whether one slice begins within another and ends after it; of those that begin together the longest is first."""
    ends: list[int] = []
    for start, negative in sorted(slices):
        while ends and ends[-1] <= start:
            ends.pop()
        if ends and start - negative > ends[-1]:
            return True
        ends.append(start - negative)
    return False


JUDGES = (
    Judge(
        program="ajv (strict)",
        judged=SCHEMAS,
        packages=("ajv@8.20.0",),
        registry="npm",
        read=_allowed_by_ajv,
        may_be_skipped=False,
    ),
    Judge(
        program="check-jsonschema",
        judged=SCHEMAS,
        packages=("check-jsonschema==0.39.0",),
        read=_allowed_by_jsonschema,
        may_be_skipped=False,
    ),
    Judge(program="Taplo", judged="TOML with its JSON Schema", packages=("taplo==0.9.3",), read=_linted),
    Judge(program="Perfetto's rule of nesting", judged="traces of simulations", read=_nested, may_be_skipped=False),
    Judge(
        program="protobuf",
        judged="Chakra traces",
        packages=(PROTOBUF,),
        read=_messages_meet,
    ),
    Judge(program="SimAI's and HPCC's documented readers", judged="ns-3 topology and flows", read=_simulated),
    *(
        Judge(
            program=name,
            judged=TABLES,
            packages=(package,),
            read=partial(_same_table, library=name),
        )
        for name, package in (("pandas", "pandas==3.0.0"), ("polars", "polars==2.1.0"), ("duckdb", "duckdb==2.0.0"))
    ),
)
