"""The error for unusable input, and helpers to write names and numbers in sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

CALLED = re.compile(r"\b(workload|site|wan|phase)\[([^\[\]]+)\](?:\.workloads\[([^\[\]]+)\])?")
NUMBERED = re.compile(r"\b(workload|site|wan|phase)\[(\d{1,6})\](?:\.workloads\[(\d{1,6})\])?")


LONGEST = 120
"""Characters of a name or value that a sentence shows."""
LONG = re.compile(rf"(['\"])([^'\"]{{{LONGEST + 1},}})\1|([^\s'\"]{{{LONGEST + 1},}})")


def shortened(sentence: str) -> str:
    """A sentence in which quotations and words without a blank are cut where they are long."""
    return LONG.sub(
        lambda match: f"{match[1] or ''}{(match[2] or match[3])[: LONGEST - 3]}...{match[1] or ''}",
        sentence,
    )


class InstanceError(ValueError):
    """An input that cannot be used.

    Parameters
    ----------
    complaints
        One sentence per problem found, each with the place, the given value and the requirement.
    """

    def __init__(self, complaints: str | Iterable[str]) -> None:
        self.complaints: tuple[str, ...] = (
            (complaints,) if isinstance(complaints, str) else tuple(complaints)
        )
        super().__init__("\n".join(self.complaints))

    def __reduce__(self) -> tuple[type[InstanceError], tuple[tuple[str, ...]]]:
        return type(self), (self.complaints,)


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`; empty without any."""
    return _enumeration(names, "or")


def both(names: Iterable[str]) -> str:
    """`a, b and c`; empty without any."""
    return _enumeration(names, "and")


def _enumeration(names: Iterable[str], word: str) -> str:
    *front, tail = [*names] or [""]
    return f"{', '.join(front)} {word} {tail}" if front else tail


def names_in(table: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rows of each table in unchecked input, as `rows_by_name` does; tables
    with an unnamed row are left out.
    """
    names_by_table = {key: _names_of(table.get(key), _name) for key in ("workload", "site")}
    names_by_table |= {
        "wan": _names_of(table.get("wan"), _ends),
        "phase": _names_of(table.get("phase"), _year),
    }
    phases = table.get("phase")
    for t, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
        if isinstance(phase, Mapping):
            names_by_table[f"phase[{t}].workloads"] = _names_of(phase.get("workloads"), _name)
    return {key: names for key, names in names_by_table.items() if names}


def _names_of(rows: Any, called: Callable[[Mapping[str, Any]], str | None]) -> tuple[str, ...]:
    """Return the name of each row; empty if some row has none."""
    if not isinstance(rows, list | tuple):
        return ()
    names = [name for row in rows if isinstance(row, Mapping) and (name := called(row)) is not None]
    return tuple(names) if len(names) == len(rows) else ()


def _name(row: Mapping[str, Any]) -> str | None:
    return row["name"] if isinstance(row.get("name"), str) else None


def _ends(row: Mapping[str, Any]) -> str | None:
    ends = row.get("between")
    are_names = isinstance(ends, list | tuple) and all(isinstance(end, str) for end in ends)
    return " - ".join(ends) if are_names and ends else None


def _year(row: Mapping[str, Any]) -> str | None:
    year = row.get("year")
    return str(year) if isinstance(year, int) else f"{year:g}" if isinstance(year, float) else None


def spoken(number: float) -> str:
    """`15 trillion`, `300 billion`, `20,000`."""
    scales = (
        (1e15, " quadrillion"),
        (1e12, " trillion"),
        (1e9, " billion"),
        (1e6, " million"),
        (1.0, ""),
    )
    scale, word = next((pair for pair in scales if number >= pair[0]), scales[-1])
    return f"{number / scale:,.4g}{word}"


def counted(number: int, noun: str) -> str:
    """`1 rack`, `4,096 switches`: a count and its noun."""
    plural = f"{noun}es" if noun.endswith(("ch", "s")) else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def with_names(text: str, names: Sequence[str] | Mapping[str, Sequence[str]]) -> str:
    """Replace row numbers by names: `workload['chat'].gpus` in place of `workload[1].gpus`.

    Only tables with several rows and distinct names are changed, except for the workloads of a
    phase.

    Parameters
    ----------
    names
        Names of workloads, or of the rows of every table that has some, by its key.
    """
    tables = names if isinstance(names, Mapping) else {"workload": names}
    return NUMBERED.sub(lambda match: _named_row(match, tables), text)


def _named_row(match: re.Match[str], tables: Mapping[str, Sequence[str]]) -> str:
    """Replace a row number by its name, except inside user-given names."""
    table, row, inner_row = match[1], int(match[2]), match[3]
    place = f"{table}[{_called(tables.get(table, ()), row)}]"
    if inner_row is None:
        return place
    inner = tables.get(f"{table}[{row}].workloads", ())
    return f"{place}.workloads[{_called(inner, int(inner_row), fewest=1)}]"


def _called(names: Sequence[str], row: int, fewest: int = 2) -> str:
    differ = len(names) >= fewest and len(set(names)) == len(names)
    return repr(names[row]) if differ and row < len(names) else str(row)


def in_dots(key: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Convert `workload['chat'].gpus` and `workload[1].gpus`, as written by `with_names` and
    complaints, to `workload.1.gpus`.
    """

    def numbered(match: re.Match[str]) -> str:
        table, row, inner_row = match[1], match[2], match[3]
        row = _row_of(row, tables.get(table, ()))
        if inner_row is None:
            return f"{table}.{row}"
        inner = tables.get(f"{table}[{row}].workloads", ())
        return f"{table}.{row}.workloads.{_row_of(inner_row, inner)}"

    return re.sub(r"\[(\d+)\]", r".\1", CALLED.sub(numbered, key))


def _row_of(called: str, names: Sequence[str]) -> str:
    """Return the number of the row with that (possibly quoted) name; the input if there is none."""
    name = called.strip("'\"")
    return str(names.index(name)) if names.count(name) == 1 else name


def numbers(values: Iterable[float]) -> str:
    """Return numbers separated by commas, in their original notation."""
    return ", ".join(f"{value:g}" for value in values)
