"""Evaluation of a given design and mapping, without a claim of optimality.

Each bound and limit of an instance is compared with what a design does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.couplings import LIMITED
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.variants import phases_of
from coopt.plan.couplings import Part, SitePower
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Cost, Design, InstanceId, Plan, Record, WorkloadPlan


def plan_checks(instance: Instance, plan: Plan) -> Iterator[LimitCheck]:
    """Yield the bounds of a plan as shown in its report, phase by phase; none without a design.

    These are bounds on time and memory of workloads, on GPUs, on the power of sites, and the limits
    given.
    """
    if plan.cost is None:
        return
    questions, caps = phases_of(instance), [*instance.gpu_caps.values()]
    islands = instance.sharing.mode == "partition"
    for t, (year, power_w) in enumerate(plan.couplings.drawn_w(plan.cost).items()):
        parts = [part for part in plan.parts if part.phase == year]
        networks = [network for part in parts if (network := part.design or part.links) is not None]
        checks = [
            check
            for part in parts
            for check in _of_workloads(part.workloads, "" if islands else _site_text(part))
        ]
        if islands:
            gpus = float(sum(network.gpus for network in networks))
            checks += [_check("GPUs", gpus, float(caps[t]), "GPUs")]
        checks += [_of_site(site) for site in plan.couplings.sites if site.phase == year]
        checks += _of_limits(
            questions[t], plan.cost.model_copy(update={"power_w": power_w}), networks
        )
        prefix = "" if year is None else f"{year:g} "
        yield from (check.model_copy(update={"name": f"{prefix}{check.name}"}) for check in checks)


def limit_checks(
    instance: Instance, design: Design | DirectLinks, cost: Cost, workloads: Sequence[WorkloadPlan]
) -> Iterator[LimitCheck]:
    """Yield checks of time and memory of every workload, then of the limits given; comparisons are
    exact.
    """
    yield from _of_workloads(workloads)
    yield from _of_limits(instance, cost, [design])


def _site_text(part: Part) -> str:
    """Return the site of a workload that runs at several."""
    return "" if part.site is None else f" at {part.site}"


def _of_workloads(workloads: Sequence[WorkloadPlan], place: str = "") -> Iterator[LimitCheck]:
    for run in workloads:
        if run.bounded:
            yield _check(f"time, {run.name}{place}", run.iteration_time_s, run.bound_s, "s")
        yield _check(f"memory, {run.name}{place}", run.memory_gib, run.memory_limit_gib, "GiB")


def _of_site(site: SitePower) -> LimitCheck:
    return _check(
        f"facility power, {site.site}", site.facility_w / 1e6, site.facility_limit_w / 1e6, "MW"
    )


def _of_limits(
    instance: Instance, cost: Cost, designs: Sequence[Design | DirectLinks]
) -> Iterator[LimitCheck]:
    """Yield checks of limits on a bill, which apply to what the objective includes; the text says
    if GPUs are excluded.
    """
    scope = "" if "gpu" in instance.objective.include else " without the GPUs"
    rack_counts = [design.racks for design in designs]
    # a limit on racks is refused where a domain does not say how many it fills, so that None meets
    # no limit
    racks = None if None in rack_counts else float(sum(count or 0 for count in rack_counts))
    for key, (amount, cap) in instance.limits.against(
        usd=cost.capex_usd, w=cost.power_w, racks=racks
    ).items():
        name, unit = LIMITED[key]
        yield _check(name if key == "racks" else f"{name}{scope}", amount, cap, unit)


def _check(name: str, value: float, limit: float, unit: str) -> LimitCheck:
    return LimitCheck(name=name, value=value, limit=limit, unit=unit, ok=value <= limit)


class LimitCheck(Record):
    """A limit of the instance and the value of the design; `value <= limit` if `ok`."""

    name: str
    value: float
    limit: float
    unit: str
    ok: bool

    @property
    def slack(self) -> float | None:
        """Distance of the value to the limit, as a share of the limit; None for a limit of 0."""
        return (self.limit - self.value) / self.limit if self.limit else None


class Evaluation(Record):
    """Answer of `coopt evaluate`."""

    instance: InstanceId
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]
    limits: tuple[LimitCheck, ...]


class RankedMappings(Record):
    """The fastest mappings of a workload on a network, each with its fastest placement.

    `listed` mappings divide evenly, and `fitting` of them fit into memory.
    """

    name: str
    bound_s: float
    listed: int
    fitting: int
    mappings: tuple[WorkloadPlan, ...]


class MappingRanking(Record):
    """Answer of `coopt evaluate --mappings`: the fastest mappings on a design."""

    instance: InstanceId
    design: Design
    workloads: tuple[RankedMappings, ...]


class PlanFigure(Record):
    """A figure derived from the decisions of a plan; `of` names the workload or site, empty for the
    whole plan.
    """

    name: str
    of: str
    value: float
    unit: str


class PlanEvaluation(Record):
    """Recomputed value of the decisions of a plan, in the unit of `kind` (USD or W).

    `objective` is what the instance minimises: equal to `value`, or for a regret objective the
    maximum excess over the best plan of the instance over all prices. In the latter case it is None
    for the plan of another instance, whose best plans are unknown; `value` is then the cost at the
    prices of the instance.
    """

    instance: InstanceId
    kind: ObjectiveKind
    value: float
    objective: float | None
    figures: tuple[PlanFigure, ...]
    limits: tuple[LimitCheck, ...]
