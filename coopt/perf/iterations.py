"""The parts of an iteration, and how they add up."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from coopt.perf.affine import AffineSeconds, Reciprocals
from coopt.perf.mapping import Floats, Ints


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """The parts of an iteration, one row for each mapping, times still open in the bandwidth between domains.

    `layer`, `tp`, `cp`, `ep` are for one layer and micro-batch, `accumulation`, `hop`, and the parts ending in `logits`
    for one micro-batch; `dp`, `embedding`, `optimizer` for the iteration. `cp` is what a hidden ring costs, `cp_left`
    what the attention core is too short to hide; the larger counts. Counts have shape (n,): `layers` of the fullest
    stage, `fewer` on the last, `hops` of a stage, `spared_hops` of the last, `bubble_hops` of the iteration;
    `further` is the number of further predictions. `dp_share` and `window` say how far data-parallel traffic hides;
    `factor` stretches everything.
    """

    layer: AffineSeconds
    accumulation: AffineSeconds
    tp: AffineSeconds
    cp: AffineSeconds
    cp_left: AffineSeconds
    ep: AffineSeconds
    hop: AffineSeconds
    logits: AffineSeconds
    tp_logits: AffineSeconds
    dp: AffineSeconds
    window: AffineSeconds
    dp_share: Floats
    embedding: AffineSeconds
    optimizer: AffineSeconds
    layers: Ints
    fewer: Ints
    further: int
    hops: Floats
    spared_hops: Floats
    bubble_hops: Floats
    micro_batches: Ints
    bubbles: Floats
    factor: float
    stale: bool

    @cached_property
    def whole_layer(self) -> AffineSeconds:
        """A layer with its communication."""
        return self.layer + self.tp + self.cp + self.ep

    @cached_property
    def stage(self) -> AffineSeconds:
        """One micro-batch on a middle stage, without sends."""
        return self.whole_layer * self.layers + self.accumulation

    @cached_property
    def middle(self) -> AffineSeconds:
        """One micro-batch on a middle stage."""
        return self.stage + self.hop * self.hops

    @cached_property
    def bubble(self) -> AffineSeconds:
        """Filling and draining the pipeline."""
        return self.stage * self.bubbles + self.hop * self.bubble_hops

    @cached_property
    def excess(self) -> AffineSeconds:
        """What the last stage takes beyond a middle one."""
        added = self.logits + self.tp_logits + (self.cp + self.ep) * self.further
        return added - self.whole_layer * self.fewer - self.hop * self.spared_hops

    @property
    def after(self) -> AffineSeconds:
        """What follows pipeline and data-parallel traffic."""
        return self.embedding + self.optimizer

    def pieces(self) -> tuple[AffineSeconds, ...]:
        """Affine functions whose maximum is the iteration time: by what hides CP and DP traffic, by binding stage."""
        exposed = () if self.cp_left.absent else (replace(self, cp=self.cp_left),)
        pipelines = tuple(pipeline for each in (self, *exposed) for pipeline in each.pipelines())
        if self.stale:
            whole: tuple[AffineSeconds, ...] = (*pipelines, self.dp)
        elif np.all(self.dp_share == 1.0):
            whole = tuple(pipeline + self.dp for pipeline in pipelines)
        else:
            left = (self.dp * self.dp_share, self.dp - self.window)
            whole = tuple(pipeline + rest for pipeline in pipelines for rest in left)
        return tuple((piece + self.after) * self.factor for piece in whole)

    def pipelines(self) -> tuple[AffineSeconds, AffineSeconds]:
        """The pipeline with a middle stage that binds, and with the last one."""
        middle = self.middle * self.micro_batches + self.bubble
        return middle, middle + self.excess * self.micro_batches

    def time_s(self, r: Reciprocals) -> Floats:
        """Iteration time (s)."""
        ring_known = self._with_ring_at(r)
        known = {f.name: getattr(ring_known, f.name) for f in fields(self)}
        seconds: dict[str, Any] = {
            name: AffineSeconds(part.at(r))
            for name, part in known.items()
            if isinstance(part, AffineSeconds) and not part.absent
        }
        times = np.broadcast_arrays(*(piece.fixed for piece in replace(ring_known, **seconds).pieces()))
        return np.asarray(np.maximum.reduce(times), dtype=np.float64)

    def breakdown_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds by cause; they sum to `time_s`."""
        return self._with_ring_at(r)._breakdown_s(r)

    def _with_ring_at(self, r: Reciprocals) -> Iteration:
        """The same iteration with the seconds of the ring known."""
        if self.cp_left.absent:
            return self
        ring_s = np.maximum(self.cp.at(r), self.cp_left.at(r))
        return replace(self, cp=AffineSeconds(ring_s), cp_left=AffineSeconds())

    def _breakdown_s(self, r: Reciprocals) -> dict[str, Floats]:
        m = self.micro_batches
        binds = self.excess.at(r) > 0
        counted = (self.layers - np.where(binds, self.fewer, 0)) * m
        hops = (self.hops - np.where(binds, self.spared_hops, 0)) * m
        last = np.where(binds, m, 0)
        parts = {
            "compute": (self.layer * counted + self.accumulation * m).at(r),
            "logits": (self.logits * last).at(r),
            "tp": (self.tp * counted + self.tp_logits * last).at(r),
            "cp": (self.cp * (counted + self.further * last)).at(r),
            "ep": (self.ep * (counted + self.further * last)).at(r),
            "pp": (self.hop * hops).at(r),
            "bubble": self.bubble.at(r),
        }
        parts["dp"] = self._left_of_dp(r, sum(parts.values(), np.zeros(len(m))))
        parts["embedding"] = self.embedding.at(r)
        parts["optimizer"] = self.optimizer.at(r)
        parts["straggler"] = sum(parts.values(), np.zeros(len(m))) * (self.factor - 1.0)
        return {name: seconds + np.zeros(len(m)) for name, seconds in parts.items()}

    def _left_of_dp(self, r: Reciprocals, pipeline_s: Any) -> Any:
        dp = self.dp.at(r)
        if self.stale:
            return np.maximum(0.0, dp - pipeline_s)
        return np.maximum(dp * self.dp_share, dp - self.window.at(r))
