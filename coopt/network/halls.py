"""Where the racks of a network stand, what they draw, and how long its cables are (docs/network.md)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from coopt.fabric.halls import Lengths, middle, sold_m
from coopt.instance.designs import Hall
from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.parts import racks
from coopt.network.plane_wires import leaf_numbers
from coopt.network.transceivers import modules


@dataclass(frozen=True, kw_only=True)
class NetworkHall:
    """A network in its hall: racks, W of each (`with_hosts` where those of servers are known) and of all,
    `cables[level]` by the length they are sold in, and the racks amid which switches stand."""

    hall: Hall
    racks: int
    rack_w: float
    with_hosts: bool
    w: float
    cables: tuple[Lengths, ...]
    amid: frozenset[int]

    @property
    def rows(self) -> int:
        """Rows of racks."""
        return -(-self.racks // self.hall.racks_per_row)

    @property
    def sides_m(self) -> tuple[float, float]:
        """Along a row and across the rows (m)."""
        along = min(self.racks, self.hall.racks_per_row) * self.hall.rack_pitch_m
        return along, self.rows * self.hall.row_pitch_m


def network_hall(instance: Instance, family: Family, uplinks: int) -> NetworkHall | None:
    """The racks of a network in rows, in the order of domains; None where nobody knows what a domain fills.

    A switch stands amid what hangs below it, as in designs (docs/designs.md). Watts are those of all that is installed,
    whatever the objective counts: GPUs that train and idle ones, domains with their hosts, NICs, switches and optics.
    """
    count, hb = racks(family), family.hb
    if count is None or hb.racks is None or not family.tiers:
        return None
    hall = Hall(racks_per_domain=hb.racks, **instance.network.hall.model_dump())
    cables, amid = _cables(family, uplinks, hall)
    domains = family.domains + family.spare_domains
    domain_w = hb.size * (instance.cluster.gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    domain_w += family.nics_of_domain * family.nic.w
    return NetworkHall(
        hall=hall,
        racks=count,
        rack_w=domain_w * domains / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=domain_w * domains + _network_w(family, uplinks),
        cables=cables,
        amid=frozenset(amid),
    )


def _network_w(family: Family, uplinks: int) -> float:
    """Switches and optics (W)."""
    boxes = zip(levels(family, uplinks), family.switches, strict=True)
    ends = zip(modules(family, uplinks), family.optics, strict=True)
    return math.fsum([*(tier.switches * box.w for tier, box in boxes), *(n * optic.w for n, optic in ends)])


def _cables(family: Family, uplinks: int, hall: Hall) -> tuple[tuple[Lengths, ...], set[int]]:
    """Cables of each level over all planes by the length they are sold in (m), and the racks of switches."""
    planes, numbers = family.all_planes, leaf_numbers(family)
    rack = np.array([hall.rack_of(domain) for domain in range(family.domains)])
    width = int(rack.max()) + 1
    pairs, counts = np.unique(numbers * width + rack, return_counts=True)
    hung: dict[int, Counter[int]] = {}
    for leaf, below, ends in zip(*divmod(pairs, width), counts, strict=True):
        hung.setdefault(int(leaf), Counter())[int(below)] += int(ends)
    leaves = [middle(hung[leaf]) for leaf in range(family.leaves)]
    lengths = [Lengths() for _ in range(family.tiers)]
    for leaf, below in hung.items():
        for place, ends in below.items():
            lengths[0][sold_m(hall.cable_m(place, leaves[leaf]))] += ends * planes
    in_pod = family.pods.leaves if family.pods else family.leaves
    pods = [leaves[first : first + in_pod] for first in range(0, len(leaves), in_pod)]
    amid = [middle(Counter(pod)) for pod in pods]
    if family.tiers > 1:
        for pod, spine in zip(pods, amid, strict=True):
            for place in pod:
                lengths[1][sold_m(hall.cable_m(place, spine))] += uplinks * planes
    if family.pods is not None:
        core, up = middle(Counter(amid)), family.slices(uplinks) * family.pods.w
        for spine in amid:
            lengths[2][sold_m(hall.cable_m(spine, core))] += up * planes
    return tuple(lengths), {*leaves, *(amid if family.tiers > 1 else ())}
