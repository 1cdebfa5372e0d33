"""Runs that came after the fits: how far predictions are off that nobody could tune."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean, median

from coopt.validation.comparison import comparison_of
from coopt.validation.published import read_measurements

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
