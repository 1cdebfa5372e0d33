"""Solve partitions by every formulation; rewrites `benchmarks/partition.csv`.

One row for case and formulation: options listed and kept by the filter, objective, proven gap,
nodes, and seconds of processor time on one thread, which other programs on the machine disturb
least: those of listing, of the filter, of building the model, and of the search. `sets` is the
search as coopt runs it, which builds as it goes; the others hand one model to HiGHS. All get the
filtered options. In cases of all options nothing is dropped while islands are listed: there `sets`
filters them, and `naive` gets them all. `--case` solves some cases again and leaves the rows of the
others as they are; `--once` solves a small one and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import platform
import sys
import time
from pathlib import Path

import numpy as np
from rows import commit, csv_text

from benchmarks.partition_every import every_island
from benchmarks.partition_naive import NAIVE
from benchmarks.partition_options import partition
from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import list_options
from coopt.instance.schema import load
from coopt.instance.texts import write_text
from coopt.solving.fleet.arrays import worth
from coopt.solving.fleet.listing import StandingIslands, numbers_of
from coopt.solving.fleet.parts import scaled, subset
from coopt.solving.fleet.search import choice, search_partition, useful
from coopt.solving.highs import options, solve, version
from formulations.choice import FORMULATIONS, Equation, build
from formulations.choice_data import ChoiceData

HERE = Path(__file__).parent
RECORD = HERE / "partition.csv"
Row = dict[str, object]
COLUMNS = (
    *("case", "options", "kept", "formulation", "outcome", "objective", "gap", "nodes"),
    *("list_s", "filter_s", "build_s", "solve_s", "commit", "machine"),
)
ALL = ", all options"
FLEETS = ["fleet-131k-w8", "fleet-131k-w8-core", "fleet-131k-w16", "fleet-131k-w64"]
CASES = [
    *FLEETS,
    *("fleet-131k-w8" + ALL, "fleet-131k-w16" + ALL),
    "made-up 8",
    "made-up 16",
    "made-up 64",
]
NAIVELY = "naive"
SETS = "sets"  # the search as coopt runs it: a part for each set of products
FORMS: dict[str, tuple[Equation, ...]] = {SETS: (), **FORMULATIONS, NAIVELY: NAIVE}
LIMIT_S, LONG_LIMIT_S = 60.0, 300.0  # for a solve, and for one with all options
MANY = 64  # workloads from which on the gap is COARSE
GAP, COARSE = 1e-6, 1e-4


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="solve a small case, write nothing")
    parser.add_argument(
        "--case", action="append", choices=CASES, help="a case to solve again; all without it"
    )
    arguments = parser.parse_args()
    chosen = ["questions/two-teams"] if arguments.once else arguments.case or CASES
    found = {case: _rows(case) for case in chosen}
    if not arguments.once:
        rows = [row for case in CASES for row in found.get(case) or recorded(case)]
        write_text(RECORD, csv_text(rows))


def recorded(case: str) -> list[Row]:
    """The rows of a case on file."""
    with RECORD.open(encoding="utf-8", newline="") as file:
        return [dict(row) for row in csv.DictReader(file) if row["case"] == case]


def _rows(case: str) -> list[Row]:
    """A case by every formulation; those that prove an optimum agree."""
    started = time.process_time()
    data = _data(case)
    list_s = time.process_time() - started
    started = time.process_time()
    few = subset(data, useful(data))
    filter_s = time.process_time() - started
    rows = []
    for form in (SETS, NAIVELY) if case.endswith(ALL) else FORMS:
        whole = case.endswith(ALL) and form == NAIVELY
        used, limit_s = (data, LONG_LIMIT_S) if whole else (few, LIMIT_S)
        row = {
            "case": case,
            "options": len(data.workload),
            "kept": len(used.workload),
            "list_s": round(list_s, 2),
        }
        row |= {"filter_s": 0.0 if whole else round(filter_s, 3)} | _solved(used, form, limit_s)
        rows.append(row)
        print(_line(row), flush=True)
    gap = _gap(data)
    proven = [float(str(row["objective"])) for row in rows if row["outcome"] == "optimal"]
    if proven and max(proven) > min(proven) * (1 + 2 * gap):
        sys.exit(f"{case}: formulations disagree: {proven}")
    return [{column: row[column] for column in COLUMNS} for row in rows]


def _data(case: str) -> ChoiceData:
    """The numbers of an instance, or made-up ones for so many workloads."""
    name, _, workloads = case.removesuffix(ALL).partition(" ")
    if workloads:
        return partition(int(workloads), seed=0)
    instance = load(HERE.parent / "instances" / f"{name}.toml")
    if case.endswith(ALL):
        options = every_island(instance)
    else:
        options = list_options(instance, lambda _: None, lambda: None)
    islands = StandingIslands(market=Market(instance=instance), listed=options, sites=(None,))
    return numbers_of(instance, islands)


def _gap(data: ChoiceData) -> float:
    return COARSE if data.workloads >= MANY else GAP


def _solved(data: ChoiceData, form: str, limit_s: float) -> Row:
    """What a formulation makes of some options."""
    gap = _gap(data)
    started = time.process_time()
    if form == SETS:
        found = search_partition(data, gap=gap, deadline=time.perf_counter() + limit_s)
        built = started
        objective = found.value
        outcome, bound, nodes = found.outcome, found.bound, found.nodes
    else:
        small, scale = scaled(data)
        model = build(small, FORMS[form])
        built = time.process_time()
        answer = solve(model, time_limit_s=limit_s, settings=options(gap=gap, threads=1))
        objective = np.inf if answer.value is None else worth(data, choice(model, data)).objective
        outcome, bound, nodes = answer.outcome, answer.bound * scale, answer.nodes
    return {
        "formulation": form,
        "outcome": outcome,
        "objective": objective,
        "gap": f"{max(1 - bound / objective, 0.0):.1e}" if objective < np.inf else "",
        "nodes": nodes,
        "build_s": round(built - started, 3),
        "solve_s": round(time.process_time() - built, 3),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()} HiGHS {version()}",
    }


def _line(r: Row) -> str:
    """A row as a line of a table."""
    case = f"{r['case']} | {r['options']} | {r['kept']} | {r['formulation']} | {r['outcome']}"
    value, list_s, filter_s, build_s, solve_s = (
        float(str(r[name])) for name in ("objective", "list_s", "filter_s", "build_s", "solve_s")
    )
    found = (
        f"{value / 1e6:.3f} | {r['gap']} | {r['nodes']}"
        if value < np.inf
        else f"none | | {r['nodes']}"
    )
    return f"| {case} | {found} | {list_s:.1f} | {filter_s:.2f} | {build_s:.2f} | {solve_s:.2f} |"


if __name__ == "__main__":
    main()
