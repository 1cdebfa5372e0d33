"""Rewrite `benchmarks/lp_bounds.csv`: LP bound and optimum of every formulation on shipped instances of one network.

A formulation that gets weaker shows here first. `--check` writes nothing and exits 1 when a bound differs by more than
1e-7 of its value.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from rows import csv_text

import coopt
from coopt.instance.texts import write_text
from coopt.solving.relaxation import lp_bound
from formulations.shared import FORMULATIONS

HERE = Path(__file__).parent
EVERY = sorted((HERE.parent / "instances").glob("*.toml"))
INSTANCES = [file for file in EVERY if coopt.load(file).problem == "shared"]
RECORD = HERE / "lp_bounds.csv"
COLUMNS = ("instance", "formulation", "objective", "lp_bound", "optimum", "lp_gap")
TOLERANCE = 1e-7


def main() -> None:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 when a bound is another one")
    wishes = parser.parse_args()
    rows = [row(file, formulation) for file in INSTANCES for formulation in FORMULATIONS]
    for line in rows:
        print(" ".join(f"{line[name]:>20}" for name in COLUMNS))
    if not wishes.check:
        write_text(RECORD, csv_text(rows))
    elif not same(rows, recorded()):
        sys.exit("benchmarks/lp_bounds.csv is out of date, `python benchmarks/lp_bounds.py` writes it")


def row(file: Path, formulation: str) -> dict[str, object]:
    """One instance by one formulation; empty cells where it is infeasible."""
    instance = coopt.load(file)
    bound, optimum = lp_bound(instance, formulation), coopt.solve(instance, formulation=formulation).objective.value
    known = bound is not None and optimum
    return {
        "instance": file.stem,
        "formulation": formulation,
        "objective": instance.objective.minimize,
        "lp_bound": "" if bound is None else f"{bound:.12g}",
        "optimum": "" if optimum is None else f"{optimum:.12g}",
        "lp_gap": f"{max(1 - bound / optimum, 0.0):.6f}" if known else "",  # type: ignore[operator]
    }


def recorded() -> list[dict[str, str]]:
    """The table on file."""
    with RECORD.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def same(rows: list[dict[str, str]], others: list[dict[str, str]]) -> bool:
    """Whether two tables hold the same cases, with the same values up to rounding."""
    return len(rows) == len(others) and all(_alike(*pair) for pair in zip(rows, others, strict=True))


def _alike(one: dict[str, str], other: dict[str, str]) -> bool:
    names = ("instance", "formulation", "objective")
    return all(one[name] == other[name] for name in names) and all(
        _near(one[name], other[name]) for name in ("lp_bound", "optimum")
    )


def _near(one: str, other: str) -> bool:
    if not one or not other:
        return one == other
    return abs(float(one) - float(other)) <= TOLERANCE * max(abs(float(one)), abs(float(other)))


if __name__ == "__main__":
    main()
