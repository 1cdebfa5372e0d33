"""Knobs and other values that are listed to choose from: what is taken, what is said of it, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance, at_choice, choices_of
from coopt.report.plan import plan_screen
from coopt.report.words import rendered
from tests.conftest import ask
from tests.solving.test_choices import GENERATIONS, left_open


def test_knobs_may_be_listed_in_their_own_place_and_among_those_allowed() -> None:
    options = {"dp_mode": ["sync", "overlap"], "allowed": {"transport": ["rdma", "ipoib"]}}
    assert len(list(choices_of(ask(workload__0__options=options)))) == 4


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cluster__generations": GENERATIONS, "cluster__gpu": "gb200"}, "generations: begins with another value"),
        ({"workload__0__batches": [96, 64], "workload__0__global_batch": 64}, "batches: begins with another value"),
        ({"workload__0__options": {"allowed": {"dp_mode": ["stale-1"]}}}, "allowed.dp_mode: begins with another value"),
    ],
)
def test_a_list_beside_a_value_that_it_does_not_begin_with_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ask(**changes)


def knobs(**options: Any) -> Instance:
    """A bound that ordinary training meets on a dearer network alone."""
    return ask(workload__0__options=options, network__oversubscription=8.0)


def test_knobs_are_taken_where_they_are_allowed_and_told_with_what_is_known_of_them() -> None:
    instance = knobs(tp_sync_fraction=[1.0, 0.5], dp_mode=["sync", "stale-1"])
    each = {one.text: coopt.solve(at_choice(instance, one)) for one in choices_of(instance)}
    assert len(each) == 4
    plan = coopt.solve(instance)
    assert plan.objective.value == min(one.objective.value or math.inf for one in each.values())
    assert coopt.verify(instance, plan).accepted
    assert plan.objective.value <= (coopt.solve(knobs()).objective.value or math.inf)
    risky = next(
        one for one in choices_of(instance) if one.options["w"] == {"tp_sync_fraction": 0.5, "dp_mode": "sync"}
    )
    question = at_choice(instance, risky)
    assert question.workload[0].options.evidence[0].startswith("tp_sync_fraction: language models")
    told = rendered(plan_screen(question, each[risky.text]))
    assert "declared risk" in told
    assert "arXiv 2506.19645" in told
    assert "declared risk" not in rendered(plan_screen(knobs(), coopt.solve(knobs())))


def test_knobs_that_no_mapping_allows_are_refused_with_the_choice() -> None:
    with pytest.raises((InstanceError, ValueError), match=r"with tp_sync_fraction = 0.5 of w: .*sequence_parallel"):
        ask(
            workload__0__options={"tp_sync_fraction": [1.0, 0.5]},
            workload__0__mapping={"sequence_parallel": True},
        )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster__gpu": ["h100-sxm", "mi300x"]}, "no HB domain of network.hb_domains is sold with 'mi300x'"),
        ({"cluster__gpu": ["h100-sxm", "h100-sxm"]}, "two of the list have one name"),
        ({"workload__0__global_batch": {"least": 1, "most": 2000, "step": 1}}, "needs at most 1,000"),
        ({"workload__0__global_batch": {"least": 9, "most": 1, "step": 1}}, "needs a most that is at least"),
        ({"cluster__gpu": ["h100-sxm", "gb2000"]}, "no gpu of this name"),
    ],
)
def test_lists_that_go_with_nothing_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((InstanceError, ValueError), match=words):
        left_open(**changes)
