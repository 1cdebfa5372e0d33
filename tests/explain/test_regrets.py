"""Explanations of least regret: every plan is measured from the same costs, those of the question as asked."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import coopt
from coopt.explain.bounds import limits_on_use
from coopt.explain.rivals import lists_of_choices
from coopt.explain.sentences import REGRETS, REGRETS_OF_WAYS_OUT
from coopt.instance.schema import Instance
from coopt.plan.explanation import Explanation
from tests.kinds import QUESTIONS
from tests.solving.fleet_oracle import least_costs, least_excess


def regretting(kind: str, **limits: float) -> Instance:
    """The question of a kind at the least regret, with other limits."""
    table: Any = copy.deepcopy(QUESTIONS[kind])
    table.setdefault("robust", {}).update(aim="regret", prices={"switch": [0.2, 9.0], "nic": [0.5, 2.0]})
    table["limits"] = table["limits"] | limits
    return Instance.model_validate(table)


@pytest.fixture(scope="module")
def one_network() -> tuple[Instance, Explanation]:
    instance = regretting("regret")
    return instance, coopt.explain(instance)


def test_rivals_and_bounds_are_those_of_enumeration(one_network: tuple[Instance, Explanation]) -> None:
    instance, found = one_network
    costs, limits = least_costs(instance), {limit.key: limit for limit in limits_on_use(instance)}
    assert found.value == pytest.approx(least_excess(instance, costs), abs=1e-3)
    choices = {(one.part, one.name): one for entries in lists_of_choices(instance) for one in entries}
    for rival in found.rivals:
        choice = choices[rival.part, rival.choice]
        shorter = choice.excluded(instance) if rival.excluded else choice.as_only(instance)
        assert rival.value == pytest.approx(least_excess(shorter, costs), abs=1e-3), rival.choice
    for bound in found.bounds:
        for moved in (bound.tighter, bound.looser, bound.without):
            if moved is not None:
                question = limits[bound.limit].within(instance, moved.bound)
                assert moved.value == pytest.approx(least_excess(question, costs), abs=1e-3), bound.limit


def test_what_allows_less_is_never_cheaper_and_what_allows_more_never_dearer() -> None:
    found = coopt.explain(regretting("partition"))
    assert {bound.limit for bound in found.bounds if bound.binds} >= {"workload[0].max_iteration_time_s"}
    for bound in found.bounds:
        assert bound.tighter is None or bound.tighter.extra >= 0, bound.limit
        assert bound.looser is None or bound.looser.extra <= 0, bound.limit
    assert found.rivals
    assert all(rival.extra is None or rival.extra >= 0 for rival in found.rivals)


def test_regrets_are_called_regrets(one_network: tuple[Instance, Explanation]) -> None:
    _, found = one_network
    assert found.prices == ()
    assert found.sentences[0] == f"{REGRETS} The plan costs ${found.value:,.0f}, and no plan costs less."
    assert not any("%)" in sentence and "$" in sentence for sentence in found.sentences)


def test_regrets_of_ways_out_are_not_compared() -> None:
    found = coopt.explain(regretting("regret", power_mw=1e-4))
    assert found.status == "infeasible"
    assert found.relaxations
    assert REGRETS_OF_WAYS_OUT in found.sentences
