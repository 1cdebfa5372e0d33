"""No instance that ships misses a bound under the discipline that it names: by routes, and as simulated."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

import coopt
from coopt.plan.store import read_plan
from tests.conftest import SHIPPED

ROOT = Path(__file__).parents[2]
RECORD = list(csv.DictReader((ROOT / "benchmarks" / "disciplines.csv").read_text("utf-8").splitlines()))
QUICK = (
    *("tiny-64", "phased-128", "rail-only-gpt-1t", "megatron-530b", "llama3-405b-16k"),
    *("fleet-core-growth", "direct-64", "fleet-131k-w8"),
)
"""Instances that are solved, routed and simulated within seconds; the benchmark records others."""


@pytest.mark.parametrize("name", QUICK)
def test_routes_and_simulation_keep_every_bound(name: str, shipped_plan: Callable[[Path], Path]) -> None:
    file = ROOT / "instances" / f"{name}.toml"
    instance, plan = coopt.load(file), read_plan(shipped_plan(file))
    assert plan.parts
    for part in plan.parts:
        if part.design is None:
            continue
        found = coopt.route(instance, plan, part=part.name, with_links=False)
        assert [one.within_bound for one in found.workloads] == [True] * len(part.workloads)
    assert coopt.simulate(instance, plan).met


@pytest.mark.parametrize("row", RECORD, ids=lambda row: row["instance"])
def test_no_bound_is_missed_on_file(row: dict[str, str]) -> None:
    assert row["instance"] in {file.stem for file in SHIPPED}
    assert all(float(row[name]) <= 1 for name in ("routed", "simulated") if row[name])
    assert bool(row["simulated"]) == bool(row["spray"])


def test_every_instance_is_held_to_its_bounds() -> None:
    assert [row["instance"] for row in RECORD] == sorted(file.stem for file in SHIPPED)
    assert {*QUICK} < {row["instance"] for row in RECORD}


def test_the_page_shows_what_is_on_file() -> None:
    lines = (ROOT / "docs" / "loads.md").read_text("utf-8").splitlines()
    shown = [line.split(" | ")[0][2:] for line in lines[lines.index(next(x for x in lines if "| routed |" in x)) + 2 :]]
    assert shown[: len(RECORD)] == [row["instance"] for row in RECORD]
