"""Write coopt/catalog/model_error.toml from benchmarks/calibration.csv; --check compares."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

from coopt.instance.texts import write_text

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "coopt" / "catalog" / "model_error.toml"
RECORD = ROOT / "benchmarks" / "calibration.csv"
HEAD = """\
# How far predicted iteration times are off on published runs whose source is left out of the fit. `python
# docs/model_errors.py` writes this file from benchmarks/calibration.csv. `sources` tags as in gpu.toml.
"""
ENTRY = """
[[model_error]]
name = "{set}"
left_out = {left_out_mean}
runs = {left_out_rows}
sources = [{{ fields = ["left_out", "runs"], tag = "D", source = "derived: benchmarks/calibration.csv" }}]
"""


def page() -> str:
    """The whole file."""
    with RECORD.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["left_out_mean"]]
    return HEAD + "".join(ENTRY.format(**row) for row in rows)


def main() -> None:
    """Write the file, or say that it is out of date."""
    if "--check" in sys.argv:
        sys.exit(None if PLACE.read_text("utf-8") == page() else f"{PLACE.name} is out of date: {__file__} writes it")
    write_text(PLACE, page())


if __name__ == "__main__":
    main()
