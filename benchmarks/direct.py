"""Solve the named instances of direct links; rewrites `benchmarks/direct.csv` and the table that
ends `docs/direct.md`.

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
PAGE = HERE.parent / "docs" / "direct.md"
HEAD = "| instance | domains | links | needs at least | direct | switches | gap | CPU s |"
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
    text = PAGE.read_text("utf-8").partition(HEAD)[0]
    write_text(PAGE, "\n".join([text + HEAD, "|---" * 8 + "|", *map(_line, rows), ""]))


def _row(name: str) -> dict[str, Any]:
    instance = coopt.load(HERE.parent / "instances" / f"{name}.toml")
    started = time.process_time()
    plan = coopt.solve(instance)
    cpu_s = time.process_time() - started
    assert plan.direct is not None
    assert plan.rivals is not None
    row = {
        "instance": name,
        "commit": commit(),
        "solver": f"{plan.solver.name} {plan.solver.version}",
        "status": plan.status,
        "domains": plan.direct.hb_domain.count,
        "links": plan.direct.links,
        "least_links": plan.direct.links_bound,
        "direct_usd": plan.rivals.direct.value,
        "switches_usd": plan.rivals.switched.value,
        "gap": f"{plan.objective.gap:.4f}",
        "cpu_s": f"{cpu_s:.1f}",
    }
    print(row, file=sys.stderr)
    return row


def _line(row: dict[str, Any]) -> str:
    prices = [f"${row[key] / 1e6:.2f} M" for key in ("direct_usd", "switches_usd")]
    first = [row["instance"], row["domains"], f"{row['links']:,}", f"{row['least_links']:,}"]
    return (
        "| "
        + " | ".join(map(str, [*first, *prices, f"{float(row['gap']):.2%}", row["cpu_s"]]))
        + " |"
    )


if __name__ == "__main__":
    main()
