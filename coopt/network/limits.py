"""The limits of an instance, checked on a design."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import racks
from coopt.plan.schema import Cost


def within_limits(instance: Instance, family: Family, cost: Cost) -> bool:
    """Whether a design keeps the instance's limits, exactly."""
    limits = instance.limits
    return (
        (limits.capex_usd is None or cost.capex_usd <= limits.capex_usd)
        and (limits.power_mw is None or cost.power_w / 1e6 <= limits.power_mw)
        and (limits.racks is None or _racks(family) <= limits.racks)
    )


def _racks(family: Family) -> int:
    count = racks(family)
    assert count is not None, "the instance refuses racks limits without rack counts"
    return count
