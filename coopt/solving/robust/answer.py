"""Answer an instance that asks for a robust plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from coopt.columns.table import Columns, columns
from coopt.instance.robust import Robust, at_efficiency, at_prices, corners
from coopt.instance.schema import Instance, Limits
from coopt.network.family import Family
from coopt.network.limits import within_limits
from coopt.network.parts import cost_of
from coopt.network.space import families
from coopt.plan.robust import Standing
from coopt.plan.schema import Plan
from coopt.solving import explain
from coopt.solving.arrays import Problem, assemble, viable
from coopt.solving.candidates import Candidate
from coopt.solving.loop import Search, search
from coopt.solving.outcome import Run, alternative_of, answered, claim_of, ending, without_design
from coopt.solving.robust.regret import Outlook, largest_regret, repriced, search_regret, turns
from coopt.solving.robust.survival import survived, surviving


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Networks that serve every workload and survive what they have to, or why there is none."""

    instance: Instance
    serving: tuple[Family, ...]
    table: Columns | None
    why: tuple[str, ...] = ()


def robust_plan(run: Run) -> Plan:
    """The plan of least worst-case cost, or of least regret, among those that stand every loss."""
    robust = run.instance.robust
    assert robust is not None
    run.formulation = "regret" if robust.aim == "regret" else run.instance.solver.formulation
    worst = {kind: high for kind, (_, high) in robust.prices.intervals.items()}
    listed = at_efficiency(run.instance, robust.efficiency[0])
    field = _field(run, at_prices(listed, worst) if robust.aim == "worst-case" else listed, robust)
    if field.table is None:
        return without_design(run, "infeasible", "infeasible", field.why)
    if robust.aim == "regret":
        field = _within_limits(field)
    if not field.serving:
        return without_design(run, "infeasible", "infeasible", field.why)
    assert field.table is not None
    problem = assemble(field.instance, field.serving, field.table)
    if robust.aim == "worst-case":
        return _answered(run, robust, listed, field, problem, _searched(run, field, problem), ())
    outlooks = _outlooks(run, robust)
    if isinstance(outlooks, str):
        return without_design(run, "unknown", outlooks)
    result = search_regret(run, field.instance, problem, field.table, outlooks)
    run.searches.append(result)
    return _answered(run, robust, listed, field, problem, result, outlooks)


def _field(run: Run, instance: Instance, robust: Robust | None) -> Field:
    """The networks of an instance without intervals, and the mappings on them."""
    every = _in_time(run, families(instance))
    run.families = max(run.families, len(every))
    if not every:
        return Field(instance=instance, serving=(), table=None, why=explain.no_family(instance))
    before = run.elapsed_s()
    table = columns(instance, every, lambda _: None, run.check_clock)
    standing = viable(instance, every, table)
    why = () if standing else explain.no_design(instance, every, table)
    if standing and robust is not None:
        kept = surviving(instance, robust, standing, run.check_clock)
        why = () if kept else _no_survivor(robust)
        standing = kept
    run.table, run.columns_s = table, run.columns_s + run.elapsed_s() - before
    run.tell("columns", f"{table.kept:,} columns, {len(standing):,} families stand what is asked")
    return Field(instance=instance, serving=standing, table=table if standing else None, why=why)


def _within_limits(field: Field) -> Field:
    """The networks within the limits at list prices, and the instance without limits; use never falls with uplinks."""
    assert field.table is not None
    kept = []
    for family in field.serving:
        costs = ((uplinks, cost_of(field.instance, family, uplinks)) for uplinks in family.uplink_choices)
        fits = [uplinks for uplinks, cost in costs if within_limits(field.instance, family, cost)]
        if fits:
            kept.append(replace(family, uplink_choices=range(fits[0], fits[-1] + 1)))
    free = field.instance.model_copy(update={"limits": Limits()})
    standing = viable(free, tuple(kept), field.table)
    why = () if standing else explain.over_limits(field.instance, field.serving, field.table)
    return replace(field, instance=free, serving=standing, why=why)


def _no_survivor(robust: Robust) -> tuple[str, ...]:
    parts = ", ".join(robust.survive)
    return (
        f"robust.survive = {parts}: no network that meets the bounds meets them {robust.slower:g} times as long after "
        "every such loss: needs a larger robust.slower, other fabrics (a lost Clos leaf cuts whole domains off, one "
        "plane has no other), more NICs for each GPU, or fewer losses to survive",
    )


def _in_time(run: Run, found: Iterable[Family]) -> tuple[Family, ...]:
    every = []
    for family in found:
        run.check_clock()
        every.append(family)
    return tuple(every)


def _searched(run: Run, field: Field, problem: Problem) -> Search:
    assert field.table is not None
    how = {"deadline": run.deadline, "on_standing": run.tell_standing}
    result = search(field.instance, problem, field.table, run.backend, **how)  # type: ignore[arg-type]
    run.searches.append(result)
    return result


def _outlooks(run: Run, robust: Robust) -> tuple[Outlook, ...] | str:
    """Every way prices may turn out at the best efficiency, with its optimum; why a search ended that left one open."""
    eager = at_efficiency(run.instance, robust.efficiency[1])
    field = _within_limits(_field(run, eager, robust))
    assert field.table is not None, "what serves at the least efficiency serves at the best"
    eager = field.instance
    found: list[Outlook] = []
    for factors in corners(robust.prices):
        instance = at_prices(eager, factors)
        at_them = tuple(repriced(family, factors) for family in field.serving)
        result = _searched(run, replace(field, instance=instance), assemble(instance, at_them, field.table))
        if ending(run, result) != "optimal" or result.found is None:
            return result.answer.outcome if result.answer.outcome != "optimal" else "not proven"
        best = result.found.cost.of(instance.objective.minimize)
        found.append(Outlook(factors=factors, instance=instance, best=best))
        run.tell("solve", f"{len(found)} ways prices may turn out")
    return tuple(found)


def _answered(
    run: Run,
    robust: Robust,
    listed: Instance,
    field: Field,
    problem: Problem,
    result: Search,
    outlooks: tuple[Outlook, ...],
) -> Plan:
    assert field.table is not None
    if result.answer.outcome == "infeasible":
        why = explain.over_limits(field.instance, problem.families, field.table)
        return without_design(run, "infeasible", "infeasible", why)
    if result.found is None:
        return without_design(run, "unknown", result.answer.outcome)
    found, kind = result.found, field.instance.objective.minimize
    whole = alternative_of(run, result, found, field.table)
    claim = whole.objective
    if outlooks:
        claim = claim_of(kind, largest_regret(outlooks, found.family, found.uplinks), result.bound)
    standing = Standing(
        aim=robust.aim,
        efficiency=robust.efficiency,
        slower=robust.slower,
        survived=survived(found.family, robust),
        list_value=_at_list_prices(listed, found),
        turns=turns(outlooks, found.family, found.uplinks),
    )
    parts = {"design": whole.design, "cost": whole.cost, "workloads": whole.workloads, "robust": standing}
    return answered(run, result.answer.outcome, claim, **parts)


def _at_list_prices(listed: Instance, found: Candidate) -> float:
    """The objective of a network at the prices of the instance, whatever it was found at."""
    hb = next(hb for hb in listed.network.hb_domains if hb.name == found.family.hb.name)
    parts = {
        kind: {part.name: part for part in getattr(listed.network, kind)} for kind in ("nics", "switches", "optics")
    }
    family = replace(
        found.family,
        hb=hb,
        nic=parts["nics"][found.family.nic.name],
        switch=parts["switches"][found.family.switch.name],
        optics=tuple(parts["optics"][optic.name] for optic in found.family.optics),
    )
    return cost_of(listed, family, found.uplinks).of(listed.objective.minimize)
