"""Every plan is the optimum of a program of `formulations/` that HiGHS solved."""

from __future__ import annotations

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.solving.highs import SolverAnswer
from coopt.solving.runs import Backend
from tests.conftest import FEW_MAPPINGS, question
from tests.kinds import QUESTIONS

COUNTED_IN_TIME = {"workload__0__mapping": FEW_MAPPINGS, "workload__0__options": {}}
EVERY = QUESTIONS | {
    kind: question(objective={"minimize": kind}, **COUNTED_IN_TIME) for kind in ("time", "usd_per_token")
}
PROGRAMS = {"shared": "network", "turns": "network", "sites": "ring", "direct": "links", "switched": "network"}
"""The program whose optimum a plan is; the choice among islands where nothing is said."""


@pytest.mark.parametrize("kind", EVERY)
def test_no_plan_comes_without_the_optimum_of_a_program(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[tuple[str, SolverAnswer]] = []
    hand_over = Backend.solve

    def counted(self: Backend, model: Any, *args: Any, **settings: Any) -> SolverAnswer:
        answer = hand_over(self, model, *args, **settings)
        solved.append((model.name, answer))
        return answer

    monkeypatch.setattr(Backend, "solve", counted)
    plan = coopt.solve(Instance.model_validate(EVERY[kind]))
    assert plan.status == "optimal"
    outcomes = [answer.outcome for name, answer in solved if name == PROGRAMS.get(kind, "choice")]
    assert "optimal" in outcomes, [name for name, _ in solved]
    assert plan.solver.formulation in {name for name, _ in solved} or plan.rivals
