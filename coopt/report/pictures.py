"""Pictures as files: what can be drawn at all, colours, and writing them whole or not at all."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.instance.texts import write_bytes

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Petroff's ten colours (arXiv 2107.02270), which colour-blind readers tell apart
COLOURS = (
    "#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#94a4a2", "#e76300", "#a96b59", "#717581", "#b9ac70", "#92dadd",
)  # fmt: skip
FORMATS = (".png", ".pdf", ".svg")
FEW_DECADES = 10.0**2.5
INSTALL = "pip install 'coopt[report]'"
NOBODY: dict[str, dict[str, str | None]] = {  # what says when and by which release a picture was drawn
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".svg": {"Date": None, "Creator": "coopt"},
}


def check_picture(path: str, option: str) -> None:
    """Refuse a picture that cannot be made, before the work is done.

    Raises
    ------
    InstanceError
        When matplotlib is not installed or the format is not known.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError(f"{option}: matplotlib is not installed, needs `{INSTALL}`")
    if Path(path).suffix.lower() not in FORMATS:
        raise InstanceError(f"{path}: format of the picture not known, needs a name that ends in {', '.join(FORMATS)}")


def save_picture(figure: Figure, path: str | Path, about: str = "") -> None:
    """Write a picture that is the same each time it is drawn; `about` goes into the data of an SVG."""
    write_bytes(path, picture(figure, Path(path).suffix.lower(), about))


def picture(figure: Figure, ending: str, about: str = "") -> bytes:
    """The content of a picture file of one of the formats."""
    from matplotlib import rc_context

    data = NOBODY[ending] | ({"Description": about} if about and ending == ".svg" else {})
    drawn = BytesIO()
    with rc_context({"svg.hashsalt": "coopt", "svg.fonttype": "path"}):
        figure.savefig(drawn, format=ending[1:], metadata=data)
    return drawn.getvalue()


def plain_ticks(axis: Axis, ends: tuple[float, float]) -> None:
    """Ticks as plain numbers: decades, with 2 and 5 between them where there are few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    few = ends[1] / ends[0] < FEW_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(lambda value, place: np.format_float_positional(value, trim="-"))
    axis.set_minor_formatter(NullFormatter())
