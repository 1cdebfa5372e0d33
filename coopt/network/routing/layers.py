"""A directed two-layer Clos, and the flows that share it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopt.instance.errors import InstanceError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LARGEST_UNIT = 1 << 31  # loads of 2^31 flows in this unit still fit into 64 bits


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoLayer:
    """Leaves below, cores above; each leaf has links to cores, with full capacity in both directions.

    Parameters
    ----------
    links
        Parallel links between each leaf and core, shape (leaves, cores); 0 where there are none or all failed.
    """

    links: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", _whole("links", self.links, dimensions=2))
        if (self.links < 0).any():
            raise InstanceError(f"links: {self.links.min()}, needs numbers of links of at least 0")
        if self.unit > LARGEST_UNIT:
            raise InstanceError(
                f"links: {np.unique(self.links).size} different numbers of parallel links, whose least common multiple "
                f"is {self.unit}, needs one of at most {LARGEST_UNIT}"
            )

    @property
    def leaves(self) -> int:
        """Switches below."""
        return int(self.links.shape[0])

    @property
    def cores(self) -> int:
        """Switches above, failed ones included."""
        return int(self.links.shape[1])

    @cached_property
    def unit(self) -> int:
        """Least common multiple of the numbers of parallel links: in this unit every load per link is whole."""
        return math.lcm(*np.unique(self.links[self.links > 0]).tolist())

    @cached_property
    def steps(self) -> Ints:
        """What one more flow adds to the load per link, in 1/unit; 0 where there is no link. Shape (leaves, cores)."""
        return np.where(self.links > 0, self.unit // np.maximum(self.links, 1), 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Flows of equal size between leaves; those of a group are one collective and run at the same time.

    Parameters
    ----------
    src, dst
        Leaf a flow leaves and leaf it enters, shape (flows,); equal where it stays inside a leaf.
    group
        The collective a flow belongs to, any whole number, shape (flows,).
    """

    src: Ints
    dst: Ints
    group: Ints

    def __post_init__(self) -> None:
        for name in ("src", "dst", "group"):
            object.__setattr__(self, name, _whole(name, getattr(self, name), dimensions=1))
        if not self.src.shape == self.dst.shape == self.group.shape:
            lengths = ", ".join(str(values.size) for values in (self.src, self.dst, self.group))
            raise InstanceError(f"flows: src, dst and group of lengths {lengths}, needs equal lengths")

    def __len__(self) -> int:
        return int(self.src.size)

    @cached_property
    def between(self) -> Ints:
        """The flows that leave their leaf, by number."""
        return np.flatnonzero(self.src != self.dst)

    def take(self, rows: Ints) -> Flows:
        """Some of the flows."""
        return Flows(src=self.src[rows], dst=self.dst[rows], group=self.group[rows])


def striped_clos(switches: int, uplinks: int, tops: int) -> TwoLayer:
    """Switches whose up-link j of switch i goes to (i*uplinks + j) mod tops, the rule of docs/network.md."""
    ends = np.arange(switches * uplinks) % max(tops, 1)
    places = np.repeat(np.arange(switches), uplinks) * tops + ends
    return TwoLayer(links=np.bincount(places, minlength=switches * tops).reshape(switches, tops))


def fail_cores(clos: TwoLayer, n: int, seed: int) -> TwoLayer:
    """The network after n of its cores failed, drawn at random."""
    if not 0 <= n <= clos.cores:
        raise InstanceError(f"failed cores: {n}, needs 0 to {clos.cores}, the cores there are")
    links = clos.links.copy()
    links[:, np.random.default_rng(seed).permutation(clos.cores)[:n]] = 0
    return TwoLayer(links=links)


def require_paths(clos: TwoLayer, flows: Flows) -> None:
    """Refuse flows between leaves that do not exist or that no core joins."""
    for name, ends in (("src", flows.src), ("dst", flows.dst)):
        wrong = np.flatnonzero((ends < 0) | (ends >= clos.leaves))
        if wrong.size:
            raise InstanceError(f"flow {wrong[0]}: {name} = {ends[wrong[0]]}, needs a leaf from 0 to {clos.leaves - 1}")
    out = flows.between
    present = clos.links > 0
    lost = out[~(present[flows.src[out]] & present[flows.dst[out]]).any(axis=1)]
    if lost.size:
        first = lost[0]
        raise InstanceError(
            f"flow {first}: leaf {flows.src[first]} to leaf {flows.dst[first]}, needs a core with links to both"
        )


def _whole(name: str, values: Any, *, dimensions: int) -> Ints:
    array = np.asarray(values)
    if array.ndim != dimensions or (array.size and array.dtype.kind not in "iu"):
        raise InstanceError(f"{name}: {array.ndim} dimensions of {array.dtype}, needs {dimensions} of whole numbers")
    return array.astype(np.int64)
