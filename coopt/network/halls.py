"""Where the racks of a network stand, what they draw, and how long its cables are
(docs/network.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.network import Hall, NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.core import core_optic
from coopt.network.family import Family, levels
from coopt.network.modules import end_modules
from coopt.network.parts import racks
from coopt.network.racks import Lengths, Placing, SwitchBox, placed
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
    count, hb = racks(family), family.hb
    if count is None or hb.racks is None:
        return None
    placing = _placed(instance, family, uplinks)
    # Cables are laid once: they lead to where switches stand when the network has grown, and so
    # keep their lengths.
    end, becomes = placing, list(range(family.leaves))
    if grown is not None:
        end = _placed(instance, *grown)
        becomes = _grown_numbers(family, grown[0]) if family.tiers else []
    has_heights = all(switch.rack_units for switch in family.switches)
    own_racks = placing.switch_racks
    racks_w = _racks_w(instance.cluster.gpu, family)
    return NetworkHall(
        hall=placing.hall,
        racks=count,
        switch_racks=len(own_racks.after) if has_heights else None,
        switch_rack_w=own_racks.most_w,
        rack_w=racks_w / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=racks_w + _network_w(instance, family, uplinks),
        cables=placing.cables(end, becomes),
        amid=(
            own_racks.spots
            if has_heights
            else frozenset(rack for tier in placing.amid[:2] for rack in tier)
        ),
        to_core=_to_core(family, end, becomes),
    )


def _placed(instance: Instance, family: Family, uplinks: int) -> Placing:
    """A network in its hall; a leaf bears the modules of links into a core as well."""
    assert family.hb.racks is not None, "the racks of a domain are known"
    rows = instance.network.hall
    hall = Hall(
        racks_per_domain=family.hb.racks,
        **{key: getattr(rows, key) for key in NetworkHallRows.model_fields},
    )
    chain, ends_w = family.chain(uplinks), [*_ends_w(family, uplinks), (0.0, 0.0)]
    tiers = zip(chain.levels, family.switches, pairwise(ends_w), strict=True)
    boxes = [
        SwitchBox(
            units=box.rack_units,
            # Modules are shared out evenly, as the switches of a tier are alike.
            w=box.w
            + (below_w + up_w + (0.0 if level else _core_ends_w(instance, family))) / tier.switches,
        )
        for level, (tier, box, ((_, below_w), (up_w, _))) in enumerate(tiers)
    ]
    numbers = leaf_numbers(family) if family.tiers else np.empty((0, 0), dtype=np.int64)
    return placed(chain, hall, numbers, boxes)


def _racks_w(gpu: Gpu, family: Family) -> float:
    """What all racks of HB domains draw together, those that stand by too."""
    hb, domains = family.hb, family.domains + family.spare_domains
    domain_w = hb.size * (gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    return domain_w * domains + (family.nic_count + family.spare_nics) * family.nic.w


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
    ends = zip(end_modules(family, family.chain(uplinks)), family.optics, strict=True)
    return [(count.below * optic.below.w, count.above * optic.above.w) for count, optic in ends]


def _to_core(family: Family, end: Placing, becomes: Sequence[int]) -> Counter[int]:
    """Links into a core by the spot where they start: equally many at each leaf switch, or all at a
    single domain.
    """
    if not family.tiers:
        return +Counter({end.switch_racks.spot(end.hall.rack_of(0)): family.lone_links})
    starts = Counter[int]()
    for leaf in becomes:
        starts[end.spot(0, leaf)] += family.chassis // family.leaves * family.core_ports
    # The plus drops spots where no link starts.
    return +starts


def _grown_numbers(family: Family, grown: Family) -> list[int]:
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
    return [pairs[leaf] for leaf in range(family.leaves)]
