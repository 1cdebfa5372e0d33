"""Planning phase by phase has to end where a plan says.

Each step is followed on all networks that stand as the steps before it say: one of them has to add
exactly what the step claims, and none less. So it does not matter which of equally cheap steps was
taken.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.instance.texts import exact_amount
from coopt.plan.couplings import Myopic, MyopicStep
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import STRICT, TOLERANCE, Ledger, agree
from coopt.verifier.couplings.fleet import StandingIsland
from coopt.verifier.couplings.growth import (
    GrowthPath,
    Growths,
    growths_of,
    is_drawn,
    uplinks_of,
)
from coopt.verifier.couplings.prices import ProductKey
from coopt.verifier.parts.design_checks import check_attachment
from coopt.verifier.parts.stages import links_added


class BegunNetwork(NamedTuple):
    """A network with the uplinks of its first phases, and what the last of these adds (USD)."""

    path: GrowthPath
    uplinks: tuple[int, ...]
    capex_usd: float = 0.0
    energy_usd: float = 0.0
    work_usd: float = 0.0


def check_myopic(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check steps, end and value of the myopic planner."""
    claim, kind = plan.couplings.myopic, plan.objective.kind
    if not ledger.holds(
        "myopic",
        claim is not None,
        claim is not None,
        True,
        "The comparison with planning each phase on its own is missing.",
    ):
        return
    assert claim is not None
    growths = growths_of(instance, kind)
    networks = [BegunNetwork(path, ()) for path in growths.paths]
    for step in claim.steps[: len(growths.fleet.phases)]:
        ledger.turn_to(f"Phase {step.year:g} planned on its own", aside=True)
        check_attachment(ledger, growths.instance, step.design)
        ledger.turn_to()
        networks = _networks_after(ledger, growths, networks, step, kind)
        if not networks:
            return
    t = len(claim.steps)
    stopped = claim.dead_end is not None
    at_end = t == len(growths.fleet.phases)
    if not at_end and stopped:
        at_end = math.isinf(_least_usd(growths, networks, t, kind))
    ledger.holds(
        "myopic-end",
        at_end and stopped == (t < len(growths.fleet.phases)),
        t,
        len(growths.fleet.phases),
        "The comparison with planning each phase on its own has to end with the last phase, or"
        " before the first phase that no network that keeps what is in use can serve.",
    )
    _check_value(ledger, plan, claim, stopped=stopped)


def _least_usd(growths: Growths, networks: list[BegunNetwork], t: int, kind: str) -> float:
    """What the cheapest network adds that serves a phase, with the fewest uplinks that do; infinite
    if none do.

    Whether one serves is what takes long. None adds less than with the fewest uplinks within the
    limits, so that networks are asked in this order, as long as one may add less than those that
    serve.
    """
    least_usd = math.inf
    candidates = [(growths.within(network.path[t], t), network) for network in networks]
    begun = [
        (_next_network(growths, network, within), within, network) for within, network in candidates
    ]
    hopeful = [
        (_value(extension, kind), within, network)
        for extension, within, network in begun
        if extension
    ]
    for hoped_usd, within, network in sorted(hopeful, key=itemgetter(0)):
        if hoped_usd >= least_usd:
            break
        serving = _next_network(
            growths, network, growths.serving(network.path[t], t, STRICT, within)
        )
        least_usd = min(least_usd, _value(serving, kind) if serving else math.inf)
    return least_usd


def _next_network(
    growths: Growths, network: BegunNetwork, choices: Sequence[int]
) -> BegunNetwork | None:
    """A network with the fewest of these uplinks in the next phase; None where they are fewer than
    there were.
    """
    fewest = max([*choices[:1], *network.uplinks[-1:]], default=0)
    can_be = choices and fewest <= choices[-1]
    return _addition(growths, network.path, (*network.uplinks, fewest)) if can_be else None


def _value(network: BegunNetwork, kind: str) -> float:
    """What the last phase of a network counts by an objective (USD)."""
    return network.capex_usd + (network.energy_usd + network.work_usd if kind == "tco" else 0.0)


def _addition(growths: Growths, path: GrowthPath, uplinks: tuple[int, ...]) -> BegunNetwork:
    """What a phase adds at its prices."""
    fleet, t = growths.fleet, len(uplinks) - 1
    states = [StandingIsland(path[n], uplinks[n], None) for n in range(max(t - 1, 0), t + 1)]
    *before, units = [fleet.priced_units(state.counts) for state in states]
    units_before = before[0] if before else Counter[ProductKey]()
    goods_usd = math.fsum(
        (count - units_before[product]) * fleet.tariff(t, product).steps[0][1]
        for product, count in units.items()
    )
    # Links of new switches are part of putting these up; labour is paid for those added to switches
    # that stood.
    links = links_added(path[t - 1], path[t], *uplinks[t - 1 :]) if t else 0
    support = math.fsum(count * fleet.support_usd(t, product) for product, count in units.items())
    return BegunNetwork(
        path,
        uplinks,
        goods_usd + links * fleet.labour_usd(t),
        fleet.watts(units) * fleet.site_usd_per_w(t, None),
        fleet.question.objective.labour_share * goods_usd + support,
    )


def _networks_after(
    ledger: Ledger, growths: Growths, networks: list[BegunNetwork], step: MyopicStep, kind: str
) -> list[BegunNetwork]:
    """Check a step; the networks that stand as it says, none where a cheaper step exists."""
    t = len(networks[0].uplinks)
    # Names and counts need not tell networks apart: all that may be meant are followed.
    matching = [network for network in networks if _stands(growths, network, t, step)]
    extended = [
        _addition(growths, network.path, (*network.uplinks, uplinks_of(step.design)))
        for network in matching
    ]
    as_priced = [
        network
        for network in extended
        if all(
            agree(getattr(network, key), getattr(step, key))
            for key in ("capex_usd", "energy_usd", "work_usd")
        )
    ]
    least_usd, year = _least_usd(growths, networks, t, kind), growths.instance.years[t]
    claimed_usd = step.capex_usd + (step.energy_usd + step.work_usd) * (kind == "tco")
    holds = bool(as_priced) and step.year == year
    holds = holds and min(
        _value(network, kind) for network in as_priced
    ) <= least_usd + TOLERANCE * abs(least_usd)
    ledger.holds(
        "myopic-step",
        holds,
        claimed_usd,
        least_usd,
        f"Planning the phase of {year:g} on its own adds {exact_amount('capex', least_usd)},"
        " but the plan states another amount, year or design."
        if math.isfinite(least_usd)
        else f"No network that keeps what is in use can serve the phase of {year:g}, but the plan"
        " states a design.",
        TOLERANCE,
    )
    return as_priced if holds else []


def _stands(growths: Growths, network: BegunNetwork, t: int, step: MyopicStep) -> bool:
    """Whether a network can be what a step builds."""
    stage, uplinks = network.path[t], uplinks_of(step.design)
    rises = not network.uplinks or uplinks >= network.uplinks[-1]
    return (
        rises
        and is_drawn(growths.instance, stage, uplinks, step.design)
        and growths.may_serve(stage, t, uplinks)
    )


def _check_value(ledger: Ledger, plan: Plan, claim: Myopic, *, stopped: bool) -> None:
    tco = plan.objective.kind == "tco"
    running = ((step.energy_usd + step.work_usd) * tco for step in claim.steps)
    total_usd = None if stopped else sum(step.capex_usd for step in claim.steps) + sum(running)
    optimum, saving = plan.objective.value, None
    holds = agree(claim.value, total_usd)
    if total_usd is not None and optimum is not None:
        saving = 0.0 if agree(total_usd, optimum) else total_usd - optimum
        slack = TOLERANCE * max(abs(total_usd), abs(optimum))
        holds = holds and claim.saving is not None and abs(saving - claim.saving) <= slack
    ledger.holds(
        "myopic-value",
        holds and (saving is None) == (claim.saving is None),
        claim.value,
        total_usd,
        "Planned one after the other, the phases end before the last one, but the plan states"
        " what they cost in all."
        if total_usd is None
        else f"Planned one after the other, the phases cost {exact_amount('capex', total_usd)},"
        f" and the saving of the plan is {exact_amount('capex', saving)}, but the plan states"
        f" {exact_amount('capex', claim.value)} and {exact_amount('capex', claim.saving)}.",
        TOLERANCE,
    )
