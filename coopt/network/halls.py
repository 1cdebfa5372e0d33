"""Where the racks of a network stand, what they draw, and how long its cables are (docs/network.md)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from coopt.fabric.halls import Lengths, Switches, SwitchRacks, middle, sold_m, switch_racks
from coopt.instance.designs import Hall
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.goods import modules
from coopt.network.parts import racks
from coopt.network.wiring import leaf_numbers


@dataclass(frozen=True, kw_only=True)
class NetworkHall:
    """A network in its hall: racks of domains, W of each (`with_hosts` where those of servers are known) and of all,
    `cables[level]` by the length they are sold in, and where switches stand: in `switch_racks` of their own, of which
    the fullest draws `switch_rack_w`, or amid domains where nobody knows how many racks they fill (None)."""

    hall: Hall
    racks: int
    switch_racks: int | None
    switch_rack_w: float
    rack_w: float
    with_hosts: bool
    w: float
    cables: tuple[Lengths, ...]
    amid: frozenset[int]

    @property
    def all_racks(self) -> int:
        """Racks that stand in the rows."""
        return self.racks + (self.switch_racks or 0)

    @property
    def rows(self) -> int:
        """Rows of racks."""
        return -(-self.all_racks // self.hall.racks_per_row)

    @property
    def sides_m(self) -> tuple[float, float]:
        """Along a row and across the rows (m)."""
        along = min(self.all_racks, self.hall.racks_per_row) * self.hall.rack_pitch_m
        return along, self.rows * self.hall.row_pitch_m


def network_hall(
    instance: Instance, family: Family, uplinks: int, grown: tuple[Family, int] | None = None
) -> NetworkHall | None:
    """The racks of a network in rows, in the order of domains; None where nobody knows what a domain fills.

    A switch stands amid what hangs below it, as in designs (docs/designs.md), in a rack for switches where all have a
    height. Watts are those of all that is installed, whatever the objective counts: GPUs that train and idle ones,
    domains with their hosts, NICs, switches and optics.

    Parameters
    ----------
    grown
        What the network grows into, with its uplinks: cables then lead to where switches stand in the end, so that
        those of a phase are among those of the next.
    """
    count, hb, rows = racks(family), family.hb, instance.network.hall
    if count is None or hb.racks is None or not family.tiers:
        return None
    hall = Hall(racks_per_domain=hb.racks, **{key: getattr(rows, key) for key in NetworkHallRows.model_fields})
    ends, amid = _placed(family, hall)
    known = all(switch.rack_units for switch in family.switches)
    standing = _standing(rows, family, uplinks, amid)
    if grown is None:
        cables = _cables(family, uplinks, hall, ends, amid, standing)
    else:
        _, amid_grown = _placed(grown[0], hall)
        cables = _cables(family, uplinks, hall, ends, amid_grown, _standing(rows, *grown, amid_grown), grown[0])
    domains = family.domains + family.spare_domains
    domain_w = hb.size * (instance.cluster.gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    domain_w += family.nics_of_domain * family.nic.w
    return NetworkHall(
        hall=hall,
        racks=count,
        switch_racks=len(standing.after) if known else None,
        switch_rack_w=standing.most_w,
        rack_w=domain_w * domains / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=domain_w * domains + _network_w(family, uplinks),
        cables=cables,
        amid=standing.spots if known else frozenset(rack for tier in amid[:2] for rack in tier),
    )


def _standing(rows: NetworkHallRows, family: Family, uplinks: int, amid: list[list[int]]) -> SwitchRacks:
    """The racks of switches; none where some have no height."""
    known = all(switch.rack_units for switch in family.switches)
    return switch_racks(_switches(family, uplinks, amid) if known else [], rows)


def _network_w(family: Family, uplinks: int) -> float:
    """Switches and optics (W)."""
    boxes = zip(levels(family, uplinks), family.switches, strict=True)
    return math.fsum([*(tier.switches * box.w for tier, box in boxes), *map(sum, _ends_w(family, uplinks))])


def _ends_w(family: Family, uplinks: int) -> list[tuple[float, float]]:
    """Power of the modules at the lower and at the upper ends of the links of each level (W)."""
    ends = zip(modules(family, uplinks), family.optics, strict=True)
    return [(count.below * optic.below.w, count.above * optic.above.w) for count, optic in ends]


Ends = dict[int, Counter[int]]
"""Links of NICs by leaf and by the rack of their domain."""


def _placed(family: Family, hall: Hall) -> tuple[Ends, list[list[int]]]:
    """What hangs below the leaves of a plane, and the rack amid which each leaf, the switches above each pod's leaves
    and the cores stand."""
    numbers = leaf_numbers(family)
    rack = np.array([hall.rack_of(domain) for domain in range(family.domains)])
    width = int(rack.max()) + 1
    pairs, counts = np.unique(numbers * width + rack, return_counts=True)
    hung: Ends = {}
    for leaf, below, ends in zip(*divmod(pairs, width), counts, strict=True):
        hung.setdefault(int(leaf), Counter())[int(below)] += int(ends)
    leaves = [middle(hung[leaf]) for leaf in range(family.leaves)]
    in_pod = family.pods.leaves if family.pods else family.leaves
    pods = [middle(Counter(leaves[first : first + in_pod])) for first in range(0, len(leaves), in_pod)]
    return hung, [leaves, pods, [middle(Counter(pods))]][: family.tiers]


def _switches(family: Family, uplinks: int, amid: list[list[int]]) -> list[Switches]:
    """The switches of all planes by place; each bears the modules at its ends of links."""
    tiers, ends_w = levels(family, uplinks), _ends_w(family, uplinks)
    found = []
    for level, (tier, box, racks_of_tier) in enumerate(zip(tiers, family.switches, amid, strict=True)):
        up_w = ends_w[level + 1][0] if level + 1 < len(tiers) else 0.0
        w = box.w + (ends_w[level][1] + up_w) / tier.switches
        places = Counter(racks_of_tier)
        each = tier.switches / len(racks_of_tier)
        assert each == int(each), "the places of a tier hold equally many switches"
        assert box.rack_units is not None, "halls without heights have no racks of switches"
        found += [
            Switches(place=(rack, level), count=int(each) * count, units=box.rack_units, w=w)
            for rack, count in places.items()
        ]
    return found


def _cables(
    family: Family,
    uplinks: int,
    hall: Hall,
    ends: Ends,
    amid: list[list[int]],
    standing: SwitchRacks,
    grown: Family | None = None,
) -> tuple[Lengths, ...]:
    """Cables of each level over all planes by the length they are sold in (m).

    `amid` and `standing` are those of what the network grows into, where it does.
    """
    end = grown or family
    becomes = _becoming(family, end)
    lengths = [Lengths() for _ in range(family.tiers)]
    spots = [[standing.spot_of((rack, level)) for rack in tier] for level, tier in enumerate(amid)]
    for leaf, below in ends.items():
        for rack, count in below.items():
            length_m = sold_m(hall.cable_m(standing.spot(rack), spots[0][becomes[leaf]]))
            lengths[0][length_m] += count * family.all_planes
    in_pod = end.pods.leaves if end.pods else end.leaves
    for leaf in range(family.leaves if family.tiers > 1 else 0):
        spine = spots[1][becomes[leaf] // in_pod]
        lengths[1][sold_m(hall.cable_m(spots[0][becomes[leaf]], spine))] += uplinks * family.all_planes
    if family.pods is not None:
        up = family.slices(uplinks) * family.pods.w * family.all_planes
        for leaf in range(0, family.leaves, family.pods.leaves):
            lengths[2][sold_m(hall.cable_m(spots[1][becomes[leaf] // in_pod], spots[2][0]))] += up
    return tuple(lengths)


def _becoming(family: Family, grown: Family) -> dict[int, int]:
    """The number that each leaf has once the network is grown: end points stay at their leaves (docs/phased.md)."""
    now, then = leaf_numbers(family), leaf_numbers(grown)
    pairs = dict(zip(now.ravel().tolist(), then[..., : family.domains].ravel().tolist(), strict=True))
    assert len(pairs) == len(set(pairs.values())) == family.leaves, "a leaf that grows stays one leaf"
    return pairs
