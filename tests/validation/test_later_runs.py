"""Runs that came after the fits: how far predictions are off that nobody could tune."""

import csv
from pathlib import Path
from statistics import fmean, median

import numpy as np

from coopt.instance.evidence import measured, outside
from coopt.validation.batches import batches_of
from coopt.validation.comparison import comparison_of
from coopt.validation.published import read_measurements
from coopt.validation.runs import MeasuredRun
from docs.calibration_record import later_errors, later_runs

LATER = Path(__file__).parents[2] / "benchmarks" / "later.csv"


def test_runs_that_no_fit_has_seen_are_predicted_as_docs_say() -> None:
    rows = comparison_of(read_measurements(LATER)).rows
    unseen = [abs(row.error) for row in rows if row.error is not None and "-MI3" not in row.id]
    assert (len(rows), len(unseen)) == (30, 23)
    assert median(unseen) < 0.075  # docs/model.md: 7.0%, and 10.0% on average
    assert fmean(unseen) < 0.105
    assert sum(error > 0.15 for error in unseen) <= 3


def test_watts_tell_the_speed_of_an_amd_gpu_that_no_fit_has_seen() -> None:
    (row,) = comparison_of([row for row in read_measurements(LATER) if "MI350X" in row.id]).rows
    assert row.error is not None
    assert abs(row.error) < 0.02


def test_generations_fitted_to_later_runs_are_judged_without_them() -> None:
    runs, fitted = later_runs()
    assert fitted == {"cdna3", "cdna4"}
    errors = later_errors(runs, fitted)
    for row in comparison_of(read_measurements(LATER)).rows:
        assert row.error is not None
        assert (abs(errors[row.id] - row.error) < 1e-9) == ("-MI3" not in row.id)
    amd = [abs(error) for name, error in errors.items() if "-MI3" in name]
    assert fmean(amd) > 0.13  # docs/model.md: 14.2%, 4.9% with what was fitted to them


def test_later_runs_are_known_to_plans() -> None:
    runs, _ = later_runs()
    listed = {one.id: one for one in measured().runs}
    assert {"primus", "mlperf51"} <= {one.source for one in listed.values()}
    for run in runs:
        if run.id in listed:
            assert outside(listed[run.id].practice) == ()
    amd = listed["mlperf51-8b-MI355X-fp8-8"].practice
    assert outside(amd._replace(gpus=100_000)) == ("on 100,000 GPUs",)


def forward_s(run: MeasuredRun) -> float:
    """Predicted time of the one forward pass of an iteration, with TP in the open as in validation steps
    (`NVTE_TP_OVERLAP_TRAINING_ONLY`): three of its eight gathers' worth, a third of the ring, a third of the logits.
    """
    open_tp = {"tp_overlap": False, "tp_forward_overlap": False}
    (batch,) = batches_of([run])
    parts = batch.evaluated(run.gpu, run.software.model_copy(update=open_tp))
    layer = parts.forward + parts.tp * (3 / 8) + parts.cp * (1 / 3)
    whole = layer * parts.layers + (parts.logits + parts.tp_logits) * (1 / 3)
    return float(np.ravel(whole.at(parts.charged(batch.reciprocals)))[0])


def test_forward_passes_alone_are_predicted_beside_those_measured() -> None:
    """Steps of validation in the same logs: what is too fast at 512 GPUs is the backward pass with its gradients."""
    with LATER.open(encoding="utf-8", newline="") as stream:
        measured_s = {row["id"]: float(row["forward_s"] or 0) for row in csv.DictReader(stream)}
    alone = [run for run in later_runs()[0] if run.split.pp == 1 and measured_s[run.id]]
    ratios = {run.id: forward_s(run) / measured_s[run.id] for run in alone}
    assert len(ratios) == 17
    assert fmean(abs(ratio - 1) for ratio in ratios.values()) < 0.06  # docs/model.md: 5.5%
    assert all(0.75 < ratio < 1.11 for ratio in ratios.values())
    totals = {row.id: row for row in comparison_of(read_measurements(LATER)).rows}
    for run in alone:
        if run.id.endswith(("GB300-fp8-512", "GB200-fp8-512", "H100-fp8-128")):
            predicted_s = totals[run.id].predicted_s
            assert predicted_s is not None
            rest = (predicted_s - forward_s(run)) / (run.measured_s - measured_s[run.id])
            assert rest < ratios[run.id] - 0.1
