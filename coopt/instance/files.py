"""Read an instance from a file or a table, with overrides where the caller has some."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError, in_dots, names_in, with_names
from coopt.instance.quotes import CatalogFiles, own_entries, places_of, with_places
from coopt.instance.schema import Instance
from coopt.instance.texts import check_numbers, read_toml

T = TypeVar("T", bound=BaseModel)

LONGEST_INDEX, LONGEST_KEY = 9, 80  # digits that are counted with, characters that are shown


def load(source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None) -> Instance:
    """Read and check an instance.

    Parameters
    ----------
    source
        A TOML file in the format of `coopt schema`, or its content as a table, such as a JSON document holds.
    overrides
        Values that replace those of the file, by dotted key (`"network.max_tiers"`, `"workload.0.mapping.tp"`); a row
        of a table may also be written as answers write it (`"workload[0].mapping.tp"`, `"workload['chat'].gpus"`).

    Raises
    ------
    InstanceError
        With every complaint found: file, key, value given, what is needed.

    Examples
    --------
    >>> import coopt
    >>> coopt.load("instances/tiny-64.toml", {"cluster.gpus": 128}).cluster.gpus
    (128,)
    """
    if isinstance(source, Mapping):
        given, where, folder = source, "instance", Path()
    else:
        given, where, folder = read_toml(Path(source)), Path(source).name, Path(source).parent
    table = overridden(given, overrides or {}, where)
    where = f"{where} with overrides" if overrides else where
    try:
        return validated(Instance, table, folder)
    except ValidationError as error:
        names, places = names_in(table), _places(table, folder)
        told = (with_places(with_names(one, names), places) for one in sentences(error, Instance))
        raise InstanceError(f"{where}: {one}" for one in told) from None


def instance_of(question: Instance | str | Path) -> Instance:
    """An instance, or the one of a file."""
    return question if isinstance(question, Instance) else load(question)


def validated(form: type[T], table: Mapping[str, Any], folder: Path) -> T:
    """A table in the form of a file that may name catalog files; the answer holds what they say and not their names.

    Parameters
    ----------
    folder
        Where the file stands.

    Raises
    ------
    ValidationError
        When the table is wrong.
    InstanceError
        When a catalog file is.
    """
    if "catalog" not in table:
        return form.model_validate(table)
    try:
        listed = CatalogFiles.model_validate(table["catalog"])
    except ValidationError:
        return form.model_validate(table)  # which says what is wrong, here and elsewhere
    rest = {key: value for key, value in table.items() if key != "catalog"}
    return form.model_validate(rest, context=own_entries(listed.files, folder))


def _places(table: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Where the entries of the catalog files stand that a table names."""
    try:
        return places_of(CatalogFiles.model_validate(table.get("catalog", {})).files, folder)
    except ValidationError:
        return {}  # which is among the complaints


def overridden(table: Mapping[str, Any], overrides: Mapping[str, Any], file: str) -> dict[str, Any]:
    """A copy of a table with the values of dotted keys replaced; InstanceError where a key leads nowhere."""
    try:
        check_numbers(table, file)
        changed = copy.deepcopy(dict(table))
        for key, value in overrides.items():
            check_numbers(value, f"{file}: override {key}")
            _put(changed, in_dots(key, names_in(changed)), copy.deepcopy(value), file)
    except RecursionError:
        raise InstanceError(f"{file}: nested too deeply, needs flat tables") from None
    return changed


def _put(table: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Set `a.0.b` in nested tables and lists; one table may be entered with the index 0 or without, listed or not."""
    *parents, last = key.split(".")
    here: Any = table
    for part in parents:
        if part != "0" or here is table or not isinstance(here, dict):
            here = _enter(here, part, key, file)
    if isinstance(here, list):
        here = _only(here, key, file) if not _is_index(last) else here
    if isinstance(here, list):
        _check_index(here, last, key, file)
        here[int(last)] = value
    elif isinstance(here, dict):
        here[last] = value
    else:
        raise InstanceError(f"{file}: override {key}: {last!r} lies below a plain value, needs the key of a table")


def _enter(here: Any, part: str, key: str, file: str) -> Any:
    if isinstance(here, list):
        if _is_index(part):
            _check_index(here, part, key, file)
            return here[int(part)]
        here = _only(here, key, file)
    if not isinstance(here, dict):
        raise InstanceError(f"{file}: override {key}: {part!r} lies below a plain value, needs the key of a table")
    return here.setdefault(part, {})


def _is_index(text: str) -> bool:
    """Whether a text counts from either end; nothing is counted from the last one, which is refused."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _only(rows: Sequence[Any], key: str, file: str) -> Any:
    if len(rows) != 1:
        needed = "needs an index or a name, such as workload.0 or workload['NAME']"
        raise InstanceError(f"{file}: override {key}: there are {len(rows)} tables, {needed}")
    return rows[0]


def _check_index(rows: Sequence[Any], part: str, key: str, file: str) -> None:
    if not _is_index(part) or len(part) > LONGEST_INDEX or part[0] == "-" or int(part) >= len(rows):
        key, part = (text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}..." for text in (key, part))
        raise InstanceError(f"{file}: override {key}: index {part} is not there, needs 0 to {len(rows) - 1}")
