"""Ports of NICs that are out while training goes on: how often, and what an iteration takes on
average then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.reserves import Availability
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import Reach, slowest_case
from coopt.verifier.parts.workload_checks import ClaimedRun
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Clock, Work

YEAR_S, DAY_S, HOUR_S = 365 * 86400.0, 86400.0, 3600.0


class OutageShares(NamedTuple):
    """Shares of the time in which a leaf switch is out, and in which none is but a link of some
    NIC, and the share of its rate that a NIC has left then: nothing where training waits.
    """

    leaf: float
    leaf_rate: float
    link: float
    link_rate: float

    @property
    def share(self) -> float:
        """Share of the time in which a port of some NIC is out."""
        return self.leaf + self.link


ALL_PORTS = OutageShares(0.0, 1.0, 0.0, 1.0)


def outages_of(
    availability: Availability, family: DesignFamily, levels: Sequence[SwitchLevel]
) -> OutageShares:
    """How often a port of some NIC of a design is out.

    Outages begin at random and last on their own, so that the number of those under way follows
    Poisson's law.
    """
    if family.attachment is None or not levels:
        return ALL_PORTS
    attachment, ends, repair_s = (
        family.attachment,
        2 * levels[0].links,
        availability.repair_hours * HOUR_S,
    )
    per_s = {
        part: rate.at(availability.at) / YEAR_S
        for part, rate in (*availability.rates.of_part.items(), ("flap", availability.rates.flap))
    }
    if not attachment.keeps_ports:
        waits = 1 - math.exp(-ends * per_s["flap"] * availability.flap_s)
        return OutageShares(0.0, 1.0, waits, 0.0) if waits else ALL_PORTS
    leaves_up = math.exp(-levels[0].switches * per_s["switch"] * repair_s)
    links_up = math.exp(-ends * (per_s["optic"] * repair_s + per_s["flap"] * availability.flap_s))
    of_nic = attachment.nic_planes * attachment.ports_in_plane
    rates_left = 1 - attachment.ports_on_leaf / of_nic, 1 / slowdown_without(family, 1, 1)
    outages = OutageShares(1 - leaves_up, rates_left[0], leaves_up * (1 - links_up), rates_left[1])
    return outages if outages.share else ALL_PORTS


def slowdown_without(
    family: DesignFamily, nics_off: int, ports_off: int, of_gpu: int | None = None
) -> float:
    """How many times as long the traffic of a domain takes with so many ports off on some of its
    NICs, on at most `of_gpu` of each GPU; infinite where none is left (docs/faults.md).
    """
    attachment = family.network
    ports_of_gpu = attachment.per_gpu * attachment.nic_planes
    ports_left = family.rails * attachment.nic_planes - nics_off * ports_off
    hop = family.nic_byte_s / (family.hb.gbyte_s * 1e9)
    shared_ports = (
        max(1.0, family.active_nics * attachment.nic_planes / ports_left) + hop
        if ports_left > 0
        else math.inf
    )
    if of_gpu is not None:
        own_left = ports_of_gpu - of_gpu * ports_off
    elif nics_off <= attachment.ports_in_plane:
        own_left = ports_of_gpu - nics_off * ports_off
    else:  # without further planes the NICs may be all those of a GPU
        own_left = (
            ports_of_gpu - min(nics_off, attachment.per_gpu) * ports_off
            if attachment.nic_planes > ports_off
            else 0
        )
    return min(shared_ports, ports_of_gpu / own_left if own_left else math.inf)


def mean_iteration_s(
    family: DesignFamily, reach: Reach, work: Work, place: Placement, outages: OutageShares
) -> float:
    """What an iteration takes on average, with as many ports as GPUs have at a time (s)."""
    whole_s = _iteration_s(family, reach, work, place)
    if outages.share == 0.0:
        return whole_s
    # iterations in a second are averaged over the time, not the seconds of one
    per_s = (1 - outages.share) / whole_s
    for share, rate_left in ((outages.leaf, outages.leaf_rate), (outages.link, outages.link_rate)):
        if share and rate_left:
            per_s += share / _iteration_s(family.slowed(1 / rate_left), reach, work, place)
    return 1 / per_s if per_s > 0 else math.inf


def pace_of(
    availability: Availability,
    run: ClaimedRun,
    family: DesignFamily,
    reach: Reach,
    levels: Sequence[SwitchLevel],
    gpu: Gpu,
) -> float:
    """An iteration of a workload with days, with all ports of NICs, over what it takes on
    average.
    """
    outages = outages_of(availability, family, levels)
    if outages == ALL_PORTS or not run.workload.calendar:
        return 1.0
    work = Clock(run.workload, gpu).work(run.split)
    whole_s = _iteration_s(family, reach, work, run.place)
    return whole_s / mean_iteration_s(family, reach, work, run.place, outages)


def _iteration_s(family: DesignFamily, reach: Reach, work: Work, place: Placement) -> float:
    return slowest_case(family, reach, work, place).seconds
