"""A long search tells how far it is, and whoever listens may stop it."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

import coopt
from coopt.plan.schema import Progress
from coopt.solving import highs
from coopt.solving.highs import SearchStanding, options, solve
from coopt.solving.runs import Backend
from tests.conftest import ask
from tests.solving.test_highs import knapsack

SETTINGS = options(gap=0.0, threads=1)


def test_a_search_tells_nodes_incumbent_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)
    heard: list[SearchStanding] = []
    answer = solve(knapsack(60), time_limit_s=1.5, settings=SETTINGS, on_standing=heard.append)
    assert len(heard) > 3
    assert [now.nodes for now in heard] == sorted(now.nodes for now in heard)
    last = heard[-1]
    assert last.bound <= answer.value <= last.best
    assert 0 < last.nodes <= answer.nodes


def test_reports_keep_their_distance() -> None:
    heard: list[float] = []
    solve(knapsack(60), time_limit_s=1.8, settings=SETTINGS, on_standing=lambda _: heard.append(time.perf_counter()))
    assert 1 <= len(heard) <= 4
    assert all(after - before >= 0.9 * highs.TELL_S for before, after in pairwise(heard))


def test_a_listener_that_interrupts_keeps_the_best_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)

    def press(now: SearchStanding) -> None:
        if now.best is not None:
            raise KeyboardInterrupt

    started = time.perf_counter()
    answer = solve(knapsack(60), time_limit_s=60, settings=SETTINGS, on_standing=press)
    assert time.perf_counter() - started < 30
    assert answer.outcome == "interrupted"
    assert answer.bound < answer.value


def test_a_listener_that_fails_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(highs, "TELL_S", 0.0)

    def fail(_: SearchStanding) -> None:
        raise ValueError("listener")

    with pytest.raises(ValueError, match="listener"):
        solve(knapsack(60), time_limit_s=60, settings=SETTINGS, on_standing=fail)
    assert solve(knapsack(12), time_limit_s=60, settings=SETTINGS).outcome == "optimal"


def _telling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the solver tell of 7 nodes, 2 to 1, in the model's units, before it answers."""
    plain = Backend.solve

    def told(self: Backend, model: Any, time_limit_s: float, on_standing: Any = None, *, start: bool = False) -> Any:
        answer = plain(self, model, time_limit_s, start=start)
        try:
            on_standing(SearchStanding(nodes=7, best=2.0 * answer.value, bound=answer.value))
        except KeyboardInterrupt:
            from dataclasses import replace

            return replace(answer, outcome="interrupted")
        return answer

    monkeypatch.setattr(Backend, "solve", told)


def test_progress_has_nodes_best_bound_and_gap_in_the_units_of_the_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    _telling(monkeypatch)
    heard: list[Progress] = []
    plan = coopt.solve(ask(), on_progress=heard.append)
    step = next(step for step in heard if step.nodes is not None)
    assert (step.stage, step.message, step.nodes) == ("solve", "7 nodes", 7)
    assert (step.best, step.bound) == pytest.approx((2 * plan.objective.value, plan.objective.value))
    assert step.gap == pytest.approx(0.5)


def test_a_plan_in_hand_survives_an_interrupt_by_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    _telling(monkeypatch)

    def press(step: Progress) -> None:
        if step.nodes is not None:
            raise KeyboardInterrupt

    plan = coopt.solve(ask(), on_progress=press)
    assert plan.stop_reason == "interrupted"
    assert plan.design is not None
