"""Check the bound of a plan of phases by going through all networks, each with the uplinks that serve its phases."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.couplings.growth import Growths
from coopt.verifier.couplings.purchases import links_per_uplink, phase_electricity_usd, price_factor
from coopt.verifier.couplings.stages import GrowthPath
from coopt.verifier.parts.bills import bill


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no network grows for less than the bound, and that none grows at all where the plan says so."""
    growths = Growths(instance, plan.objective.kind)
    bound = plan.objective.bound
    if plan.status == "infeasible":
        value = least_growth_below(growths, math.inf)
        why = f"A network grows through all phases, for {value}, although the plan says that none does."
        shown = "no design is feasible" if value is None else value
        ledger.holds("infeasible", value is None, "no design is feasible", shown, why)
    if bound is not None:
        value = least_growth_below(growths, bound)
        why = f"A network grows through all phases for {value}, less than the bound of {bound:,.2f}."
        shown = "no feasible design costs less" if value is None else value
        ledger.holds("bound", value is None, bound, shown, why, TOLERANCE)


def least_growth_below(growths: Growths, bound: float) -> float | None:
    """The least value of a network that serves every phase, where it is below `bound` by more than rounding."""
    instance, kind = growths.instance, growths.kind
    ceiling = bound - abs(bound) * TOLERANCE if math.isfinite(bound) else bound
    least_value: float | None = None
    for path in growths.paths:
        uplinks: list[Sequence[int]] = [growths.within(stage, t) for t, stage in enumerate(path)]
        for t in range(len(path)):
            # Timing every phase is what takes long: stop where even all uplinks within the limits cost too much.
            if not least_growth_value(instance, kind, path, uplinks) < ceiling:
                break
            uplinks[t] = growths.serving(path[t], t)
        value = least_growth_value(instance, kind, path, uplinks)
        if value < ceiling:
            least_value = ceiling = value
    return least_value


def least_growth_value(
    instance: Instance, kind: ObjectiveKind, path: GrowthPath, uplinks_by_phase: Sequence[Sequence[int]]
) -> float:
    """Least objective over uplinks that never fall, those of each phase among its own; infinite if none.

    A unit that a phase adds costs the least price so far, so what a phase has in place is charged that price and
    credited the one of the next phase. Adding links costs labour, in proportion to what is added.
    """
    least_by_uplinks: dict[int, float] = {}
    for t, choices in enumerate(uplinks_by_phase):
        arrivals = _arriving(instance, path, t, least_by_uplinks, choices) if t else dict.fromkeys(choices, 0.0)
        least_by_uplinks = {
            uplinks: _standing(instance, kind, path, t, uplinks) + value for uplinks, value in arrivals.items()
        }
    return min(least_by_uplinks.values(), default=math.inf)


def _arriving(
    instance: Instance, path: GrowthPath, t: int, least_before: dict[int, float], choices: Sequence[int]
) -> dict[int, float]:
    """The least value so far with the labour of a phase, by its uplinks, which are no fewer than those before."""
    new_links, old_links = links_per_uplink(path[t - 1], path[t])
    rate = instance.phase[t].retrofit_usd_per_link
    pending = sorted(least_before.items(), reverse=True)
    arrivals, least_value = {}, math.inf
    for uplinks in choices:
        while pending and pending[-1][0] <= uplinks:
            earlier_uplinks, value = pending.pop()
            least_value = min(least_value, value + rate * (old_links - new_links) * earlier_uplinks)
        if least_value < math.inf:
            arrivals[uplinks] = least_value + rate * new_links * uplinks
    return arrivals


def _standing(instance: Instance, kind: ObjectiveKind, path: GrowthPath, t: int, uplinks: int) -> float:
    """What all units in place add, less what those of the next phase need not pay again."""
    stage, is_last = path[t], t + 1 == len(path)
    value = power_w = 0.0
    for line in bill(instance, stage.family, stage.levels(uplinks), stage.optics):
        factor = least_price_factor(instance, t, line.kind)
        next_factor = 0.0 if is_last else least_price_factor(instance, t + 1, line.kind)
        value += line.amount * line.unit_usd * (factor - next_factor)
        power_w += line.amount * line.unit_w
    return value + (phase_electricity_usd(instance, t, power_w) if kind == "tco" else 0.0)


def least_price_factor(instance: Instance, t: int, kind: str) -> float:
    """The least factor that a kind of item is bought at up to a phase."""
    return min(price_factor(instance, earlier, kind) for earlier in range(t + 1))
