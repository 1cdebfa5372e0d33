"""Formats have versions, and documents of older ones are read."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import coopt
from coopt.plan.json_schema import VERSIONS, schema_json
from coopt.plan.store import read_plan
from tests.conftest import validator

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("which", VERSIONS)
def test_a_schema_says_its_version_and_documents_its_first_number(which: str) -> None:
    schema = json.loads(schema_json(which))
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSIONS[which])
    assert schema["$id"] == f"urn:coopt:{which}:{VERSIONS[which]}"
    major = schema["properties"]["schema"]["const"]
    assert VERSIONS[which].split(".")[0] == str(major).rpartition("/")[2]


@pytest.mark.parametrize("file", sorted(DATA.glob("plan-1.*.json")), ids=lambda file: file.stem)
def test_an_older_plan_is_read_and_then_fits_the_schema(file: Path) -> None:
    content = json.loads(file.read_text("utf-8"))
    plan = read_plan(file)
    assert plan.design is not None
    assert len(plan.alternatives) == 1
    table = plan.model_dump(mode="json", by_alias=True)
    validator(schema_json("plan")).validate(table)
    assert _within(content | {"schema": "coopt-plan/2"}, table)


@pytest.mark.parametrize("file", sorted(DATA.glob("instance-1.*.toml")), ids=lambda file: file.stem)
def test_an_older_instance_is_read(file: Path) -> None:
    assert coopt.solve(coopt.load(file)).status == "optimal"


def _within(old: Any, new: Any) -> bool:
    """Whether all that an older document says is still there."""
    if isinstance(old, dict):
        return all(key in new and _within(value, new[key]) for key, value in old.items())
    if isinstance(old, list):
        return len(old) == len(new) and all(map(_within, old, new))
    return bool(old == new)


def test_there_are_older_files() -> None:
    assert list(DATA.glob("plan-1.*.json"))
    assert list(DATA.glob("instance-1.*.toml"))


@pytest.mark.parametrize("file", sorted(Path("instances/designs").glob("*.toml")), ids=lambda file: file.stem)
def test_files_of_designs_fit_their_schema(file: Path) -> None:
    schema = json.loads(schema_json("designs"))
    table = tomllib.loads(file.read_text("utf-8"))
    jsonschema.validate(table, schema)
    table["design"][0]["units"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(table, schema)
