"""Check that phases buy what stands and nothing more, at their prices, and that all sums hold.

Planning phase by phase has to end where the plan says.

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

from coopt.instance.errors import counted
from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.plan.couplings import Myopic, MyopicStep, PhaseSpending
from coopt.plan.schema import Cost, Item, Plan
from coopt.plan.schema_one import PhasePlan
from coopt.verifier.checks.verdict import STRICT, TOLERANCE, Ledger, agree
from coopt.verifier.couplings.growth import (
    GrownNetwork,
    GrowthPath,
    Growths,
    check_growth,
    check_phases,
    growths_of,
    is_drawn,
    link_labour_usd,
    links_added,
    phase_electricity_usd,
    price_factor,
    support_unit_usd,
)
from coopt.verifier.couplings.prices import check_limits
from coopt.verifier.couplings.stages import GrowthStage
from coopt.verifier.parts.bills import (
    BillTotal,
    CountedItem,
    LineKey,
    UnitPrice,
    bill,
    bill_total,
    key_of,
    least_racks,
)
from coopt.verifier.parts.design_checks import check_gear
from coopt.verifier.parts.part_checks import check_bill, check_objective, check_sums, is_product

RETROFIT = "retrofit links"


def check_phased(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Re-derive what a plan says of its phases, of their cost, and of planning phase by phase."""
    kind = plan.objective.kind
    fault = "Phases are planned for capex or tco."
    holds = ledger.holds("phased-objective", kind != "power", kind, ("capex", "tco"), fault)
    if not holds or plan.cost is None:
        return
    growths = growths_of(instance, kind)
    grown = check_growth(ledger, growths, plan)
    if grown is not None:
        check_phases(ledger, growths, plan, grown)
        check_purchases(ledger, instance, plan, grown)
    check_myopic(ledger, growths, plan)


class BegunNetwork(NamedTuple):
    """A network with the uplinks of its first phases, and what the last of these adds (USD)."""

    path: GrowthPath
    uplinks: tuple[int, ...]
    capex_usd: float = 0.0
    energy_usd: float = 0.0
    work_usd: float = 0.0


def check_myopic(ledger: Ledger, growths: Growths, plan: Plan) -> None:
    """Check steps, end and value of the myopic planner."""
    claim, kind = plan.myopic, plan.objective.kind
    if not ledger.holds(
        "myopic", claim is not None, claim is not None, True, "The myopic planner is missing."
    ):
        return
    assert claim is not None
    networks = [BegunNetwork(path, ()) for path in growths.paths]
    for step in claim.steps[: len(growths.questions)]:
        ledger.turn_to(f"Myopic step {step.year:g}", aside=True)
        check_gear(ledger, growths.instance, step.design)
        ledger.turn_to()
        networks = _networks_after(ledger, growths, networks, step, kind)
        if not networks:
            return
    t = len(claim.steps)
    stopped = claim.dead_end is not None
    at_end = t == len(growths.questions)
    if not at_end and stopped:
        at_end = math.isinf(_least_usd(growths, networks, t, kind))
    fault = "The myopic planner stops where it need not, or goes on where it cannot."
    ledger.holds(
        "myopic-end",
        at_end and stopped == (t < len(growths.questions)),
        t,
        len(growths.questions),
        fault,
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
    instance, t = growths.instance, len(uplinks) - 1
    stage = path[t]
    counts = units_in_place(instance, stage, uplinks[t])
    units = unit_prices(instance, (stage,), uplinks[t:])
    counts_before = units_in_place(instance, path[t - 1], uplinks[t - 1]) if t else {}
    goods = sum(
        (count - counts_before.get(key, 0)) * (units[key].usd * price_factor(instance, t, key[0]))
        for key, count in counts.items()
    )
    # Links of new switches are part of putting these up; labour is paid for those added to switches
    # that stood.
    links = links_added(path[t - 1], stage, uplinks[t - 1], uplinks[t]) if t else 0
    power_w = sum(units[key].w * count for key, count in counts.items())
    energy, work = (
        phase_electricity_usd(instance, t, power_w),
        phase_work_usd(instance, t, goods, counts, units),
    )
    return BegunNetwork(path, uplinks, goods + links * link_labour_usd(instance, t), energy, work)


def _networks_after(
    ledger: Ledger, growths: Growths, networks: list[BegunNetwork], step: MyopicStep, kind: str
) -> list[BegunNetwork]:
    """Check a step; the networks that stand as it says, none where a cheaper step exists."""
    t = len(networks[0].uplinks)
    # Names and counts need not tell networks apart: all that may be meant are followed.
    matching = [network for network in networks if _stands(growths, network, t, step)]
    extended = [
        _addition(growths, network.path, (*network.uplinks, _uplinks(step))) for network in matching
    ]
    as_priced = [
        network
        for network in extended
        if all(
            agree(getattr(network, key), getattr(step, key))
            for key in ("capex_usd", "energy_usd", "work_usd")
        )
    ]
    least_usd = _least_usd(growths, networks, t, kind)
    holds = bool(as_priced) and step.year == growths.instance.years[t]
    holds = holds and min(
        _value(network, kind) for network in as_priced
    ) <= least_usd + TOLERANCE * abs(least_usd)
    fault = (
        f"In {step.year:g} the least to add is {least_usd:,.2f} USD, and the myopic planner adds"
        " something else."
    )
    ledger.holds("myopic-step", holds, step.capex_usd, least_usd, fault, TOLERANCE)
    return as_priced if holds else []


def _uplinks(step: MyopicStep) -> int:
    tiers = step.design.fabric.tier
    return tiers[0].uplinks_per_switch if len(tiers) > 1 else 0


def _stands(growths: Growths, network: BegunNetwork, t: int, step: MyopicStep) -> bool:
    """Whether a network can be what a step builds."""
    stage, uplinks = network.path[t], _uplinks(step)
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
    value, optimum = claim.value, plan.objective.value
    holds = (value is None) == (total_usd is None) and (
        value is None or total_usd is None or agree(value, total_usd)
    )
    saving = None if total_usd is None or optimum is None else total_usd - optimum
    if saving is None or claim.saving is None:
        holds = holds and saving is claim.saving
    else:
        holds = holds and abs(saving - claim.saving) <= TOLERANCE * max(
            abs(total_usd or 0.0), abs(optimum or 0.0)
        )
    fault = f"Its phases together cost {total_usd}, which is {saving} more than the plan."
    ledger.holds("myopic-value", holds, claim.value, total_usd, fault, TOLERANCE)


def units_in_place(instance: Instance, stage: GrowthStage, uplinks: int) -> dict[LineKey, int]:
    """Units of every item that stand in a phase."""
    counts: dict[LineKey, int] = {}
    for line in _lines_of(instance, stage, uplinks):
        counts[line.key] = counts.get(line.key, 0) + line.amount
    return counts


def unit_prices(
    instance: Instance, path: GrowthPath, uplinks: Sequence[int]
) -> dict[LineKey, UnitPrice]:
    """What a unit of every item costs and draws."""
    lines = [
        line
        for stage, uplinks_of_stage in zip(path, uplinks, strict=True)
        for line in _lines_of(instance, stage, uplinks_of_stage)
    ]
    return {line.key: UnitPrice(line.unit_usd, line.unit_w) for line in lines}


def _lines_of(instance: Instance, stage: GrowthStage, uplinks: int) -> list[CountedItem]:
    return bill(instance, stage.family, stage.levels(uplinks), stage.optics)


def phase_work_usd(
    instance: Instance,
    phase: int,
    goods_usd: float,
    counts: dict[LineKey, int],
    units: dict[LineKey, UnitPrice],
) -> float:
    """Labour for what a phase buys, and support of what stands in it (USD)."""
    support = (
        count * support_unit_usd(instance, phase, key.kind, units[key].usd)
        for key, count in counts.items()
    )
    return instance.objective.labour_share * goods_usd + math.fsum(support)


def check_purchases(ledger: Ledger, instance: Instance, plan: Plan, grown: GrownNetwork) -> None:
    """Check lines, stores, sums and limits of every phase, and the bill of all."""
    units, purchases = unit_prices(instance, grown.path, grown.uplinks), Counter[LineKey]()
    for t, phase in enumerate(plan.phases):
        ledger.turn_to(f"Phase {phase.year:g}")
        standing_counts = units_in_place(instance, grown.path[t], grown.uplinks[t])
        purchases.update(
            {key_of(item): item.count for item in phase.bought if item.kind != "labour"}
        )
        _check_lines(ledger, instance, t, phase, grown, units)
        _check_store(ledger, phase, purchases, standing_counts, is_last=t + 1 == len(plan.phases))
        lines = _lines_of(instance, grown.path[t], grown.uplinks[t])
        check_bill(ledger, lines, bill_total(lines, instance.objective), plan.parts[t].cost)
        power_w = sum(units[key].w * count for key, count in standing_counts.items())
        check_spent(
            ledger,
            phase,
            power_w,
            phase_electricity_usd(instance, t, power_w),
            years_of(instance, t),
        )
        _check_work(ledger, instance, t, phase, standing_counts, units)
        _check_limits(ledger, instance, phase, grown, t)
    ledger.turn_to()
    _check_totals(ledger, plan)


def _check_lines(
    ledger: Ledger,
    instance: Instance,
    t: int,
    phase: PhasePlan,
    grown: GrownNetwork,
    units: dict[LineKey, UnitPrice],
) -> None:
    """Check that items are listed once each at the prices of the phase, and labour for links that
    are added.
    """
    goods = [item for item in phase.bought if item.kind != "labour"]
    labour = [item for item in phase.bought if item.kind == "labour"]
    faults = [
        item.item for item in goods if not _has_prices(item, units.get(key_of(item)), instance, t)
    ]
    faults += [key.text for key, count in Counter(map(key_of, goods)).items() if count > 1]
    links = (
        links_added(grown.path[t - 1], grown.path[t], grown.uplinks[t - 1], grown.uplinks[t])
        if t
        else 0
    )
    rate = link_labour_usd(instance, t)
    labour_due = [(LineKey("labour", RETROFIT), links, rate, 0.0)] if links and rate else []
    if [(key_of(item), item.count, item.unit_usd, item.unit_w) for item in labour] != labour_due:
        faults.append(f"labour for {counted(links, 'link')} at {rate:g} USD")
    if not all(is_product(item) for item in labour):
        faults.append("the product of labour")
    fault = f"What this phase pays for differs in: {', '.join(faults)}."
    ledger.holds("bought-lines", not faults, tuple(faults), (), fault, TOLERANCE)


def _has_prices(item: Item, unit: UnitPrice | None, instance: Instance, t: int) -> bool:
    if unit is None or item.count < 1:
        return False
    usd = unit.usd * price_factor(instance, t, item.kind)
    return agree(item.unit_usd, usd) and agree(item.unit_w, unit.w) and is_product(item)


def _check_store(
    ledger: Ledger,
    phase: PhasePlan,
    purchases: Counter[LineKey],
    standing_counts: dict[LineKey, int],
    *,
    is_last: bool,
) -> None:
    """Check that what stands was bought by then, that the rest is in store, and that nothing is
    left in the end.
    """
    lacking = tuple(key.text for key, count in standing_counts.items() if purchases[key] < count)
    fault = f"More of these stands than was bought so far: {', '.join(lacking)}."
    ledger.holds("in-place", not lacking, lacking, (), fault)
    # Storing costs nothing, but after the last phase there is nothing to store for.
    over = {key: count - standing_counts.get(key, 0) for key, count in purchases.items()}
    surplus: dict[tuple[str, str], int] = {
        (key.kind, key.text): count for key, count in over.items() if count > 0
    }
    claimed_store: dict[tuple[str, str], int] = {
        (item.kind, item.item): item.count for item in phase.stored
    }
    holds = (
        claimed_store == surplus
        and len(claimed_store) == len(phase.stored)
        and not (is_last and surplus)
    )
    fault = "What is in store is not what was bought and does not stand" + (
        ", or is left over." if is_last else "."
    )
    ledger.holds("stored", holds, _texts(claimed_store), _texts(surplus), fault)


def _texts(counts: dict[tuple[str, str], int]) -> tuple[str, ...]:
    return tuple(f"{key[0]}: {count} x {key[1]}" for key, count in sorted(counts.items()))


def check_spent(
    ledger: Ledger,
    phase: PhasePlan | PhaseSpending,
    power_w: float,
    electricity_usd: float,
    years: float,
) -> None:
    """Check what a phase spends and draws, how long it lasts, and what electricity costs until the
    next one.
    """
    spent_usd = math.fsum(item.usd for item in phase.bought)
    fault = f"This phase spends {spent_usd:,.2f} USD, the plan says {phase.capex_usd:,.2f}."
    ledger.close("phase-capex", phase.capex_usd, spent_usd, fault)
    fault = f"What stands draws {power_w:,.2f} W, the plan says {phase.power_w:,.2f}."
    ledger.close("phase-power", phase.power_w, power_w, fault)
    fault = f"Electricity costs {electricity_usd:,.2f} USD, the plan says {phase.energy_usd:,.2f}."
    ledger.close("phase-energy", phase.energy_usd, electricity_usd, fault)
    ledger.close(
        "phase-years",
        phase.years,
        years,
        f"The years that it lasts are {years:g}, the plan says {phase.years:g}.",
    )


def _check_work(
    ledger: Ledger,
    instance: Instance,
    t: int,
    phase: PhasePlan,
    counts: dict[LineKey, int],
    units: dict[LineKey, UnitPrice],
) -> None:
    goods_usd = math.fsum(item.usd for item in phase.bought if item.kind != "labour")
    usd = phase_work_usd(instance, t, goods_usd, counts, units)
    fault = f"Labour and support cost {usd:,.2f} USD, the plan says {phase.work_usd:,.2f}."
    ledger.close("phase-work", phase.work_usd, usd, fault)


def _check_limits(
    ledger: Ledger, instance: Instance, phase: PhasePlan, grown: GrownNetwork, t: int
) -> None:
    # Power and racks are limited in every phase; an instance that grows has no limit on capex.
    family = grown.path[t].family
    racks = (
        None if family.hb.racks is None else least_racks(family.domains, family.hb.racks, TOLERANCE)
    )
    check_limits(
        ledger, instance, BillTotal(phase.capex_usd, phase.power_w, phase.capex_usd), racks
    )


def check_dated(ledger: Ledger, growth: Sequence[PhasePlan | PhaseSpending], cost: Cost) -> None:
    """Check that a bill is what phases buy."""
    dated = [
        (key_of(item)._replace(year=phase.year), item) for phase in growth for item in phase.bought
    ]
    lines = tuple(
        item.model_copy(update={"year": key.year, "item": key.text}) for key, item in dated
    )
    fault = "The bill of the plan is not what its phases buy, each line with its year."
    ledger.holds("phased-bill", cost.items == lines, len(cost.items), len(lines), fault)


def _check_totals(ledger: Ledger, plan: Plan) -> None:
    """The bill of the plan, and what it sums to."""
    cost = plan.cost
    assert cost is not None
    check_dated(ledger, plan.phases, cost)
    capex = math.fsum(item.usd for phase in plan.phases for item in phase.bought)
    tco = capex + math.fsum(phase.energy_usd + phase.work_usd for phase in plan.phases)
    sums = BillTotal(capex, plan.phases[-1].power_w, tco)
    check_sums(ledger, sums, cost)
    check_objective(ledger, plan, sums)
