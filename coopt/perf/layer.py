"""Compute time of one transformer layer and of the logits, for one micro-batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.attention import attention_s, core_s
from coopt.perf.factor import distinct
from coopt.perf.feed_forward import dense_s, experts_s
from coopt.perf.kernels import Device
from coopt.perf.mapping import FULL, SELECTIVE, Floats, Mappings
from coopt.perf.passes import Passes, product
from coopt.perf.shapes import expert_layers, vocab_share


def layer_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Seconds of a layer, the mean over all layers: forward, backward and recomputation; shape (n,).

    Evaluated once for every distinct (tp, cp, ep, micro_batch, recompute, sequence_parallel) and spread over the rows.
    """
    (t, c, x, b, recompute, sp), position = distinct(
        mappings.tp,
        mappings.cp,
        mappings.ep,
        mappings.micro_batch,
        mappings.recompute,
        mappings.sequence_parallel.astype(np.int64),
    )
    flash = workload.options.attention == "flash"
    norm_split = np.where(sp == 1, t, 1)
    core = core_s(workload.model, device, t, c, b, flash=flash)
    whole = core + _outside_core(workload, device, t, x, b * float(workload.model.seq) / c, norm_split)
    stored = 0.0 if flash else core.forward
    repeated = np.where(recompute == FULL, whole.forward, np.where(recompute == SELECTIVE, stored, 0.0))
    return np.asarray((whole.forward + whole.backward + repeated)[position], dtype=np.float64)


def core_passes_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Seconds of the attention core of a layer in those passes that need keys and values; shape (n,)."""
    (t, c, b, recompute), position = distinct(mappings.tp, mappings.cp, mappings.micro_batch, mappings.recompute)
    core = core_s(workload.model, device, t, c, b, flash=workload.options.attention == "flash")
    passes = core.forward * np.where(recompute == FULL, 2.0, 1.0) + core.backward
    return np.asarray(passes[position], dtype=np.float64)


def _outside_core(workload: Workload, device: Device, t: Any, x: Any, rows: Any, norm_split: Any) -> Passes:
    model, options = workload.model, workload.options
    attention = attention_s(model, device, t, rows, norm_split, options.software)
    if not model.experts:
        return attention + dense_s(model, device, rows, model.ffn / t)
    share = expert_layers(model)
    experts = experts_s(model, device, t, x, rows, norm_split, expert_tp=options.expert_tp)
    dense = dense_s(model, device, rows, model.dense_ffn / t) * (1 - share) if model.dense_layers else Passes()
    return attention + experts * share + dense


def logits_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Seconds of the logits and the loss of one micro-batch on the last stage; shape (n,)."""
    model = workload.model
    (t, c, b), position = distinct(mappings.tp, mappings.cp, mappings.micro_batch)
    rows, columns = b * float(model.seq) / c, vocab_share(model, t)
    passes = product(device, rows, columns, model.hidden, 1, device.wide)
    loss = device.stream_s(workload.options.software.loss_bytes * rows * columns)
    return np.asarray((passes.forward + passes.backward + loss)[position], dtype=np.float64)
