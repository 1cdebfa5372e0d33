"""What flows on the network of a plan, as `coopt traffic`, `route`, `faults`, `collective` and
`simulate` answer.

Data only.

Places are the highest one that a flow passes: `domain` where it stays in an HB domain, `leaf` where
it goes no further than its leaf, `above` everything else. All bytes are those of one iteration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.plan.parts import Uptime
from coopt.plan.schema import InstanceId, Record, WorkloadPlan

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
        """Over all places."""
        return self.domain_bytes + self.leaf_bytes + self.above_bytes


class GpuBytes(Record):
    """What one GPU sends and receives by way of one place: the least, the mean and the most of all
    GPUs that train.
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
    """The routes of one collective of one workload, or of a round of it, over all planes; its flows
    run together.

    `alpha` counts flows on a link of the worst bundle and `bound` what no routing undercuts;
    `per_nic` flows share a NIC. So traffic takes `stretch` = alpha / per_nic times as long as at
    the rate of a NIC, over their efficiency where flows are sprayed. `routing` is 1, or the factor
    over the load of an even spread where that is more than the plan is charged (`charged`).
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
    """Flows of one collective on the parallel links between two switches, up and down; shared by
    `planes`.
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
    """Iteration time with the routes found beside that of the plan."""

    name: str
    iteration_time_s: float
    routed_time_s: float
    bound_s: float
    within_bound: bool


class Routing(Record):
    """Routes of everything a plan sends between domains; `routing` is the largest factor, for
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
    """One workload while a part is out; no time where it stops.

    `bound_s` is what an iteration may take meanwhile. `job` is how it runs then, where it is not as
    the plan has it.
    """

    name: str
    iteration_time_s: float | None
    bound_s: float
    within_bound: bool
    job: WorkloadPlan | None = None


class Fault(Record):
    """The loss of any one of `count` parts of a kind, all with the same effect.

    `forwarded` is set where traffic of the lost NICs passes through other GPUs of the domain,
    `restarts` where the job aborts and starts again from its last checkpoint, to run as long as
    `slowdown` says from then on. `slower` is by how much `[robust]` makes bounds longer meanwhile;
    None where it does not ask a plan to stand this loss.
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
    """What the plan has, and what it would take to replace any one GPU or domain."""

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
    """A workload whose communicators leave their rail, and the traffic that does."""

    workload: str
    traffic: tuple[str, ...]


class Interrupted(Record):
    """A workload's interruptions, and the share of its replicas that train while 0.1% of the GPUs
    are gone.

    `replicas_alone` is that share without the domains that stand by, `replicas_with_spares` with
    those of the plan.
    """

    workload: str
    uptime: Uptime
    replicas_alone: float
    replicas_with_spares: float


class Faults(Record):
    """Every kind of part from the GPUs up, spares, workloads that are not aligned to rails, and
    their interruptions.

    Of a core they are its links and switches, without spares: no iteration passes through them.
    """

    schema_: Annotated[Literal["coopt-faults/1"], Field(alias="schema")] = "coopt-faults/1"
    instance: InstanceId
    faults: tuple[Fault, ...]
    spares: Spares | None
    unaligned: tuple[Unaligned, ...]
    interrupted: tuple[Interrupted, ...] = ()


class Trained(Record):
    """One workload: its iteration (s) on the plan's network and on the direct links, and what these
    take of it.
    """

    name: str
    bound_s: float
    planned_time_s: float
    iteration_time_s: float
    between_domains_s: float


class SpentTime(Record):
    """Seconds that an iteration spends on something, by the closed form and in the simulation."""

    cause: Cause
    closed_form_s: float
    simulated_s: float


class FlowRate(Record):
    """Traffic of a kind between domains, with all of the kind under way at once.

    It takes `slowdown` times as long as at the rate of a NIC; on direct links as many times as over
    one link a GPU.
    """

    kind: TrafficKind
    flows: Annotated[
        int,
        Field(description="flows that were simulated; one may stand for several that are alike"),
    ]
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
    simulated: Annotated[
        str, Field(description="what was simulated, and what stands for others like it")
    ]

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
