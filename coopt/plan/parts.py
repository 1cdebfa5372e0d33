"""Components of a plan: designs, direct links, bills, and results of workloads. Data only.

Direct links connect HB domains, and carry the traffic of an iteration.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from coopt.instance.base import DECIMAL
from coopt.instance.hardware import IDLE, SPARE
from coopt.instance.question import ObjectiveKind
from coopt.instance.workload import LONGEST_S

ItemKind = Literal[
    "hb", "nic", "switch", "optics", "fibre", "panel", "gpu", "wan", "labour", "rack"
]
Named = Annotated[str, Field(min_length=1)]


class Record(BaseModel):
    """A frozen table of a plan."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class HbDomainChoice(Record):
    """HB domains bought: `count` domains of `size` GPUs, of which `active` train (the mean, rounded
    up).
    """

    name: str
    size: int
    count: int
    active: int


class NicChoice(Record):
    """NIC model, NICs per GPU or GPUs per NIC, the number of equal networks that its ports connect
    to, and how many of them to each.
    """

    name: str
    per_gpu: int
    planes: int = 1
    shared_by: int = 1
    ports_in_plane: int = 1

    @property
    def text(self) -> str:
        """The NICs of a GPU, or the GPUs of a NIC, with the product."""
        ratio_text = f"for {self.shared_by} GPUs" if self.shared_by > 1 else "per GPU"
        return f"{self.per_gpu} x {self.name} {ratio_text}"


class SwitchChoice(Record):
    """Switch model."""

    name: str


class TierCables(Record):
    """Cables of a tier that are of one kind: how many, and how long the longest is (m). The product
    at their lower ends is that of the upper ones if `optic_below` is None.
    """

    optic: str
    optic_below: Named | None = None
    longest_m: int
    links: int

    @property
    def ends(self) -> tuple[str, str]:
        """The products at the lower and at the upper ends."""
        return self.optic_below or self.optic, self.optic


def ends_of_length(
    kinds: Iterable[TierCables], longest: tuple[str, str], length_m: int
) -> tuple[str, str]:
    """The products at both ends of links of a length; the `longest` where no kind is as long."""
    return next((cables.ends for cables in kinds if length_m <= cables.longest_m), longest)


class Tier(Record):
    """One level of switches over all planes.

    `down_ports` and `uplinks_per_switch` are ports of one switch in use; `links` connect this level
    to the one below. `optic` is the product at the upper ends of these links, and at the lower ones
    if `optic_below` is None. Where lengths choose several kinds of cables, `cables` lists them from
    the shortest on, and the optics are those of the longest. `switch` is the product if tiers
    differ; None means that of the fabric, which is that of its leaves.
    """

    level: int
    switches: int
    down_ports: int
    uplinks_per_switch: int
    links: int
    optic: str
    optic_below: Named | None = None
    switch: Named | None = None
    cables: tuple[TierCables, ...] = ()

    @model_serializer(mode="wrap")
    def _without_cables(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave cables of a single kind out."""
        table: dict[str, Any] = serialize(self)
        return table if self.cables else {key: table[key] for key in table if key != "cables"}

    @property
    def ends(self) -> tuple[str, str]:
        """The products at the lower and at the upper ends of the tier's links."""
        return self.optic_below or self.optic, self.optic

    def ends_at(self, length_m: int) -> tuple[str, str]:
        """The products at both ends of its links of a length."""
        return ends_of_length(self.cables, self.ends, length_m)

    @property
    def optics(self) -> tuple[str, ...]:
        """The distinct products at the ends of the tier's links, that of the upper end first."""
        shorter = (name for cables in self.cables for name in reversed(cables.ends))
        return tuple(dict.fromkeys((*reversed(self.ends), *shorter)))


class Fabric(Record):
    """The network between domains.

    `planes` are equal networks, one for each rail and NIC port with a network of its own.
    `transceiver_count` counts modules: one at each end of a link, or one for several links that it
    breaks out into. `oversubscription` is the ratio of down-ports to uplinks of leaf and pod
    together (1 is non-blocking). `routing` is the discipline assumed for times above leaves, or a
    factor on link loads. On three tiers a leaf has `pod_bundle` links to each aggregation switch of
    its pod. Where leaves take turns in the rails of some HB domains, `leaf_domains` says of how
    many.
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
    leaf_domains: int = 0
    tier: tuple[Tier, ...]

    @property
    def switch_names(self) -> tuple[str, ...]:
        """The distinct products of the switches, from the leaves up."""
        return tuple(dict.fromkeys(tier.switch or self.switch.name for tier in self.tier)) or (
            self.switch.name,
        )

    @property
    def title(self) -> str:
        """What it is called: where leaves take turns in the rails of some domains, as two switches
        atop each rack do, it is a Clos.
        """
        return "clos" if self.leaf_domains else self.kind

    @property
    def switch_text(self) -> str:
        """The switches in words: `64x400g`, or `64x400g below 128x400g` if tiers differ."""
        several = len(self.switch_names) > 1
        return (
            " below ".join(tier.switch or self.switch.name for tier in self.tier)
            if several
            else self.switch.name
        )


class Design(Record):
    """What is built; `spare_gpus` do not train, including those of `spare_domains`, which have no
    links.
    """

    gpus: int
    spare_gpus: int
    spare_domains: int = 0
    hb_domain: HbDomainChoice
    fabric: Fabric
    racks: int | None

    @property
    def nics_per_gpu(self) -> int:
        """Number of NICs per GPU."""
        return self.fabric.nic.per_gpu


class Item(Record):
    """A line of the bill of materials; usd = count * unit_usd, w = count * unit_w.

    It has units of the product `name`: `idle` GPUs do not train, `spare` units are not in use, and
    `year` is the year of purchase if several phases buy. `item` states all this in words.
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
        """Kind and name of what is bought: idle GPUs count as GPUs, spare units as their
        product.
        """
        return "gpu" if self.idle else self.kind, self.name

    def of(self, count: int) -> Self:
        """Return the line with another count."""
        return self.model_copy(
            update={"count": count, "usd": count * self.unit_usd, "w": count * self.unit_w}
        )

    def bought_in(self, year: float) -> Self:
        """Return the line with its year of purchase, as in the bill of all phases."""
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
    """Return a line of a bill from a count and the price (USD) and power (W) per unit."""
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
    """Total cost; the items sum to it."""

    capex_usd: float
    power_w: float
    tco_usd: float
    items: tuple[Item, ...]

    def of(self, kind: ObjectiveKind) -> float:
        """Return the value of an objective: USD for capex and tco, W for power."""
        assert kind in ("capex", "power", "tco"), "no sum of a bill"
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


@dataclass(frozen=True)
class Wording:
    """Wording of an unusual mapping value in reports, in full and short, with the value in place of
    braces.
    """

    full: str
    short: str


class MappingChoice(Record):
    """Parallel mapping of a workload; `outermost` is the dimension farthest apart across
    domains.

    The host's memory holds `offload_percent` of the activations that wait for their backward pass.
    `pipeline_layout` is that of the workload, in Megatron-LM's letters; empty without one.
    """

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    interleave: int
    recompute: Literal["none", "selective", "full", "norm+act", "norm+ffn", "act"]
    sequence_parallel: bool
    zero: int
    offload_percent: Annotated[
        int, Wording("{}% of activations in the host's memory", "{}% on host")
    ] = 0
    outermost: Literal["pp", "dp"] = "pp"
    pipeline_layout: Annotated[str, Wording("layout {}", "layout")] = ""


def beside_ordinary(mapping: Mapping[str, int | bool | str], *, short: bool = False) -> list[str]:
    """Describe unusual values of a mapping in words."""
    return [
        (wording.short if short else wording.full).format(mapping[name])
        for name, field in MappingChoice.model_fields.items()
        for wording in field.metadata
        if isinstance(wording, Wording) and mapping.get(name, field.default) != field.default
    ]


class Uptime(Record):
    """Interruptions of a workload, and the share of time in which it trains (docs/days.md).

    `failure_s` is the mean time between failures, `running` the share of time with enough working
    domains, and `port_out` the share in which some NIC port has failed while training continues or
    waits. `pace` is the iteration time with all ports relative to the mean one; `goodput` is the
    product of these with the share left by checkpoints, lost work and restarts. `promised` is the
    share of the days that is relied on: the goodput, or less if the days must be met with a
    probability.
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


class NearestRun(Record):
    """A published run (an id of benchmarks/published.csv), and how it differs from a plan's."""

    id: str
    differs: tuple[str, ...] = ()


class WorkloadPlan(Record):
    """Results of one workload.

    `placement` maps each dimension to [inside HB domain, across]. `knobs` names deviations from
    ordinary training, and `collectives` the algorithm of each kind of traffic between several GPUs,
    if the workload leaves the choice (`edp` are gradients of experts). `routes` is the slowdown (at
    least 1) of each kind of traffic on the paths found for its flows, if flows are pinned to paths.
    `bound_s` is the iteration time within which training, including interruptions, finishes in
    time. `error` is the mean size of log(measured / predicted time) so far from published runs, of
    which `nearest` has the nearest, and `outside` what none of them has.
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
    mfu_causal: Annotated[
        float, Field(description="MFU with half of the attention of tokens that look back")
    ]
    tokens_per_s: float
    knobs: tuple[str, ...] = ()
    collectives: dict[str, str] = {}
    routes: dict[str, float] = {}
    uptime: Uptime | None = None
    error: float | None = None
    nearest: tuple[NearestRun, ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether it has a bound; any time is accepted if the fastest plan is required."""
        return self.bound_s < LONGEST_S

    @property
    def slack(self) -> float:
        """Distance of the iteration time to its bound, as a share of the bound; minus infinity if
        no time meets it.
        """
        return 1.0 - self.iteration_time_s / self.bound_s if self.bound_s > 0.0 else -math.inf

    def elapsed_s(self, goodput: float) -> float:
        """Calendar time per iteration (s) with that goodput; infinite if it is 0."""
        return self.iteration_time_s / goodput if goodput > 0.0 else math.inf

    @property
    def promised_s(self) -> float:
        """Calendar time per iteration (s) with the required confidence; the iteration time without
        failures.
        """
        return self.elapsed_s(self.uptime.promised if self.uptime else 1.0)


Amount = Annotated[str, Field(pattern=DECIMAL)]
"""A number of 0 or more, as it is written."""

ByPhase = dict[str, tuple[Amount, ...]]
"""Amounts phase by phase, by the name of what they belong to; what is left out has none."""


class LinkBundle(Record):
    """Parallel links between two domains."""

    between: tuple[int, int]
    links: int


class LinkRoute(Record):
    """A share of the traffic from the first to the last domain of a path in a phase; the others
    forward it.
    """

    path: tuple[int, ...]
    share: float


class LinkPhase(Record):
    """Kinds of traffic with equal senders and receivers, named after the first; they use all links
    alone.

    `pace_links` is their rate: the traffic of all GPUs of a domain passes as if it had this many
    links.
    """

    name: Literal["pp", "dp", "tp", "cp", "ep", "edp"]
    pace_links: float
    routes: tuple[LinkRoute, ...]


class DirectLinks(Record):
    """Domains in a grid of pipeline stages and replicas, numbered stage by stage, and their direct
    links.

    `replicas` are the domains of a stage: those of a TP group first, then contexts, then replicas.
    `links` is the total of the bundles; fewer than `links_bound` are infeasible for this mapping. A
    domain has `ports`.
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
        """Number of NICs available per GPU."""
        return self.nic.per_gpu


class LinkCut(Record):
    """A set of domains with a price per whole link that leaves it; the same holds for the set
    shifted by `turn` places.
    """

    domains: tuple[int, ...]
    price: Amount


class LinkGrid(Record):
    """HB domains on direct links, as a grid of blocks of pipeline stages by the domains of a
    stage.

    Domain s * `replicas` + x has place x in block s and holds `inner` consecutive stages; pipelines
    with several chunks per GPU are `closed`: the last block sends to the first. Places count the
    domains of a TP group first, then contexts, then replicas. A TP group lies in `tensor` domains;
    a ring of contexts in `contexts` TP groups if replicas lie across domains too, else 1, as one
    ring then has them all; an expert group in `experts` domains, `apart` from each other.
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
        """Number of domains."""
        return self.stages * self.replicas


class LinkLengths(LinkGrid):
    """Lengths of direct links on a grid, which prove a lower bound on the number of links.

    Traffic is invariant under a shift of all domains of a stage by `turn` places: the least common
    multiple of those of `tensor`, `tensor` * `contexts` and, if more than one, `experts` * `apart`
    that are less than `replicas`. `lengths` has for every phase the length from place x < `turn` of
    block s to each domain, at (s * `turn` + x) * domains + domain; `ports` are prices of a port of
    these.
    """

    lengths: ByPhase
    cuts: tuple[LinkCut, ...] = ()
    ports: tuple[Amount, ...] = ()
