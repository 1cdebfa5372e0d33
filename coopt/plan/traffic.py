"""Who sends how much to whom in an iteration: what `coopt traffic` answers. Data only.

Places are the highest one that a flow passes: `domain` where it stays in an HB domain, `leaf` where it goes no further
than its leaf, `above` everything else. All bytes are those of one iteration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.schema import InstanceId, Record


class ClassBytes(Record):
    """Bytes of one class of traffic in one phase, over all GPUs."""

    kind: Literal["tp", "cp", "ep", "pp", "dp", "embedding"]
    phase: Literal["forward", "backward", "gradients", "parameters"]
    domain_bytes: float
    leaf_bytes: float
    above_bytes: float

    @property
    def whole_bytes(self) -> float:
        """Over all places."""
        return self.domain_bytes + self.leaf_bytes + self.above_bytes


class GpuBytes(Record):
    """What one GPU sends and receives by way of one place: the least, the mean and the most of all GPUs that train."""

    place: Literal["domain", "leaf", "above"]
    least_sent_bytes: float
    mean_sent_bytes: float
    most_sent_bytes: float
    least_received_bytes: float
    most_received_bytes: float


class WorkloadTraffic(Record):
    """The traffic of one workload."""

    name: str
    gpus: int
    all_reduce: Annotated[
        Literal["ring", "tree"], Field(description="how replicas add gradients across domains under ZeRO 0")
    ]
    talking_pairs: Annotated[int, Field(description="ordered pairs of GPUs of which one sends to the other")]
    silent_share: Annotated[float, Field(description="share of all ordered pairs that exchange nothing")]
    whole_bytes: float
    classes: tuple[ClassBytes, ...]
    per_gpu: tuple[GpuBytes, ...]


class TrafficReport(Record):
    """The traffic of every workload of a plan."""

    schema_: Annotated[Literal["coopt-traffic/1"], Field(alias="schema")] = "coopt-traffic/1"
    instance: InstanceId
    workloads: tuple[WorkloadTraffic, ...]
