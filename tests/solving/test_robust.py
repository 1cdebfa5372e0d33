"""Odd prices, attained bounds, many threads, values out of range."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.network.space import families
from coopt.plan.parts import MappingChoice
from tests.conftest import ask, question, switch


@pytest.mark.parametrize("unit", [1e-6, 1e-4, 1.0, 1e8])
def test_the_cheaper_switch_wins_whatever_the_unit_of_money(unit: float) -> None:
    switches = [switch(64, 3 * unit) | {"name": "dear"}, switch(64, unit) | {"name": "cheap"}]
    instance = ask(
        network__switches=switches,
        network__hb_domains="hgx-h100-8",
        network__fabrics="rail-only",
        objective={"include": ["switch"]},
    )
    plan = coopt.solve(instance)
    assert plan.design.fabric.switch.name == "cheap"
    assert coopt.verify(instance, plan).accepted


def test_a_free_network_has_no_gap() -> None:
    plan = coopt.solve(ask(objective={"include": ["hb"]}, network__hb_domains="hgx-h100-8"))
    assert (plan.status, plan.objective.value, plan.objective.gap) == ("optimal", 0.0, 0.0)


@pytest.mark.parametrize("gpus", [24, 64, 96])
def test_an_attained_rate_is_a_bound_that_is_met(gpus: int) -> None:
    mine = {"cluster__gpus": gpus, "workload__0__global_batch": 3 * gpus, "workload__0__model": "gpt-22b"}
    first = coopt.solve(ask(**mine, workload__0__max_iteration_time_s=50.0))
    workload = question(**mine)["workload"][0] | {"max_iteration_time_s": None}
    days = first.workloads[0].iteration_time_s / 86400
    tokens = 3.0 * gpus * 2048
    for bound in ({"min_tokens_per_s": first.workloads[0].tokens_per_s}, {"train_days": days, "train_tokens": tokens}):
        instance = ask(**mine | {"workload": [workload | bound]})
        again = coopt.solve(instance)
        assert again.status == "optimal"
        assert coopt.verify(instance, again).accepted


def test_limits_that_are_just_reached_are_kept() -> None:
    cost = coopt.solve(ask()).cost
    for limit in ({"capex_usd": cost.capex_usd}, {"power_mw": cost.power_w / 1e6}):
        instance = ask(limits=limit)
        plan = coopt.solve(instance)
        assert plan.status == "optimal"
        assert coopt.verify(instance, plan).accepted


def test_threads_solve_side_by_side() -> None:
    instances = [ask(workload__0__max_iteration_time_s=0.1 + 0.05 * i) for i in range(6)]
    alone = [coopt.solve(instance).objective.value for instance in instances]
    with ThreadPoolExecutor(6) as pool:
        together = [plan.objective.value for plan in pool.map(coopt.solve, instances)]
    assert together == alone


def test_instance_plan_and_error_can_be_pickled() -> None:
    instance = ask()
    plan = coopt.solve(instance)
    assert pickle.loads(pickle.dumps((instance, plan))) == (instance, plan)
    error = pickle.loads(pickle.dumps(InstanceError(["a", "b"])))
    assert error.complaints == ("a", "b")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"objective": "speed"}, "minimize = 'speed'"),
        ({"gap": -0.1}, "gap = -0.1"),
        ({"gap": float("nan")}, "gap = nan"),
        ({"threads": 0}, "threads = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"solver": ""}, "name = ''"),
        ({"time_limit_s": -1.0}, "time_limit_s = -1.0"),
        ({"time_limit_s": float("inf")}, "time_limit_s = inf"),
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(InstanceError) as refused:
        coopt.solve(ask(), **given)  # type: ignore[arg-type]
    assert says in str(refused.value)


def test_a_mapping_of_too_many_gpus_is_refused() -> None:
    instance = ask()
    plan = coopt.solve(instance)
    choice: MappingChoice = plan.workloads[0].mapping.model_copy(update={"cp": 2})
    with pytest.raises(InstanceError, match="no split of 64 GPUs"):
        coopt.evaluate(instance, plan.design, [choice])


@pytest.mark.parametrize(
    "changes",
    [
        {"network__oversubscription": 1e9},
        {"network__optics": [{"name": "o", "gbit_s": 400, "reach_m": 500, "usd": 1e300, "w": 1}]},
        {"objective": {"years": 1e300}},
        {"limits": {"capex_usd": 1e-300}},
        {"workload__0__max_iteration_time_s": 1e308},
        {"workload__0__name": "\x1b[31mred"},
    ],
)
def test_numbers_and_names_beyond_reason_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ask(**changes)


@pytest.mark.parametrize(
    "changes", [{"cluster__gpus": [64, 64]}, {"network__nics_per_gpu": [1, 1]}, {"network__oversubscription": 60.0}]
)
def test_no_family_comes_twice(changes: dict[str, object]) -> None:
    found = list(families(Instance.model_validate(question(**changes))))
    assert len(set(found)) == len(found)


def test_an_interrupt_after_the_proof_keeps_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    from coopt.solving import shared

    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    expected = coopt.solve(ask())
    monkeypatch.setattr(shared, "fastest_of_equal_cost", pressed)
    plan = coopt.solve(ask())
    assert (plan.status, plan.objective.value) == ("optimal", expected.objective.value)


@pytest.mark.parametrize("given", [{"seed": 0}, {"seed": 11}, {"seed": 3, "threads": 2}])
def test_two_runs_give_the_same_plan(given: dict[str, object]) -> None:
    fixed = {"timing_s"}
    first, again = (coopt.solve(ask(), **given).model_dump(exclude=fixed) for _ in range(2))  # type: ignore[arg-type]
    assert first == again
    assert first["solver"]["options"]["random_seed"] == given.get("seed", 0)


def test_another_seed_is_the_same_question() -> None:
    assert ask(solver={"seed": 5}).sha256 == ask().sha256
