"""Which numbers of shares the sites of a cheapest ring may take, by bounds that no time has to be worked out for.

Of n shares a site costs at least what the cheapest network does that it can feed, however long an iteration takes on
it; channels cost nothing or more. So no ring that gives n shares to some site is worth less than the least sum of such
floors over all divisions of the shares among its sites in which one has n. Once some ring is known, numbers whose bound
is not below its value are in no cheaper one: their options, which take long to list, are not needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.parts import electricity_of, weigh
from coopt.perf.mapping import Floats
from coopt.solving.sites.arrays import every_ring, may_feed
from coopt.solving.sites.options import Networks

SLACK = 1e-9  # of a bound: far more than the rounding of its sums and of a bill's


def least_with(instance: Instance, listed: Sequence[Networks]) -> dict[int, float]:
    """What a ring is worth at least that gives some site so many shares, by their number; infinite where none can."""
    whole = instance.cluster.shares
    assert whole is not None
    floors = np.full((len(instance.site), whole + 1), math.inf)  # no site of a ring has 0 shares
    for one in listed:
        floors[:, one.shares] = [_floor(instance, s, one) for s in range(len(instance.site))]
    found = np.full(whole + 1, math.inf)
    for sites in {frozenset(ring.sites) for ring in every_ring(instance)}:
        for s in sites:
            others = np.array([0.0, *(math.inf for _ in range(whole))])
            for other in sites - {s}:
                others = _divided(others, floors[other])
            found = np.minimum(found, floors[s] + others[::-1])
    return {one.shares: float(found[one.shares]) for one in listed}


def _floor(instance: Instance, s: int, networks: Networks) -> float:
    """The objective of the cheapest network that a site can feed, in time or not."""
    site, kind = instance.site[s], instance.objective.minimize
    local = electricity_of(instance.objective, site)
    fed = ((usd, w) for usd, w, *_ in networks.rows if may_feed(instance.objective, site, w))
    return min((weigh(local, usd, w, kind) for usd, w in fed), default=math.inf)


def _divided(a: Floats, b: Floats) -> Floats:
    """The least sum for each number of shares, divided in two."""
    return np.array([(a[: n + 1] + b[n::-1]).min() for n in range(len(a))])


def promising(least: Mapping[int, float], known: Mapping[int, object], value: float) -> list[int]:
    """Numbers of shares, not `known` yet, that a ring may have which is worth less than `value`.

    Without a ring so far these are the most promising, as many again as are known, and those as promising.
    """
    left = sorted((bound, shares) for shares, bound in least.items() if shares not in known)
    if math.isinf(value) and left:
        value = left[min(len(known), len(left) - 1)][0] * (1 + SLACK)
        return [shares for bound, shares in left if bound <= value]
    return [shares for bound, shares in left if bound * (1 - SLACK) < value]
