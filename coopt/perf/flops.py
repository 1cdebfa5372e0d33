"""Model and hardware FLOPs utilisation."""

from __future__ import annotations

from typing import Any

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.mapping import Floats
from coopt.perf.parameters import hardware_flop_per_token, model_flop_per_token


def utilisation(workload: Workload, gpu: Gpu, gpus: int, recompute: Any, time_s: Any) -> tuple[Floats, Floats]:
    """MFU and HFU (shares of the peak of the workload's precision) of an iteration of `time_s` on `gpus` GPUs."""
    tokens_per_peak = workload.tokens_per_iteration / (time_s * gpus * gpu.peak_flop_s(workload.precision))
    flash = workload.options.attention == "flash"
    mfu = model_flop_per_token(workload.model) * tokens_per_peak
    return mfu, hardware_flop_per_token(workload.model, recompute, flash=flash) * tokens_per_peak
