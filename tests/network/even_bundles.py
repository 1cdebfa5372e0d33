"""Networks with even bundles, found by trying one number of switches after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from coopt.instance.schema import Instance
from coopt.network.family import Family


def with_bundles(instance: Instance, bundles: str) -> Instance:
    """The instance with even bundles, or with any."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"bundles": bundles})})


def least_spines(links: int, below: int, radix: int) -> int:
    """The fewest switches that all have equally many of the links of each of so many switches below them."""
    each = (switches for switches in range(1, links + 1) if links % switches == 0)
    return next(switches for switches in each if below * (links // switches) <= radix)


def offered(run: range, leaves: int, radix: int) -> list[int]:
    """The most uplinks of a run, and those whose even spines are as few as bundles of the largest size need."""
    return [u for u in run if u == run[-1] or least_spines(u, leaves, radix) == -(-u // (radix // leaves))]


def designs(instance: Instance, every: Iterable[Family]) -> Iterator[tuple[Family, int]]:
    """The networks of an instance with their uplinks.

    Parameters
    ----------
    every
        The families of the instance with any bundles.
    """
    for family in every:
        uplinks = range(family.uplink_choices[0], family.uplink_choices[-1] + 1)
        if instance.network.bundles == "any" or family.tiers < 2:
            yield from ((family, u) for u in uplinks)
        elif family.pods:
            pods = family.pods
            even = replace(pods, bundle=pods.w // least_spines(pods.w, pods.count, family.switches[2].radix))
            yield from ((replace(family, pods=even), u) for u in uplinks)
        else:
            radix = family.switches[1].radix
            for u in offered(uplinks, family.leaves, radix):
                yield replace(family, bundle=u // least_spines(u, family.leaves, radix)), u
