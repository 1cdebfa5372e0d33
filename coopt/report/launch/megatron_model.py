"""The model of a workload as arguments of Megatron-LM's pretrain_gpt.py."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload

Argument = tuple[str, ...]

PRECISIONS: dict[str, tuple[Argument, ...]] = {
    "bf16": (("--bf16",),),
    "fp16": (("--fp16",),),
    "fp8": (("--bf16",), ("--fp8-format", "hybrid")),
    "fp4": (("--bf16",), ("--fp4-format", "e2m1")),
}


def model_arguments(workload: Workload) -> Iterator[Argument]:
    """Shape of the transformer and format of its numbers."""
    model = workload.model
    yield "--num-layers", str(model.layers)
    yield "--hidden-size", str(model.hidden)
    yield "--ffn-hidden-size", str(model.dense_ffn or model.ffn)
    yield "--seq-length", str(model.seq)
    yield "--max-position-embeddings", str(model.seq)
    yield "--vocab-size", str(model.vocab)
    if model.gated:
        yield ("--swiglu",)
    if not model.tied_embeddings:
        yield ("--untie-embeddings-and-output-weights",)
    if model.extra_predictions:
        yield "--mtp-num-layers", str(model.extra_predictions)
    if model.extra_predictions or model.kv_rank:
        yield "--position-embedding-type", "rope"
    yield from _attention(model)
    yield "--attention-backend", workload.options.attention
    if model.experts:
        yield from _experts(model)
    yield from PRECISIONS[workload.precision]


def _attention(model: Transformer) -> Iterator[Argument]:
    yield "--num-attention-heads", str(model.heads)
    if model.kv_rank:
        yield ("--multi-latent-attention",)
        if model.q_rank:
            yield "--q-lora-rank", str(model.q_rank)
        yield "--kv-lora-rank", str(model.kv_rank)
        yield "--qk-head-dim", str(model.head_dim - model.rope_dim)
        yield "--qk-pos-emb-head-dim", str(model.rope_dim)
        yield "--v-head-dim", str(model.value_size)
        return
    if model.heads * model.head_dim != model.hidden:
        yield "--kv-channels", str(model.head_dim)
    if model.kv_heads < model.heads:
        yield ("--group-query-attention",)
        yield "--num-query-groups", str(model.kv_heads)
    if model.window and model.window_layers == model.layers:
        yield "--window-size", f"{model.window},0"


def _experts(model: Transformer) -> Iterator[Argument]:
    yield "--num-experts", str(model.experts)
    yield "--moe-router-topk", str(model.top_k)
    yield "--moe-ffn-hidden-size", str(model.ffn)
    yield "--moe-token-dispatcher-type", "alltoall"
    if model.shared_ffn:
        yield "--moe-shared-expert-intermediate-size", str(model.shared_ffn)
    if model.dense_layers:
        yield "--moe-layer-freq", f"([0]*{model.dense_layers}+[1]*{model.layers - model.dense_layers})"
