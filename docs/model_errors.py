"""Write coopt/catalog/model_error.toml from benchmarks/left_out.csv, from what is predicted without
them of runs that came after the fits (benchmarks/later.csv), and for hybrids from what is predicted
of their published runs, which no fit uses; --check compares.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from statistics import fmean

from coopt.instance.reserves import HYBRID, error_names
from coopt.instance.texts import write_text
from coopt.validation.comparison import architecture_of, comparison_of
from coopt.validation.published import read_measurements
from coopt.validation.runs import runs_among
from docs.calibration_record import later_errors, later_runs

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "coopt" / "catalog" / "model_error.toml"
ROWS = ROOT / "benchmarks" / "published.csv"
UNSEEN = ROOT / "benchmarks" / "left_out.csv"
WHOLE = "all"
FEWEST = 4
"""Runs of a generation and precision whose mean error is worth stating."""
HEAD = """\
# How far predicted iteration times are off on published runs that the fit has not seen, nor others
# of their source; of hybrids, on runs that no fit uses. `python docs/model_errors.py` writes this
# file. `sources` tags as in gpu.toml.
"""
ENTRY = """
[[model_error]]
name = "{name}"
left_out = {error:.4f}
runs = {runs}
sources = [{{ fields = ["left_out", "runs"], tag = "D", source = "derived: {source}" }}]
"""


def sizes(rows: Iterable[Mapping[str, str]]) -> dict[str, list[float]]:
    """Sizes of errors by hardware and precision, by kind of model, and of all rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name in (row["hardware"], row["kind"], WHOLE):
            found.setdefault(name, []).append(abs(float(row["error"])))
    return {name: own for name, own in found.items() if len(own) >= FEWEST}


def read_rows() -> Iterator[dict[str, str]]:
    """The lines of benchmarks/left_out.csv, and those of later runs."""
    with UNSEEN.open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream)
    runs, fitted = later_runs()
    errors = later_errors(runs, fitted)
    for run in runs:
        hardware, kind = error_names(run.gpu, run.workload)
        yield {"hardware": hardware, "kind": kind, "error": str(errors[run.id])}


def hybrid_errors() -> list[float]:
    """Sizes of errors on published runs of hybrids."""
    measured = read_measurements(ROWS)
    hybrids = {run.id for run in runs_among(measured) if architecture_of(run) == HYBRID}
    return [
        abs(row.error or 0.0)
        for row in comparison_of([row for row in measured if row.id in hybrids]).rows
    ]


def page() -> str:
    """The whole file."""
    places = "benchmarks/left_out.csv and later.csv"
    listed = [(name, own, places) for name, own in sizes(read_rows()).items()]
    listed.append(
        (HYBRID, hybrid_errors(), "benchmarks/published.csv, of whose hybrids no fit uses any")
    )
    lines = (
        ENTRY.format(name=name, error=fmean(own), runs=len(own), source=source)
        for name, own, source in listed
    )
    return HEAD + "".join(lines)


def main() -> None:
    """Write the file, or say that it is out of date."""
    if "--check" in sys.argv:
        sys.exit(
            None
            if PLACE.read_text("utf-8") == page()
            else f"{PLACE.name} is out of date: {__file__} writes it"
        )
    write_text(PLACE, page())


if __name__ == "__main__":
    main()
