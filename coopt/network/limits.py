"""The limits of an instance, checked on what is built."""

from __future__ import annotations

from coopt.instance.schema import Instance, Limits
from coopt.network.family import Family
from coopt.network.parts import racks
from coopt.plan.schema import Cost


def within_limits(instance: Instance, family: Family, cost: Cost) -> bool:
    """Whether a design keeps the instance's limits, exactly."""
    return keeps(instance.limits, cost, racks(family))


def keeps(limits: Limits, cost: Cost, racks: int | None) -> bool:
    """Whether a bill and a number of racks keep limits, exactly."""
    if limits.racks is not None:
        assert racks is not None, "the instance refuses racks limits without rack counts"
        if racks > limits.racks:
            return False
    return (limits.capex_usd is None or cost.capex_usd <= limits.capex_usd) and (
        limits.power_mw is None or cost.power_w / 1e6 <= limits.power_mw
    )
