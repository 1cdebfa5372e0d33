"""Bytes of HBM the fullest GPU needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.workload import Workload
from coopt.verifier.training.caching import kept
from coopt.verifier.training.chunks import kept_layers, layers_on, tables_on
from coopt.verifier.training.kernels import layers_in_16_bits
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.mixers import (
    dropped_of_row,
    graph_module,
    kept_of_row,
    mixer_shares,
    score_heads,
)
from coopt.verifier.training.placing import (
    HeldParameters,
    Shard,
    chunks_are_whole,
    encoder_split,
    expert_copies,
    expert_share,
    held_parameters,
    layer_shares,
    passed_columns,
    routed_width,
    shard,
    sharded_parameters,
    stage_copies,
)

GIB = 2**30
WEIGHT_BYTES = 2
COMMUNICATOR_BYTES = 576 * 2**20
"""NCCL's buffers for a group: 16 channels of three connections, 12 MiB each."""
EXCHANGE_BYTES = 448 * 2**20
"""What 32 channels to another rank of an all-to-all take; counted to 7 others, as measured."""

PINNED_SHARE = 0.2
"""Temporary tensors that CUDA graphs never give back, over what their modules keep."""


class StageLoad(NamedTuple):
    """What one stage of the pipeline holds."""

    layers: int
    tables: int
    """of the vocabulary"""
    activations: int
    """layers times micro-batches whose activations it keeps"""
    logits: bool
    late_activations: int = 0
    """of these, those whose gradients of weights alone are to come"""

    @property
    def away(self) -> int:
        """Layers times micro-batches whose activations may be in the host's memory: all but those
        of the layer at work, of one on its way, and those that gradients of weights are still taken
        from.
        """
        return max(0, self.activations - self.late_activations - 2)


class LayerBytes(NamedTuple):
    """Activations of one layer and micro-batch kept for the backward pass, logits of a micro-batch,
    and what recomputation brings back of a layer.
    """

    activations: float
    logits: float
    working: float
    brought_back: float
    """more than it keeps, until gradients of its weights are taken, where their inputs are
    recomputed
    """


def memory_bytes(workload: Workload, split: ScalarMapping) -> float:
    """Bytes on the stage that needs most, with what driver and communication take."""
    return MemoryNeeds(workload).of(split)


class MemoryNeeds:
    """Bytes that mappings of one workload need; nothing is computed twice."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload

    @kept()
    def of(self, split: ScalarMapping) -> float:
        """Bytes on the stage that needs most, with what driver and communication take."""
        layer, loads = self._layer(split), self._stage_loads(split)
        states, gathered = self._states_of(split, loads)
        fullest_bytes = max(
            state
            + (load.activations - split.offload_percent / 100 * load.away) * layer.activations
            + load.late_activations * layer.brought_back
            + (layer.logits if load.logits else 0.0)
            for state, load in zip(states, loads, strict=True)
        )
        return (
            fullest_bytes
            + gathered
            + layer.working
            + self._workload.options.software.reserve_gib * GIB
            + communication_bytes(self._workload, split)
        )

    @kept(
        lambda self, split: (
            split.tp,
            split.cp,
            split.ep,
            split.micro_batch,
            split.recompute,
            split.sequence_parallel,
        )
    )
    def _layer(self, split: ScalarMapping) -> LayerBytes:
        workload, part = self._workload, shard(self._workload, split)
        layer_bytes = kept_bytes(workload, split, part)
        brought_back = max(
            whole_layer_bytes(workload, split, part, scores=False) - layer_bytes, 0.0
        )
        further_bytes = (
            logits_bytes(workload, part),
            working_bytes(workload, split, part),
            brought_back,
        )
        return LayerBytes(layer_bytes, *further_bytes)

    @kept(
        lambda self, split: (
            split.pp,
            split.interleave,
            split.micro_batches(self._workload.global_batch),
        )
    )
    def _stage_loads(self, split: ScalarMapping) -> list[StageLoad]:
        return stage_loads(self._workload, split)

    @kept(
        lambda self, split, loads: (
            split.tp,
            split.pp,
            split.dp,
            split.cp,
            split.ep,
            split.interleave,
            split.zero,
        )
    )
    def _states_of(self, split: ScalarMapping, loads: list[StageLoad]) -> tuple[list[float], float]:
        """Parameters, gradients and optimizer states of each stage, and what is gathered of others;
        none depends on the micro-batches.
        """
        workload, parameters = self._workload, held_parameters(self._workload, split)
        stages = (stage_parameters(workload, split, parameters, load) for load in loads)
        states = [states_bytes(workload, stage, split) for stage in stages]
        return states, gathered_bytes(workload, parameters, split)


def stage_loads(workload: Workload, split: ScalarMapping) -> list[StageLoad]:
    """The first, the second and the last stage of a pipeline, as many as there are, or all stages
    of a layout.
    """
    if workload.layout:
        return list(_laid_out_loads(workload, split))
    model, p, chunk = workload.model, split.pp, split.chunk_layers(workload.model.layers)
    full_layers, spared_last = (
        split.stage_layers(model.layers),
        split.last_lacks(model.layers, model.extra_predictions),
    )
    spared_first = split.missing_layers(model.layers) - spared_last
    j, m = model.extra_predictions, split.micro_batches(workload.global_batch)
    one_table = p > 1 or model.tied_embeddings
    # missing layers are taken from the last chunk, of which the last stage has one micro-batch in
    # flight; further predictions follow it, so that each is kept for one as well
    last_kept = chunk * chunks_in_flight(split, m, p - 1) - min(spared_last, chunk) + j
    last_load = StageLoad(
        max(full_layers - spared_last, 0) + j, 1 if one_table else 2, last_kept, logits=True
    )
    if p == 1:
        return [last_load]
    if workload.options.schedule == "zb-h1":
        return _put_off_loads(split, m, [full_layers - spared_first, full_layers, last_load.layers])
    if workload.options.schedule == "dualpipe":
        return _two_way_loads(
            workload, p, full_layers - spared_first, full_layers, last_load.layers
        )
    flying = chunks_in_flight(split, m, 0)
    first_kept = chunk * flying - spared_first * first_chunk_in_flight(split, flying)
    loads = [StageLoad(full_layers - spared_first, 1, first_kept, logits=False), last_load]
    if p > 2:
        # the second may need most: layers are missing on the first and the last, and later ones
        # keep fewer chunks
        loads.append(StageLoad(full_layers, 0, chunk * chunks_in_flight(split, m, 1), logits=False))
    return loads


def _laid_out_loads(workload: Workload, split: ScalarMapping) -> Iterator[StageLoad]:
    """What every stage of a layout holds."""
    layout, p, tied = workload.layout, split.pp, workload.model.tied_embeddings
    m = split.micro_batches(workload.global_batch)
    for stage in range(p):
        kept_count = kept_layers(layout, p, split.interleave, m, stage)
        tables = tables_on(layout, p, stage, tied=tied)
        yield StageLoad(layers_on(layout, p, stage), tables, kept_count, logits=stage == p - 1)


def _put_off_loads(split: ScalarMapping, micro_batches: int, layers: list[int]) -> list[StageLoad]:
    """Stages of ZB-H1: all keep as many micro-batches as the first one; stage i, counted from 0,
    has taken no gradients of weights of i of them, and of one more whose other gradients it has
    just taken.
    """
    p, (first_layers, full_layers, last_layers) = split.pp, layers
    flying = min(p, micro_batches)

    def load(stage: int, size: int, tables: int) -> StageLoad:
        return StageLoad(size, tables, flying * size, stage == p - 1, min(stage + 1, flying) * size)

    loads = [load(0, first_layers, 1), load(p - 1, last_layers, 1)]
    return [*loads, load(p - 2, full_layers, 0)] if p > 2 else loads


def _two_way_loads(
    workload: Workload, p: int, first_layers: int, full_layers: int, last_layers: int
) -> list[StageLoad]:
    """GPUs of DualPipe: that with both ends of the model, and those in the middle while the
    pipeline is full and as it drains.
    """
    tables = 1 if workload.model.tied_embeddings else 2
    kept, put_off = p * first_layers + last_layers, max(first_layers, last_layers)
    ends = StageLoad(
        first_layers + last_layers, tables, kept, logits=True, late_activations=put_off
    )
    if p == 2:
        return [ends]
    busy_middle = StageLoad(
        2 * full_layers, 0, (p + 1) * full_layers, logits=False, late_activations=full_layers
    )
    return [
        ends,
        busy_middle,
        busy_middle._replace(
            activations=(p // 2 + 1) * full_layers, late_activations=p // 2 * full_layers
        ),
    ]


def first_chunk_in_flight(split: ScalarMapping, flying: int) -> int:
    """How many of the chunks in flight on the first stage are its first, which p micro-batches
    enter at a time.
    """
    turn = split.pp * split.interleave
    return sum(1 for number in range(flying) if number % turn < split.pp)


def stage_parameters(
    workload: Workload, split: ScalarMapping, fullest: HeldParameters, load: StageLoad
) -> HeldParameters:
    """The parameters of a stage, where the fullest GPU holds so many."""
    table = -(-workload.model.vocab // split.tp) * workload.model.hidden
    layer, expert_layer, *_ = fullest
    common, experts = load.layers * layer + load.tables * table, load.layers * expert_layer
    return HeldParameters(layer, expert_layer, common, experts)


def are_whole(workload: Workload, split: ScalarMapping) -> bool:
    """Whether a pipeline holds all its gradients and parameters whole, as FSDP2 does."""
    software = workload.options.software
    return software.whole_gradients and split.pp > 1 and not software.shards_in_rounds


def gathered_bytes(workload: Workload, fullest: HeldParameters, split: ScalarMapping) -> float:
    """The two layers that ZeRO 3 has whole at a time; or two chunks, and the gradients of one under
    ZeRO 2 as well.
    """
    layer_size = fullest.layer + fullest.expert_layer
    weight_bytes = workload.options.software.parameter_bytes
    one_by_one = split.zero == 3 and not are_whole(workload, split)
    parameters = 2 * weight_bytes * layer_size if one_by_one else 0.0
    if split.zero < 2 or not chunks_are_whole(workload, split):
        return parameters
    gradients = workload.options.software.gradient_bytes * layer_size
    largest = max((chunk.all_layers for chunk in workload.layout), default=0)
    chunk_layers = largest or split.chunk_layers(workload.model.layers)
    return chunk_layers * (parameters + gradients)


def communication_bytes(workload: Workload, split: ScalarMapping) -> float:
    """Buffers of all communicators, and of what sends tokens to experts."""
    stage = split.cp * split.dp
    sizes = [split.tp * split.pp * stage, split.tp, split.cp, split.pp, stage]
    exchanged = 0.0
    if workload.model.experts and split.ep > 1:
        sizes += [split.ep, expert_copies(workload, split)]
        if workload.options.dispatch == "each":
            exchanged = EXCHANGE_BYTES * min(split.ep - 1, 7)
        else:
            part = shard(workload, split)
            row_bytes = 2 * routed_width(workload.model) + 4 * workload.model.experts
            exchanged = split.ep * part.rows / part.norm_parts * row_bytes
    return exchanged + COMMUNICATOR_BYTES * sum(size > 1 for size in sizes)


def logits_bytes(workload: Workload, part: Shard) -> float:
    """All copies of the logits of one micro-batch; of further predictions the softmax alone, in 32
    bits.
    """
    copies = workload.options.software.logit_bytes
    further = workload.model.extra_predictions * min(copies, 4)
    return (copies + further) * part.rows * part.vocab


def states_bytes(workload: Workload, parameters: HeldParameters, split: ScalarMapping) -> float:
    """Parameters, gradients and optimizer states."""
    software, stage_size = workload.options.software, parameters.common + parameters.experts
    copies = 2 if workload.options.dp_mode == "stale-1" else 1
    gradient_bytes = copies * software.gradient_bytes
    if not split.zero:
        return (
            software.parameter_bytes * stage_size
            + gradient_bytes * stage_size
            + software.state_bytes * stage_size
        )
    shard_size = sharded_parameters(workload, parameters, split) / stage_copies(workload, split)
    sharded_to = 1 if are_whole(workload, split) else split.zero
    weights = software.parameter_bytes * (shard_size if sharded_to >= 3 else stage_size)
    return (
        weights
        + gradient_bytes * (shard_size if sharded_to >= 2 else stage_size)
        + software.state_bytes * shard_size
    )


def kept_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """Activations of one layer and micro-batch kept for the backward pass."""
    if split.recompute == "full":
        return 2.0 * part.rows * passed_columns(workload.model) / part.norm_parts
    layer_bytes = whole_layer_bytes(workload, split, part, scores=split.recompute != "selective")
    pinned_bytes = PINNED_SHARE * graphed_bytes(workload, split, part)
    return layer_bytes - dropped_bytes(workload, split, part) + pinned_bytes


def graphed_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """What modules inside CUDA graphs keep of one layer, without recomputation and scores."""
    software, model, w = workload.options.software, workload.model, product_input_bytes(workload)
    held = {*software.graph_modules}
    if software.graphs == "full":
        held = {"attn", "mamba", "mlp", "moe"}
    row_bytes = sum(
        share * kept_of_row(mixer, split.tp, w)
        for share, mixer in mixer_shares(model)
        if graph_module(mixer) in held
    )
    if "attn" in held:
        row_bytes += norm_bytes(workload, part)
    behind = _feed_forward_bytes(workload, split, part)
    return row_bytes * part.rows + behind * (("moe" if model.experts else "mlp") in held)


def product_input_bytes(workload: Workload) -> float:
    """w_k: bytes kept of an element that goes into a product, mean over the layers."""
    is_narrow = workload.precision not in ("bf16", "fp16")
    return (
        1 + layers_in_16_bits(workload)
        if is_narrow and workload.options.software.narrow_inputs
        else 2
    )


def whole_layer_bytes(
    workload: Workload, split: ScalarMapping, part: Shard, scores: bool = True
) -> float:
    """Activations of one layer without recomputation; `scores` with those of unfused attention."""
    model, w = workload.model, product_input_bytes(workload)
    masks, square = workload.options.software.dropout, 0.0
    if scores and workload.options.attention == "unfused":
        heads = split.micro_batch * score_heads(model, split.tp)
        square = (5 if masks else 2) * heads * model.seq * (model.seq / split.cp)
    row_bytes = sum(share * kept_of_row(mixer, split.tp, w) for share, mixer in mixer_shares(model))
    layer_bytes = (norm_bytes(workload, part) + row_bytes) * part.rows + square
    layer_bytes += _feed_forward_bytes(workload, split, part)
    for of_tower, of_input, layers in _encoders(workload, split):
        tower_part = shard(of_tower, of_input)
        layer_bytes += layers * whole_layer_bytes(of_tower, of_input, tower_part, scores)
    return layer_bytes


def norm_bytes(workload: Workload, part: Shard) -> float:
    """What the norms of a layer keep of a row: of two of them the input, 2 bytes each and stream,
    and the output, an input of products; of dropout a mask of a byte each.
    """
    model, masks = workload.model, workload.options.software.dropout
    element_bytes = 4 * model.streams + (2 if masks else 0) + 2 * product_input_bytes(workload)
    return layer_shares(model).blocks * model.hidden * element_bytes / part.norm_parts


def _encoders(
    workload: Workload, split: ScalarMapping
) -> Iterator[tuple[Workload, ScalarMapping, float]]:
    """Encoders as workloads, their mappings, and their layers for each layer of the model."""
    for encoder, tower in workload.model.towers:
        of_tower = workload.model_copy(update={"model": tower})
        yield of_tower, encoder_split(encoder, split), encoder.layers / workload.model.layers


def _feed_forward_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """What feed-forward layers keep, mean over the layers."""
    model, w = workload.model, product_input_bytes(workload)
    # what the nonlinearity reads in 16 bits, gate and value or one of them, and what it writes for
    # the product down
    column_bytes = w + (4 if workload.model.gated else 2)
    share = layer_shares(model)
    if not model.experts:
        return share.plain * column_bytes * model.ffn / split.tp * part.rows
    routed = part.routed_rows * (
        routed_width(model) * w + column_bytes * model.ffn / part.expert_cut
    )
    latent = w * model.expert_latent * part.rows / part.norm_parts
    mixed = column_bytes * model.shared_ffn / split.tp * part.rows + routed + latent
    return (
        share.experts * mixed + share.plain * column_bytes * model.dense_ffn / split.tp * part.rows
    )


def dropped_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """What recomputation by module does not keep of a layer."""
    model, w = workload.model, product_input_bytes(workload)
    if split.recompute not in ("norm+ffn", "norm+act", "act"):
        return 0.0
    norms = 0 if split.recompute == "act" else layer_shares(model).blocks
    dropped = norms * 2 * w * part.rows * model.hidden / part.norm_parts
    for of_tower, of_input, layers in _encoders(workload, split):
        dropped += layers * dropped_bytes(of_tower, of_input, shard(of_tower, of_input))
    if split.recompute == "norm+ffn":
        return dropped + _feed_forward_bytes(workload, split, part)
    activations = expert_share(model) * part.routed_rows * w * model.ffn / part.expert_cut
    saved = sum(share * dropped_of_row(mixer, split.tp) for share, mixer in mixer_shares(model))
    return dropped + activations + 2 * part.rows * saved


def working_bytes(workload: Workload, split: ScalarMapping, part: Shard) -> float:
    """What recomputation brings back of one layer while it runs backward."""
    if split.recompute == "full":
        return whole_layer_bytes(workload, split, part)
    return dropped_bytes(workload, split, part)


def chunks_in_flight(split: ScalarMapping, micro_batches: int, stage: int) -> int:
    """Model chunks whose activations a stage, counted from 0, keeps at once."""
    p, v = split.pp, split.interleave
    # 1F1B: a pass forward for each stage from here on; interleaved: 2(p - 1 - stage) + (v - 1)p
    # ahead, and one at work
    limit = p - stage if v == 1 else p * v + p - 1 - 2 * stage
    return min(micro_batches * v, limit)
