"""What chosen options amount to, from the data alone."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.partition_data import Floats, Ints, PartitionData

ROUNDING = 1e-12  # of a limit, which sums in another order may exceed


@dataclass(frozen=True, kw_only=True, eq=False)
class Worth:
    """Objective, capex, units of each product in use (P,), use of each limited resource; whether all limits hold.

    Limits hold here up to rounding: whoever has bills written out asks these.
    """

    objective: float
    capex_usd: float
    quantity: Floats
    core_switches: int
    used: dict[str, float]
    within: bool


def worth(data: PartitionData, chosen: Ints) -> Worth:
    """Cost and use of one option for each workload, with the core switches they need and the least bill."""
    core = data.core
    switches = 0 if core is None else -int(-core.up[chosen].sum() // core.ports)
    quantity = data.quantity[chosen].sum(axis=0)
    if core is not None:
        quantity[core.product] += core.quantity * switches
    bills = [product.bill(float(q)) for product, q in zip(data.products, quantity, strict=True)]
    capex = float(data.usd[chosen].sum()) + sum(bills)
    other = float(data.other[chosen].sum()) + (0.0 if core is None else core.other * switches)
    used = {limit.name: float(limit.use[chosen].sum()) + limit.core * switches for limit in data.limits}
    in_use = [bool(data.uses(p)[chosen].any()) for p in range(len(data.products))]
    return Worth(
        objective=data.weight * capex + other,
        capex_usd=capex,
        quantity=quantity,
        core_switches=switches,
        used=used,
        within=(data.budget is None or capex <= data.budget * (1 + ROUNDING))
        and all(used[limit.name] <= limit.cap * (1 + ROUNDING) for limit in data.limits)
        and all(sum(in_use[p] for p in kind.products) <= kind.most for kind in data.kinds),
    )
