"""A partition is the cheapest choice of options there is, recomputed from the data."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.solving.partition.bounds import lower_bound
from coopt.solving.partition.parts import narrowed, part_of, product_sets, subset, useful
from coopt.solving.partition.search import search_partition
from coopt.solving.partition.valuation import worth
from formulations.partition_data import PartitionData
from tests.conftest import example_count
from tests.formulations.partitions import doubtful_problems, enumerated, growing_problems, problems, two_workloads


def least(data: PartitionData, formulation: Literal["totals", "shares"] = "totals") -> float:
    found = search_partition(data, formulation=formulation)
    assert found.outcome == ("infeasible" if found.worth is None else "optimal")
    return math.inf if found.worth is None else found.worth.objective


@settings(max_examples=example_count(120), deadline=None)
@given(problems())
def test_the_optimum_agrees_with_enumeration_to_the_dollar(data: PartitionData) -> None:
    assert least(data) == enumerated(data)


@settings(max_examples=example_count(80), deadline=None)
@given(growing_problems())
def test_the_optimum_of_phases_agrees_with_enumeration_to_the_dollar(data: PartitionData) -> None:
    assert least(data) == enumerated(data)


@settings(max_examples=example_count(80), deadline=None)
@given(doubtful_problems())
def test_the_least_regret_agrees_with_enumeration_to_the_dollar(data: PartitionData) -> None:
    assert least(data) == enumerated(data)


@settings(max_examples=example_count(40), deadline=None)
@given(problems())
def test_shares_have_the_same_optimum(data: PartitionData) -> None:
    assert least(data, "shares") == enumerated(data)


@settings(max_examples=example_count(120), deadline=None)
@given(st.one_of(problems(), growing_problems(), doubtful_problems()))
def test_the_filter_keeps_an_optimum(data: PartitionData) -> None:
    assert enumerated(subset(data, useful(data))) == enumerated(data)


def test_a_choice_is_worth_what_its_parts_are() -> None:
    found = worth(two_workloads(), np.array([1, 3]))
    assert found.core_switches == (2,)
    assert found.quantity.tolist() == [0, 7]
    assert found.capex_usd == 2 + 4 + 7 * 9
    assert found.objective == found.capex_usd + 1 + 1 + 2 * 5
    assert found.used == {"gpus": 10}
    assert found.within


def test_too_few_units_for_a_bracket_are_rounded_up_where_that_is_cheaper() -> None:
    data = two_workloads(quantity=np.array([[1.0, 0], [0, 9], [2.0, 0], [0, 9]]))
    assert worth(data, np.array([0, 2])).capex_usd == 1 + 3 + 4 * 6


def test_a_workload_without_options_has_no_partition() -> None:
    assert search_partition(two_workloads(workloads=3)).outcome == "infeasible"


def test_a_time_limit_is_told_apart() -> None:
    found = search_partition(two_workloads(), deadline=0.0)
    assert found.outcome == "time limit"


def test_a_choice_over_its_limit_by_less_than_the_solver_sees_is_cut_off() -> None:
    data = two_workloads()
    tight = replace(data, limits=(replace(data.limits[0], use=data.limits[0].use * 1e9, cap=1e10 - 0.5),))
    found = search_partition(tight)
    assert found.cuts == 1
    assert found.worth is not None
    assert found.worth.objective == enumerated(tight)


@pytest.mark.parametrize("formulation", ["totals", "shares"])
def test_scale_does_not_matter(formulation: Literal["totals", "shares"]) -> None:
    data = two_workloads()
    million = replace(
        data,
        usd=data.usd * 1e6,
        other=data.other * 1e6,
        products=tuple(replace(p, usd=p.usd * 1e6) for p in data.products),
        budget=100e6,
    )
    cores = tuple(replace(core, other=5e6) for core in data.cores)
    assert least(replace(million, cores=cores), formulation) == 1e6 * least(data)


@settings(max_examples=example_count(80), deadline=None)
@given(problems())
def test_brackets_left_out_change_no_choice(data: PartitionData) -> None:
    assert enumerated(narrowed(data)) == enumerated(data)


@settings(max_examples=example_count(80), deadline=None)
@given(problems())
def test_every_choice_lies_in_a_set_of_products(data: PartitionData) -> None:
    parts = [part_of(data, rows) for rows in product_sets(data)]
    assert min((enumerated(part) for part in parts), default=math.inf) == enumerated(data)


@settings(max_examples=example_count(80), deadline=None)
@given(problems())
def test_the_bound_of_a_part_is_never_above_its_optimum(data: PartitionData) -> None:
    for rows in product_sets(data):
        part = part_of(data, rows)
        assert lower_bound(part) <= enumerated(part)


def test_the_bound_of_a_part_counts_its_limits() -> None:
    data = replace(two_workloads(), kinds=())
    (limit,) = data.limits
    assert lower_bound(data) < math.inf
    assert lower_bound(replace(data, limits=(replace(limit, cap=limit.use.min() / 2),))) == math.inf
