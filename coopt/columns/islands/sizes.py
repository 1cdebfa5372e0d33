"""How many GPUs an island could have, on which HB domains, and what it uses at least."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from coopt.columns.grid import degrees_up_to, divisors
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.workload import Workload
from coopt.perf.kernels import device_of
from coopt.perf.layer import layer_s
from coopt.perf.mapping import RECOMPUTE, Bools, Floats, Ints, Mappings

SHORT = 1 - 1e-9  # a bound on time is this much short, so that sums in another order stay above it


@dataclass(frozen=True, kw_only=True)
class Sites:
    """Places for an island: so many GPUs (n,), which HB domain of the instance's list, active GPUs in each."""

    gpus: Ints
    hb: Ints
    active: Ints

    def __len__(self) -> int:
        return len(self.gpus)

    @property
    def domains(self) -> Ints:
        """HB domains of each."""
        return -(-self.gpus // self.active)

    def take(self, rows: Ints | Bools) -> Sites:
        """The chosen sites."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def quick_degrees(workload: Workload, gpu: Gpu, gpus: int) -> Ints:
    r"""The (t, c, p, d) up to that many GPUs that can meet the bound by the compute of their layers alone; (n, 4).

    Of the fullest stage alone an iteration takes at least

    .. math:: T \ge \frac{B}{d b} \cdot \frac{L}{p} \cdot \tau(t, c, x, b, \ldots) \cdot f

    with :math:`\tau` the seconds of a layer and f the factor of the software and of stragglers: a stage has L/p layers
    or more, and all else adds time. So p·d of a (t, c) has a least value.
    """
    table = degrees_up_to(workload, gpus)
    if workload.gpus is not None:
        table = table[np.isin(table.prod(axis=1), workload.gpus)]
    if not len(table):
        return table
    return np.asarray(table[least_compute_s(workload, gpu, table) <= workload.bound_s])


def least_compute_s(workload: Workload, gpu: Gpu, table: Ints) -> Floats:
    """What an iteration takes at least for every (t, c, p, d), as `quick_degrees` has it."""
    pairs, position = np.unique(table[:, :2], axis=0, return_inverse=True)
    least = _sequences_s(workload, gpu, pairs)[position.ravel()]
    factor = workload.options.slowdown * workload.options.software.overhead
    shown = workload.global_batch * workload.model.layers / (table[:, 2] * table[:, 3]) * least * factor
    return np.asarray(shown * SHORT)


def _sequences_s(workload: Workload, gpu: Gpu, pairs: Ints) -> Floats:
    """The least compute time of a layer for one sequence at each (t, c), whatever else is chosen (s); shape (n,)."""
    experts = divisors(workload.model.experts) if workload.model.experts else (1,)
    micro_batches = np.array(workload.mapping.micro_batch)
    grid = np.meshgrid(range(len(pairs)), experts, micro_batches, range(len(RECOMPUTE)), (0, 1), indexing="ij")
    pair, x, b, recompute, sequence_parallel = (choice.ravel().astype(np.int64) for choice in grid)
    tp, cp = pairs[pair].T
    rows = Mappings.of(tp=tp, cp=cp, ep=x, micro_batch=b, recompute=recompute, sequence_parallel=sequence_parallel)
    each = layer_s(workload, device_of(workload, gpu), rows) / b
    return np.asarray(each.reshape(grid[0].shape).min(axis=(1, 2, 3, 4)))


def sites_of(gpus: Ints, hb_domains: tuple[HbDomain, ...]) -> Sites:
    """Every HB domain with every number of active GPUs for the given numbers of GPUs, by docs/network.md."""
    parts = []
    for h, hb in enumerate(hb_domains):
        small = gpus[gpus <= hb.size // 2]
        many = np.arange(hb.size // 2 + 1, hb.size + 1)
        active, even = np.nonzero(gpus % many[:, None] == 0)
        parts.append((np.concatenate([small, gpus[even]]), h, np.concatenate([small, many[active]])))
    numbers, kinds, actives = zip(*((n, np.full_like(n, h), k) for n, h, k in parts), strict=True)
    found = Sites(gpus=np.concatenate(numbers), hb=np.concatenate(kinds), active=np.concatenate(actives))
    return found.take(np.argsort(found.gpus, kind="stable"))
