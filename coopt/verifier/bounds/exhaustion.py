"""Check bounds by exhaustion: of phases by all networks, of a partition by all islands and all choices of them.

Networks have the uplinks that serve their phases; islands and choices are gone through where there are few.

An island is left out only where another of its workload takes no more of anything: bills never fall with units, so
whatever the others are, the other one is no worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import note_source, note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, STRICT, Ledger, below
from coopt.verifier.couplings.core import core_nics, joint_of, questions_by_core_optic
from coopt.verifier.couplings.growth import GrowthPath, Growths, growths_of
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
from coopt.verifier.couplings.purchases import (
    link_labour_usd,
    links_per_uplink,
    phase_electricity_usd,
    price_factor,
    support_unit_usd,
)
from coopt.verifier.couplings.stages import GrowthStage
from coopt.verifier.parts.bills import CountedItem, bill, decimal, exact_sum, keeps, least_racks, levels
from coopt.verifier.parts.enumeration import least_designs
from coopt.verifier.parts.space import DesignFamily, families

MOST_FAMILIES = 3_000
MOST_CHOICES = 100_000
UNPROVEN = f"too many islands to go through: it rests on {SOLVERS_WORD}"


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no network grows for less than the bound, and that none grows at all where the plan says so."""
    growths = growths_of(instance, plan.objective.kind)
    bound = plan.objective.bound
    if plan.status == "infeasible":
        fault = "A network grows through all phases, for {}, although the plan says that none does."
        _check_none_below(ledger, growths, plan, "infeasible", math.inf, fault)
    if bound is not None:
        fault = f"A network grows through all phases for {{}}, less than the bound of {bound:,.2f}."
        _check_none_below(ledger, growths, plan, "bound", bound, fault)


def _check_none_below(ledger: Ledger, growths: Growths, plan: Plan, name: str, bound: float, fault: str) -> None:
    """Check that no network serves every phase for less; one that does so by rounding alone is undecided."""
    lenient_value = least_growth_below(growths, bound, LENIENT)
    value = None if lenient_value is None else least_growth_below(growths, bound, STRICT)
    nothing = "no design is feasible" if math.isinf(bound) else "no feasible design costs less"
    claim, outcome = nothing if math.isinf(bound) else bound, nothing if value is None else float(value)
    ledger.holds(name, value is None, claim, outcome, fault.format(outcome), ROUNDING)
    if lenient_value is not None and value is None:
        note_undecided(ledger, plan, f"a network that grows for {float(lenient_value):,.10g}", float(lenient_value))


def least_growth_below(growths: Growths, bound: float, margin: float = STRICT) -> Fraction | None:
    """The least value of a network that serves every phase, where it is below `bound` by more than rounding."""
    instance, kind = growths.instance, growths.kind
    # below the bound by more than its own rounding
    ceiling = Fraction(bound) - abs(Fraction(bound)) * Fraction(ROUNDING) if math.isfinite(bound) else None
    least_value: Fraction | None = None
    charge = cache(partial(_unit_charge_usd, instance, kind))
    for path in growths.paths:
        charges = [_StageCharge(instance, kind, stage, t, charge) for t, stage in enumerate(path)]
        if ceiling is not None and sum(one.least_usd for one in charges) >= ceiling:
            continue  # whatever switches and modules it has
        uplinks: list[Sequence[int]] = [growths.within(stage, t, margin) for t, stage in enumerate(path)]
        for t in reversed(range(len(path))):
            # Timing is what takes long: only uplinks of the last phase that would be worth less are timed at all.
            values = growth_values(instance, path, uplinks, charges)
            uplinks[-1] = [ups for ups, value in values.items() if ceiling is None or value < ceiling]
            if not uplinks[-1]:
                break
            uplinks[t] = growths.serving(path[t], t, margin, uplinks[t])
        else:
            value_of_path = min(growth_values(instance, path, uplinks, charges).values(), default=None)
            if value_of_path is not None and (ceiling is None or value_of_path < ceiling):
                least_value = ceiling = value_of_path
    return least_value


def growth_values(
    instance: Instance,
    path: GrowthPath,
    uplinks_by_phase: Sequence[Sequence[int]],
    charges: Sequence[_StageCharge],
) -> dict[int, Fraction]:
    """Least objective of each number of uplinks in the end over uplinks that never fall, each phase's among its own.

    A unit that a phase adds costs the least price so far, so what a phase has in place is charged that price and
    credited the one of the next phase. Adding links costs labour, in proportion to what is added. Credits and labour
    of links that stood may be far larger than what is left of them, so that sums are made of fractions. `charges` say
    what each phase adds with so many uplinks.
    """
    least_by_uplinks: dict[int, Fraction] = {}
    for t, choices in enumerate(uplinks_by_phase):
        arrivals = _arriving(instance, path, t, least_by_uplinks, choices) if t else dict.fromkeys(choices, Fraction())
        least_by_uplinks = {uplinks: charges[t].at(uplinks) + value for uplinks, value in arrivals.items()}
    return least_by_uplinks


def _arriving(
    instance: Instance, path: GrowthPath, t: int, least_before: dict[int, Fraction], choices: Sequence[int]
) -> dict[int, Fraction]:
    """The least value so far with the labour of a phase, by its uplinks, which are no fewer than those before."""
    new_links, old_links = links_per_uplink(path[t - 1], path[t])
    rate = decimal(link_labour_usd(instance, t))
    rate_of_old, rate_of_new = rate * (old_links - new_links), rate * new_links
    pending = sorted(least_before.items(), reverse=True)
    arrivals: dict[int, Fraction] = {}
    least_value: Fraction | None = None
    for uplinks in choices:
        while pending and pending[-1][0] <= uplinks:
            earlier_uplinks, value_before = pending.pop()
            value = value_before + rate_of_old * earlier_uplinks
            least_value = value if least_value is None else min(least_value, value)
        if least_value is not None:
            arrivals[uplinks] = least_value + rate_of_new * uplinks
    return arrivals


class _StageCharge:
    """What units in place in a phase add by its uplinks, less what those of the next phase need not pay again."""

    def __init__(
        self,
        instance: Instance,
        kind: ObjectiveKind,
        stage: GrowthStage,
        t: int,
        charge: Callable[[int, str, float], Fraction],
    ) -> None:
        self._instance, self._kind, self._stage, self._t, self._charge = instance, kind, stage, t, charge
        below = bill(instance, stage.family, (), ())  # what uplinks do not change
        self._first, self._below_usd, self._below_w = len(below), self._charged(below), _power_w(below)
        self.least_usd = self._with([])
        self._known: dict[int, Fraction] = {}

    def at(self, uplinks: int) -> Fraction:
        """What they add with so many uplinks (USD)."""
        if uplinks not in self._known:
            stage = self._stage
            lines = bill(self._instance, stage.family, stage.levels(uplinks), stage.optics)
            self._known[uplinks] = self._with(lines[self._first :])
        return self._known[uplinks]

    def _with(self, above: list[CountedItem]) -> Fraction:
        value = self._below_usd + self._charged(above)
        if self._kind != "tco":
            return value
        return value + Fraction(phase_electricity_usd(self._instance, self._t, self._below_w + _power_w(above)))

    def _charged(self, lines: list[CountedItem]) -> Fraction:
        return exact_sum((line.amount, self._charge(self._t, line.kind, line.unit_usd)) for line in lines)


def _power_w(lines: list[CountedItem]) -> float:
    return sum(line.amount * line.unit_w for line in lines)


def _unit_charge_usd(instance: Instance, objective: ObjectiveKind, t: int, kind: str, unit_usd: float) -> Fraction:
    """What a unit in place adds in a phase with its labour and support, less what one of the next phase need not pay
    again (USD)."""
    factor = decimal(least_price_factor(instance, t, kind))
    is_last = t + 1 == len(instance.years)
    price = decimal(unit_usd) * (factor - (0 if is_last else decimal(least_price_factor(instance, t + 1, kind))))
    if objective != "tco":
        return price
    support = decimal(support_unit_usd(instance, t, kind, unit_usd))
    return price * (1 + decimal(instance.objective.labour_share)) + support


def least_price_factor(instance: Instance, t: int, kind: str) -> float:
    """The least factor that a kind of item is bought at up to a phase."""
    # units may be bought ahead and kept in store
    return min(price_factor(instance, earlier, kind) for earlier in range(t + 1))


def check_partition_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check bound and infeasibility by enumeration where the instance is small; else say what they rest on.

    It takes longest, and is left out where something else is wrong.
    """
    bound = plan.objective.bound
    if not all(check.ok for check in ledger.checks) or (plan.status != "infeasible" and bound is None):
        return
    name, claim = ("infeasible", "no choice is feasible") if bound is None else ("bound", f"{bound!r}")
    ceiling = math.inf if bound is None else bound
    lenient_value = _least_value(instance, plan, LENIENT)
    if lenient_value is None:
        note_source(ledger, plan, UNPROVEN)
        return
    least_value = _least_value(instance, plan, STRICT) if below(lenient_value, ceiling) else lenient_value
    assert least_value is not None, "fewer islands keep bounds that are short"
    if below(lenient_value, ceiling) and not below(least_value, ceiling):
        note_undecided(ledger, plan, f"a choice of islands worth {lenient_value:,.10g}", lenient_value)
    else:
        note_source(ledger, plan, "all islands and choices were gone through")
    value = least_value if math.isfinite(least_value) else "no choice is feasible"
    fault = f"A choice of islands within all limits is worth {least_value:,.2f}, the plan says {claim}."
    ledger.holds(name, not below(least_value, ceiling), claim if bound is None else bound, value, fault, ROUNDING)


def _least_value(instance: Instance, plan: Plan, margin: float) -> float | None:
    """The least value of a choice within all limits; None where there are too many to go through."""
    least_value = math.inf
    for question in questions_by_core_optic(instance, plan.objective.kind):
        menus = _menus(question, plan, margin)
        if menus is None:
            return None
        least_value = min([least_value, *_values(question, plan, menus, margin)])
    return least_value


Menu = list[tuple[UnitCounts, int]]


def _menus(instance: Instance, plan: Plan, margin: float) -> list[Menu] | None:
    """The islands of each workload with their racks; None where there are too many to go through."""
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


def _islands(instance: Instance, plan: Plan, workload: Workload, margin: float) -> Iterator[tuple[UnitCounts, int]]:
    kind = plan.objective.kind
    for gpus in range(1, instance.cluster.most_gpus + 1):
        if workload.gpus is None or gpus in workload.gpus:
            question = question_of_island(instance, (workload,), gpus)
            for family, ports, optics in least_designs(question, kind, margin):
                nics = core_nics(instance) if family.gear is None else ()
                # a single domain joins a core by any NIC of its rate; elsewhere the NIC does not count
                for nic in nics or instance.network.nics[:1]:
                    joint = joint_of(question, kind, family, ports, nic)
                    yield counts_of_island(family, levels(family, ports), optics, joint), _racks(family)


def _racks(family: DesignFamily) -> int:
    return 0 if family.hb.racks is None else least_racks(family.domains, family.hb.racks)


def _pareto(islands: Iterator[tuple[UnitCounts, int]]) -> Menu:
    front: Menu = []
    # what takes no more of anything has no more GPUs and units, and so stands before
    for candidate in sorted(islands, key=lambda island: (island[0].active, sum(island[0].products.values()))):
        if not any(_no_more(rival, candidate) for rival in front):
            front.append(candidate)
    return front


def _no_more(a: tuple[UnitCounts, int], b: tuple[UnitCounts, int]) -> bool:
    """Whether island a takes no more of anything than b."""
    (units, racks), (other_units, other_racks) = a, b
    return (
        racks <= other_racks
        and units.active <= other_units.active
        and units.idle <= other_units.idle
        and units.core_ports <= other_units.core_ports
        and all(count <= other_units.products[product] for product, count in units.products.items())
    )


def _values(instance: Instance, plan: Plan, menus: Sequence[Menu], margin: float) -> Iterator[float]:
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
        if not all(keeps(cap.of(prices, billed_units) / cap.scale, limit, margin) for cap, limit in caps):
            return
        sums = volume_bill(instance, billed_units)
        if keeps(sums.capex_usd, instance.limits.capex_usd, margin):
            yield sums.of(plan.objective.kind)

    yield from deeper((), 0)
