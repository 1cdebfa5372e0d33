"""What docs/embedding.md promises: examples that run, round trips, threads, silence, and no traces."""

import copy
import doctest
import importlib
import json
import os
import pickle
import random
import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel

import coopt
from coopt.instance.texts import InstanceError
from coopt.plan.json_schema import schema_json
from coopt.plan.store import read_plan
from tests.cli.conftest import LONGER
from tests.conftest import ONE_NETWORK, SHIPPED, ask, on_fewer_gpus, shipped, validator
from tests.kinds import QUESTIONS

ROOT = Path(__file__).parents[2]


def answers(instance: coopt.Instance, plan: coopt.Plan) -> list[BaseModel]:
    """One of each document that the public functions give."""
    mappings = [workload.mapping for workload in plan.workloads]
    found: list[BaseModel] = [instance, plan, coopt.verify(instance, plan)]
    if plan.design is not None:
        found += [coopt.route(instance, plan), coopt.faults(instance, plan)]
        found += [coopt.evaluate(instance, plan.design, mappings)]
    return found


LIKE_OTHERS = ("llama3-405b-16k", "shared-131k-w8", "infeasible-deadline", "rail-only-gpt-1t")
"""Whose documents hold nothing that those of other instances do not hold."""
QUICK = [file for file in ONE_NETWORK if file.stem not in LIKE_OTHERS]
SOLVED = [file for file in SHIPPED if file.stem not in LONGER]
LARGE = {"planes-131k": 1024}
"""Asked on so many GPUs, as routes of all of theirs are tens of MB in full; there are two tiers then too."""


@pytest.mark.parametrize("file", QUICK, ids=lambda file: file.stem)
def test_every_document_goes_through_json_and_pickle_and_back(file: Path) -> None:
    instance = on_fewer_gpus(file, LARGE[file.stem]) if file.stem in LARGE else coopt.load(file)
    plan = coopt.solve(instance, top=3)
    _assert_printed_schemas_fit(instance, plan)
    for document in answers(instance, plan):
        kind = type(document)
        text = document.model_dump_json(by_alias=True)
        assert kind.model_validate_json(text) == document
        assert kind.model_validate(json.loads(text)) == document
        assert kind.model_validate(document.model_dump(by_alias=True)) == document
        assert pickle.loads(pickle.dumps(document)) == document
        mode: Literal["validation", "serialization"] = "validation" if kind is coopt.Instance else "serialization"
        validator(_schema(kind, mode)).validate(json.loads(text))


def test_an_instance_is_hashed_once_and_a_changed_copy_by_what_it_holds() -> None:
    class Name(str):
        hashed = 0

        def __hash__(self) -> int:
            Name.hashed += 1
            return super().__hash__()

    instance = ask().model_copy(update={"name": Name("x")})
    assert hash(instance) == hash(instance) == hash(ask(name="x"))
    assert Name.hashed == 1
    changed = instance.model_copy(update={"name": "y"})
    assert hash(changed) == hash(pickle.loads(pickle.dumps(changed))) == hash(ask(name="y")) != hash(instance)
    assert ask(solver={"seed": 5}).sha256 == ask().sha256


def test_copies_of_an_instance_are_of_its_file() -> None:
    instance = coopt.load(SHIPPED[0])
    copies = [copy.copy(instance), copy.deepcopy(instance), instance.model_copy(), pickle.loads(pickle.dumps(instance))]
    assert [one.place for one in copies] == [SHIPPED[0].name] * len(copies)


@cache
def _schema(kind: type[BaseModel], mode: Literal["validation", "serialization"]) -> str:
    return json.dumps(kind.model_json_schema(by_alias=True, mode=mode))


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_an_instance_keeps_its_identity_through_json(file: Path) -> None:
    instance = coopt.load(file)
    again = coopt.load(json.loads(instance.model_dump_json(by_alias=True)))
    assert (again, again.sha256) == (instance, instance.sha256)


@pytest.mark.parametrize("file", SOLVED, ids=lambda file: file.stem)
def test_instances_and_plans_fit_the_schemas_that_are_printed(file: Path, shipped_plan: Callable[[Path], Path]) -> None:
    _assert_printed_schemas_fit(shipped(file), read_plan(shipped_plan(file)))


def test_alternatives_of_several_workloads_fit_the_schemas_that_are_printed() -> None:
    instance = coopt.load(QUESTIONS["turns"])
    plan = coopt.solve(instance, top=3)
    assert len(plan.alternatives) == 2
    _assert_printed_schemas_fit(instance, plan)


def _assert_printed_schemas_fit(instance: coopt.Instance, plan: coopt.Plan) -> None:
    validator(schema_json("instance")).validate(json.loads(instance.model_dump_json(by_alias=True)))
    validator(schema_json("plan")).validate(json.loads(plan.model_dump_json(by_alias=True)))


def test_progress_and_complaints_can_be_pickled() -> None:
    steps: list[coopt.Progress] = []
    coopt.solve(ask(), on_progress=steps.append)
    assert pickle.loads(pickle.dumps(steps)) == steps
    assert pickle.loads(pickle.dumps(InstanceError(["a", "b"]))).complaints == ("a", "b")


def test_progress_counts_networks() -> None:
    for changes, number in (({}, "2 network families"), ({"network.fabrics": "rail-only"}, "1 network family")):
        told: list[coopt.Progress] = []
        coopt.solve(coopt.load(ROOT / "instances/tiny-64.toml", changes), on_progress=told.append)
        assert any(f" kept, {number} within" in one.message for one in told), [one.message for one in told]


def test_loading_a_table_leaves_it_alone() -> None:
    table = ask().model_dump(mode="json", by_alias=True)
    before = json.dumps(table)
    assert coopt.load(table, {"workload.0.global_batch": 128}).workload[0].global_batch == 128
    one = table | {"workload": table["workload"][0]}  # a table that is no list of one
    for key in ("workload.0.global_batch", "workload[0].global_batch", "workload.global_batch"):
        assert coopt.load(one, {key: 128}).workload[0].global_batch == 128
    assert json.dumps(table) == before
    with pytest.raises(coopt.InstanceError, match=r"cluster\.gpus\[0\] = 0"):
        coopt.load(table, {"cluster.gpus": 0})


OF_PLANS = ("assess", "evaluate_plan", "faults", "route", "simulate", "traffic")


def test_nothing_in_place_of_a_plan_is_one_error() -> None:
    for name in (*OF_PLANS, "certify", "draw", "prove", "report", "verify"):
        with pytest.raises(coopt.InstanceError, match="plan = None: needs"):
            getattr(coopt, name)(ask(), None)
    with pytest.raises(coopt.InstanceError, match=r"^plan = None: needs a plan"):
        coopt.diff(coopt.solve(ask()), None)  # type: ignore[arg-type]


def test_files_are_as_good_as_what_they_hold(tmp_path: Path) -> None:
    instance = coopt.load(ROOT / "instances/tiny-64.toml")
    plan, file = coopt.solve(instance), tmp_path / "plan.json"
    file.write_text(plan.model_dump_json(by_alias=True), "utf-8")
    for name in (*OF_PLANS, "bom", "explain", "mappings"):
        answer = getattr(coopt, name)
        assert type(answer(ROOT / "instances/tiny-64.toml", file)) is type(answer(instance, plan))
        with pytest.raises(coopt.InstanceError, match=r"^plan = 3: needs a plan"):
            answer(instance, 3)


def test_nothing_in_place_of_a_file_is_one_error() -> None:
    asked: list[Callable[[Any], object]] = [coopt.solve, lambda nothing: coopt.best_model(nothing, [])]
    for ask_it in asked:
        with pytest.raises(coopt.InstanceError, match=r"^instance = None: needs"):
            ask_it(None)
    with pytest.raises(coopt.InstanceError, match=r"^designs = None: needs the path"):
        coopt.reproduce(None)  # type: ignore[arg-type]
    with pytest.raises(coopt.InstanceError, match=r"^source = None: needs an instance"):
        coopt.bom(None)  # type: ignore[arg-type]


def _in_full(instance: coopt.Instance) -> list[dict[str, Any]]:
    timed = {"timing_s": True, "seconds": True, "collectives": {"__all__": {"seconds"}}}
    return [document.model_dump(exclude=timed) for document in answers(instance, coopt.solve(instance))]


def test_threads_give_what_one_thread_gives() -> None:
    instances = [ask(workload__0__max_iteration_time_s=bound) for bound in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)]
    instances += [ask(cluster__gpus=gpus) for gpus in (32, 128)] + [instances[0]]
    alone = [_in_full(instance) for instance in instances]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_in_full, instances)) == alone


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    instance = ask()
    answers(instance, coopt.solve(instance))
    with pytest.raises(coopt.InstanceError):
        coopt.load({})
    assert capfd.readouterr() == ("", "")


def test_no_trace_is_left_in_the_process() -> None:
    def traces() -> tuple[Any, ...]:
        return (
            signal.getsignal(signal.SIGINT),
            signal.getsignal(signal.SIGTERM),
            dict(os.environ),
            Path.cwd(),
            np.geterr(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # type: ignore[index, union-attr] # noqa: NPY002
            warnings.filters[:],
        )

    instance = ask()
    coopt.solve(instance)  # imports what is needed
    before = traces()
    answers(instance, coopt.solve(instance, seed=3))
    assert traces() == before


FUNCTIONS = [name for name in coopt.__all__ if callable(getattr(coopt, name)) and name.islower()]


@pytest.mark.parametrize("name", ["coopt", *FUNCTIONS])
def test_the_examples_of_public_names_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    public = coopt if name == "coopt" else coopt.public(name)
    home = coopt if name == "coopt" else importlib.import_module(public.__module__)
    tests = [test for test in doctest.DocTestFinder(recurse=False).find(public, name, module=home) if test.examples]
    assert tests, f"{name} has no example"
    for test in tests:
        assert not any(doctest.SKIP in example.options for example in test.examples)
        assert doctest.DocTestRunner().run(test).failed == 0


def test_public_functions_were_found() -> None:
    assert {"load", "solve", "verify", "evaluate", "route", "faults"} <= set(FUNCTIONS)
