"""A runner-up is doubted like the plan itself, and so is its place."""

from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import example_count
from tests.solving.oracle import instances
from tests.verifier.cases import DOMAINS, ask
from tests.verifier.mutants import ONE_OF, mutants, names_of, replaced


@settings(max_examples=example_count(20))
@given(instances(), st.integers(2, 6))
def test_every_list_of_runners_up_is_accepted(instance: Instance, top: int) -> None:
    verdict = verify(instance, solve(instance, top=top))
    assert verdict.accepted, verdict.failures


@pytest.fixture(scope="module")
def answered() -> tuple[Instance, Plan]:
    """A question, its optimum and three runners-up."""
    instance = ask()
    plan = solve(instance, top=4)
    assert len(plan.alternatives) == 3
    assert plan.alternatives_stop == "all found"
    return instance, plan


def with_few_designs() -> Instance:
    """A question all of whose designs can be runners-up."""
    return ask(network__fabrics="rail-only", network__hb_domains=list(DOMAINS[2:]))


def failing(instance: Instance, plan: Plan, **changes: Any) -> set[str]:
    """Names of the checks that do not hold with some fields replaced."""
    return {check.name for check in verify(instance, plan.model_copy(update=changes)).failures}


def test_a_runner_up_left_out_is_missed(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    first, second, third = plan.alternatives
    assert first.objective.value != third.objective.value
    assert failing(instance, plan, alternatives=(second, third)) == {"runner-up-bound"}
    assert failing(instance, plan, alternatives=(first, second)) == set()


def test_the_plan_is_no_runner_up_of_its_own(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    one = plan.alternatives[0]
    again = one.model_copy(update={key: getattr(plan, key) for key in ("objective", "design", "cost", "workloads")})
    assert failing(instance, plan, alternatives=(again,)) == {"runner-up-distinct"}
    assert failing(instance, plan, alternatives=(one, one)) == {"runner-up-distinct"}


def test_designs_left_over_are_found(answered: tuple[Instance, Plan]) -> None:
    assert failing(*answered, alternatives_stop="no other design") == {"runner-up-none-left"}
    instance = with_few_designs()
    every = solve(instance, top=1000)
    assert every.alternatives_stop == "no other design"
    assert verify(instance, every).accepted


def test_runners_up_need_an_optimum_and_a_proof(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    assert failing(instance, plan, alternatives_stop=None) == {"runner-up-place"}
    one = plan.alternatives[0]
    loose = one.objective.model_copy(update={"bound": 0.5 * one.cost.capex_usd, "gap": 0.5})
    assert failing(instance, plan, alternatives=(one.model_copy(update={"objective": loose}),)) == {"runner-up-proof"}


@pytest.mark.parametrize("field", ["value", "bound", "gap"])
def test_a_runner_up_without_a_figure_of_its_proof_is_rejected(answered: tuple[Instance, Plan], field: str) -> None:
    instance, plan = answered
    one, *others = plan.alternatives
    bare = one.model_copy(update={"objective": one.objective.model_copy(update={field: None})})
    assert failing(instance, plan, alternatives=(bare, *others))


def test_reasons_name_the_runner_up(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    first, second, third = plan.alternatives
    cost = second.cost.model_copy(update={"capex_usd": second.cost.capex_usd + 1})
    wrong = plan.model_copy(update={"alternatives": (first, second.model_copy(update={"cost": cost}), third)})
    failures = verify(instance, wrong).failures
    assert {check.name for check in failures} >= {"capex"}
    assert all(check.why.startswith("Runner-up 2: ") for check in failures)


def test_every_meaningful_mutant_of_a_runner_up_is_rejected() -> None:
    instance = ask()
    plan = solve(instance, top=2).model_dump(mode="json", by_alias=True)
    (one,) = plan["alternatives"]
    survivors, count, whole = [], 0, Plan.model_validate(plan)
    for label, table in islice(mutants({**one, "solver": {}}, names_of(instance)), 0, None, 8 * ONE_OF):
        inner = {key: value for key, value in table.items() if key != "solver"}
        try:
            changed = Plan.model_validate(replaced(plan, ("alternatives",), [inner]))
        except ValueError:
            continue
        if changed == whole:
            continue
        count += 1
        if verify(instance, changed).accepted:
            survivors.append(label)
    assert count > 12 / ONE_OF
    assert survivors == []
