"""Communication of a micro-batch on one stage: tensor, context and expert parallel, and the hop to the next stage."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds
from coopt.perf.collectives import Links, all_to_all, gather, send
from coopt.perf.kernels import BYTES
from coopt.perf.mapping import FULL, Floats, Mappings, Placements, expert_ranks
from coopt.perf.shapes import expert_layers, kv_width

OVERLAP_COST = 0.33  # share of a hidden transfer that still costs time: memory bandwidth, processors (judgement)
FULL_REPEATS, EXCHANGES, RING_PASSES = 4, 4, 3


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Mappings of a workload on placements; every property holds seconds of shape (n,), of a layer where not said."""

    workload: Workload
    links: Links
    mappings: Mappings
    placements: Placements

    @property
    def rows(self) -> Floats:
        """n: tokens of a GPU in a micro-batch."""
        return self.mappings.micro_batch * float(self.workload.model.seq) / self.mappings.cp

    @cached_property
    def activation(self) -> Floats:
        """D_a: bytes between two layers."""
        return BYTES * self.rows * self.workload.model.hidden

    @cached_property
    def tp_gather(self) -> AffineSeconds:
        """An all-gather of the activations over the TP group."""
        inside = self.placements.tp
        return gather(self.links, self.activation, inside, self.mappings.tp // inside, "tp")

    @cached_property
    def full(self) -> Any:
        """Where the forward pass is repeated."""
        return self.mappings.recompute == FULL

    @property
    def tp(self) -> AffineSeconds:
        """All TP collectives."""
        options = self.workload.options
        hidden = OVERLAP_COST if options.software.tp_overlap else 1.0
        partial = options.tp_sync_backward if options.tp_sync_fraction < 1.0 else 1.0
        passes: Floats = 4 + FULL_REPEATS * self.full + 4 * partial * hidden
        return self.tp_gather * (options.tp_sync_fraction * passes + 2.0 * self.mappings.sequence_parallel)

    @property
    def ring(self) -> AffineSeconds:
        """Keys and values round the ring, in every pass of the attention core."""
        c, inside = self.mappings.cp, self.placements.cp
        if not (c > 1).any():
            return AffineSeconds()
        keys = BYTES * self.mappings.micro_batch * float(self.workload.model.seq)
        ring = gather(self.links, keys * kv_width(self.workload.model, self.mappings.tp), inside, c // inside, "dp")
        passes: Floats = (RING_PASSES + self.full) * (c > 1)
        return ring * passes

    @property
    def ep(self) -> AffineSeconds:
        """Dispatch to the experts and back; the mean over all layers."""
        return self.exchange + self.expert_gather

    @property
    def exchange(self) -> AffineSeconds:
        """The all-to-alls of `ep`."""
        model = self.workload.model
        if not model.experts:
            return AffineSeconds()
        inside, across, *_ = expert_ranks(self.mappings, self.placements, expert_tp=self.workload.options.expert_tp)
        moved = all_to_all(self.links, self.routed / self.mappings.tp, inside, across, model.top_k)
        return moved * ((self.mappings.ep > 1) * self._exchanges)

    @property
    def expert_gather(self) -> AffineSeconds:
        """The gathers of `ep` where TP splits the experts."""
        if not self.workload.model.experts or not self.workload.options.expert_tp:
            return AffineSeconds()
        inside = self.placements.tp
        return gather(self.links, self.routed, inside, self.mappings.tp // inside, "tp") * self._exchanges

    @property
    def routed(self) -> Floats:
        """Bytes of the rows that a TP group sends to experts."""
        model = self.workload.model
        return np.asarray(BYTES * model.capacity * self.rows * model.top_k * model.hidden, dtype=np.float64)

    @property
    def _exchanges(self) -> Floats:
        return np.asarray((EXCHANGES + 2 * self.full) * expert_layers(self.workload.model), dtype=np.float64)

    @property
    def hop(self) -> AffineSeconds:
        """A send to the next stage."""
        m, software = self.mappings, self.workload.options.software
        sent = send(self.links, self.activation / m.tp, m.pp > self.placements.pp)
        whole = sent + self.tp_gather * ((~m.sequence_parallel) & (m.tp > 1))
        hidden = (m.interleave > 1) & software.pp_overlap
        return whole * (np.where(hidden, OVERLAP_COST, 1.0) * (m.pp > 1))
