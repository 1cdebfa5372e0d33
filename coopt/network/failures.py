"""What the loss of any one part leaves of a network, by kinds of parts whose loss has the same
effect.

Traffic of a lost NIC is spread over the other NICs of its domain and passes through the domain at
both ends, as all-to-alls by forwarding do. Traffic above the leaves is spread over the links that
are left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from coopt.network.family import Family, Ints, without_nics
from coopt.network.placing import leaf_numbers


@dataclass(frozen=True, kw_only=True)
class Loss:
    """One kind of part, how many there are, and how its loss slows traffic; infinite where
    something is cut off.

    Traffic that leaves a domain takes `domain_slowdown` times as long, what leaves a leaf
    `leaf_slowdown` times as long again, and what leaves a pod on three tiers `pod_slowdown` times.
    `forwarded` is set where traffic goes through NICs of other GPUs, `aborts` where a NIC loses its
    only way into the network, so that collectives break off and the job starts again from its last
    checkpoint.
    """

    part: str
    count: int
    domain_slowdown: float = 1.0
    leaf_slowdown: float = 1.0
    pod_slowdown: float = 1.0
    forwarded: bool = False
    aborts: bool = False


def losses(family: Family, uplinks: int) -> tuple[Loss, ...]:
    """Every link, NIC and switch of a network, parts of equal effect together, from the GPUs up; ()
    for one domain.
    """
    if family.tiers == 0:
        return ()
    counts: Counter[Loss] = Counter()
    planes, each = family.nic_planes, family.ports_in_plane
    links, is_only = family.nic_count * planes, planes * each == 1
    for loss in (
        _nics_lost(family, "NIC", family.nic_count // each, each, planes, aborts=True),
        _nics_lost(family, "link from NIC to leaf", links, 1, 1, aborts=is_only),
        *_switches_and_links(family, uplinks),
    ):
        # Losses are equal but for their number: those of one effect fall on one key and are counted
        # together.
        counts[replace(loss, count=0)] += loss.count
    return tuple(replace(loss, count=count) for loss, count in counts.items())


def _nics_lost(
    family: Family,
    part: str,
    count: int,
    lost: int,
    ports: int,
    of_gpu: int | None = None,
    *,
    aborts: bool,
) -> Loss:
    """A part with which some NICs of a domain lose so many of their ports."""
    slower, forwarded = without_nics(family, lost, ports, of_gpu)
    return Loss(
        part=part,
        count=count,
        domain_slowdown=slower,
        forwarded=forwarded,
        aborts=aborts,
    )


def _switches_and_links(family: Family, uplinks: int) -> Iterator[Loss]:
    nics_of_leaf = nics_on(family, np.arange(family.leaves)).tolist()
    yield from _leaves(family, nics_of_leaf)
    planes, slices = family.all_planes, family.slices(uplinks)
    above = "spine" if family.pods is None else "aggregation"
    is_only = not family.keeps_ports
    is_shared = is_only or family.fabric != "rail-only"  # there, each rail has spines of its own
    for nics in nics_of_leaf if family.tiers > 1 else ():
        part = f"link from leaf to {above}"
        of_gpu = family.nics_on_leaf
        yield _fewer(family, part, uplinks * planes, uplinks, 1, nics, of_gpu, aborts=is_only)
    if family.tiers == 2:
        rails = family.nics_of_domain // family.planes
        for bundle, count in _bundles(family.leaves, uplinks, family.spines(uplinks)):
            part, number = "spine switch", count * planes
            yield _fewer(family, part, number, uplinks, bundle, rails, aborts=is_shared)
    elif family.pods is not None:
        pods = family.pods
        for nics in nics_on(family, np.arange(family.leaves) // pods.leaves).tolist():
            part, number = "aggregation switch", planes * slices
            yield _fewer(family, part, number, uplinks, pods.each, nics, aborts=is_shared)
        of = family.nic_planes * slices * pods.w
        links = Loss(
            part="link from aggregation to core",
            count=planes * slices * pods.count * pods.w,
            pod_slowdown=_without(of, 1),
        )
        yield links
        for bundle, count in _bundles(pods.count, pods.w, family.core_group):
            slower = _without(of, bundle)
            yield Loss(part="core switch", count=count * planes * slices, pod_slowdown=slower)


def _bundles(lower: int, links: int, upper: int) -> Iterator[tuple[int, int]]:
    """The largest bundle of an upper switch, and how many have it, where so many lower ones have
    links that go round the upper ones.
    """
    bundle, extra = divmod(links, upper)
    larger = min(upper, lower * extra)
    yield from ((size, n) for size, n in ((bundle + 1, larger), (bundle, upper - larger)) if n)


def _without(links: int, gone: int) -> float:
    return links / (links - gone) if links > gone else math.inf


def nics_on(family: Family, owner: Ints) -> Ints:
    """The most NICs of one domain on the leaves of each owner; `owner` has shape (leaves,), the
    answer (owners,).
    """
    leaves, rows = leaf_numbers(family), family.nics_of_domain // family.planes
    owners = int(owner.max()) + 1
    if family.fabric == "rail-only":
        return np.ones(owners, dtype=np.int64)
    domains = np.broadcast_to(np.arange(family.domains), (rows, family.domains))
    # All NICs of a pair of owner and domain are counted, since one domain may hang on several
    # leaves of a pod.
    pairs, nics = np.unique(owner[leaves] * family.domains + domains, return_counts=True)
    max_nics = np.zeros(owners, dtype=np.int64)
    np.maximum.at(max_nics, pairs // family.domains, nics)
    return max_nics


def _leaves(family: Family, nics_of_leaf: list[int]) -> Iterator[Loss]:
    """Leaves one by one; the last switch of a single tier may hold fewer planes than the others."""
    full_switches, last_planes = divmod(family.planes, family.planes_together)
    for planes, count in ((family.planes_together, full_switches), (last_planes, 1)):
        for nics in nics_of_leaf if planes and count else ():
            part, number = "leaf switch", count * family.nic_planes
            of_gpu = family.nics_on_leaf
            yield _nics_lost(
                family, part, number, nics * planes, 1, of_gpu, aborts=not family.keeps_ports
            )


def slower_without_leaf(family: Family) -> float:
    """How many times as long what leaves a domain takes without the leaf that the most of its NICs
    hang on.
    """
    nics = int(nics_on(family, np.arange(family.leaves)).max()) * family.planes_together
    return without_nics(family, nics, 1, family.nics_on_leaf)[0]


def _fewer(
    family: Family,
    part: str,
    count: int,
    of: int,
    uplinks_gone: int,
    nics: int,
    of_gpu: int | None = None,
    *,
    aborts: bool,
) -> Loss:
    """A leaf without some of its uplinks: the others and those on other planes carry more, or where
    there is none its NICs are of no use above it, which `aborts` unless they have other ports.
    """
    of *= family.nic_planes
    if uplinks_gone < of:
        return Loss(part=part, count=count, leaf_slowdown=of / (of - uplinks_gone))
    slower, forwarded = without_nics(family, nics, 1, of_gpu)
    return Loss(part=part, count=count, leaf_slowdown=slower, forwarded=forwarded, aborts=aborts)
