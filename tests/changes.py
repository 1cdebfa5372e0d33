"""Plans that say something else than they did."""

from typing import Any

from coopt.plan.couplings import Couplings
from coopt.plan.schema import Plan

REPEATED = ("design", "workloads", "cost")
"""What the top of a plan repeats of its only part."""


def with_part(plan: Plan, number: int = 0, **changes: Any) -> Plan:
    """The plan with other values in a part, and at its top where that repeats them."""
    part = plan.parts[number].model_copy(update=changes)
    parts = (*plan.parts[:number], part, *plan.parts[number + 1 :])
    top = {name: changes[name] for name in REPEATED if name in changes and len(parts) == 1}
    return plan.model_copy(update={**top, "parts": parts})


def with_couplings(plan: Plan, **changes: Any) -> Plan:
    """The plan with other couplings."""
    return plan.model_copy(update={"couplings": plan.couplings.model_copy(update=changes)})


NOTHING_BUILT: dict[str, Any] = {"design": None, "cost": None, "workloads": (), "parts": (), "couplings": Couplings()}
"""What an answer without a plan holds in place of one."""
