"""A cluster that grows: what each phase has to train, with how many GPUs, and at which prices it is bought."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from coopt.instance.base import Count, Name, Positive, Price, Table, one_or_many

Factor = Annotated[float, Field(ge=0, le=1000)]
BOUND_KEYS = ("max_iteration_time_s", "min_tokens_per_s", "train_days", "train_tokens")


class PhaseWorkload(Table):
    """A workload of `[[workload]]` that trains in a phase; a bound given here takes the place of its own."""

    name: Annotated[Name, Field(description="name of the workload")]
    max_iteration_time_s: Annotated[Positive | None, Field(description="bound: time of one iteration (s)")] = None
    min_tokens_per_s: Annotated[Positive | None, Field(description="bound: pace of the training (tokens/s)")] = None
    train_days: Annotated[Positive | None, Field(description="bound: time to train `train_tokens` (days)")] = None
    train_tokens: Annotated[Positive | None, Field(description="tokens of the whole training run")] = None

    @property
    def bound(self) -> dict[str, float]:
        """The keys of the bound given here; empty where the workload keeps its own."""
        return {key: value for key in BOUND_KEYS if (value := getattr(self, key)) is not None}


class PriceFactors(Table):
    """What a phase pays over the prices of the instance, by the kind of the bill; 1 is the same price."""

    hb: Annotated[Factor, Field(description="HB domains with their idle GPUs; in a fleet these go by gpu")] = 1.0
    nic: Annotated[Factor, Field(description="NICs")] = 1.0
    switch: Annotated[Factor, Field(description="switches")] = 1.0
    optics: Annotated[Factor, Field(description="optics")] = 1.0
    gpu: Annotated[Factor, Field(description="GPUs that train")] = 1.0
    energy: Annotated[Factor, Field(description="electricity, from this phase to the next")] = 1.0


def _named(value: Any) -> Any:
    """A workload may be given by its name alone."""
    return {"name": value} if isinstance(value, str) else value


Named = Annotated[PhaseWorkload, BeforeValidator(_named, json_schema_input_type=str | PhaseWorkload)]


class Phase(Table):
    """A step of growth: what is there from `year` on, until the next phase."""

    year: Annotated[float, Field(ge=0, le=10_000, description="when it begins, such as 2027 or 1.5")]
    gpus: Annotated[Count, Field(description="GPUs that train, those of earlier phases included")]
    workloads: Annotated[
        tuple[Named, ...],
        one_or_many,
        Field(description="workloads that train, by name or with a bound of their own; left out: all"),
    ] = ()
    price: Annotated[PriceFactors, Field(description="prices of this phase over those of the instance")] = (
        PriceFactors()
    )
    retrofit_usd_per_link: Annotated[
        Price, Field(description="labour for an uplink added to a switch that stood before (USD)")
    ] = 0.0
