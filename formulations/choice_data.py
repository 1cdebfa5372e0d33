"""The numbers of a partition problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Discount = Literal["all-units", "incremental"]
Bracket = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Product:
    r"""What a product costs by the quantity bought over all workloads, in one phase where a cluster
    grows in phases.

    Bracket b begins at the quantity `start[b]` and has the unit price `usd[b]`; the first begins at
    0, and prices fall. An "all-units" price holds for every unit bought, an "incremental"
    one for the units of its bracket only:

    .. math:: \text{bill}(q) = \min_b \; g_b + p_b \max(q, t_b), \qquad
        g_b = \begin{cases} 0 & \text{all units} \\
            g_{b-1} + (p_{b-1} - p_b) \, t_b & \text{incremental} \end{cases}

    For an incremental discount this is the concave bill itself. With all units it is the least bill
    of q units or more: whoever needs fewer than a threshold may buy the threshold and leave the
    rest aside, so more never costs less.

    Of a product that `rises` the units of the first bracket stand already and cost nothing. Its
    bill is convex, the largest of what the brackets would charge.

    `predecessor` is the position of the same product in the phase before: units bought there may
    wait for this one. A product of one price then has the least price so far, which is what units
    first needed in its phase cost.
    """

    name: str
    start: Floats
    usd: Floats
    discount: Discount = "all-units"
    predecessor: int | None = None

    @cached_property
    def offsets(self) -> Floats:
        """g_b: what the bill of each bracket has beside its price times its quantity (USD)."""
        return bracket_offsets(self.start, self.usd, self.discount)

    @cached_property
    def brackets(self) -> tuple[Bracket, ...]:
        """Price of a unit, threshold and g_b of each bracket."""
        return tuple(
            zip(self.usd.tolist(), self.start.tolist(), self.offsets.tolist(), strict=True)
        )

    @property
    def rises(self) -> bool:
        """Whether units beyond those that stand cost more than these."""
        return bool(self.usd[-1] > self.usd[0])

    @property
    def slopes(self) -> tuple[float, float]:
        """What a unit adds to the bill at least and at most (USD): nothing where it reaches a price
        for all units.
        """
        if self.rises:
            return float(self.usd[0]), float(self.usd[-1])
        # One unit less may miss the threshold of the last price for all units, which saves nothing
        # for sure.
        spare = self.discount == "all-units" and len(self.usd) > 1
        return 0.0 if spare else float(self.usd[-1]), float(self.usd[0])

    def bill(self, quantity: float) -> float:
        """The least bill of this many units or more (USD)."""
        if self.rises:
            return float((self.offsets + self.usd * quantity).max())
        # In a bracket at least its threshold is bought, spare units at its price too, so the least
        # bracket wins.
        return float((self.offsets + self.usd * np.maximum(quantity, self.start)).min())


def bracket_offsets(start: Floats, usd: Floats, discount: Discount) -> Floats:
    """g_b of every bracket (USD), as `Product` has it."""
    if discount == "all-units":
        return np.zeros(len(usd))
    return np.cumsum(np.append(0.0, -np.diff(usd) * start[1:]))


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Products of which at most `max_products` may be in use; in phases those of the last one stand
    for all.
    """

    name: str
    products: Ints
    max_products: int


@dataclass(frozen=True, kw_only=True)
class LimitedUse:
    """A limited resource: its use by each option (O,) and by one switch of each core, in the order
    of the cores.

    Where a cluster grows, each phase has such a limit on the same `resource`. `scale` is what one
    of the resource's own unit is in that of the limit, as 1e-6 for watts in MW. Limits of one `key`
    are one number, which holds in each of their phases.
    """

    name: str
    key: str
    use: Floats
    cap: float
    core: tuple[float, ...] = ()
    resource: str = ""
    phase: int = 0
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class CoreLayer:
    """Switches of a layer shared by the workloads that join it, at one site and in one phase.

    `up` (O,) counts the core ports an option needs, 0 for one that does not join. A core switch has
    `ports` of them, is `quantity` units of `product`, and adds `opex` to the objective beside its
    capex. `predecessor` is the position of the same core in the phase before, whose switches stay.
    """

    product: int
    ports: int
    up: Floats
    opex: float = 0.0
    quantity: float = 1.0
    predecessor: int | None = None


@dataclass(frozen=True, kw_only=True)
class ScenarioCosts:
    """One way prices may turn out, and the least objective then.

    Shapes as in `ChoiceData`: `usd` and `opex` (O,), `prices` the brackets of each product,
    `core` what a switch of each core adds to the objective beside its capex.
    """

    usd: Floats
    opex: Floats
    prices: tuple[Floats, ...]
    core: tuple[float, ...]
    min_value: float


@dataclass(frozen=True, kw_only=True)
class ChoiceData:
    """Options of workloads, one of which each workload gets, and what couples them.

    Arrays of shape (O,) belong to options. `usd` is the capex of what is not among the products,
    `opex` the objective beside capex, `quantity` (O, P) the units of each product; in a phase,
    units beyond those of the phase before. The objective is `weight` times capex, plus `other`;
    with `scenarios` it is the largest excess over the best in any of them. Nothing here is negative
    but `opex`.
    """

    workloads: int
    workload: Ints
    usd: Floats
    opex: Floats
    quantity: Floats
    products: tuple[Product, ...]
    kinds: tuple[Kind, ...] = ()
    limits: tuple[LimitedUse, ...] = ()
    budget: float | None = None
    weight: float = 1.0
    cores: tuple[CoreLayer, ...] = ()
    scenarios: tuple[ScenarioCosts, ...] = ()

    @cached_property
    def products_by_scenario(self) -> tuple[tuple[Product, ...], ...]:
        """The products at the prices of each scenario."""
        return tuple(
            tuple(
                replace(one, usd=usd)
                for one, usd in zip(self.products, scenario.prices, strict=True)
            )
            for scenario in self.scenarios
        )

    @cached_property
    def growths(self) -> tuple[tuple[int, ...], ...]:
        """Each product in all its phases, the first one first."""
        earlier = {product.predecessor for product in self.products}
        return tuple(
            tuple(self.chain(p)[::-1]) for p in range(len(self.products)) if p not in earlier
        )

    def chain(self, product: int) -> list[int]:
        """A product in its phase and in those before, the last phase first."""
        chain, earlier = [product], self.products[product].predecessor
        while earlier is not None:
            chain.append(earlier)
            earlier = self.products[earlier].predecessor
        return chain

    def uses(self, product: int, rows: Ints | slice = slice(None)) -> Bools:
        """Which options, or some of them, use a product, in its phase or before; joining the core
        is to use its product (O,).
        """
        columns = self.chain(product)
        is_used = np.asarray((self.quantity[rows][:, columns] > 0).any(axis=1))
        for core in self.cores:
            if core.product in columns:
                is_used = is_used | (core.up[rows] > 0)
        return is_used

    @property
    def most_core(self) -> tuple[int, ...]:
        """Switches of each core that serve every workload's option of most up-links."""
        return tuple(math.ceil(self.largest(core.up).sum() / core.ports) for core in self.cores)

    def largest(self, values: Floats) -> Floats:
        """The largest value among the options of each workload, 0 without options (W,)."""
        maxima = np.zeros(self.workloads)
        np.maximum.at(maxima, self.workload, values)
        return maxima

    def max_units(self, product: int) -> Floats:
        """The most units each workload could use, and last the cores (W + 1,)."""
        pairs = zip(self.cores, self.most_core, strict=True)
        cores = sum(
            core.quantity * max_switches for core, max_switches in pairs if core.product == product
        )
        return np.append(self.largest(self.quantity[:, product]), cores)

    def ends(self, product: int) -> Floats:
        """Where each bracket of a product ends (units), by equation (P7)."""
        start, following = self.products[product].start, self.following(product)
        total = sum(float(self.max_units(p).sum()) for p in following)
        # Beyond the next threshold the next bracket is no dearer, and beyond the total nobody needs
        # any.
        end: Floats = np.maximum(start, np.minimum(np.append(start[1:], np.inf), total))
        return end

    def following(self, product: int) -> list[int]:
        """A product in its phase and in those after, for which it may be bought ahead."""
        phases = [product]
        for p, candidate in enumerate(self.products):  # a phase stands after the phase before it
            if candidate.predecessor in phases:
                phases.append(p)
        return phases
