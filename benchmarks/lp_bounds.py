"""Rewrite `benchmarks/lp_bounds.csv`: the LP bound of every formulation on every instance of
`benchmarks/lp_cases.py`.

Beside it stand the best plan, which is the optimum where the proven bound is as high, and the gap
of the LP bound to it. A formulation that gets weaker shows here first. `--check` writes nothing and
exits 1 when a bound differs by more than 1e-7 of its value.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from rows import csv_text

import coopt
from benchmarks.lp_cases import claim_of, instance_of, lp_bounds, names
from coopt.instance.texts import write_text

HERE = Path(__file__).parent
RECORD = HERE / "lp_bounds.csv"
COLUMNS = ("instance", "formulation", "objective", "lp_bound", "bound", "optimum", "lp_gap")
TOLERANCE = 1e-7
LIMIT_S = 600.0  # for a solve


def main() -> None:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 when a bound is another one"
    )
    wishes = parser.parse_args()
    rows = [row for name in names() for row in rows_of(name)]
    if not wishes.check:
        write_text(RECORD, csv_text(rows))
    elif not same(rows, recorded()):
        sys.exit(
            "benchmarks/lp_bounds.csv is out of date, `python benchmarks/lp_bounds.py` writes it"
        )


def rows_of(name: str) -> list[dict[str, str]]:
    """One instance by every formulation of its kind; empty cells where it is infeasible."""
    instance = instance_of(name)
    claim = claim_of(coopt.solve(instance, time_limit_s=LIMIT_S))
    rows = [
        {
            "instance": name,
            "formulation": formulation,
            "objective": instance.objective.minimize,
            "lp_bound": _text(bound),
            "bound": _text(claim.bound),
            "optimum": _text(claim.value),
            "lp_gap": (
                f"{max(1 - bound / claim.value, 0.0):.6f}"
                if bound is not None and claim.value
                else ""
            ),
        }
        for formulation, bound in lp_bounds(instance).items()
    ]
    for row in rows:
        print(" ".join(f"{row[column]:>20}" for column in COLUMNS), flush=True)
    return rows


def _text(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def recorded() -> list[dict[str, str]]:
    """The table on file."""
    with RECORD.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def same(rows: list[dict[str, str]], others: list[dict[str, str]]) -> bool:
    """Whether two tables hold the same cases, with the same values up to rounding."""
    return len(rows) == len(others) and all(
        _alike(*pair) for pair in zip(rows, others, strict=True)
    )


def _alike(one: dict[str, str], other: dict[str, str]) -> bool:
    same = ("instance", "formulation", "objective")
    return all(one[name] == other[name] for name in same) and all(
        _near(one[name], other[name]) for name in ("lp_bound", "optimum")
    )


def _near(one: str, other: str) -> bool:
    if not one or not other:
        return one == other
    return abs(float(one) - float(other)) <= TOLERANCE * max(abs(float(one)), abs(float(other)))


if __name__ == "__main__":
    main()
