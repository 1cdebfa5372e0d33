"""Tables as data frames, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from coopt.instance.errors import InstanceError

Row = Mapping[str, Any]
LIBRARIES = ("pandas", "polars")


def frame(rows: Iterable[Row]) -> Any:
    """Convert rows to a data frame of pandas, or of polars if only that is installed.

    Raises
    ------
    InstanceError
        If neither is installed.
    """
    library = next((name for name in LIBRARIES if find_spec(name)), None)
    if library is None:
        raise InstanceError(
            "to_frame: neither pandas nor polars is installed, needs one of them (`pip install"
            " 'coopt[jupyter]'`)"
        )
    return import_module(library).DataFrame([dict(row) for row in rows])


def frame_of(tables: Mapping[str, Callable[[], Iterable[Row]]], table: str) -> Any:
    """Return the table of that name as a data frame.

    Raises
    ------
    InstanceError
        If there is no table of that name, or no library for data frames.
    """
    if table not in tables:
        raise InstanceError(
            f"to_frame: table = {table!r}, needs one of {', '.join(map(repr, tables))}"
        )
    return frame(tables[table]())


def html(title: str, sentences: Iterable[str] = (), tables: Iterable[Sequence[Row]] = ()) -> str:
    """Render a title, sentences and tables, with all text escaped."""
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    rendered = "".join(map(_html_table, tables))
    return f"<div><p><strong>{escape(title)}</strong></p>{paragraphs}{rendered}</div>"


def _html_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(key))}</th>" for key in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_cell(value))}</td>' for value in row.values())}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: ""}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1e4 else _large(value)


def _large(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
