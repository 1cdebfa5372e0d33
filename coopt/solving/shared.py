"""Answer a question of one network that every workload has in turn.

The next best designs after the best: what was found is taken out, and the rest is searched again.

A design is one family at one number of uplinks, so taking it out splits the uplinks of its family in two runs, each a
family of its own. That is exact, needs no cut in the formulation, and leaves both formulations as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from coopt.network.family import Family
from coopt.plan.couplings import one_network
from coopt.plan.schema import Alternative, AlternativesStop, Plan
from coopt.solving.arrays import viable
from coopt.solving.candidates import Candidate
from coopt.solving.outcome import alternative_of, answered, ending, infeasible
from coopt.solving.runs import Run
from coopt.solving.serving import Field, field_of, nothing_found, searched


def shared_plan(run: Run) -> Plan:
    """One network that every workload has in turn."""
    field = field_of(run, run.instance, whole=run.instance.solver.top > 1)
    if isinstance(field, tuple):
        return infeasible(run, field)
    run.tell("solve", f"formulation {run.instance.solver.formulation!r} handed to {run.backend.name}")
    first = searched(run, field)
    if first.found is None:
        return nothing_found(run, field, first)
    best = alternative_of(run, first, first.found, field.table)
    reason = ending(run, first.outcome, best.objective)
    parts = (one_network(best.cost, best.workloads, design=best.design),)
    runners: dict[str, Any] = {}
    if run.instance.solver.top > 1 and reason == "optimal":
        others, stop = runners_up(run, field, first.found)
        runners = {"alternatives": others, "alternatives_stop": stop}
    return answered(run, reason, best.objective, cost=best.cost, parts=parts, **runners)


def runners_up(run: Run, field: Field, best: Candidate) -> tuple[tuple[Alternative, ...], AlternativesStop]:
    """The `solver.top - 1` best designs after `best`, each proven, and why there are no more.

    The family of `best` is on the field.
    """
    found: list[Alternative] = []
    try:
        stop = _search(run, field, best, found)
    except KeyboardInterrupt:
        run.on_progress, stop = None, "interrupted"
    return tuple(found), stop


def _search(run: Run, field: Field, best: Candidate, found: list[Alternative]) -> AlternativesStop:
    """Append to `found` until there are enough."""
    wanted, last = run.instance.solver.top - 1, best
    while len(found) < wanted:
        others = tuple(without(field.families, last.family, last.uplinks))
        field = replace(field, families=viable(field.instance, others, field.table))
        if not field.families:
            return "no other design"
        run.tell("solve", f"runner-up {len(found) + 1} of {wanted}")
        result = searched(run, field)
        if result.outcome == "infeasible":
            return "no other design"
        if result.found is None:
            return _named(result.outcome)
        one = alternative_of(run, result, result.found, field.table)
        stop = ending(run, result.outcome, one.objective)
        if stop != "optimal":
            return _named(stop)
        found.append(one)
        last = result.found
    return "all found"


def _named(stop: str) -> Literal["time limit", "interrupted", "not proven"]:
    """Why a search ended without a proof."""
    return "time limit" if stop == "time limit" else "interrupted" if stop == "interrupted" else "not proven"


def without(families: Iterable[Family], taken: Family, uplinks: int) -> Iterator[Family]:
    """The families less one design, under whatever name it goes."""
    network = identity(taken)
    for family in families:
        if uplinks not in family.uplink_choices or identity(family) != network:
            yield family
            continue
        choices, taken_at = family.uplink_choices, family.uplink_choices.index(uplinks)
        for part in (choices[:taken_at], choices[taken_at + 1 :]):
            if part:
                yield replace(family, uplink_choices=part)


def identity(family: Family) -> tuple[object, ...]:
    """What two families share that build the same with the same uplinks.

    A single domain buys no network, whatever is named; on one tier fabrics of as many planes are one and the same.
    """
    place = (family.gpus, family.hb.name, family.active)
    if family.tiers == 0:
        return place
    parts = (
        *place,
        family.nic.name,
        family.nics_per_gpu,
        family.gpus_per_nic,
        *(switch.name for switch in family.switches),
        family.planes,
        family.nic_planes,
    )
    return parts if family.tiers == 1 else (*parts, family.fabric, family.down, family.pods)
