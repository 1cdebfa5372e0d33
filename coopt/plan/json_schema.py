"""JSON Schemas of the file formats, for editors and other programs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coopt.instance.catalog import KINDS, entries
from coopt.instance.designs import DesignFile
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.front import Front
from coopt.plan.parts import Record
from coopt.plan.schema import Plan

VERSIONS = {"instance": "1.0.0", "designs": "1.0.0", "plan": "2.0.0", "front": "1.0.0"}
"""Versions of the formats: keys are only added in a minor one, so that older files stay good
(docs/embedding.md).
"""

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTSIDE_WORDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
}
DATE = {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}  # strict readers may not know formats
LENGTHS = {"minLength": "minItems", "maxLength": "maxItems"}
CATALOG_NAMES = "names of the catalog"
TEXT = {"type": "string"}
ANNOTATIONS = ("title", "description", "default")


@cache
def schema_json(which: str) -> str:
    """Return the JSON Schema of an `instance`, a file of `designs`, a `plan` or a `front` as
    text.
    """
    return json.dumps(schema_table(which), indent=2)


def schema_table(which: str = "instance") -> dict[str, Any]:
    """Return the JSON Schema of an `instance`, a file of `designs`, a `plan` or a `front`.

    Raises
    ------
    InstanceError
        If there is no such format.

    Examples
    --------
    >>> import coopt
    >>> coopt.schema("plan")["title"]
    'Plan'
    """
    if which not in VERSIONS:
        raise InstanceError(f"schema: {which!r}, needs one of {', '.join(map(repr, VERSIONS))}")
    answers: dict[str, type[Record]] = {"plan": Plan, "front": Front}
    files: dict[str, type[BaseModel]] = {"instance": Instance, "designs": DesignFile}
    schema = (
        _changed(answers[which].model_json_schema(by_alias=True), _in_schema_words)
        if which in answers
        else file_schema(files[which])
    )
    return {"$schema": DIALECT, "$id": f"urn:coopt:{which}:{VERSIONS[which]}", **schema}


def is_schema(file: Path, which: str) -> bool:
    """Whether a file holds the JSON Schema of a format, in any version."""
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    identity = content.get("$id") if isinstance(content, dict) else None
    return isinstance(identity, str) and identity.startswith(f"urn:coopt:{which}:")


def instance_schema() -> dict[str, Any]:
    """Return the schema of an instance as written in TOML."""
    return file_schema(Instance)


def file_schema(form: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a table as written in TOML, where lists of one need no brackets."""
    plain = _changed(form.model_json_schema(by_alias=True), _in_schema_words)
    schema: dict[str, Any] = _changed(plain, _with_names)
    for table in (schema, *schema.get("$defs", {}).values()):
        properties = table.get("properties", {})
        properties |= {name: _one_or_many(part) for name, part in properties.items()}
    return schema


def _changed(part: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """Apply a change to every table of a schema, the innermost first."""
    if isinstance(part, list):
        return [_changed(value, change) for value in part]
    if not isinstance(part, dict):
        return part
    return change({key: _changed(value, change) for key, value in part.items()})


def _in_schema_words(part: dict[str, Any]) -> dict[str, Any]:
    """Translate what pydantic says in its own words, or OpenAPI's, into JSON Schema."""
    if part.get("format") == "date":
        return {key: value for key, value in part.items() if key != "format"} | DATE
    if "propertyName" in part.get("discriminator", ()):
        part = {key: value for key, value in part.items() if key != "discriminator"}
    words = OUTSIDE_WORDS | (LENGTHS if part.get("type") == "array" else {})
    named = {words.get(key, key): value for key, value in part.items()}
    if "anyOf" not in named:
        return named
    # of a choice each list, and each number, has its own
    bounds = {key: named[key] for key in OUTSIDE_WORDS.values() if key in named}
    options = [
        option | bounds if option.get("type") in ("integer", "number") else option
        for option in named["anyOf"]
    ]
    kept = {key: value for key, value in named.items() if key not in bounds | LENGTHS}
    return kept | {"anyOf": options}


def _with_names(schema: dict[str, Any]) -> dict[str, Any]:
    """Add catalog names as a choice where they are allowed, for completion in editors; other names
    stay allowed.
    """
    references = {option.get("$ref") for option in schema.get("anyOf", ())}
    for kind, entry in KINDS.items():
        if f"#/$defs/{entry.__name__}" in references and TEXT in schema["anyOf"]:
            schema["anyOf"] = [
                {"title": CATALOG_NAMES, "enum": list(entries(kind))},
                *schema["anyOf"],
            ]
    return schema


def _one_or_many(part: dict[str, Any]) -> dict[str, Any]:
    """Let a list property accept a single entry as well."""
    if "anyOf" in part:
        return {
            **part,
            "anyOf": [option for choice in part["anyOf"] for option in _options(choice)],
        }
    options = _options(part)
    if len(options) == 1:
        return part
    return {"anyOf": options, **{key: part[key] for key in ANNOTATIONS if key in part}}


def _options(part: dict[str, Any]) -> list[dict[str, Any]]:
    # annotations belong outside the choice of list or entry
    content = {key: value for key, value in part.items() if key not in ANNOTATIONS}
    if content.get("type") != "array" or not isinstance(content.get("items"), dict):
        return [part]
    return [content, content["items"]]
