"""Write coopt/catalog/model_error.toml from benchmarks/left_out.csv; --check compares."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

from coopt.instance.texts import write_text

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "coopt" / "catalog" / "model_error.toml"
UNSEEN = ROOT / "benchmarks" / "left_out.csv"
WHOLE = "all"
HEAD = """\
# How far predicted iteration times are off on published runs whose source is left out of the fit. `python
# docs/model_errors.py` writes this file from benchmarks/left_out.csv. `sources` tags as in gpu.toml.
"""
ENTRY = """
[[model_error]]
name = "{name}"
left_out = {error:.4f}
runs = {runs}
sources = [{{ fields = ["left_out", "runs"], tag = "D", source = "derived: benchmarks/left_out.csv" }}]
"""


def sizes(rows: Iterable[Mapping[str, str]]) -> dict[str, list[float]]:
    """Sizes of errors by hardware and precision, by kind of model, and of all rows."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name in (row["hardware"], row["kind"], WHOLE):
            found.setdefault(name, []).append(abs(float(row["error"])))
    return found


def read_rows() -> list[dict[str, str]]:
    """The lines of benchmarks/left_out.csv."""
    with UNSEEN.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def page() -> str:
    """The whole file."""
    each = sizes(read_rows())
    return HEAD + "".join(ENTRY.format(name=name, error=fmean(own), runs=len(own)) for name, own in each.items())


def main() -> None:
    """Write the file, or say that it is out of date."""
    if "--check" in sys.argv:
        sys.exit(None if PLACE.read_text("utf-8") == page() else f"{PLACE.name} is out of date: {__file__} writes it")
    write_text(PLACE, page())


if __name__ == "__main__":
    main()
