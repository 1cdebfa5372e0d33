"""Questions as texts that a page sends: read without touching a file of this machine, and edited in
place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

from coopt.instance.catalog import Book, key_path, refusing, sentences
from coopt.instance.quotes import CatalogFiles, with_places
from coopt.instance.schema import Chosen, Instance, choices_of, domains_of
from coopt.instance.texts import InstanceError, names_in, toml_of, with_names

NAME = "question"
"""How complaints call the text, as they call a file by its name."""

BUILT_IN = "built-in"
LAST_ANSWER = "any answer shown is the last one received"
MOST_KEYS = 20_000
"""Keys of a question, in all its tables."""

ROW = r"""\[(?:\d+|'[^']*'|"[^"]*")\]"""
PLACE = re.compile(rf"^{NAME}: (\w+(?:{ROW})?(?:\.\w+(?:{ROW})?)*)(?= = |: )")
STEP = re.compile(r"""(\w+)|\[(\d+)\]|\[(['"])(.*?)\3\]""")

Path = tuple[str | int, ...]
"""Keys and places in lists that lead to a value."""


@dataclass(frozen=True, kw_only=True)
class OwnCatalog:
    """What the catalog files of the question that was served at the start hold; no other file is
    ever read.
    """

    files: tuple[str, ...] = ()
    book: Book = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)


def question_of(text: str, catalog: OwnCatalog) -> Instance:
    """The question that a text asks.

    Raises
    ------
    InstanceError
        With every complaint; also where the text names a file of this machine or another program to
        search with.
    """
    table = toml_of(text, NAME)
    if (keys := _keys_in(table)) > MOST_KEYS:
        raise InstanceError(f"{NAME}: holds {keys:,} keys, needs at most {MOST_KEYS:,}")
    _refuse_files(table, catalog)
    tables = {key: value for key, value in table.items() if key != "catalog"}
    try:
        question = Instance.model_validate(
            tables, context=catalog.book if "catalog" in table else None
        )
    except ValidationError as error:
        names, places = names_in(table), catalog.places if "catalog" in table else {}
        texts = (
            with_places(with_names(sentence, names), places)
            for sentence in sentences(error, Instance)
        )
        raise InstanceError(f"{NAME}: {sentence}" for sentence in texts) from None
    if question.solver.name != BUILT_IN:
        raise InstanceError(
            f"{NAME}: solver.name = {question.solver.name!r}: the page starts no other program,"
            f" needs {BUILT_IN!r}"
        )
    return question


def _keys_in(value: Any) -> int:
    """The keys of a table, and of all tables in it."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys_in, value.values()))
    return sum(map(_keys_in, value)) if isinstance(value, list) else 0


def _refuse_files(table: Mapping[str, Any], catalog: OwnCatalog) -> None:
    if "catalog" not in table:
        return
    with refusing(f"{NAME}: catalog", CatalogFiles):
        catalog_files = CatalogFiles.model_validate(table["catalog"])
    if catalog_files.files and catalog_files.files != catalog.files:
        raise InstanceError(
            f"{NAME}: catalog.files = {list(catalog_files.files)}: the page cannot read these"
            " files, needs the entries as tables, or `coopt serve` with a question that names them"
        )


MOST_PICKS = 60
"""Choices that the page offers."""


def picks_of(text: str, question: Instance, choice: Chosen) -> list[dict[str, Any]]:
    """Choices that a question leaves open: what each is called, whether it is the chosen one, and
    what writes it down.

    Nothing where the question leaves none; the first ones, with the chosen one, where there are
    many.
    """
    choices = list(choices_of(question))
    if choices == [Chosen()]:
        return []
    offered = [
        *choices[:MOST_PICKS],
        *(candidate for candidate in choices[MOST_PICKS:] if candidate == choice),
    ]
    table = json_value(toml_of(text, NAME))
    return [
        {
            "name": candidate.text,
            "chosen": candidate == choice,
            "changes": [*_changes(table, question, candidate)],
        }
        for candidate in offered
    ]


def _changes(
    table: Mapping[str, Any], question: Instance, choice: Chosen
) -> Iterator[tuple[Path, Any]]:
    """What to write in place of lists: a kind of GPU with the HB domains that are sold with it,
    batches and knobs.
    """
    if choice.gpu is not None:
        place = [entry.name for entry in question.cluster.generations].index(choice.gpu)
        sold = {entry.name for entry in domains_of(question, choice.gpu)}
        domain_tables = table["network"]["hb_domains"]
        domains = domain_tables if isinstance(domain_tables, list) else [domain_tables]
        names = [entry.name for entry in question.network.hb_domains]
        yield ("cluster", "gpu"), table["cluster"]["gpu"][place]
        sold_domains = [domain for domain, name in zip(domains, names, strict=True) if name in sold]
        yield ("network", "hb_domains"), sold_domains
    for w, workload in enumerate(question.workload):
        if workload.name in choice.global_batch:
            yield ("workload", w, "global_batch"), choice.global_batch[workload.name]
        for key, value in choice.options.get(workload.name, {}).items():
            yield ("workload", w, "options", key), value


def place_of(sentence: str, names: Mapping[str, Sequence[str]]) -> list[str | int] | None:
    """The keys that lead to what a complaint is about; None where it is about several things, or
    about the text.

    Parameters
    ----------
    names
        What complaints call the rows of tables, by the key of each table.
    """
    match = PLACE.match(sentence)
    if match is None:
        return None
    steps: list[str | int] = []
    for key, number, quote, name in STEP.findall(match[1]):
        rows = names.get(key_path(tuple(steps)), ())
        if quote and name not in rows:
            return None
        steps.append(key or (rows.index(name) if quote else int(number)))
    return steps


def edited(text: str, changes: Iterable[tuple[Path, Any]]) -> str:
    """A text with values changed, where all else stays as it was written.

    Parameters
    ----------
    changes
        Where, and the value that is put there; None takes it away. One place after the last of a
        list adds to it.

    Raises
    ------
    InstanceError
        When the text is not TOML, a place is not in it, or a value holds None.
    """
    import tomlkit

    toml_of(text, NAME)
    document = tomlkit.parse(text)
    for path, value in changes:
        if not path:
            raise InstanceError(f"{NAME}: a change names no key, needs one")
        try:
            _put(document, path, value)
        except tomlkit.exceptions.ConvertError:
            raise InstanceError(
                f"{NAME}: {'.'.join(map(str, path))}: contains null, needs a TOML value"
            ) from None
    return tomlkit.dumps(document)


def _put(document: Any, path: Path, value: Any) -> None:
    import tomlkit

    node, last_step = document, path[-1]
    for step, following in pairwise(path):
        if isinstance(step, int) and isinstance(node, dict):
            continue  # a list of one that is written as a table
        if isinstance(node, dict) and step not in node:
            if value is None:
                return
            node[step] = tomlkit.aot() if isinstance(following, int) else _apart(tomlkit.table())
        node = _inside(node, step, path)
    if isinstance(last_step, int) and isinstance(node, dict):
        if last_step == 0 and isinstance(value, Mapping):
            node.update(value)
            return
        _listed(document, path[:-1])
        return _put(document, path, value)
    if isinstance(node, list):
        _put_entry(node, last_step, value, path)
    elif not isinstance(node, dict):
        raise _nowhere(path)
    elif value is None:
        node.pop(last_step, None)
    else:
        _set(node, str(last_step), value)


DAYS = ("by", "start")
"""Keys whose values are days, which JSON holds as texts."""


def _set(table: Any, key: str, value: Any) -> None:
    """Replace a value and keep the comment behind it."""
    import tomlkit

    if key in DAYS and isinstance(value, str):
        with suppress(ValueError):  # what is no day is refused as it is typed
            value = date.fromisoformat(value)
    item = tomlkit.item(value)
    if isinstance(value, Mapping) and key in table and not isinstance(table[key], Mapping):
        item = tomlkit.inline_table()  # a range in place of a number stays on its line
        item.update(value)
    if key in table and hasattr(table[key], "trivia") and not isinstance(item, tomlkit.items.Table):
        item.trivia.comment_ws, item.trivia.comment = (
            table[key].trivia.comment_ws,
            table[key].trivia.comment,
        )
    table[key] = _apart(item)


def _put_entry(rows: Any, place: str | int, value: Any, path: Path) -> None:
    import tomlkit

    tables = isinstance(rows, tomlkit.items.AoT) and value is not None
    if (
        not isinstance(place, int)
        or place > len(rows)
        or (tables and not isinstance(value, Mapping))
    ):
        raise _nowhere(path)
    if value is None:
        if place < len(rows):
            del rows[place]
    elif place == len(rows):
        rows.append(_apart(tomlkit.item(value)))
    else:
        rows[place] = value


def _apart(item: Any) -> Any:
    """A table with an empty line before it; any other value as it is."""
    import tomlkit

    if isinstance(item, tomlkit.items.Table):
        item.trivia.indent = "\n"
    return item


def _listed(document: Any, path: Path) -> None:
    """Write a list of one table, which was written as a table, as a list."""
    import tomlkit

    node = document
    for step in path[:-1]:
        node = _inside(node, step, path)
    rows = tomlkit.aot()
    rows.append(node[path[-1]])
    node[path[-1]] = rows


def _inside(node: Any, step: str | int, path: Path) -> Any:
    try:
        return node[step]
    except (KeyError, IndexError, TypeError):
        raise _nowhere(path) from None


def _nowhere(path: Path) -> InstanceError:
    return InstanceError(
        f"{NAME}: {'.'.join(map(str, path))}: no place for a value, needs a key, or the next"
        " index of a list at most, and a table in a list of tables"
    )


def json_value(value: Any) -> Any:
    """A value of TOML as JSON can hold it: dates, infinities and NaN as their texts."""
    if isinstance(value, Mapping):
        return {str(key): json_value(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [json_value(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
