"""Predictions beside measurements."""

from __future__ import annotations

import pytest

from coopt.validation.comparison import comparison_of


def test_rows_keep_the_order_of_the_file_and_none_is_lost(found, published):
    assert [row.id for row in found.rows] == [row.id for row in published]
    assert found.evaluated + found.skipped == len(published)
    assert sum(row.status == "evaluated" for row in found.rows) == found.evaluated


def test_errors_are_predicted_over_measured_less_one(found):
    for row in found.rows:
        if row.status == "evaluated":
            assert row.error == pytest.approx(row.predicted_s / row.measured_s - 1)
            assert sum(row.breakdown_s.values()) == pytest.approx(row.predicted_s)
            assert not row.why
        else:
            assert row.why
            assert row.predicted_s is None


def test_groups_sum_up_their_rows(found):
    for group in found.groups:
        errors = [abs(row.error) for row in found.rows if row.group == group.name and row.error is not None]
        assert group.n == len(errors)
        assert group.mean_abs_error == pytest.approx(sum(errors) / len(errors))
        assert group.max_abs_error == max(errors)
    assert sum(group.n for group in found.hardware) == found.evaluated == found.overall.n


def test_hfu_points_follow_from_the_error(found):
    rows = [row for row in found.rows if row.hfu_points is not None]
    assert rows
    assert all((row.hfu_points > 0) == (row.error < 0) for row in rows if row.error)


def test_the_runs_of_2205_05198_are_met_closely(found):
    (korth,) = [group for group in found.groups if group.name == "korth"]
    assert korth.n == 8
    assert korth.max_abs_error < 0.05
    assert korth.mean_abs_hfu_points < 1.5


def test_rows_of_the_same_id_are_all_kept(row):
    found = comparison_of([row(), row(gpu="TPU7x"), row(iter_time_s=40.0)])
    assert [result.status for result in found.rows] == ["evaluated", "skipped", "evaluated"]
    assert found.rows[2].measured_s == 40.0


def test_nothing_to_predict_leaves_no_groups(row):
    found = comparison_of([row(gpu="TPU7x")])
    assert (found.groups, found.overall, found.evaluated) == ((), None, 0)
    assert not found.sources_over(0.0)


def test_together_and_alone_the_prediction_is_the_same(row, experts):
    rows = [row(), row(tp=8, dp=2), row(nic_gbps_per_gpu=100.0), row(experts), row(gpu="B200")]
    together = [result.predicted_s for result in comparison_of(rows).rows]
    alone = [comparison_of([one]).rows[0].predicted_s for one in rows]
    assert together == pytest.approx(alone, rel=1e-12)
