"""One iteration of every workload of a plan, simulated flow by flow, beside the closed form. Data only."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.schema import InstanceId, Record

Cause = Literal["pipeline", "gradients", "embedding", "optimizer", "stragglers"]
TrafficKind = Literal["tp", "cp", "ep", "pp", "dp", "edp", "embedding"]


class SpentTime(Record):
    """Seconds that an iteration spends on something, by the closed form and in the simulation."""

    cause: Cause
    closed_form_s: float
    simulated_s: float


class FlowRate(Record):
    """Traffic of a kind between domains, with all of the kind under way at once.

    It takes `slowdown` times as long as at the rate of a NIC; on direct links as many times as over one link a GPU.
    """

    kind: TrafficKind
    flows: Annotated[int, Field(description="flows that were simulated; one may stand for several that are alike")]
    slowdown: float


class SimulatedWorkload(Record):
    """A workload: seconds of an iteration by the plan, in the simulation, and at the most."""

    name: str
    part: str
    closed_form_s: float
    simulated_s: float
    bound_s: float
    met: Annotated[bool, Field(description="whether the simulated iteration keeps the bound")]
    times: tuple[SpentTime, ...]
    traffic: tuple[FlowRate, ...]
    simulated: Annotated[str, Field(description="what was simulated, and what stands for others like it")]

    @property
    def difference(self) -> float:
        """How much longer the simulated iteration is, as a share of the closed form."""
        return self.simulated_s / self.closed_form_s - 1


class Simulation(Record):
    """Simulated iterations of a plan, part by part."""

    schema_: Annotated[Literal["coopt-simulation/1"], Field(alias="schema")] = "coopt-simulation/1"
    instance: InstanceId
    workloads: tuple[SimulatedWorkload, ...]

    def of(self, part: str) -> tuple[SimulatedWorkload, ...]:
        """The workloads of a part."""
        return tuple(workload for workload in self.workloads if workload.part == part)

    @property
    def met(self) -> bool:
        """Whether every workload keeps its bound."""
        return all(workload.met for workload in self.workloads)
