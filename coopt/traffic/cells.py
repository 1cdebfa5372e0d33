"""A demand as a square of few cells, for a picture: GPUs, HB domains or rows of domains against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coopt.perf.mapping import Floats
from coopt.traffic.streams import Demand
from coopt.traffic.volumes import Kind

MOST_GPUS, MOST_CELLS = 512, 256


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Bytes of an iteration from the cell of the row to that of the column.

    Attributes
    ----------
    kinds
        Classes of traffic, in the order of the first axis of `size_bytes`.
    size_bytes
        Shape (kinds, cells, cells).
    end, ends, per_cell
        What is counted along an axis, how many there are, and how many share a cell; the last may hold fewer.
    """

    kinds: tuple[Kind, ...]
    size_bytes: Floats
    end: Literal["GPU", "HB domain"]
    ends: int
    per_cell: int


def cells_of(demand: Demand, *, most_gpus: int = MOST_GPUS, most_cells: int = MOST_CELLS) -> Cells:
    """GPUs by GPUs where they are few, else domains by domains, as many to a cell as it takes."""
    small = demand.ranks <= most_gpus
    ends = demand.ranks if small else demand.ranks // demand.active
    per_cell = 1 if small else -(-ends // most_cells)
    cells, width = -(-ends // per_cell), per_cell * (1 if small else demand.active)
    kinds = tuple(dict.fromkeys(stream.kind for stream in demand.streams))
    sizes = np.zeros((len(kinds), cells, cells))
    for stream in demand.streams:
        place = stream.src // width * cells + stream.dst // width
        sizes[kinds.index(stream.kind)] += np.bincount(place, stream.size_bytes, cells * cells).reshape(cells, cells)
    return Cells(kinds=kinds, size_bytes=sizes, end="GPU" if small else "HB domain", ends=ends, per_cell=per_cell)
