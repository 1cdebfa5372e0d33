"""Compute of the stages of every mapping, and counts of their layers, passes and waits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.collectives import AffineSeconds
from coopt.perf.kernels import Device, Passes
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
    layer_expert_parameters,
    layer_parameters,
    micro_batches,
    most_layers,
    of_layout,
    prediction_of,
    rows_to_time,
    stage_layers,
)
from coopt.perf.pipelines import (
    PassChain,
    PipelineWaits,
    StageLayers,
    pipeline_waits,
    schedule_chains,
)
from coopt.perf.traffic import (
    Replicas,
    StageTraffic,
    share_left,
    window_of,
)

# moved per parameter and micro-batch where separate kernels accumulate gradients
ACCUMULATE_BYTES = 6


class StageCounts(NamedTuple):
    """Layers of the fullest stage, layers that the first and the last stage lack, waits of the
    pipeline, and passes of a stage during filling and draining; each of shape (n,).
    """

    layers: Ints
    first_missing: Ints
    last_missing: Ints
    waits: PipelineWaits
    bubbles: Floats


@dataclass(frozen=True, kw_only=True)
class StageWork:
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
    def counts(self) -> StageCounts:
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
        layers, last_missing = (count[position] for count in self._stage_layers(pipelines))
        first_missing = mappings.pp * layers - self.workload.model.layers - last_missing
        bubbles = ((pipelines.pp - 1) / pipelines.interleave)[position]
        return StageCounts(layers, first_missing, last_missing, waits, bubbles)

    def _stage_layers(self, pipelines: Mappings) -> tuple[Ints, Ints]:
        """Layers of the fullest stage, and how many fewer the last stage has, which under a layout
        stands for those with the fewest layers.
        """
        if not self.workload.layout:
            return stage_layers(self.workload.model, pipelines)
        fullest = most_layers(self.workload, pipelines)
        fewest = of_layout(
            self.workload, pipelines, lambda stages: min(s.layers for s in stages if s.layers)
        )
        return fullest, fullest - fewest

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

    @cached_property
    def core_s(self) -> Any:
        """Time of the attention core behind which ranks exchange keys and values, at most that of
        the layer; 0 without context parallelism.
        """
        if not (self.mappings.cp > 1).any():
            return 0.0
        # layers of more bits may take less in all than the core in the precision
        core_s = np.minimum(core_passes_s(self.workload, self.device, self.mappings), self.layer_s)
        return core_s * (self.mappings.cp > 1)

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
        return np.asarray(of_all + self.predictions_s)

    @property
    def predictions_s(self) -> Any:
        """Time of the layers that predict further tokens of a micro-batch."""
        return self.workload.model.extra_predictions * self.predicting.total

    @property
    def tp_logits(self) -> AffineSeconds:
        """TP collectives of logits and further predictions of a micro-batch."""
        predictions = 1 + self.workload.model.extra_predictions
        return self.traffic.tp_sum * (2 * predictions) + self.tp_predicting

    @cached_property
    def tp_predicting(self) -> AffineSeconds:
        """TP collectives of the layers that predict further tokens of a micro-batch."""
        prediction = prediction_of(self.workload)
        predicted_tp = (
            self.traffic.tp
            if prediction is self.workload
            else replace(self.traffic, workload=prediction).tp
        )
        return predicted_tp * self.workload.model.extra_predictions

    @cached_property
    def behind(self) -> Floats:
        """Number of layers that data-parallel traffic overlaps with."""
        # of one micro-batch, or of all micro-batches where shards are reduced in each; every stage
        # overlaps with its own layers, of which the last stage has fewer
        if self.workload.options.dp_mode != "overlap":
            return np.zeros(len(self.mappings))
        layers, fewer = self.counts.layers, self.counts.layers - self.counts.last_missing
        each = np.where(self.mappings.zero >= 2, self.micro_batches * fewer, layers)
        return np.asarray(each, dtype=np.float64)

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
        return window_of(
            self.behind, self.apart_s, free_share, (self.traffic.tp, ep * waits_for_experts)
        )

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
