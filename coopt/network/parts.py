"""The bill of a design: parts, price and power, the limits it keeps, and how it moves with the
uplinks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from coopt.instance.couplings import Site
from coopt.instance.hardware import IDLE, Gpu, HbDomain, Nic, Optic, Switch
from coopt.instance.schema import CostKind, Instance, Limits, Objective, ObjectiveKind
from coopt.network.family import Family
from coopt.network.modules import end_modules
from coopt.plan.couplings import SitePower
from coopt.plan.parts import line
from coopt.plan.schema import Cost, Item

HOURS_PER_YEAR = 8760
Key = tuple[str, str]  # kind and name of an item
Shares = defaultdict[Key, float]
Units = defaultdict[tuple[CostKind, str], int]


def weigh(objective: Objective, usd: float, w: float, kind: ObjectiveKind | None = None) -> float:
    """A price and a power in the unit of the objective: USD for capex and tco, W for power."""
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


class LineItem(NamedTuple):
    """So many units of a product at the price (USD) and the power (W) of one; `idle` GPUs come with
    HB domains.
    """

    kind: CostKind
    name: str
    units: int
    unit_usd: float
    unit_w: float
    idle: bool = False

    @property
    def key(self) -> Key:
        """Kind and name of its line of a bill."""
        return self.kind, f"{self.name}{IDLE * self.idle}"

    @property
    def line(self) -> Item:
        """Its line of a bill."""
        return line(self.kind, self.name, self.units, self.unit_usd, self.unit_w, idle=self.idle)


def counted_units(family: Family, uplinks: int) -> Units:
    """How many units of each product a network takes, by kind and name; GPUs are in HB domains."""
    units = Units(int)
    units["hb", family.hb.name] = family.installed_gpus
    units["nic", family.nic.name] = family.nic_count + family.spare_nics
    chain = family.chain(uplinks)
    for tier, switch in zip(chain.levels, family.switches, strict=True):
        units["switch", switch.name] += tier.switches
    for ends, count in zip(family.optics, end_modules(family, chain), strict=True):
        units["optics", ends.below.name] += count.below
        units["optics", ends.above.name] += count.above
    return units


def bill(instance: Instance, family: Family, uplinks: int) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    return tuple(item.line for item in line_items(instance, family, uplinks))


def line_items(instance: Instance, family: Family, uplinks: int) -> list[LineItem]:
    """What is bought and `include` counts; nothing with a count of 0."""
    products: dict[tuple[CostKind, str], Nic | Optic | Switch] = {
        ("nic", family.nic.name): family.nic,
        **{("switch", switch.name): switch for switch in family.switches},
        **{("optics", optic.name): optic for ends in family.optics for optic in ends},
    }
    units = counted_units(family, uplinks)
    items = [
        *_domain_items(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus),
        *(LineItem(*key, units[key], product.usd, product.w) for key, product in products.items()),
    ]
    return [item for item in items if item.units and item.kind in instance.objective.include]


def domain_lines(gpu: Gpu, hb: HbDomain, gpus: int, installed: int) -> list[Item]:
    """GPUs that train, HB domains, and GPUs that stay idle."""
    return [item.line for item in _domain_items(gpu, hb, gpus, installed)]


def _domain_items(gpu: Gpu, hb: HbDomain, gpus: int, installed: int) -> tuple[LineItem, ...]:
    return (
        LineItem("gpu", gpu.name, gpus, gpu.usd, gpu.w),
        LineItem("hb", hb.name, installed, hb.usd_per_gpu, hb.w_per_gpu),
        LineItem("hb", gpu.name, installed - gpus, gpu.usd, gpu.w, idle=True),
    )


def included_lines(instance: Instance, lines: Iterable[Item]) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    return tuple(item for item in lines if item.count and item.kind in instance.objective.include)


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

    def price(self, objective: Objective, kind: ObjectiveKind) -> Affine:
        """Capex (USD), power (W) or tco (USD) as an affine function."""
        unit = {
            key: weigh(objective, item.unit_usd, item.unit_w, kind)
            for key, item in self.units.items()
        }

        def worth(units: Mapping[Key, float]) -> float:
            return math.fsum(unit[key] * count for key, count in units.items() if key in unit)

        return Affine(fixed=worth(self.fixed), uplink=worth(self.uplink), spine=worth(self.spine))


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
                uplink[key] = _share_of(added, max_uplinks - min_uplinks)
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


def _share_of(units: float, of: float) -> float:
    """The share of units in each of so many, whole where it is."""
    return units // of if units % of == 0 else units / of


@dataclass(frozen=True, kw_only=True)
class Affine:
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
