"""Where a workload can train on what the loss of an HB domain leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.islands.sizes import least_compute_s, quick_degrees
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.space import active_choices


@dataclass(frozen=True, kw_only=True)
class JobPlace:
    """Some GPUs of some domains, and a time that no mapping undercuts there (s)."""

    least_s: float
    site: DomainSet

    @property
    def domains(self) -> int:
        """Domains that train."""
        return self.site.gpus // self.site.active

    def fits(self, family: Family) -> bool:
        """Whether a family holds them without one of its domains, and trains as many GPUs."""
        return self.domains < family.domains and self.site.gpus <= family.gpus


def places(workload: Workload, gpu: Gpu, hb: HbDomain, gpus: int) -> tuple[JobPlace, ...]:
    """Every place of up to that many GPUs where compute alone may be in time, the most promising first.

    The sizes are those that some (t, c, p, d) multiplies to; the domains of each follow docs/network.md.
    """
    table = quick_degrees(workload, gpu, gpus)
    sizes, position = np.unique(table.prod(axis=1), return_inverse=True)
    least = np.full(len(sizes), np.inf)
    np.minimum.at(least, position.ravel(), least_compute_s(workload, gpu, table))
    return tuple(sorted(_on(hb, zip(sizes.tolist(), least.tolist(), strict=True)), key=lambda place: place.least_s))


def _on(hb: HbDomain, sizes: Iterator[tuple[int, float]]) -> Iterator[JobPlace]:
    for gpus, least_s in sizes:
        for active in active_choices(gpus, hb):
            yield JobPlace(least_s=least_s, site=DomainSet(gpus=gpus, hb=hb.name, active=active))
