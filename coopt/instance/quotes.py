"""Catalog files of one's own: TOML as in `coopt/catalog/`, all kinds in one file, or quotes as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from coopt.instance.base import Entry, Name, Table, one_or_series
from coopt.instance.catalog import KINDS, Book, changed
from coopt.instance.complaints import sentences
from coopt.instance.csv_rows import of_no_product, rows_of_csv
from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_toml


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
        as_csv = file.suffix.lower() == ".csv"
        for place, kind, row in rows_of_csv(file, book) if as_csv else _rows_of_toml(file):
            if as_csv and (text := of_no_product(kind, row, book)):
                complaints.append(f"{file.name}: {place}: {text}")
                continue
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
