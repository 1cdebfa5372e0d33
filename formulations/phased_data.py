"""The numbers of a cluster that grows in phases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PhasedData:
    """Lines of growth, of which one is taken, and what their phases need.

    Shapes: (F, T) for `least`, `most` (uplinks of a leaf), `leaves` (of one plane, 0 without spines), `ports` (of a
    spine), `stood` (leaves of all planes that stood before a phase), `trunks` (links up that are added to switches
    that stood before, for each uplink of the phase before); (F, T, I) for `fixed`, `uplink` and `spine`, units of an
    item in place; (T, I) for `price` of a unit bought in a phase and `run` of a unit in place; (T,) for `labour`, of
    a link added to a switch that stood before.
    """

    least: Ints
    most: Ints
    leaves: Ints
    ports: Ints
    stood: Ints
    trunks: Ints
    fixed: Ints
    uplink: Ints
    spine: Ints
    price: Floats
    run: Floats
    labour: Floats
