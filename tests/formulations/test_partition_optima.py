"""All formulations of partitions have the optima of enumeration, and their relaxations are in order."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from benchmarks.partition_naive import NAIVE
from formulations.partition import FORMULATIONS, SHARES, TOTALS, Equation
from formulations.partition_data import PartitionData
from tests.conftest import example_count
from tests.formulations.partitions import best, enumerated, problems, relaxed


@pytest.mark.parametrize("formulation", [*FORMULATIONS.values(), NAIVE], ids=[*FORMULATIONS, "naive"])
@settings(max_examples=example_count(60))
@given(data=problems())
def test_the_optimum_agrees_with_enumeration(formulation: tuple[Equation, ...], data: PartitionData) -> None:
    assert best(data, formulation) == pytest.approx(enumerated(data), abs=1e-5)


@settings(max_examples=example_count(60))
@given(problems())
def test_shares_relax_no_worse_than_totals_and_those_no_worse_than_big_m(data: PartitionData) -> None:
    naive, totals, shares = (relaxed(data, formulation) for formulation in (NAIVE, TOTALS, SHARES))
    assert naive <= totals + 1e-6 * max(1, abs(naive))
    assert totals <= shares + 1e-6 * max(1, abs(totals))
