"""The mappings of a workload on some GPUs that fit into memory, and what each takes at least on any network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.grid import MappingCounts, allowed_recompute, counts_on, mappings, whole_mappings
from coopt.columns.least_times import compute_s, least_time_s, without_steps
from coopt.instance.hardware import Gpu
from coopt.instance.workload import BOUNDS, Workload
from coopt.perf.affine import NO_NETWORK
from coopt.perf.iterations import iteration
from coopt.perf.mapping import NONE, Bools, Floats, Ints, Mappings, Placements
from coopt.perf.memory import memory_bytes

KEPT = 16
"""Lists of mappings, and placements of each, that are kept for the next question of a process."""
ROUNDING = 1e-12  # a bound is this much short, so that sums in another order stay above it


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """Mappings of a workload on N GPUs that fit into memory, with a bound below their time on any network.

    Those that save memory without need stand beside them.
    """

    workload: Workload
    gpus: int
    fit: Mappings
    fastest_s: Floats
    uneven: MappingCounts
    too_large: Mappings
    needless: Mappings
    least_bytes: float
    _least_s: dict[tuple[float, float], Floats] = field(default_factory=dict, compare=False, repr=False)
    _counts: dict[DomainSet, tuple[Counter[str], Ints]] = field(default_factory=dict, compare=False, repr=False)
    pools: dict[Hashable, tuple[Any, Counter[str]]] = field(default_factory=dict, compare=False, repr=False)

    def least_s(self, gpu: Gpu, hb_gbyte_s: float, byte_s: float) -> Floats:
        """What each mapping that fits takes at least on such wires, worked out once for all domains that have them."""
        wires = (hb_gbyte_s, byte_s)
        if wires not in self._least_s:
            self._least_s[wires] = least_time_s(self.workload, gpu, self.fit, hb_gbyte_s=hb_gbyte_s, byte_s=byte_s)
        return self._least_s[wires]

    def counts_on(self, site: DomainSet) -> tuple[Counter[str], Ints]:
        """How many placements have those that do not fit, by cause, and each that fits, worked out once for a site."""
        if site not in self._counts:
            uneven = int(counts_on(self.workload, self.uneven.rows, site) @ self.uneven.counts)
            dropped = {"memory": self.too_large, "dominated": self.needless}
            counts = {cause: int(counts_on(self.workload, rows, site).sum()) for cause, rows in dropped.items()}
            self._counts[site] = (
                Counter({"divisibility": uneven} | counts),
                counts_on(self.workload, self.fit, site),
            )
        return self._counts[site]

    def keep(self, key: Hashable, answer: tuple[Any, Counter[str]]) -> None:
        """Remember a pool for questions that differ in prices and limits alone, in place of the oldest of many."""
        if len(self.pools) >= KEPT:
            oldest, *_ = self.pools  # read at once, as another thread may keep a pool meanwhile
            self.pools.pop(oldest, None)
        self.pools[key] = answer


def fitting(workload: Workload, gpu: Gpu, gpus: int) -> Fitting:
    """Enumerate a workload's mappings and keep those that fit into memory; kept for questions with other bounds, or
    with other prices."""
    unbound = dict.fromkeys((*BOUNDS, "train_tokens")) | {"name": ""}
    return replace(_fitting(workload.model_copy(update=unbound), gpu.unpriced, gpus), workload=workload)


@lru_cache(maxsize=KEPT)
def _fitting(workload: Workload, gpu: Gpu, gpus: int) -> Fitting:
    even_mappings, uneven = mappings(workload, gpus)
    needed_bytes = memory_bytes(workload, even_mappings)
    fits = needed_bytes <= gpu.usable_bytes
    fit = even_mappings.take(fits)
    saves = saves_needlessly(workload, gpu, fit)
    needless, fit = fit.take(saves), fit.take(~saves)
    return Fitting(
        workload=workload,
        gpus=gpus,
        fit=fit,
        fastest_s=fastest_s(workload, gpu, fit),
        uneven=uneven,
        too_large=even_mappings.take(~fits),
        needless=needless,
        least_bytes=float(needed_bytes.min(initial=np.inf)),
    )


def saves_needlessly(workload: Workload, gpu: Gpu, fit: Mappings) -> Bools:
    """Mappings alike to another that fits too, is no slower anywhere, and saves less memory; shape (n,).

    Whatever is repeated adds to the time of a layer, unless less then goes to the host; so may what goes there, and
    ZeRO 2 and 3 send in every micro-batch what ZeRO 1 sends once an iteration; groups lie alike. Where gradients hide
    behind compute, more of these may hide more, and where collectives may run in several ways, other ways may be taken
    for them: there nothing is said to be needless.
    """
    needless = np.zeros(len(fit), dtype=np.bool_)
    if workload.options.dp_mode == "overlap" or workload.options.collectives != "levels":
        return needless
    at_home, offloads = fit.offload_percent == 0, workload.mapping.offload_percent
    repeats = at_home & (fit.recompute != NONE) if "none" in allowed_recompute(workload) else needless
    lighter_choices = [(repeats, {"recompute": NONE})]
    lighter_choices += [(fit.offload_percent > share, {"offload_percent": share}) for share in sorted(offloads)[:-1]]
    lighter_choices += [(fit.zero > stage, {"zero": stage}) for stage in (1, 2) if stage in workload.mapping.zero]
    for applies, change in lighter_choices:
        rows = np.flatnonzero(applies & ~needless)
        savers = fit.take(rows)
        alternatives = replace(savers, **{key: np.full(len(savers), value) for key, value in change.items()})
        needless[rows] = memory_bytes(workload, alternatives) <= gpu.usable_bytes
    return needless


def fastest_s(workload: Workload, gpu: Gpu, mappings: Mappings) -> Floats:
    """Times (n,) that no placement undercuts: with wires without end, and with starts of collectives but no steps."""
    inside = Placements(tp=mappings.tp, cp=mappings.cp, pp=mappings.pp, dp=mappings.dp)
    return iteration(workload, without_steps(gpu), np.inf, mappings, inside).time_s(NO_NETWORK) * (1.0 - ROUNDING)


def timely(
    workload: Workload, gpu: Gpu, quadruples: Iterable[tuple[int, int, int, int]], *, hb_gbyte_s: float, byte_s: float
) -> Mappings:
    """The mappings of some (t, c, p, d) that fit into memory and may meet the bound on such wires, as `least_time_s`
    has them. The layers of most take longer alone, which is known before their memory is, and whatever ZeRO does.
    """

    def is_quick(rows: Mappings) -> Bools:
        return compute_s(workload, gpu, rows) <= workload.bound_s

    even_mappings = whole_mappings(workload, quadruples, is_quick)
    fit = even_mappings.take(memory_bytes(workload, even_mappings) <= gpu.usable_bytes)
    fit = fit.take(~saves_needlessly(workload, gpu, fit))
    return fit.take(least_time_s(workload, gpu, fit, hb_gbyte_s=hb_gbyte_s, byte_s=byte_s) <= workload.bound_s)
