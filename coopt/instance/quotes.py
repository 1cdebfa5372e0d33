"""Catalog files of one's own: TOML as in `coopt/catalog/`, all kinds in one file, or quotes as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from coopt.instance.base import Entry, Name, Table, one_or_series
from coopt.instance.catalog import KINDS, Book, changed
from coopt.instance.complaints import sentences
from coopt.instance.csv_rows import of_no_product, rows_of_csv
from coopt.instance.errors import InstanceError
from coopt.instance.listings import both
from coopt.instance.texts import read_text, toml_of


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
        for place, kind, row in _rows_of_csv(file, book) if as_csv else _rows_of_toml(file):
            if as_csv and (text := of_no_product(kind, row, book)):
                complaints.append(f"{file.name}: {place.of(text)}: {text}")
                continue
            try:
                table = changed(kind, row, book) if "extends" in row else row
                entry = KINDS[kind].model_validate(table, context=book)
            except ValidationError as error:
                complaints += [f"{file.name}: {place.of(text)}: {text}" for text in sentences(error, KINDS[kind])]
            except ValueError as error:
                complaints.append(f"{file.name}: {place.of(str(error))}: {error}")
            else:
                book[kind][entry.name] = entry
    if complaints:
        raise InstanceError(complaints)
    return book


def places_of(files: Iterable[str], folder: Path) -> dict[str, str]:
    """Where each entry of catalog files that can be read stands: `line 2 of quotes.csv`, by its name."""
    book: Book = {kind: {} for kind in KINDS}
    found: dict[str, str] = {}
    for name in files:
        file = folder / name
        rows = _rows_of_csv(file, book) if file.suffix.lower() == ".csv" else _rows_of_toml(file)
        for place, _, row in rows:
            found[str(row.get("name"))] = f"line {place.first} of {file.name}" if place.first else file.name
    return found


def with_places(complaint: str, places: Mapping[str, str]) -> str:
    """A complaint about what an instance is made from, and where the entries that it names stand.

    Names without a digit or a hyphen count in quotes alone, as they may be words of the sentence.
    """
    named = [
        name
        for name in places
        if f"{name!r}" in complaint
        or (re.search(r"[\d-]", name) and re.search(rf"(?<![\w'-]){re.escape(name)}(?![\w'-])", complaint))
    ]
    stand = [f"{name!r} {'in' if number else 'stands in'} {places[name]}" for number, name in enumerate(named)]
    return f"{complaint} ({both(stand)})" if stand else complaint


@dataclass(frozen=True, kw_only=True)
class EntryPlace:
    """Where an entry stands in a file: its lines, with the number of the first, and how the entry is called."""

    first: int
    lines: tuple[str, ...] = ()
    called: str = ""

    def of(self, complaint: str) -> str:
        """`line 7: switch 'ours'`: the line of the key that a complaint begins with, else that of the entry.

        The entry alone where its lines are not known.
        """
        if not self.first:
            return self.called
        key = re.match(r"\w+", complaint)
        own = re.compile(rf"\s*{key[0]}\s*=") if key else None
        line = next((n for n, text in enumerate(self.lines) if own and own.match(text)), 0)
        return f"line {self.first + line}{f': {self.called}' if self.called else ''}"


def _rows_of_csv(file: Path, book: Book) -> Iterator[tuple[EntryPlace, str, Mapping[str, Any]]]:
    yield from ((EntryPlace(first=line), kind, row) for line, kind, row in rows_of_csv(file, book))


def _rows_of_toml(file: Path) -> Iterator[tuple[EntryPlace, str, Mapping[str, Any]]]:
    text = read_text(file, "a TOML text file", "a catalog file (`coopt catalog show NAME --toml` prints an entry)")
    for kind, rows in toml_of(text, file.name).items():
        if kind not in KINDS:
            raise InstanceError(f"{file.name}: {kind}: no kind of entry, needs one of {', '.join(KINDS)}")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InstanceError(f"{file.name}: {kind}: needs tables that begin with [[{kind}]]")
        places = _places(text, kind)
        for number, row in enumerate(rows):
            first, lines = places[number] if len(places) == len(rows) else (0, ())
            yield EntryPlace(first=first, lines=lines, called=f"{kind} {row.get('name', number + 1)!r}"), kind, row


def _places(text: str, kind: str) -> list[tuple[int, tuple[str, ...]]]:
    """The number of the line of every `[[kind]]`, and the lines from there to the next table of another entry."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[", line)]
    ends = [*heads[1:], len(lines)]
    return [
        (head + 1, tuple(lines[head:end]))
        for head, end in zip(heads, ends, strict=False)
        if re.match(rf"\s*\[\[\s*{kind}\s*\]\]", lines[head])
    ]
