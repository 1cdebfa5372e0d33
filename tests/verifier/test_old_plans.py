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
from coopt.plan.schema_one import OldPlan, with_named_lines
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
    old, plan, new = OldPlan.model_validate(with_named_lines(table)), Plan.model_validate(table), solve(instance)
    for name in SECTIONS:
        assert getattr(plan, name) == getattr(old, name) == getattr(new, name), name
    assert plan.couplings == new.couplings
    assert [part.cost is None for part in plan.parts] == [file.stem in NO_BILLS] * len(plan.parts)
    assert plan.parts == tuple(
        part.model_copy(update={"cost": None}) if file.stem in NO_BILLS else part for part in new.parts
    )


def test_lines_that_say_in_words_alone_what_they_are_of_are_read_and_verify() -> None:
    """The last version whose lines did has idle GPUs and spare units, bought in two phases."""
    instance, table = question_and_plan(DATA / "plan-2.17.0.json")
    plan = Plan.model_validate(table)
    assert plan.cost is not None
    assert [(*line.product, line.idle, line.spare, line.year) for line in plan.cost.items] == [
        ("gpu", "h100-sxm", True, False, 2026),
        ("hb", "hb8", False, False, 2026),
        ("hb", "hb8", False, True, 2026),
        ("gpu", "h100-sxm", True, False, 2027.5),
    ]
    assert [line.item for line in plan.cost.items] == [line["item"] for line in table["cost"]["items"]]
    assert {line.year for spent in plan.couplings.growth for line in spent.bought} == {None}
    new = solve(instance)
    assert (plan.cost, plan.couplings, plan.parts) == (new.cost, new.couplings, new.parts)
    assert verify(instance, plan).failures == ()


@pytest.mark.parametrize("field", [{"name": "other"}, {"idle": False}, {"spare": True}, {"year": 2027.0}])
def test_a_line_whose_words_are_not_what_it_says_is_refused(field: dict[str, Any]) -> None:
    instance, table = question_and_plan(DATA / "plan-2.17.0.json")
    plan = Plan.model_validate(table)
    assert plan.cost is not None
    first, *others = plan.cost.items
    cost = plan.cost.model_copy(update={"items": (first.model_copy(update=field), *others)})
    assert not verify(instance, plan.model_copy(update={"cost": cost})).accepted
    words = first.bought_in(2028.0).item
    assert words == "h100-sxm (idle), 2026, 2028"
    cost = plan.cost.model_copy(update={"items": (first.model_copy(update={"item": words}), *others)})
    assert not verify(instance, plan.model_copy(update={"cost": cost})).accepted


def test_a_name_that_ends_like_a_year_is_no_year_where_nothing_grows() -> None:
    line = {"item": "model, 2026 (spare)", "kind": "nic", "unit_usd": 1.0}
    told = {"name": "model, 2026", "idle": False, "spare": True, "year": None}
    assert with_named_lines({"cost": {"items": [line]}}) == {"cost": {"items": [line | told]}}
    bought = {"cost": {"items": [line | {"item": "model, 2026 (spare), 2026"}]}, "phases": [{"year": 2026.0}]}
    assert with_named_lines(bought)["cost"]["items"][0]["year"] == 2026.0


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
