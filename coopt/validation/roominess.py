"""A micro-batch for a row that does not say: without a pipeline, nothing is gained by cutting a batch up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.memory import memory_bytes
from coopt.validation.arrays import mappings_of
from coopt.validation.splits import Split

LARGEST = 64


def with_largest_micro_batch(workload: Workload, gpu: Gpu, split: Split) -> Split:
    """The split with the largest micro-batch that divides its batch and fits into memory; as it is where none fits."""
    local = split.micro_batch * split.micro_batches
    choices = [replace(split, micro_batch=b, micro_batches=local // b) for b in range(1, local + 1) if local % b == 0]
    fits = np.flatnonzero(memory_bytes(workload, mappings_of(choices)) <= gpu.hbm_gb * 1e9)
    return choices[int(fits[-1])] if len(fits) else split
