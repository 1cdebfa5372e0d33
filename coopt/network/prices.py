"""What a thing adds to the objective."""

from __future__ import annotations

from collections.abc import Callable

from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Network, Objective, ObjectiveKind

HOURS_PER_YEAR = 8760


def weigh(objective: Objective, usd: float, w: float, kind: ObjectiveKind | None = None) -> float:
    """A price and a power in the unit of the objective: USD for capex and tco, W for power."""
    kind = kind or objective.minimize
    if kind == "power":
        return w
    return usd if kind == "capex" else usd + w * usd_per_w(objective)


def usd_per_w(objective: Objective) -> float:
    """Price of drawing one watt of IT power over the planned years."""
    return objective.years * HOURS_PER_YEAR / 1000 * objective.pue * objective.usd_per_kwh


def cheapest_optics(network: Network, objective: Objective, nic: Nic) -> tuple[Optic, ...]:
    """The cheapest optic of the NIC's rate for each level, as far up as one reaches."""
    return lightest_optics(network, nic, lambda optic: weigh(objective, optic.usd, optic.w))


def lightest_optics(network: Network, nic: Nic, weight: Callable[[Optic], float]) -> tuple[Optic, ...]:
    """The optic of the NIC's rate and of least weight, then price, then power, for each level that one reaches."""
    chosen: list[Optic] = []
    for reach_m in network.link_reach_m:
        fitting = [o for o in network.optics if o.gbit_s == nic.gbit_s and o.reach_m >= reach_m]
        if not fitting:
            break
        chosen.append(min(fitting, key=lambda optic: (weight(optic), optic.usd, optic.w)))
    return tuple(chosen)
