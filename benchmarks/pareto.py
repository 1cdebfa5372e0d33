"""Trace the front of shipped instances beside one solve; rewrites `benchmarks/pareto.csv`.

One row an instance: points, how many the whole front has, and seconds of processor time, which
other programs on the machine disturb least, as the median of several runs. `--once` runs the
smallest once and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from rows import commit, csv_text

import coopt
from coopt.instance.texts import write_text
from coopt.solving.highs import version

HERE = Path(__file__).parent
INSTANCES = HERE.parent / "instances"
CASES = ("tiny-64", "llama3-405b-16k", "rail-only-gpt-1t")
POINTS = 50


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="run the smallest case, write nothing")
    parser.add_argument("--runs", type=int, default=9, help="runs of a case; the median counts")
    arguments = parser.parse_args()
    cases, runs = (CASES[:1], 1) if arguments.once else (CASES, arguments.runs)
    rows = [_row(name, runs) for name in cases]
    if not arguments.once:
        write_text(HERE / "pareto.csv", csv_text(rows))


def _row(name: str, runs: int) -> dict[str, object]:
    instance = coopt.load(INSTANCES / f"{name}.toml")
    front = coopt.pareto(instance, POINTS)
    solve_s = _seconds(lambda: coopt.solve(instance), runs)
    front_s = _seconds(lambda: coopt.pareto(instance, POINTS), runs)
    row: dict[str, object] = {
        "instance": name,
        "points": len(front.points),
        "whole_front": front.size,
        "knees": sum(point.knee for point in front.points),
        "largest_gap": max(point.best.objective.gap or 0.0 for point in front.points),
        "runs": runs,
        "solve_cpu_s": round(solve_s, 4),
        "front_cpu_s": round(front_s, 4),
        "ratio": round(front_s / solve_s, 2),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()} HiGHS {version()}",
    }
    print(
        f"{name:20} {len(front.points)} of {front.size} points, {front_s:.3f} s, {row['ratio']}"
        " times one solve"
    )
    return row


def _seconds(work: Callable[[], object], runs: int) -> float:
    """Processor time of one run, the median of several after one that warms up."""
    work()
    spent = []
    for _ in range(runs):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
