"""Where the racks of a network stand, what they draw, and how long its cables are (docs/network.md)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from coopt.fabric.halls import Lengths, Switches, SwitchRacks, median_rack, sold_m, switch_racks
from coopt.instance.designs import Hall
from coopt.instance.hardware import Gpu
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.core import core_optic
from coopt.network.family import Family, levels
from coopt.network.goods import modules
from coopt.network.parts import racks
from coopt.network.wiring import leaf_numbers


@dataclass(frozen=True, kw_only=True)
class NetworkHall:
    """A network in its hall: racks of domains, W of each (`with_hosts` where those of servers are known) and of all,
    `cables[level]` by the length they are sold in, and where switches stand: in `switch_racks` of their own, of which
    the fullest draws `switch_rack_w`, or amid domains where nobody knows how many racks they fill (None). `to_core`
    are the links that lead into a core by the spot where they start."""

    hall: Hall
    racks: int
    switch_racks: int | None
    switch_rack_w: float
    rack_w: float
    with_hosts: bool
    w: float
    cables: tuple[Lengths, ...]
    amid: frozenset[int]
    to_core: Counter[int]

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
    """The racks of a network in rows, in the order of domains; None without a network, where one domain holds
    everything, and where nobody knows what a domain fills.

    A switch stands amid what hangs below it, as in designs (docs/designs.md), in a rack for switches where all have a
    height. Watts are those of all that is installed, whatever the objective counts: GPUs that train and idle ones,
    domains with their hosts, NICs, switches and optics.

    Parameters
    ----------
    grown
        What the network grows into, with its uplinks: cables then lead to where switches stand in the end, so that
        those of a phase are among those of the next.
    """
    return island_hall(instance, family, uplinks, grown) if family.tiers else None


def island_hall(
    instance: Instance, family: Family, uplinks: int, grown: tuple[Family, int] | None = None
) -> NetworkHall | None:
    """The same of an island, which has a hall as a single domain as well."""
    count, hb, rows = racks(family), family.hb, instance.network.hall
    if count is None or hb.racks is None:
        return None
    hall = Hall(racks_per_domain=hb.racks, **{key: getattr(rows, key) for key in NetworkHallRows.model_fields})
    ends, amid = _placed(family, hall)
    known = all(switch.rack_units for switch in family.switches)
    standing = _standing(instance, family, uplinks, amid)
    if grown is None:
        stands = _Stands(hall=hall, end=family, amid=amid, standing=standing)
    else:
        _, amid_grown = _placed(grown[0], hall)
        stands = _Stands(hall=hall, end=grown[0], amid=amid_grown, standing=_standing(instance, *grown, amid_grown))
    becomes = _becoming(family, stands.end) if family.tiers else {}
    racks_w = _racks_w(instance.cluster.gpu, family)
    return NetworkHall(
        hall=hall,
        racks=count,
        switch_racks=len(standing.after) if known else None,
        switch_rack_w=standing.most_w,
        rack_w=racks_w / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=racks_w + _network_w(instance, family, uplinks),
        cables=_cables(family, uplinks, stands, ends, becomes),
        amid=standing.spots if known else frozenset(rack for tier in amid[:2] for rack in tier),
        to_core=_to_core(family, stands, becomes),
    )


def _racks_w(gpu: Gpu, family: Family) -> float:
    """What all racks of HB domains draw together, those that stand by too."""
    hb, domains = family.hb, family.domains + family.spare_domains
    domain_w = hb.size * (gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    return domain_w * domains + (family.nic_count + family.spare_nics) * family.nic.w


def _standing(instance: Instance, family: Family, uplinks: int, amid: list[list[int]]) -> SwitchRacks:
    """The racks of switches; none where some have no height."""
    known = all(switch.rack_units for switch in family.switches)
    switches = _switches(family, uplinks, amid, _core_ends_w(instance, family)) if known else []
    return switch_racks(switches, instance.network.hall)


def _network_w(instance: Instance, family: Family, uplinks: int) -> float:
    """Switches and optics (W)."""
    boxes = zip(levels(family, uplinks), family.switches, strict=True)
    ends_w = (*map(sum, _ends_w(family, uplinks)), _core_ends_w(instance, family))
    return math.fsum([*(tier.switches * box.w for tier, box in boxes), *ends_w])


def _core_ends_w(instance: Instance, family: Family) -> float:
    """Power of the modules at the lower ends of links into a core (W)."""
    end = family.core_end or core_optic(instance)
    return 0.0 if end is None else family.core_modules * end.w


def _ends_w(family: Family, uplinks: int) -> list[tuple[float, float]]:
    """Power of the modules at the lower and at the upper ends of the links of each level (W)."""
    ends = zip(modules(family, uplinks), family.optics, strict=True)
    return [(count.below * optic.below.w, count.above * optic.above.w) for count, optic in ends]


Ends = dict[int, Counter[int]]
"""Links of NICs by leaf and by the rack of their domain."""


def _placed(family: Family, hall: Hall) -> tuple[Ends, list[list[int]]]:
    """What hangs below the leaves of a plane, and the rack amid which each leaf, the switches above each pod's leaves
    and the cores stand; nothing below a single domain."""
    if not family.tiers:
        return {}, []
    numbers = leaf_numbers(family)
    rack = np.array([hall.rack_of(domain) for domain in range(family.domains)])
    width = int(rack.max()) + 1
    pairs, counts = np.unique(numbers * width + rack, return_counts=True)
    hung: Ends = {}
    for leaf, below, ends in zip(*divmod(pairs, width), counts, strict=True):
        hung.setdefault(int(leaf), Counter())[int(below)] += int(ends)
    leaves = [median_rack(hung[leaf]) for leaf in range(family.leaves)]
    in_pod = family.pods.leaves if family.pods else family.leaves
    pods = [median_rack(Counter(leaves[first : first + in_pod])) for first in range(0, len(leaves), in_pod)]
    return hung, [leaves, pods, [median_rack(Counter(pods))]][: family.tiers]


def _switches(family: Family, uplinks: int, amid: list[list[int]], core_w: float) -> list[Switches]:
    """The switches of all planes by place; each bears the modules at its ends of links, a leaf those into a core."""
    tiers, ends_w = levels(family, uplinks), _ends_w(family, uplinks)
    found = []
    for level, (tier, box, racks_of_tier) in enumerate(zip(tiers, family.switches, amid, strict=True)):
        up_w = ends_w[level + 1][0] if level + 1 < len(tiers) else 0.0
        w = box.w + (ends_w[level][1] + up_w + (0.0 if level else core_w)) / tier.switches
        places = Counter(racks_of_tier)
        each = tier.switches / len(racks_of_tier)
        assert each == int(each), "the places of a tier hold equally many switches"
        assert box.rack_units is not None, "halls without heights have no racks of switches"
        found += [
            Switches(place=(rack, level), count=int(each) * count, units=box.rack_units, w=w)
            for rack, count in places.items()
        ]
    return found


@dataclass(frozen=True, kw_only=True)
class _Stands:
    """Where the switches of a network stand, once it is what it grows into."""

    hall: Hall
    end: Family
    amid: list[list[int]]
    standing: SwitchRacks

    def spots(self) -> list[list[int]]:
        """The spot of each leaf, of the switches above each pod's leaves, and of the cores."""
        return [[self.standing.spot_of((rack, level)) for rack in tier] for level, tier in enumerate(self.amid)]


def _cables(family: Family, uplinks: int, stands: _Stands, ends: Ends, becomes: dict[int, int]) -> tuple[Lengths, ...]:
    """Cables of each level over all planes by the length they are sold in (m)."""
    hall, end, standing, spots = stands.hall, stands.end, stands.standing, stands.spots()
    lengths = [Lengths() for _ in range(family.tiers)]
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


def _to_core(family: Family, stands: _Stands, becomes: dict[int, int]) -> Counter[int]:
    """Links into a core by the spot where they start: equally many at each leaf switch, or all at a single domain."""
    if not family.tiers:
        return +Counter({stands.standing.spot(stands.hall.rack_of(0)): family.lone_links})
    starts, spots = Counter[int](), stands.spots()
    for leaf in range(family.leaves):
        starts[spots[0][becomes[leaf]]] += family.chassis // family.leaves * family.core_ports
    return +starts


def _becoming(family: Family, grown: Family) -> dict[int, int]:
    """The number that each leaf has once the network is grown: end points stay at their leaves (docs/phased.md)."""
    now, then = leaf_numbers(family), leaf_numbers(grown)
    pairs = dict(zip(now.ravel().tolist(), then[..., : family.domains].ravel().tolist(), strict=True))
    assert len(pairs) == len(set(pairs.values())) == family.leaves, "a leaf that grows stays one leaf"
    return pairs
