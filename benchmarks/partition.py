"""Solve partitions by every formulation; rewrites `benchmarks/partition.csv` and the table of `docs/partition.md`.

One row for case and formulation: options listed and kept by the filter, objective, proven gap, nodes, and seconds of
processor time on one thread, which other programs on the machine disturb least: those of listing, of the filter, of
building the model, and of the search. `sets` is the search as coopt runs it, which builds as it goes; the others hand
one model to HiGHS. All get the filtered options. `--once` solves a small case and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rows import commit, csv_text

from benchmarks.partition_naive import NAIVE
from benchmarks.partition_options import partition
from coopt.columns.islands.options import list_options
from coopt.instance.files import load
from coopt.instance.texts import write_text
from coopt.solving.highs import options, solve, version
from coopt.solving.partition.arrays import partition_data
from coopt.solving.partition.parts import subset
from coopt.solving.partition.scaling import scaled
from coopt.solving.partition.search import choice, search_partition, useful
from coopt.solving.partition.valuation import worth
from formulations.partition import FORMULATIONS, Equation, build
from formulations.partition_data import PartitionData

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "partition.md"
HEAD = (
    "| case | options | kept | formulation | outcome | objective M$ | gap | nodes "
    "| list s | filter s | build s | search s |"
)
FLEETS = ["fleet-131k-w8", "fleet-131k-w8-core", "fleet-131k-w16", "fleet-131k-w64"]
CASES = [*FLEETS, "made-up 8", "made-up 16", "made-up 64"]
SETS = "sets"  # the search as coopt runs it: a part for each set of products
FORMS: dict[str, tuple[Equation, ...]] = {SETS: (), **FORMULATIONS, "naive": NAIVE}
LIMIT_S = 60.0
MANY = 64  # workloads from which on the gap is COARSE
GAP, COARSE = 1e-6, 1e-4


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="solve the smallest case, write nothing")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for a solve")
    arguments = parser.parse_args()
    rows = [row for case in (["made-up 4"] if arguments.once else CASES) for row in _rows(case, arguments.limit)]
    if not arguments.once:
        write_text(HERE / "partition.csv", csv_text(rows))
        text = PAGE.read_text("utf-8")
        write_text(PAGE, "\n".join([text[: text.index(HEAD)] + HEAD, "|---" * 12 + "|", *map(_line, rows), ""]))


def _rows(case: str, limit_s: float) -> list[dict[str, object]]:
    """A case by every formulation; those that prove an optimum agree."""
    started = time.process_time()
    data = _data(case)
    list_s = time.process_time() - started
    started = time.process_time()
    few = subset(data, useful(data))
    filter_s = time.process_time() - started
    rows = [_row(few, form, limit_s) for form in FORMS]
    gap = _gap(data)
    proven = [float(str(row["objective"])) for row in rows if row["outcome"] == "optimal"]
    if proven and max(proven) > min(proven) * (1 + 2 * gap):
        sys.exit(f"{case}: formulations disagree: {proven}")
    for row in rows:
        row |= {"case": case, "options": len(data.workload), "kept": len(few.workload)}
        row |= {"list_s": round(list_s, 2), "filter_s": round(filter_s, 3)}
        print(_line(row), flush=True)
    return rows


def _data(case: str) -> PartitionData:
    """The numbers of an instance, or made-up ones for so many workloads."""
    name, _, workloads = case.partition(" ")
    if workloads:
        return partition(int(workloads), seed=0)
    instance = load(HERE.parent / "instances" / f"{name}.toml")
    return partition_data(instance, list_options(instance, lambda _: None, lambda: None))


def _gap(data: PartitionData) -> float:
    return COARSE if data.workloads >= MANY else GAP


def _row(data: PartitionData, form: str, limit_s: float) -> dict[str, object]:
    gap = _gap(data)
    started = time.process_time()
    if form == SETS:
        found = search_partition(data, gap=gap, deadline=time.perf_counter() + limit_s)
        built = started
        objective = np.inf if found.worth is None else found.worth.objective
        outcome, bound, nodes = found.outcome, found.bound, found.nodes
    else:
        small, scale = scaled(data)
        model = build(small, FORMS[form])
        built = time.process_time()
        answer = solve(model, time_limit_s=limit_s, settings=options(gap=gap, threads=1))
        objective = np.inf if answer.value is None else worth(data, choice(model, data)).objective
        outcome, bound, nodes = answer.outcome, answer.bound * scale, answer.nodes
    return {
        "case": "",
        "options": 0,
        "kept": 0,
        "formulation": form,
        "outcome": outcome,
        "objective": objective,
        "gap": f"{max(1 - bound / objective, 0.0):.1e}",
        "nodes": nodes,
        "list_s": 0.0,
        "filter_s": 0.0,
        "build_s": round(built - started, 3),
        "solve_s": round(time.process_time() - built, 3),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()} HiGHS {version()}",
    }


def _line(r: dict[str, object]) -> str:
    """A row as a line of the page."""
    case = f"{r['case']} | {r['options']} | {r['kept']} | {r['formulation']} | {r['outcome']}"
    found = f"{float(str(r['objective'])) / 1e6:.3f} | {r['gap']} | {r['nodes']}"
    return f"| {case} | {found} | {r['list_s']:.1f} | {r['filter_s']:.2f} | {r['build_s']:.2f} | {r['solve_s']:.2f} |"


if __name__ == "__main__":
    main()
