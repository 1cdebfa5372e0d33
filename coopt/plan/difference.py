"""Differences between two plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from coopt.instance.question import ObjectiveKind
from coopt.plan.couplings import NETWORK, CorePlan, Couplings, Part, PhaseSpending
from coopt.plan.parts import DirectLinks, Item, Record, WorkloadPlan
from coopt.plan.schema import InstanceId, Plan

Value = bool | int | float | str | None
RESULTS = (
    "gpus",
    "iteration_time_s",
    "bound_s",
    "memory_gib",
    "memory_limit_gib",
    "mfu",
    "hfu",
    "tokens_per_s",
)


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

    `minimize` is the common objective of both plans; None if they differ.
    """

    schema_: Annotated[Literal["coopt-difference/1"], Field(alias="schema")] = "coopt-difference/1"
    before: InstanceId
    after: InstanceId
    minimize: ObjectiveKind | None = None
    changes: tuple[ValueChange, ...]
    bill: tuple[LineChange, ...]


def difference_of(before: Plan, after: Plan) -> Difference:
    """Compare two plans: outcome, cost, design, bill, mappings and times.

    Examples
    --------
    >>> import coopt
    >>> plan = coopt.solve("instances/tiny-64.toml")
    >>> coopt.diff(plan, plan).changes
    ()
    """
    old_values, new_values = dict(_values(before)), dict(_values(after))
    # in the order of the plan that has more values, as the other may lack whole sections of it
    keys = dict.fromkeys(
        (*new_values, *old_values)
        if len(new_values) > len(old_values)
        else (*old_values, *new_values)
    )
    return Difference(
        before=before.instance,
        after=after.instance,
        minimize=before.objective.kind if before.objective.kind == after.objective.kind else None,
        changes=tuple(
            ValueChange(key=key, before=old_values.get(key), after=new_values.get(key))
            for key in keys
            if old_values.get(key) != new_values.get(key)
        ),
        bill=tuple(_lines(before, after)),
    )


def _values(plan: Plan) -> Iterator[tuple[str, Value]]:
    """Yield the compared values of a plan: outcome, bill, parts and couplings."""
    yield "status", plan.status
    yield "objective.kind", plan.objective.kind
    if plan.couplings.turns:
        yield "objective.value", plan.objective.value
    if plan.cost is not None:
        yield from _flat("cost", plan.cost.model_dump(exclude={"items"}))
    runs_of = Counter(run.name for run in plan.runs)
    for part in plan.parts:
        place = "" if part.name == NETWORK else f"parts[{part.name}]."
        yield from _of_part(place, part)
        for run in part.workloads:
            # a workload that runs once is compared whatever the names of its parts
            yield from _of_workload(
                f"{place if runs_of[run.name] > 1 else ''}workloads[{run.name}]", run
            )
    yield from _of_couplings(plan.couplings)


def _of_part(place: str, part: Part) -> Iterator[tuple[str, Value]]:
    """Yield place, power and design of a network."""
    if place:
        yield f"{place}site", part.site
        yield f"{place}power_w", part.power_w
    if part.design is not None:
        yield from _flat(f"{place}design", part.design.model_dump())
    if part.links is not None:
        yield from _of_links(f"{place}links", part.links)


def _of_couplings(ties: Couplings) -> Iterator[tuple[str, Value]]:
    """Yield sites and links by name, independent of their order around a ring."""
    for site_power in ties.sites:
        place = _place(site_power.site, site_power.phase)
        yield f"sites[{place}].facility_w", site_power.facility_w
    if ties.ring is not None:
        yield "shares", ties.ring.shares
        for site, shares in zip(ties.ring.sites, ties.ring.site_shares, strict=True):
            yield f"sites[{site}].shares", shares
        for link in ties.ring.wan:
            yield f"wan[{' - '.join(sorted(link.between))}].channels", link.channels
    for spending in ties.growth:
        yield from _of_spending(f"growth[{spending.year:g}]", spending)
    for shared_core in ties.cores:
        place = _place(shared_core.site, shared_core.phase)
        yield from _of_core(f"cores[{place}]" if place else "core", shared_core.core)
    if ties.outlooks is not None:
        yield from _flat("outlooks", ties.outlooks.model_dump(exclude={"turns"}))
    for losses in ties.losses:
        for loss in losses.survived:
            yield f"losses[{losses.part}].{loss.part}.slowdown", loss.slowdown


def _of_core(place: str, core: CorePlan) -> Iterator[tuple[str, Value]]:
    yield from _flat(place, core.model_dump(exclude={"islands"}))
    for links in core.islands:
        yield f"{place}.islands[{links.workload}].links", links.links
        yield f"{place}.islands[{links.workload}].optic_below", core.below(links)


def _place(site: str | None, year: float | None) -> str:
    """Return site and year of a coupling."""
    return ", ".join(
        word for word in (site, None if year is None else f"{year:g}") if word is not None
    )


def _of_spending(place: str, phase: PhaseSpending) -> Iterator[tuple[str, Value]]:
    """Yield the spending, power, purchases and stored units of a phase."""
    yield from _flat(
        place, phase.model_dump(include={"years", "capex_usd", "power_w", "energy_usd", "work_usd"})
    )
    for column, lines in (("bought", phase.bought), ("stored", phase.stored)):
        counts: Counter[str] = Counter()
        for line in lines:
            counts[f"{line.kind} {line.item}"] += line.count
        for name, count in counts.items():
            yield f"{place}.{column}[{name}]", count


def _of_links(place: str, links: DirectLinks) -> Iterator[tuple[str, Value]]:
    """Yield domains, their grid and every bundle of links; routing is reflected in the pace
    only.
    """
    yield from _flat(place, links.model_dump(exclude={"links_bound", "bundles", "phases"}))
    for bundle in links.bundles:
        yield f"{place}.bundles[{' - '.join(map(str, bundle.between))}]", bundle.links
    for phase in links.phases:
        yield f"{place}.phases[{phase.name}].pace_links", phase.pace_links


def _of_workload(place: str, run: WorkloadPlan) -> Iterator[tuple[str, Value]]:
    yield from _flat(place, {name: getattr(run, name) for name in RESULTS})
    yield from _flat(f"{place}.mapping", run.mapping.model_dump())
    for name, (inside, across) in run.placement.items():
        yield f"{place}.placement.{name}", f"{inside} x {across}"


def _flat(place: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Flatten nested tables and lists to dotted keys."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from _flat(f"{place}.{name}", entry)
    elif isinstance(value, list | tuple):
        for position, entry in enumerate(value):
            yield from _flat(f"{place}[{position}]", entry)
    else:
        yield place, value


def _lines(before: Plan, after: Plan) -> Iterator[LineChange]:
    old_bill, new_bill = _bill(before), _bill(after)
    for kind, item in dict.fromkeys((*old_bill, *new_bill)):
        old, new = (bill.get((kind, item), _Purchase()) for bill in (old_bill, new_bill))
        if old != new:
            yield LineChange(
                item=item,
                kind=kind,
                before=old.count,
                after=new.count,
                usd=new.usd - old.usd,
                w=new.w - old.w,
            )


@dataclass(frozen=True)
class _Purchase:
    """All units of an item over all prices: discounts and phases split an item into several
    lines.
    """

    count: int = 0
    usd: float = 0.0
    w: float = 0.0

    def __add__(self, item: Item) -> _Purchase:
        return _Purchase(self.count + item.count, self.usd + item.usd, self.w + item.w)


def _bill(plan: Plan) -> dict[tuple[str, str], _Purchase]:
    purchases: dict[tuple[str, str], _Purchase] = {}
    for item in plan.cost.items if plan.cost else ():
        purchases[item.kind, item.item] = purchases.get((item.kind, item.item), _Purchase()) + item
    return purchases
