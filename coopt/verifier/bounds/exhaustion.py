"""Check bounds of partitions by exhaustion: all islands and all choices of them are gone through
where there are few.

An island is left out only where another of its workload takes no more of anything: bills never fall
with units, so whatever the others are, the other one is no worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import note_source, note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, STRICT, Ledger, is_below
from coopt.verifier.couplings.core import core_nics, joint_of, questions_by_core_optic
from coopt.verifier.couplings.prices import (
    UnitCounts,
    caps_of,
    counted_units,
    counts_of_island,
    counts_together,
    islands_fit,
    list_prices,
    question_of_island,
    volume_bill,
)
from coopt.verifier.parts.bills import keeps, least_racks, levels
from coopt.verifier.parts.enumeration import least_designs
from coopt.verifier.parts.space import DesignFamily, families

MOST_FAMILIES = 3_000
MOST_CHOICES = 100_000
UNPROVEN = f"too many islands to go through: it rests on {SOLVERS_WORD}"


def check_partition_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility by enumeration where the instance is small; else say what they
    rest on.

    It takes longest, and is left out where something else is wrong.
    """
    bound = plan.objective.bound
    if not all(check.ok for check in ledger.checks) or (
        plan.status != "infeasible" and bound is None
    ):
        return
    name, claim = (
        ("infeasible", "no choice is feasible") if bound is None else ("bound", f"{bound!r}")
    )
    ceiling = math.inf if bound is None else bound
    lenient_value = _least_value(instance, plan, LENIENT)
    if lenient_value is None:
        note_source(ledger, plan, UNPROVEN)
        return
    least_value = (
        _least_value(instance, plan, STRICT) if is_below(lenient_value, ceiling) else lenient_value
    )
    assert least_value is not None, "fewer islands keep bounds that are short"
    if is_below(lenient_value, ceiling) and not is_below(least_value, ceiling):
        note_undecided(
            ledger, plan, f"a choice of islands worth {lenient_value:,.10g}", lenient_value
        )
    else:
        note_source(ledger, plan, "all islands and choices were gone through")
    value = least_value if math.isfinite(least_value) else "no choice is feasible"
    fault = (
        f"A choice of islands within all limits is worth {least_value:,.2f}, the plan says {claim}."
    )
    ledger.holds(
        name,
        not is_below(least_value, ceiling),
        claim if bound is None else bound,
        value,
        fault,
        ROUNDING,
    )


def _least_value(instance: Instance, plan: Plan, margin: float) -> float | None:
    """The least value of a choice within all limits; None where there are too many to go
    through.
    """
    least_value = math.inf
    for question in questions_by_core_optic(instance, plan.objective.kind):
        menus = _menus(question, plan, margin)
        if menus is None:
            return None
        least_value = min([least_value, *_values(question, plan, menus, margin)])
    return least_value


Menu = list[tuple[UnitCounts, int]]


def _menus(instance: Instance, plan: Plan, margin: float) -> list[Menu] | None:
    """The islands of each workload with their racks; None where there are too many to go
    through.
    """
    if _has_many_networks(instance):
        return None
    menus, choices = [], 1
    for workload in instance.workload:
        menus.append(_pareto(_islands(instance, plan, workload, margin)))
        choices *= len(menus[-1])
        if choices > MOST_CHOICES:
            return None
    return menus


def _has_many_networks(instance: Instance) -> bool:
    """Whether there are too many networks to time every workload on."""
    count = 0
    for gpus in range(1, instance.cluster.most_gpus + 1):
        cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
        for _ in families(instance.model_copy(update={"cluster": cluster})):
            count += len(instance.workload)
            if count > MOST_FAMILIES:
                return True
    return False


def _islands(
    instance: Instance, plan: Plan, workload: Workload, margin: float
) -> Iterator[tuple[UnitCounts, int]]:
    kind = plan.objective.kind
    for gpus in range(1, instance.cluster.most_gpus + 1):
        if workload.gpus is None or gpus in workload.gpus:
            question = question_of_island(instance, (workload,), gpus)
            for family, ports, optics in least_designs(question, kind, margin):
                nics = core_nics(instance) if family.gear is None else ()
                # a single domain joins a core by any NIC of its rate; elsewhere the NIC does not
                # count
                for nic in nics or instance.network.nics[:1]:
                    joint = joint_of(question, kind, family, ports, nic)
                    yield (
                        counts_of_island(family, levels(family, ports), optics, joint),
                        _racks(family),
                    )


def _racks(family: DesignFamily) -> int:
    return 0 if family.hb.racks is None else least_racks(family.domains, family.hb.racks)


def _pareto(islands: Iterator[tuple[UnitCounts, int]]) -> Menu:
    front: Menu = []
    # what takes no more of anything has no more GPUs and units, and so stands before
    for candidate in sorted(
        islands, key=lambda island: (island[0].active_gpus, sum(island[0].products.values()))
    ):
        if not any(_no_more(rival, candidate) for rival in front):
            front.append(candidate)
    return front


def _no_more(a: tuple[UnitCounts, int], b: tuple[UnitCounts, int]) -> bool:
    """Whether island a takes no more of anything than b."""
    (units, racks), (other_units, other_racks) = a, b
    return (
        racks <= other_racks
        and units.active_gpus <= other_units.active_gpus
        and units.idle_gpus <= other_units.idle_gpus
        and units.core_ports <= other_units.core_ports
        and all(count <= other_units.products[product] for product, count in units.products.items())
    )


def _values(
    instance: Instance, plan: Plan, menus: Sequence[Menu], margin: float
) -> Iterator[float]:
    """The objective of every choice within all limits."""
    caps, prices = caps_of(instance), list_prices(instance)

    def deeper(islands: tuple[UnitCounts, ...], racks: int) -> Iterator[float]:
        counts = counts_together(instance, islands)
        if not islands_fit(instance, counts, racks):
            return
        if len(islands) < len(menus):
            for units, island_racks in menus[len(islands)]:
                yield from deeper((*islands, units), racks + island_racks)
            return
        billed_units = counted_units(instance, counts)
        if not all(
            keeps(cap.of(prices, billed_units) / cap.scale, limit, margin) for cap, limit in caps
        ):
            return
        sums = volume_bill(instance, billed_units)
        if keeps(sums.capex_usd, instance.limits.capex_usd, margin):
            yield sums.of(plan.objective.kind)

    yield from deeper((), 0)
