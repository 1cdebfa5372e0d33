"""The networks of many sites at once: what the wirings of docs/network.md are, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from coopt.columns.islands.sizes import Sites
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Network, SwitchedKind
from coopt.network.wiring import EndPoints, Wiring, wirings
from coopt.perf.mapping import Ints


@dataclass(frozen=True, kw_only=True)
class Gear:
    """What networks of one form are built from: fabric, NICs of a GPU, ports of a switch."""

    fabric: SwitchedKind
    nics_per_gpu: int
    radix: int


@dataclass(frozen=True, kw_only=True)
class Shapes:
    """One network for each of some sites, open in its uplinks; arrays of shape (n,).

    `site` counts within the sites; each network is wiring number `turn` of its site. `down` is 0 on at most one tier;
    `leaf_span` and `pod_span` are those of `coopt.columns.context.Context`. Below three tiers `pods` and `core_group`
    are 0, `pod_down` and `pod_up` 1. `core_links` lead into a core shared by all islands.
    """

    gear: Gear
    turn: int
    site: Ints
    tiers: Ints
    planes: Ints
    leaves: Ints
    chassis: Ints
    down: Ints
    least: Ints
    most: Ints
    leaf_span: Ints
    pod_span: Ints
    pods: Ints
    pod_down: Ints
    pod_up: Ints
    core_group: Ints
    core_links: Ints


def shapes_of(sites: Sites, hb_domains: tuple[HbDomain, ...], network: Network, links: Ints) -> Iterator[Shapes]:
    """Every wiring of every site: the first of each site, the second of those that have one, and so on.

    Each has `links` into a core or a few more (n,).
    """
    sizes = np.array([hb.size for hb in hb_domains])[sites.hb]
    needs = list(zip(sites.domains.tolist(), links.tolist(), strict=True))
    radices = dict.fromkeys(switch.radix for switch in network.switches)
    for fabric, per_gpu, radix in product(dict.fromkeys(network.switched), network.nics_per_gpu, radices):
        gear = Gear(fabric=fabric, nics_per_gpu=per_gpu, radix=radix)
        listed = cache(lambda need, rails, gear=gear: _wirings(gear, need, rails, network))
        found = [listed(need, rails) for need, rails in zip(needs, (sizes * per_gpu).tolist(), strict=True)]
        for turn in range(max(map(len, found), default=0)):
            there = [i for i, several in enumerate(found) if len(several) > turn]
            yield _stacked(gear, turn, there, [found[i][turn] for i in there], sites, sizes, links)


def _wirings(gear: Gear, need: tuple[int, int], rails: int, network: Network) -> tuple[Wiring, ...]:
    """The wirings of so many domains with so many links into a core."""
    domains, links = need
    ends = EndPoints(fabric=gear.fabric, domains=domains, rails=rails, links=links)
    return tuple(wirings(ends, gear.radix, network))


def _stacked(
    gear: Gear, turn: int, there: list[int], several: list[Wiring], sites: Sites, sizes: Ints, links: Ints
) -> Shapes:
    """The wirings of sites `there` as arrays."""
    domains = sites.domains[there]
    tiers, leaves, chassis, core_ports, down, least, most, leaf_span, pods, pod_down, pod_up, pod_span = np.array(
        [_numbers(one) for one in several], dtype=np.int64
    ).T
    tiered = tiers > 1
    return Shapes(
        gear=gear,
        turn=turn,
        site=np.array(there),
        tiers=tiers,
        planes=sizes[there] * gear.nics_per_gpu if gear.fabric == "rail-only" else np.ones_like(tiers),
        leaves=leaves,
        chassis=chassis,
        down=np.where(tiered, down, 0),
        least=least,
        most=most,
        leaf_span=np.where(tiered, leaf_span, domains),
        pod_span=np.where(pods > 0, pod_span, domains),
        pods=pods,
        pod_down=pod_down,
        pod_up=pod_up,
        core_group=-(-pods * pod_up // gear.radix),
        core_links=np.where(tiers > 0, chassis * core_ports, links[there]),
    )


def _numbers(wiring: Wiring) -> tuple[int, ...]:
    """The numbers of a wiring, in the order `_stacked` takes them apart."""
    return (
        wiring.tiers,
        wiring.leaves,
        wiring.chassis,
        wiring.core_ports,
        wiring.down,
        wiring.uplink_choices[0],
        wiring.uplink_choices[-1],
        wiring.leaf_span,
        *((wiring.pods.count, wiring.pods.l, wiring.pods.w) if wiring.pods else (0, 1, 1)),
        wiring.pod_span,
    )
