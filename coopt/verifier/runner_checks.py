"""Are the runners-up the next best designs, as the plan says?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.verifier.claim_checks import gap_target
from coopt.verifier.enumeration import Found, all_below
from coopt.verifier.layouts import Ports
from coopt.verifier.ledger import TOLERANCE, Ledger
from coopt.verifier.space import Family


class Built(NamedTuple):
    """A design as the checks derived it from a plan."""

    family: Family
    ports: Ports


def check_beside(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether runners-up stand beside an optimum, each with a proof within the gap aimed at."""
    stop = plan.alternatives_stop
    ok = plan.status == "optimal" if stop else not plan.alternatives
    ok = ok and not (stop == "all found" and not plan.alternatives)
    why = "Runners-up need an optimal plan beside them and a word on why there are no more; to find all takes one."
    if not ledger.holds("runner-up-place", ok, len(plan.alternatives), None, why):
        return False
    target, kind = gap_target(instance, plan), plan.objective.kind
    loose = tuple(
        f"runner-up {rank}"
        for rank, one in enumerate(plan.alternatives, start=1)
        if not _proven(one.objective, kind, target)
    )
    why = f"No {kind} within the gap of {target:g} that was aimed at is claimed for {', '.join(loose)}."
    return ledger.holds("runner-up-proof", not loose, loose, (), why)


def _proven(claim: ObjectiveClaim, kind: ObjectiveKind, target: float) -> bool:
    """Whether a claim of this kind has a bound, and a gap within the one aimed at."""
    within = claim.gap is not None and claim.gap <= target + TOLERANCE
    return claim.kind == kind and claim.bound is not None and within


def check_order(ledger: Ledger, instance: Instance, plan: Plan, listed: Sequence[Built]) -> None:
    """Check that the designs differ, and that none that is not listed before costs less than a bound.

    Parameters
    ----------
    listed
        The plan's design, then those of the runners-up.
    """
    names = [identity(*one) for one in listed]
    twice = tuple(f"runner-up {rank}" for rank, name in enumerate(names) if name in names[:rank])
    why = f"Listed before under this or another name: {', '.join(twice)}."
    ledger.holds("runner-up-distinct", not twice, twice, (), why)
    kind = plan.objective.kind
    proven = [one.objective.bound for one in plan.alternatives if one.objective.bound is not None]
    every = list(all_below(instance, kind, max(proven, default=-math.inf)))
    for rank, bound in enumerate(proven, start=1):
        below = bound - abs(bound) * TOLERANCE
        others = [one for one in every if one.value < below and identity(one.family, one.ports) not in names[:rank]]
        value = min((one.value for one in others), default=None)
        why = f"A feasible design that is not listed before runner-up {rank} costs {value}, less than its bound."
        shown = "no other design costs less" if value is None else value
        ledger.holds("runner-up-bound", not others, bound, shown, why, TOLERANCE)
    if plan.alternatives_stop == "no other design":
        other = next((one for one in all_below(instance, kind, math.inf) if identity(*_built(one)) not in names), None)
        why = f"A feasible design at {other.value if other else None} is not listed."
        ledger.holds("runner-up-none-left", other is None, "no other design", other.value if other else None, why)


def identity(family: Family, ports: Ports) -> tuple[object, ...]:
    """What two designs share that build the same: a single domain buys no network, and one tier has one shape."""
    place, gear = (family.gpus, family.hb.name, family.active), family.gear
    if gear is None:
        return place
    parts = (*place, gear.nic.name, gear.per_gpu, gear.switch.name, family.planes)
    return parts if ports.tiers == 1 else (*parts, gear.kind, ports)


def _built(found: Found) -> Built:
    return Built(found.family, found.ports)
