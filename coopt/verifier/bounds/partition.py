"""Check the bound of a partition by going through all islands of each workload and all choices, where there are few.

An island is left out only where another of its workload takes no more of anything: bills never fall with units, so
whatever the others are, the other one is no worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import note_source, note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, STRICT, Ledger, below
from coopt.verifier.couplings.core import core_nics, joint_of, questions_by_core_optic
from coopt.verifier.couplings.limits import product_counts, question_of_island
from coopt.verifier.couplings.prices import UnitCounts, counts_of_island, counts_together, volume_bill
from coopt.verifier.parts.bills import keeps, least_racks
from coopt.verifier.parts.enumeration import least_designs
from coopt.verifier.parts.space import DesignFamily, families
from coopt.verifier.parts.switch_levels import levels

MOST_FAMILIES = 3_000
MOST_CHOICES = 100_000
UNPROVEN = f"too many islands to go through: it rests on {SOLVERS_WORD}"


def check_partition_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility by enumeration where the instance is small; else say what they rest on.

    It takes longest, and is left out where something else is wrong.
    """
    bound = plan.objective.bound
    if not all(check.ok for check in ledger.checks) or (plan.status != "infeasible" and bound is None):
        return
    name, claimed = ("infeasible", "no choice is feasible") if bound is None else ("bound", f"{bound!r}")
    ceiling = math.inf if bound is None else bound
    near = _least_value(instance, plan, LENIENT)
    if near is None:
        note_source(ledger, plan, UNPROVEN)
        return
    least = _least_value(instance, plan, STRICT) if below(near, ceiling) else near
    assert least is not None, "fewer islands keep bounds that are short"
    if below(near, ceiling) and not below(least, ceiling):
        note_undecided(ledger, plan, f"a choice of islands worth {near:,.10g}")
    else:
        note_source(ledger, plan, "all islands and choices were gone through")
    value = least if math.isfinite(least) else "no choice is feasible"
    why = f"A choice of islands within all limits is worth {least:,.2f}, the plan says {claimed}."
    ledger.holds(name, not below(least, ceiling), claimed if bound is None else bound, value, why, ROUNDING)


def _least_value(instance: Instance, plan: Plan, short: float) -> float | None:
    """The least value of a choice within all limits; None where there are too many to go through."""
    least = math.inf
    for question in questions_by_core_optic(instance, plan.objective.kind):
        menus = _menus(question, plan, short)
        if menus is None:
            return None
        least = min([least, *_values(question, plan, menus, short)])
    return least


Menu = list[tuple[UnitCounts, int]]


def _menus(instance: Instance, plan: Plan, short: float) -> list[Menu] | None:
    """The islands of each workload with their racks; None where there are too many to go through."""
    if _many(instance):
        return None
    menus, choices = [], 1
    for workload in instance.workload:
        menus.append(_pareto(_islands(instance, plan, workload, short)))
        choices *= len(menus[-1])
        if choices > MOST_CHOICES:
            return None
    return menus


def _many(instance: Instance) -> bool:
    """Whether there are too many networks to time every workload on."""
    count = 0
    for gpus in range(1, instance.cluster.gpus[0] + 1):
        cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
        for _ in families(instance.model_copy(update={"cluster": cluster})):
            count += len(instance.workload)
            if count > MOST_FAMILIES:
                return True
    return False


def _islands(instance: Instance, plan: Plan, workload: Workload, short: float) -> Iterator[tuple[UnitCounts, int]]:
    kind = plan.objective.kind
    for gpus in range(1, instance.cluster.gpus[0] + 1):
        if workload.gpus is None or gpus in workload.gpus:
            question = question_of_island(instance, (workload,), gpus)
            for family, ports, optics in least_designs(question, kind, short):
                nics = core_nics(instance) if family.gear is None else ()
                for nic in nics or instance.network.nics[:1]:
                    joint = joint_of(question, kind, family, ports, nic)
                    yield counts_of_island(family, levels(family, ports), optics, joint), _racks(family)


def _racks(family: DesignFamily) -> int:
    return 0 if family.hb.racks is None else least_racks(family.domains, family.hb.racks)


def _pareto(islands: Iterator[tuple[UnitCounts, int]]) -> Menu:
    front: Menu = []
    for one in sorted(islands, key=lambda island: (island[0].active, sum(island[0].products.values()))):
        if not any(_no_more(rival, one) for rival in front):
            front.append(one)
    return front


def _no_more(a: tuple[UnitCounts, int], b: tuple[UnitCounts, int]) -> bool:
    """Whether island a takes no more of anything than b."""
    (units, racks), (other_units, other_racks) = a, b
    return (
        racks <= other_racks
        and units.active <= other_units.active
        and units.idle <= other_units.idle
        and units.links <= other_units.links
        and all(count <= other_units.products[product] for product, count in units.products.items())
    )


def _values(instance: Instance, plan: Plan, menus: Sequence[Menu], short: float) -> Iterator[float]:
    """The objective of every choice within all limits."""

    def deeper(islands: tuple[UnitCounts, ...], racks: int) -> Iterator[float]:
        whole = counts_together(instance, islands)
        if whole.active > instance.cluster.gpus[0]:
            return
        if any(len(products) > most for _, most, products in product_counts(instance, whole.products)):
            return
        if instance.limits.racks is not None and racks > instance.limits.racks:
            return
        if len(islands) < len(menus):
            for units, more in menus[len(islands)]:
                yield from deeper((*islands, units), racks + more)
            return
        sums, limits = volume_bill(instance, whole), instance.limits
        if keeps(sums.capex_usd, limits.capex_usd, short) and keeps(sums.power_w / 1e6, limits.power_mw, short):
            yield sums.of(plan.objective.kind)

    yield from deeper((), 0)
