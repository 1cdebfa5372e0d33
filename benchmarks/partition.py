"""Solve made-up partitions by every formulation; rewrites `benchmarks/partition.csv`, a table of `docs/partition.md`.

One row for workloads, seed and formulation: options made and kept by the filter, objective, proven gap, nodes, and
seconds of processor time on one thread, which other programs on the machine disturb least: those of the filter, of
building the model, and of HiGHS. The naive form gets the filtered options as well. `--once` solves the smallest case
and writes nothing.
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
from coopt.instance.texts import write_text
from coopt.solving.highs import options, solve, version
from coopt.solving.partition.parts import subset
from coopt.solving.partition.search import scaled, useful
from coopt.solving.partition.worth import worth
from formulations.partition import FORMULATIONS, Equation, build
from formulations.partition_data import PartitionData

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "partition.md"
HEAD = (
    "| workloads | seed | options | kept | formulation | outcome | objective M$ | gap | nodes "
    "| filter s | build s | HiGHS s |"
)
CASES = [(4, 0), (4, 1), (8, 0), (8, 1), (16, 0), (16, 1), (64, 0)]
FORMS: dict[str, tuple[Equation, ...]] = {**FORMULATIONS, "naive": NAIVE}
LIMIT_S = 60.0
MANY = 64  # workloads from which on the gap is COARSE
GAP, COARSE = 1e-6, 1e-4


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="solve the smallest case, write nothing")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for a solve")
    arguments = parser.parse_args()
    rows = [row for case in CASES[: 1 if arguments.once else None] for row in _rows(*case, arguments.limit)]
    if not arguments.once:
        write_text(HERE / "partition.csv", csv_text(rows))
        text = PAGE.read_text("utf-8")
        write_text(PAGE, "\n".join([text[: text.index(HEAD)] + HEAD, "|---" * 12 + "|", *map(_line, rows), ""]))


def _rows(workloads: int, seed: int, limit_s: float) -> list[dict[str, object]]:
    """A case by every formulation; those that prove an optimum agree."""
    data = partition(workloads, seed)
    started = time.process_time()
    few = subset(data, useful(data))
    filter_s = time.process_time() - started
    rows = [_row(few, form, seed, limit_s) for form in FORMS]
    gap = COARSE if workloads >= MANY else GAP
    proven = [float(str(row["objective"])) for row in rows if row["outcome"] == "optimal"]
    if proven and max(proven) > min(proven) * (1 + 2 * gap):
        sys.exit(f"{workloads} workloads, seed {seed}: formulations disagree: {proven}")
    for row in rows:
        row |= {"options": len(data.workload), "kept": len(few.workload), "filter_s": round(filter_s, 3)}
        print(_line(row), flush=True)
    return rows


def _row(data: PartitionData, form: str, seed: int, limit_s: float) -> dict[str, object]:
    gap = COARSE if data.workloads >= MANY else GAP
    started = time.process_time()
    small, scale = scaled(data)
    model = build(small, FORMS[form])
    built = time.process_time()
    answer = solve(model, time_limit_s=limit_s, settings=options(gap=gap, threads=1))
    solved = time.process_time()
    objective = np.inf
    if answer.value is not None:
        z = np.array([model.z[o].value for o in model.O])
        of = [np.flatnonzero(data.workload == w) for w in range(data.workloads)]
        objective = worth(data, np.array([rows[np.argmax(z[rows])] for rows in of])).objective
    return {
        "workloads": data.workloads,
        "seed": seed,
        "options": 0,
        "kept": 0,
        "formulation": form,
        "outcome": answer.outcome,
        "objective": objective,
        "gap": f"{max(1 - answer.bound * scale / objective, 0.0):.1e}",
        "nodes": answer.nodes,
        "filter_s": 0.0,
        "build_s": round(built - started, 3),
        "solve_s": round(solved - built, 3),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()} HiGHS {version()}",
    }


def _line(r: dict[str, object]) -> str:
    """A row as a line of the page."""
    case = f"{r['workloads']} | {r['seed']} | {r['options']} | {r['kept']} | {r['formulation']} | {r['outcome']}"
    found = f"{float(str(r['objective'])) / 1e6:.3f} | {r['gap']} | {r['nodes']}"
    return f"| {case} | {found} | {r['filter_s']:.2f} | {r['build_s']:.2f} | {r['solve_s']:.2f} |"


if __name__ == "__main__":
    main()
