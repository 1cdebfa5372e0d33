"""A directed two-layer Clos, the flows that share it, and what routes are worth there.

Flows on each link, the bound that no routing undercuts, and max-min fair rates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopt.instance.numerics import REORDERED
from coopt.instance.texts import InstanceError, counted

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LARGEST_UNIT = 1 << 31  # loads of 2^31 flows in this unit still fit into 64 bits

NIC = 1.0  # a flow alone is as fast as its NIC, whose rate is that of a link


@dataclass(frozen=True, kw_only=True, eq=False)
class TwoLayer:
    """Leaves below, cores above; each leaf has links to cores, with full capacity in both
    directions.

    Parameters
    ----------
    links
        Parallel links between each leaf and core, shape (leaves, cores); 0 where there are none or
        all failed.
    """

    links: Ints

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", _whole_numbers("links", self.links, dimensions=2))
        if (self.links < 0).any():
            raise InstanceError(
                f"links: the smallest number is {self.links.min()}, needs at least 0"
            )
        if self.unit > LARGEST_UNIT:
            raise InstanceError(
                f"links: the least common multiple of all numbers of parallel links is {self.unit},"
                f" needs at most {LARGEST_UNIT}"
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
        """Least common multiple of the numbers of parallel links: in this unit every load per link
        is whole.
        """
        return math.lcm(*np.unique(self.links[self.links > 0]).tolist())

    @cached_property
    def steps(self) -> Ints:
        """What one more flow adds to the load per link, in 1/unit; 0 where there is no link. Shape
        (leaves, cores).
        """
        return np.where(self.links > 0, self.unit // np.maximum(self.links, 1), 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flows:
    """Flows of equal size between leaves; those of a group are one collective and run at the same
    time.

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
            object.__setattr__(self, name, _whole_numbers(name, getattr(self, name), dimensions=1))
        if not self.src.shape == self.dst.shape == self.group.shape:
            lengths = ", ".join(str(values.size) for values in (self.src, self.dst, self.group))
            raise InstanceError(
                f"flows: src, dst and group have the lengths {lengths}, needs equal lengths"
            )

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
    """Switches whose up-link j of switch i goes to (i*uplinks + j) mod tops, the rule of
    docs/network.md.
    """
    ends = np.arange(switches * uplinks) % max(tops, 1)
    places = np.repeat(np.arange(switches), uplinks) * tops + ends
    return TwoLayer(links=np.bincount(places, minlength=switches * tops).reshape(switches, tops))


def fail_cores(clos: TwoLayer, n: int, seed: int) -> TwoLayer:
    """The network after n of its cores failed, drawn at random."""
    if not 0 <= n <= clos.cores:
        raise InstanceError(
            f"failed cores: {n}, but the number of cores is {clos.cores}, needs 0 to {clos.cores}"
        )
    links = clos.links.copy()
    links[:, np.random.default_rng(seed).permutation(clos.cores)[:n]] = 0
    return TwoLayer(links=links)


def require_paths(clos: TwoLayer, flows: Flows) -> None:
    """Refuse flows between leaves that do not exist or that no core joins."""
    for name, ends in (("src", flows.src), ("dst", flows.dst)):
        wrong = np.flatnonzero((ends < 0) | (ends >= clos.leaves))
        if wrong.size:
            raise InstanceError(
                f"flow {wrong[0]}: {name} = {ends[wrong[0]]}, needs a leaf from 0 to"
                f" {clos.leaves - 1}"
            )
    out = flows.between
    present = clos.links > 0
    stranded = out[~(present[flows.src[out]] & present[flows.dst[out]]).any(axis=1)]
    if stranded.size:
        flow = stranded[0]
        raise InstanceError(
            f"flow {flow}: no core has links to both leaf {flows.src[flow]} and leaf"
            f" {flows.dst[flow]}, needs such a core"
        )


def _whole_numbers(name: str, values: Any, *, dimensions: int) -> Ints:
    array = np.asarray(values)
    if array.ndim != dimensions or (array.size and array.dtype.kind not in "iu"):
        raise InstanceError(
            f"{name}: holds {array.dtype} in {counted(array.ndim, 'dimension')}, needs whole"
            f" numbers in {counted(dimensions, 'dimension')}"
        )
    return array.astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """Flows on the links between two layers.

    Parameters
    ----------
    links
        Parallel links of each bundle, shape (leaves, cores).
    up, down
        Flows on each bundle, from leaf to core and back; shape (leaves, cores), or (slices, leaves,
        cores) for several equal networks side by side. Not whole where flows are spread over all
        paths.
    """

    links: Ints
    up: Ints | Floats
    down: Ints | Floats

    @property
    def alpha(self) -> float:
        """Flows per link on the worst bundle; 0 without flows."""
        per_link = np.maximum(self.up, self.down) / np.maximum(self.links, 1)
        return float(per_link.max(initial=0.0))


def link_loads(clos: TwoLayer, flows: Flows, cores: Ints) -> Loads:
    """Flows on every bundle when flow f takes `cores[f]`.

    Parameters
    ----------
    cores
        Core of each flow, -1 for a flow inside its leaf; shape (flows,).
    """
    out = np.flatnonzero(cores >= 0)
    shape = clos.links.shape
    up = np.bincount(flows.src[out] * clos.cores + cores[out], minlength=clos.links.size).reshape(
        shape
    )
    down = np.bincount(flows.dst[out] * clos.cores + cores[out], minlength=clos.links.size).reshape(
        shape
    )
    return Loads(links=clos.links, up=up, down=down)


PAIRS = 1 << 16  # pairs of leaves that are spread at once, so that tables stay small


def spread_loads(clos: TwoLayer, src: Ints, dst: Ints, flows: Floats) -> Loads:
    """Flows on every bundle when each is spread over the cores by the smaller of their bundles at
    both leaves.

    So nothing is sent up that has no link down: the weights of WCMP (Zhou et al., EuroSys 2014).
    Even bundles are shared evenly.

    Parameters
    ----------
    src, dst, flows
        Pairs of leaves, and how many flows go from one to the other; shape (pairs,).
    """
    up, down = (np.zeros(clos.links.shape) for _ in range(2))
    for start in range(0, len(src), PAIRS):
        sources, targets = src[start : start + PAIRS], dst[start : start + PAIRS]
        share = np.minimum(clos.links[sources], clos.links[targets]).astype(np.float64)
        share *= (flows[start : start + PAIRS] / share.sum(axis=1))[:, None]
        np.add.at(up, sources, share)
        np.add.at(down, targets, share)
    return Loads(links=clos.links, up=up, down=down)


def degrees(leaves: int, flows: Flows) -> Ints:
    """Flows that leave each leaf and flows that enter it, not counting those inside; shape (2,
    leaves).
    """
    out = flows.between
    return np.stack([np.bincount(ends[out], minlength=leaves) for ends in (flows.src, flows.dst)])


def lower_bound(clos: TwoLayer, flows: Flows) -> float:
    r"""The alpha that no routing undercuts, by whole flows out of and into each leaf.

    .. math:: \min \{ t : \sum_m \lfloor t \, c_{im} \rfloor \ge \deg_i \ \forall i \}

    which is ceil(degree / cores) / c where all cores have c links to every leaf.
    """
    return least_level(clos, degrees(clos.leaves, flows), copies=1) / clos.unit


def least_level(clos: TwoLayer, degree: Ints, *, copies: int) -> int:
    """The least load per link, in 1/unit, at which every leaf's bundles hold its flows.

    Parameters
    ----------
    degree
        Flows out of and into each leaf, shape (2, leaves).
    copies
        Equal networks side by side among which the flows of a leaf are spread.
    """
    max_degree = degree.max(axis=0, initial=0)
    steps = np.where(clos.steps > 0, clos.steps, np.iinfo(np.int64).max)
    low, high = np.zeros(clos.leaves, dtype=np.int64), max_degree * clos.unit
    while (
        low < high
    ).any():  # all leaves are bisected at once: what a leaf's bundles hold grows with the level
        middle = (low + high) // 2
        enough = copies * (middle[:, None] // steps).sum(axis=1) >= max_degree
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle + 1)
    return int(high.max(initial=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Hops:
    """The bundles each flow crosses.

    Parameters
    ----------
    bundles
        Numbers of bundles, -1 for none; shape (flows, hops). No flow crosses a bundle twice.
    capacity
        Links of each bundle, shape (bundles,).
    """

    bundles: Ints
    capacity: Ints


def hops(clos: TwoLayer, flows: Flows, cores: Ints) -> Hops:
    """Routes as bundles: leaf·cores + core on the way up, and as many further for the way down."""
    inside = cores < 0
    up, down = (np.where(inside, -1, ends * clos.cores + cores) for ends in (flows.src, flows.dst))
    bundles = np.stack([up, np.where(inside, -1, down + clos.links.size)], axis=1)
    return Hops(bundles=bundles, capacity=np.tile(clos.links.ravel(), 2))


def flow_rates(routes: Hops) -> Floats:
    """Max-min fair rates by progressive filling, in links; shape (flows,).

    All flows rise together. When a bundle is full, its flows keep their rate; the others rise on,
    up to their NIC's.
    """
    flows, hop = np.nonzero(routes.bundles >= 0)
    crossed = routes.bundles[flows, hop]
    size = routes.capacity.size
    rates = np.full(len(routes.bundles), NIC)
    rising = np.ones(len(routes.bundles), dtype=np.bool_)
    spare = routes.capacity.astype(np.float64)
    while flows.size:
        sharing = np.bincount(crossed, minlength=size)
        share = np.full(size, np.inf)
        np.divide(spare, sharing, out=share, where=sharing > 0)
        # The bundle that is full first decides, as all flows rise together.
        level = share.min()
        if level >= NIC:  # what still rises is held by its NIC before any bundle is full
            break
        rising[flows[share[crossed] <= level * (1 + REORDERED)]] = False
        stopped = ~rising[flows]
        rates[flows[stopped]] = level
        spare -= level * np.bincount(crossed[stopped], minlength=size)
        flows, crossed = flows[~stopped], crossed[~stopped]
    return rates


def group_rates(group: Ints, rates: Floats) -> Floats:
    """The rate of each group, that of its slowest flow; groups in ascending order of their numbers,
    shape (groups,).
    """
    names, group_of = np.unique(group, return_inverse=True)
    slowest = np.full(names.size, np.inf)
    np.minimum.at(slowest, group_of, rates)
    return slowest


def fairness_key(slowest: Floats) -> tuple[float, ...]:
    """Group rates in ascending order, to 12 decimals: of two routings the one whose tuple is larger
    is the fairer.
    """
    # Rounded, so that the last bits of a sum decide nothing.
    return tuple(np.sort(slowest).round(12).tolist())


def efficiency(slowest: Floats) -> float:
    """Mean over groups of rate over the rate alone at full bandwidth, which is that of a NIC; 1
    without groups.
    """
    return float(np.mean(slowest) / NIC) if slowest.size else 1.0
