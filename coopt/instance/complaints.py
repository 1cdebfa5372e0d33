"""Turns validation errors into sentences: key, value, and what is required."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ValidationError

from coopt.instance.catalog import KINDS
from coopt.instance.errors import alternatives, both, shortened

NEEDS: dict[str, str] = {
    "missing": "is missing, needs a value",
    "finite_number": "needs a finite number",
    "greater_than": "needs a number above {gt}",
    "greater_than_equal": "needs at least {ge}",
    "less_than": "needs a number below {lt}",
    "less_than_equal": "needs at most {le}",
    "literal_error": "needs one of {expected}",
    "too_short": "needs at least {min_length} entry",
    "too_long": "needs at most {max_length} entries",
    "string_too_short": "needs a text that is not empty",
    "string_pattern_mismatch": "needs a text without control characters",
    "string_type": "needs a text in quotes",
    "int_type": "needs a whole number",
    "float_type": "needs a number",
    "bool_type": "needs true or false",
    "model_type": "needs a table",
    "model_attributes_type": "needs a table or a catalog name",
    "dict_type": "needs a table",
    "tuple_type": "needs a list",
}
MOST_FAULTS = 100
"""Faults that are told; for each unknown key all others are looked through for close ones."""
WORDS = re.compile("(one of )?'")
GROUPED = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
WITHOUT_COMMAS = " without commas, or a list with a space behind each comma"
LISTED_AS = {"generations": "gpu", "batches": "global_batch"}
"""Keys that keep a list, by those that it is written as; the first of the list is there twice."""
LIKE = ', or extends = "NAME" beside it to begin with an entry of the catalog'
CATALOGED = frozenset(model.__name__ for model in KINDS.values())


def sentences(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return one sentence per error, without repetition, then the number of those left out."""
    faults = [item for item in error.errors(include_url=False) if not _is_told_twice(item["loc"])]
    items = _nearest_branches(faults[:MOST_FAULTS])
    more = [f"and {len(faults) - MOST_FAULTS:,} more faults"] if len(faults) > MOST_FAULTS else []
    needs: dict[str, list[str]] = {}
    rules: set[str] = set()  # their requirements all apply; they are not alternative types
    for item in items:
        for sentence in _sentences(item, root):
            head, _, need = sentence.partition(": needs ")
            needs.setdefault(head, []).append(need)
            if item["type"] == "value_error":
                rules.add(head)
    told = [
        (
            f"{head}: needs {both(dict.fromkeys(need)) if head in rules else _one_of(need)}"
            if any(need)
            else head
        )
        for head, need in needs.items()
    ]
    return [*map(shortened, told), *more]


def _is_told_twice(loc: tuple[int | str, ...]) -> bool:
    """Whether a location is the first element of a list that another key holds too."""
    return any(key in LISTED_AS and after == 0 for key, after in pairwise(loc))


def _one_of(needs: Iterable[str]) -> str:
    """Combine the requirements of alternative types into one, words first."""
    distinct = [*dict.fromkeys(needs)]
    words = dict.fromkeys(
        word for need in distinct if WORDS.match(need) for word in re.findall("'[^']*'", need)
    )
    clauses = [need for need in distinct if not WORDS.match(need)]
    word_list = f"{'one of ' * (len(words) > 1)}{alternatives(words)}"
    return alternatives(([word_list] if words else []) + clauses)


def _nearest_branches(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """For a value with alternative types, keep only the errors of the type that it has.

    An unknown word may have been meant as a number too. A list is not reported as too short if its
    entries are refused.
    """
    places = [
        (key_path(item["loc"]), item["type"])
        for item in items
        if not item["type"].endswith("_type")
    ]

    def superseded(item: Mapping[str, Any]) -> bool:
        place, kind = key_path(item["loc"]), item["type"]
        entries = any(path.startswith(f"{place}[") for path, _ in places)
        within = any(path == place and fault != "literal_error" for path, fault in places)
        return (entries and kind == "too_short") or (kind.endswith("_type") and (entries or within))

    return [item for item in items if not superseded(item)]


def _sentences(item: Mapping[str, Any], root: type[BaseModel]) -> Iterator[str]:
    place = key_path(item["loc"]) or "the whole file"
    kind, value = item["type"], item.get("input")
    if kind == "extra_forbidden":
        yield f"{place}: unknown key, needs {_known_keys(item['loc'], value, root)}"
    elif kind == "missing":
        cataloged = _table_with(item["loc"], root).__name__ in CATALOGED
        yield f"{place}: {NEEDS[kind]}{LIKE if cataloged else ''}"
    elif kind == "value_error":
        text = str(item["ctx"]["error"])
        for line in text.splitlines():
            if isinstance(value, str | int | float):
                yield f"{place} = {value!r}: {line}"
            else:
                yield f"{place}: {line}" if item["loc"] else line
    else:
        value_text = f" = {_excerpt(value)}" if not isinstance(value, Mapping) else " = a table"
        yield f"{place}{value_text}: {_need(item)}"


def _need(item: Mapping[str, Any]) -> str:
    """Return the requirement that a value violates, in words."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error" and " or " not in context["expected"]:
        return f"needs {context['expected']}"
    if kind == "model_type" and context["class_name"] in CATALOGED:
        return "needs a catalog name or a table"
    need = NEEDS.get(kind)
    is_grouped = kind in ("int_type", "float_type") and GROUPED.fullmatch(str(item["input"]))
    return need.format(**context) + WITHOUT_COMMAS * bool(is_grouped) if need else str(item["msg"])


def key_path(loc: tuple[int | str, ...]) -> str:
    """Convert a location of pydantic to `workload[0].mapping.tp`, without notes on unions."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier():
            key = LISTED_AS.get(part, part)
            path += f".{key}" if path else key
    return path


def _excerpt(value: Any) -> str:
    if isinstance(value, datetime.date | datetime.time):
        return str(value)
    text = repr(list(value) if isinstance(value, tuple) else value)
    text = {"True": "true", "False": "false"}.get(text, text)
    return text if len(text) <= 60 else text[:57] + "..."


def _known_keys(loc: tuple[int | str, ...], value: Any, root: type[BaseModel]) -> str:
    """Return the keys that the table of an unknown key has: close ones if any, or other tables with
    that key.
    """
    keys = [field.alias or name for name, field in _table_with(loc, root).model_fields.items()]
    if matches := get_close_matches(str(loc[-1]), keys, n=3):
        return f"a known one (closest: {', '.join(matches)})"
    homes = [
        f"{place}.{loc[-1]}"
        for place, table in _tables_in(root)
        if _takes(table, str(loc[-1]), value)
    ]
    return f"{alternatives(homes)} in its place" if homes else "one of " + ", ".join(keys)


def _takes(table: type[BaseModel], key: str, value: Any) -> bool:
    """Whether a table has a key, with a list type if the value is a list."""
    if key not in table.model_fields or not isinstance(value, list | tuple):
        return key in table.model_fields
    try:
        table.model_validate({key: value})
    except ValidationError as error:
        return not any(
            item["loc"] == (key,) and item["type"].endswith("_type") for item in error.errors()
        )
    return True


def _tables_in(root: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the tables of a file, including nested ones, by dotted key."""
    for name in root.model_fields:
        if (table := _table_at(root, name)) is not None and table.__name__ not in CATALOGED:
            yield name, table
            yield from ((f"{name}.{key}", inner_table) for key, inner_table in _tables_in(table))


def _table_with(loc: tuple[int | str, ...], root: type[BaseModel]) -> type[BaseModel]:
    """Return the table that contains the last key of a location."""
    table = root
    for part in loc[:-1]:
        part_table = _table_at(table, part) if isinstance(part, str) else table
        table = part_table or table
    return table


def _table_at(table: type[BaseModel], key: str) -> type[BaseModel] | None:
    field = table.model_fields.get(key)
    if field is None:
        return None
    # such as a range for a list
    input_types = (getattr(metadata, "json_schema_input_type", None) for metadata in field.metadata)
    return next(filter(None, map(model_in, (field.annotation, *input_types))), None)


def model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the table type within an annotation, inside lists or unions; None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        if (model := model_in(argument)) is not None:
            return model
    return None
