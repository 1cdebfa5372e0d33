"""One training iteration of every mapping: the compute, communication and pipeline that its parts come from.

Equations are in docs/model.md. `iteration_parts` adds them up, `pipelines` counts the hops.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds
from coopt.perf.collectives import links_of
from coopt.perf.iteration_parts import Iteration
from coopt.perf.kernels import Device, device_of
from coopt.perf.layer import core_passes_s, kernels_s, logits_s, predicting_s, started_s, without_starts
from coopt.perf.mapping import (
    Mappings,
    Placements,
    micro_batches,
    rows_to_time,
    stage_layers,
)
from coopt.perf.parameters import further_exchanges, layer_expert_parameters, layer_parameters, prediction_of
from coopt.perf.pipelines import (
    PipelineWaits,
    StageLayers,
    met_hops,
    pipeline_waits,
    schedule_chains,
)
from coopt.perf.traffic import OVERLAP_COST, StageTraffic, layers_behind, replicas_of, share_left, window_of
from coopt.perf.ways import ways_of

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
    traffic = StageTraffic(workload=workload, links=links, mappings=mappings, placements=placements)
    replicas = replicas_of(workload, links, mappings, placements)
    m = micro_batches(mappings, workload.global_batch)
    rows, position = rows_to_time(mappings.pp, mappings.interleave, m)
    pipelines = mappings.take(rows)
    waits = PipelineWaits(*(count[position] for count in pipeline_waits(pipelines.pp, pipelines.interleave, m[rows])))
    layers, last_missing = (count[position] for count in stage_layers(model, pipelines))
    first_missing = mappings.pp * layers - model.layers - last_missing
    kernels, further = kernels_s(workload, device, mappings), model.extra_predictions
    kernel_s = kernels.total
    start_s = started_s(workload, mappings)
    layer = np.maximum(kernel_s, start_s)
    accumulation, in_turn = _accumulation(workload, device, mappings), options.schedule == "1f1b"
    split = kernels if in_turn else without_starts(kernels, start_s)
    prediction, predicting = prediction_of(workload), predicting_s(workload, device, mappings, kernels)
    counts = StageLayers(layers, first_missing, last_missing, further * predicting.weights)
    ring = traffic.ring
    core = 0.0 if ring.is_zero else core_passes_s(workload, device, mappings) * (mappings.cp > 1)
    tp = traffic.tp
    predicted_tp = tp if prediction is workload else replace(traffic, workload=prediction).tp
    ep, ep_left = traffic.hidden_exchanges(layer - core, m)
    logits = (1 + further) * logits_s(workload, device, mappings) + further * predicting.total
    behind = layers_behind(workload, mappings, (layers, last_missing), m)
    stage_s = np.where(mappings.zero >= 2, layers - last_missing, layers) * (layer - core)
    free_share = share_left(replicas.inside_s(), behind * (layer - core)) * in_turn
    # they take the place of passes forward: half of the traffic in a fourth of the compute, so that they count twice
    free_share *= share_left(2 * (logits + (accumulation * layers).fixed), stage_s)
    waits_for_experts = 1.0 * (ep_left.is_zero | (m == 1))  # else exchanges hide themselves
    return Iteration(
        layer=AffineSeconds(layer),
        forward=AffineSeconds(kernels.forward * (layer / kernel_s)),
        accumulation=accumulation * layers,
        tp=tp,
        cp=ring * OVERLAP_COST,
        cp_left=AffineSeconds() if ring.is_zero else ring - AffineSeconds(core + (layer - kernel_s)),
        ep=ep,
        ep_left=ep_left,
        hop=traffic.hop,
        logits=AffineSeconds(logits),
        tp_logits=traffic.tp_sum * (2 * (1 + further)) + predicted_tp * further,
        further_predictions=further,
        further_exchanges=further_exchanges(model),
        dp=replicas.data_parallel(),
        window=window_of(behind, layer - core, free_share, (tp, ep * waits_for_experts)),
        behind=behind,
        met=met_hops(options.dp_mode, mappings.zero, m, waits.hops, waits.bubble_hops),
        dp_share=np.full(len(mappings), OVERLAP_COST if options.dp_mode == "overlap" else 1.0),
        embedding=replicas.embedding(),
        optimizer=replicas.optimizer(device),
        layers=layers,
        chunk_layers=layers // mappings.interleave,
        first_missing=first_missing,
        missing_layers=last_missing,
        waits=waits,
        micro_batches=m,
        bubbles=((pipelines.pp - 1) / pipelines.interleave)[position],
        factor=options.slowdown * options.software.overhead,
        stale=options.dp_mode == "stale-1",
        ways=ways_of(workload, traffic, replicas),
        chains=() if in_turn else schedule_chains(options.schedule, mappings.pp, m, split, accumulation.fixed, counts),
        forward_shares=() if in_turn else traffic.forward_shares,
    )


def _accumulation(workload: Workload, device: Device, mappings: Mappings) -> AffineSeconds:
    """Adding up the gradients of a layer where the product does not."""
    if workload.options.software.fused_accumulation:
        return AffineSeconds()
    model, t = workload.model, mappings.tp
    experts = layer_expert_parameters(model, t, mappings.ep, expert_tp=workload.options.expert_tp)
    return AffineSeconds(device.stream_s(ACCUMULATE_BYTES * (layer_parameters(model, t) + experts)))
