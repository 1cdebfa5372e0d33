"""The bill of a design: parts, price and power, the limits it keeps, and how it moves with the
uplinks.

Parts are products by name, with their prices by quantity. Links have a module at each end, or fewer
where one breaks out into several slower links; where switches have no cages for them, or fibres are
split, notes say what to order in their place.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopt.instance.catalog import box_of, entries, ports_of_modules
from coopt.instance.couplings import Discount, Site
from coopt.instance.existing import Existing
from coopt.instance.hardware import IDLE, Fibre, Gpu, HbDomain, Nic, Optic, Switch, mate
from coopt.instance.network import Discipline
from coopt.instance.schema import (
    CostKind,
    Instance,
    Limits,
    Objective,
    ObjectiveKind,
    ProductKind,
)
from coopt.instance.texts import both, counted
from coopt.network.family import EndHolders, Family, Holders, LinkEnds, TierChain, whole
from coopt.network.standing import family_of
from coopt.plan.couplings import SitePower
from coopt.plan.parts import Cost, Item, ItemKind, line


class EndModules(NamedTuple):
    """Modules at the lower and at the upper ends of the links of a level."""

    below: int
    above: int


def end_modules(family: Family, chain: TierChain) -> tuple[EndModules, ...]:
    """Modules at the ends of the links of each level, over all planes; one holds links of a single
    switch or NIC.
    """
    rate = family.link_gbit_s
    # asked for every network that is listed, most of which have a module for each link
    if all(below.gbit_s == rate == above.gbit_s for below, above in family.optics):
        return tuple(EndModules(level.links, level.links) for level in chain.levels)
    ends = zip(end_holders(family, chain), family.per_module, strict=True)
    return tuple(
        EndModules(whole(holders.below, n), whole(holders.above, m)) for holders, (n, m) in ends
    )


def kinds_of_ends(family: Family, chain: TierChain) -> Iterator[tuple[LinkEnds, EndModules]]:
    """The ends of links, with their modules over all planes: of each level, or where cables are
    chosen by their lengths of each length.
    """
    counts = [EndModules(run.below, run.above) for runs in family.runs(chain) for run in runs]
    yield from zip(family.all_ends, counts or end_modules(family, chain), strict=True)


def end_holders(family: Family, chain: TierChain) -> tuple[EndHolders, ...]:
    """What has the links of each level at either end, over all planes."""
    if family.tiers == 0:
        return ()
    cages = family.nic_count // family.ports_in_plane * family.nic.cages
    nics = ((cages, family.ports_of_cage),)
    return chain.end_holders(nics, _leaves(family))


def _leaves(family: Family) -> Holders:
    """Leaves by their links to NICs; planes that share the switch of a single tier share its
    modules.
    """
    ports = family.nic_planes
    # One switch may hold several planes: its modules are filled by links of all of them.
    if family.tiers == 1:
        planes_of_switch = family.planes_together
        full_switches, last_ports = divmod(family.planes, planes_of_switch)
        return (ports * full_switches, planes_of_switch * family.down), (
            ports,
            last_ports * family.down,
        )
    rails, domains, planes = (
        family.nics_of_domain // family.planes,
        family.domains,
        family.all_planes,
    )
    if family.fabric == "clos":
        return dealt_out(planes, rails * domains, family.down)
    return tuple(
        (rows * switches, of_rails * of_domains)
        for rows, of_rails in dealt_out(planes, rails, family.leaf_block[0])
        for switches, of_domains in dealt_out(1, domains, family.leaf_block[1])
    )


def dealt_out(times: int, ends: int, filled: int) -> Holders:
    """Switches of which each takes so many ends, and one the rest of them, so many times."""
    full_switches, rest = divmod(ends, filled)
    return (times * full_switches, filled), (times, rest)


def cage_note(
    way: Switch,
    level: int,
    gbit_s: float,
    ports: Sequence[tuple[int, Optic]],
    free_key: str = "margin.ports",
) -> str | None:
    """What to order in place of modules for which a switch has no room; None where it has room.

    Parameters
    ----------
    gbit_s
        Rate of links.
    ports
        How many ports of a switch are in use, with the optic of each.
    free_key
        The key that keeps ports free.
    """
    modules, cages = (
        sum(-(-n // optic.links_of(gbit_s)) for n, optic in ports),
        ports_of_modules(way, 1),
    )
    if modules <= cages:
        return None
    cage_gbit_s = (box_of(way.name) or way).cage_gbit_s
    ports_per_module = int(cage_gbit_s / gbit_s)
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    cages_filled = sum(-(-number // ports_per_module) for number in of_kind.values())
    opening = (
        f"Not orderable as listed: a {way.name} of tier {level} has only {counted(cages, 'cage')}"
        f" for {modules:,} modules."
    )
    larger = f"of {cage_gbit_s:g} Gbit/s with {counted(ports_per_module, 'port')} each"
    if cages_filled <= cages:
        catalog_hint = _catalog_modules(
            cage_gbit_s, ports_per_module, [optic for _, optic in ports]
        )
        modules_text = counted(cages_filled, "module")
        return f"{opening} Buy {modules_text} per switch instead, {larger}{catalog_hint}."
    apart = ", as ports with different optics share no module" if len(of_kind) > 1 else ""
    return (
        f"{opening} Modules {larger} do not fit either: {cages_filled:,} are"
        f" needed{apart}. Keep some ports free ({free_key})."
    )


def nic_note(nic: str, ports: int, optic: Optic, links_of_module: int) -> str | None:
    """What to order in place of modules for which the cage of a NIC has no room; None where it has.

    Parameters
    ----------
    ports
        How many ports a cage holds.
    """
    modules = -(-ports // links_of_module)
    if modules == 1:
        return None
    gbit_s = optic.gbit_s / links_of_module
    return (
        f"Not orderable as listed: a cage of {nic} has {counted(ports, 'port')} but takes a single"
        f" module, not {modules} x {optic.name}. Buy one of {gbit_s * ports:g} Gbit/s with"
        f" {ports} ports{_catalog_modules(gbit_s * ports, ports, [optic])}."
    )


def port_notes(nic: Nic, leaf: Switch, gbit_s: float, divided: tuple[str, int]) -> Iterator[str]:
    """That a NIC has no Ethernet port as fast as its links to an Ethernet switch, which a key with
    a larger number than now divides.
    """
    most, (key, now) = nic.ethernet_port_gbit_s, divided
    if leaf.protocol == "ethernet" and most is not None and gbit_s > most:
        yield (
            f"Not orderable as listed: {nic.name} has Ethernet ports of {most:g} Gbit/s at most,"
            f" but its links to {leaf.name} run at {gbit_s:g}. Plan with {key} ="
            f" {now * math.ceil(gbit_s / most)}, or InfiniBand switches."
        )


def _catalog_modules(cage_gbit_s: float, ports_per_module: int, optics: Sequence[Optic]) -> str:
    """` (in the catalog: 800g-sr8)`, the modules of a cage for so many links that meet some of
    these; empty if none.
    """
    modules = (
        module
        for module in entries("optic").values()
        if isinstance(module, Optic) and module.gbit_s == cage_gbit_s
    )
    fitting = [
        module
        for module in modules
        if module.links_of(cage_gbit_s / ports_per_module) == ports_per_module
    ]
    names = [
        module.name
        for module in fitting
        if any(module.meets(optic) and mate(module, optic) for optic in optics)
    ]
    return f" (in the catalog: {both(names)})" if names else ""


def splitting_notes(
    modules: Iterable[tuple[Optic, int, int | None]], keys: str = ""
) -> Iterator[str]:
    """Which modules carry so many links that one connector has to serve several of them, and how
    many there are, as far as that is known, where no fibre is listed that is in the bill; `keys`
    would list it.
    """
    split = [
        (optic, links, count)
        for optic, links, count in dict.fromkeys(modules)
        if links > optic.connectors and not optic.whole_cable  # which are sold split
    ]
    ends = [
        (
            f"{count * optic.connectors:,} for {optic.name} ("
            if count
            else f"some for {optic.name} ("
        )
        + f"{links} links on {counted(optic.connectors, 'connector')})"
        for optic, links, count in split
    ]
    if ends:
        known = (one for one in entries("fibre").values() if isinstance(one, Fibre))
        usd = [one.usd for one in known if one.links > 1]
        least, most = min(usd), max(usd)
        number = sum((count or 0) * optic.connectors for optic, _, count in split)
        in_all = f", ${number * least:,.0f} to ${number * most:,.0f} in all"
        all_known = all(count for _, _, count in split)
        yield (
            f"Fibres split, but the bill has no splitters: the network needs {both(ends)}, at"
            f" ${least:g} to ${most:g} each{in_all if all_known else ''}"
            f"{f' (set {keys})' if keys else ''}."
        )


@dataclass(frozen=True, kw_only=True)
class PricedProduct:
    """A product: USD and W of a unit as far as `include` counts them, and its brackets.

    Bracket b begins at `begins[b]` units, the first at 0, and has the unit price `usd[b]`. With
    `all_units` a price holds for every unit, else for the units of its bracket.
    """

    kind: ProductKind
    name: str
    begins: tuple[int, ...]
    usd: tuple[float, ...]
    w: float
    all_units: bool

    @property
    def key(self) -> tuple[ProductKind, str]:
        """Kind and name."""
        return self.kind, self.name

    @property
    def slopes(self) -> tuple[float, float]:
        """What a unit adds to the bill at least and at most (USD); nothing where it reaches a price
        for all units, or is one that stands.
        """
        least = 0.0 if self.all_units and len(self.usd) > 1 else min(self.usd)
        return least, max(self.usd)


@dataclass(frozen=True, kw_only=True)
class Cap:
    """A limit on what all units that stand take together: its key, and what goes by that key at
    most.

    A unit of each product takes `each`, in the order of `priced_products`, in a unit of which
    `scale` make one of the limit's. Multipliers of proofs go by `name`.
    """

    key: str
    name: str
    most: float
    scale: float
    each: tuple[float, ...]

    def used(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """What units of all products (..., G) take, in the unit of the limit."""
        return np.asarray(units @ np.array(self.each)) / self.scale

    def used_exactly(self, units: NDArray[np.float64]) -> float:
        """What several rows (n, G) take together, summed as a bill is."""
        rows = (zip(row, self.each, strict=True) for row in units.tolist())
        return math.fsum(math.fsum(count * use for count, use in row) for row in rows) / self.scale


def caps_of(instance: Instance) -> tuple[Cap, ...]:
    """The limits that are set on sums over products."""
    power_mw = instance.limits.power_mw
    if power_mw is None:
        return ()
    watts = tuple(product.w for product in priced_products(instance))
    return (Cap(key="limits.power_mw", name="power_w", most=power_mw, scale=1e6, each=watts),)


def priced_products(instance: Instance) -> tuple[PricedProduct, ...]:
    """Every product that islands of an instance may use, GPUs last."""
    network, cluster = instance.network, instance.cluster
    listed: list[tuple[ProductKind, str, float, float]] = [
        *(("hb", hb.name, hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains),
        *(("nic", nic.name, nic.usd, nic.w) for nic in network.nics),
        *(("switch", switch.name, switch.usd, switch.w) for switch in network.switches),
        *(("optics", optic.name, optic.usd, optic.w) for optic in network.optics),
        *(("fibre", name, usd, 0.0) for one in network.fibre for name, usd in one.sold),
    ]
    products = [
        _priced(instance, *entry, is_counted=instance.objective.counts(entry[0]))
        for entry in listed
    ]
    idle_or_active = any(kind in instance.objective.include for kind in ("hb", "gpu"))
    return (
        *products,
        *(
            _priced(instance, "gpu", gpu.name, gpu.usd, gpu.w, is_counted=idle_or_active)
            for gpu in cluster.kinds
        ),
    )


def network_key(instance: Instance) -> Hashable:
    """All that the networks of an instance and the products counted on them depend on."""
    return (
        instance.network.unpriced,
        instance.objective.include,
        instance.cluster.model_copy(update={"gpu": instance.cluster.gpu.unpriced}),
        instance.sharing.model_copy(update={"discount": ()}),
        instance.existing,
        tuple(item.key for item in priced_products(instance)),
    )


def _priced(
    instance: Instance, kind: ProductKind, name: str, usd: float, w: float, *, is_counted: bool
) -> PricedProduct:
    discount = next(
        (d for d in instance.sharing.discount if (d.kind, d.item) == (kind, name)), None
    )
    begins: tuple[int, ...] = (0,)
    prices: tuple[float, ...] = (usd if is_counted else 0.0,)
    if discount is not None:
        begins, prices = _brackets(discount, usd)
    elif (stands := standing_units(instance)[kind, name]) and prices[0]:
        begins, prices = (0, stands), (0.0, *prices)
    return PricedProduct(
        kind=kind,
        name=name,
        begins=begins,
        usd=prices,
        w=w if is_counted else 0.0,
        all_units=discount is not None and discount.applies == "all-units",
    )


def _brackets(discount: Discount, usd: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Thresholds and prices from 0 units on; a price that stays opens no bracket."""
    pairs = [(0, usd), *zip(discount.begins, discount.prices(usd), strict=True)]
    steps = [pairs[0], *(pair for previous, pair in pairwise(pairs) if pair[1] < previous[1])]
    begins, prices = zip(*steps, strict=True)
    return begins, prices


HOURS_PER_YEAR = 8760
Key = tuple[str, str]  # kind and name of an item
Shares = defaultdict[Key, float]
Units = defaultdict[tuple[ItemKind, str], int]


def weigh(objective: Objective, usd: Any, w: Any, kind: ObjectiveKind | None = None) -> Any:
    """A price and a power in the unit of the objective: USD for capex and tco, W for power;
    numbers or arrays.
    """
    kind = kind or objective.billed
    if kind == "power":
        return w
    return usd if kind == "capex" else owned_usd(objective, usd, w)


def owned_usd(objective: Objective, usd: Any, w: Any) -> Any:
    """Total cost of owning what is bought for so much and draws so many watts (USD); numbers or
    arrays.
    """
    return usd * objective.owned_share + w * usd_per_w(objective)


def usd_per_w(objective: Objective) -> float:
    """Price of drawing one watt of IT power over the planned years."""
    return objective.years * HOURS_PER_YEAR / 1000 * objective.pue * objective.usd_per_kwh


def electricity_of(objective: Objective, site: Site | None) -> Objective:
    """The objective at a site's own PUE and price of electricity; as it is where there are no
    sites.
    """
    if site is None:
        return objective
    usd_per_kwh = objective.usd_per_kwh if site.usd_per_kwh is None else site.usd_per_kwh
    return objective.model_copy(update={"pue": pue_at(objective, site), "usd_per_kwh": usd_per_kwh})


def pue_at(objective: Objective, site: Site) -> float:
    """The PUE of a site: its own, or that of the objective."""
    return objective.pue if site.pue is None else site.pue


def fed_share(objective: Objective, site: Site, it_w: Any) -> Any:
    """How much of what a site can feed so much IT power takes (W); numbers or arrays."""
    return it_w * pue_at(objective, site) / (site.power_mw * 1e6)


def site_power(
    objective: Objective, site: Site, it_w: float, year: float | None = None
) -> SitePower:
    """What a site feeds, and can feed, where so much IT power is drawn (W)."""
    fed_w = it_w * pue_at(objective, site)
    return SitePower(
        site=site.name, phase=year, facility_w=fed_w, facility_limit_w=site.power_mw * 1e6
    )


STANDING = " (standing)"


class LineItem(NamedTuple):
    """So many units of a product at the price (USD) and the power (W) of one; `idle` GPUs come with
    HB domains.
    """

    kind: ItemKind
    name: str
    units: int
    unit_usd: float
    unit_w: float
    idle: bool = False
    standing: bool = False

    @property
    def key(self) -> Key:
        """Kind and name of its line of a bill, those that stand apart."""
        return self.kind, f"{self.name}{IDLE * self.idle}{STANDING * self.standing}"

    @property
    def line(self) -> Item:
        """Its line of a bill."""
        return line(self.kind, self.name, self.units, self.unit_usd, self.unit_w, idle=self.idle)


def counted_units(family: Family, uplinks: int) -> Units:
    """How many units of each product a network takes, by kind and name; GPUs are in HB domains."""
    units = Units(int)
    units["hb", family.hb.name] = family.installed_gpus
    units["nic", family.nic.name] = family.bought_nics
    chain = family.chain(uplinks)
    for tier, switch in zip(chain.levels, family.switches, strict=True):
        units["switch", switch.name] += tier.switches
    for ends, count in kinds_of_ends(family, chain):
        units["optics", ends.below.name] += count.below
        units["optics", ends.above.name] += count.above
    for one in family.fibre(uplinks):
        units["fibre", one.name] += one.units
    return units


def bill(instance: Instance, family: Family, uplinks: int) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    return tuple(item.line for item in line_items(instance, family, uplinks))


def line_items(instance: Instance, family: Family, uplinks: int) -> list[LineItem]:
    """What is bought and `include` counts; nothing with a count of 0."""
    products: dict[tuple[CostKind, str], Nic | Optic | Switch] = {
        ("nic", family.nic.name): family.nic,
        **{("switch", switch.name): switch for switch in family.switches},
        **{("optics", optic.name): optic for ends in family.all_ends for optic in ends},
    }
    units = counted_units(family, uplinks)
    items = [
        *domain_items(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus),
        *(LineItem(*key, units[key], product.usd, product.w) for key, product in products.items()),
        *(
            LineItem("fibre", name, units["fibre", name], usd, 0.0)
            for name, usd in {one.name: one.usd for one in family.fibre(uplinks)}.items()
        ),
    ]
    counted_items = [item for item in items if item.units and instance.objective.counts(item.kind)]
    if instance.stands is None or instance.network.given:
        return counted_items
    return with_standing(counted_items, standing_units(instance))


def standing_units(instance: Instance) -> Counter[tuple[str, str]]:
    """How many units of each product stand, GPUs included."""
    stands = instance.stands
    if stands is None:
        return Counter()
    hb = stands.domain_in(instance.network)
    assert hb is not None, "checked as soon as the instance is read"
    gpu = stands.gpu or instance.cluster.gpu.name
    return Counter(_standing_units(stands, hb, instance.network.discipline, gpu))


@lru_cache(maxsize=64)
def _standing_units(
    stands: Existing, hb: HbDomain, discipline: Discipline, gpu: str
) -> dict[tuple[str, str], int]:
    family = family_of(stands, stands.gpus, hb, discipline, "existing")
    units: dict[tuple[str, str], int] = {("gpu", gpu): stands.gpus}
    for (kind, name), count in counted_units(family, family.uplink_choices[0]).items():
        units[kind, name] = count
    return units


def with_standing(items: Iterable[LineItem], stock: Counter[tuple[str, str]]) -> list[LineItem]:
    """The same, with the units that stand at no price, which are taken out of `stock`; GPUs that
    train take theirs first.
    """
    parts = []
    for item in items:
        product = ("gpu" if item.idle else item.kind), item.name
        held = min(stock[product], item.units)
        stock[product] -= held
        parts += [
            item._replace(units=held, unit_usd=0.0, standing=True),
            item._replace(units=item.units - held),
        ]
    return [part for part in parts if part.units]


def domain_lines(gpu: Gpu, hb: HbDomain, gpus: int, installed: int) -> list[Item]:
    """GPUs that train, HB domains, and GPUs that stay idle, as lines of a bill."""
    return [item.line for item in domain_items(gpu, hb, gpus, installed)]


def domain_items(gpu: Gpu, hb: HbDomain, gpus: int, installed: int) -> tuple[LineItem, ...]:
    """GPUs that train, HB domains, and GPUs that stay idle."""
    return (
        LineItem("gpu", gpu.name, gpus, gpu.usd, gpu.w),
        LineItem("hb", hb.name, installed, hb.usd_per_gpu, hb.w_per_gpu),
        LineItem("hb", gpu.name, installed - gpus, gpu.usd, gpu.w, idle=True),
    )


def included_lines(instance: Instance, lines: Iterable[Item]) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    return tuple(item for item in lines if item.count and instance.objective.counts(item.kind))


def total(objective: Objective, items: tuple[Item, ...]) -> Cost:
    """The sums of a bill."""
    capex_usd = math.fsum(item.usd for item in items)
    power_w = math.fsum(item.w for item in items)
    return Cost(
        capex_usd=capex_usd,
        power_w=power_w,
        tco_usd=owned_usd(objective, capex_usd, power_w),
        items=items,
    )


def cost_of(instance: Instance, family: Family, uplinks: int) -> Cost:
    """What a design costs."""
    return total(instance.objective, bill(instance, family, uplinks))


def racks(family: Family) -> int | None:
    """Racks that the HB domains fill, where the catalog knows."""
    return racks_of(family.hb, family.domains + family.spare_domains)


def racks_of(hb: HbDomain, domains: int) -> int | None:
    """Racks that so many HB domains fill, where the catalog knows."""
    return None if hb.racks is None else math.ceil(domains * hb.racks)


def within_limits(instance: Instance, family: Family, cost: Cost) -> bool:
    """Whether a design keeps the instance's limits, exactly."""
    return keeps_limits(instance.limits, cost, racks(family))


def keeps_limits(limits: Limits, cost: Cost, racks: int | None) -> bool:
    """Whether a bill and a number of racks keep limits, exactly."""
    return all(
        use <= cap
        for use, cap in limits.against(usd=cost.capex_usd, w=cost.power_w, racks=racks).values()
    )


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """fixed + uplink·u + spine·s units of every item on the bill, with s the spines of one plane.

    Of modules that hold several links an uplink takes a share.
    """

    units: dict[Key, LineItem]
    fixed: Shares
    uplink: Shares
    spine: Shares

    @property
    def each(self) -> tuple[tuple[Key, Affine], ...]:
        """The units of every item as an affine function."""
        parts = (self.fixed, self.uplink, self.spine)
        return tuple((key, Affine(*(part.get(key, 0) for part in parts))) for key in self.units)

    def price(self, objective: Objective, kind: ObjectiveKind) -> Affine:
        """Capex (USD), power (W) or tco (USD) as an affine function."""
        unit = unit_worth(objective, kind, self.units.values())

        def worth(units: Mapping[Key, float]) -> float:
            return math.fsum(unit[key] * count for key, count in units.items() if key in unit)

        return Affine(fixed=worth(self.fixed), uplink=worth(self.uplink), spine=worth(self.spine))


def unit_worth(
    objective: Objective, kind: ObjectiveKind, items: Iterable[LineItem]
) -> dict[Key, float]:
    """What a unit of each item is worth: capex (USD), power (W) or tco (USD)."""
    return {item.key: weigh(objective, item.unit_usd, item.unit_w, kind) for item in items}


def listed_units(instance: Instance) -> Iterator[LineItem]:
    """A unit of each product that new networks may have, at the prices of an instance."""
    network, gpu = instance.network, instance.cluster.gpu
    for hb in network.hb_domains:
        yield from domain_items(gpu, hb, 1, 2)
    yield from (LineItem("nic", nic.name, 1, nic.usd, nic.w) for nic in network.nics)
    yield from (LineItem("switch", box.name, 1, box.usd, box.w) for box in network.switches)
    yield from (LineItem("optics", optic.name, 1, optic.usd, optic.w) for optic in network.optics)
    for one in network.fibre:
        yield from (LineItem("fibre", name, 1, usd, 0.0) for name, usd in one.sold)


def open_bill(instance: Instance, family: Family) -> Quantities:
    """The bill of a family with its uplinks open.

    Networks of a family differ in uplinks and, on two tiers, in spines: where there are several, no
    last module of a switch is filled otherwise.
    """
    min_uplinks, max_uplinks = family.uplink_choices[0], family.uplink_choices[-1]
    items = {item.key: item for item in line_items(instance, family, min_uplinks)}
    uplink, spine = Shares(int), Shares(int)
    if max_uplinks > min_uplinks:
        if family.tiers == 2:
            spine["switch", family.switches[1].name] = family.all_planes
        more_spines = family.spines(max_uplinks) - family.spines(min_uplinks)
        more_units = counted_units(family, max_uplinks)
        for key, units in more_units.items():
            if key in items:
                added = units - items[key].units - spine[key] * more_spines
                # whole where it is
                quotient, rest = divmod(added, max_uplinks - min_uplinks)
                uplink[key] = added / (max_uplinks - min_uplinks) if rest else quotient
    # What is left of the bill at the fewest uplinks is constant.
    spines = family.spines(min_uplinks)
    fixed = Shares(
        int,
        {
            key: item.units - uplink[key] * min_uplinks - spine[key] * spines
            for key, item in items.items()
        },
    )
    return Quantities(units=items, fixed=fixed, uplink=uplink, spine=spine)


class Affine(NamedTuple):
    """fixed + uplink·u + spine·s, with s the spines of one plane."""

    fixed: float
    uplink: float
    spine: float

    def __truediv__(self, by: float) -> Affine:
        return Affine(fixed=self.fixed / by, uplink=self.uplink / by, spine=self.spine / by)

    def at(self, family: Family, uplinks: Any) -> Any:
        """The value at u uplinks and the spines they need; u is a number or an array."""
        return self.fixed + self.uplink * uplinks + self.spine * family.spines(uplinks)


def price(instance: Instance, family: Family, kind: ObjectiveKind) -> Affine:
    """A family's capex (USD), power (W) or tco (USD) as an affine function."""
    return open_bill(instance, family).price(instance.objective, kind)


def least_worth(instance: Instance, family: Family, kind: ObjectiveKind) -> float:
    """A family's capex (USD), power (W) or tco (USD) with its fewest uplinks, up to rounding."""
    items = line_items(instance, family, family.uplink_choices[0])
    return math.fsum(
        item.units * weigh(instance.objective, item.unit_usd, item.unit_w, kind) for item in items
    )


def resources(instance: Instance, family: Family) -> dict[str, Affine]:
    """What a family uses of each limit the instance sets, in the unit of the limit."""
    if instance.limits == Limits():
        return {}
    counts = open_bill(instance, family)
    usd, w = (counts.price(instance.objective, kind) for kind in ("capex", "power"))
    count = racks(family)
    filled = None if count is None else Affine(fixed=float(count), uplink=0.0, spine=0.0)
    return {
        key: use for key, (use, _) in instance.limits.against(usd=usd, w=w, racks=filled).items()
    }
