"""A front as files of one folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.plan.front import Front
from coopt.report.fronts.page import front_page
from coopt.report.fronts.picture import draw_front
from coopt.report.fronts.sheet import front_csv
from coopt.report.pictures import INSTALL

NAMES = ("front.json", "front.csv", "front.png", "front.svg", "front.html")
NEEDED = ("jinja2", "matplotlib", "plotly")


def check_packages(option: str) -> None:
    """Refuse files that cannot be made, before the work is done.

    Raises
    ------
    InstanceError
        When a package that draws is not installed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        is_ = "are" if len(missing) > 1 else "is"
        raise InstanceError(f"{option}: {' and '.join(missing)} {is_} not installed, needs `{INSTALL}`")


def front_json(front: Front) -> str:
    """The front as one JSON document."""
    return front.model_dump_json(by_alias=True, indent=2)


def write_front(front: Front, instance: Instance, folder: str | Path) -> None:
    """Write every file of `NAMES` into a folder, each whole or not at all.

    Raises
    ------
    InstanceError
        When one cannot be written.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError(f"{folder}: cannot be made ({error.strerror}), needs a place for a folder") from None
    write_text(place / "front.json", front_json(front) + "\n")
    write_text(place / "front.csv", front_csv(front))
    for name in ("front.png", "front.svg"):
        draw_front(front, instance, str(place / name))
    write_text(place / "front.html", front_page(front, instance))
