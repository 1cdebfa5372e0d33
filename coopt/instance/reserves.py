"""Reserves of a plan (docs/days.md): for interruptions of training, model error and memory.

The tables define the causes and costs of interruptions, spares, and shares kept free.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from coopt.instance.base import Entry, NonNegative, Positive, Table, one_or_many
from coopt.instance.catalog import FailureRates, ModelError, entries, named
from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload

Spares = Annotated[int, Field(ge=0, le=1_000_000)]
SpareCounts = Annotated[tuple[Spares, ...], one_or_many, Field(min_length=1)]
YEAR_S = 365 * 86400.0
MAX_SPARES = 4096
"""Spare domains that are tried where the instance lists none."""


class PortOutages(NamedTuple):
    """Mean share of the ends of NIC links, and of leaf switches, that have failed while a run
    continues.
    """

    end: float
    leaf: float


class Availability(Table):
    """Failures, checkpoints, restarts and spares, which determine the share of time in training."""

    rates: Annotated[
        FailureRates, named("failure_rates"), Field(description="how often parts end a run")
    ]
    at: Annotated[
        Literal["published", "low", "high"],
        Field(description="which end of the intervals of the rates is taken"),
    ] = "published"
    restart_s: Annotated[
        NonNegative, Field(description="from a failure to the next iteration, at any size (s)")
    ] = 300.0
    restart_s_per_1000_gpus: Annotated[
        NonNegative,
        Field(description="what the restart takes beyond that for every 1,000 GPUs that train (s)"),
    ] = 5.0
    checkpoint_gbyte_s_per_gpu: Annotated[
        Positive,
        Field(
            le=1e6,
            description=(
                "rate at which a GPU writes and reads its share of a checkpoint (10^9 byte/s)"
            ),
        ),
    ] = 0.12
    checkpoint_s: Annotated[
        Positive | None,
        Field(
            description="time that a checkpoint stops training (s), in place of that of its bytes"
        ),
    ] = None
    checkpoint_interval_s: Annotated[
        Positive | None,
        Field(description="training between two checkpoints (s); the best one if left out"),
    ] = None
    repair_hours: Annotated[
        NonNegative,
        Field(
            description=(
                "mean time until a failed GPU, host, domain, or one of several ports of a NIC is"
                " back (hours)"
            )
        ),
    ] = 24.0
    flap_s: Annotated[
        NonNegative, Field(description="mean time until a link that flaps is back (s)")
    ] = 10.0
    spare_domains: Annotated[
        SpareCounts | None,
        Field(
            description="HB domains that stand by, to choose from; as few as it takes if left out"
        ),
    ] = None

    confidence: Annotated[
        float | None,
        Field(
            ge=0.5,
            le=0.999,
            description="probability that days are kept; the mean has to keep them if left out",
        ),
    ] = None

    def outages(self, nic_planes: int) -> PortOutages:
        """Return the mean outages of one link end and of one leaf, for NICs with that many
        ports.

        A broken link ends a run if NICs have one port; link flaps do not.
        """
        rate = {name: failure.at(self.at) / YEAR_S for name, failure in self.rates.of_part.items()}
        flapping, repair_s = (
            self.rates.flap.at(self.at) / YEAR_S * self.flap_s,
            self.repair_hours * 3600.0,
        )
        if nic_planes == 1:
            return PortOutages(flapping, 0.0)
        return PortOutages(flapping + rate["optic"] * repair_s, rate["switch"] * repair_s)

    @property
    def deviations(self) -> float:
        """Number of standard deviations between mean and required progress."""
        return 0.0 if self.confidence is None else NormalDist().inv_cdf(self.confidence)

    @property
    def spares(self) -> Sequence[int]:
        """Allowed numbers of spare domains, in rising order."""
        return range(MAX_SPARES + 1) if self.spare_domains is None else sorted(self.spare_domains)

    def spares_with(self, idle_domains: int) -> Sequence[int]:
        """Allowed numbers of spare domains, in rising order, where so many stand idle anyway."""
        if not idle_domains:
            return self.spares
        return sorted({max(spares, idle_domains) for spares in self.spares})


def published_failures() -> Availability:
    """Interruptions at published rates, which are counted where a question says nothing of them."""
    return Availability.model_validate({"rates": "llama-3"})


class Margin(Table):
    """Shares of time, memory and switch ports that a plan leaves free; `"none"` is short for shares
    of 0.
    """

    time: Annotated[
        Literal["model"] | Annotated[float, Field(ge=0, le=10)],
        Field(
            description=(
                "share added to iteration times before they are compared with bounds; model: its"
                " own error"
            )
        ),
    ] = "model"
    confidence: Annotated[
        float | None,
        Field(
            ge=0.5,
            le=0.999,
            description="with model: probability to be in time; one standard error if left out",
        ),
    ] = None
    memory: Annotated[
        Literal["software"] | Annotated[float, Field(ge=0, le=0.9)],
        Field(
            description=(
                "share of the memory of a GPU that stays free; software: what that of the workloads"
                " needs, their memory_margin"
            )
        ),
    ] = 0.0
    ports: Annotated[
        float,
        Field(
            ge=0,
            le=0.9,
            description="share of the ports of every switch that stays free for growth, at least",
        ),
    ] = 0.0

    @property
    def standard_errors(self) -> float:
        """Number of standard errors of the model added to times."""
        return 1.0 if self.confidence is None else NormalDist().inv_cdf(self.confidence)

    def time_share(self, gpu: Gpu, workload: Workload) -> float:
        """Return the share added to the iteration times of a workload."""
        if self.time != "model":
            return self.time
        return self.standard_errors * standard_error(gpu, workload)

    def memory_share(self, workloads: Iterable[Workload]) -> float:
        """Return the share of a GPU's memory that workloads leave free."""
        if self.memory != "software":
            return self.memory
        return max(workload.options.software.memory_margin for workload in workloads)

    @property
    def keeps_nothing(self) -> bool:
        """Whether all shares are 0."""
        return self.time == self.memory == self.ports == 0.0


NO_MARGIN = Margin(time=0.0)
DEFAULT_MARGIN = Margin(time="model", confidence=0.8, memory="software")
"""What a plan keeps free where its question has no `[margin]`."""


HYBRID = "hybrid"
KINDS = {
    "dense": "dense models",
    "mixture of experts": "mixtures of experts",
    HYBRID: "hybrids with Mamba-2",
}
"""Kinds of models, and several of each."""


def error_names(gpu: Gpu, workload: Workload) -> tuple[str, str]:
    """Return the keys of the errors relevant to a workload: of its hardware and precision, and of
    its kind of model.
    """
    precision = workload.precision if workload.precision in ("fp8", "fp4") else "16-bit"
    return f"{gpu.generation} {precision}", model_kind(workload)


def model_kind(workload: Workload) -> str:
    """Return the kind of model of a workload, as used for model errors."""
    if workload.model.scans:
        return HYBRID
    return "mixture of experts" if workload.model.experts else "dense"


class KnownError(NamedTuple):
    """Mean absolute error of predicted times, as a share, and the runs that it was measured on, in
    words.
    """

    error: float
    runs: str


def known_error(gpu: Gpu, workload: Workload) -> KnownError | None:
    """Return the error of a workload's predicted times: on published runs of sources not used for
    fitting, else on own runs.

    The larger error of hardware and kind of model counts. None if unknown, as for user-defined
    hardware that states no error with its efficiencies.
    """
    if not is_catalogued(gpu):
        own_error = gpu.error(workload.precision)
        fitted = all(
            gpu.efficiency != entry.efficiency
            for entry in entries("gpu").values()
            if isinstance(entry, Gpu)
        )
        if own_error is None or not fitted:
            return None
        return KnownError(own_error, f"the runs that {gpu.name} was fitted to")
    hardware, kind = error_names(gpu, workload)
    errors: dict[str, Entry] = entries("model_error")
    if hardware not in errors:
        return None
    _, _, precision = hardware.rpartition(" ")
    runs = {
        hardware: f"published {precision} runs of {gpu.generation} GPUs",
        kind: f"published runs of {KINDS[kind]}",
    }
    error = max(
        (entry for entry in (errors[hardware], errors[kind]) if isinstance(entry, ModelError)),
        key=_left_out,
    )
    return KnownError(error.left_out, f"{runs[error.name]} left out of the fit")


def is_catalogued(gpu: Gpu) -> bool:
    """Whether a GPU equals one of the catalog in everything that times depend on."""
    return any(
        isinstance(entry, Gpu) and _timed_by(entry) == _timed_by(gpu)
        for entry in entries("gpu").values()
    )


def _timed_by(gpu: Gpu) -> tuple[object, ...]:
    peaks = gpu.bf16_tflop_s, gpu.fp8_tflop_s, gpu.fp4_tflop_s
    return gpu.generation, *peaks, gpu.hbm_gbyte_s, gpu.sm_count, gpu.efficiency


def _left_out(error: ModelError) -> float:
    return error.left_out


UNMEASURED = 1.5
"""Mean error on hardware without published runs, over that of the nearest hardware with some."""


class AssumedError(NamedTuple):
    """Mean absolute error of predicted times, as a share, and whether runs tell it."""

    error: float
    measured: bool


def assumed_error(gpu: Gpu, workload: Workload) -> AssumedError:
    """Return the error that margins assume of a workload's predicted times.

    It is that of published runs of its hardware and kind of model, or of own runs. Without either
    it is larger than that of its generation, or of any if its generation has none.
    """
    own = known_error(gpu, workload)
    if own is not None:
        return AssumedError(own.error, measured=True)
    errors = {
        name: entry.left_out
        for name, entry in entries("model_error").items()
        if isinstance(entry, ModelError)
    }
    hardware, kind = error_names(gpu, workload)
    nearest = max(errors[hardware], errors[kind]) if hardware in errors else max(errors.values())
    return AssumedError(UNMEASURED * nearest, measured=False)


def standard_error(gpu: Gpu, workload: Workload) -> float:
    """Return the relative standard error of a predicted time.

    For normally distributed errors the mean absolute error is sqrt(2 / pi) standard errors.
    """
    return assumed_error(gpu, workload).error * math.sqrt(math.pi / 2)
