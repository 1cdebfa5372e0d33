"""How often parts of a cluster fail, each kind with the interval that its source allows for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from coopt.instance.base import Count, Entry, Table

Yearly = Annotated[float, Field(ge=0, le=1000)]


class FailureRate(Table):
    """Failures of one part, or flaps, in a year of 8,760 hours."""

    per_year: Annotated[Yearly, Field(description="how often it happens to one part (1/year)")] = 0.0
    low: Annotated[Yearly | None, Field(description="least that the source allows for (1/year)")] = None
    high: Annotated[Yearly | None, Field(description="most that the source allows for (1/year)")] = None

    @model_validator(mode="after")
    def _rising(self) -> FailureRate:
        if not self.at("low") <= self.per_year <= self.at("high"):
            raise ValueError(
                f"low = {self.at('low'):g}, per_year = {self.per_year:g}, high = {self.at('high'):g}: "
                "needs low <= per_year <= high"
            )
        return self

    def at(self, end: str) -> float:
        """The rate at an end of its interval, "low" or "high"; as published for any other word, or without an end."""
        value = {"low": self.low, "high": self.high}.get(end)
        return self.per_year if value is None else value


NEVER = FailureRate()


class FailureRates(Entry):
    """How often each kind of part ends a training run, and how often links flap."""

    gpu: Annotated[FailureRate, Field(description="a GPU that trains, without its memory")] = NEVER
    hbm: Annotated[FailureRate, Field(description="the memory of a GPU that trains")] = NEVER
    host: Annotated[FailureRate, Field(description="a host: CPUs, power supplies, disks, maintenance")] = NEVER
    nic: Annotated[FailureRate, Field(description="a network adapter of a GPU that trains")] = NEVER
    optic: Annotated[FailureRate, Field(description="one end of a link: transceiver and half the cable")] = NEVER
    switch: Annotated[FailureRate, Field(description="a switch")] = NEVER
    domain: Annotated[FailureRate, Field(description="an HB domain: what its GPUs share")] = NEVER
    software: Annotated[FailureRate, Field(description="software, by GPUs that train")] = NEVER
    flap: Annotated[
        FailureRate,
        Field(
            description="one end of the link of a NIC goes down for `availability.flap_s` and comes back; ends no run"
        ),
    ] = NEVER
    gpus_per_host: Annotated[Count, Field(description="GPUs of a host")] = 8

    @property
    def of_part(self) -> dict[str, FailureRate]:
        """The rate of every kind of part whose failure may end a run."""
        names = ("gpu", "hbm", "host", "nic", "optic", "switch", "domain", "software")
        return {name: getattr(self, name) for name in names}
