"""Write docs/reference/instance.md, every key of an instance."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from coopt.instance.software import Composition, RunSoftware
from coopt.instance.texts import write_text
from coopt.plan.json_schema import CATALOG_NAMES, instance_schema

PLACE = Path(__file__).parent / "reference" / "instance.md"
UNITS = (
    "10^9 bytes",
    "Gbit",
    "TFLOP",
    "USD",
    "tokens",
    "hours",
    "days",
    "years",
    "MW",
    "ms",
    "s",
    "m",
    "W",
)
UNIT = re.compile(rf" \(((?:{'|'.join(map(re.escape, UNITS))})(?:/\w+)?)(, not \w+(?:/s)?)?\)")
PLURALS = {
    "table": "tables",
    "name or table": "names or tables",
    "text": "texts",
    "number": "numbers",
    "integer": "integers",
    "boolean": "booleans",
}
IN_BRACKETS = ("workload.mapping", "workload.options", "workload.software")
RANGE = "A range, wherever one may stand"
EXTENDED = "A table with `extends`, wherever a name or table may stand"
HEAD = """\
# Keys of an instance

An instance is a TOML file. These are its keys, as `coopt schema` has them; any other is refused by
name. Bold keys must be given. In brackets stand what a key takes, its unit (without one it is a
count, a share or a word) and its default.

A list of one may stand without brackets. "Name or table" takes the name of a catalog entry
(`"h100-sxm"`; `coopt catalog list`) or a table of your own. "Range" takes
`{ least = 256, most = 1024, step = 256 }` in place of the list `[256, 512, 768, 1024]`
([leave sizes open](../howto/sizes.md)). Tables in `existing` are those of
[designs](../designs.md#keys).
"""
OF_DESIGNS = "existing."
OF_ENTRIES = ("name", "description", "sources")
ENTRY = "Besides, in every table in place of a catalog name"
HEADINGS = {
    "Changed": EXTENDED,
    "Range": RANGE,
    "AttentionLayers": 'A table in `mixers` of a model with `kind = "attention"`',
    "ScanLayers": "A table in `mixers` of a model with a linear mixer",
}


def main() -> None:
    """Write the page."""
    write_text(PLACE, page())


def page() -> str:
    """The whole page: a section for each table, in the order in which a reader meets them."""
    schema = instance_schema()
    first = list(schema["properties"])
    found = sorted(
        walk(schema, schema["$defs"]), key=lambda one: (one[1].startswith("A"), first.index(one[0]))
    )
    entry = next(table for _, _, table in found if is_entry(table))
    sections = [
        section("Top of the file", schema),
        *(section(heading, table) for _, heading, table in found),
        f"\n## {ENTRY}\n\n{key_lines(entry, OF_ENTRIES)}",
    ]
    return "\n".join([HEAD, *sections, ""])


def walk(
    schema: dict[str, Any], named: dict[str, Any]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every table below `schema`, before those inside it: its first key, its title, itself."""
    waiting, seen = [("", schema)], set()
    while waiting:
        path, table = waiting.pop(0)
        for key, part in table["properties"].items():
            for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(part)):
                if name in seen:
                    continue
                seen.add(name)
                inner = f"{path}.{key}".strip(".")
                waiting.append((inner, named[name]))
                if inner.startswith(OF_DESIGNS):
                    continue
                heading = HEADINGS.get(name) or title(inner, part)
                yield inner.split(".")[0], heading, named[name]


def title(path: str, part: dict[str, Any]) -> str:
    """How a table begins: `[cluster]`, `[[workload]]`, or the key that takes it inline."""
    if path.count(".") == 0 or path in IN_BRACKETS:
        return f"`[[{path}]]`" if "array" in json.dumps(part) else f"`[{path}]`"
    return f"A table in `{path}`"


def section(heading: str, table: dict[str, Any]) -> str:
    """One table with its keys."""
    summary = " ".join(table["description"].split("\n\n")[0].split())
    summary = re.sub(r"docs/\w+\.md", r"`\g<0>`", summary)
    keys = [
        key
        for key in table["properties"]
        if table["title"] != RunSoftware.__name__ or key in Composition.model_fields
        if key not in OF_ENTRIES or not is_entry(table)
    ]
    return f"\n## {heading}\n\n{summary}\n\n{key_lines(table, keys)}"


def is_entry(table: dict[str, Any]) -> bool:
    """Whether a catalog can hold such a table."""
    return set(OF_ENTRIES) <= set(table["properties"])


def key_lines(table: dict[str, Any], keys: Iterable[str]) -> str:
    """Some keys of a table, a line each."""
    return "\n".join(
        key_line(key, table["properties"][key], table.get("required", ())) for key in keys
    )


def key_line(key: str, part: dict[str, Any], required: Collection[str]) -> str:
    """One key: what it takes, its unit and its default in brackets, and what it means."""
    unit = UNIT.search(part["description"])
    meaning = UNIT.sub(lambda found: f" ({found[2][2:]})" if found[2] else "", part["description"])
    default = default_of(part)
    about = [
        takes(part),
        *([unit[1]] if unit else []),
        *([f"default {default}"] if default else []),
    ]
    name = f"**`{key}`**" if key in required else f"`{key}`"
    return f"- {name} ({'; '.join(about)}): {meaning}"


def default_of(part: dict[str, Any]) -> str:
    """The value that holds where the key is left out; nothing where it is no single value."""
    value = part.get("default", "")
    return "" if value in (None, "", []) or isinstance(value, dict) else f"`{json.dumps(value)}`"


def takes(part: dict[str, Any]) -> str:
    """Values a key takes, in words."""
    options = [
        one
        for one in part.get("anyOf", [part])
        if one.get("type") != "null" and one.get("title") != CATALOG_NAMES
    ]
    said = list(dict.fromkeys(word for one in options for word in [words(one)] if word))
    lists = [word for word in said if f"list of {word}" not in said]
    text = " or ".join(lists).replace("text or table", "name or table")
    for one, many in PLURALS.items():
        text = text.replace(f"list of {one}", many)
    return text


def words(one: dict[str, Any]) -> str:
    """One kind of value."""
    if "$ref" in one:
        return "range" if one["$ref"].endswith("/Range") else "table"
    if "anyOf" in one:
        return takes(one)
    if "oneOf" in one:
        return "table"
    if "enum" in one or "const" in one:
        return ", ".join(f"`{json.dumps(value)}`" for value in one.get("enum", [one.get("const")]))
    if one["type"] == "array":
        fixed = one.get("prefixItems")
        return (
            f"list of {len(fixed)} x {words(fixed[0])}"
            if fixed
            else f"list of {words(one['items'])}"
        )
    return {"string": "text", "boolean": "boolean"}.get(one["type"], one["type"]) + limits(one)


def limits(one: dict[str, Any]) -> str:
    """The range of a number, where it says something."""
    least = one.get("minimum", one.get("exclusiveMinimum"))
    most = one.get("maximum", one.get("exclusiveMaximum"))
    if least is None or most is None:
        return ""
    low = f" above {least:g}" if "exclusiveMinimum" in one else f" from {least:g}"
    high = (
        ""
        if most >= 1e6
        else (f" below {most:g}" if "exclusiveMaximum" in one else f" to {most:g}")
    )
    return low + high


if __name__ == "__main__":
    main()
