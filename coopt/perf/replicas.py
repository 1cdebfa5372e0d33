"""What replicas of a stage do together once an iteration: reduce gradients, gather parameters, step the optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds
from coopt.perf.collectives import Links, gather
from coopt.perf.kernels import BYTES, Device
from coopt.perf.mapping import Floats, Ints, Mappings, Placements, expert_ranks, micro_batches
from coopt.perf.memory import expert_copies, sharded_stage
from coopt.perf.parameters import held_expert_parameters, held_parameters
from coopt.perf.shapes import vocab_share

OPTIMIZER_BYTES = (
    60  # of HBM traffic for each parameter updated: 30 by Adam, as much by norm, clipping and copies (judgement)
)


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Mappings of a workload on placements, with the parameters their fullest GPUs hold; arrays of shape (n,)."""

    workload: Workload
    links: Links
    mappings: Mappings
    placements: Placements
    shared: Floats
    experts: Floats

    def data_parallel(self) -> AffineSeconds:
        """T_dp: gradients reduced and scattered, then gradients (ZeRO 0) or 16-bit parameters gathered."""
        scatter, back = self.shared_exchange()
        experts_scatter, experts_back = self.expert_exchange()
        return scatter + back + experts_scatter + experts_back

    def shared_exchange(self) -> tuple[AffineSeconds, AffineSeconds]:
        """Scatter and gather of all but the experts."""
        m, inside = self.mappings, self.placements.dp * self.placements.cp
        return self._exchange(self.shared, inside, m.dp * m.cp // inside)

    def expert_exchange(self) -> tuple[AffineSeconds, AffineSeconds]:
        """Scatter and gather among the GPUs that hold the same experts."""
        if not self.workload.model.experts:
            return AffineSeconds(), AffineSeconds()
        *_, inside, across = expert_ranks(self.mappings, self.placements, expert_tp=self.workload.options.expert_tp)
        return self._exchange(self.experts, inside, across)

    def _exchange(self, parameters: Floats, inside: Ints, across: Ints) -> tuple[AffineSeconds, AffineSeconds]:
        zero, gradient = self.mappings.zero, self.workload.options.software.gradient_bytes
        often = sharded_stage(self.mappings)
        times = micro_batches(self.mappings, self.workload.global_batch)
        scatter = gather(self.links, gradient * parameters, inside, across, "dp")
        returned = np.where(zero >= 1, BYTES, gradient) * parameters
        back = gather(self.links, returned, inside, across, "dp")
        return scatter * np.where(often >= 2, times, 1), back * np.where(often == 3, 2 * times, 1)

    def embedding(self) -> AffineSeconds:
        """First and last stage add their gradients of a tied embedding."""
        model = self.workload.model
        if not model.tied_embeddings:
            return AffineSeconds()
        size = self.workload.options.software.gradient_bytes * vocab_share(model, self.mappings.tp) * model.hidden
        crosses = self.mappings.pp > self.placements.pp
        pair = gather(self.links, size, np.where(crosses, 1, 2), np.where(crosses, 2, 1), "pp")
        return pair * (2 * (self.mappings.pp > 1))

    def optimizer(self, device: Device) -> AffineSeconds:
        """The step over the parameters this GPU updates."""
        m = self.mappings
        copies = expert_copies(m, expert_tp=self.workload.options.expert_tp)
        spread = self.shared / (m.dp * m.cp) + self.experts / copies
        updated = np.where(m.zero >= 1, spread, self.shared + self.experts)
        return AffineSeconds(device.stream_s(OPTIMIZER_BYTES * updated))


def replicas_of(workload: Workload, links: Links, mappings: Mappings, placements: Placements) -> Replicas:
    """The replicas of every mapping."""
    expert_tp = workload.options.expert_tp
    return Replicas(
        workload=workload,
        links=links,
        mappings=mappings,
        placements=placements,
        shared=held_parameters(workload.model, mappings),
        experts=held_expert_parameters(workload.model, mappings, expert_tp=expert_tp),
    )
