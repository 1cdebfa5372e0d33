"""What a plan does when one part fails: what `coopt faults` answers. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.schema import InstanceId, Record


class FaultedWorkload(Record):
    """One workload while a part is out; no time where it stops."""

    name: str
    iteration_time_s: float | None
    within_bound: bool


class Fault(Record):
    """The loss of any one of `count` parts of a kind, all with the same effect.

    `forwarded` is set where traffic of the lost NICs passes through other GPUs of the domain.
    """

    part: str
    count: int
    effect: Literal["none", "slower", "stops"]
    slowdown: Annotated[float | None, Field(description="of the workload that suffers most; none where one stops")]
    forwarded: bool
    workloads: tuple[FaultedWorkload, ...]
    remedy: str


class Spares(Record):
    """What the plan has, and what it would take to replace any one GPU or domain."""

    idle_gpus_per_domain: int
    survives_gpu: Annotated[bool, Field(description="an idle GPU of each domain can take the place of any one GPU")]
    same_rank_gpus: Annotated[int, Field(description="spares, one of each rank, that cover any one GPU by re-patching")]
    spare_domain_usd: Annotated[float, Field(description="one more domain with its GPUs, NICs and their optics")]


class Unaligned(Record):
    """A workload whose communicators leave their rail, and the traffic that does."""

    workload: str
    traffic: tuple[str, ...]


class Faults(Record):
    """Every kind of part from the GPUs up, spares, and workloads that are not aligned to rails."""

    schema_: Annotated[Literal["coopt-faults/1"], Field(alias="schema")] = "coopt-faults/1"
    instance: InstanceId
    faults: tuple[Fault, ...]
    spares: Spares
    unaligned: tuple[Unaligned, ...]
