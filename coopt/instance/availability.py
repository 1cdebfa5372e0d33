"""What interrupts training, what an interruption takes, and what stands by for it (docs/days.md)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from coopt.instance.base import NonNegative, Positive, Table, one_or_many
from coopt.instance.catalog import named
from coopt.instance.failure_rates import FailureRates

Spares = Annotated[int, Field(ge=0, le=1_000_000)]
SpareCounts = Annotated[tuple[Spares, ...], one_or_many, Field(min_length=1)]
YEAR_S = 365 * 86400.0
MOST_SPARES = 4096
"""Spare domains that are tried where the instance lists none."""


class PortOutages(NamedTuple):
    """How much of one end of a link of a NIC, and of one leaf switch, is out at a time while a run goes on."""

    end: float
    leaf: float


class Availability(Table):
    """Failures, checkpoints, restarts and spares: what share of the time trains."""

    rates: Annotated[FailureRates, named("failure_rates"), Field(description="how often parts end a run")]
    at: Annotated[
        Literal["published", "low", "high"], Field(description="which end of the intervals of the rates is taken")
    ] = "published"
    restart_s: Annotated[NonNegative, Field(description="from a failure to the next iteration, at any size (s)")] = (
        300.0
    )
    restart_s_per_1000_gpus: Annotated[
        NonNegative, Field(description="what the restart takes beyond that for every 1,000 GPUs that train (s)")
    ] = 5.0
    checkpoint_gbyte_s_per_gpu: Annotated[
        Positive,
        Field(le=1e6, description="rate at which a GPU writes and reads its share of a checkpoint (10^9 byte/s)"),
    ] = 0.12
    checkpoint_s: Annotated[
        Positive | None, Field(description="time that a checkpoint stops training (s), in place of that of its bytes")
    ] = None
    checkpoint_interval_s: Annotated[
        Positive | None, Field(description="training between two checkpoints (s); the best one if left out")
    ] = None
    repair_hours: Annotated[
        NonNegative,
        Field(
            description="mean time until a failed GPU, host, domain, or one of several ports of a NIC is back (hours)"
        ),
    ] = 24.0
    flap_s: Annotated[NonNegative, Field(description="mean time until a link that flaps is back (s)")] = 10.0
    spare_domains: Annotated[
        SpareCounts | None,
        Field(description="HB domains that stand by, to choose from; as few as it takes if left out"),
    ] = None

    confidence: Annotated[
        float | None,
        Field(ge=0.5, le=0.999, description="probability that days are kept; the mean has to keep them if left out"),
    ] = None

    def outages(self, nic_planes: int) -> PortOutages:
        """What is out at a time of one end of a link and of one leaf, where NICs have so many ports.

        Links of NICs with one port end a run when they break, and only flap while it goes on.
        """
        rate = {name: each.at(self.at) / YEAR_S for name, each in self.rates.of_part.items()}
        flapping, repair_s = self.rates.flap.at(self.at) / YEAR_S * self.flap_s, self.repair_hours * 3600.0
        if nic_planes == 1:
            return PortOutages(flapping, 0.0)
        return PortOutages(flapping + rate["optic"] * repair_s, rate["switch"] * repair_s)

    @property
    def deviations(self) -> float:
        """How many standard deviations stay between what is done on average and what has to be."""
        return 0.0 if self.confidence is None else NormalDist().inv_cdf(self.confidence)

    @property
    def spares(self) -> Sequence[int]:
        """Numbers of spare domains to choose from, rising."""
        return range(MOST_SPARES + 1) if self.spare_domains is None else sorted(self.spare_domains)
