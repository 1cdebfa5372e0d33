"""Every mapping of a workload, every placement of a mapping, and what is wrong with a given one."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from functools import cache
from itertools import product

from coopt.instance.workload import Workload
from coopt.plan.schema import MappingChoice, WorkloadPlan
from coopt.verifier.split import Placement, Split


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small, *(number // k for k in small)}))


def recomputes(workload: Workload) -> tuple[str, ...]:
    """The kinds of recomputation the instance allows."""
    if workload.mapping.recompute is not None:
        return workload.mapping.recompute
    return ("none", "full") if workload.options.attention == "flash" else ("none", "selective", "full")


def splits(workload: Workload, gpus: int) -> Iterator[Split]:
    """All mappings of docs/network.md on `gpus` GPUs."""
    model, limits = workload.model, workload.mapping
    for t, p in product(_tensor_degrees(workload), divisors(model.layers)):
        d, rest = divmod(gpus, t * p)
        if rest or workload.global_batch % d or not (_free(limits.pp, p) and _free(limits.dp, d)):
            continue
        sequence = [on for on in (False, True) if on in limits.sequence_parallel and not (on and t == 1)]
        zeros = [stage for stage in (0, 1) if stage in limits.zero and not (stage and d == 1)]
        for b in sorted(set(limits.micro_batch)):
            if (workload.global_batch // d) % b:
                continue
            m = workload.global_batch // (d * b)
            for v in divisors(model.layers // p):
                if (v == 1 or (p > 1 and m % p == 0)) and _free(limits.interleave, v):
                    for recompute, on, zero in product(dict.fromkeys(recomputes(workload)), sequence, zeros):
                        yield Split(t, p, d, b, v, recompute, on, zero)


def _tensor_degrees(workload: Workload) -> list[int]:
    model = workload.model
    return [
        t
        for t in divisors(model.heads)
        if (model.kv_heads % t == 0 or t % model.kv_heads == 0) and model.ffn % t == 0 and _free(workload.mapping.tp, t)
    ]


def _free(limit: Container[int] | None, value: int) -> bool:
    return limit is None or value in limit


def placements(split: Split, active: int) -> Iterator[Placement]:
    """All ways to put `active` GPUs of a mapping into one domain."""
    for t in divisors(split.tp):
        if active % t:
            continue
        for p in divisors(split.pp):
            d, rest = divmod(active, t * p)
            if rest == 0 and d and split.dp % d == 0:
                yield Placement(t, split.tp // t, p, split.pp // p, d, split.dp // d)


def mapping_fault(workload: Workload, gpus: int, mapping: MappingChoice) -> str:
    """What is wrong with the mapping of a plan, as a sentence; empty when it is allowed."""
    numbers = (mapping.tp, mapping.pp, mapping.dp, mapping.cp, mapping.ep, mapping.micro_batch, mapping.interleave)
    if min(numbers) < 1:
        return "Every degree of a mapping is 1 or more."
    return _uneven(workload, gpus, mapping) or _excluded(workload, mapping)


def _uneven(workload: Workload, gpus: int, mapping: MappingChoice) -> str:
    """What does not divide."""
    model, t, p, d, v = workload.model, mapping.tp, mapping.pp, mapping.dp, mapping.interleave
    if mapping.cp != 1 or mapping.ep != 1:
        return "Context and expert parallelism have to be 1."
    if t * p * d != gpus:
        return f"tp x pp x dp is {t * p * d}, and {gpus} GPUs train."
    if model.heads % t or model.ffn % t or (model.kv_heads % t and t % model.kv_heads):
        return f"tp = {t} does not divide the heads, KV heads or FFN width of {model.name!r}."
    if model.layers % p or (model.layers // p) % v:
        return f"pp = {p} with interleave = {v} does not divide the {model.layers} layers of {model.name!r}."
    if workload.global_batch % (d * mapping.micro_batch):
        return f"dp = {d} and micro_batch = {mapping.micro_batch} do not divide the batch of {workload.global_batch}."
    m = workload.global_batch // (d * mapping.micro_batch)
    if v > 1 and (p == 1 or m % p):
        return f"interleave = {v} needs a pipeline and a multiple of its {p} stages as micro-batches, not {m}."
    if mapping.sequence_parallel and t == 1:
        return "Sequence parallelism needs tensor parallelism."
    if mapping.zero not in (0, 1) or (mapping.zero and d == 1):
        return f"ZeRO stage {mapping.zero} does not exist here, or has no data parallel ranks to share with."
    return ""


def _excluded(workload: Workload, mapping: MappingChoice) -> str:
    """What the instance does not allow."""
    limits = workload.mapping
    for key in ("tp", "pp", "dp", "micro_batch", "interleave", "sequence_parallel", "zero"):
        limit, value = getattr(limits, key), getattr(mapping, key)
        if limit is not None and value not in limit:
            return f"The instance does not allow {key} = {value}."
    if mapping.recompute not in recomputes(workload):
        return f"The instance does not allow recompute = {mapping.recompute!r} for this attention."
    return ""


def placement_of(plan: WorkloadPlan, active: int) -> Placement | None:
    """The placement of a plan whose mapping is sound; None where it does not multiply out."""
    pairs = plan.placement
    if set(pairs) != {"tp", "pp", "dp", "cp", "ep"} or min(min(pair) for pair in pairs.values()) < 1:
        return None
    if any(inside * across != getattr(plan.mapping, key) for key, (inside, across) in pairs.items()):
        return None
    if pairs["tp"][0] * pairs["pp"][0] * pairs["dp"][0] != active:
        return None
    return Placement(*pairs["tp"], *pairs["pp"], *pairs["dp"])
