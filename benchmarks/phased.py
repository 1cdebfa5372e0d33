"""Solve clusters that grow by several methods; rewrites `benchmarks/phased.csv`.

One row for instance and method, in seconds of processor time on one thread. All methods get the
same lines with the same uplinks; listing the mappings that decide these comes before and is a row
of its own. Enumeration goes through all uplinks that never fall and every phase to buy in; where
there are more than `SAMPLE` of them its time is that of a sample, times how many there are, and the
row says so. `--once` takes the smallest instance and writes nothing.
"""

from __future__ import annotations

import argparse
import math
import platform
import random
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rows import commit, csv_text

import coopt
from benchmarks.phased_naive import NAIVE
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.network.growth import Line, lines
from coopt.solving.backend import backend_of
from coopt.solving.highs import options, solve, version
from coopt.solving.phased_search import demanded, line_bounds, numbers_of, scaled, search_lines
from formulations.phased import PHASES, Equation, PhasedData, build

HERE = Path(__file__).parent
INSTANCES = ("phased-128", "phased-131k-p3", "phased-131k-p4")
LIMIT_S = 300.0
SAMPLE = 20_000
Found = tuple[float, float, int, str]  # objective, bound, nodes, note


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--once", action="store_true", help="solve the smallest instance, write nothing"
    )
    once = parser.parse_args().once
    rows = [row for name in INSTANCES[: 1 if once else None] for row in _rows(name)]
    if not once:
        write_text(HERE / "phased.csv", csv_text(rows))


def _rows(name: str) -> list[dict[str, object]]:
    """An instance by every method; those that prove an optimum agree to the gap that is asked
    for.
    """
    instance = coopt.load(HERE.parent / "instances" / f"{name}.toml")
    every = tuple(lines(instance))
    started = time.process_time()
    asked = demanded(instance, every, lambda _phase: None, lambda: None)
    serving = asked.serving
    note = f"{len(every)} lines, {len(serving)} serve every phase"
    rows = [_row(name, "mappings", time.process_time() - started, (math.nan, math.nan, 0, note))]
    started = time.process_time()
    chosen = [every[f] for f in serving]
    data = numbers_of(instance, chosen, [asked.allowed[f] for f in serving])
    counting_s = time.process_time() - started
    methods: dict[str, Callable[[], Found]] = {
        "by lines": lambda: _by_lines(instance, chosen, data),
        "one program": lambda: _program(data, PHASES),
        "naive": lambda: _program(data, NAIVE),
    }
    for method, run in methods.items():
        started = time.process_time()
        found = run()
        rows.append(_row(name, method, counting_s + time.process_time() - started, found))
    rows.append(_row(name, "enumeration", *_enumeration(data)))
    values = [float(str(row["objective"])) for row in rows[1:] if row["gap"] == "0.0e+00"]
    if max(values) > min(values) * (1 + 1e-9):
        sys.exit(f"{name}: methods disagree: {values}")
    for row in rows:
        print(_line(row), flush=True)
    return rows


def _by_lines(instance: Instance, chosen: list[Line], data: PhasedData) -> Found:
    """As `coopt solve` does it."""
    deadline = time.perf_counter() + LIMIT_S
    result = search_lines(instance, chosen, data, backend_of(instance.solver), deadline=deadline)
    assert result.found is not None
    value = result.found.cost.of(instance.objective.minimize)
    return value, result.bound, result.nodes, f"{result.tried} of {len(chosen)} lines by HiGHS"


def _program(data: PhasedData, formulation: tuple[Equation, ...]) -> Found:
    """All lines in one program."""
    unit = float(line_bounds(data).min()) / 1e3
    answer = solve(
        build(scaled(data, unit), formulation),
        time_limit_s=LIMIT_S,
        settings=options(gap=0.0, threads=1),
    )
    value = math.nan if answer.value is None else answer.value * unit
    return value, answer.bound * unit, answer.nodes, answer.outcome


def _enumeration(data: PhasedData) -> tuple[float, Found]:
    """Seconds, and the least of what was looked at."""
    counts = [_count(data, f) for f in range(len(data.fixed))]
    total, started, best = sum(counts), time.process_time(), math.inf
    chance = random.Random(0)
    if total <= SAMPLE:
        looked = [(f, u) for f in range(len(counts)) for u in _every(data, f)]
    else:
        picked = chance.choices(range(len(counts)), counts, k=SAMPLE)
        looked = [(f, _some(data, f, chance)) for f in picked]
        started = time.process_time()
    for f, u in looked:
        best = min(best, _cost(data, f, u))
    seconds = time.process_time() - started
    if total <= SAMPLE:
        return seconds, (best, best, 0, f"all {total:,}")
    return seconds * total / SAMPLE, (
        math.nan,
        math.nan,
        0,
        f"extrapolated: {SAMPLE:,} of {total:,}",
    )


def _ranges(data: PhasedData, f: int) -> list[range]:
    return [
        range(int(a), int(b) + 1)
        for a, b in zip(data.min_uplinks[f], data.max_uplinks[f], strict=True)
    ]


def _every(data: PhasedData, f: int) -> list[tuple[int, ...]]:
    return [u for u in product(*_ranges(data, f)) if list(u) == sorted(u)]


def _some(data: PhasedData, f: int, chance: random.Random) -> tuple[int, ...]:
    """Uplinks that never fall, drawn phase by phase."""
    found: list[int] = []
    for one in _ranges(data, f):
        found.append(chance.randint(max([one[0], *found[-1:]]), one[-1]))
    return tuple(found)


def _count(data: PhasedData, f: int) -> int:
    """How many uplinks that never fall there are."""
    ways = {0: 1}
    for one in _ranges(data, f):
        ways = {u: sum(number for was, number in ways.items() if was <= u) for u in one}
    return sum(ways.values())


def _cost(data: PhasedData, f: int, u: tuple[int, ...]) -> float:
    """One way to grow, its units bought in the best of all combinations of phases."""
    phases, items = range(len(u)), range(data.price.shape[1])
    spines = [-(-int(data.leaves[f, t]) * u[t] // int(data.ports[f, t])) for t in phases]
    value = 0.0
    for i in items:
        placed = [
            int(data.fixed[f, t, i])
            + int(data.uplink[f, t, i]) * u[t]
            + int(data.spine[f, t, i]) * spines[t]
            for t in phases
        ]
        added = [b - a for a, b in zip([0, *placed], placed, strict=False)]
        times = product(*(range(t + 1) for t in phases))
        price = data.price[:, i].tolist()
        value += min(
            sum(price[when] * n for when, n in zip(one, added, strict=True)) for one in times
        )
        value += sum(float(data.run[t, i]) * placed[t] for t in phases)
    for t in phases[1:]:
        links = int(data.stood[f, t]) * (u[t] - u[t - 1]) + int(data.trunks[f, t]) * u[t - 1]
        value += float(data.labour[t]) * links
    return value


def _row(name: str, method: str, seconds: float, found: Found) -> dict[str, Any]:
    value, bound, nodes, note = found
    gap = max(1 - bound / value, 0.0) if value else 0.0
    return {
        "instance": name,
        "method": method,
        "cpu_s": round(seconds, 3),
        "objective": "" if np.isnan(value) else value,
        "gap": "" if np.isnan(value) else f"{0.0 if gap < 1e-9 else gap:.1e}",
        "nodes": nodes,
        "note": note,
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()} HiGHS {version()}",
    }


def _line(r: dict[str, Any]) -> str:
    """A row as a line of the page."""
    money = f"{r['objective'] / 1e6:.3f}" if r["objective"] != "" else ""
    return (
        f"| {r['instance']} | {r['method']} | {r['cpu_s']:,.2f} | {money} | {r['gap']} |"
        f" {r['nodes']} | {r['note']} |"
    )


if __name__ == "__main__":
    main()
