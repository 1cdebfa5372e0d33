"""Where the racks of a network stand, what they draw, and how long its cables are
(docs/network.md).
"""

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
    """A network in its hall: racks of domains, W of each (`with_hosts` where those of servers are
    known) and of all, `cables[level]` by the length they are sold in, and where switches stand: in
    `switch_racks` of their own, of which the fullest draws `switch_rack_w`, or amid domains where
    nobody knows how many racks they fill (None). `to_core` are the links that lead into a core by
    the spot where they start.
    """

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
    """The racks of a network in rows, in the order of domains; None without a network, where one
    domain holds everything, and where nobody knows what a domain fills.

    A switch stands amid what hangs below it, as in designs (docs/designs.md), in a rack for
    switches where all have a height. Watts are those of all that is installed, whatever the
    objective counts: GPUs that train and idle ones, domains with their hosts, NICs, switches and
    optics.

    Parameters
    ----------
    grown
        What the network grows into, with its uplinks: cables then lead to where switches stand in
        the end, so that those of a phase are among those of the next.
    """
    return island_hall(instance, family, uplinks, grown) if family.tiers else None


def island_hall(
    instance: Instance, family: Family, uplinks: int, grown: tuple[Family, int] | None = None
) -> NetworkHall | None:
    """The racks of an island in rows, as `network_hall` places them; a single domain has a hall as
    well.
    """
    count, hb, rows = racks(family), family.hb, instance.network.hall
    if count is None or hb.racks is None:
        return None
    hall = Hall(
        racks_per_domain=hb.racks,
        **{key: getattr(rows, key) for key in NetworkHallRows.model_fields},
    )
    ends, amid = _placing(family, hall)
    has_heights = all(switch.rack_units for switch in family.switches)
    own_racks = _own_racks(instance, family, uplinks, amid)
    # Cables are laid once: they lead to where switches stand when the network has grown, and so
    # keep their lengths.
    if grown is None:
        stands = _Stands(hall=hall, end=family, amid=amid, own_racks=own_racks)
    else:
        _, amid_grown = _placing(grown[0], hall)
        stands = _Stands(
            hall=hall,
            end=grown[0],
            amid=amid_grown,
            own_racks=_own_racks(instance, *grown, amid_grown),
        )
    becomes = _grown_numbers(family, stands.end) if family.tiers else {}
    racks_w = _racks_w(instance.cluster.gpu, family)
    return NetworkHall(
        hall=hall,
        racks=count,
        switch_racks=len(own_racks.after) if has_heights else None,
        switch_rack_w=own_racks.most_w,
        rack_w=racks_w / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=racks_w + _network_w(instance, family, uplinks),
        cables=_cables(family, uplinks, stands, ends, becomes),
        amid=(
            own_racks.spots
            if has_heights
            else frozenset(rack for tier in amid[:2] for rack in tier)
        ),
        to_core=_to_core(family, stands, becomes),
    )


def _racks_w(gpu: Gpu, family: Family) -> float:
    """What all racks of HB domains draw together, those that stand by too."""
    hb, domains = family.hb, family.domains + family.spare_domains
    domain_w = hb.size * (gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    return domain_w * domains + (family.nic_count + family.spare_nics) * family.nic.w


def _own_racks(
    instance: Instance, family: Family, uplinks: int, amid: list[list[int]]
) -> SwitchRacks:
    """The racks of switches; none where some have no height."""
    has_heights = all(switch.rack_units for switch in family.switches)
    switches = (
        _switches(family, uplinks, amid, _core_ends_w(instance, family)) if has_heights else []
    )
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


def _placing(family: Family, hall: Hall) -> tuple[Ends, list[list[int]]]:
    """What hangs below the leaves of a plane, and the rack amid which each leaf, the switches above
    each pod's leaves and the cores stand; nothing below a single domain.
    """
    if not family.tiers:
        return {}, []
    numbers = leaf_numbers(family)
    rack = np.array([hall.rack_of(domain) for domain in range(family.domains)])
    width = int(rack.max()) + 1
    # Leaf and rack as one number, which is counted at once for all NICs.
    pairs, counts = np.unique(numbers * width + rack, return_counts=True)
    hung: Ends = {}
    for leaf, rack_below, ends in zip(*divmod(pairs, width), counts, strict=True):
        hung.setdefault(int(leaf), Counter())[int(rack_below)] += int(ends)
    leaves = [median_rack(hung[leaf]) for leaf in range(family.leaves)]
    in_pod = family.pods.leaves if family.pods else family.leaves
    pods = [
        median_rack(Counter(leaves[start : start + in_pod]))
        for start in range(0, len(leaves), in_pod)
    ]
    return hung, [leaves, pods, [median_rack(Counter(pods))]][: family.tiers]


def _switches(family: Family, uplinks: int, amid: list[list[int]], core_w: float) -> list[Switches]:
    """The switches of all planes by place; each bears the modules at its ends of links, a leaf
    those into a core.
    """
    tiers, ends_w = levels(family, uplinks), _ends_w(family, uplinks)
    switches = []
    for level, (tier, box, racks_of_tier) in enumerate(
        zip(tiers, family.switches, amid, strict=True)
    ):
        up_w = ends_w[level + 1][0] if level + 1 < len(tiers) else 0.0
        # Modules are shared out evenly, as the switches of a tier are alike.
        w = box.w + (ends_w[level][1] + up_w + (0.0 if level else core_w)) / tier.switches
        places = Counter(racks_of_tier)
        switches_per_place = tier.switches / len(racks_of_tier)
        assert switches_per_place == int(switches_per_place), (
            "the places of a tier hold equally many switches"
        )
        assert box.rack_units is not None, "halls without heights have no racks of switches"
        switches += [
            Switches(
                place=(rack, level),
                count=int(switches_per_place) * count,
                units=box.rack_units,
                w=w,
            )
            for rack, count in places.items()
        ]
    return switches


@dataclass(frozen=True, kw_only=True)
class _Stands:
    """The places of a network's switches, once it is what it grows into."""

    hall: Hall
    end: Family
    amid: list[list[int]]
    own_racks: SwitchRacks

    def spots(self) -> list[list[int]]:
        """The spot of each leaf, of the switches above each pod's leaves, and of the cores."""
        return [
            [self.own_racks.spot_of((rack, level)) for rack in tier]
            for level, tier in enumerate(self.amid)
        ]


def _cables(
    family: Family, uplinks: int, stands: _Stands, ends: Ends, becomes: dict[int, int]
) -> tuple[Lengths, ...]:
    """Cables of each level over all planes by the length they are sold in (m)."""
    hall, end, own_racks, spots = stands.hall, stands.end, stands.own_racks, stands.spots()
    lengths = [Lengths() for _ in range(family.tiers)]
    for leaf, links_by_rack in ends.items():
        for rack, count in links_by_rack.items():
            length_m = sold_m(hall.cable_m(own_racks.spot(rack), spots[0][becomes[leaf]]))
            lengths[0][length_m] += count * family.all_planes
    # Pods are numbered by the leaves of the grown network, in which each leaf keeps its place.
    in_pod = end.pods.leaves if end.pods else end.leaves
    for leaf in range(family.leaves if family.tiers > 1 else 0):
        spine = spots[1][becomes[leaf] // in_pod]
        lengths[1][sold_m(hall.cable_m(spots[0][becomes[leaf]], spine))] += (
            uplinks * family.all_planes
        )
    if family.pods is not None:
        up = family.slices(uplinks) * family.pods.w * family.all_planes
        for leaf in range(0, family.leaves, family.pods.leaves):
            lengths[2][sold_m(hall.cable_m(spots[1][becomes[leaf] // in_pod], spots[2][0]))] += up
    return tuple(lengths)


def _to_core(family: Family, stands: _Stands, becomes: dict[int, int]) -> Counter[int]:
    """Links into a core by the spot where they start: equally many at each leaf switch, or all at a
    single domain.
    """
    if not family.tiers:
        return +Counter({stands.own_racks.spot(stands.hall.rack_of(0)): family.lone_links})
    starts, spots = Counter[int](), stands.spots()
    for leaf in range(family.leaves):
        starts[spots[0][becomes[leaf]]] += family.chassis // family.leaves * family.core_ports
    # The plus drops spots where no link starts.
    return +starts


def _grown_numbers(family: Family, grown: Family) -> dict[int, int]:
    """The number that each leaf has once the network is grown: end points stay at their leaves
    (docs/phased.md).
    """
    numbers, grown_numbers = leaf_numbers(family), leaf_numbers(grown)
    pairs = dict(
        zip(
            numbers.ravel().tolist(),
            grown_numbers[..., : family.domains].ravel().tolist(),
            strict=True,
        )
    )
    assert len(pairs) == len(set(pairs.values())) == family.leaves, (
        "a leaf that grows stays one leaf"
    )
    return pairs
