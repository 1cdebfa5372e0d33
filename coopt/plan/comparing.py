"""Two plans, value by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coopt.plan.difference import Difference, LineChange, Value, ValueChange
from coopt.plan.schema import Item, Plan, WorkloadPlan
from coopt.plan.sites import Together

RESULTS = ("gpus", "iteration_time_s", "bound_s", "memory_gib", "memory_limit_gib", "mfu", "hfu", "tokens_per_s")


def difference_of(before: Plan, after: Plan) -> Difference:
    """What changes from the first plan to the second: outcome, cost, design, bill, mappings and times."""
    ours, theirs = dict(_values(before)), dict(_values(after))
    keys = dict.fromkeys((*theirs, *ours) if len(theirs) > len(ours) else (*ours, *theirs))
    return Difference(
        before=before.instance,
        after=after.instance,
        changes=tuple(
            ValueChange(key=key, before=ours.get(key), after=theirs.get(key))
            for key in keys
            if ours.get(key) != theirs.get(key)
        ),
        bill=tuple(_lines(before, after)),
    )


def _values(plan: Plan) -> Iterator[tuple[str, Value]]:
    """The values that two plans are compared by, with their keys in the plan."""
    yield "status", plan.status
    yield "objective.kind", plan.objective.kind
    if plan.cost is not None:
        yield from _flat("cost", plan.cost.model_dump(exclude={"items"}))
    if plan.design is not None:
        yield from _flat("design", plan.design.model_dump())
    if plan.core is not None:
        yield from _flat("core", plan.core.model_dump(exclude={"islands"}))
        for one in plan.core.islands:
            yield f"core.islands[{one.workload}].links", one.links
    for run in plan.workloads:
        yield from _of_workload(f"workloads[{run.name}]", run)
    if plan.together is not None:
        yield from _of_sites(plan.together)
    if plan.robust is not None:
        if plan.robust.aim == "regret":
            yield "objective.value", plan.objective.value
        yield from _flat("robust", plan.robust.model_dump(exclude={"turns"}))


def _of_sites(together: Together) -> Iterator[tuple[str, Value]]:
    """Sites and links by name, so that their order around the ring does not count."""
    yield "shares", together.shares
    for site in together.sites:
        yield f"sites[{site.name}].shares", site.shares
        yield from _flat(f"sites[{site.name}].design", site.design.model_dump())
        for run in site.workloads:
            yield from _of_workload(f"sites[{site.name}].workloads[{run.name}]", run)
    for link in together.wan:
        yield f"wan[{' - '.join(sorted(link.between))}].channels", link.channels


def _of_workload(place: str, run: WorkloadPlan) -> Iterator[tuple[str, Value]]:
    yield from _flat(place, {name: getattr(run, name) for name in RESULTS})
    yield from _flat(f"{place}.mapping", run.mapping.model_dump())
    for name, (inside, across) in run.placement.items():
        yield f"{place}.placement.{name}", f"{inside} x {across}"


def _flat(place: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Nested tables and lists under dotted keys."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{place}.{name}", inner)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from _flat(f"{place}[{position}]", inner)
    else:
        yield place, value


def _lines(before: Plan, after: Plan) -> Iterator[LineChange]:
    ours, theirs = _bill(before), _bill(after)
    for kind, item in dict.fromkeys((*ours, *theirs)):
        old, new = ours.get((kind, item)), theirs.get((kind, item))
        if old != new:
            yield LineChange(
                item=item,
                kind=kind,
                before=old.count if old else 0,
                after=new.count if new else 0,
                usd=(new.usd if new else 0.0) - (old.usd if old else 0.0),
                w=(new.w if new else 0.0) - (old.w if old else 0.0),
            )


def _bill(plan: Plan) -> dict[tuple[str, str], Item]:
    return {(item.kind, item.item): item for item in plan.cost.items} if plan.cost else {}
