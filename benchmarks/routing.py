"""Route random rings by every algorithm; rewrites `benchmarks/routing.csv`.

One row for hosts of a leaf, failed cores, jobs and algorithm: flows per link on the worst link
(mean and largest over the seeds), the bound, efficiency and milliseconds (the fastest run of a
seed, the median over seeds). `--once` routes one seed of a plain case, one
with failed cores and one with several jobs, and writes nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rows import commit, csv_text

from benchmarks.ring_traffic import joint, random_jobs
from coopt.instance.texts import write_text
from coopt.network.routing.algorithms import ALGORITHMS
from coopt.network.routing.layers import (
    Flows,
    Ints,
    TwoLayer,
    efficiency,
    fail_cores,
    flow_rates,
    group_rates,
    hops,
    link_loads,
    lower_bound,
)
from coopt.solving.flow_routes import route_exactly

HERE = Path(__file__).parent
LEAVES, CORES, RING = 64, 32, 8
SEEDS = (0, 42, 200, 404, 1234)
LIMIT_S = 60.0
SHARE = 5  # a job runs on one fifth of the hosts where several are compared
CASES = [  # hosts of a leaf, failed cores, jobs, parts the hosts are divided into
    *((hosts, 0, 1, 1) for hosts in (16, 32, 64)),
    *((32, failed, 1, 1) for failed in (1, 4, 8)),
    *((32, 0, jobs, SHARE) for jobs in range(1, SHARE + 1)),
]
ROUTERS: dict[str, Callable[[TwoLayer, Flows, int], Ints]] = {
    **ALGORITHMS,
    "exact": lambda clos, flows, seed: route_exactly(clos, flows, time_limit_s=LIMIT_S).cores,
}


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="few cases of a seed, write nothing")
    parser.add_argument(
        "--runs", type=int, default=5, help="runs of a routing below a second; the fastest counts"
    )
    arguments = parser.parse_args()
    seeds, runs = (SEEDS[:1], 1) if arguments.once else (SEEDS, arguments.runs)
    cases = CASES[:9:4] if arguments.once else CASES
    rows = [_row(case, name, seeds, runs) for case in cases for name in ROUTERS]
    if not arguments.once:
        write_text(HERE / "routing.csv", csv_text(rows))


def _row(
    case: tuple[int, int, int, int], name: str, seeds: tuple[int, ...], runs: int
) -> dict[str, object]:
    hosts, failed, jobs, share = case
    alphas, bounds, worth, seconds = [], [], [], []
    for seed in seeds:
        clos = fail_cores(TwoLayer(links=np.ones((LEAVES, CORES), dtype=np.int64)), failed, seed)
        flows = joint(random_jobs(LEAVES, hosts, RING, seed, jobs=jobs, share=share))
        cores, took = _timed(name, clos, flows, seed, runs)
        alphas.append(link_loads(clos, flows, cores).alpha)
        bounds.append(lower_bound(clos, flows))
        worth.append(efficiency(group_rates(flows.group, flow_rates(hops(clos, flows, cores)))))
        seconds.append(min(took))
    if name in ("colouring", "sheltered", "best", "exact") and alphas != bounds:
        sys.exit(
            f"{name}: {hosts} hosts, {failed} failed, {jobs} jobs: alpha {alphas}, bounds {bounds}"
        )
    row: dict[str, object] = {
        "leaves": LEAVES,
        "cores": CORES,
        "ring": RING,
        "hosts_per_leaf": hosts,
        "failed_cores": failed,
        "jobs": jobs,
        "hosts_of_a_job": f"1/{share}",
        "flows": len(flows),
        "algorithm": name,
        "seeds": len(seeds),
        "alpha_mean": round(statistics.mean(alphas), 3),
        "alpha_largest": max(alphas),
        "bound_mean": round(statistics.mean(bounds), 3),
        "efficiency": round(statistics.mean(worth), 4),
        "median_ms": round(1e3 * statistics.median(seconds), 2),
        "commit": commit(),
        "machine": (
            f"{platform.machine()} Python {platform.python_version()} numpy {np.__version__}"
        ),
    }
    print(
        f"{hosts:2} hosts {failed} failed {jobs} jobs {name:9} alpha {row['alpha_mean']:6} bound"
        f" {row['bound_mean']:5} efficiency {row['efficiency']:6} {row['median_ms']:9} ms"
    )
    return row


def _timed(
    name: str, clos: TwoLayer, flows: Flows, seed: int, runs: int
) -> tuple[Ints, list[float]]:
    """Routes, and the seconds of each run; slow ones run once."""
    seconds: list[float] = []
    while len(seconds) < runs and max(seconds, default=0) < 1:
        start = time.perf_counter()
        cores = ROUTERS[name](clos, flows, seed)
        seconds.append(time.perf_counter() - start)
    return cores, seconds


if __name__ == "__main__":
    main()
