"""Networks with even bundles, found by trying one number of switches after the other."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from coopt.instance.schema import Instance, Network
from coopt.network.family import Family


def with_bundles(instance: Instance, bundles: str) -> Instance:
    """The instance with even bundles, or with any."""
    return instance.model_copy(update={"network": instance.network.model_copy(update={"bundles": bundles})})


def on_gpus(instance: Instance, gpus: int, slower: float) -> Instance:
    """So many GPUs, twice as many sequences, and bounds so much looser, which hold on larger networks."""
    workloads = tuple(
        one.model_copy(
            update={"global_batch": 2 * gpus, "max_iteration_time_s": slower * (one.max_iteration_time_s or 1.0)}
        )
        for one in instance.workload
    )
    cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
    return instance.model_copy(update={"workload": workloads, "cluster": cluster})


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
    for family in _split_in_every_way(instance.network, every):
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


def _split_in_every_way(network: Network, every: Iterable[Family]) -> Iterator[Family]:
    """The families, those of three tiers with every number of up-ports that an aggregation switch may have."""
    seen = set()
    for family in every:
        if family.pods is None:
            yield family
        elif (open_family := replace(family, pods=replace(family.pods, w=1))) not in seen:
            seen.add(open_family)
            l, each, cage = family.pods.l, family.pods.each, math.lcm(family.per_module[1][1], family.per_module[2][0])  # noqa: E741
            for w in up_ports(network, family.switches[1].radix, l, cage):
                if w % each == 0:
                    yield replace(family, pods=replace(family.pods, w=w))


def up_ports(network: Network, radix: int, l: int, cage: int = 1) -> list[int]:  # noqa: E741
    """Every number of up-ports beside so many down-ports that a whole ratio, or any where the network says so, allows
    for: by trying all."""
    listed = network.ratios or [float(ratio) for ratio in range(1, radix + 1) if ratio <= network.largest_ratio]
    whole = [int(ratio) for ratio in {1.0, *listed} if ratio == int(ratio)]
    cages = radix // cage
    split = [ratio for ratio in whole if cage * (cages - math.ceil(cages / (ratio + 1))) == l]
    allowed = network.largest_ratio if network.pod_uplinks == "any" and split else max(split, default=0)
    ports = range(1, min(l, radix - l) + 1)
    return [w for w in ports if w % cage == 0 and math.ceil(l / allowed) <= w] if allowed else []
