"""Check the bound of a plan of phases by going through all networks, each with the uplinks that serve its phases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, partial

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import Plan
from coopt.verifier.checks.claims import note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, STRICT, Ledger
from coopt.verifier.couplings.growth import Growths
from coopt.verifier.couplings.purchases import links_per_uplink, phase_electricity_usd, price_factor
from coopt.verifier.couplings.stages import GrowthPath
from coopt.verifier.parts.bills import bill, decimal, exact_sum


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no network grows for less than the bound, and that none grows at all where the plan says so."""
    growths = Growths(instance, plan.objective.kind)
    bound = plan.objective.bound
    if plan.status == "infeasible":
        why = "A network grows through all phases, for {}, although the plan says that none does."
        _check_none_below(ledger, growths, plan, "infeasible", math.inf, why)
    if bound is not None:
        why = f"A network grows through all phases for {{}}, less than the bound of {bound:,.2f}."
        _check_none_below(ledger, growths, plan, "bound", bound, why)


def _check_none_below(ledger: Ledger, growths: Growths, plan: Plan, name: str, bound: float, why: str) -> None:
    """Check that no network serves every phase for less; one that does so by rounding alone is undecided."""
    near = least_growth_below(growths, bound, LENIENT)
    found = None if near is None else least_growth_below(growths, bound, STRICT)
    nothing = "no design is feasible" if math.isinf(bound) else "no feasible design costs less"
    claimed, shown = nothing if math.isinf(bound) else bound, nothing if found is None else float(found)
    ledger.holds(name, found is None, claimed, shown, why.format(shown), ROUNDING)
    if near is not None and found is None:
        note_undecided(ledger, plan, f"a network that grows for {float(near):,.10g}")


def least_growth_below(growths: Growths, bound: float, short: float = STRICT) -> Fraction | None:
    """The least value of a network that serves every phase, where it is below `bound` by more than rounding."""
    instance, kind = growths.instance, growths.kind
    ceiling = Fraction(bound) - abs(Fraction(bound)) * Fraction(ROUNDING) if math.isfinite(bound) else None
    least_value: Fraction | None = None
    charge = cache(partial(_unit_charge_usd, instance))
    for path in growths.paths:
        standing = cache(partial(_standing, instance, kind, path, charge))
        uplinks: list[Sequence[int]] = [growths.within(stage, t, short) for t, stage in enumerate(path)]
        for t in reversed(range(len(path))):
            # Timing is what takes long: only uplinks of the last phase that would be worth less are timed at all.
            values = growth_values(instance, path, uplinks, standing)
            uplinks[-1] = [ups for ups, value in values.items() if ceiling is None or value < ceiling]
            if not uplinks[-1]:
                break
            uplinks[t] = growths.serving(path[t], t, short, uplinks[t])
        else:
            least = min(growth_values(instance, path, uplinks, standing).values(), default=None)
            if least is not None and (ceiling is None or least < ceiling):
                least_value = ceiling = least
    return least_value


def growth_values(
    instance: Instance,
    path: GrowthPath,
    uplinks_by_phase: Sequence[Sequence[int]],
    standing: Callable[[int, int], Fraction],
) -> dict[int, Fraction]:
    """Least objective of each number of uplinks in the end over uplinks that never fall, each phase's among its own.

    A unit that a phase adds costs the least price so far, so what a phase has in place is charged that price and
    credited the one of the next phase. Adding links costs labour, in proportion to what is added. Credits and labour
    of links that stood may be far larger than what is left of them, so that sums are made of fractions. `standing`
    says what a phase adds with so many uplinks.
    """
    least_by_uplinks: dict[int, Fraction] = {}
    for t, choices in enumerate(uplinks_by_phase):
        arrivals = _arriving(instance, path, t, least_by_uplinks, choices) if t else dict.fromkeys(choices, Fraction())
        least_by_uplinks = {uplinks: standing(t, uplinks) + value for uplinks, value in arrivals.items()}
    return least_by_uplinks


def _arriving(
    instance: Instance, path: GrowthPath, t: int, least_before: dict[int, Fraction], choices: Sequence[int]
) -> dict[int, Fraction]:
    """The least value so far with the labour of a phase, by its uplinks, which are no fewer than those before."""
    new_links, old_links = links_per_uplink(path[t - 1], path[t])
    rate = decimal(instance.phase[t].retrofit_usd_per_link)
    pending = sorted(least_before.items(), reverse=True)
    arrivals: dict[int, Fraction] = {}
    least_value: Fraction | None = None
    for uplinks in choices:
        while pending and pending[-1][0] <= uplinks:
            earlier_uplinks, before = pending.pop()
            value = before + rate * (old_links - new_links) * earlier_uplinks
            least_value = value if least_value is None else min(least_value, value)
        if least_value is not None:
            arrivals[uplinks] = least_value + rate * new_links * uplinks
    return arrivals


def _standing(
    instance: Instance,
    kind: ObjectiveKind,
    path: GrowthPath,
    charge: Callable[[int, str, float], Fraction],
    t: int,
    uplinks: int,
) -> Fraction:
    """What all units in place add, less what those of the next phase need not pay again."""
    stage = path[t]
    lines = bill(instance, stage.family, stage.levels(uplinks), stage.optics)
    value = exact_sum((line.amount, charge(t, line.kind, line.unit_usd)) for line in lines)
    if kind != "tco":
        return value
    return value + Fraction(phase_electricity_usd(instance, t, sum(line.amount * line.unit_w for line in lines)))


def _unit_charge_usd(instance: Instance, t: int, kind: str, unit_usd: float) -> Fraction:
    """What a unit in place adds in a phase, less what one of the next phase need not pay again (USD)."""
    factor = decimal(least_price_factor(instance, t, kind))
    is_last = t + 1 == len(instance.phase)
    return decimal(unit_usd) * (factor - (0 if is_last else decimal(least_price_factor(instance, t + 1, kind))))


def least_price_factor(instance: Instance, t: int, kind: str) -> float:
    """The least factor that a kind of item is bought at up to a phase."""
    return min(price_factor(instance, earlier, kind) for earlier in range(t + 1))
