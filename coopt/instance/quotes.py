"""User catalog files: TOML as in `coopt/catalog/` with all kinds in one file, or quotes as CSV.

A line of a CSV file is a product, with the columns kind and name, and a column for each figure.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from coopt.instance.base import Entry, Name, Table, one_or_series
from coopt.instance.catalog import (
    KINDS,
    OWN,
    Book,
    at_one_rate,
    changed,
    entries,
    find,
    model_in,
    sentences,
)
from coopt.instance.hardware import Switch
from coopt.instance.texts import InstanceError, both, read_text, refuse, toml_of

T = TypeVar("T", bound=BaseModel)


class CatalogFiles(Table):
    """Files of hardware and models that take precedence over the catalog."""

    files: Annotated[
        tuple[Name, ...],
        one_or_series,
        Field(description="TOML or CSV files, found from where this file stands"),
    ] = ()
    columns: Annotated[
        dict[Name, Name],
        Field(
            description=(
                "column of ours for each column of the CSV files that is called otherwise; columns"
                " that are not listed are left out"
            )
        ),
    ] = Field(default_factory=dict)
    names: Annotated[
        dict[Name, str],
        Field(
            description=(
                'catalog name for each part number of the CSV files; "" leaves its line out'
            )
        ),
    ] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.files)  # dictionaries have no hash


def validated(form: type[T], table: Mapping[str, Any], folder: Path) -> T:
    """Validate a table that may name catalog files; the result contains their content instead of
    their names.

    Parameters
    ----------
    folder
        Folder of the file, which catalog file names are relative to.

    Raises
    ------
    ValidationError
        If the table is invalid.
    InstanceError
        If a catalog file is invalid.
    """
    own = book_of(table, folder)
    if own is None:
        return form.model_validate(table)
    tables = {key: value for key, value in table.items() if key != "catalog"}
    return form.model_validate(tables, context=own)


def book_of(table: Mapping[str, Any], folder: Path) -> Book | None:
    """Return the entries of the catalog files that a table names; None if it names none, or in a
    form that is refused with the rest of it.

    Raises
    ------
    InstanceError
        If a catalog file is invalid.
    """
    try:
        catalog = CatalogFiles.model_validate(table["catalog"])
    except (KeyError, ValidationError):
        return None
    return own_entries(catalog, folder)


@contextmanager
def own_catalog(names: Iterable[str]) -> Iterator[None]:
    """Let entries of these catalog files be found, before those of the catalog."""
    token = OWN.set(own_entries(CatalogFiles(files=tuple(names)), Path()))
    try:
        yield
    finally:
        OWN.reset(token)


def own_entries(catalog: CatalogFiles, folder: Path) -> Book:
    """Return the entries of catalog files; later entries can change earlier ones.

    Parameters
    ----------
    folder
        Folder that file names are relative to.

    Raises
    ------
    InstanceError
        With all complaints: file, entry, key, given value, requirement.
    """
    book: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    stated: set[str] = set()
    complaints = [
        f"{(folder / name).name}: {text}"
        for name in catalog.files
        for text in _complaints_of(folder / name, book, catalog, stated)
    ]
    if complaints:
        raise InstanceError(complaints)
    return book


def _complaints_of(
    file: Path, book: dict[str, dict[str, Entry]], catalog: CatalogFiles, stated: set[str]
) -> Iterator[str]:
    """Read a catalog file into the book and yield complaints with their place in the file.

    A switch that is stated gives its price to the names that it has when run at one rate alone,
    but for those that are stated themselves.
    """
    as_csv = file.suffix.lower() == ".csv"
    placed: dict[tuple[str, str], EntryPlace] = {}
    bases: dict[tuple[str, str], str] = {}
    rows = _rows_of_csv(file, book, catalog) if as_csv else _rows_of_toml(file)
    for place, kind, row in rows:
        key, base = (kind, str(row.get("name"))), row.get("extends")
        if "name" in row and placed.setdefault(key, place) is not place:
            yield _twice(key[1], placed[key], place)
        elif as_csv and (text := of_no_product(kind, row, book)):
            yield f"{place.of(text)}: {text}"
        elif isinstance(base, str) and base not in {**entries(kind), **book[kind]}:
            placed.setdefault(key, place)
            bases[key] = base
        else:
            try:
                entry = KINDS[kind].model_validate(
                    changed(kind, row, book) if "extends" in row else row, context=book
                )
            except ValidationError as error:
                for text in sentences(error, KINDS[kind]):
                    yield f"{place.of(text)}: {text}"
            except ValueError as error:
                yield f"{place.of(str(error))}: {error}"
            else:
                book[kind][entry.name] = entry
                if isinstance(entry, Switch):
                    stated.add(entry.name)
                    book[kind].update(
                        (n, way) for n, way in at_one_rate(entry).items() if n not in stated
                    )
    for key in bases:
        if text := _no_base(key, bases, placed, book):
            yield f"{placed[key].of(text)}: {text}"


def places_of(catalog: CatalogFiles, folder: Path) -> dict[str, str]:
    """Return the place of each entry in readable catalog files, by name: `line 2 of quotes.csv`."""
    book: Book = {kind: {} for kind in KINDS}
    places: dict[str, str] = {}
    for name in catalog.files:
        file = folder / name
        as_csv = file.suffix.lower() == ".csv"
        rows = _rows_of_csv(file, book, catalog) if as_csv else _rows_of_toml(file)
        for place, _, row in rows:
            places[str(row.get("name"))] = (
                f"line {place.first} of {file.name}" if place.first else file.name
            )
    return places


def with_places(complaint: str, places: Mapping[str, str]) -> str:
    """Append to a complaint about an instance the places of the entries that it names.

    Names without a digit or a hyphen are recognised only in quotes, as they can be ordinary words.
    """
    names = [
        name
        for name in places
        if f"{name!r}" in complaint
        or (
            re.search(r"[\d-]", name)
            and re.search(rf"(?<![\w'-]){re.escape(name)}(?![\w'-])", complaint)
        )
    ]
    stand = [
        f"{name!r} {'in' if number else 'stands in'} {places[name]}"
        for number, name in enumerate(names)
    ]
    return f"{complaint} ({both(stand)})" if stand else complaint


@dataclass(frozen=True, kw_only=True)
class EntryPlace:
    """Place of an entry in a file: the number of its first line, its lines, and its name."""

    first: int
    lines: tuple[str, ...] = ()
    called: str = ""

    def of(self, complaint: str) -> str:
        """Return `line 7: switch 'ours'`: the line of the key that a complaint begins with, else
        that of the entry.

        Only the entry is named if its lines are unknown.
        """
        if not self.first:
            return self.called
        key = re.match(r"\w+", complaint)
        key_line = re.compile(rf"\s*{key[0]}\s*=") if key else None
        line = next(
            (n for n, text in enumerate(self.lines) if key_line and key_line.match(text)), 0
        )
        return f"line {self.first + line}{f': {self.called}' if self.called else ''}"


def _twice(name: str, first: EntryPlace, second: EntryPlace) -> str:
    where = f"in line {first.first}" if first.first else "further up"
    return f"{second.of('name')}: name = {name!r}: also appears {where}, needs each name once"


def _no_base(
    key: tuple[str, str],
    bases: Mapping[tuple[str, str], str],
    placed: Mapping[tuple[str, str], EntryPlace],
    book: Book,
) -> str | None:
    """Return the complaint that an entry extends an unknown one; None if that entry has complaints
    itself.
    """
    kind, name = key
    chain = [name]
    while (kind, chain[-1]) in bases and chain[-1] not in chain[:-1]:
        chain.append(bases[kind, chain[-1]])
    base, order = chain[1], list(placed)
    if (kind, base) not in placed:
        try:
            find(kind, base, book)
        except ValueError as error:
            return f"extends = {base!r}: {error}"
    if name != chain[-1] and order.index((kind, base)) < order.index(key):
        return None
    if name == chain[-1]:
        is_first = all(order.index(key) <= order.index((kind, other)) for other in chain)
        circle = " extends ".join(map(repr, chain))
        if not is_first:
            return None
        return (
            f"extends = {base!r}: the entries extend each other in a circle ({circle}), needs one"
            " that extends none"
        )
    first = placed[kind, base].first
    where = f"in line {first}" if first else "further down"
    return (
        f"extends = {base!r}: that entry is {where}, needs to come before the entry that extends it"
    )


def _rows_of_csv(
    file: Path, book: Book, catalog: CatalogFiles
) -> Iterator[tuple[EntryPlace, str, Mapping[str, Any]]]:
    for line, kind, row in rows_of_csv(file, book, catalog):
        yield EntryPlace(first=line), kind, row


def _rows_of_toml(file: Path) -> Iterator[tuple[EntryPlace, str, Mapping[str, Any]]]:
    text = read_text(
        file,
        "a TOML text file",
        "a catalog file (`coopt catalog show NAME --toml` prints an entry)",
    )
    for kind, rows in toml_of(text, file.name).items():
        if kind not in KINDS:
            raise InstanceError(
                f"{file.name}: {kind}: is no kind of catalog entry, needs one of {', '.join(KINDS)}"
            )
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise InstanceError(f"{file.name}: {kind}: needs tables that begin with [[{kind}]]")
        places = _places(text, kind)
        for number, row in enumerate(rows):
            first_line, lines = places[number] if len(places) == len(rows) else (0, ())
            yield (
                EntryPlace(
                    first=first_line, lines=lines, called=f"{kind} {row.get('name', number + 1)!r}"
                ),
                kind,
                row,
            )


def _places(text: str, kind: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return the line number of every `[[kind]]`, and the lines up to the next table of another
    entry.
    """
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[", line)]
    ends = [*heads[1:], len(lines)]
    return [
        (head + 1, tuple(lines[head:end]))
        for head, end in zip(heads, ends, strict=False)
        if re.match(rf"\s*\[\[\s*{kind}\s*\]\]", lines[head])
    ]


HEAD = ("kind", "name")
APART = (*HEAD, "source", "part_number")  # columns without figures
CURRENCY = re.compile(r"(?:US)?\$|USD|(?P<other>EUR|GBP|CNY|JPY|[€£¥])")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
COLUMNS_NEED = (
    "needs the columns kind and name, and figures such as usd, or catalog.columns where they are"
    " called otherwise"
)
LEFT_OUT = "\0"  # before the name of a column that is not read
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")  # `1,536`


def rows_of_csv(
    file: Path, book: Book, catalog: CatalogFiles
) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Yield line number, kind and table of each line.

    A line changes the entry named in its column `extends`, or else the entry of its own name.

    Parameters
    ----------
    book
        User entries read so far, which a line can change.
    catalog
        What columns and products of the file are called here.

    Raises
    ------
    InstanceError
        If columns or kinds are unknown, or columns are not separated by commas.
    """
    text = read_text(
        file,
        "a CSV text file",
        "a table of quotes with the columns kind, name and figures such as usd",
    )
    text = text.removeprefix("\ufeff")
    table = csv.DictReader(io.StringIO(text))
    try:
        if catalog.columns:
            table.fieldnames = _our_columns(file, list(table.fieldnames or ()), catalog)
        _check_head(file, text.partition("\n")[0], list(table.fieldnames or ()), catalog)
        rows = [(table.line_num, row) for row in table if _has_text(row)]
    except csv.Error as error:
        raise InstanceError(
            f"{file.name}: line {table.line_num + 1}: {error}, needs shorter cells and closed"
            " quotes"
        ) from None
    if catalog.columns:
        rows = [
            (number, _in_our_words(f"{file.name}: line {number}", row, catalog, book))
            for number, row in rows
            if catalog.names.get(row["name"] or "") != ""
        ]
    for number, row in rows:
        if None in row or None in (row["kind"], row["name"]):
            raise InstanceError(
                f"{file.name}: line {number}: has {'more' if None in row else 'fewer'} cells than"
                " there are columns, needs as many"
                f"{', and quotes around numbers with commas' if None in row else ''}"
            )
        _check_kind(f"{file.name}: line {number}", row["kind"] or "")
    if complaints := [f"{file.name}: {text}" for text in _unknown_columns(row for _, row in rows)]:
        raise InstanceError(complaints)
    for number, row in rows:
        kind, name = row["kind"], row["name"]
        figures = {
            key: _value(_amount(f"{file.name}: line {number}", key, cell))
            for key, cell in row.items()
            if cell and key not in APART
        }
        base = {"extends": name} if name in entries(kind) or name in book[kind] else {}
        part = row.get("part_number")
        origin = ", ".join(filter(None, (row.get("source"), part and f"part number {part}")))
        fields = [key for key in figures if key != "extends"]
        sources = {"sources": [{"fields": fields, "tag": "S", "source": origin}]} if origin else {}
        yield number, kind, {"name": name, **base, **figures, **sources}


def _our_columns(file: Path, head: list[str], catalog: CatalogFiles) -> list[str]:
    """Return what the columns of a vendor are called here; those that `catalog.columns` leaves out
    keep their names behind a sign that no column of ours has.
    """
    names = [name.strip() for name in head]
    if lacking := [repr(name) for name in catalog.columns if name not in names]:
        raise InstanceError(
            f"{file.name}: has no column {both(lacking)}, which catalog.columns names, needs one of"
            f" {', '.join(map(repr, names))}"
        )
    known = {column for form in KINDS.values() for column in (*APART, "extends", *_figures(form))}
    refuse(
        *(
            (
                column not in known,
                f"{file.name}: catalog.columns: {name!r} = {column!r}: coopt has no column"
                f" {column!r} for quotes, needs one such as 'part_number' or 'usd'"
                f"{_closest(column, known)}",
            )
            for name, column in catalog.columns.items()
        )
    )
    ours = [catalog.columns.get(name, f"{LEFT_OUT}{name}") for name in names]
    if "name" not in ours and "part_number" in ours:
        ours[ours.index("part_number")] = "name"
    return ours


def _in_our_words(
    place: str, row: Mapping[str, str | None], catalog: CatalogFiles, book: Book
) -> dict[str, str | None]:
    """Return a line of a vendor with the catalog name of its part and the kind of that."""
    part = row["name"] or ""
    name = catalog.names.get(part, part)
    kinds = [kind for kind in KINDS if name in entries(kind) or name in book[kind]]
    if not row.get("kind") and len(kinds) != 1:
        given = "" if name == part else f" (for {part!r} in catalog.names)"
        raise InstanceError(
            f"{place}: {name!r} is in several lists of the catalog ({both(kinds)}), needs one of"
            " these in a column kind"
            if kinds
            else f"{place}: the catalog has no product {name!r}{given}, needs its catalog name in"
            ' catalog.names ("" leaves the line out), or a column kind'
        )
    kept = {key: cell for key, cell in row.items() if not str(key).startswith(LEFT_OUT)}
    number = {"part_number": part} if part != name else {}
    return {**kept, **number, "name": name, "kind": row.get("kind") or kinds[0]}


def of_no_product(kind: str, row: Mapping[str, Any], book: Book) -> str | None:
    """Return what a line of an unknown name lacks: close names, and the columns of a new
    product.

    None if it changes an entry or has all required columns.
    """
    form = KINDS[kind].model_fields
    lacking = [key for key, field in form.items() if field.is_required() and key not in row]
    if "extends" in row or not lacking:
        return None
    suggestion = _closest(str(row["name"]), (*book[kind], *entries(kind)))
    columns = both(lacking)
    return (
        f"name = {row['name']!r}: the catalog has no {kind} of this name, needs a name from the"
        f" catalog{suggestion}, the column{'s' if len(lacking) > 1 else ''} {columns} for a new"
        " product, or extends with the name of a similar product"
    )


def _check_head(file: Path, head: str, columns: list[str], catalog: CatalogFiles) -> None:
    """Refuse a table with duplicate columns or without the columns kind, which products that are
    known tell of a vendor's table, and name, with the likely reason.
    """
    refuse(
        *(
            (count > 1, f"{file.name}: column {name!r} appears more than once, needs each once")
            for name, count in Counter(columns).items()
        )
    )
    needed = [name for name in HEAD if name != "kind" or not catalog.columns]
    lacking = [name for name in needed if name not in columns]
    if not lacking:
        return
    refuse(
        *(
            (
                {cell.strip().lower() for cell in head.split(sign)} >= set(HEAD),
                f"{file.name}: {signs} separate its columns, needs commas (and 1.5, not 1,5)",
            )
            for sign, signs in SEPARATORS.items()
        )
    )
    gaps = both(f"{name}{_closest(name, columns)}" for name in lacking)
    need = "needs one that catalog.columns calls 'name' or 'part_number'"
    raise InstanceError(
        f"{file.name}: has no column {gaps}, {need if catalog.columns else COLUMNS_NEED}"
    )


def _has_text(row: Mapping[str | None, Any]) -> bool:
    """Whether a line is not blank."""
    return any(str(cell).strip() for cell in row.values() if cell is not None)


def _check_kind(place: str, kind: str) -> None:
    if kind not in KINDS:
        raise InstanceError(
            f"{place}: kind = {kind!r}: needs one of {', '.join(KINDS)}{_closest(kind, KINDS)}"
        )


def _unknown_columns(rows: Iterable[Mapping[str, str | None]]) -> Iterator[str]:
    """Yield the columns with a value in a line whose kind has no such figure."""
    columns, kinds = dict[str, list[str]](), dict[str, list[str]]()
    for row in rows:
        kind = row["kind"] or ""
        columns[kind] = [*APART, "extends", *_figures(KINDS[kind])]
        for key, cell in row.items():
            if cell and key not in columns[kind] and kind not in kinds.setdefault(key, []):
                kinds[key].append(kind)
    for key, (kind, *other_kinds) in (
        (key, kinds_of_key) for key, kinds_of_key in kinds.items() if kinds_of_key
    ):
        suggestion = _closest(key, [column for names in columns.values() for column in names])
        if other_kinds:
            need = f"needs the name of one of their figures, or 'source' for notes{suggestion}"
            yield (
                f"column {key!r}: products of the kinds {both([kind, *other_kinds])} have no such"
                f" figure, {need}"
            )
        else:
            yield (
                f"column {key!r}: products of kind {kind} have no such figure, needs one of"
                f" {', '.join(columns[kind])}{suggestion}"
            )


def _figures(form: type[Entry]) -> list[str]:
    """Return the keys of an entry that fit into a cell, required ones first."""
    keys = [
        key
        for key, field in form.model_fields.items()
        if key not in HEAD and model_in(field.annotation) is None
    ]
    return sorted(keys, key=lambda key: not form.model_fields[key].is_required())


def _closest(name: str, names: Iterable[str]) -> str:
    """Return ` (closest: usd)`, ignoring case; empty if nothing is close."""
    by_lower_case = {choice.lower(): choice for choice in names}
    matches = get_close_matches(name.lower(), by_lower_case, n=3, cutoff=0.6)
    return (
        f" (closest: {', '.join(by_lower_case[choice] for choice in matches)})" if matches else ""
    )


def _amount(place: str, key: str, cell: str) -> str:
    """Return a cell without the sign of its currency, which has to be that of the key.

    Raises
    ------
    InstanceError
        If the sign is that of another currency, or the key holds no money.
    """
    found = CURRENCY.search(cell)
    amount = CURRENCY.sub("", cell, count=1).strip()
    if found is None or not amount[:1].isdigit():
        return cell
    if found["other"] or not key.startswith("usd"):
        need = "USD" if found["other"] else "a number without a currency"
        raise InstanceError(f"{place}: {key} = {cell}: needs {need}")
    return amount


def _value(cell: str) -> int | float | str:
    """Convert a cell to a number if it is one, including `1,536`."""
    digits = cell.replace(",", "") if THOUSANDS.fullmatch(cell) else cell
    for kind in (int, float):
        try:
            return kind(digits)
        except ValueError:
            continue
    return cell
