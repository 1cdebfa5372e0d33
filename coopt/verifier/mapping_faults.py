"""What is wrong with the mapping of a plan."""

from __future__ import annotations

from coopt.instance.workload import Workload
from coopt.plan.schema import MappingChoice
from coopt.verifier.mappings import MOST_MISSING, expert_room, missing, recomputes, tensor_divides, zero_stages


def mapping_fault(workload: Workload, gpus: int, mapping: MappingChoice) -> str:
    """What is wrong with the mapping of a plan, as a sentence; empty when it is allowed."""
    numbers = (mapping.tp, mapping.pp, mapping.dp, mapping.cp, mapping.ep, mapping.micro_batch, mapping.interleave)
    if min(numbers) < 1:
        return "Every degree of a mapping is 1 or more."
    faults = (_widths, _stages, _batches, _styles)
    found = _ranks(gpus, mapping) or next(filter(None, (fault(workload, mapping) for fault in faults)), "")
    return found or _excluded(workload, mapping)


def _ranks(gpus: int, mapping: MappingChoice) -> str:
    ranks = mapping.tp * mapping.cp * mapping.pp * mapping.dp
    return "" if ranks == gpus else f"tp x cp x pp x dp is {ranks}, and {gpus} GPUs train."


def _widths(workload: Workload, mapping: MappingChoice) -> str:
    """Whether layers, sequences and experts divide."""
    model, t, c, x = workload.model, mapping.tp, mapping.cp, mapping.ep
    if not tensor_divides(workload, t):
        return f"tp = {t} does not divide the heads, KV heads or FFN widths of {model.name!r}."
    if model.seq % c:
        return f"cp = {c} does not divide the sequence of {model.seq} tokens."
    if expert_room(workload, t * c * mapping.dp, t) % x:
        return f"ep = {x} does not divide the experts of {model.name!r} and the ranks that may hold them."
    return ""


def _stages(workload: Workload, mapping: MappingChoice) -> str:
    """Whether the layers go on the stages."""
    layers, p, v = workload.model.layers, mapping.pp, mapping.interleave
    if p * v > layers or missing(layers, p * v) > MOST_MISSING:
        return (
            f"pp = {p} with interleave = {v} leaves more than {MOST_MISSING} of the {layers} layers of "
            f"{workload.model.name!r} missing, or has more chunks than layers."
        )
    return ""


def _batches(workload: Workload, mapping: MappingChoice) -> str:
    """Whether the batch divides into micro-batches, and these go round the stages."""
    p, d, b, v = mapping.pp, mapping.dp, mapping.micro_batch, mapping.interleave
    if workload.global_batch % (d * b):
        return f"dp = {d} and micro_batch = {b} do not divide the batch of {workload.global_batch}."
    m = workload.global_batch // (d * b)
    if v > 1 and (p == 1 or m % p):
        return f"interleave = {v} needs a pipeline and a multiple of its {p} stages as micro-batches, not {m}."
    return ""


def _styles(workload: Workload, mapping: MappingChoice) -> str:
    """Whether sequence parallelism and the ZeRO stage mean anything here."""
    if mapping.sequence_parallel and (mapping.tp == 1 or workload.options.tp_sync_fraction < 1):
        return "Sequence parallelism needs tensor parallelism that keeps all activations equal."
    if mapping.zero not in zero_stages(workload, mapping.dp * mapping.cp):
        return (
            f"ZeRO stage {mapping.zero} does not exist, has no data or context parallel ranks to share with, "
            "or does not go with gradients one step late."
        )
    return ""


def _excluded(workload: Workload, mapping: MappingChoice) -> str:
    """What the instance does not allow."""
    limits = workload.mapping
    for key in ("tp", "pp", "dp", "cp", "ep", "micro_batch", "interleave", "sequence_parallel", "zero"):
        limit, value = getattr(limits, key), getattr(mapping, key)
        if limit is not None and value not in limit:
            return f"The instance does not allow {key} = {value}."
    if mapping.recompute not in recomputes(workload):
        return f"The instance does not allow recompute = {mapping.recompute!r} for this attention."
    return ""
