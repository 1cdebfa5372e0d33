"""The order of mappings, and mappings that ran and are said not to fit."""

from dataclasses import replace

import numpy as np
import pytest

from coopt.perf.memory import GIB, memory_parts
from coopt.validation.batches import mappings_of, ranking_of
from coopt.validation.comparison import comparison_of
from coopt.validation.runs import run_of


@pytest.fixture
def ranked(row):
    """The ranking of runs that differ in TP: (tens of seconds measured, seconds predicted), of one batch or several."""

    def of(*groups):
        rows = [
            row(tp=tp, dp=16 // tp, iter_time_s=10 * measured, global_batch=batch)
            for batch, times in zip((128, 256, 512), groups, strict=False)
            for tp, (measured, _) in zip((1, 2, 4, 8), times, strict=False)
        ]
        predicted = np.array([predicted for times in groups for _, predicted in times], dtype=np.float64)
        return ranking_of(rows, [run_of(one) for one in rows], predicted)

    return of


def test_a_perfect_order_has_no_regret(ranked):
    found = ranked([(10, 20), (11, 23), (15, 24)])
    assert (found.groups, found.pairs, found.in_order) == (1, 3, 1.0)
    assert found.spearman == pytest.approx(1.0)
    assert (found.regret_mean, found.regret_max) == (0.0, 0.0)


def test_regret_is_what_the_mapping_preferred_takes_beyond_the_best(ranked):
    found = ranked([(10, 20), (12, 19), (15, 24)], [(10, 1), (20, 2)])
    assert (found.groups, found.pairs) == (2, 4)
    assert found.in_order == pytest.approx(3 / 4)
    assert found.spearman == pytest.approx((0.5 + 1.0) / 2)
    assert found.regret_mean == pytest.approx(0.1)
    assert found.regret_max == pytest.approx(0.2)


def test_equal_predictions_are_in_no_order(ranked):
    found = ranked([(10, 20), (12, 20)])
    assert (found.pairs, found.in_order, found.spearman) == (1, 0.0, 0.0)


def test_runs_that_differ_in_more_than_their_mapping_are_not_compared(row):
    rows = [row(), row(tp=8, dp=2, global_batch=256), row(tp=8, dp=2, precision="fp8"), row(seq=4096, tp=8, dp=2)]
    found = ranking_of(rows, [run_of(one) for one in rows], np.ones(4))
    assert (found.groups, found.in_order, found.spearman, found.regret_max) == (0, None, None, None)


@pytest.mark.parametrize(("first", "second", "groups"), [("25.11", "25.11", 1), ("25.11", "26.02.01", 0), ("", "", 1)])
def test_runs_of_other_releases_are_not_compared(row, first, second, groups):
    notes = [f"NeMo {name} container" if name else "synthetic data" for name in (first, second)]
    rows = [row(notes=notes[0]), row(notes=notes[1], tp=8, dp=2, iter_time_s=40.0)]
    assert ranking_of(rows, [run_of(one) for one in rows], np.array([1.0, 2.0])).groups == groups


def test_flags_that_come_with_a_mapping_leave_runs_comparable(row):
    rows = [row(), row(gradient_bytes=2, zero=3, tp=8, pp=1, dp=8, iter_time_s=40.0)]
    assert ranking_of(rows, [run_of(one) for one in rows], np.array([1.0, 2.0])).groups == 1


def test_a_mapping_run_more_than_once_counts_once_with_its_median(row):
    rows = [row(iter_time_s=s) for s in (20.0, 30.0, 90.0)] + [row(tp=8, dp=2, iter_time_s=40.0)]
    found = ranking_of(rows, [run_of(one) for one in rows], np.array([5.0, 5.0, 5.0, 6.0]))
    assert (found.groups, found.pairs, found.in_order) == (1, 1, 1.0)


def test_a_mapping_that_ran_and_is_said_not_to_fit_is_counted(row):
    whole = row(tp=1, pp=1, dp=64, interleave=1, zero=0)
    found = comparison_of([row(recompute="full"), whole, replace(whole, micro_batch=None)])
    assert [result.states_mapping for result in found.rows] == [True, True, False]
    assert [result.refused for result in found.rows] == [False, True, False]
    assert (found.memory.stated, found.memory.refused) == (2, 1)


def test_a_run_that_ran_out_of_memory_is_a_row_without_a_time(row):
    small, large = (row(ran_out=1, iter_time_s=None, tp=tp, dp=16 // tp, micro_batch=8 // tp) for tp in (8, 1))
    found = comparison_of([small, large, row()])
    assert [result.why for result in found.rows] == ["ran out of memory", "ran out of memory", ""]
    assert (found.memory.ran_out, found.memory.accepted_that_ran_out, found.evaluated) == (2, 1, 1)


def test_peaks_of_memory_are_compared_with_what_tensors_need(row):
    plain = row(recompute="full")
    run = run_of(plain)
    parts = memory_parts(run.workload, mappings_of([run.split]))
    tensors_gib = sum(float(part[0]) for name, part in parts.items() if name not in ("reserve", "communication")) / GIB
    stated = row(recompute="full", notes=f"peak {tensors_gib:.6f} GiB allocated, 70.5 reserved")
    found = comparison_of([plain, stated])
    assert found.memory.allocated_error == pytest.approx(0.0, abs=1e-6)
    assert found.memory.reserved_error == pytest.approx(abs(tensors_gib / 70.5 - 1))
