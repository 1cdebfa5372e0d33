"""Answers of `coopt traffic`, `route`, `faults`, `collective` and `simulate`: traffic on the
network of a plan. Data only.

Places are the highest level that a flow passes: `domain` if it stays in an HB domain, `leaf` if it
stays below its leaf, `above` otherwise. All bytes are per iteration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.parts import Record, Uptime, WorkloadPlan
from coopt.plan.schema import InstanceId

Cause = Literal["pipeline", "gradients", "embedding", "optimizer", "stragglers"]
TrafficKind = Literal["tp", "cp", "ep", "pp", "dp", "edp", "embedding"]


class ClassBytes(Record):
    """Bytes of one class of traffic in one phase, over all GPUs."""

    kind: Literal["tp", "cp", "ep", "pp", "dp", "embedding"]
    phase: Literal["forward", "backward", "gradients", "parameters"]
    domain_bytes: float
    leaf_bytes: float
    above_bytes: float

    @property
    def whole_bytes(self) -> float:
        """Total over all places."""
        return self.domain_bytes + self.leaf_bytes + self.above_bytes


class GpuBytes(Record):
    """Bytes that a GPU sends and receives through one place: minimum, mean and maximum over all
    training GPUs.
    """

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
        Literal["ring", "tree", "halving"],
        Field(description="how replicas add gradients across domains under ZeRO 0"),
    ]
    collectives: Annotated[
        dict[str, str],
        Field(
            default_factory=dict, description="what each kind of traffic runs by, as the plan says"
        ),
    ]
    talking_pairs: Annotated[
        int, Field(description="ordered pairs of GPUs of which one sends to the other")
    ]
    silent_share: Annotated[
        float, Field(description="share of all ordered pairs that exchange nothing")
    ]
    whole_bytes: float
    classes: tuple[ClassBytes, ...]
    per_gpu: tuple[GpuBytes, ...]


class TrafficReport(Record):
    """The traffic of every workload of a plan."""

    schema_: Annotated[Literal["coopt-traffic/1"], Field(alias="schema")] = "coopt-traffic/1"
    instance: InstanceId
    workloads: tuple[WorkloadTraffic, ...]


class CollectiveRoutes(Record):
    """Routes of one collective (or one of its rounds) of one workload over all planes; its flows
    run at the same time.

    `alpha` is the number of flows on a link of the worst bundle and `bound` a lower bound for every
    routing; `per_nic` flows share a NIC. So traffic takes `stretch` = alpha / per_nic times as long
    as at the rate of a NIC, divided by the efficiency if flows are sprayed. `routing` is 1, or the
    factor over an even spread if that exceeds what the plan is charged (`charged`).
    """

    workload: str
    kind: str
    collective: str
    way: Annotated[
        str, Field(description="how it goes between domains, in the words of a plan")
    ] = "rings"
    round: Annotated[
        int, Field(description="round of halving and doubling, from 1; 0 for what has none")
    ] = 0
    share: Annotated[
        float, Field(description="share of its bytes between domains that this round carries")
    ] = 1.0
    flows: Annotated[int, Field(description="flows that leave their leaf, over all planes")]
    per_nic: int
    alpha: float
    bound: float
    optimal: Annotated[bool, Field(description="whether alpha is the bound")]
    efficiency: Annotated[
        float,
        Field(description="mean over groups of rate over the rate of a NIC, by max-min fairness"),
    ]
    stretch: float
    charged: Annotated[
        float, Field(description="slowdown that the plan is charged under network.routing")
    ]
    routing: float
    seconds: Annotated[float, Field(description="time the algorithm took")]


class LinkLoad(Record):
    """Flows of one collective on the parallel links between two switches, up and down, equal on
    `planes` planes.
    """

    workload: str
    collective: str
    planes: int
    plane: int
    level: Annotated[
        int, Field(description="2: leaf to spine or aggregation; 3: aggregation to core")
    ]
    lower: int
    upper: int
    links: int
    up: int | float
    down: int | float
    round: Annotated[
        int, Field(description="round of halving and doubling, from 1; 0 for what has none")
    ] = 0


class RoutedWorkload(Record):
    """Iteration time with the routes found, and that of the plan."""

    name: str
    iteration_time_s: float
    routed_time_s: float
    bound_s: float
    within_bound: bool


class Routing(Record):
    """Routes of all traffic between domains; `routing` is the maximum factor, for
    `network.routing`.
    """

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


class FaultedWorkload(Record):
    """One workload during a loss; no time if it stops.

    `bound_s` is the bound on an iteration meanwhile. `job` describes how the workload runs then, if
    different from the plan.
    """

    name: str
    iteration_time_s: float | None
    bound_s: float
    within_bound: bool
    job: WorkloadPlan | None = None


class Fault(Record):
    """The loss of any one of `count` parts of a kind, all with the same effect.

    `forwarded` is set if traffic of the lost NICs passes through other GPUs of the domain, and
    `restarts` if the job aborts and restarts from its last checkpoint, to continue at `slowdown`.
    `slower` is the factor of `[robust]` on bounds meanwhile; None if the plan need not survive this
    loss.
    """

    part: str
    count: int
    effect: Literal["none", "slower", "stops"]
    slowdown: Annotated[
        float | None, Field(description="of the workload that suffers most; none where one stops")
    ]
    forwarded: bool
    restarts: bool = False
    slower: float | None = None
    workloads: tuple[FaultedWorkload, ...]
    remedy: str


class Spares(Record):
    """Spares of the plan, and those required to replace any one GPU or domain."""

    idle_gpus_per_domain: int
    survives_gpu: Annotated[
        bool, Field(description="an idle GPU of each domain can take the place of any one GPU")
    ]
    same_rank_gpus: Annotated[
        int, Field(description="spares, one of each rank, that cover any one GPU by re-patching")
    ]
    domains_standing_by: Annotated[
        int, Field(description="HB domains that take the place of any that is lost")
    ] = 0
    spare_domain_usd: Annotated[
        float, Field(description="one more domain with its GPUs, servers and NICs")
    ]


class Unaligned(Record):
    """A workload whose communicators leave their rail, and the traffic concerned."""

    workload: str
    traffic: tuple[str, ...]


class Interrupted(Record):
    """Interruptions of a workload, and the share of its replicas that train while 0.1% of the GPUs
    have failed.

    `replicas_alone` is that share without spare domains, `replicas_with_spares` with those of the
    plan.
    """

    workload: str
    uptime: Uptime
    replicas_alone: float
    replicas_with_spares: float


class Faults(Record):
    """Losses of every kind of part from the GPUs up, spares, workloads not aligned to rails, and
    interruptions.

    For a core these are its links and switches, without spares: no iteration uses them.
    """

    schema_: Annotated[Literal["coopt-faults/1"], Field(alias="schema")] = "coopt-faults/1"
    instance: InstanceId
    faults: tuple[Fault, ...]
    spares: Spares | None
    unaligned: tuple[Unaligned, ...]
    interrupted: tuple[Interrupted, ...] = ()


class Trained(Record):
    """One workload: its iteration (s) on the plan's network and on the direct links, and its
    traffic on these.
    """

    name: str
    bound_s: float
    planned_time_s: float
    iteration_time_s: float
    between_domains_s: float


class SpentTime(Record):
    """Seconds of an iteration by cause, in the closed form and in the simulation."""

    cause: Cause
    closed_form_s: float
    simulated_s: float


class FlowRate(Record):
    """Traffic of one kind between domains, with all flows of the kind active at once.

    It takes `slowdown` times as long as at the rate of a NIC; on direct links, as over one link per
    GPU.
    """

    kind: TrafficKind
    flows: Annotated[
        int,
        Field(description="flows that were simulated; one may stand for several that are alike"),
    ]
    slowdown: float


class SimulatedWorkload(Record):
    """A workload: seconds per iteration in the plan, in the simulation, and at most."""

    name: str
    part: str
    closed_form_s: float
    simulated_s: float
    range_s: Annotated[
        tuple[float, float],
        Field(
            description="least and most over the seeds by which it is drawn which of several"
            " messages leaves first; alike where nothing is drawn"
        ),
    ]
    bound_s: float
    met: Annotated[
        bool, Field(description="whether the longest of the simulated iterations keeps the bound")
    ]
    times: tuple[SpentTime, ...]
    traffic: tuple[FlowRate, ...]
    simulated: Annotated[
        str, Field(description="what was simulated, and what stands for others like it")
    ]

    @property
    def difference(self) -> float:
        """Relative excess of the simulated over the closed-form iteration time."""
        return self.simulated_s / self.closed_form_s - 1


class Simulation(Record):
    """Simulated iterations of a plan, part by part."""

    schema_: Annotated[Literal["coopt-simulation/1"], Field(alias="schema")] = "coopt-simulation/1"
    instance: InstanceId
    workloads: tuple[SimulatedWorkload, ...]

    def of(self, part: str) -> tuple[SimulatedWorkload, ...]:
        """Return the workloads of a part."""
        return tuple(workload for workload in self.workloads if workload.part == part)

    @property
    def met(self) -> bool:
        """Whether every workload meets its bound."""
        return all(workload.met for workload in self.workloads)
