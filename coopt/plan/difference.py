"""Differences between two plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.question import ObjectiveKind
from coopt.plan.couplings import NETWORK, CorePlan, Couplings, PhaseSpending
from coopt.plan.parts import DirectLinks, Record, WorkloadPlan
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import plan_of

Value = bool | int | float | str | None
RESULTS = {
    "gpus",
    "iteration_time_s",
    "bound_s",
    "memory_gib",
    "memory_limit_gib",
    "mfu",
    "hfu",
    "mfu_causal",
    "tokens_per_s",
}
SPENT = {"years", "capex_usd", "power_w", "energy_usd", "work_usd"}


class ValueChange(Record):
    """A value of a plan by its key; None where a plan lacks it."""

    key: str
    before: Value
    after: Value


class LineChange(Record):
    """A line of the bill: counts before and after, and increase in USD and W."""

    item: str
    kind: str
    before: int
    after: int
    usd: float
    w: float


class Difference(Record):
    """All differences; `bill` holds only lines that differ. Bounds and search statistics are not
    compared.

    `minimize` is the common objective of both plans; None if they differ. `only_with_gpus` is the
    plan whose bill alone includes GPUs, None if both do or neither.
    """

    schema_: Annotated[Literal["coopt-difference/1"], Field(alias="schema")] = "coopt-difference/1"
    before: InstanceId
    after: InstanceId
    minimize: ObjectiveKind | None = None
    only_with_gpus: Literal["first", "second"] | None = None
    changes: tuple[ValueChange, ...]
    bill: tuple[LineChange, ...]


def difference_of(before: Plan | str | Path, after: Plan | str | Path) -> Difference:
    """Compare two plans: outcome, cost, design, bill, mappings and times.

    Examples
    --------
    >>> import coopt
    >>> plan = coopt.solve("instances/tiny-64.toml")
    >>> coopt.diff(plan, plan).changes
    ()
    """
    before, after = plan_of(before), plan_of(after)
    old_values, new_values = (dict(_flat("", _compared(plan))) for plan in (before, after))
    # in the order of the plan that has more values, as the other may lack whole sections of it
    keys = dict.fromkeys(
        (*new_values, *old_values)
        if len(new_values) > len(old_values)
        else (*old_values, *new_values)
    )
    gpus = [
        any(item.kind == "gpu" for item in plan.cost.items)
        for plan in (before, after)
        if plan.cost is not None
    ]
    alone = len(gpus) == 2 and gpus[0] != gpus[1]
    return Difference(
        before=before.instance,
        after=after.instance,
        minimize=before.objective.kind if before.objective.kind == after.objective.kind else None,
        only_with_gpus=None if not alone else "first" if gpus[0] else "second",
        changes=tuple(
            ValueChange(key=key, before=old_values.get(key), after=new_values.get(key))
            for key in keys
            if old_values.get(key) != new_values.get(key)
        ),
        bill=tuple(_lines(before, after)),
    )


def _compared(plan: Plan) -> dict[str, Any]:
    """Return the compared values of a plan as nested tables: outcome, bill, parts and couplings."""
    values: dict[str, Any] = {"status": plan.status, "objective.kind": plan.objective.kind}
    if plan.couplings.turns:
        values["objective.value"] = plan.objective.value
    if plan.cost is not None:
        values["cost"] = plan.cost.model_dump(exclude={"items"})
    runs_of = Counter(run.name for run in plan.runs)
    for part in plan.parts:
        place = "" if part.name == NETWORK else f"parts[{part.name}]."
        if place:
            values |= {f"{place}site": part.site, f"{place}power_w": part.power_w}
        if part.design is not None:
            values[f"{place}design"] = part.design.model_dump()
        if part.links is not None:
            values[f"{place}links"] = _of_links(part.links)
        # a workload that runs once is compared whatever the names of its parts
        values |= {
            f"{place if runs_of[run.name] > 1 else ''}workloads[{run.name}]": _of_workload(run)
            for run in part.workloads
        }
    return values | _of_couplings(plan.couplings)


def _of_couplings(ties: Couplings) -> dict[str, Any]:
    """Return sites and links by name, independent of their order around a ring."""
    powers = {
        f"sites[{_place(one.site, one.phase)}].facility_w": one.facility_w for one in ties.sites
    }
    ring: dict[str, Any] = {}
    if ties.ring is not None:
        shares = zip(ties.ring.sites, ties.ring.site_shares, strict=True)
        ring = {
            "shares": ties.ring.shares,
            **{f"sites[{site}].shares": count for site, count in shares},
            **{
                f"wan[{' - '.join(sorted(link.between))}].channels": link.channels
                for link in ties.ring.wan
            },
        }
    cores = {_place(one.site, one.phase): _of_core(one.core) for one in ties.cores}
    outlooks = ties.outlooks and ties.outlooks.model_dump(exclude={"turns"})
    return {
        **powers,
        **ring,
        **{f"growth[{phase.year:g}]": _of_spending(phase) for phase in ties.growth},
        **{f"cores[{place}]" if place else "core": core for place, core in cores.items()},
        "outlooks": outlooks or {},
        **{
            f"losses[{losses.part}].{loss.part}.slowdown": loss.slowdown
            for losses in ties.losses
            for loss in losses.survived
        },
    }


def _of_core(core: CorePlan) -> dict[str, Any]:
    islands = {
        f"islands[{links.workload}]": {
            "links": links.links,
            "optic_below": core.below(links),
        }
        for links in core.islands
    }
    return core.model_dump(exclude={"islands"}) | islands


def _place(site: str | None, year: float | None) -> str:
    """Return site and year of a coupling."""
    return ", ".join(
        word for word in (site, None if year is None else f"{year:g}") if word is not None
    )


def _of_spending(phase: PhaseSpending) -> dict[str, Any]:
    """Return the spending, power, purchases and stored units of a phase."""
    counts: Counter[str] = Counter()
    for column, lines in (("bought", phase.bought), ("stored", phase.stored)):
        for line in lines:
            counts[f"{column}[{line.kind} {line.item}]"] += line.count
    return phase.model_dump(include=SPENT) | counts


def _of_links(links: DirectLinks) -> dict[str, Any]:
    """Return domains, their grid and every bundle of links; routing is reflected in the pace
    only.
    """
    return (
        links.model_dump(exclude={"links_bound", "bundles", "phases"})
        | {
            f"bundles[{' - '.join(map(str, bundle.between))}]": bundle.links
            for bundle in links.bundles
        }
        | {f"phases[{phase.name}].pace_links": phase.pace_links for phase in links.phases}
    )


def _of_workload(run: WorkloadPlan) -> dict[str, Any]:
    uptime = run.uptime and run.uptime.model_dump(include={"goodput", "promised"})
    return run.model_dump(include=RESULTS) | {
        "uptime": uptime or {},
        "mapping": run.mapping.model_dump(),
        "placement": {
            name: f"{inside} x {across}" for name, (inside, across) in run.placement.items()
        },
    }


def _flat(place: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Flatten nested tables and lists to dotted keys."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _flat(f"{place}.{name}" if place else name, entry)
    elif isinstance(value, list | tuple):
        for position, entry in enumerate(value):
            yield from _flat(f"{place}[{position}]", entry)
    else:
        yield place, value


def _lines(before: Plan, after: Plan) -> Iterator[LineChange]:
    old_bill, new_bill = _bill(before), _bill(after)
    for kind, item in dict.fromkeys((*old_bill, *new_bill)):
        old, new = (bill.get((kind, item), (0, 0.0, 0.0)) for bill in (old_bill, new_bill))
        if old != new:
            yield LineChange(
                item=item,
                kind=kind,
                before=old[0],
                after=new[0],
                usd=new[1] - old[1],
                w=new[2] - old[2],
            )


def _bill(plan: Plan) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return units, USD and W of every item over all prices: discounts and phases split an item
    into several lines.
    """
    bill: dict[tuple[str, str], tuple[int, float, float]] = {}
    for item in plan.cost.items if plan.cost else ():
        count, usd, w = bill.get((item.kind, item.item), (0, 0.0, 0.0))
        bill[item.kind, item.item] = (count + item.count, usd + item.usd, w + item.w)
    return bill
