"""A suite as it is kept with its results: the file's content and the published figures it names."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from pydantic import ValidationError

from coopt.instance.complaints import sentences
from coopt.instance.errors import InstanceError
from coopt.instance.files import read_toml
from coopt.instance.texts import read_text
from coopt.plan.record import Record
from coopt.suite.form import FigureView, Suite, View

PublishedRow = dict[str, float | str | None]


class Study(Record):
    """All that a report of the results needs beside them; `published` has the rows of each view by its name."""

    suite: Suite
    published: dict[str, tuple[PublishedRow, ...]]


def read_study(path: str | Path) -> Study:
    """Read a suite file and the published figures it names; InstanceError holds every complaint."""
    file = Path(path)
    table = read_toml(file, "a suite (docs/suites.md says what stands in one)")
    try:
        suite = Suite.model_validate(table)
    except ValidationError as error:
        raise InstanceError(f"{file.name}: {sentence}" for sentence in sentences(error, Suite)) from None
    views = [view for view in (*suite.table, *suite.figure) if view.published is not None]
    return Study(suite=suite, published={view.name: _published(file.parent, view) for view in views})


def _published(folder: Path, view: View) -> tuple[PublishedRow, ...]:
    """The rows of a CSV: numbers where they can be, None where empty."""
    assert view.published is not None
    file = folder / view.published
    reader = csv.DictReader(StringIO(read_text(file, "a CSV file", "the published figures of a view")))
    known = ["source"]
    if isinstance(view, FigureView):
        known += ["series", view.x, view.told, *([view.group] if view.group else [])]
    missing = [name for name in dict.fromkeys(known) if name not in (reader.fieldnames or ())]
    if missing:
        raise InstanceError(f"{file.name}: no column {', '.join(missing)}, needs one (view {view.name!r} names it)")
    return tuple({name: _cell(text) for name, text in row.items() if name is not None} for row in reader)


def _cell(text: str | None) -> float | str | None:
    try:
        return float(text) if text else None
    except ValueError:
        return text
