"""How tight every formulation is stays on file, so that none gets weaker unnoticed."""

import csv
from collections.abc import Callable
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import coopt
import formulations
from benchmarks.lp_cases import CHANGED, INSTANCES, LARGE, claim_of, instance_of, lp_bounds, names
from coopt.instance.schema import Instance
from coopt.plan.store import read_plan
from coopt.solving.export_files import formulations_of
from tests.conftest import LESS, ask

RECORD = Path(__file__).parents[2] / "benchmarks" / "lp_bounds.csv"
ROWS = {
    name: list(rows)
    for name, rows in groupby(csv.DictReader(RECORD.read_text("utf-8").splitlines()), lambda row: row["instance"])
}
WITHOUT_INSTANCE = {"pace"}  # of links that are given; the search for links decides on these


@pytest.mark.parametrize("name", [name for name in names() if name not in LARGE])
def test_the_lp_bounds_are_those_on_file_and_below_the_optimum(name: str, shipped_plan: Callable[[Path], Path]) -> None:
    instance = instance_of(name)
    file, changes = CHANGED.get(name, (name, {}))
    known = LESS.get(file, {}) == changes
    plan = read_plan(shipped_plan(INSTANCES / f"{file}.toml")) if known else coopt.solve(instance)
    bounds, claim = lp_bounds(instance), claim_of(plan)
    for row in ROWS[name]:
        assert row["objective"] == instance.objective.minimize
        bound = bounds[row["formulation"]]
        if not row["lp_bound"]:
            assert (bound, claim.value, row["optimum"]) == (None, None, "")
            continue
        assert bound == pytest.approx(float(row["lp_bound"]), rel=1e-7)
        assert bound <= claim.value * (1 + 1e-9)
        if row["bound"] == row["optimum"]:
            assert claim.value == pytest.approx(float(row["optimum"]), rel=1e-7)


def test_every_instance_is_on_file_by_every_formulation_of_its_kind() -> None:
    assert list(ROWS) == names()
    for name, rows in ROWS.items():
        assert tuple(row["formulation"] for row in rows) == formulations_of(instance_of(name)), name
        for row in rows:
            assert not row["optimum"] or float(row["lp_bound"]) <= float(row["optimum"]) * (1 + 1e-9), row


def test_every_formulation_is_on_file_and_solved_again_here() -> None:
    modules = [import_module(f"formulations.{module.name}") for module in iter_modules(formulations.__path__)]
    every = {name for module in modules for name in getattr(module, "FORMULATIONS", {})}
    rows = [row for name, rows in ROWS.items() if name not in LARGE for row in rows]
    assert {row["formulation"] for row in rows} == every - WITHOUT_INSTANCE


LATE = {"workload__0__max_iteration_time_s": 0.01}
OTHERS: dict[str, dict[str, Any]] = {
    "partition": {"sharing": {"mode": "partition"}},
    "phased": {"phase": [{"year": 2026, "gpus": 32}, {"year": 2027, "gpus": 64}]},
    "sites": {
        "cluster__shares": 2,
        "objective": {"include": ["gpu", "hb", "nic", "switch", "optics"]},
        "site": [{"name": "a", "power_mw": 1.0}, {"name": "b", "power_mw": 1.0}],
        "wan": [{"between": ["a", "b"], "gbit_s": 100, "usd": 2000, "w": 50, "latency_ms": 1, "most": 9}],
    },
    "direct": {"network__fabrics": ["direct", "rail-only"], "network__panels": ["patch-panel"]},
    "worst-case": {"robust": {"survive": ["nic"]}},
    "regret": {"robust": {"aim": "regret", "prices": {"hb": [0.5, 2.0]}}},
}


@pytest.mark.parametrize("kind", OTHERS)
def test_no_bound_where_nothing_is_in_time(kind: str) -> None:
    hopeless = ask(**OTHERS[kind], **LATE)
    assert set(lp_bounds(hopeless).values()) == {None}


@pytest.mark.parametrize(
    "instance",
    [ask(**LATE), ask(cluster__gpus=61, network__hb_domains="hgx-h100-8"), ask(limits={"capex_usd": 10.0})],
    ids=["late", "no network", "over limits"],
)
def test_no_bound_where_no_design_is_left(instance: Instance) -> None:
    assert lp_bounds(instance) == {"network": None}
