"""All islands that were looked at, as somebody would list them who drops nothing that meets its
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from coopt.columns.islands.coupling import Coupling, Usage
from coopt.columns.islands.listing import Islands, Market
from coopt.columns.islands.options import IslandOptions, islands_of
from coopt.instance.schema import Instance
from coopt.perf.mapping import Bools


@dataclass(frozen=True, kw_only=True)
class Remembering(Coupling):
    """Drops islands as the listing does, but remembers all it was shown."""

    shown: list[Islands] = field(default_factory=list)

    def dominated(self, kept: Islands, others: Usage) -> Bools:
        """None: every network is looked into."""
        return np.zeros(len(others[0]), dtype=np.bool_)

    def needed(self, islands: Islands) -> Islands:
        """Islands that hold an optimum whenever there is one."""
        self.shown.append(islands)
        return super().needed(islands)


def every_island(instance: Instance) -> IslandOptions:
    """Every network with its least uplinks on every site that is looked into, for each workload.

    Sites on which no network can win stay out: looking into these as well takes minutes.
    """
    found = []
    for workload in instance.workload:
        coupling = Remembering(market=Market(instance=instance))
        islands_of(coupling, workload, lambda: None)
        found.append(
            _once(reduce(Islands.followed_by, coupling.shown, coupling.market.no_islands()))
        )
    return IslandOptions(
        workload=np.repeat(np.arange(len(found)), [len(islands) for islands in found]),
        islands=reduce(Islands.followed_by, found),
        enumerated=sum(map(len, found)),
        gated={},
    )


def _once(islands: Islands) -> Islands:
    """The same without repetitions."""
    built = (
        "gpus",
        "hb",
        "active",
        "fabric",
        "nic",
        "nics_per_gpu",
        "switch",
        "optics",
        "turn",
        "uplinks",
    )
    columns = np.stack([getattr(islands, name) for name in built], axis=1)
    return islands.take(np.sort(np.unique(columns, axis=0, return_index=True)[1]))
