"""Solve shared networks by every formulation and the usual ways; rewrites `benchmarks/shared.csv`.

One row for instance and way: columns, outcome, what it claims, what the design it chose really
costs, whether that meets every bound, nodes, and seconds of processor time for building and solving
(the median of several runs). Ours get one column for each workload and context. The usual ways get
these, and every mapping that no other beats in every respect, where those are few enough to be
written down. `--once` runs the smallest case and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyomo.environ as pyo
from rows import commit, csv_text

import coopt
from benchmarks.shared_naive import NAIVE, unfiltered, with_slowdowns
from coopt.columns.table import Columns, columns
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.network.parts import within_limits
from coopt.network.space import families
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.driver import recomputed
from coopt.solving.highs import SolverAnswer, options, solve, version
from formulations.network import FORMULATIONS, Equation, build, cheapest_design, set_design

HERE = Path(__file__).parent
CASES = [  # instance file, bound in seconds in place of its own
    ("tiny-64", None),
    ("llama3-405b-16k", None),
    ("rail-only-gpt-1t", None),
    ("rail-only-gpt-1t", 3.5),
    ("rail-only-gpt-1t", 4.5),
    ("rail-only-gpt-1t", 6.0),
    ("shared-131k-w8", None),
]
LIMIT_S = 60.0
MOST_COLUMNS = 20_000  # that the usual ways are given
OURS = options(gap=0.0, threads=1)
DEFAULTS = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "threads": 1, "output_flag": False}


@dataclass(frozen=True, kw_only=True)
class Way:
    """A formulation with the options HiGHS runs with.

    `start` hands over the best design by a pass over families, `usual` asks for the columns of the
    usual ways and `once` for a single run.
    """

    name: str
    equations: tuple[Equation, ...]
    settings: dict[str, float | int | str | bool]
    start: bool = False
    usual: bool = False
    once: bool = False


def ways() -> Iterator[Way]:
    """Ours with a start and without, then the usual ones."""
    for name, equations in FORMULATIONS.items():
        yield Way(name=name, equations=equations, settings=OURS, start=True)
        yield Way(name=f"{name} without start", equations=equations, settings=OURS)
    for name, equations in NAIVE.items():
        yield Way(name=name, equations=equations, settings=OURS, usual=True, once=True)
        yield Way(name=f"{name} on our columns", equations=equations, settings=OURS, once=True)
    yield Way(
        name="big-m, options of HiGHS",
        equations=NAIVE["big-m"],
        settings=DEFAULTS,
        usual=True,
        once=True,
    )


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--once", action="store_true", help="run the smallest case once, write nothing"
    )
    parser.add_argument(
        "--runs", type=int, default=5, help="runs of a formulation of ours; the median counts"
    )
    parser.add_argument(
        "--limit", type=float, default=LIMIT_S, help="seconds of the clock for a solve"
    )
    wishes = parser.parse_args()
    runs = 1 if wishes.once else wishes.runs
    rows = [
        row
        for case in CASES[: 1 if wishes.once else None]
        for row in _rows(*case, runs, wishes.limit)
    ]
    if not wishes.once:
        write_text(HERE / "shared.csv", csv_text(rows))


def _rows(
    name: str, bound_s: float | None, runs: int, limit_s: float
) -> Iterator[dict[str, object]]:
    # the usual ways charge the ratio of a leaf, and take any number of uplinks
    overrides = {"network.charge": "ratio", "network.bundles": "any"}
    overrides |= {} if bound_s is None else {"workload.max_iteration_time_s": bound_s}
    instance = coopt.load(HERE.parent / "instances" / f"{name}.toml", overrides)
    started = time.process_time()
    every = tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    problem = assemble(instance, viable(instance, every, table), table)
    columns_s = time.process_time() - started
    optimum = coopt.solve(instance).objective.value
    for way in ways():
        row: dict[str, object] = {
            "instance": name,
            "deadline_s": instance.workload[0].bound_s,
            "way": way.name,
        }
        row |= {"columns_s": round(columns_s, 3), "optimum": optimum, "limit_s": limit_s}
        row |= _measured(instance, problem, table, way, 1 if way.once else runs, limit_s)
        if not way.once and row["verdict"] != "optimal":
            sys.exit(f"{name}: {way.name} is {row['verdict']}")
        row |= {
            "commit": commit(),
            "machine": f"{platform.machine()} Python {platform.python_version()}",
        }
        row["highs"] = version()
        print(
            *(f"{row[key]!s:>24}" for key in ("instance", "way", "columns", "verdict", "seconds")),
            flush=True,
        )
        yield row


def _measured(
    instance: Instance, problem: SharedProblem, table: Columns, way: Way, runs: int, limit_s: float
) -> dict[str, object]:
    data = unfiltered(problem, table) if way.usual else with_slowdowns(problem, table)
    empty = dict.fromkeys(
        ("outcome", "claimed", "bound", "true", "nodes", "build_s", "solve_s", "seconds"), ""
    )
    if len(data.need) > MOST_COLUMNS and way.usual:
        return {"columns": len(data.need), "verdict": "not written down"} | empty
    seconds = []
    for _ in range(runs):
        started = time.process_time()
        model = build(data, way.equations)
        first = cheapest_design(data) if way.start else None
        if first is not None:
            set_design(model, *first)
        built = time.process_time()
        answer = solve(model, time_limit_s=limit_s, settings=way.settings, start=first is not None)
        seconds.append((built - started, time.process_time() - built))
    build_s, solve_s = (statistics.median(times) for times in zip(*seconds, strict=True))
    times = {
        "build_s": round(build_s, 4),
        "solve_s": round(solve_s, 4),
        "seconds": round(build_s + solve_s, 4),
    }
    verdict, true = _judged(instance, problem, table, model, answer)
    claimed = None if answer.value is None else answer.value * problem.scale
    return {
        "columns": len(data.need),
        "verdict": verdict,
        "outcome": answer.outcome,
        "claimed": claimed,
        "bound": answer.bound * problem.scale,
        "true": true,
        "nodes": answer.nodes,
    } | times


def _judged(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    model: pyo.ConcreteModel,
    answer: SolverAnswer,
) -> tuple[str, float | None]:
    """What the answer is worth, and the true cost of its design, recomputed from the rounded
    decisions.
    """
    if answer.value is None:
        return "none found", None
    f = max(model.F, key=lambda i: model.y[i].value)
    family, uplinks = problem.families[f], round(model.u[f].value)
    if family.tiers > 1 and uplinks < 1:
        return "breaks a bound", None
    found = recomputed(instance, table, family, max(uplinks, family.uplink_choices[0]))
    true = found.cost.of(instance.objective.minimize)
    if (
        max(found.shares) > 1
        or not within_limits(instance, family, found.cost)
        or uplinks < family.uplink_choices[0]
    ):
        return "breaks a bound", true
    best = coopt.solve(instance).objective.value
    assert best is not None
    if true > best:
        return ("wrong optimum" if answer.outcome == "optimal" else "not the best"), true
    return "optimal" if answer.outcome == "optimal" else "unproven", true


if __name__ == "__main__":
    main()
