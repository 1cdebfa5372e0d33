"""A plan as parts and couplings: networks that are built somewhere at some time, and what ties
them. Data only.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from coopt.plan.parts import (
    Cost,
    Design,
    DirectLinks,
    Item,
    ItemKind,
    Record,
    SwitchChoice,
    WorkloadPlan,
)

NETWORK = "network"
"""What the part is called that all workloads have in turn."""


class CoreLinks(Record):
    """Links from an island into the core: `per_leaf` from each of its leaf switches, 0 where they
    start at NICs.

    `optic_below` is the product at their lower ends; that of the core where it is None.
    """

    workload: str
    links: int
    per_leaf: int
    optic_below: str | None = None


class CorePlan(Record):
    """Switches that join islands: how many, their ports in use, and what they draw, as far as
    `include` counts it (W).

    Each link has an end in an `optic` of the core, which holds ends of one island alone.
    """

    switch: SwitchChoice
    switches: int
    ports: int
    optic: str
    power_w: float
    islands: tuple[CoreLinks, ...]

    def below(self, links: CoreLinks) -> str:
        """The product at the lower ends of links into it."""
        return self.optic if links.optic_below is None else links.optic_below

    @property
    def optics(self) -> tuple[str, ...]:
        """The products at all ends of its links, its own first."""
        return tuple(dict.fromkeys((self.optic, *map(self.below, self.islands))))


class Stored(Record):
    """Units of an item that wait for a later phase."""

    item: str
    kind: ItemKind
    count: int


class MyopicStep(Record):
    """What a phase builds that is planned without the later ones, and what it spends."""

    year: float
    design: Design
    capex_usd: float
    energy_usd: float
    work_usd: float = 0.0


class Myopic(Record):
    """Planning each phase on its own: what is in place stays, and nothing is known of later bounds
    and prices.

    `value` is the objective of all phases and `saving` what the plan takes less; both are None at a
    dead end, which `dead_end` describes.
    """

    steps: tuple[MyopicStep, ...]
    value: float | None
    saving: float | None
    dead_end: str | None


class Survived(Record):
    """The loss of any one part of a kind: NICs a domain has fewer, and the factor by which bounds
    are longer then.

    `slowdown` is how much longer traffic of the domain takes. A lost domain has no traffic;
    `workloads` then says how each workload runs on others, by its fastest mapping there.
    """

    part: Literal["nic", "leaf", "plane", "domain"]
    nics_lost: int
    slower: float
    slowdown: float | None = None
    workloads: tuple[WorkloadPlan, ...] = ()


class Turn(Record):
    """One way prices may turn out: factors by kind, the objective of the plan then, and that of the
    best plan.
    """

    factors: dict[str, float]
    value: float
    best: float

    @property
    def regret(self) -> float:
        """How much more than the best plan costs then."""
        return self.value - self.best


def largest_regret(turns: Iterable[Turn]) -> float:
    """The largest excess over the best plan, at least 0."""
    return max(0.0, *(turn.regret for turn in turns))


class WanPlan(Record):
    """Channels lit between two sites, each of `gbit_s` both ways; `usd` and `w` are of all of
    them.
    """

    between: tuple[str, str]
    channels: int
    gbit_s: float
    latency_s: float
    usd: float
    w: float


class Exchange(Record):
    """Gradients of a workload added up over all sites, once an iteration.

    `sent_bytes` leave each site; `exchange_s` is from the first byte to the last, hidden or not.
    """

    workload: str
    sent_bytes: float
    exchange_s: float


class Part(Record):
    """A network as it stands at a site in a phase, and what trains on it; one of `design` and
    `links` says how.

    `phase` is the year in which the phase begins. `cost` is the bill of this network alone, of
    everything that stands, at the prices the plan is billed at but for volume discounts and factors
    of phases, and with the electricity of its site over `objective.years`; what parts buy together
    is in the couplings. `power_w` is what the network draws (W).
    """

    name: str
    site: str | None = None
    phase: float | None = None
    design: Design | None = None
    links: DirectLinks | None = None
    workloads: tuple[WorkloadPlan, ...] = ()
    cost: Cost
    power_w: float

    @property
    def slot(self) -> str:
        """What the network is called in every phase; empty where there is only one that grows."""
        return self.name if self.phase is None else self.name.rpartition(", ")[0]


class SitePower(Record):
    """What a site feeds in a phase: IT power of its parts, core and channels, times PUE (W)."""

    site: str
    phase: float | None = None
    facility_w: float
    facility_limit_w: float

    @property
    def is_fed(self) -> bool:
        """Whether the site can feed it, exactly."""
        return self.facility_w <= self.facility_limit_w


class Ring(Record):
    """Sites in the order of the ring that adds up their gradients, the shares each has, and the
    channels lit.
    """

    shares: int
    sites: tuple[str, ...]
    site_shares: tuple[int, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]


class PhaseSpending(Record):
    """What all parts buy in a phase at its prices, keep for later, draw, and pay for electricity
    until the next phase.

    `power_w` is that of everything that stands, cores included. `work_usd` is labour to install
    what is bought and support of what stands until the next phase.
    """

    year: float
    years: float
    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float
    work_usd: float = 0.0


class SharedCore(Record):
    """A core that the parts of a site share in a phase; `core.islands` go by the names of
    workloads.
    """

    site: str | None = None
    phase: float | None = None
    core: CorePlan

    @property
    def name(self) -> str:
        """`core at south, 2029`: how bills call it, and what may happen to it."""
        place = "core" if self.site is None else f"core at {self.site}"
        return place if self.phase is None else f"{place}, {self.phase:g}"


class CoreJoint(NamedTuple):
    """A core, and the links of a part into it."""

    core: CorePlan
    links: CoreLinks

    @property
    def below(self) -> str:
        """The product at the lower ends of the links."""
        return self.core.below(self.links)


class Outlooks(Record):
    """How prices may turn out.

    With the aim "worst-case" bill and objective are at the worst prices, and `list_value` is the
    objective at those of the instance. With "regret" the objective is the largest excess over the
    best plan, `turns` hold all ways prices may turn out, and the bill is at the prices of the
    instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    list_value: float
    turns: tuple[Turn, ...] = ()

    @property
    def at_worst_prices(self) -> bool:
        """Whether bill and objective are at the worst prices."""
        return self.aim == "worst-case"


class PartLosses(Record):
    """What each loss does to a part, named as in `Plan.parts`."""

    part: str
    survived: tuple[Survived, ...]


class Couplings(Record):
    """What ties the parts of a plan; each is empty where the question has no such coupling.

    `myopic` stands beside `growth`: what planning each phase on its own would have built.
    """

    sites: tuple[SitePower, ...] = ()
    ring: Ring | None = None
    growth: tuple[PhaseSpending, ...] = ()
    cores: tuple[SharedCore, ...] = ()
    outlooks: Outlooks | None = None
    losses: tuple[PartLosses, ...] = ()
    myopic: Myopic | None = None

    @property
    def shared_cores(self) -> dict[str, SharedCore]:
        """The cores by name, as bills call them."""
        return {core.name: core for core in self.cores}

    @property
    def list_value(self) -> float | None:
        """The objective at the prices of the instance, where that of the plan is at the worst ones;
        else None.
        """
        return (
            self.outlooks.list_value
            if self.outlooks is not None and self.outlooks.at_worst_prices
            else None
        )

    @property
    def least_costs(self) -> tuple[float, ...]:
        """What the best plan costs at each way prices may turn out, where a regret is measured from
        it; else ().
        """
        return tuple(turn.best for turn in self.turns)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All ways prices may turn out, where a regret is minimised."""
        return () if self.outlooks is None else self.outlooks.turns

    def __bool__(self) -> bool:
        """Whether anything ties the parts."""
        return self != Couplings()

    @property
    def years(self) -> tuple[float | None, ...]:
        """When each phase begins; None alone where all is bought at once."""
        return tuple(spending.year for spending in self.growth) or (None,)

    @property
    def purchases_usd(self) -> tuple[float, ...]:
        """What is paid for what each phase buys (USD); empty where all is bought at once."""
        return tuple(spending.capex_usd for spending in self.growth)

    def bought(self, cost: Cost) -> dict[float | None, tuple[Item, ...]]:
        """What is bought when a phase begins, of all that a bill has; with None all of it where
        that is at once.
        """
        return {spending.year: spending.bought for spending in self.growth} or {None: cost.items}

    def drawn_w(self, cost: Cost) -> dict[float | None, float]:
        """What all that stands draws from the year on in which a phase begins, by that year, as
        `bought` has it (W).
        """
        return {spending.year: spending.power_w for spending in self.growth} or {None: cost.power_w}

    def standing_counts(self, product: tuple[str, str]) -> list[int]:
        """Units of a product that stand in each phase; empty where all is bought at once."""
        lines = {
            (item.kind, item.item): item.product
            for spending in self.growth
            for item in spending.bought
        }
        # stored units name their line in words alone: the line that bought them says which product
        # they are
        counts, owned = [], 0
        for spending in self.growth:
            owned += sum(
                item.count for item in spending.bought if item.product == product and not item.spare
            )
            reserves = (
                (lines.get((unit.kind, unit.item), (unit.kind, unit.item)), unit.count)
                for unit in spending.stored
            )
            counts.append(
                owned
                - sum(count for stored_product, count in reserves if stored_product == product)
            )
        return counts

    def joint(self, part: Part) -> CoreJoint | None:
        """How a part joins a core, where it joins one."""
        for shared_core in self.cores:
            for links in shared_core.core.islands:
                if (links.workload, shared_core.site, shared_core.phase) == (
                    part.slot,
                    part.site,
                    part.phase,
                ):
                    return CoreJoint(shared_core.core, links)
        return None

    @property
    def waits_s(self) -> dict[str, float]:
        """How long workloads wait for gradients of other sites in an iteration, by name; those
        alone that do (s).
        """
        return (
            {}
            if self.ring is None
            else {exchange.workload: exchange.exchange_s for exchange in self.ring.exchanges}
        )

    def lit_channels(self, between: frozenset[str]) -> float:
        """Channels lit between two sites."""
        lit = () if self.ring is None else self.ring.wan
        return float(sum(link.channels for link in lit if frozenset(link.between) == between))

    def products(self, kind: str) -> set[str]:
        """Names of the products of a kind of which what parts share consists."""
        cores = [shared_core.core for shared_core in self.cores]
        names = {
            "switch": [core.switch.name for core in cores],
            "optics": [name for core in cores for name in core.optics],
        }
        return set(names.get(kind, ()))

    def shared_counts(self, phase: float | None) -> dict[str, int]:
        """What parts share in a phase: switches, and transceivers at both ends of links to them;
        none without any.
        """
        cores = [shared_core.core for shared_core in self.cores if shared_core.phase == phase]
        ends = 2 * sum(core.ports for core in cores)
        return (
            {"switches": sum(core.switches for core in cores), "transceivers": ends}
            if cores
            else {}
        )


def phase_name(year: float) -> str:
    """What the network of a phase is called: `network, 2026`."""
    return f"{NETWORK}, {repr(float(year)).removesuffix('.0')}"


def one_network(
    cost: Cost,
    workloads: tuple[WorkloadPlan, ...],
    *,
    design: Design | None = None,
    links: DirectLinks | None = None,
) -> Part:
    """The only part of a plan, whose bill is that of everything."""
    return Part(
        name=NETWORK,
        design=design,
        links=links,
        workloads=workloads,
        cost=cost,
        power_w=cost.power_w,
    )


def at_site(site: str, design: Design, workloads: tuple[WorkloadPlan, ...], cost: Cost) -> Part:
    """The network of a site, called as the site."""
    return Part(
        name=site, site=site, design=design, workloads=workloads, cost=cost, power_w=cost.power_w
    )


def one_networks_losses(survived: tuple[Survived, ...]) -> tuple[PartLosses, ...]:
    """What losses do to the only part; empty where none has to be survived."""
    return (PartLosses(part=NETWORK, survived=survived),) if survived else ()
