"""The numbers of a cluster at several sites, on one ring of wide-area links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SiteLimit:
    """A limited resource: its use by each option (O,) and by one channel of each link (E,)."""

    name: str
    use: Floats
    channel: Floats
    cap: float


@dataclass(frozen=True, kw_only=True)
class SitesData:
    """Options of sites, one of which each site of the ring gets, and the links of the ring.

    Arrays of shape (O,) belong to options: the site, its shares, its objective. `need` (O, E) holds the channels with
    which an option meets its bound on each link. Links have the objective of one channel `channel` (E,) and at most
    `most` (E,) of them.
    """

    sites: int
    shares: int
    site: Ints
    share: Ints
    cost: Floats
    need: Ints
    channel: Floats
    most: Ints
    limits: tuple[SiteLimit, ...] = ()
