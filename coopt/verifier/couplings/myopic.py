"""Check that planning phase by phase ends where the plan says.

Each step is followed on all networks that stand as the steps before it say: one of them has to add exactly what the
step claims, and none less. So it does not matter which of equally cheap steps was taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from coopt.plan.couplings import Myopic, MyopicStep
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import STRICT, TOLERANCE, Ledger, agree
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
    networks = [BegunNetwork(path, ()) for path in growths.paths]
    for step in claim.steps[: len(growths.questions)]:
        ledger.subject = f"Myopic step {step.year:g}: "
        check_gear(ledger, growths.instance, step.design)
        ledger.subject = ""
        networks = _followed(ledger, growths, networks, step, kind)
        if not networks:
            return
    t = len(claim.steps)
    stopped = claim.dead_end is not None
    at_end = t == len(growths.questions)
    if not at_end and stopped:
        at_end = math.isinf(_least_usd(growths, networks, t, kind))
    why = "The myopic planner stops where it need not, or goes on where it cannot."
    ledger.holds("myopic-end", at_end and stopped == (t < len(growths.questions)), t, len(growths.questions), why)
    _check_value(ledger, plan, claim, stopped=stopped)


def _least_usd(growths: Growths, networks: list[BegunNetwork], t: int, kind: str) -> float:
    """What the cheapest network adds that serves a phase, with the fewest uplinks that do; infinite if none do.

    Whether one serves is what takes long. None adds less than with the fewest uplinks within the limits, so that
    networks are asked in this order, as long as one may add less than those that serve.
    """
    least_usd = math.inf
    allowed = [(growths.within(network.path[t], t), network) for network in networks]
    begun = [(_extended(growths, network, within), within, network) for within, network in allowed]
    hopeful = [(_value(first, kind), within, network) for first, within, network in begun if first]
    for hoped_usd, within, network in sorted(hopeful, key=itemgetter(0)):
        if hoped_usd >= least_usd:
            break
        serving = _extended(growths, network, growths.serving(network.path[t], t, STRICT, within))
        least_usd = min(least_usd, _value(serving, kind) if serving else math.inf)
    return least_usd


def _extended(growths: Growths, network: BegunNetwork, choices: Sequence[int]) -> BegunNetwork | None:
    """A network with the fewest of these uplinks in the next phase; None where they are fewer than there were."""
    fewest = max([*choices[:1], *network.uplinks[-1:]], default=0)
    can_be = choices and fewest <= choices[-1]
    return _added(growths, network.path, (*network.uplinks, fewest)) if can_be else None


def _value(network: BegunNetwork, kind: str) -> float:
    """What the last phase of a network counts by an objective (USD)."""
    return network.capex_usd + (network.energy_usd if kind == "tco" else 0.0)


def _added(growths: Growths, path: GrowthPath, uplinks: tuple[int, ...]) -> BegunNetwork:
    """What a phase adds at its prices."""
    instance, t = growths.instance, len(uplinks) - 1
    phase, stage = instance.phase[t], path[t]
    counts = units_in_place(instance, stage, uplinks[t])
    units = unit_prices(instance, (stage,), uplinks[t:])
    counts_before = units_in_place(instance, path[t - 1], uplinks[t - 1]) if t else {}
    goods = sum(
        (count - counts_before.get(key, 0)) * (units[key].usd * price_factor(instance, t, key[0]))
        for key, count in counts.items()
    )
    links = links_added(path[t - 1], stage, uplinks[t - 1], uplinks[t]) if t else 0
    power_w = sum(units[key].w * count for key, count in counts.items())
    energy = phase_electricity_usd(instance, t, power_w)
    return BegunNetwork(path, uplinks, goods + links * phase.retrofit_usd_per_link, energy)


def _followed(
    ledger: Ledger, growths: Growths, networks: list[BegunNetwork], step: MyopicStep, kind: str
) -> list[BegunNetwork]:
    """Check a step; the networks that stand as it says, none where a cheaper step exists."""
    t = len(networks[0].uplinks)
    matching = [network for network in networks if _stands(growths, network, t, step)]
    extended = [_added(growths, network.path, (*network.uplinks, _uplinks(step))) for network in matching]
    priced = [
        network
        for network in extended
        if agree(network.capex_usd, step.capex_usd) and agree(network.energy_usd, step.energy_usd)
    ]
    least_usd = _least_usd(growths, networks, t, kind)
    holds = bool(priced) and step.year == growths.instance.phase[t].year
    holds = holds and min(_value(network, kind) for network in priced) <= least_usd + TOLERANCE * abs(least_usd)
    why = f"In {step.year:g} the least to add is {least_usd:,.2f} USD, and the myopic planner adds something else."
    ledger.holds("myopic-step", holds, step.capex_usd, least_usd, why, TOLERANCE)
    return priced if holds else []


def _uplinks(step: MyopicStep) -> int:
    tiers = step.design.fabric.tier
    return tiers[0].uplinks_per_switch if len(tiers) > 1 else 0


def _stands(growths: Growths, network: BegunNetwork, t: int, step: MyopicStep) -> bool:
    """Whether a network can be what a step builds."""
    stage, uplinks = network.path[t], _uplinks(step)
    rises = not network.uplinks or uplinks >= network.uplinks[-1]
    return rises and is_drawn(growths.instance, stage, uplinks, step.design) and growths.may_serve(stage, t, uplinks)


def _check_value(ledger: Ledger, plan: Plan, claim: Myopic, *, stopped: bool) -> None:
    tco = plan.objective.kind == "tco"
    total_usd = None if stopped else sum(step.capex_usd + (step.energy_usd if tco else 0.0) for step in claim.steps)
    value, optimum = claim.value, plan.objective.value
    holds = (value is None) == (total_usd is None) and (value is None or total_usd is None or agree(value, total_usd))
    saving = None if total_usd is None or optimum is None else total_usd - optimum
    if saving is None or claim.saving is None:
        holds = holds and saving is claim.saving
    else:
        holds = holds and abs(saving - claim.saving) <= TOLERANCE * max(abs(total_usd or 0.0), abs(optimum or 0.0))
    why = f"Its phases take {total_usd} together, {saving} more than the plan."
    ledger.holds("myopic-value", holds, claim.value, total_usd, why, TOLERANCE)
