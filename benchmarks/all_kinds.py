"""Solve every named instance of `benchmarks/cases.py` end to end; rewrites
`benchmarks/all_kinds.csv` and its pictures.

One row for instance and way. Way `coopt` is `coopt.solve` from the question to the plan. For shared
networks every formulation is also timed alone, by HiGHS as coopt runs it, by HiGHS with its
presolve (with probing and without), by SCIP through PySCIPOpt where that is installed, and by a
pass over all families in place of a search. Seconds are processor time; solvers run on one thread.
`--once` runs one case of each kind, of up to 256 GPUs in every way, and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rows import commit, csv_text

import coopt
from benchmarks.cases import Case, cases
from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.network.space import families
from coopt.solving.arrays import SharedProblem, assemble, viable
from coopt.solving.highs import PROBING, QuietHighs, linear_program, options, solve, version
from formulations.network import FORMULATIONS, build, cheapest_design

HERE = Path(__file__).parent
LIMIT_S = 120.0
WAYS: dict[str, dict[str, Any]] = {
    "HiGHS": {},
    "HiGHS, presolve without probing": {"presolve": "on", "presolve_rule_off": PROBING},
    "HiGHS, presolve with probing": {"presolve": "on", "presolve_rule_off": 0},
}


def main() -> None:
    """Run the table and draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="one case of each kind, write nothing")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if arguments.only in case.name]
    if arguments.once:
        chosen = list({case.kind: case for case in reversed(chosen)}.values())
    most_gpus = 256 if arguments.once else math.inf
    rows = [row for case in chosen for row in _rows(case, most_gpus)]
    if not arguments.once and not arguments.only:
        write_text(HERE / "all_kinds.csv", csv_text(rows))
        from benchmarks.time_plot import draw

        draw(rows, HERE / "all_kinds.png")


def _rows(case: Case, most_gpus: float) -> Iterator[dict[str, object]]:
    instance = case.question()
    started = time.process_time()
    plan = coopt.solve(instance, time_limit_s=LIMIT_S)
    total_s = time.process_time() - started
    said = {"value": plan.objective.value, "bound": plan.objective.bound, "gap": plan.objective.gap}
    yield _row(
        case,
        instance,
        "coopt",
        plan.solver.formulation,
        plan.status,
        plan.solver.nodes,
        total_s,
        **said,
    )
    is_small = instance.cluster.most_gpus <= most_gpus
    if is_small and not instance.beyond_one_network and plan.status == "optimal":
        for row in _searches(case, instance):
            wrong = row["outcome"] == "optimal" and not _close(row["value"], plan.objective.value)
            yield row | ({"outcome": "wrong"} if wrong else {})


def _close(found: object, value: float | None) -> bool:
    return (
        isinstance(found, float) and value is not None and math.isclose(found, value, rel_tol=1e-6)
    )


def _searches(case: Case, instance: Instance) -> Iterator[dict[str, object]]:
    """Every formulation by every solver, and the pass over families."""
    every = tuple(families(instance))
    table = columns(instance, every, lambda _: None, lambda: None)
    problem = assemble(instance, viable(instance, every, table), table)
    started = time.process_time()
    best = cheapest_design(problem.data)
    seconds = time.process_time() - started
    assert best is not None
    yield _row(
        case,
        instance,
        "pass over families",
        "none",
        "optimal",
        0,
        seconds,
        value=_value(problem, *best),
    )
    for name, equations in FORMULATIONS.items():
        model = build(problem.data, equations)
        for way, changes in WAYS.items():
            settings = options(gap=0.0, threads=1) | changes
            started = time.process_time()
            answer = solve(model, time_limit_s=LIMIT_S, settings=settings)
            seconds = time.process_time() - started
            value = None if answer.value is None else answer.value * problem.scale
            yield _row(
                case, instance, way, name, answer.outcome, answer.nodes, seconds, value=value
            )
        if find_spec("pyscipopt"):
            yield _by_scip(case, instance, problem, name, model)


def _value(problem: SharedProblem, family: int, uplinks: int, *_: object) -> float:
    d = problem.data
    spines = -(-int(d.leaves[family]) * uplinks // int(d.radix[family])) if d.leaves[family] else 0
    return (
        float(d.fixed[family] + d.uplink[family] * uplinks + d.spine[family] * spines)
        * problem.scale
    )


def _by_scip(
    case: Case, instance: Instance, problem: SharedProblem, name: str, model: Any
) -> dict[str, object]:
    from pyscipopt import Model

    lp, _ = linear_program(model)
    highs, scip = QuietHighs(), Model()
    highs.passModel(lp)
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "model.mps")
        highs.writeModel(place)
        scip.hideOutput()
        scip.readProblem(place)
    scip.setParams({"limits/time": LIMIT_S, "numerics/feastol": 1e-9, "parallel/maxnthreads": 1})
    started = time.process_time()
    scip.optimize()
    seconds = time.process_time() - started
    value = scip.getObjVal() * problem.scale if scip.getNSols() else None
    return _row(
        case, instance, "SCIP", name, scip.getStatus(), scip.getNNodes(), seconds, value=value
    )


def _row(
    case: Case,
    instance: Instance,
    way: str,
    formulation: str,
    outcome: str,
    nodes: int,
    seconds: float,
    **said: float | None,
) -> dict[str, object]:
    row: dict[str, object] = {
        "instance": case.name,
        "kind": case.kind,
        "size": case.size,
        "gpus": max(instance.cluster.gpus),
        "workloads": len(instance.workload),
        "way": way,
        "formulation": formulation,
        "outcome": outcome,
        **{name: said.get(name) for name in ("value", "bound", "gap")},
        "nodes": nodes,
        "cpu_s": round(seconds, 4),
        "limit_s": LIMIT_S,
        "commit": commit(),
        "highs": version(),
        "machine": f"{platform.machine()} Python {platform.python_version()}",
    }
    print(
        f"{case.name:24} {way:32} {formulation:10} {outcome:12} {seconds:8.3f} s", file=sys.stderr
    )
    return row


if __name__ == "__main__":
    main()
