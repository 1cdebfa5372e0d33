"""What options use of everything that couples them, as arrays of the formulation; what those that
are chosen cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from operator import mul

import numpy as np

from coopt.instance.couplings import Site
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance, Objective, question_on
from coopt.network.cores import core_switch
from coopt.network.growth import (
    bought_share,
    energy_usd_per_w,
    factor,
    grows_alone,
    support_share,
)
from coopt.network.parts import Cap, PricedProduct, caps_of, electricity_of, priced_products, weigh
from formulations.choice_data import (
    Bracket,
    ChoiceData,
    CoreLayer,
    Floats,
    Ints,
    Kind,
    LimitedUse,
    Product,
)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The places and times of a question: phases, sites, and the products that each phase buys.

    Columns of products go phase by phase, each with all products in the order of `goods`.
    """

    instance: Instance

    @cached_property
    def goods(self) -> tuple[PricedProduct, ...]:
        """The products, GPUs last; where phases pay for idle GPUs as for HB domains, these are a
        product before.
        """
        *goods, gpu = priced_products(self.instance)
        idle = replace(gpu, kind="hb", name=self.instance.cluster.gpu.idle_name)
        return (*goods, idle, gpu) if self.idle_apart else (*goods, gpu)

    @cached_property
    def gpu_of_domain(self) -> dict[str, str]:
        """The GPU that each HB domain is sold with."""
        return {
            hb.name: question_on(self.instance, hb.name).cluster.gpu.name
            for hb in self.instance.network.hb_domains
        }

    @cached_property
    def place(self) -> dict[tuple[str, str], int]:
        """The position of each product among the goods, by kind and name."""
        return {(good.kind, good.name): g for g, good in enumerate(self.goods)}

    @cached_property
    def idle_apart(self) -> bool:
        """Whether idle GPUs are a product of their own."""
        return grows_alone(self.instance)

    @cached_property
    def caps(self) -> tuple[Cap, ...]:
        """The limits on sums over products."""
        caps = caps_of(self.instance)
        if not self.idle_apart:
            return caps
        return tuple(replace(cap, each=(*cap.each, cap.each[-1])) for cap in caps)

    @property
    def phases(self) -> int:
        """Phases; one where nothing grows."""
        return len(self.instance.years)

    @property
    def sites(self) -> tuple[Site | None, ...]:
        """Sites; None alone where there are none."""
        return self.instance.sites

    def objective(self, site: Site | None) -> Objective:
        """The objective at the electricity of a site."""
        return electricity_of(self.instance.objective, site)

    def usd_per_w(self, phase: int, site: Site | None) -> float:
        """Price of drawing a watt from a phase to the next at a site (USD/W)."""
        local = self.instance.model_copy(update={"objective": self.objective(site)})
        return energy_usd_per_w(local, phase)

    def per_w(self, phase: int, site: Site | None) -> float:
        """What a watt in a phase at a site adds to the objective."""
        kind = self.instance.objective.minimize
        return 0.0 if kind == "capex" else 1.0 if kind == "power" else self.usd_per_w(phase, site)

    @property
    def weight(self) -> float:
        """What a USD of purchase adds to the objective; where phases buy, their labour, and support
        beside it.
        """
        objective = self.instance.objective
        return (
            bought_share(self.instance)
            if objective.minimize == "tco"
            else weigh(objective, 1.0, 0.0)
        )

    @cached_property
    def usd(self) -> Floats:
        """The price of each product in each phase before volume prices (T, G)."""
        return np.array(
            [
                [good.usd[0] * factor(self.instance, t, good.kind) for good in self.goods]
                for t in range(self.phases)
            ]
        )

    @cached_property
    def support_usd(self) -> Floats:
        """What the support of a unit that stands takes in each phase (T, G)."""
        share = np.array([[support_share(self.instance, t)] for t in range(self.phases)])
        return np.asarray(self.usd * share, dtype=np.float64)

    @property
    def support(self) -> Floats:
        """What the support of a unit adds to the objective (T, G)."""
        return self.support_usd * float(self.instance.objective.minimize == "tco")

    def watts(self, units: Floats) -> Floats:
        """Power of units of all products (..., G)."""
        return np.asarray(units @ np.array([good.w for good in self.goods]))

    def column(self, phase: int, kind: str, name: str) -> int:
        """The column of a product in a phase."""
        return phase * len(self.goods) + self.place[kind, name]


@dataclass(frozen=True, kw_only=True, eq=False)
class OptionUses:
    """What options use, of whatever couples them: which slot each serves, at which site (O,), -1
    where there are none.

    GPUs that train, racks and ports of a core (O, T), units of products that stand (O, T, G),
    labour beside them (O,).
    """

    slots: int
    slot: Ints
    site: Ints
    gpus: Floats
    racks: Floats
    core_ports: Floats
    units: Floats
    labour_usd: Floats


def coupled(grid: Grid, uses: OptionUses) -> ChoiceData:
    """The numbers of options over phases and sites, at the prices of an instance."""
    instance, count = grid.instance, len(uses.slot)
    # A phase buys what stands beyond the phase before: ChoiceData counts what is bought, and
    # `uses` what stands.
    rises = np.diff(uses.units, axis=1, prepend=0.0)
    assert (rises >= 0).all(), "nothing is thrown away"
    watts, only_watts = grid.watts(uses.units), instance.objective.minimize == "power"
    per_w = np.array([[grid.per_w(t, site) for t in range(grid.phases)] for site in grid.sites])
    opex = (watts * per_w[uses.site]).sum(
        axis=1
    )  # -1, no site, is the only entry where there are none
    # `usd` holds labour, but its weight holds support and labour of purchases, neither of which
    # labour bears itself.
    opex += (uses.units * grid.support).sum(axis=(1, 2)) - (grid.weight - 1) * uses.labour_usd
    budget = instance.limits.sums.get("capex")
    cores = tuple(_cores(grid, uses))
    return ChoiceData(
        workloads=uses.slots,
        workload=uses.slot,
        usd=uses.labour_usd,
        opex=opex,
        quantity=rises.reshape(count, grid.phases * len(grid.goods)),
        products=tuple(products_of(grid, flat=only_watts and budget is None)),
        kinds=tuple(_kinds(grid)),
        limits=tuple(_limits(grid, uses, watts, cores)),
        budget=budget,
        weight=grid.weight,
        cores=cores,
    )


def products_of(grid: Grid, *, flat: bool) -> Iterator[Product]:
    """Each product in each phase, at one price where no bill counts; one without brackets has the
    least so far.
    """
    for t in range(grid.phases):
        for g, good in enumerate(grid.goods):
            so_far = [factor(grid.instance, earlier, good.kind) for earlier in range(t + 1)]
            # Without brackets to reach, units are bought ahead in the cheapest phase so far, which
            # sets their price.
            by = min(so_far) if flat or len(good.usd) == 1 else so_far[-1]
            earlier_product = (t - 1) * len(grid.goods) + g if t else None
            yield replace(product_of(good, by, flat=flat), predecessor=earlier_product)


def product_of(good: PricedProduct, by: float, *, flat: bool = False) -> Product:
    """A product at so many times its prices, or at one price alone."""
    begins, usd = ((0,), good.usd[:1]) if flat else (good.begins, good.usd)
    return Product(
        name=f"{good.kind} {good.name}",
        start=np.array(begins, dtype=np.float64),
        usd=np.array(usd, dtype=np.float64) * by,
        discount="all-units" if good.all_units else "incremental",
    )


def _kinds(grid: Grid) -> Iterator[Kind]:
    # What stands in the last phase contains what stood before, so its products are all that are
    # ever in use.
    last_phase = (grid.phases - 1) * len(grid.goods)
    for name, max_products in grid.instance.sharing.most_products.given.items():
        of_kind = np.array(
            [last_phase + g for g, good in enumerate(grid.goods) if good.kind == name]
        )
        yield Kind(name=name, products=of_kind, max_products=max_products)


def _cores(grid: Grid, uses: OptionUses) -> Iterator[CoreLayer]:
    """A core for each phase at each site, phase by phase."""
    switch = core_switch(grid.instance)
    if switch is None:
        return
    place = grid.column(0, "switch", switch.name)
    for t in range(grid.phases):
        ports = uses.core_ports[:, t]
        for s, site in enumerate(grid.sites):
            yield CoreLayer(
                product=grid.column(t, "switch", switch.name),
                ports=switch.radix,
                up=ports if site is None else np.where(uses.site == s, ports, 0.0),
                opex=grid.goods[place].w * grid.per_w(t, site) + float(grid.support[t, place]),
                predecessor=(t - 1) * len(grid.sites) + s if t else None,
            )


def _limits(
    grid: Grid, uses: OptionUses, watts: Floats, cores: Sequence[CoreLayer]
) -> Iterator[LimitedUse]:
    """GPUs, sums over products, racks of every phase, and power of its sites, by the names users
    know them by.
    """
    instance = grid.instance
    switches = [core.product % len(grid.goods) for core in cores]
    cap_uses = [(cap, cap.used(uses.units)) for cap in grid.caps]
    core_phase = [c // len(grid.sites) for c in range(len(cores))]
    for t, (year, (key, gpus)) in enumerate(
        zip(instance.years, instance.gpu_caps.items(), strict=True)
    ):
        in_year = "" if year is None else f" in {year:g}"
        yield LimitedUse(
            name=key, key=key, use=uses.gpus[:, t], cap=float(gpus), resource="gpus", phase=t
        )
        is_current = [core_phase[c] == t for c in range(len(cores))]
        for cap, use in cap_uses:
            core_uses = tuple(
                cap.each[place] / cap.scale * current
                for place, current in zip(switches, is_current, strict=True)
            )
            yield LimitedUse(
                name=f"{cap.key}{in_year}",
                key=cap.key,
                use=use[:, t],
                cap=cap.most,
                core=core_uses,
                resource=cap.name,
                phase=t,
                scale=1 / cap.scale,
            )
        if (max_racks := instance.limits.racks) is not None:
            yield LimitedUse(
                name=f"limits.racks{in_year}",
                key="limits.racks",
                use=uses.racks[:, t],
                cap=max_racks,
                resource="racks",
                phase=t,
            )
        for s, site in enumerate(grid.sites):
            if site is not None:
                pue = grid.objective(site).pue
                core = tuple(
                    grid.goods[place].w / 1e6 * pue * (current and c % len(grid.sites) == s)
                    for c, (place, current) in enumerate(zip(switches, is_current, strict=True))
                )
                use = np.where(uses.site == s, watts[:, t], 0.0) / 1e6 * pue
                yield LimitedUse(
                    name=f"power_mw of site {site.name}{in_year}",
                    key=f"power_mw of site {site.name}",
                    use=use,
                    cap=site.power_mw,
                    core=core,
                    resource=f"power_w of {site.name}",
                    phase=t,
                    scale=1e-6,
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class Worth:
    """Objective, capex and units of each product needed (P,) of options, one for each workload."""

    data: ChoiceData
    rows: Ints
    objective: float
    capex_usd: float
    quantity: Floats
    core_switches: tuple[int, ...]

    @cached_property
    def uses(self) -> dict[str, float]:
        """Use of each limited resource."""
        return {
            limit.name: (
                float(limit.use[self.rows].sum())
                + sum(a * n for a, n in zip(limit.core, self.core_switches, strict=False))
            )
            for limit in self.data.limits
        }

    @property
    def is_within(self) -> bool:
        """Whether all limits hold, up to rounding: whoever has bills written out asks these."""
        data, budget = self.data, self.data.budget
        return (
            (budget is None or self.capex_usd <= budget * (1 + REORDERED))
            and all(self.uses[limit.name] <= limit.cap * (1 + REORDERED) for limit in data.limits)
            and all(
                sum(bool(data.uses(p, self.rows).any()) for p in kind.products.tolist())
                <= kind.max_products
                for kind in data.kinds
            )
        )


def worth(data: ChoiceData, rows: Ints) -> Worth:
    """Cost and use of one option for each workload, with the core switches they need and the least
    bill.
    """
    switches = switches_of(data, rows)
    quantity = data.quantity[rows].sum(axis=0)
    for core, count in zip(data.cores, switches, strict=True):
        quantity[core.product] += core.quantity * (
            count - (0 if core.predecessor is None else switches[core.predecessor])
        )
    capex = float(data.usd[rows].sum()) + _bills(data, data.products, quantity)
    core_other = sum(core.opex * count for core, count in zip(data.cores, switches, strict=True))
    objective = data.weight * capex + float(data.opex[rows].sum()) + core_other
    if data.scenarios:
        objective = max(
            0.0, *(_regret(data, n, rows, switches, quantity) for n in range(len(data.scenarios)))
        )
    return Worth(
        data=data,
        rows=rows,
        objective=objective,
        capex_usd=capex,
        quantity=quantity,
        core_switches=switches,
    )


def switches_of(data: ChoiceData, rows: Ints) -> tuple[int, ...]:
    """Whole switches of each core with a port for every link, and no fewer than in the phase
    before.
    """
    switches: list[int] = []
    for core in data.cores:
        min_switches = 0 if core.predecessor is None else switches[core.predecessor]
        switches.append(max(-int(-core.up[rows].sum() // core.ports), min_switches))
    return tuple(switches)


def _regret(
    data: ChoiceData, n: int, rows: Ints, switches: Sequence[int], quantity: Floats
) -> float:
    """What a choice costs beyond the best one in a scenario."""
    scenario = data.scenarios[n]
    capex = float(scenario.usd[rows].sum()) + _bills(data, data.products_by_scenario[n], quantity)
    core = sum(opex * count for opex, count in zip(scenario.core, switches, strict=True))
    return data.weight * capex + float(scenario.opex[rows].sum()) + core - scenario.min_value


def _bills(data: ChoiceData, products: Sequence[Product], quantity: Floats) -> float:
    """The least bill of what is needed of all products, each in the phase that needs it or before
    (USD).
    """
    units, total_usd = quantity.tolist(), 0.0
    for growth in data.growths:  # purchases of all phases are decided together
        total_usd += orders([products[p] for p in growth], [units[p] for p in growth])[0]
    return total_usd


def orders(
    phases: Sequence[Product], units_needed: Sequence[float]
) -> tuple[float, tuple[float, ...]]:
    """The least bill of a product over its phases (USD), and how many units each phase buys.

    Given the bracket of every phase, bills and purchases are linear: at least its threshold is
    bought in each, and what is missing in some phase is bought in the cheapest phase so far, of
    equally cheap ones in the last. The best of all choices of brackets is the least bill.
    """
    if len(phases) == 1 and len(phases[0].usd) == 1:
        return float(phases[0].usd[0]) * units_needed[0], (units_needed[0],)
    if len(phases) == 1 and phases[0].rises:  # none is bought ahead or spare
        return phases[0].bill(units_needed[0]), (units_needed[0],)
    return _least_order(tuple(phase.brackets for phase in phases), tuple(units_needed))


@lru_cache(maxsize=1 << 14)
def _least_order(
    phases: tuple[tuple[Bracket, ...], ...], units_needed: tuple[float, ...]
) -> tuple[float, tuple[float, ...]]:
    return min(
        (_in_brackets(chosen, units_needed) for chosen in product(*phases)),
        key=lambda order: (order[0], sum(order[1])),
    )


def _in_brackets(
    chosen: Sequence[Bracket], units_needed: Sequence[float]
) -> tuple[float, tuple[float, ...]]:
    """The least bill with a bracket chosen in every phase, and the purchases."""
    usd = [price for price, _, _ in chosen]
    purchases = [start for _, start, _ in chosen]
    # With brackets given a later phase has no say in what an earlier one lacks, so phases are
    # filled up in order.
    for t in range(len(chosen)):
        shortfall = sum(units_needed[: t + 1]) - sum(purchases[: t + 1])
        if shortfall > 0:
            purchases[min(range(t, -1, -1), key=usd.__getitem__)] += shortfall
    offset = sum(bracket_offset for _, _, bracket_offset in chosen)
    return offset + sum(map(mul, usd, purchases)), tuple(purchases)
