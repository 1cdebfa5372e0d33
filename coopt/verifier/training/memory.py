"""Bytes of HBM the fullest GPU needs."""

from __future__ import annotations

from coopt.instance.workload import Workload
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.shards import (
    HeldParameters,
    Shard,
    expert_share,
    held_layers,
    held_parameters,
    shard,
    sharded_parameters,
)

GIB = 2**30
WEIGHT_BYTES, OPTIMIZER_STATE_BYTES = 2, 12


def memory_bytes(workload: Workload, split: ScalarMapping) -> float:
    """Bytes on the first or on the last stage, whichever needs more."""
    return fixed_bytes(workload, split) + activation_bytes(workload, split)


def fixed_bytes(workload: Workload, split: ScalarMapping) -> float:
    """Parameters, gradients, optimizer states, and the layers ZeRO 3 gathers."""
    parameters = held_parameters(workload, split)
    gathered = 4 * (parameters.layer + parameters.expert_layer) if kept_stage(split) == 3 else 0.0
    return states_bytes(workload, parameters, split) + gathered


def activation_bytes(workload: Workload, split: ScalarMapping) -> float:
    """What is kept for the backward pass on the first or on the last stage, with what recomputation works on."""
    part, model = shard(workload, split), workload.model
    first, last = chunks_in_flight(split, split.micro_batches(workload.global_batch))
    layer = kept_bytes(workload, split, part)
    chunk = layer * split.chunk_layers(model.layers)
    extra = held_layers(model, split) - split.stage_layers(model.layers)
    logits = 4.0 * part.rows * part.vocab * (1 + model.extra_predictions)
    return working_bytes(workload, split, part) + max(chunk * first, chunk * last + extra * layer + logits)


def states_bytes(workload: Workload, held: HeldParameters, split: ScalarMapping) -> float:
    """Parameters, gradients and optimizer states."""
    parameters, g = held.common + held.experts, workload.options.software.gradient_bytes
    if workload.options.dp_mode == "stale-1":
        g += g
    stage = kept_stage(split)
    unsharded_bytes = (WEIGHT_BYTES + g + OPTIMIZER_STATE_BYTES, WEIGHT_BYTES + g, WEIGHT_BYTES, 0)[stage]
    total = unsharded_bytes * parameters
    if stage:
        total += (WEIGHT_BYTES + g + OPTIMIZER_STATE_BYTES - unsharded_bytes) * sharded_parameters(
            workload, held, split
        )
    return total


def kept_stage(split: ScalarMapping) -> int:
    """The ZeRO stage that memory sees: under a pipeline gradients and parameters stay whole."""
    return split.zero if split.pp == 1 else min(split.zero, 1)


def kept_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """Activations of one layer and micro-batch kept for the backward pass."""
    if split.recompute == "full":
        return 2.0 * part.rows * workload.model.hidden / part.norm_parts
    return whole_layer_bytes(workload, split, part, scores=split.recompute == "none")


def whole_layer_bytes(workload: Workload, split: ScalarMapping, part: Shard, scores: bool = True) -> float:
    """Activations of one layer without recomputation; `scores` with those of unfused attention."""
    model, columns = workload.model, part.widths
    attention = 2 * (columns.queries + columns.keys_values) + 2 * columns.values
    square = 0.0
    if scores and workload.options.attention == "unfused":
        square = 5 * (split.micro_batch * part.heads) * model.seq * (model.seq / split.cp)
    norms = part.rows * model.hidden * 10 / part.norm_parts
    return norms + attention * part.rows + _feed_forward_bytes(workload, split, part) + square


def _feed_forward_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """What feed-forward layers keep, mean over the layers."""
    model, each = workload.model, 6 if workload.model.gated else 4
    if not model.experts:
        return each * model.ffn / split.tp * part.rows
    share = expert_share(model)
    routed = part.routed_rows * (2 * model.hidden * 2 + each * model.ffn / part.expert_cut)
    mixed = each * model.shared_ffn / split.tp * part.rows + routed
    return share * mixed + (1 - share) * each * model.dense_ffn / split.tp * part.rows


def working_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """The layer that full recomputation brings back while it runs backward."""
    return whole_layer_bytes(workload, split, part) if split.recompute == "full" else 0.0


def chunks_in_flight(split: ScalarMapping, micro_batches: int) -> tuple[int, int]:
    """Model chunks whose activations the first and the last stage keep at once."""
    p, v = split.pp, split.interleave
    first = p if v == 1 else p * v + p - 1
    last = 1 if v == 1 else (v - 1) * p + 1
    return min(micro_batches * v, first), min(micro_batches * v, last)
