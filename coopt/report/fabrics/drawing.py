"""What a drawing of a network holds; places are in units of the distance between two GPUs, y upwards."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Literal

DIGITS = 3  # of a place that count


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A GPU (a disc), a switch or an HB domain (a box) around (x, y); `colour` names an entry of `Drawing.legend`."""

    name: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    label: str
    colour: str


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Around parts that belong together: a box (`domain`), a box of dashes with its name inside (`pod`), or a disc."""

    x: float
    y: float
    width: float
    height: float
    label: str
    kind: Literal["domain", "pod", "group"]


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """`links` parallel links from one place to another; `bend` is how far their middle lies to the left of the way."""

    start: tuple[float, float]
    end: tuple[float, float]
    links: int
    colour: str
    bend: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Everything one sees. `legend` names colours in words, `rows` the levels at their height."""

    title: str
    parts: tuple[Shape, ...]
    frames: tuple[Frame, ...]
    lines: tuple[Stroke, ...]
    legend: dict[str, str]
    rows: tuple[tuple[float, str], ...] = ()

    @property
    def fingerprint(self) -> str:
        """A hash of all of it: a picture that carries the same one shows the same."""
        table = json.dumps(_rounded(asdict(self)), sort_keys=True)
        return "sha256:" + sha256(table.encode("utf-8")).hexdigest()


def _rounded(part: object) -> object:
    if isinstance(part, float):
        return round(part, DIGITS) + 0.0
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    return [_rounded(inner) for inner in part] if isinstance(part, list | tuple) else part
