"""What a plan keeps free: time for the error of the model, and memory (docs/days.md)."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from coopt.instance.base import Entry, Table
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.instance.model_error import ModelError
from coopt.instance.workload import Workload


class Margin(Table):
    """Shares of time, memory and switch ports that a plan leaves free."""

    time: Annotated[
        Literal["model"] | Annotated[float, Field(ge=0, le=10)],
        Field(description="share added to iteration times before they are compared with bounds; model: its own error"),
    ] = "model"
    confidence: Annotated[
        float | None,
        Field(
            ge=0.5,
            le=0.999,
            description="with model: probability to be in time; one standard error if left out",
        ),
    ] = None
    memory: Annotated[float, Field(ge=0, le=0.9, description="share of the memory of a GPU that stays free")] = 0.0
    ports: Annotated[
        float,
        Field(ge=0, le=0.9, description="share of the ports of every switch that stays free for growth, at least"),
    ] = 0.0

    @property
    def standard_errors(self) -> float:
        """How many standard errors of the model are added to times."""
        return 1.0 if self.confidence is None else NormalDist().inv_cdf(self.confidence)

    def time_share(self, gpu: Gpu, workload: Workload) -> float:
        """The share added to the iteration times of a workload.

        Raises
        ------
        ValueError
            When the error of the model is asked for and nothing was measured.
        """
        if self.time != "model":
            return self.time
        return self.standard_errors * standard_error(gpu, workload)


def error_names(gpu: Gpu, workload: Workload) -> tuple[str, str]:
    """What the errors that bear on a workload are called: those of hardware and precision, and of a kind of model."""
    precision = workload.precision if workload.precision in ("fp8", "fp4") else "16-bit"
    return f"{gpu.generation} {precision}", "mixture of experts" if workload.model.experts else "dense"


class KnownError(NamedTuple):
    """The mean size of the error of predicted times, as a share, and the runs that tell it, in words."""

    error: float
    runs: str


def known_error(gpu: Gpu, workload: Workload) -> KnownError | None:
    """What runs tell of the error of a workload's times: published ones whose source no fit had seen, else one's own.

    Of hardware and kind of model the larger error. None where nothing tells it: on hardware of one's own, by whatever
    name, that states no error beside efficiencies of its own.
    """
    if not is_catalogued(gpu):
        own = gpu.error(workload.precision)
        fitted = all(gpu.efficiency != one.efficiency for one in entries("gpu").values() if isinstance(one, Gpu))
        return None if own is None or not fitted else KnownError(own, f"the runs that {gpu.name} was fitted to")
    hardware, kind = error_names(gpu, workload)
    known: dict[str, Entry] = entries("model_error")
    if hardware not in known:
        return None
    _, _, precision = hardware.rpartition(" ")
    runs = {
        hardware: f"published {precision} runs of {gpu.generation} GPUs",
        kind: f"published runs of {'mixtures of experts' if workload.model.experts else 'dense models'}",
    }
    largest = max((one for one in (known[hardware], known[kind]) if isinstance(one, ModelError)), key=_left_out)
    return KnownError(largest.left_out, f"{runs[largest.name]} that were left out of the fit")


def is_catalogued(gpu: Gpu) -> bool:
    """Whether a GPU is one of the catalog's in all that times rest on."""
    return any(isinstance(one, Gpu) and _timed_by(one) == _timed_by(gpu) for one in entries("gpu").values())


def _timed_by(gpu: Gpu) -> tuple[object, ...]:
    peaks = gpu.bf16_tflop_s, gpu.fp8_tflop_s, gpu.fp4_tflop_s
    return gpu.generation, *peaks, gpu.hbm_gbyte_s, gpu.sm_count, gpu.efficiency


def _left_out(one: ModelError) -> float:
    return one.left_out


def standard_error(gpu: Gpu, workload: Workload) -> float:
    """The standard error of a predicted time, as a share of it: the larger one of hardware and of the kind of model.

    Of errors by a normal law the mean size is sqrt(2 / pi) standard errors.

    Raises
    ------
    ValueError
        When no run of that hardware and precision was measured.
    """
    hardware, kind = error_names(gpu, workload)
    known: dict[str, Entry] = entries("model_error")
    if hardware not in known:
        raise ValueError(
            f"margin.time = 'model': no published runs tell the error on {gpu.name} in {workload.precision} "
            f"(workload {workload.name!r}), needs a number"
        )
    errors = [known[name] for name in (hardware, kind)]
    return max(one.left_out for one in errors if isinstance(one, ModelError)) * math.sqrt(math.pi / 2)
