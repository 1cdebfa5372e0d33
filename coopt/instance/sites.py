"""Datacenters that train one model together, and the wide-area links between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from coopt.instance.base import Count, Name, NonNegative, Positive, Price, Table, Watts, one_or_many

if TYPE_CHECKING:
    from coopt.instance.workload import Workload

MOST_SITES = 6  # rings through more sites are too many to try one by one


class Site(Table):
    """A datacenter."""

    name: Annotated[Name, Field(description="how the answer calls it")]
    power_mw: Annotated[Positive, Field(description="facility power it can feed: IT power times PUE (MW)")]
    pue: Annotated[float | None, Field(ge=1, le=100, description="facility over IT power; else objective.pue")] = None
    usd_per_kwh: Annotated[
        float | None,
        Field(ge=0, le=1000, description="price of electricity (USD/kWh); objective.usd_per_kwh if left out"),
    ] = None


class Wan(Table):
    """Wide-area channels that can be lit between two sites."""

    between: Annotated[tuple[Name, Name], one_or_many, Field(description="the two sites")]
    gbit_s: Annotated[Positive, Field(description="what gradients get of one channel, each way (Gbit/s)")]
    usd: Annotated[Price, Field(description="price of one channel, both ends and its share of the fibre (USD)")]
    w: Annotated[Watts, Field(description="power of one channel, half at each end (W)")] = 0.0
    latency_ms: Annotated[NonNegative, Field(description="time that a signal takes one way (ms)")]
    most: Annotated[Count, Field(description="channels that can be lit")]

    @property
    def name(self) -> str:
        """`east - west`."""
        return " - ".join(self.between)


def part_of(workload: Workload, shares: int, whole: int) -> Workload:
    """What a site with some of the shares trains: its part of every batch, in the time of the whole."""
    own = {"global_batch": workload.global_batch * shares // whole, "max_iteration_time_s": workload.asked_s}
    return workload.model_copy(update=own | dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens")))
