"""Where mappings may run on direct links: HB domains with NICs and panels, and what a link between them costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from coopt.instance.hardware import HbDomain, Nic, Optic, Panel
from coopt.instance.schema import Instance
from coopt.network.optics import optic_choices
from coopt.network.parts import domain_lines, included_lines, keeps_limits, total, weigh
from coopt.network.space import active_choices
from coopt.plan.parts import line
from coopt.plan.schema import Cost


@dataclass(frozen=True, kw_only=True)
class DirectPlace:
    """HB domains of one kind holding N GPUs, `active` in each, and what joins them."""

    instance: Instance
    gpus: int
    hb: HbDomain
    active: int
    nic: Nic
    nics_per_gpu: int
    optic: Optic
    panel: Panel | None

    @property
    def domains(self) -> int:
        """D: HB domains bought."""
        return self.gpus // self.active

    @property
    def ports(self) -> int:
        """Links that may end at a domain; idle GPUs lend theirs."""
        return self.hb.size * self.nics_per_gpu

    @property
    def link_byte_s(self) -> float:
        """Rate of a link, each way (byte/s)."""
        return self.nic.gbit_s * 1e9 / 8

    @property
    def racks(self) -> int | None:
        """Racks that the HB domains fill, where the catalog knows."""
        return None if self.hb.racks is None else math.ceil(self.domains * self.hb.racks)

    def cost(self, links: int) -> Cost:
        """The bill with this many links: a NIC, a transceiver and a panel port at each end."""
        nic, optic, panel, ends = self.nic, self.optic, self.panel, 2 * links
        lines = domain_lines(self.instance.cluster.gpu, self.hb, self.gpus, self.domains * self.hb.size)
        lines += [
            line("nic", nic.name, ends, nic.usd, nic.w),
            line("optics", optic.name, ends, optic.usd, optic.w),
        ]
        if panel is not None:
            lines.append(line("switch", panel.name, ends, panel.usd_per_port, panel.w_per_port))
        return total(self.instance.objective, included_lines(self.instance, lines))

    def value(self, links: float) -> float:
        """The objective with this many links; inf without an end of them."""
        kind = self.instance.objective.minimize
        return math.inf if links == math.inf else self.cost(int(links)).of(kind)

    def most_links(self, below: float = math.inf) -> int:
        """Links that ports and limits leave, at less than a value of the objective; -1 where nothing keeps them.

        By halving: no price and no power falls with more links.
        """
        low, high = -1, self.domains * self.ports // 2
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._keeps(middle, below) else (low, middle - 1)
        return low

    def _keeps(self, links: int, below: float) -> bool:
        cost = self.cost(links)
        return (
            keeps_limits(self.instance.limits, cost, self.racks) and cost.of(self.instance.objective.minimize) < below
        )


def every_place(instance: Instance) -> Iterator[DirectPlace]:
    """Every place of at least two domains, in the order of the instance's lists."""
    network, objective = instance.network, instance.objective
    panel = min(network.panels, key=lambda p: weigh(objective, p.usd_per_port, p.w_per_port), default=None)
    for gpus, hb in product(instance.cluster.gpus, network.hb_domains):
        for active, nic, per_gpu in product(active_choices(gpus, hb), network.nics, network.nics_per_gpu):
            levels = optic_choices(instance, nic)
            for optic in levels[1] if gpus > active and len(levels) > 1 else ():
                yield DirectPlace(
                    instance=instance,
                    gpus=gpus,
                    hb=hb,
                    active=active,
                    nic=nic,
                    nics_per_gpu=per_gpu,
                    optic=optic,
                    panel=panel,
                )
