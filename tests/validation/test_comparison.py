"""Predictions beside measurements."""

import pytest

from coopt.validation.comparison import comparison_of


def test_rows_keep_the_order_of_the_file_and_none_is_lost(found, published):
    assert [row.id for row in found.rows] == [row.id for row in published]
    assert found.evaluated + found.skipped == len(published)
    assert sum(row.status == "evaluated" for row in found.rows) == found.evaluated


def test_errors_are_predicted_over_measured_less_one(found):
    """Points of hardware utilisation follow from them."""
    for row in found.rows:
        if row.status == "evaluated":
            assert row.error == pytest.approx(row.predicted_s / row.measured_s - 1)
            assert sum(row.breakdown_s.values()) == pytest.approx(row.predicted_s)
            assert not row.why
        else:
            assert (bool(row.why), row.predicted_s) == (True, None)
    pointed = [row for row in found.rows if row.hfu_points is not None]
    assert pointed
    assert all((row.hfu_points > 0) == (row.error < 0) for row in pointed if row.error)


def test_groups_sum_up_their_rows(found):
    for group in found.groups:
        errors = [abs(row.error) for row in found.rows if row.group == group.name and row.error is not None]
        assert group.n == len(errors)
        assert group.mean_abs_error == pytest.approx(sum(errors) / len(errors))
        assert group.max_abs_error == max(errors)
    assert sum(group.n for group in found.hardware) == found.evaluated == found.overall.n


def test_together_and_alone_the_prediction_is_the_same(row, experts):
    """Rows of one id are all kept; nothing to predict leaves no groups."""
    rows = [row(), row(tp=8, dp=2), row(nic_gbps_per_gpu=100.0), row(experts), row(gpu="B200"), row(iter_time_s=40.0)]
    together = comparison_of(rows).rows
    assert together[-1].measured_s == 40.0
    alone = [comparison_of([one]).rows[0].predicted_s for one in rows]
    assert [result.predicted_s for result in together] == pytest.approx(alone, rel=1e-12)
    none = comparison_of([row(gpu="TPU7x")])
    assert (none.groups, none.overall, none.evaluated, none.sources_over(0.0)) == ((), None, 0, ())
