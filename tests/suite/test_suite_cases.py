"""Grids become cases: every combination once, each with an identity."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.suite import form as cases_module
from coopt.suite.form import Case, Suite, cases_of
from tests.suite.conftest import INSTANCES

TINY = INSTANCES / "tiny-64.toml"


def expanded(vary: dict[str, list[Any]], **more: Any) -> tuple[Case, ...]:
    grid = {"name": "g", "instances": TINY.name, "vary": vary} | more
    return cases_of(Suite.model_validate({"schema": 1, "name": "s", "grid": grid}), INSTANCES)


@given(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([8, 16, 32, 64]), min_size=1, max_size=3, unique=True),
)
def test_there_is_a_case_for_each_combination_in_order(bounds: list[float], gpus: list[int]) -> None:
    found = expanded({"workload.max_iteration_time_s": bounds, "cluster.gpus": gpus})
    assert [tuple(case.axes.values()) for case in found] == list(product(bounds, gpus))
    assert len({case.case_id for case in found}) == len(bounds) * len(gpus)


def test_a_case_asks_what_load_reads_with_its_overrides() -> None:
    for case in expanded({"network.max_tiers": [1, 2]}, set={"cluster.gpus": 32}):
        instance = coopt.load(TINY, dict(case.overrides))
        assert Instance.model_validate_json(case.question) == instance
        assert instance.cluster.gpus == (32,)


def test_a_case_reads_the_plan_that_stands(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(coopt.solve(coopt.load(TINY)).model_dump_json(by_alias=True))
    text = TINY.read_text() + '[[existing]]\nplan = "old.json"\n'
    (tmp_path / "more.toml").write_text(text)
    grid = {"name": "g", "instances": "more.toml", "vary": {"cluster.gpus": [128]}}
    (case,) = cases_of(Suite.model_validate({"schema": 1, "name": "s", "grid": grid}), tmp_path)
    assert Instance.model_validate_json(case.question).existing[0].gpus == 64


def test_a_linked_value_changes_several_keys_under_one_label_and_a_table_is_shown_as_json() -> None:
    pair = {"label": "small", "set": {"cluster.gpus": 32, "workload.global_batch": 32}}
    (case,) = expanded({"scale": [pair]})
    assert case.axes == {"scale": "small"}
    instance = Instance.model_validate_json(case.question)
    assert (instance.cluster.gpus, instance.workload[0].global_batch) == ((32,), 32)
    (case,) = expanded({"workload.mapping": [{"micro_batch": 1}]})
    assert case.axes == {"workload_mapping": '{"micro_batch": 1}'}


def test_a_later_axis_may_change_a_table_that_an_earlier_one_put_there() -> None:
    domain = {"label": "own", "set": {"network.hb_domains": {"name": "own", "size": 4, "gbyte_s": 450.0,
              "usd_per_gpu": 0.0, "w_per_gpu": 0.0}}}  # fmt: skip
    found = expanded({"hb": [domain], "network.hb_domains.size": [4, 8]})
    sizes = [Instance.model_validate_json(case.question).network.hb_domains[0].size for case in found]
    assert sizes == [4, 8]


def test_threads_are_one_and_part_of_no_identity() -> None:
    one, four = expanded({"solver.threads": [1, 4]})
    assert one.case_id == four.case_id
    assert Instance.model_validate_json(four.question).solver.threads == 1


def test_what_changes_the_answer_changes_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another release does."""
    (plain,) = expanded({})
    changes = {"cluster.gpus": 32, "solver.gap": 0.01, "objective.minimize": "power"}
    others = [expanded({key: [value]})[0] for key, value in changes.items()] + [expanded({}, action="fastest")[0]]
    monkeypatch.setattr(cases_module, "__version__", "0.0.0")
    assert plain.case_id not in {case.case_id for case in (*others, *expanded({}))}


def test_a_combination_that_cannot_be_asked_is_a_case_with_a_refusal() -> None:
    good, bad = expanded({"network.nics": ["cx7-400g", "cx6-200g"]})
    assert not good.refusal
    assert bad.question == ""
    assert "(200 Gbit/s)" in bad.refusal[0]


def test_several_instances_each_have_every_combination(tmp_path: Path) -> None:
    found = expanded({"network.max_tiers": [1, 2]}, instances=["tiny-64.toml", "megatron-530b.toml"])
    assert [case.instance for case in found] == ["tiny-64"] * 2 + ["megatron-530b"] * 2
