"""A second solver searches again, and answers that refute each other are told."""

from __future__ import annotations

import importlib.util

import pytest

import coopt
from coopt.instance.base import InstanceError
from coopt.plan.schema import Plan
from coopt.solving.answer import agree
from tests.verifier.cases import ask


def _worth(plan: Plan, value: float, bound: float) -> Plan:
    return plan.model_copy(
        update={"objective": plan.objective.model_copy(update={"value": value, "bound": bound, "gap": 0.0})}
    )


def test_answers_that_refute_each_other_do_not_agree() -> None:
    plan = coopt.solve(ask())
    assert agree(_worth(plan, 100.0, 99.0), _worth(plan, 101.0, 98.0))
    assert agree(_worth(plan, 100.0, 100.0), _worth(plan, 100.0, 100.00001))
    assert not agree(_worth(plan, 100.0, 99.0), _worth(plan, 98.0, 90.0))
    assert not agree(_worth(plan, 100.0, 99.0), _worth(plan, 102.0, 101.0))
    assert not agree(plan, plan.model_copy(update={"status": "infeasible"}))


def test_a_witness_that_is_unknown_or_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InstanceError, match="no such witness, needs 'scip'"):
        coopt.solve(ask(), witness="oracle")
    monkeypatch.setattr("coopt.solving.runs._available", lambda name: False)
    with pytest.raises(InstanceError, match=r"witness = 'scip': not installed here, needs pip install 'coopt\[witness"):
        coopt.solve(ask(), witness="scip")


@pytest.mark.skipif(importlib.util.find_spec("pyscipopt") is None, reason="the witness is not installed")
def test_the_witness_agrees() -> None:
    plan = coopt.solve(ask(), witness="scip")
    found = plan.solver.witness
    assert found.agrees
    assert found.value == plan.objective.value
    assert Plan.model_validate_json(plan.model_dump_json(by_alias=True)) == plan
