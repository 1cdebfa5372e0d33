"""How much of two cores a suite of 1,000 cases turns into answers; rewrites `benchmarks/suite.csv`.

The same questions are first answered one by one in this process, then by `coopt suite` with a
process for each core, from the start of the first to the last row of the table. `efficiency` is the
time one by one over cores times the time of the suite, and means something on a machine that does
nothing else. `useful_share` is the processor time that workers spent on cases over that of all
processes of the suite, their start and the writing included; it holds on a busy machine as well.
`load_before` is the load of the machine in the minute before. `--once` runs 20 cases and writes
nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import tempfile
import time
from pathlib import Path

from rows import commit, csv_text

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.suite.driver import run_suite
from coopt.suite.form import Suite, cases_of
from coopt.suite.pools import available_cores

HERE = Path(__file__).parent
SUITE = """\
schema = 1
name = "thousand"
[[grid]]
name = "grid"
instances = "{instance}"
[grid.vary]
"workload.max_iteration_time_s" = [{bounds}]
"network.oversubscription" = [1.0, 1.5, 2.0, 3.0, 4.0]
"cluster.gpus" = [{gpus}]
"""
BOUNDS = 50  # values of the time bound; 20 other combinations
STUDIES = {  # instance: GPUs, and the least time bound (s) of values a sixtieth of it apart
    "tiny-64": ("32, 64, 128, 256", 0.6),
    "rail-only-gpt-1t": ("8192, 16384, 24576, 32768", 4.0),
}


def main() -> None:
    """Time the suite."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="run 20 cases, write nothing")
    parser.add_argument("--runs", type=int, default=3, help="runs; the median counts")
    arguments = parser.parse_args()
    runs, bounds = (1, 1) if arguments.once else (arguments.runs, BOUNDS)
    rows = [timed(name, bounds, runs) for name in list(STUDIES)[: 1 if arguments.once else None]]
    if not arguments.once:
        write_text(HERE / "suite.csv", csv_text(rows))


def timed(name: str, bounds: int, runs: int) -> dict[str, object]:
    """One row of the table."""
    cores, load = available_cores(), os.getloadavg()[0]
    found = [_run(name, bounds, cores) for _ in range(runs)]
    alone_s, alone_cpu_s, suite_s, suite_cpu_s, cases_cpu_s = map(
        statistics.median, zip(*found, strict=True)
    )
    row: dict[str, object] = {
        "instance": name,
        "cases": 20 * bounds,
        "workers": cores,
        "runs": runs,
        "one_by_one_s": round(alone_s, 2),
        "one_by_one_cpu_s": round(alone_cpu_s, 2),
        "suite_s": round(suite_s, 2),
        "suite_cpu_s": round(suite_cpu_s, 2),
        "cases_cpu_s": round(cases_cpu_s, 2),
        "efficiency": round(alone_s / cores / suite_s, 3),
        "useful_share": round(cases_cpu_s / suite_cpu_s, 3),
        "load_before": round(load, 1),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()}",
    }
    print(
        f"{20 * bounds:,} cases of {name} on {cores} cores: {alone_s:.1f} s one by one,"
        f" {suite_s:.1f} s as a suite,",
        end=" ",
    )
    print(
        f"efficiency {row['efficiency']:.1%}, {row['useful_share']:.1%} of processor time spent on"
        " cases"
    )
    return row


def _run(name: str, bounds: int, workers: int) -> tuple[float, float, float, float, float]:
    """Wall and processor seconds one by one, of the suite with all its processes, and of its cases
    alone.
    """
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "thousand.toml"
        gpus, least_s = STUDIES[name]
        values = ", ".join(f"{least_s * (1 + step / 60):.4f}" for step in range(bounds))
        instance = HERE.parent / "instances" / f"{name}.toml"
        file.write_text(SUITE.format(instance=instance, bounds=values, gpus=gpus), "utf-8")
        alone = _one_by_one(file)
        before, start = _processor_s(), time.perf_counter()
        done = run_suite(file, Path(place) / "out", workers=workers)
        suite = time.perf_counter() - start, _processor_s() - before
        assert done.worked == 20 * bounds
    return *alone, *suite, done.cpu_s


def _one_by_one(file: Path) -> tuple[float, float]:
    """Solve every case in this process."""
    from coopt.instance.texts import read_toml

    cases = cases_of(Suite.model_validate(read_toml(file)), file.parent)
    questions = [Instance.model_validate_json(case.question) for case in cases]
    coopt.solve(questions[0])
    start, cpu = time.perf_counter(), time.process_time()
    for question in questions:
        coopt.solve(question)
    return time.perf_counter() - start, time.process_time() - cpu


def _processor_s() -> float:
    """Processor seconds of this process and of those it started and saw end."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in used)


if __name__ == "__main__":
    main()
