"""How tight every formulation is stays on file, so that none gets weaker unnoticed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings

import coopt
from coopt.solving.relaxation import lp_bound
from formulations.shared import FORMULATIONS, build
from formulations.shared_data import SharedData
from tests.conftest import ask
from tests.formulations.small import enumerated, problems

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "benchmarks" / "lp_bounds.csv"
ROWS = list(csv.DictReader(RECORD.read_text("utf-8").splitlines()))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['instance']}-{row['formulation']}")
def test_the_lp_bound_is_the_one_on_file_and_below_the_optimum(row: dict[str, str]) -> None:
    instance = coopt.load(ROOT / "instances" / f"{row['instance']}.toml")
    assert row["objective"] == instance.objective.minimize
    bound = lp_bound(instance, row["formulation"])
    optimum = coopt.solve(instance, formulation=row["formulation"]).objective.value
    if not row["lp_bound"]:
        assert (bound, optimum, row["optimum"]) == (None, None, "")
        return
    assert bound == pytest.approx(float(row["lp_bound"]), rel=1e-7)
    assert optimum == pytest.approx(float(row["optimum"]), rel=1e-7)
    assert optimum is not None
    assert bound is not None
    assert bound <= optimum * (1 + 1e-9)


def test_every_instance_and_formulation_is_on_file() -> None:
    every = sorted((ROOT / "instances").glob("*.toml"))
    files = [file.stem for file in every if coopt.load(file).problem == "shared"]
    assert [(row["instance"], row["formulation"]) for row in ROWS] == [(n, f) for n in files for f in FORMULATIONS]


def test_no_bound_where_no_design_is_left() -> None:
    assert lp_bound(ask(workload__0__max_iteration_time_s=0.01), "uplinks") is None
    assert lp_bound(ask(cluster__gpus=61, network__hb_domains="hgx-h100-8"), "uplinks") is None
    assert lp_bound(ask(limits={"capex_usd": 10.0}), "chords") is None


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_relaxation_is_never_above_the_optimum(data: SharedData) -> None:
    import pyomo.environ as pyo

    from coopt.solving.highs import options, solve

    best = enumerated(data)
    for formulation in FORMULATIONS.values():
        model = build(data, formulation)
        pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
        answer = solve(model, time_limit_s=60, settings=options(gap=0.0, threads=1))
        assert answer.value is None or answer.value <= best + 1e-6
