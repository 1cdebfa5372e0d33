"""Solve named instances and rewrite `benchmarks/results.csv`.

One row a case: instance, formulation, commit, versions, machine, plan, bound, gap, nodes and
seconds by stage (the median of several runs). `--once` runs the smallest case once and writes
nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from pathlib import Path

from rows import commit, csv_text

import coopt
from coopt.instance.texts import write_text

HERE = Path(__file__).parent
INSTANCES = HERE.parent / "instances"
CASES = [  # instance file, bound in seconds in place of its own
    ("tiny-64", None),
    ("megatron-530b", None),
    ("llama3-405b-16k", None),
    ("rail-only-gpt-1t", None),
    ("rail-only-gpt-1t", 3.5),
    ("rail-only-gpt-1t", 4.5),
    ("rail-only-gpt-1t", 4.8),
    ("rail-only-gpt-1t", 6.0),
    ("rail-only-gpt-1t", 20.0),
    ("infeasible-deadline", None),
    ("shared-131k-w8", None),
]
STAGES = ("model", "columns", "build", "handover", "solve", "total")


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="run the smallest case, write nothing")
    parser.add_argument("--runs", type=int, default=5, help="runs of a case; the median counts")
    arguments = parser.parse_args()
    runs = 1 if arguments.once else arguments.runs
    cases = CASES[:1] if arguments.once else CASES
    rows = [_row(name, bound_s, runs) for name, bound_s in cases]
    if not arguments.once:
        write_text(HERE / "results.csv", csv_text(rows))


def _row(name: str, bound_s: float | None, runs: int) -> dict[str, object]:
    overrides = {} if bound_s is None else {"workload.max_iteration_time_s": bound_s}
    instance = coopt.load(INSTANCES / f"{name}.toml", overrides)
    plans = [coopt.solve(instance) for _ in range(runs)]
    plan = plans[0]
    verdict = coopt.verify(instance, plan)
    if not verdict.accepted:
        sys.exit(f"{name}: the verifier rejects its plan")
    row: dict[str, object] = {
        "instance": name,
        "deadline_s": instance.workload[0].bound_s,
        "formulation": plan.solver.formulation,
        "commit": commit(),
        "coopt": coopt.__version__,
        "highs": plan.solver.version,
        "machine": f"{platform.machine()} Python {platform.python_version()}",
        "seed": plan.solver.options["random_seed"],
        "limit_s": instance.solver.time_limit_s,
        "status": plan.status,
        "value": plan.objective.value,
        "bound": plan.objective.bound,
        "gap": plan.objective.gap,
        "nodes": plan.solver.nodes,
        "cuts": plan.solver.cuts,
        "enumerated": plan.solver.columns_enumerated,
        "kept": plan.solver.columns_kept,
        "families": plan.solver.families,
    }
    row |= {
        f"{stage}_s": round(statistics.median(getattr(p.timing_s, stage) for p in plans), 4)
        for stage in STAGES
    }
    value = f"{plan.objective.value or 0:14,.0f}"
    print(
        f"{name:20} {row['deadline_s']:8.3f} s {plan.solver.formulation:8} {plan.status:10} {value}"
        f" {row['total_s']:.3f} s"
    )
    return row


if __name__ == "__main__":
    main()
