"""What a plan is made of: designs, direct links, bills, and how workloads run. Data only.

Direct links join HB domains, and carry the traffic of an iteration.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from coopt.instance.hardware import IDLE, SPARE
from coopt.instance.question import ObjectiveKind
from coopt.instance.workload import LONGEST_S

ItemKind = Literal["hb", "nic", "switch", "optics", "panel", "gpu", "wan", "labour", "rack"]


class Record(BaseModel):
    """A frozen table of a plan."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class HbDomainChoice(Record):
    """HB domains bought: `count` domains of `size` GPUs, `active` of which train (the mean, rounded
    up).
    """

    name: str
    size: int
    count: int
    active: int


class NicChoice(Record):
    """NIC model, how many each GPU has or how many GPUs share one, and how many equal networks its
    ports lead to.
    """

    name: str
    per_gpu: int
    planes: int = 1
    shared_by: int = 1


class SwitchChoice(Record):
    """Switch model."""

    name: str


class Tier(Record):
    """One level of switches over all planes.

    `down_ports` and `uplinks_per_switch` are ports of one switch in use; `links` join this level to
    the one below. `optic` is the product at the upper ends of these links, and at the lower ones
    where `optic_below` is None. `switch` is the product where tiers have several; that of the
    fabric, which is its leaves', where it is None.
    """

    level: int
    switches: int
    down_ports: int
    uplinks_per_switch: int
    links: int
    optic: str
    optic_below: str | None = None
    switch: str | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """The products at the lower and at the upper ends of its links."""
        return self.optic_below or self.optic, self.optic

    @property
    def optics(self) -> tuple[str, ...]:
        """The products at the ends of its links, each once, that of the upper end first."""
        return tuple(dict.fromkeys(reversed(self.ends)))


class Fabric(Record):
    """The network between domains.

    `planes` are equal networks, for each rail and port of a NIC that has its own.
    `transceiver_count` counts modules: one at each end of a link, or one for several links that it
    breaks out into. `oversubscription` is the ratio of down-ports to uplinks of leaf and pod
    together (1 is non-blocking). `routing` is the discipline that times suppose above leaves, or
    the factor that multiplies what links carry. On three tiers a leaf has `pod_bundle` links to
    each aggregation switch of its pod.
    """

    kind: Literal["rail-only", "rail-optimized", "clos"]
    tiers: int
    planes: int
    oversubscription: float
    routing: Literal["spray", "pinned", "ecmp"] | float = 1.0
    nic: NicChoice
    switch: SwitchChoice
    switch_count: int
    transceiver_count: int
    pod_bundle: int = 1
    tier: tuple[Tier, ...]

    @property
    def switch_names(self) -> tuple[str, ...]:
        """The products of its switches, each once, from the leaves up."""
        return tuple(dict.fromkeys(tier.switch or self.switch.name for tier in self.tier)) or (
            self.switch.name,
        )

    @property
    def switch_text(self) -> str:
        """`64x400g`, or `64x400g below 128x400g` where tiers have several."""
        several = len(self.switch_names) > 1
        return (
            " below ".join(tier.switch or self.switch.name for tier in self.tier)
            if several
            else self.switch.name
        )


class Design(Record):
    """What is built; `spare_gpus` do not train, those of the `spare_domains` that stand by without
    links among them.
    """

    gpus: int
    spare_gpus: int
    spare_domains: int = 0
    hb_domain: HbDomainChoice
    fabric: Fabric
    racks: int | None

    @property
    def nics_per_gpu(self) -> int:
        """NICs that each GPU has."""
        return self.fabric.nic.per_gpu


class Item(Record):
    """A line of the bill of materials; usd = count * unit_usd, w = count * unit_w.

    It has units of the product `name`: `idle` GPUs do not train, `spare` units are not in use, and
    `year` is when they are bought where several phases buy. `item` says all this in words, for
    people.
    """

    item: str
    kind: ItemKind
    count: int
    unit_usd: float
    usd: float
    unit_w: float
    w: float
    name: str
    idle: bool = False
    spare: bool = False
    year: float | None = None

    @property
    def product(self) -> tuple[ItemKind, str]:
        """Kind and name of what is bought: idle GPUs are GPUs, spare units are of their product."""
        return "gpu" if self.idle else self.kind, self.name

    def of(self, count: int) -> Self:
        """The line of so many of its units."""
        return self.model_copy(
            update={"count": count, "usd": count * self.unit_usd, "w": count * self.unit_w}
        )

    def bought_in(self, year: float) -> Self:
        """The line as the bill of all phases has it."""
        return self.model_copy(update={"year": year, "item": f"{self.item}, {year:.10g}"})


def line(
    kind: ItemKind,
    name: str,
    count: int,
    unit_usd: float,
    unit_w: float,
    *,
    idle: bool = False,
    spare: bool = False,
) -> Item:
    """A line of a bill: so many units at the price (USD) and the power (W) of one."""
    return Item(
        item=f"{name}{IDLE * idle}{SPARE * spare}",
        kind=kind,
        count=count,
        unit_usd=unit_usd,
        usd=count * unit_usd,
        unit_w=unit_w,
        w=count * unit_w,
        name=name,
        idle=idle,
        spare=spare,
    )


class Cost(Record):
    """What it costs; the items sum to it."""

    capex_usd: float
    power_w: float
    tco_usd: float
    items: tuple[Item, ...]

    def of(self, kind: ObjectiveKind) -> float:
        """The value of an objective: USD for capex and tco, W for power."""
        assert kind in ("capex", "power", "tco"), "no sum of a bill"
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


@dataclass(frozen=True)
class Wording:
    """How reports tell what a mapping has beside the ordinary: in full and short, with the value in
    place of braces.
    """

    full: str
    short: str


class MappingChoice(Record):
    """How a workload is split; `outermost` is the dimension that lies farthest apart across
    domains.

    The host's memory keeps `offload_percent` of the activations that wait for their backward pass.
    """

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    interleave: int
    recompute: Literal["none", "selective", "full", "norm+act", "norm+ffn"]
    sequence_parallel: bool
    zero: int
    offload_percent: Annotated[
        int, Wording("{}% of activations in the host's memory", "{}% on host")
    ] = 0
    outermost: Literal["pp", "dp"] = "pp"


def beside_ordinary(mapping: Mapping[str, int | bool | str], *, short: bool = False) -> list[str]:
    """What the values of a mapping have beside the ordinary, in words."""
    return [
        (wording.short if short else wording.full).format(mapping[name])
        for name, field in MappingChoice.model_fields.items()
        for wording in field.metadata
        if isinstance(wording, Wording) and mapping[name] != field.default
    ]


class Uptime(Record):
    """What interrupts a workload, and what share of the time it trains (docs/days.md).

    `failure_s` is the mean time between failures, `running` the share of the time in which domains
    enough are whole, `port_out` that in which a port of some NIC is out and training goes on, or
    waits for it. `pace` is an iteration with all ports over what it takes on average; `goodput` is
    these times what checkpoints, lost work and restarts leave. `promised` is the share of the days
    that is counted on: the goodput, or less where the days are to be kept with a probability.
    """

    failure_s: float | None
    checkpoint_s: float
    interval_s: float | None
    restart_s: float
    running: float
    goodput: float
    promised: float
    port_out: float = 0.0
    pace: float = 1.0


class WorkloadPlan(Record):
    """How one workload runs.

    `placement` maps each dimension to [inside HB domain, across]; `knobs` names what departs from
    ordinary training, `collectives` the algorithm of each kind of traffic among several GPUs where
    the workload leaves the choice (`edp` are gradients of experts). `routes` is how far each kind
    of traffic is slowed by the paths that were found for its flows, at least 1, where flows are
    pinned to paths. `bound_s` is what one iteration may take so that training, with its
    interruptions, is done in time.
    """

    name: str
    gpus: int
    mapping: MappingChoice
    placement: dict[str, tuple[int, int]]
    iteration_time_s: float
    bound_s: float
    breakdown_s: dict[str, float]
    memory_gib: float
    memory_limit_gib: float
    mfu: float
    hfu: float
    tokens_per_s: float
    knobs: tuple[str, ...] = ()
    collectives: dict[str, str] = {}
    routes: dict[str, float] = {}
    uptime: Uptime | None = None

    @property
    def bounded(self) -> bool:
        """Whether it has a bound: where the fastest plan is asked for, any time will do."""
        return self.bound_s < LONGEST_S

    @property
    def slack(self) -> float:
        """How far it stays within its bound, as a share of the bound; minus infinity where no time
        meets it.
        """
        return 1.0 - self.iteration_time_s / self.bound_s if self.bound_s > 0.0 else -math.inf

    def elapsed_s(self, goodput: float) -> float:
        """What an iteration takes by the calendar (s) if so large a share of the time trains;
        infinite if none does.
        """
        return self.iteration_time_s / goodput if goodput > 0.0 else math.inf

    @property
    def promised_s(self) -> float:
        """What an iteration takes by the calendar (s), with the confidence asked for; as it is
        where nothing fails.
        """
        return self.elapsed_s(self.uptime.promised if self.uptime else 1.0)


Amount = Annotated[str, Field(pattern=r"^\d{1,40}(\.\d{1,40})?$")]
"""A number of 0 or more, as it is written."""

ByPhase = dict[str, tuple[Amount, ...]]
"""Amounts phase by phase, by the name of what they belong to; what is left out has none."""


class LinkBundle(Record):
    """Parallel links between two domains."""

    between: tuple[int, int]
    links: int


class LinkRoute(Record):
    """A share of what the first domain of a path sends to the last one in a phase; the others pass
    it on.
    """

    path: tuple[int, ...]
    share: float


class LinkPhase(Record):
    """Kinds of traffic that send alike, named after the first of them; they have all links to
    themselves.

    `pace_links` is how fast: bytes of all GPUs of a domain pass as if they had this many links.
    """

    name: Literal["pp", "dp", "tp", "cp", "ep", "edp"]
    pace_links: float
    routes: tuple[LinkRoute, ...]


class DirectLinks(Record):
    """What is built: domains in a grid of pipeline stages and replicas, numbered stage by stage,
    and their links.

    `replicas` are the domains of a stage: those of a TP group first, then contexts, then replicas.
    `links` is the sum of the bundles; fewer than `links_bound` cannot do for this mapping. A domain
    has `ports`.
    """

    gpus: int
    spare_gpus: int
    hb_domain: HbDomainChoice
    racks: int | None
    nic: NicChoice
    optic: str
    panel: str | None
    ports: int
    stages: int
    replicas: int
    links: int
    links_bound: int
    bundles: tuple[LinkBundle, ...]
    phases: tuple[LinkPhase, ...]

    @property
    def nics_per_gpu(self) -> int:
        """NICs that each GPU may have."""
        return self.nic.per_gpu


class LinkCut(Record):
    """A set of domains, and the price of a whole link that leaves it; so for the set moved on by
    `turn` places.
    """

    domains: tuple[int, ...]
    price: Amount


class LinkGrid(Record):
    """HB domains on direct links, as a grid of blocks of pipeline stages by the domains of a stage.

    Domain s * `replicas` + x has place x in block s and holds `inner` consecutive stages; where
    pipelines have several chunks on a GPU, they are `closed`: the last block sends to the first.
    Places count the domains of a TP group first, then contexts, then replicas. A TP group lies in
    `tensor` domains; a ring of contexts in `contexts` TP groups where replicas lie across domains
    as well, else 1, as one ring then has them all; an expert group in `experts` domains, `apart`
    from each other.
    """

    stages: int
    replicas: int
    inner: int
    closed: bool
    tensor: int = 1
    contexts: int = 1
    experts: int = 1
    apart: int = 1

    @property
    def domains(self) -> int:
        """How many there are."""
        return self.stages * self.replicas


class LinkLengths(LinkGrid):
    """Lengths of direct links on a grid, which prove how many links it needs.

    All domains of a stage may move on by `turn` places, and send as before: the least common
    multiple of those of `tensor`, `tensor` * `contexts` and, of more than one, `experts` * `apart`
    that are less than `replicas`. `lengths` has for every phase the length from place x < `turn` of
    block s to each domain, at (s * `turn` + x) * domains + domain; `ports` are prices of a port of
    these.
    """

    lengths: ByPhase
    cuts: tuple[LinkCut, ...] = ()
    ports: tuple[Amount, ...] = ()
