"""The numbers of a partition problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Discount = Literal["all-units", "incremental"]


@dataclass(frozen=True, kw_only=True)
class Product:
    r"""What a product costs by the quantity bought over all workloads.

    Bracket b begins at the quantity `start[b]` and has the unit price `usd[b]`; the first begins at 0, and prices do
    not rise. An "all-units" price holds for every unit bought, an "incremental" one for the units of its bracket only:

    .. math:: \text{bill}(q) = \min_b \; g_b + p_b \max(q, t_b), \qquad
        g_b = \begin{cases} 0 & \text{all units} \\ g_{b-1} + (p_{b-1} - p_b) \, t_b & \text{incremental} \end{cases}

    For an incremental discount this is the concave bill itself. With all units it is the least bill of q units or more:
    whoever needs fewer than a threshold may buy the threshold and leave the rest aside, so more never costs less.
    """

    name: str
    start: Floats
    usd: Floats
    discount: Discount = "all-units"

    @property
    def given(self) -> Floats:
        """g_b: what the bill of each bracket has beside its price times its quantity (USD)."""
        if self.discount == "all-units":
            return np.zeros(len(self.usd))
        return np.cumsum(np.append(0.0, -np.diff(self.usd) * self.start[1:]))

    @property
    def slopes(self) -> tuple[float, float]:
        """What a unit adds to the bill at least and at most (USD): nothing where it reaches a price for all units."""
        spare = self.discount == "all-units" and len(self.usd) > 1
        return 0.0 if spare else float(self.usd[-1]), float(self.usd[0])

    def bill(self, quantity: float) -> float:
        """The least bill of this many units or more (USD)."""
        return float((self.given + self.usd * np.maximum(quantity, self.start)).min())


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Products of which at most `most` may be in use."""

    name: str
    products: Ints
    most: int


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A limited resource: its use by each option (O,) and by one core switch."""

    name: str
    use: Floats
    cap: float
    core: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Core:
    """Switches of a layer shared by the workloads that join it.

    `up` (O,) counts the core ports an option needs, 0 for one that does not join. A core switch has `ports` of them, is
    `quantity` units of `product`, and adds `other` to the objective beside its capex.
    """

    product: int
    ports: int
    up: Floats
    other: float = 0.0
    quantity: float = 1.0


@dataclass(frozen=True, kw_only=True)
class PartitionData:
    """Options of workloads, one of which each workload gets, and what couples them.

    Arrays of shape (O,) belong to options. `usd` is the capex of what is not among the products, `other` the objective
    beside capex, `quantity` (O, P) the units of each product. The objective is `weight` times capex, plus `other`.
    Nothing here is negative but `other`.
    """

    workloads: int
    workload: Ints
    usd: Floats
    other: Floats
    quantity: Floats
    products: tuple[Product, ...]
    kinds: tuple[Kind, ...] = ()
    limits: tuple[Limit, ...] = ()
    budget: float | None = None
    weight: float = 1.0
    core: Core | None = None

    def uses(self, product: int) -> Bools:
        """Which options use a product; joining the core is to use its product (O,)."""
        held = self.quantity[:, product] > 0
        return held | (self.core.up > 0) if self.core is not None and self.core.product == product else held

    @property
    def most_core(self) -> int:
        """Core switches that serve every workload's option of most up-links."""
        return 0 if self.core is None else math.ceil(self.largest(self.core.up).sum() / self.core.ports)

    def largest(self, values: Floats) -> Floats:
        """The largest value among the options of each workload, 0 without options (W,)."""
        found = np.zeros(self.workloads)
        np.maximum.at(found, self.workload, values)
        return found

    def most(self, product: int) -> Floats:
        """The most units each workload could use, and last the core (W + 1,)."""
        core = self.core.quantity * self.most_core if self.core is not None and self.core.product == product else 0.0
        return np.append(self.largest(self.quantity[:, product]), core)

    def ends(self, product: int) -> Floats:
        """Where each bracket of a product ends (units), by equation (P7)."""
        start = self.products[product].start
        end: Floats = np.maximum(start, np.minimum(np.append(start[1:], np.inf), self.most(product).sum()))
        return end
