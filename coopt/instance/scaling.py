"""The same question with every time bound stretched alike."""

from __future__ import annotations

from coopt.instance.schema import Instance

LONGEST_S = 1e15
"""The longest bound an instance may have."""


def at_pace(instance: Instance, pace: float) -> Instance:
    """The instance with every bound `pace` times as long, as seconds an iteration and at most `LONGEST_S`."""
    none = {"min_tokens_per_s": None, "train_days": None, "train_tokens": None}
    workloads = tuple(
        workload.model_copy(update={**none, "max_iteration_time_s": min(workload.bound_s * pace, LONGEST_S)})
        for workload in instance.workload
    )
    return instance.model_copy(update={"workload": workloads})
