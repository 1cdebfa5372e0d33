"""Configurations a second of the performance model, time and memory, on one core; rewrites
`benchmarks/model.csv`.

The space is that of the Calculon study, GPT 530B on 2,240 A100: every mapping of docs/network.md
with ZeRO 0 to 3, on every placement in servers of eight, fitting or not. `--once` runs it once,
not repeated, and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from pathlib import Path

import numpy as np
from rows import commit, csv_text

from coopt.columns.grid import mappings, placements_of
from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu
from coopt.instance.texts import write_text
from coopt.instance.workload import Workload
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.mapping import Mappings, Placements
from coopt.perf.memory import memory_bytes

HERE = Path(__file__).parent
GPUS, SERVER = 2240, 8
RAIL = Reciprocals.everywhere(4e-11)  # 200 Gbit/s
BLOCK = (
    1 << 16
)  # rows at once: calls cost little beside them, and their arrays stay in a core's cache
REPEATS = 12  # of the whole space in a run, to make it long enough to time
PEER = "Calculon: 190 to 710 on one core, measured for this project with its public Python code"


def main() -> None:
    """Time the space."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="run once, write nothing")
    parser.add_argument("--runs", type=int, default=7, help="runs; the median counts")
    arguments = parser.parse_args()
    rows = [
        timed(attention, *((1, 1) if arguments.once else (arguments.runs, REPEATS)))
        for attention in ("unfused", "flash")
    ]
    if not arguments.once:
        write_text(HERE / "model.csv", csv_text(rows))


def timed(attention: str, runs: int, repeats: int) -> dict[str, object]:
    """One row of the table."""
    workload, gpu, rows, places = space(attention, repeats)
    evaluate(workload, gpu, rows, places)
    seconds = [_seconds(workload, gpu, rows, places) for _ in range(runs)]
    rate = len(rows) / statistics.median(seconds)
    space_size = len(rows) // repeats
    print(
        f"530B on {GPUS:,} GPUs, {attention:8} {space_size:9,} configurations {rate / 1e6:6.2f}"
        " million/s"
    )
    return {
        "space": f"gpt-530b on {GPUS} a100-80g",
        "attention": attention,
        "configurations": space_size,
        "repeats": repeats,
        "runs": runs,
        "median_s": round(statistics.median(seconds), 4),
        "configurations_per_s": round(rate),
        "fastest_per_s": round(len(rows) / min(seconds)),
        "peer_per_s": PEER,
        "commit": commit(),
        "machine": (
            f"{platform.machine()} Python {platform.python_version()} numpy {np.__version__}"
        ),
    }


def space(attention: str, repeats: int) -> tuple[Workload, Gpu, Mappings, Placements]:
    """Every mapping and placement, so many times."""
    table = {"name": "w", "model": "gpt-530b", "global_batch": GPUS, "max_iteration_time_s": 100.0}
    table |= {"mapping": {"zero": (0, 1, 2, 3)}, "options": {"attention": attention}}
    gpu = find("gpu", "a100-80g")
    assert isinstance(gpu, Gpu)
    workload = Workload.model_validate(table)
    whole, _ = mappings(workload, GPUS)
    rows, places = placements_of(whole, SERVER)
    again = np.tile(np.arange(len(places)), repeats)
    return workload, gpu, whole.take(rows[again]), places.take(again)


def evaluate(workload: Workload, gpu: Gpu, rows: Mappings, places: Placements) -> float:
    """The least iteration time of those that fit into memory (s)."""
    best = np.inf
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        some = rows.take(block)
        times = iteration(workload, gpu, 300.0, some, places.take(block)).time_s(RAIL)
        fits = memory_bytes(workload, some) <= gpu.hbm_gb * 1e9
        best = min(best, float(np.min(times, initial=np.inf, where=fits)))
    return best


def _seconds(workload: Workload, gpu: Gpu, rows: Mappings, places: Placements) -> float:
    """CPU seconds, so that others on the machine do not count."""
    start = time.process_time()
    evaluate(workload, gpu, rows, places)
    return time.process_time() - start


if __name__ == "__main__":
    main()
