"""Every mapping of a workload."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from itertools import product

from coopt.instance.workload import Workload
from coopt.verifier.arithmetic import divisors
from coopt.verifier.split import Split

MOST_MISSING = 3
"""Layers a model may have fewer than its stages have room for."""


def recomputes(workload: Workload) -> tuple[str, ...]:
    """The kinds of recomputation the instance allows."""
    if workload.mapping.recompute is not None:
        return workload.mapping.recompute
    return ("none", "full") if workload.options.attention == "flash" else ("none", "selective", "full")


def splits(workload: Workload, gpus: int) -> Iterator[Split]:
    """All mappings of docs/network.md on `gpus` GPUs."""
    limits, batch = workload.mapping, workload.global_batch
    for t, c in product(_tensor_degrees(workload), _context_degrees(workload)):
        if gpus % (t * c):
            continue
        for p in divisors(gpus // (t * c)):
            d = gpus // (t * c * p)
            if p > workload.model.layers or batch % d or not (_free(limits.pp, p) and _free(limits.dp, d)):
                continue
            styles = [*product(_expert_degrees(workload, t, c * d), *_styles(workload, t, c * d))]
            for b in sorted(set(limits.micro_batch)):
                if (batch // d) % b:
                    continue
                for v in _interleaves(workload, p, batch // (d * b)):
                    for x, recompute, on, zero in styles:
                        yield Split(t, p, d, c, x, b, v, recompute, on, zero)


def sizes(workload: Workload, most: int) -> list[int]:
    """How many GPUs some mapping takes, up to `most` and the largest first."""
    limits, layers = workload.mapping, workload.model.layers
    ranks = {t * c for t, c in product(_tensor_degrees(workload), _context_degrees(workload))}
    stages = [p for p in range(1, layers + 1) if _free(limits.pp, p)]
    copies = [d for d in divisors(workload.global_batch) if _free(limits.dp, d)]
    found = {n * p * d for n, p, d in product(ranks, stages, copies) if n * p * d <= most}
    return sorted(found, reverse=True)


def _tensor_degrees(workload: Workload) -> list[int]:
    degrees = divisors(workload.model.heads)
    return [t for t in degrees if tensor_divides(workload, t) and _free(workload.mapping.tp, t)]


def tensor_divides(workload: Workload, t: int) -> bool:
    """Whether heads and all widths that TP splits divide by t."""
    model = workload.model
    if model.heads % t or (model.kv_heads % t and t % model.kv_heads):
        return False
    widths = [model.shared_ffn, model.dense_ffn]
    if not model.experts or workload.options.expert_tp:
        widths.append(model.ffn)
    return all(width % t == 0 for width in widths)


def _context_degrees(workload: Workload) -> list[int]:
    return sorted(c for c in set(workload.mapping.cp) if workload.model.seq % c == 0)


def _expert_degrees(workload: Workload, t: int, ranks: int) -> list[int]:
    """x, where a stage has t times `ranks` GPUs."""
    return [x for x in divisors(expert_room(workload, t * ranks, t)) if _free(workload.mapping.ep, x)]


def expert_room(workload: Workload, stage: int, t: int) -> int:
    """The number x has to divide: what E and the ranks an expert group may take have in common, 1 if dense."""
    if not workload.model.experts:
        return 1
    return math.gcd(workload.model.experts, stage // t if workload.options.expert_tp else stage)


def _styles(workload: Workload, t: int, ranks: int) -> tuple[list[str], list[bool], list[int]]:
    """Recomputation, sequence parallelism and ZeRO stages that go with t and `ranks` data-parallel ranks."""
    limits = workload.mapping
    split_norms = t > 1 and workload.options.tp_sync_fraction == 1
    sequence = [on for on in (False, True) if on in limits.sequence_parallel and (split_norms or not on)]
    possible = zero_stages(workload, ranks)
    zeros: list[int] = [stage for stage in possible if stage in limits.zero]
    return list(dict.fromkeys(recomputes(workload))), sequence, zeros


def zero_stages(workload: Workload, ranks: int) -> tuple[int, ...]:
    """ZeRO stages where `ranks` hold the same parameters; what arrives a step late cannot be needed at once."""
    if ranks == 1:
        return (0,)
    return (0, 1) if workload.options.dp_mode == "stale-1" else (0, 1, 2, 3)


def _interleaves(workload: Workload, p: int, micro_batches: int) -> Iterator[int]:
    """v: more than 1 only where the micro-batches go round the stages evenly."""
    most = workload.model.layers // p if p > 1 and micro_batches % p == 0 else 1
    for v in range(1, most + 1):
        if missing(workload.model.layers, p * v) <= MOST_MISSING and _free(workload.mapping.interleave, v):
            yield v


def missing(layers: int, chunks: int) -> int:
    """Layers missing when all chunks are as long as the longest."""
    return -layers % chunks


def _free(limit: Container[int] | None, value: int) -> bool:
    return limit is None or value in limit
