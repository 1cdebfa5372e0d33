"""Solves and suites that run twice at once, by hand: `python -m tests.cli.at_once COUNT SEED` asks so many questions.

Two solves of different bounds write one file: it holds the whole answer of one of them, and it verifies. Two suites of
the same questions work on one folder: one of them is refused or finds all done, and every question has its answer.
"""

from __future__ import annotations

import math
import multiprocessing as mp
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import coopt
from coopt.cli.main import main as command
from coopt.plan.store import read_plan
from coopt.suite.folder import read_results
from tests.cli.interruptions import TINY

BOUNDS = [round(0.55 + step / 200, 3) for step in range(100)]
CASES = 20
SUITE = """\
schema = 1
name = "bounds"
[[grid]]
name = "bounds"
instances = "{instance}"
[grid.vary]
"workload.max_iteration_time_s" = {bounds}
"""


def run(words: list[str], after_s: float) -> None:
    """The command in this process, silent, its exit code that of the process."""
    time.sleep(after_s)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    command(words, prog_name="coopt")


def together(both: list[list[str]], between_s: float) -> list[int]:
    """The exit codes of two commands, the second of which starts a moment later."""
    runs = [
        mp.get_context("fork").Process(target=run, args=(words, between_s * late)) for late, words in enumerate(both)
    ]
    for process in runs:
        process.start()
    for process in runs:
        process.join()
    return [process.exitcode or 0 for process in runs]


def expected(bound_s: float, known: dict[float, float]) -> float:
    """The least cost within a bound, as one solve alone finds it; infinite where there is none."""
    if bound_s not in known:
        instance = coopt.load(TINY, {"workload.max_iteration_time_s": bound_s})
        value = coopt.solve(instance).objective.value
        known[bound_s] = math.inf if value is None else value
    return known[bound_s]


def is_equal(value: float, other: float) -> bool:
    return value == other or math.isclose(value, other, rel_tol=1e-9)


def solves(rng: random.Random, folder: Path, known: dict[float, float]) -> str:
    """What is wrong with the file of two solves; nothing where all is well."""
    bounds, file = rng.sample(BOUNDS, 2), folder / "plan.json"
    words = [
        ["solve", str(TINY), "--set", f"workload.max_iteration_time_s={bound}", "-o", str(file)] for bound in bounds
    ]
    codes = together(words, rng.uniform(0.0, 0.2))
    if not file.exists():
        return f"{bounds}: no file, exit codes {codes}"
    plan = read_plan(file)
    value = math.inf if plan.objective.value is None else plan.objective.value
    right = [expected(bound, known) for bound in bounds]
    held = any(is_equal(value, own) for own in right)
    left = [other.name for other in folder.iterdir() if other != file]
    fine = held and not left and set(codes) <= {0, 3}
    return "" if fine else f"{bounds}: {value!r} for {right}, exit codes {codes}, left {left}"


def suites(rng: random.Random, folder: Path, known: dict[float, float]) -> str:
    """What is wrong with the folder of two suites; nothing where all is well."""
    bounds, file = sorted(rng.sample(BOUNDS, CASES)), folder / "suite.toml"
    file.write_text(SUITE.format(instance=TINY, bounds=bounds), "utf-8")
    words = ["suite", "run", str(file), "-o", str(folder / "run"), "--workers", "1", "--resume"]
    codes = together([words, words], rng.choice([0.0, rng.uniform(0.0, 4.0)]))
    rows = read_results(folder / "run")[1]
    right = sorted(expected(bound, known) for bound in bounds)
    found = sorted(math.inf if row["value"] is None else float(row["value"]) for row in rows)
    held = len(found) == CASES and all(is_equal(*pair) for pair in zip(found, right, strict=True))
    return "" if held and 0 in codes and set(codes) <= {0, 1} else f"{bounds}: {found} for {right}, exit codes {codes}"


def main(count: int, seed: int) -> int:
    """How many questions went wrong."""
    rng, known, asked, wrong = random.Random(seed), dict[float, float](), Counter[str](), 0
    while asked.total() < count:
        kind, questions = rng.choice([(solves, 2)] * 10 + [(suites, CASES)])
        with tempfile.TemporaryDirectory() as place:
            fault = kind(rng, Path(place), known)
        asked[kind.__name__] += questions
        if fault:
            wrong += 1
            sys.stdout.write(f"{kind.__name__}: {fault}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{dict(asked)} questions of seed {seed}: {wrong} wrong\n")
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:3])), 1))
