"""Memory (bytes) that a mapping needs on the fullest GPU.

The equations are those of arXiv 2205.05198, section 4, extended to grouped-query, latent, gated and
expert layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, Self

import numpy as np

from coopt.instance.layouts import Layout, stages_of
from coopt.instance.workload import Workload
from coopt.perf.mapping import (
    ACT,
    FULL,
    NORM_ACT,
    NORM_FFN,
    SELECTIVE,
    Floats,
    Ints,
    Mappings,
    block_share,
    chunk_layers,
    distinct_rows,
    expert_layers,
    expert_rows,
    expert_width,
    ffn_share,
    layer_expert_parameters,
    layer_parameters,
    micro_batches,
    residual_width,
    rows_to_time,
    stage_layers,
    tp_of_experts,
    vocab_share,
    wide_share,
)
from coopt.perf.mixers import laws_of

GIB = 2.0**30
# of a parameter in a checkpoint, whatever software keeps of it on a GPU
PARAMETER_BYTES = 2
STATES = {
    "parameters": "parameter_bytes",
    "gradients": "gradient_bytes",
    "optimizer states": "state_bytes",
}
"""Components of a model's states, with the properties of software that size them."""
StageLoad = tuple[Ints, Any, Ints, Any]
MIB = 2**20
# NCCL 2.30 (init.cc, transport/p2p.cc): 4 MiB of Simple, 0.5 of LL and 4.7 of LL128 on the side
# that receives, and what the side that sends has, in pieces of 2 MiB; a ring and both ways of a
# tree in each of 16 channels; four A100 took 544 to 688 MB a group (NCCL issue 964)
GROUP_BYTES = 16 * 3 * (10 + 2) * MIB
# 32 channels between two of 8 H100, of 14 MiB: an all-to-all took 3.28 GB (NCCL issue 1685)
PAIR_BYTES, MEASURED_PAIRS = 32 * 14 * MIB, 7
PROBABILITY_BYTES = 4
SOFTMAX_BYTES = 4
# of activations kept, what modules in CUDA graphs hold besides: their temporary tensors stay
# (NeMo, docs/source/features/optimizations/cudagraphs.md: about 20%)
GRAPH_SHARE = 0.2


def memory_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes on the fullest GPU; shape (n,)."""
    m = mappings
    of_layer, of_table, gathered_bytes = state_bytes(workload, m)
    kept = _KeptOfStages.of(workload, m)
    *earlier_bytes, last_bytes = (
        of_layer * layers + of_table * tables + stage_bytes
        for (layers, tables, *_), stage_bytes in zip(kept.loads, kept.bytes_of_stages, strict=True)
    )
    fullest = reduce(np.maximum, earlier_bytes, last_bytes + kept.logits)
    always = workload.options.software.reserve_gib * GIB + communication_bytes(workload, m)
    return np.asarray(fullest + gathered_bytes + kept.working + always, dtype=np.float64)


def memory_parts(workload: Workload, mappings: Mappings) -> dict[str, Floats]:
    """Bytes on the fullest GPU by component; they add up to `memory_bytes`; shape (n,) each."""
    m, software = mappings, workload.options.software
    of_layer, of_table, gathered_bytes = state_bytes(workload, m)
    kept = _KeptOfStages.of(workload, m)
    last_logits = [np.zeros(len(m))] * (len(kept.loads) - 1) + [kept.logits]
    stages_bytes = np.stack(
        [
            np.broadcast_to(of_layer * load[0] + of_table * load[1] + stage + logits, len(m))
            for load, stage, logits in zip(
                kept.loads, kept.bytes_of_stages, last_logits, strict=True
            )
        ]
    )
    fullest = stages_bytes.argmax(axis=0)

    def there(values: Iterable[Any]) -> Floats:
        """Values of the fullest stage."""
        columns = [np.broadcast_to(value, len(m)) for value in values]
        return np.asarray(np.choose(fullest, columns), dtype=np.float64)

    layers, tables = there(load[0] for load in kept.loads), there(load[1] for load in kept.loads)
    parts: dict[str, Floats] = {}
    for name, field in STATES.items():
        # the bytes of one are those without the others
        others = {other: 0 for other in STATES.values() if other != field}
        alone = software.model_copy(update=others)
        options = workload.options.model_copy(update={"software": alone})
        state = state_bytes(workload.model_copy(update={"options": options}), m)
        parts[name] = np.asarray(state[0] * layers + state[1] * tables, dtype=np.float64)
    return parts | {
        "gathered shards": np.asarray(gathered_bytes, dtype=np.float64),
        "activations": there(kept.bytes_of_stages),
        "recomputation": np.asarray(np.broadcast_to(kept.working, len(m)), dtype=np.float64),
        "logits": there(last_logits),
        "reserve": np.full(len(m), software.reserve_gib * GIB),
        "communication": communication_bytes(workload, m),
    }


def communication_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes of buffers of communication, which lie outside a framework's allocator; shape (n,).

    NCCL has a communicator for every group of several ranks, and for all ranks. HybridEP has room
    for the tokens of all ranks of a group of experts, each with a probability for every expert.
    """
    m, model = mappings, workload.model
    groups = 1 * (m.tp * m.cp * m.pp * m.dp > 1) + (m.tp > 1) + (m.cp > 1) + (m.pp > 1)
    groups = groups + (m.dp * m.cp > 1)
    tokens_bytes: Any = 0.0
    if model.experts:
        shared = m.ep > 1
        copies = expert_copies(m, expert_tp=workload.options.expert_tp)
        groups = groups + shared + (shared & (copies > 1))
        row_bytes = 2 * expert_width(model) + PROBABILITY_BYTES * model.experts
        rows = _rows(workload, m) / _norm_split(m) * m.ep
        tokens_bytes = (
            PAIR_BYTES * np.minimum(m.ep - 1, MEASURED_PAIRS)
            if workload.options.dispatch == "each"
            else np.where(shared, rows * row_bytes, 0.0)
        )
    return np.asarray(GROUP_BYTES * groups + tokens_bytes, dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _KeptOfStages:
    """Activations of the stages that can be the fullest, the last stage last; shape (n,) each."""

    loads: tuple[StageLoad, ...]
    bytes_of_stages: tuple[Any, ...]
    logits: Floats
    working: Floats

    @classmethod
    def of(cls, workload: Workload, m: Mappings) -> Self:
        """Return what mappings keep for the backward pass."""
        model, sequence = workload.model, m.sequence_parallel.astype(np.int64)
        rows, position = rows_to_time(m.tp, m.cp, m.micro_batch, m.recompute, sequence)
        distinct_mappings = m.take(rows)
        kept = _Kept(workload, distinct_mappings)
        kept_of_layer = kept.activations[position]
        each = workload.options.software.logit_bytes
        # copies in 16 bits go before those of the next prediction come
        logits = (
            (each + model.extra_predictions * min(each, SOFTMAX_BYTES))
            * _rows(workload, distinct_mappings)
            * vocab_share(model, distinct_mappings.tp)
        )[position]
        loads = tuple(_every_stage(workload, m))
        bytes_of_stages = [
            kept_of_layer * _on_the_gpu(m, activation_layers, put_off_layers)
            for *_, activation_layers, put_off_layers in loads
        ]
        if workload.options.schedule != "1f1b":
            brought_back = kept.brought_back[position]
            bytes_of_stages = [
                stage_bytes + brought_back * put_off_layers
                for stage_bytes, (*_, put_off_layers) in zip(bytes_of_stages, loads, strict=True)
            ]
        return cls(
            loads=loads,
            bytes_of_stages=tuple(bytes_of_stages),
            logits=logits,
            working=kept.working[position],
        )


def _on_the_gpu(mappings: Mappings, activation_layers: Ints, put_off_layers: Any) -> Any:
    """Return layers times micro-batches whose activations are in GPU memory.

    With offloading these are the activations kept on the GPU, and of the offloaded ones the current
    layer, one layer in transfer, and those whose gradients of weights are still to be computed.
    """
    if not mappings.offload_percent.any():
        return activation_layers
    return activation_layers - mappings.offload_percent / 100.0 * np.maximum(
        activation_layers - put_off_layers - 2, 0
    )


def checkpoint_bytes(workload: Workload) -> float:
    """Bytes of a checkpoint: the parameters and optimizer states of the whole model."""
    model, options = workload.model, workload.options
    layer = layer_parameters(model, 1)
    if model.experts:
        layer = layer + layer_expert_parameters(model, 1, 1, expert_tp=options.expert_tp)
    tables = (1 if model.tied_embeddings else 2) * model.vocab * model.hidden
    parameters = (model.layers + model.extra_predictions) * layer + tables
    return float((PARAMETER_BYTES + options.software.state_bytes) * parameters)


def stages(workload: Workload, mappings: Mappings) -> tuple[StageLoad, ...]:
    """Contents of the first, second and last stage, each of which can be the fullest, or of every
    stage of a layout.

    The first keeps the most micro-batches and has an embedding, the second can have one more layer,
    and the last has the logits and further predictions. A pipeline of one stage counts as the last
    stage; one of two has no second stage. Under ZB-H1 the second stands for all middle stages.
    Under DualPipe the last is the GPU with both ends of the model, and the other two are the middle
    GPU, while the pipeline drains and before.

    Returns
    -------
    layers, tables, activation_layers, put_off_layers
        Layers of the stage; vocabulary tables; layers times micro-batches whose activations it
        keeps; and those of them that only wait for gradients of weights.
    """
    if workload.layout:
        return _laid_out(workload, mappings)
    m, model, j = mappings, workload.model, workload.model.extra_predictions
    p, v, chunk = m.pp, m.interleave, chunk_layers(model.layers, m)
    full_layers, short_last = stage_layers(model, m)
    short_first = p * full_layers - model.layers - short_last
    first_chunks, second_chunks, last_chunks = chunks_in_flight(m, workload.global_batch)
    # the first chunk lacks the layers that the first stage lacks; it recurs p times per round of
    # chunks, and fewer than two rounds are in flight
    of_first_chunk = np.minimum(first_chunks, p) + np.maximum(first_chunks - p * v, 0)
    has_second = p > 2
    tables = np.where((p == 1) & (not model.tied_embeddings), 2, 1)
    on_last = np.maximum(full_layers - short_last, 0) + j
    loads: tuple[StageLoad, ...] = (
        (full_layers - short_first, 1, chunk * first_chunks - short_first * of_first_chunk, 0),
        (full_layers * has_second, 0, chunk * second_chunks * has_second, 0),
        (on_last, tables, chunk * last_chunks - np.minimum(short_last, chunk) + j, 0),
    )
    if workload.options.schedule == "1f1b":
        return loads
    return (_put_off if workload.options.schedule == "zb-h1" else _two_way)(workload, m, loads)


def _laid_out(workload: Workload, mappings: Mappings) -> tuple[StageLoad, ...]:
    """Contents of every stage of a layout, the last stage last.

    Layers that predict further tokens use a vocabulary table, of the last stage that of the loss.
    """
    both_tables = 1 if workload.model.tied_embeddings else 2
    m = mappings
    pipelines, position = distinct_rows(m.pp, m.interleave, micro_batches(m, workload.global_batch))
    counts = [column.tolist() for column in pipelines]
    table = np.zeros((max(counts[0], default=1), 3, len(counts[0])), dtype=np.int64)
    for row, (p, v, batches) in enumerate(zip(*counts, strict=True)):
        for stage, held in enumerate(stages_of(workload.layout, p)):
            is_end = held.embeds or held.loss or held.predictions > 0
            table[stage - p, :, row] = (
                held.all_layers,
                both_tables if held.embeds and held.loss else is_end,
                _layers_in_flight(workload.layout, p, v, batches, stage),
            )
    return tuple((layers, tables, kept, 0) for layers, tables, kept in table[:, :, position])


@lru_cache(maxsize=1 << 12)
def _layers_in_flight(layout: Layout, p: int, v: int, batches: int, stage: int) -> int:
    """Maximum of layers times micro-batches whose activations a stage keeps."""
    sizes = np.array([chunk.all_layers for chunk in layout[stage::p]])
    # chunks in turn, each of as many micro-batches as there are stages where they interleave
    together = p if v > 1 else batches
    entered = np.tile(np.repeat(sizes, together), batches // together)
    left = np.tile(np.repeat(sizes[::-1], together), batches // together)
    ahead = p - 1 - stage if v == 1 else 2 * (p - 1 - stage) + (v - 1) * p
    if ahead >= len(entered) or (v > 1 and batches == p):
        return int(entered.sum())
    at_once = entered.cumsum()[ahead:]
    at_once[1:] -= left.cumsum()[: len(at_once) - 1]
    return int(at_once.max())


def _put_off(
    workload: Workload, mappings: Mappings, loads: tuple[StageLoad, ...]
) -> tuple[StageLoad, ...]:
    """Stage contents under ZB-H1.

    Every stage keeps activations of as many micro-batches as the first stage. The later a stage,
    the more of these wait only for their gradients of weights: one more per stage, so the last
    middle stage keeps the most.
    """
    p, batches = (
        mappings.pp,
        np.minimum(mappings.pp, micro_batches(mappings, workload.global_batch)),
    )
    put_off_counts = (np.minimum(batches, count) * (p > 1) for count in (1, p - 1, p))
    return tuple(
        (layers, tables, layers * batches, layers * count)
        for (layers, tables, *_), count in zip(loads, put_off_counts, strict=True)
    )


def _two_way(
    workload: Workload, mappings: Mappings, loads: tuple[StageLoad, ...]
) -> tuple[StageLoad, ...]:
    """Stage contents under DualPipe: two stages and p + 1 micro-batches (arXiv 2412.19437, Table
    2).

    On the GPUs with the ends of a pipeline one of these micro-batches has passed all stages. While
    the pipeline drains, a middle GPU still has to compute half of its gradients of weights.
    """
    p, (first_layers, _, last_layers) = mappings.pp, (layers for layers, *_ in loads)
    middle_layers = loads[1][0]
    tables = 1 if workload.model.tied_embeddings else 2
    paired: tuple[StageLoad, ...] = (
        (2 * middle_layers, 0, (p // 2 + 1) * middle_layers, p // 2 * middle_layers),
        (2 * middle_layers, 0, (p + 1) * middle_layers, middle_layers),
        (
            first_layers + last_layers,
            tables,
            p * first_layers + last_layers,
            np.maximum(first_layers, last_layers),
        ),
    )
    return tuple(
        (*(np.where(p > 1, a, b) for a, b in zip(pair, load, strict=True)),)
        for pair, load in zip(paired, loads, strict=True)
    )


def _every_stage(workload: Workload, mappings: Mappings) -> Iterator[StageLoad]:
    """`stages` of all mappings, computed once for equal pipeline, chunks and micro-batches."""
    m = mappings
    rows, position = rows_to_time(m.pp, m.interleave, micro_batches(m, workload.global_batch))
    for load in stages(workload, m.take(rows)):
        layers, tables, activation_layers, put_off_layers = (
            column[position] if np.ndim(column) else column for column in load
        )
        yield layers, tables, activation_layers, put_off_layers


def stage_copies(mappings: Mappings) -> Ints:
    """Number of GPUs per pipeline that hold the same stage under DualPipe; shape (n,)."""
    return 1 + (mappings.pp > 1)


def state_bytes(workload: Workload, mappings: Mappings) -> tuple[Floats, Floats, Floats]:
    """Bytes of parameters, gradients and optimizer states; shape (n,) each.

    Returns
    -------
    of_layer, of_table, gathered
        Bytes of a layer, of a vocabulary table, and of sharded tensors while they are gathered.
    """
    m, model, options = mappings, workload.model, workload.options
    stage = m.zero
    gradients = (
        2 if options.dp_mode == "stale-1" else 1
    )  # those on their way, and those of this step
    sizes = (
        options.software.parameter_bytes,
        gradients * options.software.gradient_bytes,
        options.software.state_bytes,
    )
    # ZeRO 3 shards parameters, gradients and optimizer states over the replicas, ZeRO 2 the latter
    # two, ZeRO 1 the last; pipelines of FSDP2 keep parameters gathered, and gradients whole
    software = options.software
    are_whole = (m.pp > 1) & (software.whole_gradients and not software.shards_in_rounds)
    spread_bytes: Any = sum(
        size * is_shared
        for size, is_shared in zip(
            sizes,
            ((stage >= 3) & ~are_whole, (stage >= 2) & ~are_whole, stage >= 1),
            strict=True,
        )
    )
    whole_bytes = sum(sizes) - spread_bytes
    if options.schedule == "dualpipe":
        spread_bytes = spread_bytes / stage_copies(m)
    spread_bytes = spread_bytes * options.dp_replicate
    parameter_bytes = whole_bytes + spread_bytes / (m.dp * m.cp)
    (t,), at = distinct_rows(m.tp)
    layer, table = layer_parameters(model, t)[at], (vocab_share(model, t) * model.hidden)[at]
    of_layer, gathered_parameters = parameter_bytes * layer, layer
    if model.experts:
        experts = layer_expert_parameters(model, m.tp, m.ep, expert_tp=options.expert_tp)
        of_layer = (
            of_layer
            + (whole_bytes + spread_bytes / expert_copies(m, expert_tp=options.expert_tp)) * experts
        )
        gathered_parameters = gathered_parameters + experts
    # ZeRO 3 gathers the current layer and the next one
    at_once = 2.0 * options.software.parameter_bytes * ((stage == 3) & ~are_whole)
    if options.software.shards_in_rounds:  # whole chunks, and the gradients of one
        largest = max((chunk.all_layers for chunk in workload.layout), default=0)
        chunk = np.where(m.interleave > 1, largest or chunk_layers(model.layers, m), 1)
        at_once = at_once * chunk + options.software.gradient_bytes * chunk * (
            (stage >= 2) & (m.interleave > 1)
        )
    return of_layer, parameter_bytes * table, gathered_parameters * at_once


def shard_rounds(workload: Workload, mappings: Mappings) -> Ints:
    """Number of times that an iteration reduces gradient shards, and gathers parameter shards in
    each pass; shape (n,).
    """
    times = micro_batches(mappings, workload.global_batch)
    if not workload.options.software.shards_in_rounds:
        return times
    return np.where(mappings.interleave > 1, -(-times // mappings.pp), times)


def expert_copies(mappings: Mappings, *, expert_tp: int) -> Floats:
    """y_x: number of GPUs that hold the same experts; shape (n,)."""
    holders = mappings.tp // tp_of_experts(mappings.tp, expert_tp)
    return np.asarray(mappings.cp * mappings.dp * holders // mappings.ep, dtype=np.float64)


def layer_activation_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes that a layer keeps for its backward pass, per micro-batch; shape (n,)."""
    return _Kept(workload, mappings).activations


@dataclass(frozen=True)
class _Kept:
    """Activation bytes of a layer for one micro-batch, each computed once; shape (n,)."""

    workload: Workload
    mappings: Mappings

    @property
    def norm_bytes(self) -> float:
        """Bytes kept per element of the residual stream: inputs and outputs of two norms, each of
        which keeps all streams that it mixes, and masks of two dropouts.
        """
        workload = self.workload
        kept = 2 * 2 + 2 * input_bytes(workload) + 2 * workload.options.software.dropout
        return kept + 2 * 2 * (workload.model.streams - 1)

    @cached_property
    def full(self) -> Floats:
        """All activations but attention scores: s·b·h·34/t for a plain layer with dropout and
        sequence parallelism.
        """
        of_layers = self._kept_by(lambda _: 1.0)
        return np.asarray(of_layers + self._of_encoders("full"), dtype=np.float64)

    @cached_property
    def of_graphs(self) -> Any:
        """Bytes that CUDA graphs hold besides, of norms and mixers, and of what follows them."""
        software = self.workload.options.software
        return 0.0 if software.graphs == "none" else GRAPH_SHARE * self._kept_by(software.in_graph)

    def _kept_by(self, weight: Callable[[str], float]) -> Any:
        """Bytes that norms and mixers, and what follows them, keep, each by the weight of its
        module.
        """
        workload, mappings = self.workload, self.mappings
        model, t, width = workload.model, mappings.tp, input_bytes(workload)
        rows, norm_split = _rows(workload, mappings), _norm_split(mappings)
        norms = weight("attn") * self.norm_bytes * model.hidden / norm_split
        mixers = sum(
            share * law.kept_columns(t, width) * weight(law.module) for share, law in laws_of(model)
        )
        feed_forward = _kept_feed_forward(workload, t, rows, norm_split)
        behind = feed_forward * weight("moe" if model.experts else "mlp")
        return rows * (norms * block_share(model) + mixers) + behind

    def _of_encoders(self, name: str) -> Any:
        """Bytes of encoders by the name of a property, spread over all layers."""
        whole: Any = 0.0
        for encoder, tower in self.workload.model.towers:
            of_tower = self.workload.model_copy(update={"model": tower})
            one = np.ones_like(self.mappings.cp)
            sequences = self.mappings.micro_batch * encoder.inputs / self.mappings.cp
            part = replace(self.mappings, cp=one, ep=one, micro_batch=sequences)  # type: ignore[arg-type]
            bytes_of_layer = getattr(_Kept(of_tower, part), name)
            whole = whole + bytes_of_layer * (tower.layers / self.workload.model.layers)
        return whole

    @cached_property
    def scores(self) -> Floats:
        """Bytes of the attention scores."""
        workload, mappings = self.workload, self.mappings
        if workload.options.attention == "flash":
            return np.zeros(len(mappings))
        model = workload.model
        heads = sum(share * law.scores(mappings.tp) for share, law in laws_of(model))
        pairs = mappings.micro_batch * heads * float(model.seq) * (model.seq / mappings.cp)
        pair_bytes = (
            2 + 3 * workload.options.software.dropout
        )  # softmax; what dropout leaves of it, and its mask
        return np.asarray(pair_bytes * pairs + self._of_encoders("scores"), dtype=np.float64)

    @cached_property
    def repeated(self) -> Floats:
        """Bytes that recomputation by module does not keep; 0 for other kinds."""
        workload, mappings = self.workload, self.mappings
        kind, model, t, width = (
            mappings.recompute,
            workload.model,
            mappings.tp,
            input_bytes(workload),
        )
        by_module = np.isin(kind, (ACT, NORM_ACT, NORM_FFN))
        if not by_module.any():
            return np.zeros(len(mappings))
        rows = _rows(workload, mappings)
        norms = 2 * width * model.hidden / _norm_split(mappings) * rows * block_share(model)
        split = tp_of_experts(t, workload.options.expert_tp)
        cheap_bytes: Any = 0
        if model.experts:
            cheap_bytes = (
                expert_layers(model)
                * expert_rows(model, rows, t, split)
                * width
                * model.ffn
                / split
            )
        saved_columns = sum(share * law.saved_columns(t) for share, law in laws_of(model))
        cheap_bytes = cheap_bytes + 2 * rows * saved_columns
        repeated_bytes = norms * (kind != ACT) + np.where(
            kind == NORM_FFN,
            _kept_feed_forward(workload, t, rows, _norm_split(mappings)),
            cheap_bytes,
        )
        repeated_bytes = repeated_bytes + self._of_encoders("repeated")
        return np.asarray(np.where(by_module, repeated_bytes, 0.0), dtype=np.float64)

    @cached_property
    def activations(self) -> Floats:
        """Bytes kept for the backward pass."""
        kind, inputs = (
            self.mappings.recompute,
            2.0 * _rows(self.workload, self.mappings) * residual_width(self.workload.model),
        )
        kept = self.full - self.repeated
        kept = np.where(kind == SELECTIVE, kept, kept + self.scores) + self.of_graphs
        return np.where(kind == FULL, inputs / _norm_split(self.mappings), kept)

    @property
    def brought_back(self) -> Floats:
        """Bytes kept in addition after recomputation, until the gradients of weights are
        computed.
        """
        return np.maximum(self.full - self.activations, 0.0)

    @property
    def working(self) -> Floats:
        """Bytes that recomputation restores at a time, without attention scores."""
        return np.where(self.mappings.recompute == FULL, self.full + self.scores, self.repeated)


def offloaded_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes that a layer sends to the host in its forward pass, and reads back in its backward
    pass; shape (n,).
    """
    m, sequence = mappings, mappings.sequence_parallel.astype(np.int64)
    rows, position = rows_to_time(
        m.tp, m.cp, m.micro_batch, m.recompute, sequence, m.offload_percent
    )
    distinct_mappings = m.take(rows)
    return np.asarray(
        (
            layer_activation_bytes(workload, distinct_mappings)
            * (distinct_mappings.offload_percent / 100.0)
        )[position]
    )


def chunks_in_flight(mappings: Mappings, global_batch: int) -> tuple[Ints, Ints, Ints]:
    """Maximum number of model chunks whose activations the first, second and last stage hold; shape
    (n,) each.
    """
    p, v = mappings.pp, mappings.interleave
    all_chunks = micro_batches(mappings, global_batch) * v
    first_chunks = np.where(v > 1, p * v + p - 1, p)
    second_chunks = np.where(v > 1, first_chunks - 2, p - 1)
    # the last stage starts its backward pass right after its last chunk, so that only earlier
    # chunks accumulate
    last_chunks = np.where(v > 1, (v - 1) * p + 1, 1)
    return (
        np.minimum(all_chunks, first_chunks),
        np.minimum(all_chunks, second_chunks),
        np.minimum(all_chunks, last_chunks),
    )


def _rows(workload: Workload, mappings: Mappings) -> Floats:
    return mappings.micro_batch * float(workload.model.seq) / mappings.cp


def _norm_split(mappings: Mappings) -> Floats:
    return np.where(mappings.sequence_parallel, mappings.tp, 1).astype(np.float64)


def input_bytes(workload: Workload) -> float:
    """Bytes kept per element of the inputs of matrix products, averaged over all layers."""
    narrow = workload.precision in ("fp8", "fp4") and workload.options.software.narrow_inputs
    return 1.0 + wide_share(workload) if narrow else 2.0


def _kept_feed_forward(workload: Workload, t: Any, rows: Any, norm_split: Any) -> Any:
    model, width = workload.model, input_bytes(workload)
    element_bytes = (
        4 if model.gated else 2
    ) + width  # what the nonlinearity reads, with its gate, and what it writes
    if not model.experts:
        return element_bytes * model.ffn / t * rows * ffn_share(model)
    share, split = expert_layers(model), tp_of_experts(t, workload.options.expert_tp)
    routed_bytes = expert_rows(model, rows, t, split) * (
        width * expert_width(model) + element_bytes * model.ffn / split
    )
    if model.expert_latent:  # what experts give, before it is projected back
        routed_bytes = routed_bytes + width * model.expert_latent * rows / norm_split
    dense = (ffn_share(model) - share) * element_bytes * model.dense_ffn / t * rows
    return share * (element_bytes * model.shared_ffn / t * rows + routed_bytes) + dense
