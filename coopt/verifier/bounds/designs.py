"""Check the bound of one cluster, its runners-up and its rivals by going through all designs with
switches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Literal

from coopt.instance.question import BILLED, ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted, exact_amount
from coopt.plan.schema import ObjectiveClaim, Plan, Rivals
from coopt.verifier.bounds.timed import (
    timed_designs,
)
from coopt.verifier.checks.claims import check_gap, gap_target
from coopt.verifier.checks.rivals import (
    Counterexample,
    check_claims,
    check_no_rival,
    note_undecided,
)
from coopt.verifier.checks.verdict import (
    LENIENT,
    ROUNDING,
    STRICT,
    TOLERANCE,
    Ledger,
    agree,
    is_below,
)
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.couplings.scenarios import certain_question
from coopt.verifier.parts.enumeration import (
    Condition,
    FoundDesign,
    cheapest_design,
    designs_below,
    no_condition,
)
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import DesignFamily

StandsWithin = Callable[[float], Condition]
"""What else designs have to do, with bounds taken short by a share."""


def any_design(margin: float) -> Condition:
    """Nothing else."""
    return no_condition


def check_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no feasible design that stands all losses costs less than the bound, and that none
    exists where the plan says so.
    """
    question, stands = certain_question(instance), any_design
    if instance.losses:
        stands = partial(loss_condition, question)
    check_claims(ledger, plan, partial(_rival, question, plan.objective.kind, stands))


def _rival(
    instance: Instance, kind: ObjectiveKind, stands: StandsWithin, bound: float, margin: float
) -> Counterexample | None:
    """The cheapest feasible design worth less than a bound."""
    design = _cheapest_design(instance, kind, bound, stands, margin)
    return (
        None if design is None else Counterexample(design_text(design, kind), float(design.value))
    )


@lru_cache(maxsize=64)
def _cheapest_design(
    instance: Instance, kind: ObjectiveKind, bound: float, stands: StandsWithin, margin: float
) -> FoundDesign | None:
    """The cheapest feasible design worth less than a bound, with interruptions where the instance
    has any.

    It is kept for further plans of the instance with the same bound.
    """
    if kind == BILLED[kind] and instance.availability is None:
        return cheapest_design(instance, kind, bound, stands(margin), margin)[0]
    find = designs_below if kind == BILLED[kind] else timed_designs
    return min(find(instance, kind, bound, margin=margin), key=attrgetter("value"), default=None)


@lru_cache(maxsize=4)
def _feasible_below(
    instance: Instance, kind: ObjectiveKind, bound: float, margin: float
) -> tuple[FoundDesign, ...]:
    """Kept for further plans of the instance with the same runners-up."""
    return tuple(designs_below(instance, kind, bound, margin=margin))


def design_text(design: FoundDesign, kind: ObjectiveKind) -> str:
    """A design in a few words."""
    family, ports, value = design.family, design.ports, exact_amount(kind, float(design.value))
    attachment = family.attachment
    up = f", {counted(ports.up, 'uplink')} a leaf" if ports.tiers > 1 else ""
    fabric = (
        f"{attachment.kind}, {counted(ports.tiers, 'tier')}{up}" if attachment else "no network"
    )
    return (
        f"{value} with {family.domains} x {family.hb.name!r},"
        f" {counted(family.active, 'active GPU')} each, {fabric}"
    )


def check_rivals(ledger: Ledger, instance: Instance, plan: Plan, rivals: Rivals) -> None:
    """Check the claims on direct links and on switches, that the plan is the cheaper, and the value
    of switches.
    """
    objective, claims = plan.objective, (rivals.direct, rivals.switched)
    for subject, claim in (("Direct links", rivals.direct), ("Switches", rivals.switched)):
        ledger.turn_to(subject)
        check_gap(ledger, plan.model_copy(update={"objective": claim}))
    ledger.turn_to()
    winner = rivals.direct if plan.parts and plan.parts[0].links is not None else rivals.switched
    values = [claim.value for claim in claims if claim.value is not None]
    consistent = winner.value == objective.value == min(values, default=None) and all(
        claim.kind == objective.kind for claim in claims
    )
    ledger.holds(
        "rivals",
        consistent,
        objective.value,
        winner.value,
        "The plan has to build what has the lower value, direct links"
        f" ({exact_amount(objective.kind, rivals.direct.value)}) or switches"
        f" ({exact_amount(objective.kind, rivals.switched.value)}), and to state that value for its"
        f" objective; it states {exact_amount(objective.kind, objective.value)}.",
    )
    proven = [claim.bound for claim in claims if claim.bound is not None]
    missing = [
        name
        for name, claim in zip(("direct links", "switches"), claims, strict=True)
        if claim.bound is None and (claim.value is not None or not proven)
    ]
    holds = objective.bound is None or (
        not missing and agree(objective.bound, min([*proven, objective.value or math.inf]))
    )
    ledger.holds(
        "rivals-bound",
        holds,
        objective.bound,
        min(proven, default=None),
        f"The plan states a bound, but none for {both(missing)}."
        if missing
        else f"The bound of the plan is {exact_amount(objective.kind, objective.bound)}, but has to"
        f" be the lowest of its value, {exact_amount(objective.kind, objective.value)}, and its"
        " bounds for direct links and for switches"
        f" ({both(exact_amount(objective.kind, bound) for bound in proven)}).",
        TOLERANCE,
    )
    value = rivals.switched.value
    if value is not None:
        # wide enough for designs that agree with the value
        designs = designs_below(
            instance, objective.kind, value * (1 + 2 * TOLERANCE), margin=LENIENT
        )
        exists = any(agree(float(design.value), value) for design in designs)
        ledger.holds(
            "rival-value",
            exists,
            value,
            exists,
            "No feasible cluster with switches has the value"
            f" {exact_amount(objective.kind, value)}.",
            TOLERANCE,
        )


def check_rival_bounds(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no cluster with switches costs less than a bound, and that none is feasible where
    the plan says so.

    It says so as well with a bound of its own and none on switches.
    """
    find = partial(_rival, instance, plan.objective.kind, any_design)
    bounds, denied = claimed_bounds(plan, "switched")
    subject = "cluster with switches"
    if bounds:
        check_no_rival(ledger, plan, "rival-bound", max(bounds), find, subject)
    if plan.status == "infeasible" or (denied and plan.objective.bound is not None):
        check_no_rival(ledger, plan, "rival-none", math.inf, find, subject)


def claimed_bounds(plan: Plan, kind: Literal["direct", "switched"]) -> tuple[list[float], bool]:
    """The bounds of a plan and of its claim on one kind of networks, and whether the latter says
    that there are none of the kind.
    """
    rivals: list[ObjectiveClaim] = [] if plan.rivals is None else [getattr(plan.rivals, kind)]
    denied = any(claim.value is None and claim.bound is None for claim in rivals)
    return [one.bound for one in (plan.objective, *rivals) if one.bound is not None], denied


def check_beside(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether runners-up stand beside an optimum, each with a proof within the gap aimed at."""
    stop = plan.alternatives_stop
    ok = plan.status == "optimal" if stop else not plan.alternatives
    ok = ok and not (stop == "all found" and not plan.alternatives)
    if not ledger.holds(
        "runner-up-place",
        ok,
        len(plan.alternatives),
        None,
        "Only an optimal plan may have runners-up, and `alternatives_stop` has to say why there"
        " are no more; its value 'all found' needs at least one runner-up.",
    ):
        return False
    target, kind = gap_target(instance, plan), plan.objective.kind
    unproven = tuple(
        f"runner-up {rank}"
        for rank, alternative in enumerate(plan.alternatives, start=1)
        if not _proven(alternative.objective, kind, target)
    )
    return ledger.holds(
        "runner-up-proof",
        not unproven,
        unproven,
        (),
        f"Not proven: {', '.join(unproven)}. Each needs the objective {kind} and a bound with a"
        f" gap of at most {target:g}.",
    )


def _proven(claim: ObjectiveClaim, kind: ObjectiveKind, target: float) -> bool:
    """Whether a claim of this kind has a bound, and a gap within the one aimed at."""
    within_gap = claim.gap is not None and claim.gap <= target + TOLERANCE
    return claim.kind == kind and claim.bound is not None and within_gap


def check_order(
    ledger: Ledger, instance: Instance, plan: Plan, designs: Sequence[tuple[DesignFamily, Ports]]
) -> None:
    """Check that the designs differ, and that none that is not listed before costs less than a
    bound.

    Parameters
    ----------
    listed
        The plan's design, then those of the runners-up.
    """
    names = [built_alike(*design) for design in designs]
    duplicates = tuple(
        f"runner-up {rank}" for rank, name in enumerate(names) if name in names[:rank]
    )
    ledger.holds(
        "runner-up-distinct",
        not duplicates,
        duplicates,
        (),
        f"Listed twice: {', '.join(duplicates)}.",
    )
    kind = plan.objective.kind
    proven = [
        alternative.objective.bound
        for alternative in plan.alternatives
        if alternative.objective.bound is not None
    ]
    highest = max(proven, default=-math.inf)
    lenient_designs = _feasible_below(instance, kind, highest, LENIENT)
    rivals = [
        _unlisted(lenient_designs, bound, names[:rank])
        for rank, bound in enumerate(proven, start=1)
    ]
    # all of them are near
    strict_designs = _feasible_below(instance, kind, highest, STRICT) if any(rivals) else ()
    for rank, (bound, undecided) in enumerate(zip(proven, rivals, strict=True), start=1):
        cheaper = _unlisted(strict_designs, bound, names[:rank])
        value = None if cheaper is None else float(cheaper.value)
        fault = (
            f"A feasible design at {exact_amount(kind, value)} is missing before runner-up {rank},"
            f" whose bound is {exact_amount(kind, bound)}."
        )
        text = "no unlisted design has a lower value" if value is None else value
        ledger.holds("runner-up-bound", cheaper is None, bound, text, fault, ROUNDING)
        if cheaper is None and undecided is not None:
            note_undecided(
                ledger,
                plan,
                f"an unlisted design below runner-up {rank}, at {design_text(undecided, kind)},",
            )
    if plan.alternatives_stop == "no other design":
        unlisted = _unlisted(designs_below(instance, kind, math.inf), math.inf, names)
        value = None if unlisted is None else float(unlisted.value)
        ledger.holds(
            "runner-up-none-left",
            unlisted is None,
            "no other design",
            value,
            f"A feasible design at {exact_amount(kind, value)} is missing from the list.",
        )


def _unlisted(
    designs: Iterable[FoundDesign], bound: float, names: Sequence[tuple[object, ...]]
) -> FoundDesign | None:
    """A design that costs less than a bound and is none of those named."""
    rivals = (design for design in designs if is_below(float(design.value), bound))
    return next(
        (design for design in rivals if built_alike(design.family, design.ports) not in names), None
    )


def built_alike(family: DesignFamily, ports: Ports) -> tuple[object, ...]:
    """What two designs share that build the same: a single domain buys no network, and one tier has
    one shape.
    """
    place, attachment = (family.gpus, family.hb.name, family.domains), family.attachment
    if attachment is None:
        return place
    switches = tuple(attachment.at(tier).name for tier in range(1, ports.tiers + 1))
    parts = (
        *place,
        attachment.nic.name,
        attachment.per_gpu,
        attachment.gpus_per_nic,
        switches,
        family.planes,
        attachment.nic_planes,
    )
    return parts if ports.tiers == 1 else (*parts, attachment.kind, ports)
