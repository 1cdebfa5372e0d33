"""One training iteration: compute, communication and the pipeline put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds, Reciprocals
from coopt.perf.collectives import gather, send
from coopt.perf.kernels import BYTES, stream_s
from coopt.perf.layer import layer_s, logits_s, vocab_share
from coopt.perf.mapping import FULL, Floats, Ints, Mappings, Placements, micro_batches
from coopt.perf.parameters import held_parameters

GRADIENT_BYTES = 4
OPTIMIZER_BYTES = 60  # of HBM traffic for each parameter held


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """The parts of an iteration, one row for each mapping, times still open in the bandwidth between domains.

    `stage`, `tp`, `hop`, `logits`, `tp_logits` are for one micro-batch; `hops`, `micro_batches`, `bubbles` are counts
    of shape (n,).
    """

    stage: AffineSeconds
    tp: AffineSeconds
    hop: AffineSeconds
    logits: AffineSeconds
    tp_logits: AffineSeconds
    dp: AffineSeconds
    embedding: AffineSeconds
    optimizer: AffineSeconds
    hops: Ints
    micro_batches: Ints
    bubbles: Floats

    @property
    def middle(self) -> AffineSeconds:
        """One micro-batch on a middle stage."""
        return self.stage + self.tp + self.hop * self.hops

    @property
    def after(self) -> AffineSeconds:
        """What follows the pipeline."""
        return self.dp + self.embedding + self.optimizer

    def pieces(self) -> tuple[AffineSeconds, AffineSeconds]:
        """The two affine functions whose maximum is the iteration time: a middle stage binds, the last stage binds."""
        middle = self.middle
        last = middle - self.hop + self.logits + self.tp_logits
        rest = middle * self.bubbles + self.after
        return middle * self.micro_batches + rest, last * self.micro_batches + rest

    def time_s(self, r: Reciprocals) -> Floats:
        """Iteration time (s)."""
        middle, last = self.pieces()
        return np.maximum(middle.at(r), last.at(r))

    def breakdown_s(self, r: Reciprocals) -> dict[str, Floats]:
        """Seconds by cause; they sum to `time_s`."""
        m = self.micro_batches
        on_last = self.logits + self.tp_logits - self.hop
        binds = on_last.at(r) > 0
        return {
            "compute": (self.stage * m).at(r),
            "logits": np.where(binds, (self.logits * m).at(r), 0.0),
            "tp": (self.tp * m).at(r) + np.where(binds, (self.tp_logits * m).at(r), 0.0),
            "pp": (self.hop * (m * self.hops)).at(r) - np.where(binds, (self.hop * m).at(r), 0.0),
            "bubble": (self.middle * self.bubbles).at(r),
            "dp": self.dp.at(r) + np.zeros(len(m)),
            "embedding": self.embedding.at(r) + np.zeros(len(m)),
            "optimizer": self.optimizer.at(r) + np.zeros(len(m)),
        }


def iteration(workload: Workload, gpu: Gpu, hb_gbyte_s: Any, mappings: Mappings, placements: Placements) -> Iteration:
    """The iteration of every mapping; equations in docs/model.md.

    Parameters
    ----------
    hb_gbyte_s
        One-way bandwidth of a GPU inside the HB domain (10^9 bytes/s), a number or shape (n,).
    mappings, placements
        n rows each.
    """
    model, flash = workload.model, workload.options.attention == "flash"
    t, p, v = mappings.tp, mappings.pp, mappings.interleave
    t_l, p_l = t // placements.tp, p // placements.pp
    layers = model.layers / p
    activation = float(BYTES * model.seq * model.hidden) * mappings.micro_batch

    one_gather = gather(gpu, hb_gbyte_s, activation, placements.tp, t_l, "tp")
    gathers = 8 + 2 * mappings.sequence_parallel + 4 * (mappings.recompute == FULL)
    regather = (~mappings.sequence_parallel) & (t > 1)
    hop = send(gpu, hb_gbyte_s, activation / t, p_l > 1) + one_gather * regather
    return Iteration(
        stage=AffineSeconds(layers * layer_s(model, gpu, mappings, flash=flash)),
        tp=one_gather * (layers * gathers),
        hop=hop * (p > 1),
        logits=AffineSeconds(logits_s(model, gpu, mappings)),
        tp_logits=one_gather * 2,
        dp=_data_parallel(workload, gpu, hb_gbyte_s, mappings, placements),
        embedding=_embedding(workload, gpu, hb_gbyte_s, mappings, p_l),
        optimizer=_optimizer(workload, gpu, mappings),
        hops=2 * v,
        micro_batches=micro_batches(mappings, workload.global_batch),
        bubbles=(p - 1) / v,
    )


def _data_parallel(
    workload: Workload, gpu: Gpu, hb_gbyte_s: Any, mappings: Mappings, placements: Placements
) -> AffineSeconds:
    """Gradients reduced and scattered in fp32; gathered in fp32 too, or the 16-bit parameters under ZeRO 1."""
    parameters = held_parameters(workload.model, mappings)
    across = mappings.dp // placements.dp
    returned = np.where(mappings.zero >= 1, BYTES, GRADIENT_BYTES) * parameters
    scatter = gather(gpu, hb_gbyte_s, GRADIENT_BYTES * parameters, placements.dp, across, "dp")
    return scatter + gather(gpu, hb_gbyte_s, returned, placements.dp, across, "dp")


def _embedding(workload: Workload, gpu: Gpu, hb_gbyte_s: Any, mappings: Mappings, p_l: Ints) -> AffineSeconds:
    """First and last stage add their gradients of a tied embedding."""
    if not workload.model.tied_embeddings:
        return AffineSeconds()
    gradient = GRADIENT_BYTES * vocab_share(workload.model, mappings.tp) * workload.model.hidden
    crosses = p_l > 1
    pair = gather(gpu, hb_gbyte_s, gradient, np.where(crosses, 1, 2), np.where(crosses, 2, 1), "pp")
    return pair * (2 * (mappings.pp > 1))


def _optimizer(workload: Workload, gpu: Gpu, mappings: Mappings) -> AffineSeconds:
    """The step over the parameters this GPU updates."""
    updated = held_parameters(workload.model, mappings) / np.where(mappings.zero >= 1, mappings.dp, 1)
    return AffineSeconds(stream_s(gpu, OPTIMIZER_BYTES * updated))
