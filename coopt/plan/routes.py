"""The routes of a plan's traffic: what `coopt route` answers. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.schema import InstanceId, Record


class CollectiveRoutes(Record):
    """The routes of one collective of one workload, over all planes; its flows run at the same time.

    `alpha` counts flows on a link of the worst bundle and `bound` what no routing undercuts; `per_nic` flows share a
    NIC. So traffic takes `stretch` = alpha / per_nic times as long as at the rate of a NIC, and `routing` times as long
    as the model charges (`charged`), at least 1.
    """

    workload: str
    kind: str
    collective: str
    flows: Annotated[int, Field(description="flows that leave their leaf, over all planes")]
    per_nic: int
    alpha: float
    bound: float
    optimal: Annotated[bool, Field(description="whether alpha is the bound")]
    efficiency: Annotated[
        float, Field(description="mean over groups of rate over the rate of a NIC, by max-min fairness")
    ]
    stretch: float
    charged: Annotated[float, Field(description="slowdown the model charges, without routing")]
    routing: float
    seconds: Annotated[float, Field(description="time the algorithm took")]


class LinkLoad(Record):
    """Flows of one collective on the parallel links between two switches, up and down; shared by `planes`."""

    workload: str
    collective: str
    planes: int
    plane: int
    level: Annotated[int, Field(description="2: leaf to spine or aggregation; 3: aggregation to core")]
    lower: int
    upper: int
    links: int
    up: int
    down: int


class RoutedWorkload(Record):
    """Iteration time with the routes found beside that of the plan."""

    name: str
    iteration_time_s: float
    routed_time_s: float
    bound_s: float
    within_bound: bool


class Routing(Record):
    """Routes of everything a plan sends between domains; `routing` is the largest factor, for `network.routing`."""

    schema_: Annotated[Literal["coopt-routing/1"], Field(alias="schema")] = "coopt-routing/1"
    instance: InstanceId
    algorithm: str
    seed: int
    failed_cores: int
    routing: float
    collectives: tuple[CollectiveRoutes, ...]
    workloads: tuple[RoutedWorkload, ...]
    links: tuple[LinkLoad, ...]
    seconds: float
