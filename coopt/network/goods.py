"""What islands are made of: products by name, with their prices by quantity."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from coopt.instance.schema import CostKind, Instance
from coopt.instance.sharing import Discount


@dataclass(frozen=True, kw_only=True)
class Good:
    """A product: USD and W of a unit as far as `include` counts them, and its brackets.

    Bracket b begins at `begins[b]` units, the first at 0, and has the unit price `usd[b]`. With `all_units` a price
    holds for every unit, else for the units of its bracket.
    """

    kind: CostKind
    name: str
    begins: tuple[int, ...]
    usd: tuple[float, ...]
    w: float
    all_units: bool

    @property
    def slopes(self) -> tuple[float, float]:
        """What a unit adds to the bill at least and at most (USD); nothing where it reaches a price for all units."""
        return 0.0 if self.all_units and len(self.usd) > 1 else self.usd[-1], self.usd[0]

    def purchases(self, units: int) -> list[tuple[int, float]]:
        """The least bill of that many units or more, as (units, price of each in USD); spare units come last.

        More than needed is bought where a price for all units makes the threshold cheaper; of equal bills the one
        with fewer spare units counts.
        """
        if not self.all_units:
            ends = (*self.begins[1:], units)
            steps = zip(self.begins, ends, self.usd, strict=True)
            return [(min(end, units) - begin, usd) for begin, end, usd in steps if begin < min(end, units)]
        brackets = zip(self.begins, self.usd, strict=True)
        bought, usd = min(((max(units, begin), usd) for begin, usd in brackets), key=lambda b: (b[0] * b[1], b[0]))
        return [(count, usd) for count in (units, bought - units) if count]


def goods_of(instance: Instance) -> tuple[Good, ...]:
    """Every product that islands of an instance may use, GPUs last."""
    network, gpu = instance.network, instance.cluster.gpu
    listed: list[tuple[CostKind, str, float, float]] = [
        *(("hb", hb.name, hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains),
        *(("nic", nic.name, nic.usd, nic.w) for nic in network.nics),
        *(("switch", switch.name, switch.usd, switch.w) for switch in network.switches),
        *(("optics", optic.name, optic.usd, optic.w) for optic in network.optics),
    ]
    found = [_good(instance, *one, counted=one[0] in instance.objective.include) for one in listed]
    idle_or_active = any(kind in instance.objective.include for kind in ("hb", "gpu"))
    return (*found, _good(instance, "gpu", gpu.name, gpu.usd, gpu.w, counted=idle_or_active))


def _good(instance: Instance, kind: CostKind, name: str, usd: float, w: float, *, counted: bool) -> Good:
    discount = next((d for d in instance.sharing.discount if (d.kind, d.item) == (kind, name)), None)
    list_price = ((0,), (usd if counted else 0.0,))
    begins, prices = list_price if discount is None else _brackets(discount, usd)
    return Good(
        kind=kind,
        name=name,
        begins=begins,
        usd=prices,
        w=w if counted else 0.0,
        all_units=discount is not None and discount.applies == "all-units",
    )


def _brackets(discount: Discount, usd: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Thresholds and prices from 0 units on; a price that stays opens no bracket."""
    pairs = [(0, usd), *zip(discount.begins, discount.prices(usd), strict=True)]
    kept = [pairs[0], *(later for earlier, later in pairwise(pairs) if later[1] < earlier[1])]
    begins, prices = zip(*kept, strict=True)
    return begins, prices
