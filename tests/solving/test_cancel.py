"""A run can be cancelled from another thread, and waits for its turn no longer than its time limit."""

from __future__ import annotations

import threading

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Progress
from coopt.solving import highs
from coopt.solving.highs import ALONE, options, solve
from tests.conftest import ask
from tests.solving.direct.test_direct_links import linked
from tests.solving.sites.test_sites import apart
from tests.solving.test_highs import knapsack
from tests.solving.test_partitions import two
from tests.solving.test_phased_questions import growing

SETTINGS = options(gap=0.0, threads=1)


def set_event() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_a_run_cancelled_before_it_begins_claims_nothing() -> None:
    plan = coopt.solve(ask(), cancel=set_event())
    assert (plan.status, plan.stop_reason, plan.design) == ("unknown", "interrupted", None)
    assert plan.objective.bound is None


@pytest.mark.parametrize("solver", ["built-in", "appsi_highs"])
@pytest.mark.parametrize("stage", ["columns", "build", "solve"])
def test_a_run_cancelled_at_any_stage_ends_as_interrupted(stage: str, solver: str) -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.stage == stage:
            cancel.set()

    plan = coopt.solve(ask(), cancel=cancel, on_progress=press, solver=solver)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")


KINDS = {
    "shared": ask,
    "partition": two,
    "phased": growing,
    "sites": lambda: Instance.model_validate(apart()),
    "direct": lambda: Instance.model_validate(linked()),
    "robust": lambda: ask(robust={"survive": ["nic"], "slower": 2.0}),
    "regret": lambda: ask(robust={"prices": {"nic": [0.5, 2.0]}, "aim": "regret"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_of_any_kind_is_cancelled_where_it_stands(kind: str) -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.stage == "build":
            cancel.set()

    plan = coopt.solve(KINDS[kind](), cancel=cancel, on_progress=press)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")


def test_an_event_that_is_never_set_changes_nothing() -> None:
    plain, heard = coopt.solve(ask()), coopt.solve(ask(), cancel=threading.Event())
    assert heard.model_dump(exclude={"timing_s"}) == plain.model_dump(exclude={"timing_s"})


def test_a_search_cancelled_by_another_thread_keeps_its_best_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)
    cancel, found = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: (found.wait(), cancel.set()))
    other.start()
    answer = solve(
        knapsack(60),
        time_limit_s=60,
        settings=SETTINGS,
        on_standing=lambda now: found.set() if now.best is not None else None,
        cancel=cancel,
    )
    other.join()
    assert answer.outcome == "interrupted"
    assert answer.bound < answer.value


def test_waiting_for_another_search_counts_against_the_time_limit() -> None:
    with ALONE:
        answer = solve(knapsack(12), time_limit_s=0.2, settings=SETTINGS)
    assert (answer.outcome, answer.value, answer.detail) == ("time limit", None, "not started")
    assert solve(knapsack(12), time_limit_s=60, settings=SETTINGS).outcome == "optimal"


def test_a_plan_that_never_had_its_turn_is_unknown() -> None:
    with ALONE:
        plan = coopt.solve(ask(), time_limit_s=0.5)
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", "time limit", None)


def test_a_run_that_waits_for_its_turn_can_be_cancelled() -> None:
    cancel = threading.Event()
    with ALONE:
        threading.Timer(0.1, cancel.set).start()
        answer = solve(knapsack(12), time_limit_s=60, settings=SETTINGS, cancel=cancel)
    assert (answer.outcome, answer.detail) == ("interrupted", "not started")


def test_runners_up_found_before_a_cancellation_are_kept() -> None:
    cancel = threading.Event()

    def press(step: Progress) -> None:
        if step.message.startswith("runner-up 2"):
            cancel.set()

    plan = coopt.solve(ask(), top=4, cancel=cancel, on_progress=press)
    assert (plan.status, plan.alternatives_stop, len(plan.alternatives)) == ("optimal", "interrupted", 1)
