"""benchmarks/phased.csv holds optima of today, and methods that agree on them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from coopt.plan.store import read_plan

ROOT = Path(__file__).parents[2]
ROWS = list(csv.DictReader((ROOT / "benchmarks" / "phased.csv").read_text("utf-8").splitlines()))
LARGE = ("phased-131k-p3", "phased-131k-p4")


def row(instance: str, method: str) -> dict[str, str]:
    (found,) = [row for row in ROWS if (row["instance"], row["method"]) == (instance, method)]
    return found


@pytest.mark.parametrize("instance", LARGE)
def test_methods_that_prove_an_optimum_have_the_same(instance: str) -> None:
    values = [float(row(instance, method)["objective"]) for method in ("by lines", "one program", "naive")]
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)
    assert row(instance, "by lines")["gap"] == "0.0e+00"


@pytest.mark.parametrize("method", ["naive", "enumeration"])
def test_other_methods_took_at_least_thirty_times_as_long(method: str) -> None:
    assert float(row("phased-131k-p3", method)["cpu_s"]) >= 30 * float(row("phased-131k-p3", "by lines")["cpu_s"])


@pytest.mark.parametrize("instance", LARGE)
def test_the_optimum_is_the_one_on_file(instance: str, shipped_plan: Callable[[Path], Path]) -> None:
    plan = read_plan(shipped_plan(ROOT / "instances" / f"{instance}.toml"))
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(float(row(instance, "by lines")["objective"]), rel=1e-9)
