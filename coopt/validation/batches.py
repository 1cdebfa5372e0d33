"""Iteration times of many runs; what asks the model the same question is asked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.software import Software
from coopt.instance.workload import Workload
from coopt.perf.affine import Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import Floats, Ints, Mappings, Placements
from coopt.validation.runs import MeasuredRun
from coopt.validation.splits import mappings_of, placements_of

Hardware = Callable[[Gpu], Gpu]
Framework = Callable[[Software], Software]


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Runs that differ in mapping and network only; `position` is their place among all runs."""

    workload: Workload
    gpu: Gpu
    hb_gbyte_s: float
    mappings: Mappings
    placements: Placements
    reciprocals: Reciprocals
    position: Ints

    def evaluated(self, gpu: Gpu, software: Software) -> Iteration:
        """The iterations of these runs on changed hardware and software."""
        options = self.workload.options.model_copy(update={"software": software})
        workload = self.workload.model_copy(update={"options": options})
        return iteration(workload, gpu, self.hb_gbyte_s, self.mappings, self.placements)


def batches_of(runs: Sequence[MeasuredRun]) -> list[Batch]:
    """All runs, sorted into batches."""
    shared: dict[object, list[int]] = {}
    for index, run in enumerate(runs):
        shared.setdefault(_question(run), []).append(index)
    return [_batch([runs[i] for i in members], members) for members in shared.values()]


def predicted_s(batches: Sequence[Batch], hardware: Hardware, framework: Framework) -> Floats:
    """Iteration time of every run.

    Parameters
    ----------
    hardware, framework
        What to change about the GPU and the software of a run; they return what they are given to change nothing.
    """
    times = np.empty(sum(len(batch.position) for batch in batches))
    for batch in batches:
        parts = batch.evaluated(hardware(batch.gpu), framework(batch.workload.options.software))
        times[batch.position] = parts.time_s(batch.reciprocals)
    return times


def unchanged_s(batches: Sequence[Batch]) -> Floats:
    """Iteration time of every run with the catalog's figures."""
    return predicted_s(batches, lambda gpu: gpu, lambda software: software)


def breakdowns_s(batches: Sequence[Batch]) -> list[dict[str, float]]:
    """The seconds of every run by cause."""
    found: dict[int, dict[str, float]] = {}
    for batch in batches:
        parts = batch.evaluated(batch.gpu, batch.workload.options.software).breakdown_s(batch.reciprocals)
        for row, index in enumerate(batch.position):
            found[int(index)] = {name: float(seconds[row]) for name, seconds in parts.items()}
    return [found[index] for index in range(len(found))]


def _question(run: MeasuredRun) -> object:
    """What two runs must share to be evaluated together."""
    workload = run.workload
    model = workload.model.model_copy(update={"name": "", "description": "", "sources": ()})
    return model, workload.global_batch, workload.precision, workload.options, run.gpu.name, run.hb_gbyte_s


def _batch(runs: Sequence[MeasuredRun], position: Sequence[int]) -> Batch:
    splits = [run.split for run in runs]
    byte_s = np.array([8e-9 / run.nic_gbit_s for run in runs])
    return Batch(
        workload=runs[0].workload,
        gpu=runs[0].gpu,
        hb_gbyte_s=runs[0].hb_gbyte_s,
        mappings=mappings_of(splits),
        placements=placements_of(splits),
        reciprocals=Reciprocals.everywhere(byte_s),
        position=np.array(position, dtype=np.int64),
    )
