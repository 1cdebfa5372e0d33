"""Bytes of HBM the fullest GPU needs."""

from __future__ import annotations

from coopt.instance.workload import Workload
from coopt.verifier.split import Split, parameters, shard

GIB = 2**30


def memory_bytes(workload: Workload, split: Split) -> float:
    """Bytes on the first or on the last stage, whichever needs more."""
    model = workload.model
    first, last = chunks_in_flight(split, split.micro_batches(workload.global_batch))
    chunk = kept_bytes(workload, split) * model.layers / (split.pp * split.interleave)
    logits = 4.0 * split.micro_batch * model.seq * shard(model, split.tp).vocab
    fixed = states_bytes(parameters(model, split), split) + working_bytes(workload, split)
    return fixed + max(chunk * first, chunk * last + logits)


def states_bytes(held: float, split: Split) -> float:
    """Parameters, gradients and optimizer states of `held` parameters (bytes)."""
    return held * 6 + held * 12 / (split.dp if split.zero == 1 else 1)


def kept_bytes(workload: Workload, split: Split) -> float:
    """Activations of one layer and micro-batch kept for the backward pass (bytes)."""
    if split.recompute == "full":
        z = split.tp if split.sequence_parallel else 1
        return 2.0 * split.micro_batch * workload.model.seq * workload.model.hidden / z
    return whole_layer_bytes(workload, split, scores=split.recompute == "none")


def whole_layer_bytes(workload: Workload, split: Split, scores: bool = True) -> float:
    """Activations of one layer without recomputation; `scores` with those of unfused attention (bytes)."""
    model = workload.model
    part = shard(model, split.tp)
    rows = split.micro_batch * model.seq
    z = split.tp if split.sequence_parallel else 1
    width = 2 * (part.queries + part.keys_values) + 2 * part.queries + (6 if model.gated else 4) * part.ffn
    square = 0.0
    if scores and workload.options.attention == "unfused":
        square = 5 * split.micro_batch * model.heads * model.seq**2 / split.tp
    return rows * model.hidden * 10 / z + width * rows + square


def working_bytes(workload: Workload, split: Split) -> float:
    """The layer that full recomputation brings back while it runs backward (bytes)."""
    return whole_layer_bytes(workload, split) if split.recompute == "full" else 0.0


def chunks_in_flight(split: Split, micro_batches: int) -> tuple[int, int]:
    """Model chunks whose activations the first and the last stage keep at once."""
    p, v = split.pp, split.interleave
    first = p if v == 1 else p * v + p - 1
    last = 1 if v == 1 else (v - 1) * p + 1
    return min(micro_batches * v, first), min(micro_batches * v, last)
