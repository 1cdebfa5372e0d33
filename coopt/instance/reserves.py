"""Reserves of a plan (docs/days.md): for interruptions of training, model error and memory.

The tables define the causes and costs of interruptions, spares, and shares kept free.
"""

from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from coopt.instance.base import NonNegative, Positive, Table, one_or_many
from coopt.instance.catalog import FailureRates, ModelError, entries, named
from coopt.instance.evidence import Practice, error_of, is_measured, longer
from coopt.instance.hardware import Gpu
from coopt.instance.texts import counted
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
                "mean time until a failed GPU, host, domain, channel, or one of several ports of a"
                " NIC is back (hours)"
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

    def outages(self, *, keeps_ports: bool) -> PortOutages:
        """Return the mean outages of one link end and of one leaf.

        A broken link ends a run unless each NIC keeps ports on other leaves; link flaps do not.
        """
        rate = {name: failure.at(self.at) / YEAR_S for name, failure in self.rates.of_part.items()}
        flapping, repair_s = (
            self.rates.flap.at(self.at) / YEAR_S * self.flap_s,
            self.repair_hours * 3600.0,
        )
        if not keeps_ports:
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

    @property
    def listed_spares(self) -> str:
        """What is listed, in words: `at most 2 spare domains`; empty where nothing is."""
        if self.spare_domains is None:
            return ""
        most = max(self.spare_domains)
        return f"at most {counted(most, 'spare domain')}" if most else "no spare domains"

    @property
    def at_each_site(self) -> int:
        """How many domains stand by at each of several sites that train one model."""
        return min(self.spare_domains or (0,))

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

    ties: Annotated[
        Literal["nearest", "fastest"],
        Field(
            description=(
                "of mappings within the model's error of each other, at no cost: the nearest to"
                " published runs, or the fastest"
            )
        ),
    ] = "fastest"

    @property
    def chance(self) -> float:
        """Probability to be in time; of one standard error if not given."""
        return NormalDist().cdf(1.0) if self.confidence is None else self.confidence

    def time_share(self, gpu: Gpu, workload: Workload, gpus: int) -> float:
        """Return the share added to the iteration times of a workload on at most so many GPUs."""
        if self.time != "model":
            return self.time
        return longer(largest_error(gpu, workload, gpus), self.chance)

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
DEFAULT_MARGIN = Margin(time="model", confidence=0.8, memory="software", ties="nearest")
"""What a plan keeps free where its question has no `[margin]`."""


HYBRID = "hybrid"


def error_names(gpu: Gpu, workload: Workload) -> tuple[str, str]:
    """Return the keys of the errors relevant to a workload: of its hardware and precision, and of
    its kind of model.
    """
    return f"{gpu.generation} {_precision_name(workload)}", model_kind(workload)


def _precision_name(workload: Workload) -> str:
    return workload.precision if workload.precision in ("fp8", "fp4") else "16-bit"


def model_kind(workload: Workload) -> str:
    """Return the kind of model of a workload, as used for model errors."""
    if workload.model.scans:
        return HYBRID
    return "mixture of experts" if workload.model.experts else "dense"


def own_error(gpu: Gpu, workload: Workload) -> float | None:
    """Return the error that a user states with efficiencies fitted to own runs; None for hardware
    of the catalog, or where nothing was fitted or stated.
    """
    fitted = not is_catalogued(gpu) and all(
        gpu.efficiency != entry.efficiency
        for entry in entries("gpu").values()
        if isinstance(entry, Gpu)
    )
    return gpu.error(workload.precision) if fitted else None


def is_catalogued(gpu: Gpu) -> bool:
    """Whether a GPU equals one of the catalog in everything that times depend on."""
    return _catalog_name(gpu) is not None


def _catalog_name(gpu: Gpu) -> str | None:
    """Return the name of the GPU of the catalog that equals one in everything that times depend on;
    None without one.
    """
    alike = [
        entry.name
        for entry in entries("gpu").values()
        if isinstance(entry, Gpu) and _timed_by(entry) == _timed_by(gpu)
    ]
    return gpu.name if gpu.name in alike else next(iter(alike), None)


def _timed_by(gpu: Gpu) -> tuple[object, ...]:
    peaks = gpu.bf16_tflop_s, gpu.fp8_tflop_s, gpu.fp4_tflop_s
    return gpu.generation, *peaks, gpu.hbm_gbyte_s, gpu.sm_count, gpu.efficiency


SAME_CODE = {"megatron-bridge": "megatron-core"}
"""Frameworks that run the layers of another one."""


def practice_of(
    gpu: Gpu, workload: Workload, *, experts_across: bool, micro_batch: int, gpus: int
) -> Practice:
    """Return the properties of a run that the error of its predicted time depends on."""
    software = workload.options.software
    return Practice(
        architecture=model_kind(workload),
        generation=gpu.generation,
        precision=_precision_name(workload),
        gpu=_catalog_name(gpu) or f"{gpu.name} (own)",
        software=SAME_CODE.get(software.name, software.name),
        graphs=software.graphs,
        experts_across=experts_across,
        micro_batch=micro_batch,
        gpus=gpus,
    )


UNMEASURED = 1.5
"""Least mean error on hardware of one's own, or of a generation without published runs, over that
of the nearest hardware with some.
"""


def error_size(gpu: Gpu, workload: Workload, practice: Practice) -> float:
    """Return the mean size of the log error of a predicted time: as stated for own hardware, else
    by the distance from published runs.
    """
    stated = own_error(gpu, workload)
    if stated is not None:
        return stated
    error = error_of(practice)
    return error if is_measured(practice.gpu) else max(error, _least_error(gpu, workload))


def _least_error(gpu: Gpu, workload: Workload) -> float:
    """Return the least error of hardware without published runs, by that of its generation and kind
    of model; by the largest known one if no run is of its generation and precision.
    """
    errors = {
        name: entry.left_out
        for name, entry in entries("model_error").items()
        if isinstance(entry, ModelError)
    }
    hardware, kind = error_names(gpu, workload)
    if hardware not in errors:
        return UNMEASURED * max(errors.values())
    nearest = max(errors[hardware], errors[kind])
    return nearest if is_catalogued(gpu) else UNMEASURED * nearest


def largest_error(gpu: Gpu, workload: Workload, gpus: int) -> float:
    """Return the largest error of all mappings that a workload allows on so many GPUs."""
    allowed, has_experts = workload.mapping, workload.model.experts > 1
    spread = (False, True) if has_experts and allowed.ep != (1,) else (False,)
    own = practice_of(gpu, workload, experts_across=False, micro_batch=1, gpus=gpus)
    return max(
        error_size(gpu, workload, own._replace(experts_across=across, micro_batch=batch))
        for across in spread
        for batch in allowed.micro_batch
    )
