"""Does the plan hold the parts of its question, named as they should be, and does it say nothing twice differently?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.plan.couplings import NETWORK, Part, phase_name
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree


class Place(NamedTuple):
    """What a part or a coupling is of."""

    name: str | None = None
    site: str | None = None
    phase: float | None = None


def check_form(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check which parts there are, which of them couplings speak of, and what is said of a part more than once."""
    if not plan.parts:
        return
    said, wanted = [Place(part.name, part.site, part.phase) for part in plan.parts], list(_places(instance, plan))
    why = f"The parts are to be {_text(wanted)}, the plan has {_text(said)}."
    ledger.holds("parts", said == wanted, _text(said), _text(wanted), why)
    strange = list(_strange_couplings(instance, plan))
    why = f"The couplings speak of other parts than those of the plan: {', '.join(strange)}."
    ledger.holds("coupled", not strange, tuple(strange), (), why)
    _check_networks(ledger, instance, plan)
    _check_repeated(ledger, instance, plan)
    _check_powers(ledger, instance, plan)


def _places(instance: Instance, plan: Plan) -> Iterator[Place]:
    """The parts that a plan has, in order; sites are those of its ring."""
    if instance.problem == "partition":
        yield from (Place(workload.name) for workload in instance.workload)
    elif instance.problem == "phased":
        yield from (Place(phase_name(phase.year), phase=phase.year) for phase in instance.phase)
    elif instance.problem == "sites":
        ring = plan.couplings.ring
        yield from (Place(name, name) for name in (ring.sites if ring is not None else ()))
    elif instance.problem == "fleet":
        sites = {part.name: part.site for part in plan.parts}
        for _, year, name in island_places(instance):
            yield Place(name, sites.get(name), year)
    else:
        yield Place(NETWORK)


def island_names(instance: Instance) -> dict[str, tuple[str, ...]]:
    """The workloads of each island by its name: one each, or all of them on the one network they have in turn."""
    names = tuple(workload.name for workload in instance.workload)
    return {NETWORK: names} if instance.sharing.mode == "time" else {name: (name,) for name in names}


def island_places(instance: Instance) -> Iterator[tuple[str, float | None, str]]:
    """Island, year and name of every part of a fleet: an island stands from the first phase in which it trains."""
    for island, workloads in island_names(instance).items():
        if not instance.phase:
            yield island, None, island
        stands = False
        for phase in instance.phase:
            listed = {chosen.name for chosen in phase.workloads}
            stands = stands or not phase.workloads or not listed.isdisjoint(workloads)
            if stands:
                yield island, phase.year, f"{island}, {phase.year:.10g}"


def _text(places: list[Place]) -> str:
    return ", ".join(" ".join(str(word) for word in place if word is not None) for place in places) or "none"


def _strange_couplings(instance: Instance, plan: Plan) -> Iterator[str]:
    """Couplings that are not of the parts of the plan; those of a fleet are compared to what stands where and when."""
    if instance.problem == "fleet":
        return
    found, parts = plan.couplings, [Place(part.name, part.site, part.phase) for part in plan.parts]
    if [Place(one.site, one.site, one.phase) for one in found.sites] not in ([], parts):
        yield "sites"
    ring = found.ring
    if ring is not None and len(ring.site_shares) != len(ring.sites):
        yield "ring"
    if [spent.year for spent in found.growth] not in ([], [place.phase for place in parts]):
        yield "growth"
    if [(core.site, core.phase) for core in found.cores] not in ([], [(None, None)]):
        yield "cores"
    losses = [NETWORK] if instance.robust is not None and instance.robust.survive else []
    if [one.part for one in found.losses] not in ([], losses):  # a single domain has no network that could be lost
        yield "losses"


def _check_networks(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Each part is one network; bills of parts are left out of plans of schema 1 alone, and then of all of them."""
    linked = instance.problem == "direct"
    vague = tuple(
        part.name
        for part in plan.parts
        if (part.design is None) == (part.links is None) or (part.links is not None and not linked)
    )
    why = f"A part has either a design or, where the instance allows them, direct links: {', '.join(vague)}."
    ledger.holds("part-networks", not vague, vague, (), why)
    billed = [part.name for part in plan.parts if part.cost is not None]
    may_lack = instance.problem in ("partition", "phased")
    fine = len(billed) == len(plan.parts) or (may_lack and not billed)
    why = f"Of {len(plan.parts)} parts {len(billed)} have a bill of their own, needs all."
    ledger.holds("part-bills", fine, len(billed), len(plan.parts), why)


def _check_repeated(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """The top of a plan repeats its only part, and has no design of one among several."""
    only = plan.parts[0] if len(plan.parts) == 1 else None
    wrong = list(_unlike(plan, only, billed=only is not None and only.name == NETWORK and _is_whole(instance)))
    why = f"At its top the plan says something else than in its parts: {', '.join(wrong)}."
    ledger.holds("repeated", not wrong, tuple(wrong), (), why)


def _is_whole(instance: Instance) -> bool:
    """Whether the only part is all that is bought."""
    return instance.problem in ("shared", "robust", "direct")


def _unlike(plan: Plan, only: Part | None, *, billed: bool) -> Iterator[str]:
    if plan.design != (only.design if only is not None else None):
        yield "design"
    if plan.workloads != (only.workloads if only is not None else ()):
        yield "workloads"
    if billed and only is not None and plan.cost != only.cost:
        yield "cost"


def _check_powers(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """The power of a part is that of its bill, and of its phase where it is all that stands then."""
    alone = instance.problem == "phased"
    for part in plan.parts:
        drawn = [part.cost.power_w] if part.cost is not None else []
        drawn += [spent.power_w for spent in plan.couplings.growth if alone and spent.year == part.phase]
        why = f"Part {part.name!r} draws {part.power_w:,.2f} W, and {drawn} W by its bill and phase."
        fine = all(agree(part.power_w, power_w) for power_w in drawn)
        ledger.holds("part-power", fine, part.power_w, tuple(map(str, drawn)), why, TOLERANCE)
