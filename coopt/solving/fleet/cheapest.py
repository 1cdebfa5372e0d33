"""How one network may grow at the least cost, and what planning phase by phase builds instead.

A unit that a phase needs first costs the least price so far. So what a network costs is a sum over
its phases, each of which depends on the uplinks of that phase and, by labour, on those before: the
least of all is the length of a shortest path through the uplinks of its phases. No network is
listed whose least is above that of another one within the limits.

The planner without foresight knows how many GPUs will come, so that leaves and ports suit the end,
and nothing of later bounds, workloads and prices. In each phase it adds what is cheapest then, and
buys nothing ahead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from coopt.instance.schema import BillKind, Instance
from coopt.instance.variants import workloads_of
from coopt.network.family import Family
from coopt.network.growth import link_labour_usd, retrofit
from coopt.network.laying import least_fibre_usd, with_least
from coopt.network.optics import values_of
from coopt.network.parts import racks
from coopt.network.placing import SINGLE_BAY
from coopt.network.plan_networks import design_of
from coopt.network.space import one_by_one
from coopt.plan.couplings import Myopic, MyopicStep
from coopt.plan.parts import Design
from coopt.solving.fleet.arrays import Grid
from coopt.solving.fleet.paths import Chain, IslandPath, stretched, with_cables
from coopt.solving.fleet.placed import Placed, fleet_bill, slots_of, units_at
from formulations.choice_data import Floats, Ints

BILL_KINDS: tuple[BillKind, ...] = ("capex", "power")

ROUNDING = 1e-9
"""Of what a network costs: sums in another order differ by less."""


def is_separable(instance: Instance) -> bool:
    """Whether what networks cost says which is best: there is one, and no price depends on how much
    is bought.
    """
    return (
        len(slots_of(instance)) == 1
        and instance.sites == (None,)
        and not instance.minimizes_regret
        and all(len(good.usd) == 1 for good in Grid(instance=instance).goods)
    )


def cheapest_paths(
    instance: Instance, chains: Sequence[Chain], check: Callable[[], None]
) -> list[IslandPath]:
    """Of every chain of networks that may be the cheapest its cheapest uplinks; none where nothing
    keeps the limits.

    Parameters
    ----------
    chains
        Networks of the phases that train, each with the uplinks that serve.
    check
        Called now and then; may raise.
    """
    grid, values = Grid(instance=instance), values_of(instance)
    priced_at = partial(_PricedChain, grid=grid, charges=standing_charges(grid))
    priced = [priced_at(chain=one) for chain in chains for one in _by_end(chain)]
    floors = [one.floor for one in priced]
    ceiling, found = math.inf, list[tuple[float, IslandPath]]()
    for n in sorted(range(len(priced)), key=floors.__getitem__):
        if floors[n] > ceiling * (1 + ROUNDING):
            break
        check()
        for laid in with_cables(instance, priced[n].chain, values, check, SINGLE_BAY):
            for usd, path in priced_at(chain=laid).candidates(ceiling * (1 + ROUNDING)):
                found.append((usd, path))
                ceiling = min(ceiling, usd)
    if math.isinf(ceiling):
        return []
    return [path for usd, path in found if usd <= ceiling * (1 + ROUNDING)]


def _by_end(chain: Chain) -> Iterator[Chain]:
    """A chain with each number of uplinks in the end alone, where lengths are to choose cables."""
    last = max(chain)
    ends = one_by_one(chain[last]) if chain[last].unlaid else (chain[last],)
    return (chain | {last: end} for end in ends)


@dataclass(frozen=True, kw_only=True)
class _PricedChain:
    """A network in its phases, and what it adds to the objective."""

    grid: Grid
    charges: Floats
    chain: Chain

    @cached_property
    def phases(self) -> list[int]:
        """The phases that train; the network stands as it is until the next of them."""
        return list(self.chain)

    @cached_property
    def menus(self) -> list[Ints]:
        """The uplinks that a leaf may have in each phase, and had in those before."""
        least, menus = 0, []
        for family in self.chain.values():
            menu = np.array(family.uplink_choices)
            menus.append(menu[menu >= least])
            least = int(menus[-1][0]) if len(menus[-1]) else least
        return menus

    @property
    def floor(self) -> float:
        """What it costs at least; infinite where its uplinks would have to fall."""
        if not all(len(menu) for menu in self.menus):
            return math.inf
        return sum(self._usd(k, int(menu[0])) for k, menu in enumerate(self.menus))

    @property
    def _menus_within(self) -> list[Ints]:
        """The uplinks of each phase that keep its limits."""
        each = zip(self.chain.values(), self.menus, strict=True)
        fitting = ([u for u in menu.tolist() if _fits(self.grid, one, u)] for one, menu in each)
        return [np.array(menu, dtype=np.int64) for menu in fitting]

    def candidates(self, most_usd: float) -> Iterator[tuple[float, IslandPath]]:
        """Cost and path: the cheapest uplinks of all or, where these are over a limit, of those
        within the limits of each phase; nothing where they cost more than so much.
        """
        for whole in (True, False):
            menus = self.menus if whole else self._menus_within
            if not all(len(menu) for menu in menus):
                return
            usd, uplinks = self._shortest(menus)
            if usd > most_usd:
                return
            path = stretched(
                dict(zip(self.phases, uplinks, strict=True)), self.chain, self.grid.phases
            )
            if fleet_bill(self.grid.instance, [Placed(slot=0, path=path, site=None)]).within:
                yield usd, path
                return

    def _usd(self, k: int, uplinks: int) -> float:
        """What the network of a phase adds until the next phase that trains, without labour; at
        least where lengths are to choose its cables.
        """
        family = self.chain[self.phases[k]]
        end = self.phases[k + 1] if k + 1 < len(self.phases) else self.grid.phases
        instance, kinds = self.grid.instance, BILL_KINDS if family.unlaid else ()
        least = [with_least(instance, family, kind) for kind in kinds]
        units = np.array([units_at(self.grid, one, uplinks) for one in least or [family]])
        charges = self.charges[:, self.phases[k] : end].sum(axis=1)
        fibre_usd = self._fibre_charge(charges) * least_fibre_usd(instance, family, uplinks)
        return float((units * charges).sum() + fibre_usd)

    def _fibre_charge(self, charges: Floats) -> float:
        """What a USD of fibre adds to the objective; nothing where the bill has none."""
        sold = [g for g, good in enumerate(self.grid.goods) if good.kind == "fibre" and good.usd[0]]
        return min((charges[0, g] / self.grid.goods[g].usd[0] for g in sold), default=0.0)

    def _shortest(self, menus: Sequence[Ints]) -> tuple[float, list[int]]:
        """The least cost of uplinks that never fall, and these."""
        families, instance = list(self.chain.values()), self.grid.instance
        costs = [np.array([self._usd(k, u) for u in menu.tolist()]) for k, menu in enumerate(menus)]
        follow: list[Ints] = []
        for k in range(len(menus) - 2, -1, -1):
            added = retrofit(families[k], families[k + 1])
            rate = link_labour_usd(instance, self.phases[k + 1])
            old, new = menus[k][:, None], menus[k + 1][None]
            links = added.leaves * (new - old) + added.trunks * (old // added.bundle)
            later = np.where(new >= old, rate * links + costs[k + 1], np.inf)
            follow.insert(0, np.argmin(later, axis=1))
            costs[k] = costs[k] + later.min(axis=1)
        row = int(np.argmin(costs[0]))
        usd, uplinks = float(costs[0][row]), [int(menus[0][row])]
        for after, menu in zip(follow, menus[1:], strict=True):
            row = int(after[row])
            uplinks.append(int(menu[row]))
        return usd, uplinks


def _fits(grid: Grid, family: Family, uplinks: int) -> bool:
    """Whether a network keeps the limits on what stands; what it uses never falls with uplinks."""
    units, most = units_at(grid, family, uplinks)[None], grid.instance.limits.racks
    return all(cap.used_exactly(units) <= cap.most for cap in grid.caps) and (
        most is None or (racks(family) or 0) <= most
    )


def standing_charges(grid: Grid) -> Floats:
    """What a unit of each product adds to the objective for standing in each phase, by its price
    and by its power (2, T, G), so that the sum over phases is what it costs.

    It is charged the least price so far and credited that of the next phase, in which it stands
    again: what is left is the price in the phase that needs it first.
    """
    phases = range(grid.phases)
    usd = np.minimum.accumulate(grid.usd, axis=0)
    left = usd - np.vstack([usd[1:], np.zeros_like(usd[:1])])
    watts = np.outer([grid.per_w(t, None) for t in phases], [good.w for good in grid.goods])
    return np.asarray([grid.weight * left + grid.support, watts], dtype=np.float64)


Begun = list[tuple[Chain, tuple[int, ...]]]
"""Chains of networks that begin with what is in place, and their uplinks so far."""


def without_foresight(instance: Instance, chains: Sequence[Chain], value: float | None) -> Myopic:
    """What planning phase by phase builds.

    Parameters
    ----------
    chains
        Networks in the phases whose bounds they meet, each with the uplinks that do.
    value
        The objective of the plan to compare with; None without one.
    """
    grid = Grid(instance=instance)
    begun: Begun = [(chain, ()) for chain in chains]
    steps: list[MyopicStep] = []
    cost = None
    for t, phase in enumerate(instance.phase):
        able = [
            (chain, (*history, u))
            for chain, history in begun
            if t in chain and (u := _fewest(grid, chain[t], history)) is not None
        ]
        if not able:
            reason = _dead_end(instance, begun, t, steps[-1].design if steps else None)
            return Myopic(steps=tuple(steps), value=None, saving=None, dead_end=reason)
        chain, uplinks = min(able, key=lambda one: _added(grid, *one))
        built = {phase: chain[phase] for phase in range(t + 1)}
        stands = stretched(dict(enumerate(uplinks)), built, grid.phases)
        bill = fleet_bill(instance, [Placed(slot=0, path=stands, site=None)], ahead=False)
        spent, design = bill.couplings.growth[t], design_of(chain[t], uplinks[-1])
        steps.append(
            MyopicStep(
                year=phase.year,
                design=design,
                capex_usd=spent.capex_usd,
                energy_usd=spent.energy_usd,
                work_usd=spent.work_usd,
            )
        )
        begun, cost = list(_in_place(grid, begun, uplinks[-1], design)), bill.cost
    assert cost is not None, "what grows has phases"
    own_value = cost.of(instance.objective.minimize)
    saving = None if value is None else own_value - value
    return Myopic(steps=tuple(steps), value=own_value, saving=saving, dead_end=None)


def _fewest(grid: Grid, family: Family, history: Sequence[int]) -> int | None:
    """The fewest uplinks that serve a phase over those that stand, within its limits; None where no
    number does.
    """
    least = history[-1] if history else 0
    uplinks = next((u for u in family.uplink_choices if u >= least), None)
    return uplinks if uplinks is not None and _fits(grid, family, uplinks) else None


def _added(grid: Grid, chain: Chain, uplinks: tuple[int, ...]) -> float:
    """What the last phase of these uplinks adds, with electricity and work where they count."""
    t = len(uplinks) - 1
    units = units_at(grid, chain[t], uplinks[t])
    new = units - (units_at(grid, chain[t - 1], uplinks[t - 1]) if t else 0.0)
    labour = (
        link_labour_usd(grid.instance, t)
        * retrofit(chain[t - 1], chain[t]).links(uplinks[t - 1], uplinks[t])
        if t
        else 0.0
    )
    running = float(units @ grid.support[t]) + grid.per_w(t, None) * float(grid.watts(units))
    return grid.weight * float(new @ grid.usd[t]) + labour + running


def _in_place(
    grid: Grid, begun: Begun, uplinks: int, design: Design
) -> Iterator[tuple[Chain, tuple[int, ...]]]:
    """Chains that stand as built, with their uplinks."""
    for chain, history in begun:
        family = chain.get(len(history))
        if (
            family is not None
            and (not history or history[-1] <= uplinks)
            and uplinks in family.uplink_choices
            and _fits(grid, family, uplinks)
            and _builds(design_of(family, uplinks)) == _builds(design)
        ):
            yield chain, (*history, uplinks)


def _builds(design: Design) -> object:
    """What a design builds; one HB domain buys no network, whatever is named."""
    return design if design.fabric.tiers else design.hb_domain


def _dead_end(instance: Instance, begun: Begun, t: int, design: Design | None) -> str:
    """Which phase cannot be served from what stands, and what it would have to keep."""
    phase = instance.phase[t]
    limits = (
        "the limits of the instance"
        if any(t in chain for chain, _ in begun)
        else "the time bounds of "
        + ", ".join(workload.name for workload in workloads_of(instance, phase))
    )
    start = "nothing" if design is None else f"{design.hb_domain.count:,} x {design.hb_domain.name}"
    return (
        f"in {phase.year:g} no network that grows from {start} to {phase.gpus:,} GPUs meets"
        f" {limits}"
    )
