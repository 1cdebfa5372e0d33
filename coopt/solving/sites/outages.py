"""What interrupts one model at several sites, and what lost channels make of its pace.

Any failure at any site ends the run of all. What a run can rely on so depends on everything that is
built, while networks are chosen site by site: the search takes the most that any choice can rely on
for a bound, and what its answer can rely on until that is in time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from coopt.columns.times import waiting
from coopt.instance.reserves import YEAR_S, Availability
from coopt.instance.schema import Instance
from coopt.perf.uptime import HOUR_S, PartCounts, enough_domains, interruptions
from coopt.plan.parts import Uptime
from coopt.solving.days import family_domain_lost, part_counts, uptime_told
from coopt.solving.sites.arrays import RingDesign
from coopt.solving.sites.options import gradient_bytes


def within_shares(instance: Instance, shares: Mapping[str, float]) -> Instance:
    """The question in which runs have that share of their days."""
    workloads = tuple(
        workload.model_copy(update={"train_days": workload.train_days * shares[workload.name]})
        if workload.train_days is not None
        else workload
        for workload in instance.workload
    )
    return instance.having(workload=workloads)


def most_promised(instance: Instance, availability: Availability) -> dict[str, float]:
    """The share of its time in which a run trains on GPUs and hosts alone, whatever joins them."""
    none = dict.fromkeys(("nics", "optics", "switches", "domains"), 0)
    counts = PartCounts(gpus=instance.cluster.most_gpus, **none)
    return {
        workload.name: float(interruptions(availability, workload, counts).trained)
        for workload in instance.workload
    }


def uptimes_of(
    instance: Instance, availability: Availability, design: RingDesign
) -> dict[str, Uptime]:
    """What interrupts each workload on the networks of all sites together."""
    parts = [part_counts(option.family, option.uplinks) for option in design.options]
    counts = PartCounts(
        **{one.name: sum(getattr(part, one.name) for part in parts) for one in fields(PartCounts)}
    )
    running = math.prod(
        enough_domains(
            family_domain_lost(availability, family), family.domains, family.spare_domains
        )
        for family in (option.family for option in design.options)
    )
    found = {}
    for w, workload in enumerate(instance.workload):
        stops = interruptions(availability, workload, counts)
        port_out, pace = _pace(availability, design, w, gradient_bytes(workload))
        goodput = running * float(stops.trained) * pace
        found[workload.name] = uptime_told(
            stops, running=running, pace=pace, port_out=port_out, promised=goodput
        )
    return found


def _pace(
    availability: Availability, design: RingDesign, w: int, gradients: float
) -> tuple[float, float]:
    """The share of the time in which a channel is out, and the mean pace over the full one.

    Outages begin at random; while a channel of one link is out, those of later links do not count.
    """
    of_channel = availability.rates.channel.at(availability.at) / YEAR_S
    left, out, per_s = 1.0, 0.0, 0.0
    whole_s = iteration_s(design, w, gradients)
    for link, channels in enumerate(design.channels):
        share = -math.expm1(-channels * of_channel * availability.repair_hours * HOUR_S) * left
        left, out = left - share, out + share
        per_s += share / iteration_s(design, w, gradients, lost=link)
    return out, (left / whole_s + per_s) * whole_s


def iteration_s(design: RingDesign, w: int, gradients: float, lost: int | None = None) -> float:
    """The iteration of the slowest site with its mapping, also with a channel of one link lost (s);
    infinite where none is left.
    """
    rates = [
        (channels - (number == lost)) * link.gbit_s
        for number, (link, channels) in enumerate(
            zip(design.ring.links, design.channels, strict=True)
        )
    ]
    if 0 in rates:
        return math.inf
    usual_s = design.exchange_s(gradients)
    wait_s = design.ring.exchange_s(gradients, min(rates, default=1.0))
    return max(
        float(waiting(option.pools[w], wait_s).time_s(option.context, option.uplinks)[row])
        for option in design.options
        for row, _ in [option.fastest(w, usual_s)]
    )
