"""Names as they stand in a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NUMBERED = re.compile(r"\bworkload\[(\d{1,6})\]")


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`; empty without any."""
    return _joined(names, "or")


def both(names: Iterable[str]) -> str:
    """`a, b and c`; empty without any."""
    return _joined(names, "and")


def _joined(names: Iterable[str], word: str) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} {word} {last}" if most else last


def workload_names(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of `[[workload]]` tables that nobody checked; empty where one has none."""
    rows = table.get("workload")
    if not isinstance(rows, list | tuple):
        return ()
    names = [row["name"] for row in rows if isinstance(row, Mapping) and isinstance(row.get("name"), str)]
    return tuple(names) if len(names) == len(rows) else ()


def counted(number: int, noun: str) -> str:
    """`1 rack`, `4,096 switches`: a count and its noun."""
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def with_names(text: str, names: Sequence[str]) -> str:
    """`workload['chat'].gpus` in place of `workload[1].gpus`, where there are several with names that differ."""
    if len(names) < 2 or len(set(names)) < len(names):
        return text
    return NUMBERED.sub(lambda found: _named(found, names), text)


def _named(found: re.Match[str], names: Sequence[str]) -> str:
    """A workload by its name; what only looks like one, within a name of somebody's own, stays."""
    return f"workload[{names[int(found[1])]!r}]" if int(found[1]) < len(names) else found[0]
