"""What interrupts a workload on a network, and what share of the time it trains, for many networks at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.availability.failures import PartCounts, failures_per_hour
from coopt.availability.goodput import best_interval_s, promised_share, trained_share, variance_s
from coopt.instance.availability import Availability
from coopt.instance.workload import Workload
from coopt.perf.mapping import Floats
from coopt.perf.memory import checkpoint_bytes

HOUR_S, DAY_S = 3600.0, 86400.0
NEVER = 1e-9  # share of the time below which nothing gets done


@dataclass(frozen=True, kw_only=True)
class Interruptions:
    """Failures in a second and the training between checkpoints (s), for each network; checkpoint and restart (s).

    `trained` is the share of the time that trains while domains enough are whole, `variance_s` how far a second of
    training spreads.
    """

    per_s: Floats
    interval_s: Floats
    checkpoint_s: float
    restart_s: float
    trained: Floats
    variance_s: Floats


def interruptions(asked: Availability, workload: Workload, counts: PartCounts) -> Interruptions:
    """What interrupts a workload on networks with so many parts."""
    per_s = np.asarray(failures_per_hour(asked.rates, asked.at, counts)) / HOUR_S
    transfer_s = checkpoint_bytes(workload) / (asked.checkpoint_gbyte_s_per_gpu * 1e9 * counts.gpus)
    checkpoint_s = transfer_s if asked.checkpoint_s is None else asked.checkpoint_s
    restart_s = asked.restart_s + asked.restart_s_per_1000_gpus * counts.gpus / 1000 + transfer_s
    given = asked.checkpoint_interval_s
    interval_s: Any = best_interval_s(per_s, checkpoint_s) if given is None else np.full_like(per_s, given)
    taken: dict[str, Any] = {"interval_s": interval_s, "checkpoint_s": checkpoint_s, "restart_s": restart_s}
    trained = trained_share(per_s, **taken)
    spread = variance_s(per_s, **taken) if asked.confidence is not None else np.zeros_like(per_s)
    return Interruptions(per_s=per_s, **taken, trained=trained, variance_s=spread)


def promise(asked: Availability, workload: Workload, found: Interruptions, running: float, waits_s: float) -> Any:
    """The share of its days that a workload can count on; without a bound on days that of the mean."""
    if asked.confidence is None or workload.train_days is None:
        return running * found.trained
    share = promised_share(
        workload.train_days * DAY_S,
        asked.deviations,
        mean=1.0 / np.maximum(found.trained, NEVER),
        variance_s=found.variance_s,
        running=running,
        waits_s=waits_s,
    )
    return np.where(running * found.trained < NEVER, 0.0, share)
