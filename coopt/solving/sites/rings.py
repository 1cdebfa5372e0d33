"""Rings that add up gradients of sites, and how long that takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

from coopt.instance.schema import Instance
from coopt.instance.sites import Wan


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Sites by position in the instance, in ring order, and the links between neighbours; one site has no links."""

    sites: tuple[int, ...]
    links: tuple[Wan, ...]

    @property
    def latency_s(self) -> float:
        """Start-up of an exchange: a ring has 2(S - 1) steps, each as slow as its slowest link."""
        steps = 2 * (len(self.sites) - 1)
        return steps * max((link.latency_ms for link in self.links), default=0.0) / 1e3

    @property
    def share(self) -> float:
        """Bytes that each site sends in an exchange, over the bytes of the gradients: 2(S - 1)/S."""
        return 2 * (len(self.sites) - 1) / len(self.sites)

    def exchange_s(self, gradient_bytes: float, gbit_s: float) -> float:
        """Seconds of an exchange whose slowest link has this rate each way."""
        return self.latency_s + self.share * gradient_bytes * 8 / (gbit_s * 1e9) if self.links else 0.0


def every_ring(instance: Instance) -> Iterator[Ring]:
    """Every ring over some of the sites: single sites, pairs that a link joins, and each cycle of links once."""
    links = {frozenset(wan.between): wan for wan in instance.wan}
    names = [site.name for site in instance.site]
    for count in range(1, len(names) + 1):
        for sites in combinations(range(len(names)), count):
            for order in _orders(sites):
                joined = [links.get(frozenset((names[i], names[j]))) for i, j in _neighbours(order)]
                there = tuple(link for link in joined if link is not None)
                if len(there) == len(joined):
                    yield Ring(sites=order, links=there)


def _orders(sites: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The ways round: each cycle once, whichever way it is walked."""
    first, *others = sites
    for order in permutations(others):
        if len(order) < 2 or order[0] < order[-1]:
            yield (first, *order)


def _neighbours(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours on the ring; two sites share one link, which carries both directions."""
    yield from pairwise(order)
    if len(order) > 2:
        yield order[-1], order[0]
