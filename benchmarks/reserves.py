"""Whether mappings that are chosen by default keep the memory that their software needs for
fragments and buffers free.

For each published configuration the mapping of least predicted time is chosen with the default
margin, as for `curse.csv`, and the verifier's own model says what memory it needs. Rows that ran
out of memory have to be refused as they were run. Rewrites `benchmarks/reserves.csv`, from
`published.csv` and `later.csv`; other tables of measured runs may be named, of which nothing is
written. `--once` asks about a few rows
and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rows import csv_text

from coopt.instance.reserves import DEFAULT_MARGIN
from coopt.instance.texts import write_text
from coopt.perf.mapping import Mappings
from coopt.validation.batches import mappings_of
from coopt.validation.curse import choice_text, fastest_choice, questions_of
from coopt.validation.published import Measurement, read_measurements
from coopt.validation.runs import MeasuredRun, outcome_of, runs_among
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.memory import MemoryNeeds

HERE = Path(__file__).parent


def used_share(run: MeasuredRun, mapping: Mappings) -> float:
    """The share of a GPU's memory that a mapping needs, by the verifier."""
    fields = mapping.choice(0)
    split = ScalarMapping(**{name: fields[name] for name in ScalarMapping._fields})
    return MemoryNeeds(run.workload).of(split) / (run.gpu.hbm_gb * 1e9)


def choices(rows: Iterable[Measurement]) -> Iterator[dict[str, object]]:
    """What is chosen for each published configuration, and the memory that it leaves free."""
    for run in questions_of(runs_among(rows)):
        reserve = DEFAULT_MARGIN.memory_share([run.workload])
        choice = fastest_choice(run, run.gpu.with_memory_margin(reserve))
        chosen, used = (
            ("none", 0.0)
            if choice is None
            else (
                choice_text(choice[1]),
                used_share(run, choice[1]),
            )
        )
        is_over = used > (1.0 - reserve) * (1.0 + 1e-9)
        yield {
            "id": run.id,
            "chosen": chosen,
            "used": f"{used:.4f}",
            "reserve": f"{reserve:.4f}",
            "over": int(is_over),
        }


def exhausted(rows: Iterable[Measurement]) -> Iterator[dict[str, object]]:
    """Runs that ran out of memory as they were run, and whether they would be refused."""
    for row in rows:
        run = getattr(outcome_of(row), "ran_out", None)
        if run is not None:
            reserve = DEFAULT_MARGIN.memory_share([run.workload])
            mapping = mappings_of([run.split])
            used = used_share(run, mapping)
            yield {
                "id": run.id,
                "chosen": f"as run: {choice_text(mapping)}",
                "used": f"{used:.4f}",
                "reserve": f"{reserve:.4f}",
                "over": int(used > 1.0 - reserve),
            }


def main() -> None:
    """Rewrite the table, and print how many are over their reserve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="other tables of measured runs")
    parser.add_argument("--once", action="store_true", help="a few rows, write nothing")
    asked = parser.parse_args()
    tables = asked.files or [HERE / "published.csv", HERE / "later.csv"]
    measured = [row for file in tables for row in read_measurements(file)]
    picked = list(choices(measured[:10] if asked.once else measured))
    failed = list(exhausted(measured))
    if not (asked.files or asked.once):
        write_text(HERE / "reserves.csv", csv_text([*picked, *failed]))
    fitting = [row for row in picked if row["chosen"] != "none"]
    over, refused = (sum(row["over"] == 1 for row in rows) for rows in (fitting, failed))
    sys.stdout.write(
        f"{len(fitting)} configurations with a choice, {over} over their reserve,"
        f" {len(picked) - len(fitting)} without a choice; of {len(failed)} that ran out of memory"
        f" {refused} are refused\n"
    )


if __name__ == "__main__":
    main()
