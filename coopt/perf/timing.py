"""One training iteration: compute, communication and the pipeline put together; equations in docs/model.md."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds
from coopt.perf.collectives import links_of
from coopt.perf.iterations import Iteration
from coopt.perf.kernels import Device, device_of
from coopt.perf.layer import core_passes_s, layer_s, logits_s
from coopt.perf.mapping import Floats, Mappings, Placements, micro_batches, stage_layers
from coopt.perf.memory import sharded_stage
from coopt.perf.parameters import layer_expert_parameters, layer_parameters
from coopt.perf.replicas import replicas_of
from coopt.perf.schedule import bubble_hops, spared_hops, stage_hops
from coopt.perf.traffic import OVERLAP_COST, Traffic

ACCUMULATE_BYTES = 6  # moved for each parameter and micro-batch where gradients are added up by kernels of their own


def iteration(workload: Workload, gpu: Gpu, hb_gbyte_s: Any, mappings: Mappings, placements: Placements) -> Iteration:
    """The iteration of every mapping.

    Parameters
    ----------
    hb_gbyte_s
        One-way bandwidth of a GPU inside the HB domain (10^9 bytes/s), a number or shape (n,).
    mappings, placements
        n rows each.
    """
    model, options = workload.model, workload.options
    device, links = device_of(workload, gpu), links_of(workload, gpu, hb_gbyte_s)
    traffic = Traffic(workload=workload, links=links, mappings=mappings, placements=placements)
    replicas = replicas_of(workload, links, mappings, placements)
    layers, fewer = stage_layers(model.layers, mappings)
    layer, further = layer_s(workload, device, mappings), model.extra_predictions
    ring = traffic.ring
    core = 0.0 if ring.absent else core_passes_s(workload, device, mappings) * (mappings.cp > 1)
    tp, ep, p, m = traffic.tp, traffic.ep, mappings.pp, micro_batches(mappings, workload.global_batch)
    return Iteration(
        layer=AffineSeconds(layer),
        accumulation=_accumulation(workload, device, mappings) * layers,
        tp=tp,
        cp=ring * OVERLAP_COST,
        cp_left=ring - AffineSeconds(core),
        ep=ep,
        hop=traffic.hop,
        logits=AffineSeconds((1 + further) * logits_s(workload, device, mappings) + further * layer),
        tp_logits=traffic.tp_gather * (2 * (1 + further)) + tp * further,
        further=further,
        dp=replicas.data_parallel(),
        window=AffineSeconds(_window_s(workload, mappings, layers * (layer - core), m)),
        dp_share=np.where(_hidden(workload, mappings), OVERLAP_COST, 1.0),
        embedding=replicas.embedding(),
        optimizer=replicas.optimizer(device),
        layers=layers,
        fewer=fewer,
        hops=stage_hops(p, mappings.interleave),
        spared_hops=spared_hops(p),
        bubble_hops=bubble_hops(p, mappings.interleave),
        micro_batches=m,
        bubbles=(p - 1) / mappings.interleave,
        factor=options.slowdown * options.software.overhead,
        stale=options.dp_mode == "stale-1",
    )


def _accumulation(workload: Workload, device: Device, mappings: Mappings) -> AffineSeconds:
    """Adding up the gradients of a layer where the product does not."""
    if workload.options.software.fused_accumulation:
        return AffineSeconds()
    model, t = workload.model, mappings.tp
    experts = layer_expert_parameters(model, t, mappings.ep, expert_tp=workload.options.expert_tp)
    return AffineSeconds(device.stream_s(ACCUMULATE_BYTES * (layer_parameters(model, t) + experts)))


def _hidden(workload: Workload, mappings: Mappings) -> Any:
    """Where data-parallel traffic runs behind compute."""
    return (sharded_stage(mappings) >= 2) | (workload.options.dp_mode == "overlap")


def _window_s(workload: Workload, mappings: Mappings, micro_batch_s: Floats, m: Any) -> Floats:
    """Compute that data-parallel traffic can hide behind: one micro-batch's, or all of it where shards are reduced.

    A context ring has the attention core to itself.
    """
    whole = np.where(sharded_stage(mappings) >= 2, m, 1)
    return np.where(_hidden(workload, mappings), whole * micro_batch_s, 0.0)
