"""Plan each phase as if it were the last: what does not looking ahead cost?

The myopic planner knows how many GPUs will come, so that leaves and ports suit the end, and knows nothing of later
bounds, workloads and prices. In each phase it adds what is cheapest then, and buys nothing ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.instance.variants import workloads_of
from coopt.network.growth import Line
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Myopic, MyopicStep
from coopt.plan.schema import Design
from coopt.solving.phased.demand import Demand
from coopt.solving.phased.search import Growth, grown_at

Uplinks = tuple[int, ...]
Open = list[tuple[int, Uplinks]]  # lines that begin with what is in place, and their uplinks so far


def without_foresight(instance: Instance, demand: Demand, value: float | None) -> Myopic:
    """What planning phase by phase builds.

    Parameters
    ----------
    value
        The objective of the plan to compare with; None without one.
    """
    open_lines: Open = [(f, ()) for f in range(len(demand.lines))]
    steps: list[MyopicStep] = []
    growth = None
    for t, phase in enumerate(instance.phase):
        able = [(f, (*before, u)) for f, before in open_lines if (u := _uplinks(demand, f, t, before)) is not None]
        if not able:
            reason = _dead_end(instance, demand, open_lines, t, steps[-1].design if steps else None)
            return Myopic(steps=tuple(steps), value=None, saving=None, dead_end=reason)
        growth, built = _cheapest(instance, demand, able, t)
        spent = growth.spent[t]
        steps.append(MyopicStep(year=phase.year, design=built, capex_usd=spent.capex_usd, energy_usd=spent.energy_usd))
        open_lines = list(_standing(demand, open_lines, t, growth.uplinks[-1], built))
    assert growth is not None
    own = growth.cost.of(instance.objective.minimize)
    saving = None if value is None else own - value
    return Myopic(steps=tuple(steps), value=own, saving=saving, dead_end=None)


def _standing(demand: Demand, open_lines: Open, t: int, uplinks: int, built: Design) -> Iterator[tuple[int, Uplinks]]:
    """Lines that stand as built, with their uplinks."""
    for f, before in open_lines:
        line, rises = demand.lines[f], not before or before[-1] <= uplinks
        if rises and uplinks in demand.allowed[f][t] and _same(_design(line, (*before, uplinks)), built):
            yield f, (*before, uplinks)


def _same(one: Design, other: Design) -> bool:
    """Whether two designs build the same; one HB domain buys no network, whatever is named."""
    bare = one.fabric.tiers == other.fabric.tiers == 0
    return one.hb_domain == other.hb_domain if bare else one == other


def _uplinks(demand: Demand, f: int, t: int, before: Sequence[int]) -> int | None:
    """The fewest uplinks that serve a phase over those that stand; None where no number does."""
    allowed = demand.allowed[f][t]
    least = max(allowed[0], *before) if allowed and before else allowed[0] if allowed else None
    return least if least is not None and least <= allowed[-1] else None


def _cheapest(instance: Instance, demand: Demand, able: Open, t: int) -> tuple[Growth, Design]:
    """What adds least in a phase, with electricity until the next one where it counts; the earliest among equals."""
    grown = (grown_at(instance, demand.lines[f], uplinks, ahead=False) for f, uplinks in able)
    best = min(grown, key=lambda one: _added(instance, one, t))
    return best, _design(best.line, best.uplinks)


def _added(instance: Instance, growth: Growth, t: int) -> float:
    energy = growth.spent[t].energy_usd if instance.objective.minimize == "tco" else 0.0
    return growth.spent[t].capex_usd + energy


def _design(line: Line, uplinks: Sequence[int]) -> Design:
    """What stands in the phase of the last of some uplinks."""
    return design_of(line.phases[len(uplinks) - 1], uplinks[-1])


def _dead_end(instance: Instance, demand: Demand, open_lines: Open, t: int, standing: Design | None) -> str:
    """Which phase cannot be served from what stands, and what it would have to keep."""
    phase = instance.phase[t]
    kept = any(demand.timely[f][t] for f, _ in open_lines)
    limits = (
        "the limits of the instance"
        if kept
        else "the time bounds of " + ", ".join(workload.name for workload in workloads_of(instance, phase))
    )
    start = "nothing" if standing is None else f"{standing.hb_domain.count:,} x {standing.hb_domain.name}"
    return f"in {phase.year:g} no network that grows from {start} to {phase.gpus:,} GPUs keeps {limits}"
