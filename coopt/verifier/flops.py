"""FLOPs of a model and the share of the peak an iteration reaches."""

from __future__ import annotations

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload


def model_flop_per_token(model: Transformer) -> float:
    """M: FLOPs a token costs, attention counted in full."""
    logits = model.vocab * model.hidden
    return 6.0 * (model.layers * _layer_weights(model) + logits) + 12.0 * model.layers * _query_width(model) * model.seq


def hardware_flop_per_token(workload: Workload, recompute: str) -> float:
    """H: the same, with what is recomputed."""
    model = workload.model
    attention = model.layers * _query_width(model) * model.seq
    extra = 0.0
    if recompute == "full":
        extra = 2.0 * model.layers * _layer_weights(model) + 4.0 * attention
    elif recompute == "selective" and workload.options.attention == "unfused":
        extra = 12.0 * attention
    return model_flop_per_token(model) + extra


def utilisation(workload: Workload, gpu: Gpu, gpus: int, flop_per_token: float, time_s: float) -> float:
    """Share of the peak of all GPUs that `flop_per_token` makes in `time_s` seconds."""
    return flop_per_token * workload.tokens_per_iteration / (time_s * gpus * gpu.bf16_tflop_s * 1e12)


def _query_width(model: Transformer) -> int:
    return model.heads * model.head_dim


def _layer_weights(model: Transformer) -> int:
    """Weights of a layer with each KV head once."""
    attention = 2 * model.hidden * _query_width(model) + 2 * model.hidden * model.kv_heads * model.head_dim
    return attention + (3 if model.gated else 2) * model.hidden * model.ffn
