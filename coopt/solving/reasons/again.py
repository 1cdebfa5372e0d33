"""Solve a changed instance, or see only whether it has an answer; stop everything where a solve stops."""

from __future__ import annotations

from bisect import bisect_left

from coopt.columns.context import DomainSet, context_of, site_of
from coopt.columns.pools import Fitting, Pool, fitting, pool
from coopt.columns.table import full_bandwidth
from coopt.instance.schema import Instance, Limits
from coopt.network.family import Family
from coopt.network.parts import cost_of, within_limits
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.reasons.limits import with_part


class UnprovenError(Exception):
    """A solve ended without proof; the reason is its text."""


def solved(instance: Instance) -> Plan:
    """The optimum of an instance, or that there is none.

    Raises
    ------
    UnprovenError
        When the solver's time limit passed first.
    """
    plan = solve(with_part(instance, "solver", {"gap": 0.0, "top": 1}))
    if plan.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if plan.status not in ("optimal", "infeasible"):
        raise UnprovenError(plan.stop_reason)
    return plan


def feasible(instance: Instance) -> bool:
    """Whether some design meets every bound and limit.

    The fewest uplinks in time are tried on every family, as no use of a limit falls when uplinks are added.
    """
    of_site: dict[DomainSet, list[Family]] = {}
    for family in families(instance):
        if _within(instance, family, family.uplink_choices[0]):
            of_site.setdefault(site_of(family), []).append(family)
    gpu = instance.cluster.gpu
    sources = {
        (w, gpus): fitting(workload, gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(site.gpus for site in of_site)
    }
    for site, some in of_site.items():
        best = full_bandwidth([context_of(family) for family in (some[0], max(some, key=lambda one: one.byte_s))])
        fewest_first = sorted((sources[w, site.gpus] for w in range(len(instance.workload))), key=_quick)
        pools: list[Pool] = []
        for source in fewest_first:
            pools.append(pool(source, gpu, some[0].hb, site, best)[0])
            if not len(pools[-1]):
                break
        if len(pools[-1]) and any(_serves(instance, family, pools) for family in some):
            return True
    return False


def _quick(source: Fitting) -> int:
    """Mappings that could meet the bound; the fewer, the sooner a site is out."""
    return int((source.fastest_s <= source.workload.bound_s).sum())


def _serves(instance: Instance, family: Family, pools: list[Pool]) -> bool:
    """Whether a family meets every time bound with uplinks that keep the limits."""
    context, choices = context_of(family), family.uplink_choices

    def in_time(uplinks: int) -> bool:
        return all((one.time_s(context, uplinks) <= one.workload.bound_s).any() for one in pools)

    if not in_time(choices[-1]):
        return False
    return _within(instance, family, choices[bisect_left(choices, True, key=in_time)])


def _within(instance: Instance, family: Family, uplinks: int) -> bool:
    return instance.limits == Limits() or within_limits(instance, family, cost_of(instance, family, uplinks))
