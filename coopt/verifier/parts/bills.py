"""What a design costs: lines of the bill, sums, and whether they keep limits.

Its ports count to switches, links and modules of each level, over all planes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from coopt.instance.existing import Existing
from coopt.instance.hardware import HbDomain, Panel
from coopt.instance.network import Discipline
from coopt.instance.question import Objective, ObjectiveKind, ProductKind
from coopt.instance.schema import Instance
from coopt.plan.parts import Item, ItemKind
from coopt.verifier.checks.verdict import ROUNDING
from coopt.verifier.parts.layouts import (
    Ports,
    ceil_ratio,
    chassis_count,
    core_count,
    leaf_count,
    planes_on_switch,
    spine_count,
)
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.standing import counted_network

IDLE, SPARE = " (idle)", " (spare)"


class LineKey(NamedTuple):
    """What a line of a bill has units of."""

    kind: ItemKind
    name: str
    idle: bool = False
    spare: bool = False
    year: float | None = None

    @property
    def text(self) -> str:
        """The same in words."""
        year = "" if self.year is None else f", {self.year:.10g}"
        return f"{self.name}{IDLE * self.idle}{SPARE * self.spare}{year}"


def key_of(item: Item) -> LineKey:
    """What a line says that it has units of."""
    return LineKey(item.kind, item.name, item.idle, item.spare, item.year)


class CountedItem(NamedTuple):
    """A line of the bill; `unit_usd` in USD, `unit_w` in W."""

    kind: ProductKind | Literal["wan"]
    name: str
    amount: int
    unit_usd: float
    unit_w: float
    idle: bool = False

    @property
    def key(self) -> LineKey:
        """What it has units of."""
        return LineKey(self.kind, self.name, self.idle)


class UnitPrice(NamedTuple):
    """List price (USD) and power (W) of one unit of an item."""

    usd: float
    w: float


@lru_cache(maxsize=4096)
def decimal(number: float) -> Fraction:
    """A number as it is written."""
    return Fraction(repr(number))


def exact_sum(terms: Iterable[tuple[int, Fraction]]) -> Fraction:
    """Amounts at a rate each, summed; those of one denominator as whole numbers, which takes a
    fraction of the time.
    """
    numerators: dict[int, int] = {}
    for amount, rate in terms:
        numerator, denominator = rate.as_integer_ratio()
        numerators[denominator] = numerators.get(denominator, 0) + amount * numerator
    common = math.lcm(*numerators)
    return Fraction(
        sum(total * (common // denominator) for denominator, total in numerators.items()), common
    )


class BillTotal(NamedTuple):
    """Sums of a bill."""

    capex_usd: float
    power_w: float
    tco_usd: float

    def of(self, kind: ObjectiveKind) -> float:
        """The sum that an objective names."""
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


def electricity_usd(objective: Objective, power_w: float) -> float:
    """Price of running `power_w` for all years (USD)."""
    return objective.years * 8760 * power_w / 1000 * objective.pue * objective.usd_per_kwh


def priced_total(capex_usd: float, power_w: float, objective: Objective) -> BillTotal:
    """The sums that follow from price and power."""
    return BillTotal(
        capex_usd, power_w, owned_usd(objective, capex_usd) + electricity_usd(objective, power_w)
    )


def owned_usd(objective: Objective, capex_usd: float) -> float:
    """Purchase with its labour, once, and its support over all years (USD)."""
    return capex_usd + capex_usd * (
        objective.labour_share + objective.years * objective.support_share
    )


def owned_share(objective: Objective, kind: ObjectiveKind) -> Fraction:
    """What a USD of purchase adds to an objective, with terms as they are written."""
    if kind == "power":
        return Fraction()
    work = decimal(objective.labour_share) + decimal(objective.years) * decimal(
        objective.support_share
    )
    return 1 + work if kind == "tco" else Fraction(1)


def bill_total(lines: Iterable[CountedItem], objective: Objective) -> BillTotal:
    """Sums of a bill, exactly alike for all orders and divisions of its lines."""
    amounts: dict[tuple[object, float, float], int] = {}
    for kind, name, amount, unit_usd, unit_w, idle in lines:
        unit = (kind, name, idle), unit_usd, unit_w
        amounts[unit] = amounts.get(unit, 0) + amount
    capex_usd = math.fsum(amount * unit_usd for (_, unit_usd, _), amount in amounts.items())
    return priced_total(
        capex_usd,
        math.fsum(amount * unit_w for (_, _, unit_w), amount in amounts.items()),
        objective,
    )


def cheapest_panel(instance: Instance, kind: ObjectiveKind) -> Panel | None:
    """The panel whose ports add least to the objective, if any is listed."""
    panels = instance.network.panels
    return min(
        panels,
        key=lambda p: priced_total(p.usd_per_port, p.w_per_port, instance.objective).of(kind),
        default=None,
    )


def bill(
    instance: Instance,
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
    optics: Sequence[OpticPair],
    left: Counter[tuple[str, str]] | None = None,
) -> list[CountedItem]:
    """All lines of a design that `include` lets count and that are not empty; `left` are the units
    that stand and no network has yet, all where it is alone.
    """
    whole = [*domain_lines(instance, family), *network_lines(family, levels, optics)]
    lines, left = counting(instance, whole), owned_units(instance) if left is None else left
    return _owned(instance, left, lines) if instance.existing else lines


def _owned(
    instance: Instance, left: Counter[tuple[str, str]], lines: Iterable[CountedItem]
) -> list[CountedItem]:
    """The lines of a bill with the units that stand at no price, of GPUs those that train first;
    what a network like that which stands has beyond them is bought as listed.
    """
    network, owned = instance.network, list[CountedItem]()
    kinds = ("nic", network.nics), ("switch", network.switches), ("optics", network.optics)
    listed = {(kind, one.name): one.usd for kind, products in kinds for one in products}
    for line in sorted(lines, key=lambda line: line.idle):
        product = "gpu" if line.idle else line.kind, line.name
        held = min(left[product], line.amount)
        left[product] -= held
        owned += [
            line._replace(amount=held, unit_usd=0.0),
            line._replace(amount=line.amount - held, unit_usd=listed.get(product, line.unit_usd)),
        ]
    return [line for line in owned if line.amount]


def owned_units(instance: Instance) -> Counter[tuple[str, str]]:
    """What stands, by kind and name; nothing where all is new."""
    stands = instance.stands
    hb = stands.domain_in(instance.network) if stands is not None else None
    if stands is None or hb is None:
        return Counter()
    gpu = stands.gpu or instance.cluster.gpu.name
    return Counter(dict(_owned_units(stands, hb, instance.network.discipline, gpu)))


@lru_cache(maxsize=64)
def _owned_units(
    stands: Existing, hb: HbDomain, discipline: Discipline, gpu: str
) -> tuple[tuple[tuple[str, str], int], ...]:
    """What the network that stands consists of, by kind and name."""
    network = counted_network(stands, stands.gpus, hb, discipline)
    units = Counter({("gpu", gpu): stands.gpus, ("hb", hb.name): stands.gpus})
    counts = levels(network.family, network.ports)
    for line in network_lines(network.family, counts, network.optics):
        units[line.kind, line.name] += line.amount
    return tuple(units.items())


def network_lines(
    family: DesignFamily, levels: Sequence[SwitchLevel], optics: Sequence[OpticPair]
) -> list[CountedItem]:
    """NICs, and what its levels consist of, whether it has a price or not."""
    if family.attachment is None:
        return []
    nic = family.attachment.nic
    nics = CountedItem("nic", nic.name, family.bought * family.adapters, nic.usd, nic.w)
    return [nics, *level_lines(family, levels, optics)]


def level_lines(
    family: DesignFamily, levels: Sequence[SwitchLevel], optics: Sequence[OpticPair]
) -> Iterator[CountedItem]:
    """Switches, the modules at the ends of their links, and the fibre in between."""
    for tier, (level, ends) in enumerate(zip(levels, optics, strict=True), start=1):
        box, carried = family.network.at(tier), family.network.carried(ends)
        yield CountedItem("switch", box.name, level.switches, box.usd, box.w)
        for optic, count in zip(ends, level.modules(carried), strict=True):
            yield CountedItem("optics", optic.name, count, optic.usd, optic.w)
        yield from (CountedItem("fibre", *bought, 0.0) for bought in level.fibre)


def counting(instance: Instance, lines: Iterable[CountedItem]) -> list[CountedItem]:
    return [line for line in lines if line.amount and instance.objective.counts(line.kind)]


def domain_lines(instance: Instance, family: DesignFamily) -> list[CountedItem]:
    """HB domains, the GPUs in them that stay idle, and those that train."""
    hb, gpu, domains = family.hb, instance.cluster.gpu, family.bought
    return [
        CountedItem("hb", hb.name, domains * hb.size, hb.usd_per_gpu, hb.w_per_gpu),
        CountedItem("hb", gpu.name, domains * hb.size - family.gpus, gpu.usd, gpu.w, idle=True),
        CountedItem("gpu", gpu.name, family.gpus, gpu.usd, gpu.w),
    ]


def within_limits(
    instance: Instance, family: DesignFamily, sums: BillTotal, margin: float = 0.0
) -> bool:
    """Whether price, power and racks stay within their limits; a negative `margin` puts rounding in
    their favour.
    """
    limits = instance.limits
    if not (
        keeps(sums.capex_usd, limits.capex_usd, margin)
        and keeps(sums.power_w / 1e6, limits.power_mw, margin)
    ):
        return False
    if limits.racks is None or family.hb.racks is None:
        return True
    return least_racks(family.bought, family.hb.racks, max(-margin, 0.0)) <= limits.racks


def keeps(total: float, limit: float | None, margin: float) -> bool:
    """Whether a sum stays within a limit, if there is one; with a negative `margin` to within its
    rounding.
    """
    return limit is None or total <= limit * (1 + ROUNDING if margin < 0 else 1.0)


def least_racks(domains: int, racks: float, slack: float = 0.0) -> int:
    """Racks of all domains, rounded up after taking a relative `slack` off."""
    racks_filled = domains * racks * (1 - slack)
    return -int(-racks_filled // 1)


def exact_worth(
    instance: Instance,
    lines: Iterable[CountedItem],
    kind: ObjectiveKind,
    factors: Mapping[str, float] | None = None,
) -> Fraction:
    """What a bill is worth, with prices, their factors by kind, watts and terms as they are
    written.
    """
    lines, terms = tuple(lines), instance.objective
    factor = {name: decimal(value) for name, value in (factors or {}).items()}
    # idle GPUs stand among HB domains on the bill, and their prices turn out as those of GPUs;
    # those of fibre turn out as those of optics
    turns_out = {"fibre": "optics"}
    kinds = ["gpu" if line.idle else turns_out.get(line.kind, line.kind) for line in lines]
    prices = (
        decimal(line.unit_usd) * factor.get(name, Fraction(1))
        for name, line in zip(kinds, lines, strict=True)
    )
    capex = exact_sum((line.amount, price) for line, price in zip(lines, prices, strict=True))
    if kind == "capex":
        return capex
    power_w = exact_sum((line.amount, decimal(line.unit_w)) for line in lines)
    if kind == "power":
        return power_w
    kwh = power_w * decimal(terms.years) * 8760 / 1000 * decimal(terms.pue)
    return capex * owned_share(terms, kind) + kwh * decimal(terms.usd_per_kwh)


class SwitchLevel(NamedTuple):
    """Switches of one level and links to the level below, over all planes.

    `below` and `above` count what stands at the lower and at the upper ends of the links by how
    many of them it has: pairs of devices and links of each. `fibre` is what lies between the ends,
    where lengths in the hall say it: name, amount and price of one.
    """

    switches: int
    links: int
    below: tuple[tuple[int, int], ...] = ()
    above: tuple[tuple[int, int], ...] = ()
    fibre: tuple[tuple[str, int, float], ...] = ()

    def modules(self, links_of_module: tuple[int, int]) -> tuple[int, int]:
        """Modules at the lower and at the upper ends, of which each carries so many links of one
        device.
        """
        lower_count, upper_count = (
            (
                self.links
                if count == 1
                else sum(devices * ceil_ratio(links, count) for devices, links in devices_of_end)
            )
            for count, devices_of_end in zip(links_of_module, (self.below, self.above), strict=True)
        )
        return lower_count, upper_count


def levels(family: DesignFamily, ports: Ports) -> tuple[SwitchLevel, ...]:
    """Switches and links of each level, over all planes."""
    if family.attachment is None:
        return ()
    planes = family.planes * family.copies
    if ports.tiers == 1:
        return levels_of_switch(family, chassis_count(family), planes_on_switch(family))
    leaves = leaf_count(family, ports.down)
    leaf_level, cables = _leaf_level(family, ports), leaves * ports.up * planes
    if ports.tiers == 2:
        spines = spine_count(leaves, ports, family.attachment.at(2).radix)
        ends = (
            _ends(planes, [(leaves, ports.up)]),
            _ends(planes, _in_turn(leaves * ports.up, spines)),
        )
        return leaf_level, SwitchLevel(spines * planes, cables, *ends)
    pods, slices = ceil_ratio(leaves, ports.pod_leaves), ports.slices * planes
    cores, trunks = core_count(leaves, ports, family.attachment.at(3).radix), pods * ports.pod_up
    whole_pods, last_leaves = divmod(leaves, ports.pod_leaves)
    # the last pod may have fewer leaves, and its switches as many fewer links down
    pod_switches = [(whole_pods, ports.pod_down), (1, last_leaves * ports.pod_each)]
    pod_ends = _ends(planes, [(leaves, ports.up)]), _ends(slices, pod_switches)
    core_ends = _ends(slices, [(pods, ports.pod_up)]), _ends(slices, _in_turn(trunks, cores))
    return (
        leaf_level,
        SwitchLevel(slices * pods, cables, *pod_ends),
        SwitchLevel(slices * cores, slices * trunks, *core_ends),
    )


def levels_of_switch(
    family: DesignFamily, chassis: int, planes_each: int
) -> tuple[SwitchLevel, ...]:
    """The one level of so many switches, each with so many planes together."""
    links = family.domains * family.rails * family.copies
    full_switches, last_planes = divmod(family.planes, planes_each)
    ends = [(full_switches, planes_each * family.ends), (1, last_planes * family.ends)]
    return (SwitchLevel(chassis, links, *_nic_ends(family, ends)),)


def levels_of_pod(family: DesignFamily, ports: Ports) -> tuple[SwitchLevel, ...]:
    """Leaves and aggregation switches of a single pod, above which nothing stands yet."""
    leaves, planes = leaf_count(family, ports.down), family.planes * family.copies
    ends = (
        _ends(planes, [(leaves, ports.up)]),
        _ends(planes, [(ports.slices, leaves * ports.pod_each)]),
    )
    return _leaf_level(family, ports), SwitchLevel(
        ports.slices * planes, leaves * ports.up * planes, *ends
    )


def _leaf_level(family: DesignFamily, ports: Ports) -> SwitchLevel:
    """Leaves of all planes, and the links of NICs."""
    leaves = leaf_count(family, ports.down) * family.planes * family.copies
    links = family.domains * family.rails * family.copies
    return SwitchLevel(leaves, links, *_nic_ends(family, _leaf_ends(family, ports.down)))


DeviceLinks = list[tuple[int, int]]
"""Devices by how many links each has."""


def _ends(times: int, ends: DeviceLinks) -> tuple[tuple[int, int], ...]:
    """Ends that are there so many times."""
    return tuple((devices * times, links) for devices, links in ends if devices and links)


def _in_turn(links: int, switches: int) -> DeviceLinks:
    """Switches that take links in turn."""
    quotient, remainder = divmod(links, switches)
    return [(switches - remainder, quotient), (remainder, quotient + 1)]


def _nic_ends(
    family: DesignFamily, switches: DeviceLinks
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Both ends of the links of NICs, of which each has as many as a cage has ports."""
    slots = family.network.nic.cages
    ports = family.copies * family.network.ports_in_plane
    nics = (family.domains * family.adapters * slots, ports // slots)
    return (nics,), _ends(family.copies, switches)


def _leaf_ends(family: DesignFamily, down: int) -> DeviceLinks:
    """Leaves of all planes that one port of each NIC leads to, by the NICs they hold."""
    domains, rails = family.domains, family.rails
    if family.network.kind == "clos":
        return [(domains * rails // down, down), (1, domains * rails % down)]
    of_leaf, span = family.leaf_block(down)
    # whole leaves, and what is left of rails and of domains
    by_rails = [(rails // of_leaf, of_leaf), (1, rails % of_leaf)]
    by_domains = [(domains // span, span), (1, domains % span)]
    return [(m * n, r * d) for m, r in by_rails for n, d in by_domains]
