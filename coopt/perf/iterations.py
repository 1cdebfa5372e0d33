"""One training iteration of every mapping: its compute, communication and pipeline parts.

Equations are in docs/model.md. `iteration_parts` adds up the parts, `pipelines` counts the hops.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds
from coopt.perf.algorithms import algorithms_of
from coopt.perf.collectives import links_of
from coopt.perf.iteration_parts import Iteration
from coopt.perf.kernels import Device, Passes, device_of
from coopt.perf.layer import (
    core_passes_s,
    kernels_s,
    logits_s,
    predicting_s,
    started_s,
    without_starts,
)
from coopt.perf.mapping import (
    Floats,
    Ints,
    Mappings,
    Placements,
    micro_batches,
    rows_to_time,
    stage_layers,
)
from coopt.perf.parameters import (
    further_exchanges,
    layer_expert_parameters,
    layer_parameters,
    prediction_of,
)
from coopt.perf.pipelines import (
    PassChain,
    PipelineWaits,
    StageLayers,
    met_hops,
    pipeline_waits,
    schedule_chains,
)
from coopt.perf.traffic import (
    OVERLAP_COST,
    Replicas,
    StageTraffic,
    layers_behind,
    replicas_of,
    share_left,
    window_of,
)

# moved per parameter and micro-batch where separate kernels accumulate gradients
ACCUMULATE_BYTES = 6


def iteration(
    workload: Workload, gpu: Gpu, hb_gbyte_s: Any, mappings: Mappings, placements: Placements
) -> Iteration:
    """Return the parts of the iteration of every mapping.

    Parameters
    ----------
    hb_gbyte_s
        One-way bandwidth of a GPU inside the HB domain (10^9 bytes/s), a number or shape (n,).
    mappings, placements
        n rows each.
    """
    options, links = workload.options, links_of(workload, gpu, hb_gbyte_s)
    replicas = replicas_of(workload, links, mappings, placements)
    traffic = StageTraffic(workload=workload, links=links, mappings=mappings, placements=placements)
    work = _Work(
        workload=workload, device=device_of(workload, gpu), mappings=mappings, traffic=traffic
    )
    counts, ring = work.counts, traffic.ring
    ep, ep_left = traffic.hidden_exchanges(work.apart_s, work.micro_batches)
    return Iteration(
        layer=AffineSeconds(work.layer_s),
        forward=AffineSeconds(work.kernels.forward * (work.layer_s / work.kernels.total)),
        accumulation=work.accumulation * counts.layers,
        tp=work.tp,
        cp=ring * OVERLAP_COST,
        cp_left=(
            AffineSeconds() if ring.is_zero else ring - AffineSeconds(work.core_s + work.waiting_s)
        ),
        ep=ep,
        ep_left=ep_left,
        hop=traffic.hop,
        logits=AffineSeconds(work.logits_s),
        tp_logits=work.tp_logits,
        further_predictions=workload.model.extra_predictions,
        further_exchanges=further_exchanges(workload.model),
        dp=replicas.data_parallel(),
        window=work.window(replicas, ep, ep_left),
        behind=work.behind,
        met=met_hops(
            options.dp_mode,
            mappings.zero,
            work.micro_batches,
            counts.waits.hops,
            counts.waits.bubble_hops,
        ),
        dp_share=np.full(len(mappings), OVERLAP_COST if options.dp_mode == "overlap" else 1.0),
        embedding=replicas.embedding(),
        optimizer=replicas.optimizer(work.device),
        layers=counts.layers,
        chunk_layers=counts.layers // mappings.interleave,
        first_missing=counts.first_missing,
        missing_layers=counts.last_missing,
        waits=counts.waits,
        micro_batches=work.micro_batches,
        bubbles=counts.bubbles,
        factor=options.slowdown * options.software.overhead,
        stale=options.dp_mode == "stale-1",
        algorithms=algorithms_of(workload, traffic, replicas),
        chains=work.chains,
        forward_shares=traffic.forward_shares if work.chains else (),
    )


class _Counts(NamedTuple):
    """Layers of the fullest stage, layers that the first and the last stage lack, waits of the
    pipeline, and passes of a stage during filling and draining; each of shape (n,).
    """

    layers: Ints
    first_missing: Ints
    last_missing: Ints
    waits: PipelineWaits
    bubbles: Floats


@dataclass(frozen=True, kw_only=True)
class _Work:
    """Compute of the stages of mappings, one row each, and the communication that overlaps with it.

    Seconds are per layer unless stated otherwise.
    """

    workload: Workload
    device: Device
    mappings: Mappings
    traffic: StageTraffic

    @cached_property
    def micro_batches(self) -> Ints:
        """m: micro-batches of an iteration."""
        return micro_batches(self.mappings, self.workload.global_batch)

    @cached_property
    def counts(self) -> _Counts:
        """Counts that rows with equal pipeline, chunks and micro-batches share."""
        mappings, m = self.mappings, self.micro_batches
        rows, position = rows_to_time(mappings.pp, mappings.interleave, m)
        pipelines = mappings.take(rows)
        waits = PipelineWaits(
            *(
                count[position]
                for count in pipeline_waits(pipelines.pp, pipelines.interleave, m[rows])
            )
        )
        layers, last_missing = (
            count[position] for count in stage_layers(self.workload.model, pipelines)
        )
        first_missing = mappings.pp * layers - self.workload.model.layers - last_missing
        bubbles = ((pipelines.pp - 1) / pipelines.interleave)[position]
        return _Counts(layers, first_missing, last_missing, waits, bubbles)

    @cached_property
    def kernels(self) -> Passes:
        """Kernel times of the mean layer."""
        return kernels_s(self.workload, self.device, self.mappings)

    @cached_property
    def start_s(self) -> Floats:
        """Time that the host needs to launch these kernels."""
        return started_s(self.workload, self.mappings)

    @cached_property
    def layer_s(self) -> Floats:
        """Time of a layer: the longer of kernel and launch time."""
        return np.asarray(np.maximum(self.kernels.total, self.start_s), dtype=np.float64)

    @property
    def waiting_s(self) -> Floats:
        """Time that the GPU waits for the host."""
        return np.asarray(self.layer_s - self.kernels.total, dtype=np.float64)

    @cached_property
    def core_s(self) -> Any:
        """Time of the attention core behind which ranks exchange keys and values; 0 without context
        parallelism.
        """
        if not (self.mappings.cp > 1).any():
            return 0.0
        return core_passes_s(self.workload, self.device, self.mappings) * (self.mappings.cp > 1)

    @cached_property
    def apart_s(self) -> Floats:
        """Time of a layer without the attention core that overlaps with the context ring."""
        return np.asarray(self.layer_s - self.core_s, dtype=np.float64)

    @cached_property
    def accumulation(self) -> AffineSeconds:
        """Time to accumulate gradients where matrix products do not do so themselves."""
        if self.workload.options.software.fused_accumulation:
            return AffineSeconds()
        model, t = self.workload.model, self.mappings.tp
        experts = layer_expert_parameters(
            model, t, self.mappings.ep, expert_tp=self.workload.options.expert_tp
        )
        return AffineSeconds(
            self.device.stream_s(ACCUMULATE_BYTES * (layer_parameters(model, t) + experts))
        )

    @cached_property
    def predicting(self) -> Passes:
        """Time of a layer that predicts a further token."""
        return predicting_s(self.workload, self.device, self.mappings, self.kernels)

    @cached_property
    def logits_s(self) -> Floats:
        """Time of the logits and further predictions of a micro-batch."""
        further = self.workload.model.extra_predictions
        of_all = (1 + further) * logits_s(self.workload, self.device, self.mappings)
        return np.asarray(of_all + further * self.predicting.total)

    @cached_property
    def tp(self) -> AffineSeconds:
        """TP collectives."""
        return self.traffic.tp

    @property
    def tp_logits(self) -> AffineSeconds:
        """TP collectives of logits and further predictions of a micro-batch."""
        further, prediction = self.workload.model.extra_predictions, prediction_of(self.workload)
        predicted_tp = (
            self.tp
            if prediction is self.workload
            else replace(self.traffic, workload=prediction).tp
        )
        return self.traffic.tp_sum * (2 * (1 + further)) + predicted_tp * further

    @cached_property
    def behind(self) -> Floats:
        """Number of layers that data-parallel traffic overlaps with."""
        full_layers = self.counts.layers, self.counts.last_missing
        return layers_behind(self.workload, self.mappings, full_layers, self.micro_batches)

    def window(
        self, replicas: Replicas, ep: AffineSeconds, ep_left: AffineSeconds
    ) -> AffineSeconds:
        """Compute time per iteration that data-parallel traffic overlaps with; zero unless overlap
        is enabled.
        """
        options, counts = self.workload.options, self.counts
        if options.dp_mode != "overlap":
            return AffineSeconds()
        own_layers = np.where(
            self.mappings.zero >= 2, counts.layers - counts.last_missing, counts.layers
        )
        free_share = share_left(replicas.inside_s(), self.behind * self.apart_s) * (
            options.schedule == "1f1b"
        )
        # they replace forward passes, which have half of the communication in a fourth of the
        # compute, and so count twice
        in_place_s = self.logits_s + (self.accumulation * counts.layers).fixed
        free_share *= share_left(2 * in_place_s, own_layers * self.apart_s)
        waits_for_experts = 1.0 * (
            ep_left.is_zero | (self.micro_batches == 1)
        )  # else exchanges hide themselves
        return window_of(self.behind, self.apart_s, free_share, (self.tp, ep * waits_for_experts))

    @cached_property
    def chains(self) -> tuple[PassChain, ...]:
        """The chains of passes of a schedule other than 1F1B."""
        schedule, counts = self.workload.options.schedule, self.counts
        if schedule == "1f1b":
            return ()
        further_s = self.workload.model.extra_predictions * self.predicting.weights
        layers = StageLayers(counts.layers, counts.first_missing, counts.last_missing, further_s)
        layer, added_s = without_starts(self.kernels, self.start_s), self.accumulation.fixed
        return schedule_chains(
            schedule, self.mappings.pp, self.micro_batches, layer, added_s, layers
        )
