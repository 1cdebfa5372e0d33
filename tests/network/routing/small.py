"""Small networks and flows, and the least alpha by trying every routing."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from coopt.network.family import Pods, PodSet, TierChain
from coopt.network.routing.algorithms import Cooling
from coopt.network.routing.layers import Flows, Ints, TwoLayer
from coopt.network.routing.tiers import Plane

QUICK = Cooling(hot=1.0, cold=0.5, factor=0.7, moves=50)


def complete(leaves: int, cores: int, links: int = 1) -> TwoLayer:
    """A network in which every core joins every leaf alike."""
    return TwoLayer(links=np.full((leaves, cores), links))


def plane(leaves: int, uplinks: int, radix: int, pods: Pods | None = None, spines: int = 0) -> Plane:
    """One plane of switches of a radix, with as few spines and cores as have the ports."""
    if pods is None:
        count = spines or -(-leaves * uplinks // radix)
        sets = [PodSet(number=1, leaves=leaves, spines=count, down=-(-leaves * uplinks // count))] if count else []
    else:
        full, rest = divmod(leaves, pods.leaves)
        sets = [
            PodSet(number=n, leaves=size, spines=uplinks // pods.each, down=size * pods.each, up=pods.w)
            for n, size in ((full, pods.leaves), (1, rest))
            if n and size
        ]
    slices = uplinks // pods.each if pods else 1
    return Plane(
        TierChain(
            ends=0,
            planes=1,
            networks=1,
            leaves=leaves,
            fill=radix - uplinks,
            uplinks=uplinks,
            pods=tuple(sets),
            cores=slices * pods.cores(radix) if pods else 0,
            core_groups=slices,
        )
    )


def between(*pairs: tuple[int, int], group: int = 0) -> Flows:
    """Flows of one group."""
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return Flows(src=ends[:, 0], dst=ends[:, 1], group=np.full(len(ends), group))


def counted_alpha(clos: TwoLayer, flows: Flows, cores: Ints | tuple[int, ...]) -> Fraction:
    """Flows per link on the worst bundle, one flow after the other."""
    loads: Counter[tuple[str, int, int]] = Counter()
    for s, d, core in zip(flows.src.tolist(), flows.dst.tolist(), map(int, cores), strict=True):
        assert (core == -1) == (s == d)
        if s != d:
            assert clos.links[s, core] > 0
            assert clos.links[d, core] > 0
            loads.update([("up", s, core), ("down", d, core)])
    return max((Fraction(n, int(clos.links[leaf, core])) for (_, leaf, core), n in loads.items()), default=Fraction(0))


def enumerated_alpha(clos: TwoLayer, flows: Flows) -> float:
    """The least alpha of all routings; infinity when a flow has none."""
    choices = [
        [m for m in range(clos.cores) if clos.links[s, m] and clos.links[d, m]] if s != d else [-1]
        for s, d in zip(flows.src.tolist(), flows.dst.tolist(), strict=True)
    ]
    return float(min((counted_alpha(clos, flows, cores) for cores in product(*choices)), default=math.inf))


@st.composite
def routable(
    draw: st.DrawFn, *, flows: int = 40, equal: bool = True, leaves: int = 7, cores: int = 6
) -> tuple[TwoLayer, Flows]:
    """A network and flows on it: equal links up to failed cores, or any links that join all leaves through core 0."""
    n, m = draw(st.integers(2, leaves)), draw(st.integers(1, cores))
    if equal:
        links = np.full((n, m), draw(st.integers(1, 3)))
        failed = draw(st.sets(st.integers(0, m - 1), max_size=m - 1))
        links[:, sorted(failed)] = 0
    else:
        rows = st.lists(st.integers(0, 3), min_size=m, max_size=m)
        links = np.array(draw(st.lists(rows, min_size=n, max_size=n)))
        links[:, 0] = np.maximum(links[:, 0], 1)
    leaf = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(leaf, leaf), max_size=flows))
    group = draw(st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return TwoLayer(links=links), Flows(src=ends[:, 0], dst=ends[:, 1], group=np.array(group, dtype=np.int64))
