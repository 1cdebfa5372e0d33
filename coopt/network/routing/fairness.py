"""Max-min fair rates on given routes, and what they make of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.network.routing.layers import Floats, Flows, Ints, TwoLayer

NIC = 1.0  # a flow alone is as fast as its NIC, whose rate is that of a link
SAME = 1 + 1e-12  # shares that differ by rounding only


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

    All flows rise together. When a bundle is full, its flows keep their rate; the others rise on, up to their NIC's.
    """
    flows, hop = np.nonzero(routes.bundles >= 0)
    crossed = routes.bundles[flows, hop]
    size = routes.capacity.size
    rates = np.full(len(routes.bundles), NIC)
    rising = np.ones(len(routes.bundles), dtype=np.bool_)
    left = routes.capacity.astype(np.float64)
    while flows.size:
        sharing = np.bincount(crossed, minlength=size)
        share = np.full(size, np.inf)
        np.divide(left, sharing, out=share, where=sharing > 0)
        level = share.min()
        if level >= NIC:
            break
        rising[flows[share[crossed] <= level * SAME]] = False
        stopped = ~rising[flows]
        rates[flows[stopped]] = level
        left -= level * np.bincount(crossed[stopped], minlength=size)
        flows, crossed = flows[~stopped], crossed[~stopped]
    return rates


def group_rates(group: Ints, rates: Floats) -> Floats:
    """The rate of each group, that of its slowest flow; groups in ascending order of their numbers, shape (groups,)."""
    names, own = np.unique(group, return_inverse=True)
    slowest = np.full(names.size, np.inf)
    np.minimum.at(slowest, own, rates)
    return slowest


def two_layered(slowest: Floats) -> tuple[float, ...]:
    """Group rates in ascending order, to 12 decimals: of two routings the one whose tuple is larger is the fairer."""
    return tuple(np.sort(slowest).round(12).tolist())


def efficiency(slowest: Floats) -> float:
    """Mean over groups of rate over the rate alone at full bandwidth, which is that of a NIC; 1 without groups."""
    return float(np.mean(slowest) / NIC) if slowest.size else 1.0
