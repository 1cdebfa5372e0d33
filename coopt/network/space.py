"""All network families an instance ranges over."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.schema import Instance, Network, ObjectiveKind, SwitchedKind
from coopt.network.family import Family
from coopt.network.island_bills import core_switch, links_to_core
from coopt.network.optics import optic_choices
from coopt.network.wiring import EndPoints, Wiring, wirings


def active_choices(gpus: int, hb: HbDomain) -> tuple[int, ...]:
    """K: active GPUs of a domain; more than half of it, or all GPUs in one domain."""
    small = (k for k in range(1, math.isqrt(gpus) + 1) if gpus % k == 0)
    shared = sorted({k for n in small for k in (n, gpus // n) if hb.size < 2 * k <= 2 * hb.size})
    return tuple(sorted({*shared, gpus})) if gpus <= hb.size // 2 else tuple(shared)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What families are built from: HB domains, what joins them, and the least links into a core shared with others."""

    gpus: int
    hb: HbDomain
    active: int
    fabric: SwitchedKind
    nic: Nic
    nics_per_gpu: int
    switch: Switch
    links: int = 0

    def wirings(self, network: Network) -> Iterator[Wiring]:
        """Every way to join them."""
        return wirings(self._ends, self.switch.radix, network)

    def family(self, network: Network, wiring: Wiring, optics: tuple[Optic, ...]) -> Family:
        """The family of one wiring, with an optic for each of its tiers; those of further tiers are left out."""
        own = {name: value for name, value in vars(self).items() if name != "links"}
        return Family(
            **own,
            lone_links=0 if wiring.tiers else self.links,
            optics=optics[: wiring.tiers],
            planes=self._ends.planes,
            discipline=network.discipline,
            **vars(wiring),
        )

    @property
    def _ends(self) -> EndPoints:
        return EndPoints(
            fabric=self.fabric,
            domains=self.gpus // self.active,
            rails=self.hb.size * self.nics_per_gpu,
            links=self.links,
        )


def families(instance: Instance, measures: tuple[ObjectiveKind, ...] | None = None) -> Iterator[Family]:
    """Every family of docs/network.md, in the order of the instance's lists.

    Parameters
    ----------
    measures
        What optics are compared by; as the instance has it where left out.
    """
    network = instance.network
    levels = {nic.name: optic_choices(instance, nic, measures) for nic in network.nics}
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        for active in active_choices(gpus, hb):
            for parts in _joined(instance, gpus, hb, active):
                choices = levels[parts.nic.name]
                for wiring in parts.wirings(network):
                    if wiring.tiers <= len(choices):
                        for optics in product(*choices[: wiring.tiers]):
                            yield parts.family(network, wiring, optics)


def _joined(instance: Instance, gpus: int, hb: HbDomain, active: int) -> Iterator[Parts]:
    network, core, links = instance.network, core_switch(instance), links_to_core(instance, gpus)
    for fabric, nic, per_gpu, switch in product(network.switched, network.nics, network.nics_per_gpu, network.switches):
        if switch.port_gbit_s == nic.gbit_s and (core is None or core.port_gbit_s == nic.gbit_s):
            yield Parts(
                gpus=gpus,
                hb=hb,
                active=active,
                fabric=fabric,
                nic=nic,
                nics_per_gpu=per_gpu,
                switch=switch,
                links=links,
            )
