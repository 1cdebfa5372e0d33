"""From grids to cases: every combination, each with its instance resolved and an identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coopt._version import __version__
from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.files import overridden, validated
from coopt.instance.schema import Instance
from coopt.instance.texts import read_toml
from coopt.suite.form import Action, CaseGrid, Label, LinkedValue, Suite, column_of

LIKENESS = 20  # digits of an identity: 80 bits


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question of a suite.

    `axes` has the value of each axis by column; `question` is the resolved instance as JSON, empty where `refusal`
    says why there is none. Cases that ask the same have the same `case_id`.
    """

    case_id: str
    grid: str
    instance: str
    action: Action
    axes: Mapping[str, Label]
    overrides: Mapping[str, Any]
    question: str
    refusal: tuple[str, ...] = ()


def cases_of(suite: Suite, folder: Path) -> tuple[Case, ...]:
    """Every case in the order of the file.

    Parameters
    ----------
    folder
        Where the suite file lies: its instances are named from there.

    Raises
    ------
    InstanceError
        When a key leads nowhere, or a grid has no case that can be asked. A combination that cannot be asked becomes a
        case with a refusal.
    """
    found: list[Case] = []
    complaints: list[str] = []
    for grid in suite.grid:
        try:
            some = list(_of_grid(grid, folder))
        except InstanceError as error:
            complaints += [f"grid {grid.name!r}: {complaint}" for complaint in error.complaints]
            continue
        if all(case.refusal for case in some):
            complaints.append(f"grid {grid.name!r}: every case is refused; the first: {some[0].refusal[0]}")
        found += some
    if complaints:
        raise InstanceError(complaints)
    return tuple(found)


def _of_grid(grid: CaseGrid, folder: Path) -> Iterator[Case]:
    axes = [[_choice(axis, value) for value in values] for axis, values in grid.vary.items()]
    for name in grid.instances:
        table = read_toml(folder / name)
        for chosen in product(*axes):
            overrides = dict(grid.set)
            for _, changes in chosen:
                overrides |= changes
            labels = {column_of(axis): label for axis, (label, _) in zip(grid.vary, chosen, strict=True)}
            yield _case(grid, table, folder / name, labels, overrides)


def _choice(axis: str, value: Any) -> tuple[Label, dict[str, Any]]:
    """The label of one value of an axis, and what it changes."""
    if isinstance(value, dict) and value.keys() == {"label", "set"}:
        try:
            linked = LinkedValue.model_validate(value)
        except ValidationError as error:
            raise InstanceError(f"vary.{axis}: {text}" for text in sentences(error, LinkedValue)) from None
        return linked.label, linked.set
    shown = value if isinstance(value, str | int | float | bool) else json.dumps(value, default=str)
    return shown, {axis: value}


def _case(
    grid: CaseGrid, table: Mapping[str, Any], place: Path, axes: Mapping[str, Label], overrides: Mapping[str, Any]
) -> Case:
    file = place.name
    changed = overridden(table, overrides, file)
    name = str(table.get("name", file))
    parts: dict[str, Any] = {"grid": grid.name, "action": grid.action, "axes": axes, "overrides": overrides}
    try:
        instance = one_thread(validated(Instance, changed, place.parent))
    except ValidationError as error:
        refusal = tuple(f"{file}: {text}" for text in sentences(error, Instance))
        if any(item["type"] == "extra_forbidden" for item in error.errors(include_url=False)):
            raise InstanceError(refusal) from None
        identity = _identity(grid.action, json.dumps(changed, sort_keys=True, default=str))
        return Case(case_id=identity, instance=name, question="", refusal=refusal, **parts)
    question = instance.model_dump_json(by_alias=True)
    return Case(case_id=_identity(grid.action, question), instance=instance.name, question=question, **parts)


def one_thread(instance: Instance) -> Instance:
    """The instance as a suite asks it: cases run side by side, so each has one solver thread."""
    return instance.model_copy(update={"solver": instance.solver.model_copy(update={"threads": 1})})


def _identity(action: Action, question: str) -> str:
    return hashlib.sha256(f"{__version__}\n{action}\n{question}".encode()).hexdigest()[:LIKENESS]
