"""Reads an instance from a file or a table, with optional overrides."""

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

LONGEST_INDEX, LONGEST_KEY = 9, 80  # digits of an index, characters shown of a key


def load(
    source: str | Path | Mapping[str, Any], overrides: Mapping[str, Any] | None = None
) -> Instance:
    """Read and check an instance.

    Parameters
    ----------
    source
        A TOML file in the format of `coopt schema`, or its content as a table (for example parsed
        JSON).
    overrides
        Values that replace those of the file, by dotted key (`"network.max_tiers"`,
        `"workload.0.mapping.tp"`); rows of tables can also be written as in reports
        (`"workload[0].mapping.tp"`, `"workload['chat'].gpus"`).

    Returns
    -------
    Instance
        The checked instance, with catalog names resolved.

    Raises
    ------
    InstanceError
        With all complaints: file, key, given value, requirement.

    Examples
    --------
    >>> import coopt
    >>> coopt.load("instances/tiny-64.toml", {"cluster.gpus": 128}).cluster.gpus
    (128,)
    """
    if isinstance(source, Mapping):
        content, origin, folder = source, "instance", Path()
    else:
        content, origin, folder = read_toml(Path(source)), Path(source).name, Path(source).parent
    table = overridden(content, overrides or {}, origin)
    origin = f"{origin} with overrides" if overrides else origin
    try:
        return validated(Instance, table, folder)
    except ValidationError as error:
        names, places = names_in(table), _places(table, folder)
        complaints = (
            with_places(with_names(complaint, names), places)
            for complaint in sentences(error, Instance)
        )
        raise InstanceError(f"{origin}: {complaint}" for complaint in complaints) from None


def instance_of(question: Instance | str | Path) -> Instance:
    """Return an instance, loading it if a file is given."""
    return question if isinstance(question, Instance) else load(question)


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
    if "catalog" not in table:
        return form.model_validate(table)
    try:
        catalog = CatalogFiles.model_validate(table["catalog"])
    except ValidationError:
        return form.model_validate(table)  # raises all complaints
    tables = {key: value for key, value in table.items() if key != "catalog"}
    return form.model_validate(tables, context=own_entries(catalog.files, folder))


def _places(table: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the places of the entries in the catalog files that a table names."""
    try:
        return places_of(CatalogFiles.model_validate(table.get("catalog", {})).files, folder)
    except ValidationError:
        return {}  # which is among the complaints


def overridden(table: Mapping[str, Any], overrides: Mapping[str, Any], file: str) -> dict[str, Any]:
    """Return a copy of a table with the values of dotted keys replaced; InstanceError for a key
    that does not exist.
    """
    try:
        check_numbers(table, file)
        result = copy.deepcopy(dict(table))
        for key, value in overrides.items():
            check_numbers(value, f"{file}: override {key}")
            # names are read again each time, as the override before may have changed one
            _put(result, in_dots(key, names_in(result)), copy.deepcopy(value), file)
    except RecursionError:
        raise InstanceError(f"{file}: nested too deeply, needs flat tables") from None
    return result


def _put(table: dict[str, Any], key: str, value: Any, file: str) -> None:
    """Set `a.0.b` in nested tables and lists; a single table can be addressed with or without the
    index 0.
    """
    *parents, final_key = key.split(".")
    node: Any = table
    for part in parents:
        if part != "0" or node is table or not isinstance(node, dict):
            node = _enter(node, part, key, file)
    if isinstance(node, list):
        node = _only(node, key, file) if not _is_index(final_key) else node
    if isinstance(node, list):
        _check_index(node, final_key, key, file)
        node[int(final_key)] = value
    elif isinstance(node, dict):
        node[final_key] = value
    else:
        raise InstanceError(
            f"{file}: override {key}: {final_key!r} lies below a plain value, needs the key of a"
            " table"
        )


def _enter(node: Any, part: str, key: str, file: str) -> Any:
    if isinstance(node, list):
        if _is_index(part):
            _check_index(node, part, key, file)
            return node[int(part)]
        node = _only(node, key, file)
    if not isinstance(node, dict):
        raise InstanceError(
            f"{file}: override {key}: {part!r} lies below a plain value, needs the key of a table"
        )
    return node.setdefault(part, {})


def _is_index(text: str) -> bool:
    """Whether a text is an integer index; negative ones are refused later."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit()


def _only(rows: Sequence[Any], key: str, file: str) -> Any:
    if len(rows) != 1:
        need = "needs an index or a name, such as workload.0 or workload['NAME']"
        raise InstanceError(f"{file}: override {key}: there are {len(rows)} tables, {need}")
    return rows[0]


def _check_index(rows: Sequence[Any], part: str, key: str, file: str) -> None:
    if not _is_index(part) or len(part) > LONGEST_INDEX or part[0] == "-" or int(part) >= len(rows):
        key, part = (
            text if len(text) <= LONGEST_KEY else f"{text[:LONGEST_KEY]}..." for text in (key, part)
        )
        raise InstanceError(
            f"{file}: override {key}: index {part} is not there, needs 0 to {len(rows) - 1}"
        )
