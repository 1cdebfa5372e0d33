"""Solve a changed instance, and stop everything where that stops."""

from __future__ import annotations

from coopt.columns.context import Site, context_of
from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.limits import within_limits
from coopt.network.parts import cost_of
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.arrays import needs, viable
from coopt.solving.reasons.limits import with_part


class StoppedError(Exception):
    """A solve ended without proof; the reason is its text."""


def solved(instance: Instance) -> Plan:
    """The optimum of an instance, or that there is none.

    Raises
    ------
    StoppedError
        When the solver's time limit passed first.
    """
    plan = solve(with_part(instance, "solver", {"gap": 0.0, "top": 1}))
    if plan.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if plan.status not in ("optimal", "infeasible"):
        raise StoppedError(plan.stop_reason)
    return plan


def feasible(instance: Instance) -> bool:
    """Whether some design meets every bound and limit.

    The fewest uplinks in time are tried on every family, as no use of a limit falls when uplinks are added.
    """
    of_site: dict[Site, list[Family]] = {}
    for family in families(instance):
        if _within(instance, family, family.uplink_choices[0]):
            of_site.setdefault(context_of(family).site, []).append(family)
    return any(_some_in_time(instance, tuple(some)) for some in of_site.values())


def _some_in_time(instance: Instance, some: tuple[Family, ...]) -> bool:
    table = columns(instance, some, lambda _: None, lambda: None)
    need = needs(instance, table)
    return any(
        _within(instance, family, max(need[table.numbers[context_of(family)]], family.uplink_choices[0]))
        for family in viable(instance, some, table)
    )


def _within(instance: Instance, family: Family, uplinks: int) -> bool:
    return within_limits(instance, family, cost_of(instance, family, uplinks))
