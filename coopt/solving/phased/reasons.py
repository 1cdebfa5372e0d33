"""Why no network grows as an instance asks: which phase, and which bound or limit of it."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from coopt.network.growth import grows
from coopt.network.space import active_choices, families
from coopt.solving import explain
from coopt.solving.phased.demand import Demand


def no_line(instance: Instance) -> tuple[str, ...]:
    """Nothing in [network] can join the GPUs of every phase."""
    alone = [
        _in_phase(instance, t, text)
        for t in range(len(instance.phase))
        if next(families(question := of_phase(instance, t)), None) is None
        for text in explain.no_family(question)
    ]
    if alone:
        return tuple(alone)
    counts = [phase.gpus for phase in instance.phase]
    last = counts[-1]
    spread = [
        active
        for hb in instance.network.hb_domains
        for active in active_choices(last, hb)
        if all(gpus % active == 0 for gpus in counts)
    ]
    listed = ", ".join(f"{gpus:,}" for gpus in counts)
    if not spread:
        return (
            f"no HB domain holds the same number of active GPUs in every phase ({listed} GPUs): needs GPU counts that "
            "share a divisor of more than half of an HB domain",
        )
    if any(family.active in spread and grows(family, counts) for family in families(instance)):
        return (
            f"no network that joins {last:,} GPUs has uplinks in every phase that spread over the spines of the last "
            "one in even bundles: needs a larger oversubscription, or network.bundles = 'any'",
        )
    return (
        f"every network that joins {last:,} GPUs is rail-optimized with three tiers, which cannot grow from "
        f"{counts[0]:,}: needs another fabric, switches of more ports, or all GPUs from the start",
    )


def no_growth(instance: Instance, demand: Demand) -> tuple[str, ...]:
    """Lines, but none that serves every phase."""
    return tuple(_bounds(instance, demand)) or tuple(_limits(instance, demand))


def _bounds(instance: Instance, demand: Demand) -> Iterator[str]:
    """Phases whose time bounds no line meets; or that each is met, and never all by one line."""
    unmet = [t for t in range(len(instance.phase)) if not any(row[t] for row in demand.timely)]
    for t in unmet:
        families_then = tuple(line.phases[t] for line in demand.lines)
        for text in explain.no_design(demand.questions[t], families_then, demand.tables[t]):
            yield _in_phase(instance, t, text)
    if not unmet and not any(all(row) for row in demand.timely):
        kept = max(next(t for t, part in enumerate(row) if not part) for row in demand.timely)
        yield (
            "the time bounds of each phase can be met by some network, but those of all phases by none that grows: "
            f"the one that keeps them longest fails in {instance.phase[kept].year:g}; "
            "needs a looser bound there or before"
        )


def _limits(instance: Instance, demand: Demand) -> Iterator[str]:
    """Phases whose limits every line exceeds that meets all time bounds."""
    timely = [f for f, row in enumerate(demand.timely) if all(row)]
    over = [t for t in range(len(instance.phase)) if not any(demand.allowed[f][t] for f in timely)]
    for t in over:
        families_then = tuple(demand.lines[f].phases[t] for f in timely)
        for text in explain.over_limits(demand.questions[t], families_then, demand.tables[t]):
            yield _in_phase(instance, t, text)
    if not over:
        yield (
            "the limits of each phase can be kept by some network, but those of all phases by none that grows: "
            "needs a looser limit, or looser bounds in an early phase"
        )


def _in_phase(instance: Instance, t: int, text: str) -> str:
    return f"phase of {instance.phase[t].year:g}: {text}"
