"""What the model claims over published mappings."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coopt.columns.feasible import without_bound
from coopt.columns.grid import mappings, placements_of
from coopt.instance.reserves import DEFAULT_MARGIN
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.memory import memory_bytes
from coopt.validation.batches import batches_of, unchanged_s
from coopt.validation.curse import choice_text, curse_of, fastest_choice
from coopt.validation.published import read_measurements
from coopt.validation.runs import MeasuredRun, runs_among

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
IDS = ("mbridge-26.02-qwen3-30b-a3b-B200-mxfp8-8", "mpt-3b-A100-40G-16-2048-262")


@pytest.fixture(scope="module")
def runs() -> list[MeasuredRun]:
    rows = read_measurements(BENCHMARKS / "published.csv")
    return runs_among(row for row in rows if row.id in IDS)


def least_s(run: MeasuredRun) -> float:
    """The least predicted time over all mappings that fit, on every placement."""
    workload = without_bound(run.workload)
    even, _ = mappings(workload, run.gpus)
    fit = even.take(memory_bytes(workload, even) <= run.gpu.usable_bytes)
    rows, places = placements_of(fit, min(run.gpus, run.hb_size), tp_across=not workload.tp_inside)
    parts = iteration(workload, run.gpu, run.hb_gbyte_s, fit.take(rows), places)
    return float(parts.time_s(Reciprocals.everywhere(8e-9 / run.nic_gbit_s)).min())


def test_a_claim_is_over_the_quickest_of_all_mappings_that_fit(runs: list[MeasuredRun]) -> None:
    curse = curse_of(runs)
    assert curse is not None
    held = {row["id"]: row for row in csv.DictReader((BENCHMARKS / "curse.csv").read_text("utf-8").splitlines())}
    for run in runs:
        (row,) = (row for row in curse.rows if row.id == run.id)
        kept = held[run.id]
        assert (float(kept["claim"]), kept["chosen"]) == (pytest.approx(row.claim, abs=1e-4), row.chosen)
        assert 0 < row.memory_share <= 1
        (published_s,) = unchanged_s(batches_of([run]))
        assert (1 + row.claim) * least_s(run) == pytest.approx(published_s, rel=1e-9)
    claims = np.array([row.claim for row in curse.rows])
    assert (curse.n, curse.median) == (len(runs), pytest.approx(np.median(claims)))
    assert curse.over_15 == pytest.approx((claims > 0.15).mean())
    assert sum(group.n for group in curse.groups if "," not in group.name) == curse.n


def test_of_runs_that_differ_in_their_mapping_the_fastest_counts(runs: list[MeasuredRun]) -> None:
    run = runs[0]
    slower = replace(run, id="slower", measured_s=2 * run.measured_s, split=replace(run.split, recompute=4))
    for order in ([run, slower], [slower, run]):
        curse = curse_of(order)
        assert curse is not None
        assert [row.id for row in curse.rows] == [run.id]
    assert curse_of([]) is None


def test_choices_on_file_keep_the_reserve_of_their_software(runs: list[MeasuredRun]) -> None:
    table = (BENCHMARKS / "reserves.csv").read_text("utf-8").splitlines()
    held = {row["id"]: row for row in csv.DictReader(table)}
    ran_out = {name: row for name, row in held.items() if row["chosen"].startswith("as run: ")}
    assert len(held) - len(ran_out) >= 150
    assert not any(int(row["over"]) for name, row in held.items() if name not in ran_out)
    assert all(float(row["used"]) <= 1 - float(row["reserve"]) + 1e-4 for row in held.values() if row["over"] == "0")
    assert {row["over"] for row in ran_out.values()} == {"1"}
    for run in runs:
        share = DEFAULT_MARGIN.memory_share([run.workload])
        choice = fastest_choice(run, run.gpu.with_memory_margin(share))
        assert choice is not None
        assert choice_text(choice[1]) == held[run.id]["chosen"]
        used = memory_bytes(run.workload, choice[1])[0] / (run.gpu.hbm_gb * 1e9)
        assert float(held[run.id]["used"]) == pytest.approx(used, abs=1e-4)
