"""One training iteration: compute, communication and the pipeline put together; equations in docs/model.md.

The counts of hops reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at a time on
each port and direction.
"""

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
from coopt.perf.mapping import Floats, Ints, Mappings, Placements, micro_batches, stage_layers
from coopt.perf.memory import sharded_stage
from coopt.perf.parameters import layer_expert_parameters, layer_parameters
from coopt.perf.traffic import OVERLAP_COST, Traffic, replicas_of

ACCUMULATE_BYTES = 6  # moved for each parameter and micro-batch where gradients are added up by kernels of their own


def stage_hops(p: Ints, v: Ints) -> Floats:
    r"""H: hops of one micro-batch on a middle stage; shape of p and v.

    .. math::
        H = \begin{cases} 1 & p = 2, v = 1 \\ 2v - 1/2 & p = 2, v > 1 \\ 2v & p \text{ even or } v = 1 \\
            2v\,p/(p-1) - 2/p & p \text{ odd}, v > 1 \end{cases}

    Two stages have one neighbour each. The sends of an interleaved schedule run round the ring of stages in both
    directions; an odd ring cannot pair all its members at once.
    """
    odd = 2.0 * v * p / np.maximum(p - 1, 1) - 2.0 / p
    two = np.where(v == 1, 1.0, 2.0 * v - 0.5)
    return np.where(p == 1, 0.0, np.where(p == 2, two, np.where((p % 2 == 1) & (v > 1), odd, 2.0 * v)))


def spared_hops(p: Ints) -> Floats:
    """Hops of a micro-batch that the last stage does not have."""
    return np.where(p > 2, 1.0, 0.0)


def bubble_hops(p: Ints, v: Ints) -> Floats:
    """Q: hops while the pipeline fills and drains."""
    return np.where(p == 2, np.where(v == 1, 1.0, 0.0), np.maximum(2.0 * p - 5.0, 0.0))


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
