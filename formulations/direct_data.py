"""The numbers of direct links between domains, on orbits of a symmetry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Sparse:
    """A matrix by its rows: in row r the columns `columns[r]` with the values `values[r]`."""

    columns: tuple[Ints, ...]
    values: tuple[Floats, ...]


@dataclass(frozen=True, kw_only=True)
class DirectData:
    """Domains that links join, what they send in each phase of an iteration, and how fast the phases must be.

    Everything is of an orbit, of which the symmetry makes the rest; without a symmetry each orbit has one member.

    Pairs of domains (P,): `pairs` in the orbit. Domains (W,): `domains` in the orbit, `ports` of each; `ends` (W, P)
    says how many pairs of an orbit a domain belongs to. Arcs (E,), pairs with a direction: `pair` is the orbit of
    pairs, `arcs` (E, 2) the ends of one of them. Flows (X,) go from one source over one arc: `load` (E x X) adds those
    on an arc, `balance` (B x X) those into a domain less those out of it, by source and domain. In phase k a source
    sends `demand` (K, B) to a domain for each unit of the pace, and `sent` (K, W) altogether. The paces keep `weight`
    (J, K) within 1: see D4.
    """

    pairs: Ints
    domains: Ints
    ports: Ints
    ends: Ints
    arcs: Ints
    pair: Ints
    load: Sparse
    balance: Sparse
    demand: Floats
    sent: Floats
    weight: Floats

    @property
    def phases(self) -> int:
        """K: phases that take turns on the links."""
        return len(self.demand)

    @property
    def slowest(self) -> Floats:
        """The pace each phase needs if the others take no time (K,) [links]."""
        return np.asarray(self.weight.max(axis=0), dtype=np.float64)

    @property
    def fastest(self) -> Floats:
        """The pace at which a phase fills all ports of some domain (K,) [links]."""
        with np.errstate(divide="ignore"):
            return np.asarray((self.ports / self.sent).min(axis=1), dtype=np.float64)
