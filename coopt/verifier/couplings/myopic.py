"""Does planning phase by phase end where the plan says?

Each step is followed on all networks that stand as the steps before it say: one of them has to add exactly what the
step claims, and none less. So it does not matter which of equally cheap steps was taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from coopt.plan.phases import Myopic, MyopicStep
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.couplings.growth import Growths, is_drawn
from coopt.verifier.couplings.purchases import (
    links_added,
    phase_electricity_usd,
    price_factor,
    unit_prices,
    units_in_place,
)
from coopt.verifier.couplings.stages import GrowthPath
from coopt.verifier.parts.design_checks import check_gear


class BegunNetwork(NamedTuple):
    """A network with the uplinks of its first phases, and what the last of these adds (USD)."""

    path: GrowthPath
    uplinks: tuple[int, ...]
    capex_usd: float = 0.0
    energy_usd: float = 0.0


def check_myopic(ledger: Ledger, growths: Growths, plan: Plan) -> None:
    """Check steps, end and value of the myopic planner."""
    claim, kind = plan.myopic, plan.objective.kind
    if not ledger.holds("myopic", claim is not None, claim is not None, True, "The myopic planner is missing."):
        return
    assert claim is not None
    begun = [BegunNetwork(path, ()) for path in growths.paths]
    for step in claim.steps[: len(growths.questions)]:
        ledger.subject = f"Myopic step {step.year:g}: "
        check_gear(ledger, growths.instance, step.design)
        ledger.subject = ""
        begun = _followed(ledger, growths, begun, step, kind)
        if not begun:
            return
    t = len(claim.steps)
    stopped = claim.dead_end is not None
    fine = not _able(growths, begun, t) if t < len(growths.questions) and stopped else t == len(growths.questions)
    why = "The myopic planner stops where it need not, or goes on where it cannot."
    ledger.holds("myopic-end", fine and stopped == (t < len(growths.questions)), t, len(growths.questions), why)
    _value(ledger, plan, claim, stopped=stopped)


def _able(growths: Growths, begun: list[BegunNetwork], t: int) -> list[BegunNetwork]:
    """The networks that can serve the next phase, with the fewest uplinks that do."""
    found = []
    for path, uplinks, *_ in begun:
        allowed = growths.serving(path[t], t)
        fewest = max([*allowed[:1], *uplinks[-1:]], default=0)
        if allowed and fewest <= allowed[-1]:
            found.append(_added(growths, path, (*uplinks, fewest)))
    return found


def _added(growths: Growths, path: GrowthPath, uplinks: tuple[int, ...]) -> BegunNetwork:
    """What a phase adds at its prices."""
    instance, t = growths.instance, len(uplinks) - 1
    phase, here = instance.phase[t], path[t]
    placed = units_in_place(instance, here, uplinks[t])
    units = unit_prices(instance, (here,), uplinks[t:])
    before = units_in_place(instance, path[t - 1], uplinks[t - 1]) if t else {}
    goods = sum(
        (count - before.get(key, 0)) * (units[key].usd * price_factor(instance, t, key[0]))
        for key, count in placed.items()
    )
    links = links_added(path[t - 1], here, uplinks[t - 1], uplinks[t]) if t else 0
    power_w = sum(units[key].w * count for key, count in placed.items())
    energy = phase_electricity_usd(instance, t, power_w)
    return BegunNetwork(path, uplinks, goods + links * phase.retrofit_usd_per_link, energy)


def _followed(
    ledger: Ledger, growths: Growths, begun: list[BegunNetwork], step: MyopicStep, kind: str
) -> list[BegunNetwork]:
    """The networks that stand as a step says; none where the step is not the cheapest."""

    def value(one: BegunNetwork) -> float:
        return one.capex_usd + (one.energy_usd if kind == "tco" else 0.0)

    t = len(begun[0].uplinks)
    like = [one for one in begun if _stands(growths, one, t, step)]
    built = [_added(growths, one.path, (*one.uplinks, _uplinks(step))) for one in like]
    right = [one for one in built if agree(one.capex_usd, step.capex_usd) and agree(one.energy_usd, step.energy_usd)]
    least = min((value(one) for one in _able(growths, begun, t)), default=math.inf)
    fine = bool(right) and step.year == growths.instance.phase[t].year
    fine = fine and min(map(value, right)) <= least + TOLERANCE * abs(least)
    why = f"In {step.year:g} the least to add is {least:,.2f} USD, which the myopic planner does not."
    ledger.holds("myopic-step", fine, step.capex_usd, least, why, TOLERANCE)
    return right if fine else []


def _uplinks(step: MyopicStep) -> int:
    tiers = step.design.fabric.tier
    return tiers[0].uplinks_per_switch if len(tiers) > 1 else 0


def _stands(growths: Growths, one: BegunNetwork, t: int, step: MyopicStep) -> bool:
    """Whether a network can be what a step builds."""
    stage, uplinks = one.path[t], _uplinks(step)
    rises = not one.uplinks or uplinks >= one.uplinks[-1]
    return rises and is_drawn(growths.instance, stage, uplinks, step.design) and growths.may_serve(stage, t, uplinks)


def _value(ledger: Ledger, plan: Plan, claim: Myopic, *, stopped: bool) -> None:
    tco = plan.objective.kind == "tco"
    found = None if stopped else sum(one.capex_usd + (one.energy_usd if tco else 0.0) for one in claim.steps)
    value, best = claim.value, plan.objective.value
    fine = (value is None) == (found is None) and (value is None or found is None or agree(value, found))
    saving = None if found is None or best is None else found - best
    if saving is None or claim.saving is None:
        fine = fine and saving is claim.saving
    else:
        fine = fine and abs(saving - claim.saving) <= TOLERANCE * max(abs(found or 0.0), abs(best or 0.0))
    why = f"Its phases take {found} together, {saving} more than the plan."
    ledger.holds("myopic-value", fine, claim.value, found, why, TOLERANCE)
