"""Solve the named instances of direct links; rewrites `benchmarks/direct.csv`.

One row for an instance: domains, links, the least links its mapping needs, prices, the gap that is
left, and seconds of CPU. `--once` solves each and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rows import commit, csv_text

import coopt
from coopt.instance.texts import write_text

HERE = Path(__file__).parent
NAMES = ("direct-32", "direct-64")


def main() -> None:
    """Solve all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="write nothing")
    once = parser.parse_args().once
    rows = [_row(name) for name in NAMES]
    if once:
        return
    write_text(HERE / "direct.csv", csv_text(rows))


def _row(name: str) -> dict[str, Any]:
    instance = coopt.load(HERE.parent / "instances" / f"{name}.toml")
    started = time.process_time()
    plan = coopt.solve(instance)
    cpu_s = time.process_time() - started
    links = plan.parts[0].links
    assert links is not None
    assert plan.rivals is not None
    row = {
        "instance": name,
        "commit": commit(),
        "solver": f"{plan.solver.name} {plan.solver.version}",
        "status": plan.status,
        "domains": links.hb_domain.count,
        "links": links.links,
        "least_links": links.links_bound,
        "direct_usd": plan.rivals.direct.value,
        "switches_usd": plan.rivals.switched.value,
        "gap": f"{plan.objective.gap:.4f}",
        "cpu_s": f"{cpu_s:.1f}",
    }
    print(row, file=sys.stderr)
    return row


if __name__ == "__main__":
    main()
