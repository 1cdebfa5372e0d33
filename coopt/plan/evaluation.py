"""The value of one given design and mapping, without a claim that it is the best.

Every bound and limit of an instance is put against what a design does.
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
    """The bounds of a plan as its report shows them, phase by phase; none where nothing is built.

    They are those on time and memory of what runs, on GPUs, on the power of sites, and the limits
    that are set.
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
    """Time and memory of every workload, then the limits that are set; exact comparisons."""
    yield from _of_workloads(workloads)
    yield from _of_limits(instance, cost, [design])


def _site_text(part: Part) -> str:
    """At which site a workload runs that runs at several."""
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
    """A limit on a bill holds for what the objective counts, and says so where that leaves out the
    GPUs.
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
    """One limit of the instance against what the design does; `value <= limit` when `ok`."""

    name: str
    value: float
    limit: float
    unit: str
    ok: bool

    @property
    def slack(self) -> float | None:
        """How far the value stays below the limit, as a share of it; None of a limit of nothing."""
        return (self.limit - self.value) / self.limit if self.limit else None


class Evaluation(Record):
    """What `coopt evaluate` answers."""

    instance: InstanceId
    design: Design
    cost: Cost
    workloads: tuple[WorkloadPlan, ...]
    limits: tuple[LimitCheck, ...]


class RankedMappings(Record):
    """The fastest mappings of a workload on a network, each with its fastest placement.

    `listed` divide evenly, `fitting` of them fit into memory.
    """

    name: str
    bound_s: float
    listed: int
    fitting: int
    mappings: tuple[WorkloadPlan, ...]


class MappingRanking(Record):
    """What `coopt evaluate --mappings` answers: on this design, which mapping."""

    instance: InstanceId
    design: Design
    workloads: tuple[RankedMappings, ...]


class PlanFigure(Record):
    """A number that follows from the decisions of a plan; `of` names the workload or site, empty
    for everything.
    """

    name: str
    of: str
    value: float
    unit: str


class PlanEvaluation(Record):
    """What the decisions of a plan amount to: `value` is what it is worth, `kind` says of which
    kind (USD or W).

    `objective` is what the instance minimises: the same or, where that is a regret, how much more
    than the best plan of the instance the plan costs at most, whatever prices come. It is None of
    the plan of another instance then, whose best plans were never sought; `value` is the cost at
    the prices of the instance.
    """

    instance: InstanceId
    kind: ObjectiveKind
    value: float
    objective: float | None
    figures: tuple[PlanFigure, ...]
    limits: tuple[LimitCheck, ...]
