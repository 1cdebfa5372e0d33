"""All network families an instance ranges over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.network.cores import core_switch, links_to_core
from coopt.network.family import Family
from coopt.network.prices import cheapest_optics
from coopt.network.wiring import EndPoints, wirings


def active_choices(gpus: int, hb: HbDomain) -> tuple[int, ...]:
    """K: active GPUs of a domain; more than half of it, or all GPUs in one domain."""
    small = (k for k in range(1, math.isqrt(gpus) + 1) if gpus % k == 0)
    shared = sorted({k for n in small for k in (n, gpus // n) if hb.size < 2 * k <= 2 * hb.size})
    return tuple(sorted({*shared, gpus})) if gpus <= hb.size // 2 else tuple(shared)


def families(instance: Instance) -> Iterator[Family]:
    """Every family of docs/network.md, in the order of the instance's lists."""
    network = instance.network
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        for active in active_choices(gpus, hb):
            yield from _joined(instance, gpus, hb, active)


def _joined(instance: Instance, gpus: int, hb: HbDomain, active: int) -> Iterator[Family]:
    network, core, links = instance.network, core_switch(instance), links_to_core(instance, gpus)
    for fabric, nic, per_gpu, switch in product(network.switched, network.nics, network.nics_per_gpu, network.switches):
        if switch.port_gbit_s != nic.gbit_s or (core is not None and core.port_gbit_s != nic.gbit_s):
            continue
        optics = cheapest_optics(network, instance.objective, nic)
        ends = EndPoints(fabric=fabric, domains=gpus // active, rails=hb.size * per_gpu, links=links)
        for wiring in wirings(ends, switch.radix, network):
            if wiring.tiers <= len(optics):
                yield Family(
                    gpus=gpus,
                    hb=hb,
                    active=active,
                    fabric=fabric,
                    nic=nic,
                    nics_per_gpu=per_gpu,
                    switch=switch,
                    optics=optics[: wiring.tiers],
                    planes=ends.planes,
                    routing=network.routing,
                    lone_links=0 if wiring.tiers else links,
                    **vars(wiring),
                )
