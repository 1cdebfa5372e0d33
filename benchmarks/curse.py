"""What the model claims over the mappings in `published.csv` and `later.csv`, question by question,
and with the memory that plans leave free by default (`claim_margin`, empty where nothing fits);
rewrites `benchmarks/curse.csv`. `--once` asks about a few rows and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rows import csv_text

from coopt.instance.texts import write_text
from coopt.validation.curse import curse_of
from coopt.validation.published import read_measurements
from coopt.validation.runs import runs_among

HERE = Path(__file__).parent
TABLES = ("published", "later")


def claims(table: str, *, once: bool) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Return the claims over the mappings of a table, and their summaries."""
    measured = read_measurements(HERE / f"{table}.csv")
    runs = runs_among(measured[:10] if once else measured)
    curse = curse_of(runs)
    assert curse is not None
    asked = {row.id for row in curse.rows}
    by_default = curse_of([run for run in runs if run.id in asked], margin=True)
    assert by_default is not None
    kept = {row.id: f"{row.claim:.4f}" for row in by_default.rows}
    rows: list[dict[str, object]] = [
        {"table": table}
        | row.model_dump()
        | {
            "claim": f"{row.claim:.4f}",
            "memory_share": f"{row.memory_share:.3f}",
            "claim_margin": kept.get(row.id, ""),
        }
        for row in curse.rows
    ]
    summaries: list[dict[str, object]] = [
        {"table": table, "margin": int(one is by_default)}
        | group.model_dump(include={"name", "n", "median", "p90", "over_15"})
        for one in (curse, by_default)
        for group in (*one.groups, one)
    ]
    return rows, summaries


def main() -> None:
    """Rewrite the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true", help="a few rows, write nothing")
    once = parser.parse_args().once
    found = [claims(table, once=once) for table in TABLES]
    if not once:
        write_text(HERE / "curse.csv", csv_text([row for rows, _ in found for row in rows]))
    sys.stdout.write(csv_text([row for _, rows in found for row in rows]))


if __name__ == "__main__":
    main()
