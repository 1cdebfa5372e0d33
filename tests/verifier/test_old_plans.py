"""Documents of schema 1 are read as parts and couplings, and still verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import coopt
from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.plan.schema_one import OldPlan
from coopt.plan.store import plan_json, read_plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify

DATA = Path(__file__).parents[1] / "data"
FILES = sorted((DATA / "plans-1").glob("*.json"))
SECTIONS = ("islands", "core", "together", "robust", "direct", "phases", "myopic")
NO_BILLS = ("partition", "core", "phased")
"""Kinds whose parts have no bills of their own in schema 1."""


def question_and_plan(file: Path) -> tuple[Instance, dict[str, Any]]:
    """The question of a document, and the plan for it; a hash of an instance changes with the keys it may have."""
    both = json.loads(file.read_text("utf-8"))
    instance = Instance.model_validate(both["question"])
    return instance, both["plan"] | {"instance": {"name": instance.name, "sha256": instance.sha256}}


def of_kind(kind: str) -> tuple[Instance, dict[str, Any]]:
    """The document of a kind."""
    return question_and_plan(next(file for file in FILES if file.stem == kind))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_plan_is_read_and_verifies(file: Path, tmp_path: Path) -> None:
    instance, table = question_and_plan(file)
    path = tmp_path / file.name
    path.write_text(json.dumps(table), "utf-8")
    plan = read_plan(path)
    assert plan == Plan.model_validate(table)
    assert json.loads(plan_json(plan))["schema"] == "coopt-plan/2"
    assert Plan.model_validate_json(plan_json(plan)) == plan
    verdict = verify(instance, plan)
    assert verdict.failures == ()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_plan_says_what_the_new_one_says(file: Path) -> None:
    instance, table = question_and_plan(file)
    old, plan, new = OldPlan.model_validate(table), Plan.model_validate(table), solve(instance)
    for name in SECTIONS:
        assert getattr(plan, name) == getattr(old, name) == getattr(new, name), name
    assert plan.couplings == new.couplings
    assert [part.cost is None for part in plan.parts] == [file.stem in NO_BILLS] * len(plan.parts)
    assert plan.parts == tuple(
        part.model_copy(update={"cost": None}) if file.stem in NO_BILLS else part for part in new.parts
    )


def test_the_first_plan_there_was_verifies() -> None:
    instance, plan = coopt.load(DATA / "instance-1.0.0.toml"), read_plan(DATA / "plan-1.0.0.json")
    named = plan.instance.model_copy(update={"sha256": instance.sha256})
    assert verify(instance, plan.model_copy(update={"instance": named})).failures == ()


def test_every_section_of_schema_1_has_a_document() -> None:
    plans = [OldPlan.model_validate(question_and_plan(file)[1]) for file in FILES]
    filled = {name for plan in plans for name in OldPlan.model_fields if getattr(plan, name)}
    assert filled == set(OldPlan.model_fields) - {"tp_across"}


@pytest.mark.parametrize(
    ("kind", "changes", "why"),
    [
        ("shared", {"islands": 3}, "islands = 3: needs a list"),
        ("shared", {"island": []}, "island: unknown key"),
        ("phased", {"workloads": []}, "not those of the last phase"),
        ("phased", {"design": None}, "not those of the last phase"),
        ("partition", {"workloads": []}, "not those of the islands"),
        ("partition", {"phases": "phased"}, "needs the sections of one kind"),
        ("sites", {"design": "shared"}, "holds design beside together"),
        ("sites", {"workloads": "shared"}, "holds workloads beside together"),
    ],
)
def test_an_old_plan_that_contradicts_itself_is_refused(
    kind: str, changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    _, table = of_kind(kind)
    for name, value in changes.items():
        table[name] = of_kind(value)[1][name] if isinstance(value, str) else value
    with pytest.raises(ValidationError):
        Plan.model_validate(table)
    (tmp_path / "old.json").write_text(json.dumps(table), "utf-8")
    with pytest.raises(InstanceError, match=why):
        read_plan(tmp_path / "old.json")


def test_a_plan_that_names_no_schema_and_has_no_parts_is_of_schema_1() -> None:
    _, table = of_kind("shared")
    bare = {key: value for key, value in table.items() if key != "schema"}
    assert Plan.model_validate(bare) == Plan.model_validate(table)
    with pytest.raises(ValidationError, match="schema"):
        Plan.model_validate(table | {"schema": "coopt-plan/3"})
