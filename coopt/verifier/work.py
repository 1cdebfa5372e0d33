"""What one GPU has to do in an iteration, wherever the mapping is placed."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.kernels import layer_s, logits_s, moved_s
from coopt.verifier.split import Split, parameters, shard


class Work(NamedTuple):
    """Seconds of compute and bytes of communication of a mapping; symbols of docs/model.md."""

    split: Split
    micro_batches: int
    stage_s: float
    logits_s: float
    optimizer_s: float
    gathers: float
    """L/p · n_AG: all-gathers of a stage and micro-batch; 0 without tensor parallelism."""
    gathered_bytes: float
    """2u: bytes of one such all-gather."""
    sent_bytes: float
    """2u/t: bytes of a pipeline hop; 0 without a pipeline."""
    received_gathers: int
    """All-gathers the receiver of a hop adds."""
    parameters: float
    embedding_bytes: float
    """4·ceil(V/t)·h: gradient of the tied embedding; 0 where one stage holds both ends."""

    @property
    def compute_floor_s(self) -> float:
        """Seconds of the iteration if communication took none: no network does better."""
        split = self.split
        busy = self.micro_batches * (self.stage_s + self.logits_s)
        return busy + (split.pp - 1) * self.stage_s / split.interleave + self.optimizer_s


class Clock:
    """Works of one workload on one kind of GPU; layers are timed once for each cut."""

    def __init__(self, workload: Workload, gpu: Gpu) -> None:
        self.workload = workload
        self.gpu = gpu
        self._layers: dict[tuple[int, int, str, bool], float] = {}
        self._logits: dict[tuple[int, int], float] = {}

    def work(self, split: Split) -> Work:
        """The work of a mapping that divides evenly."""
        model = self.workload.model
        held = parameters(model, split)
        u = split.micro_batch * model.seq * model.hidden
        layers = model.layers / split.pp
        parallel = split.tp > 1
        n_ag = 8 + (2 if split.sequence_parallel else 0) + (4 if split.recompute == "full" else 0)
        tied = split.pp > 1 and model.tied_embeddings
        return Work(
            split=split,
            micro_batches=split.micro_batches(self.workload.global_batch),
            stage_s=layers * self._layer_s(split),
            logits_s=self._logits_s(split),
            optimizer_s=moved_s(self.gpu, 60 * held / (split.dp if split.zero == 1 else 1)),
            gathers=layers * n_ag if parallel else 0.0,
            gathered_bytes=2.0 * u,
            sent_bytes=2 * u / split.tp if split.pp > 1 else 0.0,
            received_gathers=1 if parallel and split.pp > 1 and not split.sequence_parallel else 0,
            parameters=held,
            embedding_bytes=4.0 * shard(model, split.tp).vocab * model.hidden if tied else 0.0,
        )

    def _layer_s(self, split: Split) -> float:
        key = (split.tp, split.micro_batch, split.recompute, split.sequence_parallel)
        if key not in self._layers:
            self._layers[key] = layer_s(self.workload, self.gpu, *key)
        return self._layers[key]

    def _logits_s(self, split: Split) -> float:
        key = (split.tp, split.micro_batch)
        if key not in self._logits:
            self._logits[key] = logits_s(self.workload, self.gpu, *key)
        return self._logits[key]
