"""The format of suite files: grids of cases, tables and figures of results, and published data to
compare.

Every combination of a grid is a case, with a resolved instance and an identity.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from io import StringIO
from itertools import product
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from coopt._version import __version__
from coopt.instance.base import Name, Table, one_or_many
from coopt.instance.catalog import refusing, sentences
from coopt.instance.quotes import validated
from coopt.instance.schema import Instance, overridden, with_standing
from coopt.instance.texts import InstanceError, alternatives, read_text, read_toml, refuse
from coopt.plan.parts import Record
from coopt.suite.table import COLUMNS

Action = Literal["solve", "fastest"]
Label = str | int | float | bool
PublishedRow = dict[str, float | str | None]

LIKENESS = 20  # digits of an identity: 80 bits


def _plain(word: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", word):
        raise ValueError("needs lowercase letters, digits, - and _, beginning with a letter")
    return word


Word = Annotated[str, AfterValidator(_plain)]


class LinkedValue(Table):
    """A value of an axis that stands for several changes, with a label."""

    label: Label
    set: dict[str, Any]


def column_of(axis: str) -> str:
    """Return the column name of an axis: `network_max_tiers` for `network.max_tiers`."""
    return re.sub(r"\W+", "_", axis).strip("_").lower()


class CaseGrid(Table):
    """A grid of cases: every instance with every combination of the values in `vary`."""

    name: Word
    instances: Annotated[
        tuple[str, ...],
        one_or_many,
        Field(min_length=1, description="TOML files, from the suite's"),
    ]
    action: Annotated[
        Action, Field(description="the cheapest design, or the fastest whatever it costs")
    ] = "solve"
    set: Annotated[
        dict[str, Any],
        Field(default_factory=dict, description="values that all cases share, by dotted key"),
    ]
    vary: Annotated[
        dict[str, Annotated[list[Any], Field(min_length=1)]],
        Field(
            default_factory=dict,
            description=(
                "values of each dotted key, or of an axis of any name with tables of label and set"
            ),
        ),
    ]

    @model_validator(mode="after")
    def _has_columns(self) -> CaseGrid:
        axes_of_columns: dict[str, str] = {}
        for axis in self.vary:
            column = column_of(axis)
            refuse(
                (
                    not column or column[0].isdigit(),
                    f"vary.{axis!r}: needs a name that begins with a letter",
                ),
                (
                    column in COLUMNS,
                    f"vary.{axis}: {column!r} is a column of every result, needs another name",
                ),
                (
                    column in axes_of_columns,
                    f"vary.{axis}: writes the same column as {axes_of_columns.get(column)!r},"
                    " needs another name",
                ),
            )
            axes_of_columns[column] = axis
        return self


class View(Table):
    """Common fields of tables and figures."""

    name: Word
    title: Name
    grid: Annotated[str, Field(description="the grid whose cases are shown")]
    where: Annotated[
        dict[str, Label],
        Field(default_factory=dict, description="only cases with these values in these columns"),
    ]
    published: Annotated[
        str | None,
        Field(
            description="CSV with columns of the same names, a source, and for pictures a series"
        ),
    ] = None


class TableView(View):
    """A table of result columns next to published columns of the same name."""

    columns: Annotated[tuple[str, ...], one_or_many, Field(min_length=1)]


class FigureView(View):
    """A plot of one column over another, with one line per value of `group`."""

    x: str
    y: str
    group: str | None = None
    group_label: Annotated[
        str, Field(description="what stands before the value of a group in the legend")
    ] = ""
    log_x: bool = False
    x_label: str = ""
    y_label: str = ""
    share_of: Annotated[
        dict[str, Label],
        Field(
            default_factory=dict,
            description=(
                "y becomes that of the case with these values, all other axes equal, over y"
            ),
        ),
    ]
    knee: Annotated[
        bool, Field(description="mark the point of each line furthest from the chord of its ends")
    ] = False

    @property
    def published_column(self) -> str:
        """The published column on the y axis."""
        return "share" if self.share_of else self.y


class Suite(Table):
    """A set of cases, and the views of their results."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: Word
    description: str = ""
    grid: Annotated[tuple[CaseGrid, ...], one_or_many, Field(min_length=1)]
    table: Annotated[tuple[TableView, ...], one_or_many] = ()
    figure: Annotated[tuple[FigureView, ...], one_or_many] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Suite:
        parts = [*(("grid", part.name) for part in self.grid)]
        parts += [("table, figure", view.name) for view in (*self.table, *self.figure)]
        complaints = [
            f"{kind}: name {name!r} appears more than once, needs different names"
            for (kind, name), count in sorted(Counter(parts).items())
            if count > 1
        ]
        for view in (*self.table, *self.figure):
            complaints += self._strangers(view)
        if complaints:
            raise ValueError("\n".join(complaints))
        return self

    def _strangers(self, view: View) -> list[str]:
        """Return complaints about columns named in a view that no case of its grid has."""
        grids = {grid.name: grid for grid in self.grid}
        if view.grid not in grids:
            names = ", ".join(grids)
            return [f"{view.name}: grid = {view.grid!r}: no such grid, needs one of {names}"]
        axes = [column_of(axis) for axis in grids[view.grid].vary]
        names = ", ".join(axes)
        an_axis = f"an axis ({names}) or " if axes else ""
        return [
            *(
                f"{view.name}: column {column!r} does not exist, needs {an_axis}a column of"
                " docs/suites.md"
                for column in columns_named(view)
                if column not in (*axes, *COLUMNS)
            ),
            *(
                f"{view.name}: share_of.{key}: is no axis of the grid, needs"
                f" {f'one of {names}' if axes else 'a grid with vary'}"
                for key in getattr(view, "share_of", {})
                if key not in axes
            ),
        ]


def columns_named(view: View) -> list[str]:
    """Return every result column that a view names."""
    if isinstance(view, FigureView):
        return [*view.where, view.x, view.y, *([view.group] if view.group else [])]
    return [*view.where, *(view.columns if isinstance(view, TableView) else ())]


class Study(Record):
    """A suite with the data for a report; `published` holds the published rows of each view by its
    name.
    """

    suite: Suite
    published: dict[str, tuple[PublishedRow, ...]]


def read_study(path: str | Path) -> Study:
    """Read a suite file and the published data it names; InstanceError holds all complaints."""
    file = Path(path)
    table = read_toml(file, "a suite (docs/suites.md describes the form)")
    with refusing(file.name, Suite):
        suite = Suite.model_validate(table)
    views = [view for view in (*suite.table, *suite.figure) if view.published is not None]
    return Study(
        suite=suite, published={view.name: _published(file.parent, view) for view in views}
    )


def _published(folder: Path, view: View) -> tuple[PublishedRow, ...]:
    """Read rows of a CSV file: numbers where possible, None for empty cells."""
    assert view.published is not None
    file = folder / view.published
    reader = csv.DictReader(
        StringIO(read_text(file, "a CSV file", "the published figures of a view"))
    )
    needed_columns: list[str | None] = ["source"]
    if isinstance(view, FigureView):
        needed_columns += ["series", view.x, view.published_column, view.group]
    present = (None, *(reader.fieldnames or ()))
    absent = [str(name) for name in dict.fromkeys(needed_columns) if name not in present]
    if absent:
        needed = "it" if len(absent) == 1 else "all"
        raise InstanceError(
            f"{file.name}: has no column {alternatives(absent)}, needs {needed} for view"
            f" {view.name!r}"
        )
    return tuple(
        {name: _cell(text) for name, text in row.items() if name is not None} for row in reader
    )


def _cell(text: str | None) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question of a suite.

    `axes` holds the value of each axis by column; `question` is the resolved instance as JSON,
    empty if `refusal` states why it is invalid. Cases with the same question have the same
    `case_id`.
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
    """Return every case in the order of the file.

    Parameters
    ----------
    folder
        Folder of the suite file, which instance paths are relative to.

    Raises
    ------
    InstanceError
        If a key does not exist, or a grid has no valid case. Other invalid combinations become
        cases with a refusal.
    """
    cases: list[Case] = []
    complaints: list[str] = []
    for grid in suite.grid:
        try:
            grid_cases = list(_of_grid(grid, folder))
        except InstanceError as error:
            complaints += [f"grid {grid.name!r}: {complaint}" for complaint in error.complaints]
            continue
        if all(case.refusal for case in grid_cases):
            complaints.append(
                f"grid {grid.name!r}: every case is refused; the first refusal is:"
                f" {grid_cases[0].refusal[0]}"
            )
        cases += grid_cases
    if complaints:
        raise InstanceError(complaints)
    return tuple(cases)


def _of_grid(grid: CaseGrid, folder: Path) -> Iterator[Case]:
    axes = [[_choice(axis, value) for value in values] for axis, values in grid.vary.items()]
    for name in grid.instances:
        table = read_toml(folder / name)
        for combination in product(*axes):
            overrides = reduce(or_, (changes for _, changes in combination), grid.set)
            columns = map(column_of, grid.vary)
            labels = dict(zip(columns, (label for label, _ in combination), strict=True))
            yield _case(grid, table, folder / name, labels, overrides)


def _choice(axis: str, value: Any) -> tuple[Label, dict[str, Any]]:
    """Return the label of a value of an axis, and the keys that it changes with their values."""
    if isinstance(value, dict) and value.keys() & {"label", "set"}:
        with refusing(f"vary.{axis}", LinkedValue):
            linked_value = LinkedValue.model_validate(value)
        return linked_value.label, linked_value.set
    label = value if isinstance(value, str | int | float | bool) else json.dumps(value, default=str)
    return label, {axis: value}


def _case(
    grid: CaseGrid,
    table: Mapping[str, Any],
    place: Path,
    axes: Mapping[str, Label],
    overrides: Mapping[str, Any],
) -> Case:
    file = place.name
    changed_table = with_standing(overridden(table, overrides, file), place.parent, file)
    name = str(table.get("name", file))
    parts: dict[str, Any] = {
        "grid": grid.name,
        "action": grid.action,
        "axes": axes,
        "overrides": overrides,
    }
    try:
        instance = one_thread(validated(Instance, changed_table, place.parent))
    except ValidationError as error:
        refusal = tuple(f"{file}: {text}" for text in sentences(error, Instance))
        # an unknown key is an error of the suite, not a case
        if any(item["type"] == "extra_forbidden" for item in error.errors(include_url=False)):
            raise InstanceError(refusal) from None
        identity = _identity(grid.action, json.dumps(changed_table, sort_keys=True, default=str))
        return Case(case_id=identity, instance=name, question="", refusal=refusal, **parts)
    question = instance.model_dump_json(by_alias=True)
    return Case(
        case_id=_identity(grid.action, question), instance=instance.name, question=question, **parts
    )


def one_thread(instance: Instance) -> Instance:
    """Return the instance with a single solver thread, as cases run in parallel."""
    return instance.model_copy(update={"solver": instance.solver.model_copy(update={"threads": 1})})


def _identity(action: Action, question: str) -> str:
    # another version may answer the same question otherwise
    return hashlib.sha256(f"{__version__}\n{action}\n{question}".encode()).hexdigest()[:LIKENESS]
