"""Every mutant of a plan of any kind is rejected: whatever a plan says is doubted, field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from tests.conftest import ask
from tests.kinds import FEW, QUESTIONS
from tests.solving.direct.random_questions import random_question
from tests.solving.test_days import GROWING, days, fastest_days, fleet
from tests.verifier.mutants import survivors

CROSSING = (1004, 1010, 1011, 1029, 1115)
"""Random questions on direct links whose TP, context or expert groups cross domains."""
CASES: dict[str, tuple[Callable[[], Instance], int]] = {  # and of how many mutants one is looked at
    "sites": (lambda: Instance.model_validate(QUESTIONS["sites"]), 6),
    "direct": (lambda: Instance.model_validate(QUESTIONS["direct"]), 3),
    "a lost NIC": (lambda: Instance.model_validate(QUESTIONS["worst-case"]), 4),
    "a lost domain": (lambda: ask(robust={"survive": ["domain"], "slower": 3.0}, **FEW), 4),
    "regret": (lambda: Instance.model_validate(QUESTIONS["regret"]), 4),
    "interruptions": (lambda: days(fastest_days() * 1.02), 2),
    "a fleet with interruptions": (lambda: fleet(0.4), 8),
    "a fleet with interruptions that grows": (lambda: fleet(0.4, phase=GROWING), 16),
    "a fleet with interruptions in doubt": (lambda: fleet(0.4, robust={"prices": {"gpu": [0.5, 2.0]}}), 8),
    **{f"direct {seed}": (lambda seed=seed: random_question(seed), 5) for seed in CROSSING},
}
MAY_BE_LOWER = "parts.0.links.links_bound"  # a weaker claim is no wrong one, down to what the verifier finds itself


@pytest.mark.parametrize("name", CASES)
def test_every_mutant_is_rejected(name: str) -> None:
    question, every = CASES[name]
    instance = question()
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    table: Any = plan.model_dump(mode="json", by_alias=True)
    if table["rivals"]:
        table["rivals"]["lengths"] = []  # other lengths prove less, or as much
    left = survivors(instance, table, every=every)
    assert [label for label in left if not label.startswith(MAY_BE_LOWER)] == []
    assert all(int(label.split(" = ")[1]) < plan.parts[0].links.links for label in left)
