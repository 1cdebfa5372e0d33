"""Every mapping of a workload on N GPUs (docs/network.md, Mappings)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Ints, Mappings


@cache
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of n in rising order."""
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    return tuple(sorted({*small, *(n // i for i in small)}))


def degrees(workload: Workload, gpus: int) -> Iterator[tuple[int, int, int]]:
    """(t, p, d) with t·p·d = N that divide heads, layers and global batch."""
    model, limits = workload.model, workload.mapping
    for t in _allowed(divisors(model.heads), limits.tp):
        shares_kv = model.kv_heads % t == 0 or t % model.kv_heads == 0
        if gpus % t or not shares_kv or model.ffn % t:
            continue
        for p in _allowed(divisors(model.layers), limits.pp):
            d = gpus // (t * p)
            if gpus == t * p * d and workload.global_batch % d == 0 and (limits.dp is None or d in limits.dp):
                yield t, p, d


def mappings(workload: Workload, gpus: int) -> tuple[Mappings, Mappings]:
    """All combinations of the allowed values, and those among them that divide evenly.

    Returns
    -------
    whole, uneven
        Mappings whose micro-batches fit the batch and the interleaved schedule, and those that do not.
    """
    table = np.concatenate(
        [_grid(workload, *tpd) for tpd in degrees(workload, gpus)] or [np.zeros((8, 0), dtype=np.int64)], axis=1
    )
    rows = _named(table)
    per_replica = workload.global_batch // np.maximum(rows.dp, 1)
    even = per_replica % rows.micro_batch == 0
    even &= (rows.interleave == 1) | ((per_replica // rows.micro_batch) % rows.pp == 0)
    return rows.take(even), rows.take(~even)


def _grid(workload: Workload, t: int, p: int, d: int) -> Ints:
    """The other choices of a (t, p, d) as columns; shape (8, n)."""
    limits, model = workload.mapping, workload.model
    batches = limits.micro_batch
    interleaves = _allowed(divisors(model.layers // p) if p > 1 else (1,), limits.interleave)
    recomputes = [RECOMPUTE.index(name) for name in limits.recompute or _default_recompute(workload)]
    sequence = _allowed((0,) if t == 1 else (0, 1), [int(flag) for flag in limits.sequence_parallel])
    zeros = _allowed((0,) if d == 1 else (0, 1), limits.zero)
    choices = np.meshgrid(batches, interleaves, recomputes, sequence, zeros, indexing="ij")
    rest = np.stack([choice.ravel() for choice in choices]).astype(np.int64)
    return np.concatenate([np.repeat([[t], [p], [d]], rest.shape[1], axis=1), rest]).astype(np.int64)


def _named(table: Ints) -> Mappings:
    t, p, d, b, v, recompute, sp, zero = table
    return Mappings(
        tp=t,
        pp=p,
        dp=d,
        micro_batch=b,
        interleave=v,
        recompute=recompute,
        sequence_parallel=sp.astype(np.bool_),
        zero=zero,
    )


def _default_recompute(workload: Workload) -> tuple[str, ...]:
    return ("none", "full") if workload.options.attention == "flash" else RECOMPUTE


def _allowed(possible: Sequence[int], limit: Sequence[int] | None) -> list[int]:
    """The possible values a user's list leaves."""
    return [value for value in possible if limit is None or value in limit]
