"""What the plan claims about itself: its question, parts and names, its status, its value, its
bound; and each once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import both, exact_amount, that_hold
from coopt.instance.variants import phases_of
from coopt.plan.couplings import NETWORK, Couplings
from coopt.plan.overrides import keys_set_apart, may_differ_as_set
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.verifier.checks.verdict import (
    TOLERANCE,
    Ledger,
    agree,
)

LARGEST_NUMBER = 1e18
"""No count, price, power or time of a plan comes near this; beyond it arithmetic stops being exact
or overflows.
"""


class Place(NamedTuple):
    """What a part or a coupling is of."""

    name: str | None = None
    site: str | None = None
    phase: float | None = None


def form_of(instance: Instance) -> tuple[list[str], list[str]]:
    """The sections of an answer to a question beside cost and value, and those that it may have;
    `design` and `workloads` repeat those of the only part.
    """
    asked = {
        "parts": True,
        "growth": instance.phase,
        "sites": instance.site,
        "ring": instance.asks("ring"),
        "outlooks": instance.robust and not instance.asks("ring"),
        "rivals": instance.asks("direct"),
    }
    allowed = {
        "design": True,
        "workloads": True,
        "cores": instance.sharing.core,
        "losses": instance.losses and not instance.asks("ring"),
        "myopic": grows_alone(instance, instance.objective.minimize),
        "alternatives": not instance.beyond_one_network,
        "alternatives_stop": not instance.beyond_one_network,
        "better_numbers": not instance.beyond_one_network,
        "cliffs": not instance.beyond_one_network,
        "next_best": not (instance.asks("ring", "direct") or instance.robust),
        "ties": instance.tells_ties,
        "assumptions": not instance.asks("ring"),
    }
    return that_hold(asked), that_hold(allowed)


def bought_at_once(instance: Instance) -> bool:
    """Whether all is one network, at one place and time."""
    return not (instance.sharing.mode == "partition" or instance.phase or instance.site)


def chooses_islands(instance: Instance) -> bool:
    """Whether its bound is one on choices of islands: several, in phases, or at once prone to
    losses and failures.
    """
    return not bought_at_once(instance) or bool(instance.robust and instance.availability)


def grows_alone(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether it asks for one network that grows, whatever may happen at prices that are known."""
    many_sided = instance.sharing.mode == "partition" or instance.network.many_sided
    tables = (instance.site, instance.robust, instance.availability)
    return bool(instance.phase) and not (many_sided or any(tables)) and kind != "power"


ABOUT = (
    *("schema_", "instance", "status", "stop_reason", "explanation"),
    *("objective", "overrides", "chosen", "tp_across", "solver", "timing_s"),
)
"""What every answer has, one without a plan as well."""

TOP = tuple(name for name in Plan.model_fields if name not in (*ABOUT, "cost", "couplings"))
EVERY_SECTION = (*TOP, *Couplings.model_fields)
"""What only a plan has, of any kind: sections at its top, and couplings."""


def check_numbers(ledger: Ledger, plan: Plan) -> bool:
    """Whether all numbers can be computed with."""
    wild = tuple(
        f"plan{path}" for path in _wild_paths(plan.model_dump(exclude={"solver", "timing_s"}))
    )
    return ledger.holds(
        "numbers",
        not wild,
        wild[:5],
        f"all at most {LARGEST_NUMBER:.0e}",
        f"The plan has numbers beyond {LARGEST_NUMBER:.0e}, too large to compute with:"
        f" {', '.join(wild[:5])}{f' and {len(wild) - 5} more' if len(wild) > 5 else ''}.",
    )


def _wild_paths(value: object) -> list[str]:
    """The paths that lead from a value to numbers beyond those one can compute with."""
    if isinstance(value, dict):
        return [f".{key}{path}" for key, child in value.items() for path in _wild_paths(child)]
    if isinstance(value, list | tuple):
        return [f"[{i}]{path}" for i, child in enumerate(value) for path in _wild_paths(child)]
    return [""] if isinstance(value, int | float) and not abs(value) <= LARGEST_NUMBER else []


def check_question(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether the plan answers this instance."""
    claim, question = plan.instance, instance
    fault = (
        f"The plan was made for instance {claim.name!r}, not for {question.name!r}."
        if claim.name != question.name
        else f"The plan was made for an instance {claim.name!r} with other contents than this one."
    )
    is_same = claim.name == question.name and claim.sha256 == question.sha256
    if not is_same and may_differ_as_set(instance, plan):
        fault += (
            " It was solved with --set values, which have to be the same here:"
            f" {plan.overrides.replaced}."
        )
    ledger.holds(
        "instance",
        is_same,
        f"{claim.name} {claim.sha256}",
        f"{question.name} {question.sha256}",
        fault,
    )
    return is_same and _check_replaced(ledger, instance, plan)


def _check_replaced(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether the instance has the values that a plan says were set in it: set once more they
    change nothing.
    """
    if not plan.overrides.values:
        return True
    differing = keys_set_apart(instance, plan.overrides.values)
    return ledger.holds(
        "replaced",
        not differing,
        plan.overrides.replaced,
        None,
        f"The plan records --set values that differ from the instance: {', '.join(differing)}.",
    )


def asked_kind(instance: Instance, plan: Plan) -> ObjectiveKind:
    """The objective that counts: that of the instance, else the one that the plan says the run was
    asked for.
    """
    return plan.overrides.objective or instance.objective.minimize


def gap_target(instance: Instance, plan: Plan) -> float:
    """The gap that counts: that of the instance, else the one that the plan says the run was asked
    for.
    """
    return instance.solver.gap if plan.overrides.gap is None else plan.overrides.gap


def check_asked(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that objective and gap are those of the instance, or that the plan says that they were
    overridden.
    """
    kind, target, claimed_gap = (
        plan.objective.kind,
        gap_target(instance, plan),
        plan.solver.options.get("gap"),
    )
    fault = (
        f"The plan minimizes {kind}, but {_asker(plan.overrides.objective)}"
        f" {asked_kind(instance, plan)}."
    )
    ledger.same("objective-kind", kind, asked_kind(instance, plan), fault)
    fault = (
        f"The plan was solved to a gap of {claimed_gap}, but {_asker(plan.overrides.gap)}"
        f" {target:g}."
    )
    ledger.holds(
        "gap-target", claimed_gap is None or claimed_gap == target, claimed_gap, target, fault
    )
    if (kind := asked_kind(instance, plan)) != instance.objective.minimize:
        ledger.overridden.append(f"{kind} in place of {instance.objective.minimize}")
    if target != instance.solver.gap:
        ledger.overridden.append(f"a gap of {target:.4%} in place of {instance.solver.gap:.4%}")


def _asker(override: object) -> str:
    return "the instance asks for" if override is None else "its `overrides` ask for"


def check_status(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that status, contents and gap go together."""
    fault = _status_fault(plan, gap_target(instance, plan), form_of(instance))
    ledger.holds(
        "status", not fault, plan.status, "consistent" if not fault else "inconsistent", fault
    )


def _status_fault(plan: Plan, target: float, form: tuple[list[str], list[str]]) -> str:
    """What contradicts the status, as a sentence; empty where nothing does."""
    objective, (needed, allowed) = plan.objective, form
    sections_held = [
        name for name in EVERY_SECTION if getattr(plan if name in TOP else plan.couplings, name)
    ]
    if foreign := [name for name in sections_held if name not in (*needed, *allowed)]:
        return f"Sections of the plan do not apply to this instance: {', '.join(foreign)}."
    parts: dict[str, object] = {"cost": plan.cost, "objective value": objective.value}
    present = [key for key, part in parts.items() if part is not None]
    present += sections_held
    if plan.status in ("infeasible", "unknown"):
        if present:
            return (
                f"With status {plan.status!r} there is no plan, but this one has {both(present)}."
            )
        if objective.gap is not None:
            return f"With status {plan.status!r} there is no plan, but a gap is given."
        if plan.status == "infeasible" and objective.bound is not None:
            return "An infeasible instance has no bound, but one is given."
        return ""
    # From here on the plan builds something, so that all that its form has must be there.
    lacking = [key for key in (*parts, *needed) if key not in present]
    if lacking:
        return f"Status {plan.status!r} needs a whole plan, but this one lacks {both(lacking)}."
    if plan.status == "optimal":
        if objective.gap is None:
            return "The plan has status optimal, but states no gap."
        if not objective.gap <= target + TOLERANCE:
            return (
                f"The plan has status optimal with a gap of {objective.gap:g}, above the target of"
                f" {target:g}."
            )
    elif objective.gap is not None and objective.gap <= target + TOLERANCE:
        return (
            f"The plan has status feasible, but its gap of {objective.gap:g} is within the target"
            f" of {target:g}."
        )
    return ""


def check_gap(ledger: Ledger, plan: Plan) -> None:
    """Check the arithmetic between value, bound and gap."""
    objective = plan.objective
    value, bound, gap = objective.value, objective.bound, objective.gap
    if value is None or bound is None:
        fault = "The plan states a gap, but not both a value and a bound."
        ledger.same("gap", gap, None, fault)
        return
    recomputed = (value - bound) / value if value else (0.0 if bound == value else math.inf)
    # A bound above the value would make a negative gap: it bounds nothing.
    holds = gap is not None and abs(gap - recomputed) <= TOLERANCE and recomputed >= -TOLERANCE
    amounts = [exact_amount(objective.kind, amount) for amount in (value, bound)]
    ledger.holds(
        "gap",
        holds,
        gap,
        recomputed,
        f"The bound of {amounts[1]} is above the value of {amounts[0]}."
        if bound > value and abs(recomputed) > TOLERANCE
        else f"The value of {amounts[0]} and the bound of {amounts[1]} give a gap of"
        f" {recomputed:.9g}, but the plan states {'none' if gap is None else f'{gap:.9g}'}.",
        TOLERANCE,
    )


def none_feasible(plan: Plan) -> Plan:
    """The claim that nothing is feasible, by who made the plan and for its objective."""
    return Plan(
        instance=plan.instance,
        status="infeasible",
        stop_reason="infeasible",
        objective=ObjectiveClaim(kind=plan.objective.kind, value=None, bound=None, gap=None),
        overrides=plan.overrides,
        solver=plan.solver,
        timing_s=plan.timing_s,
    )


def check_form(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check which parts there are, which of them couplings speak of, and what is said of a part
    more than once.
    """
    if not plan.parts:
        return
    claimed_places = [Place(part.name, part.site, part.phase) for part in plan.parts]
    places = list(_places(instance, plan))
    ledger.holds(
        "parts",
        claimed_places == places,
        _text(claimed_places),
        _text(places),
        f"The plan has to have the parts {_text(places)}, but has {_text(claimed_places)}.",
    )
    # those of a ring of sites alone: all others are compared to what stands where
    ring, powers = plan.couplings.ring, plan.couplings.sites
    fed = [Place(claim.site, claim.site, claim.phase) for claim in powers]
    strange = tuple(
        that_hold(
            {
                "sites": ring and fed != claimed_places,
                "ring": ring and len(ring.site_shares) != len(ring.sites),
            }
        )
    )
    ledger.holds(
        "coupled",
        not strange,
        strange,
        (),
        f"These `couplings` of the plan do not match its parts: {', '.join(strange)}.",
    )
    _check_networks(ledger, instance, plan)
    _check_repeated(ledger, instance, plan)
    _check_powers(ledger, instance, plan)


def _places(instance: Instance, plan: Plan) -> Iterator[Place]:
    """The sites of a ring, or the islands of a plan at the sites where it has them stand."""
    if instance.asks("ring"):
        ring = plan.couplings.ring
        yield from (Place(name, name) for name in (ring.sites if ring is not None else ()))
        return
    sites = {part.name: part.site for part in plan.parts} if None not in instance.sites else {}
    for _, year, name in island_places(instance):
        yield Place(name, sites.get(name), year)


def island_names(instance: Instance) -> dict[str, tuple[str, ...]]:
    """The workloads of each island by its name: one each, or all of them on the one network they
    have in turn.
    """
    names = tuple(workload.name for workload in instance.workload)
    return (
        {NETWORK: names} if instance.sharing.mode == "time" else {name: (name,) for name in names}
    )


def island_places(instance: Instance) -> Iterator[tuple[str, float | None, str]]:
    """Island, year and name of every part of a fleet: an island stands from the first phase in
    which it trains.
    """
    for island, workloads in island_names(instance).items():
        stands = False
        for year, question in zip(instance.years, phases_of(instance), strict=True):
            # Nothing is taken down: an island stands on in phases in which it does not train.
            stands = stands or not {workload.name for workload in question.workload}.isdisjoint(
                workloads
            )
            if stands:
                yield island, year, island if year is None else f"{island}, {year:.10g}"


def _text(places: list[Place]) -> str:
    return "; ".join(map(_place_text, places)) or "none"


def _place_text(place: Place) -> str:
    """A part by its name, with its site and phase where it has them."""
    # one model at several sites has parts that bear the names of these
    site = f" at {place.site}" if place.site and place.site != place.name else ""
    return f"{place.name}{site}{'' if place.phase is None else f' (phase {place.phase:.10g})'}"


def _check_networks(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Each part is one network."""
    has_links = bool(instance.asks("direct"))
    vague = tuple(
        part.name
        for part in plan.parts
        if (part.design is None) == (part.links is None)
        or (part.links is not None and not has_links)
    )
    ledger.holds(
        "part-networks",
        not vague,
        vague,
        (),
        "Each part has to have either a design or, where the instance allows them, direct links,"
        f" but {both(vague)} {'has' if len(vague) == 1 else 'have'} not.",
    )


def _check_repeated(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """The top of a plan repeats its only part, and has no design of one among several."""
    only = plan.parts[0] if len(plan.parts) == 1 else None
    # the only network of what is bought at once is all that is bought
    wrong = that_hold(
        {
            "design": plan.design != (None if only is None else only.design),
            "workloads": plan.workloads != (() if only is None else only.workloads),
            "cost": bought_at_once(instance) and only is not None and plan.cost != only.cost,
        }
    )
    duty = "repeat those of its only part" if only else "be empty where it has several parts"
    ledger.holds(
        "repeated",
        not wrong,
        tuple(wrong),
        (),
        f"Fields at the top of the plan have to {duty}: {', '.join(wrong)}.",
    )


def _check_powers(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """The power of a part is that of its bill, and of its phase where it is all that stands
    then.
    """
    # Islands share a phase, so that only one network is all that its phase draws.
    has_one_network = instance.sharing.mode == "time"
    drawn_w = plan.couplings.drawn_w(plan.cost) if plan.cost is not None and has_one_network else {}
    for part in plan.parts:
        powers_w = [part.cost.power_w]
        if part.phase is not None and part.phase in drawn_w:
            powers_w.append(drawn_w[part.phase])
        ledger.turn_to(part=part.name if len(plan.parts) > 1 else "")
        of_bill, *of_phase = (exact_amount("power", power_w) for power_w in powers_w)
        fault = (
            f"The plan says that this network draws {exact_amount('power', part.power_w)}; its"
            f" bill says {of_bill}{f' and its phase {of_phase[0]}' if of_phase else ''}."
        )
        fine = all(agree(part.power_w, power_w) for power_w in powers_w)
        ledger.holds(
            "part-power",
            fine,
            part.power_w,
            tuple(dict.fromkeys(map(str, powers_w))),
            fault,
            TOLERANCE,
        )
    ledger.turn_to()
