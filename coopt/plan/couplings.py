"""Plans as parts (networks at a site in a phase) and couplings between them. Data only."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import SerializerFunctionWrapHandler, model_serializer

from coopt.plan.parts import (
    Cost,
    Design,
    DirectLinks,
    Item,
    ItemKind,
    Record,
    SwitchChoice,
    TierCables,
    WorkloadPlan,
)

NETWORK = "network"
"""What the part is called that all workloads have in turn."""


class CoreLinks(Record):
    """Links from an island into the core: `per_leaf` from each leaf switch, or 0 if they start at
    NICs.

    `optic_below` is the product at their lower ends; None means that of the core. Where lengths
    choose cables, `cables` lists the kinds of these from the shortest on, and the product is that
    of the longest.
    """

    workload: str
    links: int
    per_leaf: int
    optic_below: str | None = None
    cables: tuple[TierCables, ...] = ()

    @model_serializer(mode="wrap")
    def _without_cables(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave cables out where lengths choose none."""
        table: dict[str, Any] = serialize(self)
        return table if self.cables else {key: table[key] for key in table if key != "cables"}


class CorePlan(Record):
    """Switches that connect islands: their number, ports in use, and power (W), as far as `include`
    counts it.

    Each link ends in an `optic` of the core, or the longest does where lengths choose cables; a
    module serves links of one island only. Channels to other sites take `channel_ports` besides.
    """

    switch: SwitchChoice
    switches: int
    ports: int
    channel_ports: int = 0
    optic: str
    power_w: float
    islands: tuple[CoreLinks, ...]

    def below(self, links: CoreLinks) -> str:
        """Return the product at the lower ends of links into the core."""
        return self.optic if links.optic_below is None else links.optic_below

    @property
    def optics(self) -> tuple[str, ...]:
        """The products at all ends of the core's links, its own first."""
        kinds = (name for of in self.islands for cables in of.cables for name in cables.ends)
        return tuple(dict.fromkeys((self.optic, *map(self.below, self.islands), *kinds)))


class Stored(Record):
    """Units of an item stored for a later phase."""

    item: str
    kind: ItemKind
    count: int


class MyopicStep(Record):
    """What a phase builds and spends if planned without later phases."""

    year: float
    design: Design
    capex_usd: float
    energy_usd: float
    work_usd: float = 0.0


class Myopic(Record):
    """Result of planning each phase without knowledge of later bounds and prices; existing
    equipment is kept.

    `value` is the objective over all phases and `saving` the amount by which the plan is cheaper;
    both are None at a dead end, which `dead_end` describes.
    """

    steps: tuple[MyopicStep, ...]
    value: float | None
    saving: float | None
    dead_end: str | None


class Survived(Record):
    """The loss of any one part of a kind: NICs that a domain loses, and the factor on bounds
    meanwhile.

    `slowdown` is the factor on the time of the domain's traffic. A lost domain has no traffic;
    `workloads` then describes how each workload runs on the other domains, with its fastest mapping
    there.
    """

    part: Literal["nic", "leaf", "plane", "domain"]
    nics_lost: int
    slower: float
    slowdown: float | None = None
    workloads: tuple[WorkloadPlan, ...] = ()


class PriceScenario(Record):
    """A price scenario: factors by kind, and the objective of the plan and of the best plan at
    these prices.
    """

    factors: dict[str, float]
    value: float
    best: float

    @property
    def regret(self) -> float:
        """Excess of the plan over the best plan at these prices."""
        return self.value - self.best


def largest_regret(turns: Iterable[PriceScenario]) -> float:
    """Return the maximum excess over the best plan, at least 0."""
    return max(0.0, *(scenario.regret for scenario in turns))


class WanPlan(Record):
    """Channels lit between two sites, with `gbit_s` in each direction; `usd` and `w` are totals.

    Where they end in ports of a core, they have so many `modules` of an `optic` at both ends
    together, which `usd` and `w` leave out.
    """

    between: tuple[str, str]
    channels: int
    gbit_s: float
    latency_s: float
    usd: float
    w: float
    optic: str | None = None
    modules: int = 0


class Exchange(Record):
    """Summation of a workload's gradients over all sites, once per iteration.

    `sent_bytes` leave each site; `exchange_s` is the time from the first to the last byte, hidden
    or not, and `without_channel_s` that without any one channel, where a plan has to survive it.
    """

    workload: str
    sent_bytes: float
    exchange_s: float
    without_channel_s: float | None = None


class Part(Record):
    """A network at a site in a phase, and the workloads that train on it; either `design` or
    `links` describes it.

    `phase` is the year in which the phase begins. `cost` is the bill of all equipment of this
    network, at the plan's prices without volume discounts and phase factors, with the electricity
    of its site over `objective.years`; joint purchases of parts are in the couplings. `power_w` is
    the power of the network (W).
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
        """Name of the network, the same in every phase; empty if there is only one growing
        network.
        """
        return self.name if self.phase is None else self.name.rpartition(", ")[0]

    @property
    def text(self) -> str:
        """What a sentence calls it: `the network`, or `part 'w, 2027'` of several."""
        return f"the {NETWORK}" if self.name == NETWORK else f"part {self.name!r}"


def network_of(part: Part) -> Design | DirectLinks:
    """What joins the domains of a part."""
    network = part.design or part.links
    assert network is not None, "a part has a design or direct links"
    return network


class SitePower(Record):
    """Facility power of a site in a phase (W): IT power of its parts, core and channels, times
    PUE.
    """

    site: str
    phase: float | None = None
    facility_w: float
    facility_limit_w: float

    @property
    def is_fed(self) -> bool:
        """Whether the site supplies enough power; exact comparison."""
        return self.facility_w <= self.facility_limit_w


class Ring(Record):
    """Sites in the order of the ring that sums their gradients, their shares, and the lit
    channels.
    """

    shares: int
    sites: tuple[str, ...]
    site_shares: tuple[int, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]

    def added_s(self, lost: Mapping[WanPlan, int]) -> dict[str, float] | None:
        """Return how much longer each exchange takes without so many channels of some links (s), by
        workload; None where a link has none left.
        """
        if not lost:
            return {exchange.workload: 0.0 for exchange in self.exchanges}
        rates = [link.channels * link.gbit_s for link in self.wan]
        left_gbit_s = min((link.channels - lost.get(link, 0)) * link.gbit_s for link in self.wan)
        if left_gbit_s <= 0:
            return None
        slower_s_per_gbit = 1 / left_gbit_s - 1 / min(rates)
        return {
            exchange.workload: exchange.sent_bytes * 8 / 1e9 * slower_s_per_gbit
            for exchange in self.exchanges
        }


class PhaseSpending(Record):
    """Purchases of all parts in a phase at its prices, stored units, power, and electricity until
    the next phase.

    `power_w` includes all installed equipment, also cores. `work_usd` is labour to install
    purchases plus support of installed equipment until the next phase.
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
    """A core shared by the parts of a site in a phase; `core.islands` uses the names of
    workloads.
    """

    site: str | None = None
    phase: float | None = None
    core: CorePlan

    @property
    def name(self) -> str:
        """Name in bills and losses: `core at south, 2029`."""
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
    """Uncertain prices.

    With the aim "worst-case", bill and objective are at the worst prices, and `list_value` is the
    objective at the prices of the instance. With "regret", the objective is the maximum excess over
    the best plan, `turns` holds all price scenarios, and the bill is at the prices of the instance.
    """

    aim: Literal["worst-case", "regret"]
    efficiency: tuple[float, float]
    list_value: float
    turns: tuple[PriceScenario, ...] = ()

    @property
    def at_worst_prices(self) -> bool:
        """Whether bill and objective are at the worst prices."""
        return self.aim == "worst-case"


class PartLosses(Record):
    """Effect of each loss on a part, named as in `Plan.parts`."""

    part: str
    survived: tuple[Survived, ...]


class Couplings(Record):
    """Couplings between the parts of a plan; each is empty where the question has no such
    coupling.

    `myopic` complements `growth`: what planning each phase separately would have built.
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
        """The cores by name, as in bills."""
        return {core.name: core for core in self.cores}

    @property
    def list_value(self) -> float | None:
        """The objective at the prices of the instance, if the plan's objective is at the worst
        prices; else None.
        """
        return (
            self.outlooks.list_value
            if self.outlooks is not None and self.outlooks.at_worst_prices
            else None
        )

    @property
    def least_costs(self) -> tuple[float, ...]:
        """Cost of the best plan in each price scenario, for a regret objective; else ()."""
        return tuple(scenario.best for scenario in self.turns)

    @property
    def turns(self) -> tuple[PriceScenario, ...]:
        """All price scenarios, for a regret objective."""
        return () if self.outlooks is None else self.outlooks.turns

    def __bool__(self) -> bool:
        """Whether there is any coupling."""
        return self != Couplings()

    @property
    def years(self) -> tuple[float | None, ...]:
        """The year in which each phase begins; a single None if everything is bought at once."""
        return tuple(spending.year for spending in self.growth) or (None,)

    @property
    def purchases_usd(self) -> tuple[float, ...]:
        """Amount paid for the purchases of each phase (USD); empty if everything is bought at
        once.
        """
        return tuple(spending.capex_usd for spending in self.growth)

    def bought(self, cost: Cost) -> dict[float | None, tuple[Item, ...]]:
        """Return the purchases at the beginning of each phase; all items of the bill under None if
        bought at once.
        """
        return {spending.year: spending.bought for spending in self.growth} or {None: cost.items}

    def drawn_w(self, cost: Cost) -> dict[float | None, float]:
        """Return the power of all installed equipment (W) by the year in which a phase begins,
        keyed as `bought`.
        """
        return {spending.year: spending.power_w for spending in self.growth} or {None: cost.power_w}

    def installed_counts(self, product: tuple[str, str]) -> list[int]:
        """Return the installed units of a product in each phase; empty if everything is bought at
        once.
        """
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
        """Return the core that a part is connected to, with its links, if any."""
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
        """Time that workloads wait for gradients of other sites per iteration (s), by name, where
        positive.
        """
        return (
            {}
            if self.ring is None
            else {exchange.workload: exchange.exchange_s for exchange in self.ring.exchanges}
        )

    def lit_channels(self, between: frozenset[str]) -> float:
        """Return the number of channels lit between two sites."""
        lit = () if self.ring is None else self.ring.wan
        return float(sum(link.channels for link in lit if frozenset(link.between) == between))

    def products(self, kind: str) -> set[str]:
        """Return the names of the products of a kind in what parts share."""
        cores = [shared_core.core for shared_core in self.cores]
        names = {
            "switch": [core.switch.name for core in cores],
            "optics": [name for core in cores for name in core.optics],
        }
        return set(names.get(kind, ()))

    def shared_counts(self, phase: float | None) -> dict[str, int]:
        """Return the switches and transceivers that parts share in a phase, including both ends of
        links to cores.
        """
        cores = [shared_core.core for shared_core in self.cores if shared_core.phase == phase]
        ends = 2 * sum(core.ports for core in cores)
        ends += sum(link.modules for link in self.ring.wan) if self.ring else 0
        return (
            {"switches": sum(core.switches for core in cores), "transceivers": ends}
            if cores
            else {}
        )


def phase_name(year: float) -> str:
    """Return the name of the network of a phase: `network, 2026`."""
    return f"{NETWORK}, {repr(float(year)).removesuffix('.0')}"


def one_network(
    cost: Cost,
    workloads: tuple[WorkloadPlan, ...],
    *,
    design: Design | None = None,
    links: DirectLinks | None = None,
) -> Part:
    """Build the only part of a plan with a single network; its bill is the bill of the plan."""
    return Part(
        name=NETWORK,
        design=design,
        links=links,
        workloads=workloads,
        cost=cost,
        power_w=cost.power_w,
    )


def at_site(site: str, design: Design, workloads: tuple[WorkloadPlan, ...], cost: Cost) -> Part:
    """Return the network of a site, named after the site."""
    return Part(
        name=site, site=site, design=design, workloads=workloads, cost=cost, power_w=cost.power_w
    )
