"""Compute time of the feed-forward part of one layer, dense or a mixture of experts, for one micro-batch."""

from __future__ import annotations

from typing import Any

from coopt.instance.transformer import Transformer
from coopt.perf.kernels import Device
from coopt.perf.passes import Passes, pointwise, product
from coopt.perf.shapes import expert_rows

# bytes moved for each element of the widened activations by the nonlinearity, gated or plain
GATED_FORWARD, GATED_BACKWARD = 6, 10
PLAIN_FORWARD, PLAIN_BACKWARD = 4, 6
PERMUTE_FORWARD, PERMUTE_BACKWARD = 16, 24  # bytes moved for each element of a routed row
EXPERT_KERNELS_FORWARD, EXPERT_KERNELS_BACKWARD = 10, 15  # small kernels that route, permute and pad


def widened_s(model: Transformer, device: Device, elements: Any) -> Passes:
    """The nonlinearity over that many elements."""
    forward, backward = (GATED_FORWARD, GATED_BACKWARD) if model.gated else (PLAIN_FORWARD, PLAIN_BACKWARD)
    return pointwise(device, forward * elements, backward * elements)


def dense_s(model: Transformer, device: Device, rows: Any, width: Any, batch: Any = 1) -> Passes:
    """A feed-forward layer of `width` columns on this rank, `batch` of them side by side."""
    up = product(device, rows, (2 if model.gated else 1) * width, model.hidden, batch)
    down = product(device, rows, model.hidden, width, batch)
    return up + down + widened_s(model, device, batch * rows * width)


def experts_s(
    model: Transformer, device: Device, t: Any, ep: Any, rows: Any, norm_split: Any, *, expert_tp: bool
) -> Passes:
    """The experts of a GPU, with router, permutation and the experts every token visits."""
    split = t if expert_tp else 1
    held = model.experts / ep
    routed = expert_rows(model, rows, t, split)
    experts = dense_s(model, device, routed / held, model.ffn / split, held)
    permuted = Passes(
        device.stream_s(PERMUTE_FORWARD * routed * model.hidden),
        device.stream_s(PERMUTE_BACKWARD * routed * model.hidden),
    )
    pauses = Passes(EXPERT_KERNELS_FORWARD * device.pause_s, EXPERT_KERNELS_BACKWARD * device.pause_s)
    router = product(device, rows / norm_split, model.experts, model.hidden, 1, device.wide)
    shared = dense_s(model, device, rows, model.shared_ffn / t) if model.shared_ffn else Passes()
    return experts + permuted + pauses + router + shared
