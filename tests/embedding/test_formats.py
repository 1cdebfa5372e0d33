"""Formats have versions, and documents of others are refused."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from coopt.instance.texts import InstanceError
from coopt.plan.json_schema import VERSIONS, schema_json
from coopt.plan.store import read_plan

STRICT = {"$schema", "$id", "$defs", "$ref", "title", "description", "default", "type", "enum", "const", "examples"} | {
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
    *(
        "anyOf", "oneOf", "items", "prefixItems", "minItems", "maxItems", "uniqueItems", "minLength", "maxLength",
        "pattern",
    ),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}  # fmt: skip
"""Keywords that every strict reader knows; formats are additions."""


def _keywords(schema: Any) -> Iterator[str]:
    for key, value in schema.items() if isinstance(schema, dict) else ():
        yield f"{key} of no type" if key.lower().endswith("imum") and "type" not in schema else key
        named = key in ("properties", "patternProperties", "$defs")
        if named or key in ("additionalProperties", "propertyNames", "items", "anyOf", "oneOf", "prefixItems"):
            for part in value.values() if named else value if isinstance(value, list) else [value]:
                yield from _keywords(part)


@pytest.mark.parametrize("which", VERSIONS)
def test_a_schema_says_its_version_and_documents_its_first_number(which: str) -> None:
    schema = json.loads(schema_json(which))
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSIONS[which])
    assert schema["$id"] == f"urn:coopt:{which}:{VERSIONS[which]}"
    assert set(_keywords(schema)) <= STRICT
    major = schema["properties"]["schema"]["const"]
    assert VERSIONS[which].split(".")[0] == str(major).rpartition("/")[2]


@pytest.mark.parametrize("schema", ["coopt-plan/1", "coopt-plan/3", "coopt-front/1", 2, None])
def test_a_plan_of_another_schema_is_refused_in_one_line(schema: object, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"schema": schema, "islands": [], "unheard of": 1}), "utf-8")
    with pytest.raises(InstanceError) as refusal:
        read_plan(file)
    assert refusal.value.complaints == (f"plan.json: schema = {schema!r}: needs 'coopt-plan/2'",)


@pytest.mark.parametrize("file", sorted(Path("instances/designs").glob("*.toml")), ids=lambda file: file.stem)
def test_files_of_designs_fit_their_schema(file: Path) -> None:
    schema = json.loads(schema_json("designs"))
    table = tomllib.loads(file.read_text("utf-8"))
    jsonschema.validate(table, schema)
    table["design"][0]["units"] = 3
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(table, schema)
