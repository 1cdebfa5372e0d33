"""FLOPs of a model and the share of the peak an iteration reaches."""

from __future__ import annotations

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.weights import attention_parameters, matrices


def model_flop_per_token(model: Transformer) -> float:
    """M: FLOPs a token costs, attention counted in full, further predictions included."""
    whole = 6 * (model.layers * met_parameters(model) + model.vocab * model.hidden) + 6 * model.layers * _core(model)
    further = 6 * (met_parameters(model) + model.vocab * model.hidden) + 6 * _core(model)
    return whole + model.extra_predictions * further


def hardware_flop_per_token(workload: Workload, recompute: str) -> float:
    """R: the same, with what is recomputed."""
    model = workload.model
    extra = 0.0
    if recompute == "full":
        extra = 2 * model.layers * (met_parameters(model) + _core(model))
    elif recompute == "selective" and workload.options.attention == "unfused":
        extra = 6 * model.layers * _core(model)
    return model_flop_per_token(model) + extra


def utilisation(workload: Workload, gpu: Gpu, gpus: int, flop_per_token: float, time_s: float) -> float:
    """Share of the peak of all GPUs that `flop_per_token` makes in `time_s` seconds."""
    peak_flop_s = gpu.peak_flop_s(workload.precision)
    return flop_per_token * workload.tokens_per_iteration / (time_s * gpus * peak_flop_s)


def met_parameters(model: Transformer) -> float:
    """A: parameters of a layer that a token meets, mean over the layers."""
    width, router = float(model.ffn), 0.0
    if model.experts:
        mixed = model.layers - model.dense_layers
        routed = mixed * (model.top_k * model.ffn + model.shared_ffn)
        width = (model.dense_layers * model.dense_ffn + routed) / model.layers
        router = mixed / model.layers * model.hidden * model.experts
    return attention_parameters(model, 1) + matrices(model) * model.hidden * width + router


def _core(model: Transformer) -> int:
    """a·(e + e_v)·s: what a token does in the attention core of a layer, over 2 FLOPs."""
    return model.heads * (model.head_dim + model.value_size) * model.seq
