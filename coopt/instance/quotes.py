"""Catalog files of one's own: TOML as in `coopt/catalog/`, all kinds in one file, or quotes as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from coopt.instance.base import Entry, Name, Table, one_or_series
from coopt.instance.catalog import KINDS, Book, changed, entries
from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_text, read_toml

APART = ("kind", "name", "source")  # columns of a CSV file that are no figures


class CatalogFiles(Table):
    """Files of hardware and models that come before the catalog."""

    files: Annotated[
        tuple[Name, ...], one_or_series, Field(description="TOML or CSV files, found from where this file stands")
    ] = ()


def own_entries(files: Iterable[str], folder: Path) -> Book:
    """The entries of catalog files; a later one may change what an earlier one holds.

    Parameters
    ----------
    folder
        Where the files are looked for.

    Raises
    ------
    InstanceError
        With every complaint: file, entry, key, value given, what is needed.
    """
    book: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    complaints: list[str] = []
    for name in files:
        file = folder / name
        for place, kind, row in _rows_of_csv(file) if file.suffix.lower() == ".csv" else _rows_of_toml(file):
            try:
                table = changed(kind, row, book) if "extends" in row else row
                entry = KINDS[kind].model_validate(table, context=book)
            except ValidationError as error:
                complaints += [f"{file.name}: {place}: {text}" for text in sentences(error, KINDS[kind])]
            except ValueError as error:
                complaints.append(f"{file.name}: {place}: {error}")
            else:
                book[kind][entry.name] = entry
    if complaints:
        raise InstanceError(complaints)
    return book


def _rows_of_toml(file: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for kind, rows in read_toml(file, "a catalog file (`coopt catalog show NAME --toml` prints an entry)").items():
        if kind not in KINDS:
            raise InstanceError(f"{file.name}: {kind}: no kind of entry, needs one of {', '.join(KINDS)}")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InstanceError(f"{file.name}: {kind}: needs tables that begin with [[{kind}]]")
        yield from ((f"{kind} {row.get('name', number)!r}", kind, row) for number, row in enumerate(rows, start=1))


def _rows_of_csv(file: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """A row changes the entry that its column `extends` names, or else the one of its own name."""
    text = read_text(file, "a CSV text file", "a table of quotes with the columns kind, name and figures such as usd")
    table = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    lacking = [name for name in ("kind", "name") if name not in (table.fieldnames or ())]
    if lacking:
        raise InstanceError(f"{file.name}: has no column {' and '.join(lacking)}, needs kind, name and figures")
    for row in table:
        place, kind = f"line {table.line_num}", row["kind"] or ""
        if kind not in KINDS:
            raise InstanceError(f"{file.name}: {place}: kind = {kind!r}: needs one of {', '.join(KINDS)}")
        if None in row:
            raise InstanceError(f"{file.name}: {place}: has more cells than there are columns, needs as many")
        figures = {key: _value(cell) for key, cell in row.items() if cell and key not in APART}
        known = {"extends": row["name"]} if row["name"] in entries(kind) else {}
        source = {"fields": [key for key in figures if key != "extends"], "tag": "S", "source": row.get("source") or ""}
        sources = {"sources": [source]} if source["source"] else {}
        yield place, kind, {"name": row["name"], **known, **figures, **sources}


def _value(cell: str) -> int | float | str:
    """A cell as a number where it is one."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell
