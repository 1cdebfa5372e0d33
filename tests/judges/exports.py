"""What coopt exports of a plan, where it does: files in a folder, each with what it has to hold."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from coopt import InstanceError
from coopt.network.graph_files import network_dot, network_graph, network_graphml
from coopt.report.csv_files import bill_csv, ranks_csv
from coopt.solving.route_files import routes_csv
from coopt.traffic.files import chakra_traces, ns3_flows, ns3_topology
from tests.judges.plans import Case, cases

MOST_NODES = 400  # of a network that Graphviz lays out


@dataclass(frozen=True, kw_only=True, eq=False)
class File:
    """A file of a part of a plan."""

    case: Case
    part: str | None
    workload: str | None
    path: Path


def _of_part(case: Case, part: str | None) -> list[str | None]:
    """Workloads of a part; None where there is only one."""
    names = [run.name for one in case.plan.parts if part in (None, one.name) for run in one.workloads]
    return [*dict.fromkeys(names)] if len(names) > 1 else [None]


@cache
def exported(name: str, by_workload: bool) -> tuple[File, ...]:
    """The files of a format, of every plan and part that has one."""
    write, ending = WRITERS[name]
    folder, found = Path(mkdtemp(prefix="coopt-judges-")), []
    for case in cases():
        for part in case.parts:
            for workload in _of_part(case, part) if by_workload else [None]:
                chosen = {"part": part} | ({"workload": workload} if by_workload else {})
                try:
                    content = write(case.instance, case.plan, **chosen)
                except InstanceError:
                    continue  # one HB domain, or direct links, where a format is of switches
                path = folder / f"{len(found):03d}.{ending}"
                path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
                found.append(File(case=case, part=part, workload=workload, path=path))
    assert len(found) >= 10, f"{name}: {len(found)} files"
    return tuple(found)


WRITERS: dict[str, tuple[Callable[..., str | bytes], str]] = {
    "graphml": (network_graphml, "graphml"),
    "dot": (network_dot, "dot"),
    "bom-csv": (bill_csv, "csv"),
    "ranks": (ranks_csv, "csv"),
    "routes": (routes_csv, "csv"),
    "ns3-topology": (ns3_topology, "txt"),
    "ns3-flows": (ns3_flows, "txt"),
    "chakra": (chakra_traces, "zip"),
}


@cache
def drawn(file: File) -> dict[str, object]:
    """What the graph of a part holds."""
    graph = network_graph(file.case.instance, file.case.plan, part=file.part)
    kinds = [kind for _, kind in graph.nodes(data="kind")]
    gbit_s = sum(data["links"] * data["gbit_s"] for _, _, data in graph.edges(data=True))
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    return {"kinds": counts, "edges": graph.number_of_edges(), "gbit_s": gbit_s}


def tables() -> Iterator[tuple[File, int, dict[str, float]]]:
    """CSV files with their rows and the sums of columns that hold numbers in every row."""
    for name, by_workload in (("bom-csv", False), ("ranks", True), ("routes", True)):
        for file in exported(name, by_workload):
            with file.path.open(encoding="utf-8", newline="") as stream:
                head, *rows = csv.reader(stream)
            columns = {name: [row[i] for row in rows] for i, name in enumerate(head)}
            yield file, len(rows), {one: sum(map(float, values)) for one, values in columns.items() if _numbers(values)}


def _numbers(values: list[str]) -> bool:
    try:
        return bool([float(value) for value in values])  # a table without rows has no numbers
    except ValueError:
        return False
