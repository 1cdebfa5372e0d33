"""Schedule an all-reduce on named fabrics with every algorithm and rewrite
`benchmarks/collectives.csv`.

One row a case: graph, algorithm, steps, bound, construction, and the seconds to build and to replay
the schedule (the median of several runs). `--once` runs a few small graphs once and writes
nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path

from rows import commit, csv_text

from coopt.instance.texts import InstanceError, write_text
from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import board_of
from coopt.network.schedules.outcome import ALGORITHMS, bound_for
from coopt.network.schedules.schedule_form import all_reduce_s, replay
from coopt.network.schedules.trees import free_multitree

HERE = Path(__file__).parent
PUBLISHED = {
    "mesh:2x2": 2,
    "torus:4x4": 5,
    "mesh:4x4": 10,
    "torus:8x8": 17,
    "mesh:8x8": 32,
    "torus:16x16": 64,
}
GRAPHS = (
    *PUBLISHED,
    "mesh:16x16",
    "torus:4x4x4",
    "ring:64",
    "full:64",
    "hyperx:8x8",
    "dragonfly:9x4",
    "regular:64:4",
    "clos:8x8",
    "clos:8x8:2",
    "fattree:4",
)
SMALL = ("mesh:2x2", "torus:4x4", "hyperx:4x4", "dragonfly:4x2", "clos:4x4:2", "fattree:4")
CASES = {**ALGORITHMS, "multitree, free roots": free_multitree}
DATA_BYTES, LATENCY_S = 1e9, 1e-6


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="a few small graphs, write nothing")
    parser.add_argument("--runs", type=int, default=3, help="runs of a case; the median counts")
    arguments = parser.parse_args()
    runs = 1 if arguments.once else arguments.runs
    graphs = SMALL if arguments.once else GRAPHS
    rows = [row for text in graphs for name in CASES if (row := _row(text, name, runs))]
    if not arguments.once:
        write_text(HERE / "collectives.csv", csv_text(rows))


def _row(text: str, name: str, runs: int) -> dict[str, object] | None:
    graph = fabric(text)
    board = board_of(graph)
    build_s = []
    try:
        for _ in range(runs):
            start = time.process_time()
            schedule = CASES[name](board, 0)
            build_s.append(time.process_time() - start)
    except InstanceError:
        return None  # no rows and columns, or no power of two
    start = time.process_time()
    faults = replay(graph, schedule)
    replay_s = time.process_time() - start
    if faults:
        sys.exit(f"{text}, {name}: {faults[0]}")
    bound = bound_for(board, schedule)
    seconds = statistics.median(build_s)
    done = f"{schedule.steps:4} steps, bound {bound.steps:3}, {schedule.work:7.1f} chunks"
    print(f"{text:13} {name:22} {done} {seconds:.3f} s")
    return {
        "graph": text,
        "algorithm": name,
        "steps": schedule.steps,
        "published_steps": PUBLISHED.get(text) if name == "multitree" else None,
        "bound": bound.steps,
        "work_chunks": schedule.work,
        "bound_work_chunks": round(bound.work, 4),
        "found_by": schedule.found_by,
        "time_s": all_reduce_s(board, schedule, DATA_BYTES, LATENCY_S),
        "seconds": round(seconds, 4),
        "replay_s": round(replay_s, 4),
        "commit": commit(),
        "machine": f"{platform.machine()} Python {platform.python_version()}",
    }


if __name__ == "__main__":
    main()
