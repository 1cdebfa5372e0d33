"""Answer an instance that asks for a robust plan, or for the least regret."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pyomo.core as pyo

from coopt.instance.schema import Instance, Limits
from coopt.instance.variants import as_built, at_best_efficiency, at_least_efficiency, at_prices
from coopt.network.family import Family, LinkEnds
from coopt.network.parts import Affine, cost_of, price, within_limits
from coopt.plan.couplings import (
    Couplings,
    Outlooks,
    Turn,
    largest_regret,
    one_network,
    one_networks_losses,
)
from coopt.plan.schema import Alternative, Plan
from coopt.solving import explain
from coopt.solving.arrays import SharedProblem, assemble, floats, in_units_of, viable
from coopt.solving.backend import backend_of
from coopt.solving.driver import Drive, Subproblem, drive
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.outcome import (
    Candidate,
    answered,
    claim_of,
    ending,
    infeasible,
    unknown,
    written_out,
)
from coopt.solving.robust.survival import no_survivor, survived, surviving
from coopt.solving.runs import Method, NamedPrograms, Program, Run, Why, no_programs
from coopt.solving.shared import (
    Field,
    field_of,
    field_programs,
    nothing_found,
    searched,
    subproblem,
)
from formulations.regret import FORMULATIONS, REGRET, RegretData, Scenario, build
from formulations.shared import FORMULATIONS as SHARED_FORMULATIONS


def robust_plan(run: Run) -> Plan:
    """The plan of least worst-case cost, or of least regret, among those that stand every loss."""
    return _least_regret(run) if run.instance.minimizes_regret else _worst_case(run)


def _worst_case(run: Run) -> Plan:
    """The plan of least cost at the worst prices."""
    field = at_worst_prices(run)
    if not isinstance(field, Field):
        return infeasible(run, field)
    result = searched(run, field)
    if result.found is None:
        return nothing_found(run, field, result)
    best = written_out(field.instance, result.found, result.bound, field.table)
    return _answered(run, result.found, best, ending(run, result.outcome, best.objective))


def _least_regret(run: Run) -> Plan:
    """The plan of least regret over all prices."""
    run.formulation = "regret"
    field = within_list_limits(run, at_least_efficiency(run.instance))
    if not isinstance(field, Field):
        return infeasible(run, field)
    outlooks = outlooks_of(run)
    if isinstance(outlooks, str):
        return unknown(run, outlooks)
    result = search_regret(run, field, outlooks)
    if result.found is None:
        return nothing_found(run, field, result)
    regret = largest_regret(turns(outlooks, result.found.family, result.found.uplinks))
    claim = claim_of(run.instance.objective.minimize, regret, result.bound)
    best = written_out(field.instance, result.found, result.bound, field.table)
    best = best.model_copy(update={"objective": claim})
    return _answered(run, result.found, best, ending(run, result.outcome, claim), outlooks)


def at_worst_prices(run: Run) -> Field | Why:
    """What can be built at the upper ends of all prices, or why there is nothing."""
    return _standing(run, as_built(run.instance))


def _standing(run: Run, instance: Instance) -> Field | Why:
    """The networks of an instance without intervals that survive every loss, or why there is
    none.
    """
    losses, field = run.instance.losses, field_of(run, instance)
    if not isinstance(field, Field):
        return field
    kept = surviving(instance, losses, field.families, run.check_clock)
    run.tell("columns", f"{len(kept):,} families survive every loss")
    if not kept:
        return partial(no_survivor, instance, losses, field.families, run.check_clock)
    return replace(field, families=kept)


def within_list_limits(run: Run, instance: Instance) -> Field | Why:
    """Of these the networks within the limits at list prices, for the instance without limits, or
    why there is none.

    What a network uses never falls with uplinks, so that each family keeps its uplinks up to some
    number.
    """
    field = _standing(run, instance)
    if not isinstance(field, Field):
        return field
    free = instance.model_copy(update={"limits": Limits()})
    kept = (
        field.families
        if instance.limits == free.limits
        else tuple(_within_limits(instance, field.families))
    )
    standing = viable(free, kept, field.table)
    if not standing:
        return partial(explain.over_limits, instance, field.families, field.table)
    return replace(field, instance=free, families=standing)


def _within_limits(instance: Instance, families: Iterable[Family]) -> Iterator[Family]:
    """Each family with the uplinks with which it keeps the limits, if there are any."""
    for family in families:
        costs = ((uplinks, cost_of(instance, family, uplinks)) for uplinks in family.uplink_choices)
        fits = [uplinks for uplinks, cost in costs if within_limits(instance, family, cost)]
        if fits:
            yield replace(family, uplink_choices=tuple(fits))


def outlooks_of(run: Run) -> tuple[Outlook, ...] | str:
    """Every way prices may turn out at the best efficiency, with its optimum; why a search ended
    that left one open.

    These optima are exact, whatever gap the instance allows: regret is measured from them. A run
    that was told what to measure from searches none of them.
    """
    if run.least_costs is not None:
        told = zip(run.instance.outlooks, run.least_costs, strict=True)
        hopeful = at_best_efficiency(run.instance).model_copy(update={"limits": Limits()})
        return tuple(
            Outlook(factors=factors, instance=at_prices(hopeful, factors), best=least)
            for factors, least in told
        )
    field = within_list_limits(run, at_best_efficiency(run.instance))
    assert isinstance(field, Field), "what serves at the least efficiency serves at the best"
    solver = run.instance.solver.model_copy(update={"gap": 0.0})
    exact = replace(
        run,
        instance=run.instance.model_copy(update={"solver": solver}),
        backend=backend_of(solver, run.backend.cancel),
        on_progress=None,
    )
    found: list[Outlook] = []
    for factors in run.instance.outlooks:
        then = at_prices(field.instance, factors)
        families = tuple(repriced(family, factors) for family in field.families)
        result = searched(exact, replace(field, instance=then, families=families))
        if result.found is None:
            return result.outcome
        best = result.found.cost.of(then.objective.minimize)
        reason = ending(
            exact, result.outcome, claim_of(then.objective.minimize, best, result.bound)
        )
        if reason != "optimal":
            return reason
        found.append(Outlook(factors=factors, instance=then, best=best))
        run.tell_outcomes(len(found), len(run.instance.outlooks))
    return tuple(found)


def _answered(
    run: Run, found: Candidate, best: Alternative, reason: str, outlooks: tuple[Outlook, ...] = ()
) -> Plan:
    robust, listed = run.instance.robust, at_least_efficiency(run.instance)
    assert robust is not None
    couplings = Couplings(
        outlooks=Outlooks(
            aim=robust.aim,
            efficiency=robust.efficiency,
            list_value=_at_list_prices(listed, found),
            turns=turns(outlooks, found.family, found.uplinks),
        ),
        losses=one_networks_losses(
            survived(listed, found.family, found.uplinks, run.instance.losses)
        ),
    )
    parts = (one_network(best.cost, best.workloads, design=best.design),)
    return answered(run, reason, best.objective, cost=best.cost, parts=parts, couplings=couplings)


def _at_list_prices(listed: Instance, found: Candidate) -> float:
    """The objective of a network at the prices of the instance, whatever it was found at."""
    hb = next(hb for hb in listed.network.hb_domains if hb.name == found.family.hb.name)
    parts = {
        kind: {part.name: part for part in getattr(listed.network, kind)}
        for kind in ("nics", "optics")
    }
    ways = {(way.name, way.port_gbit_s): way for way in listed.network.switch_ways}
    boxes = (
        (one, ways[one.name, one.port_gbit_s]) for one in (found.family.switch, *found.family.upper)
    )
    switch, *upper = (
        way.model_copy(update={"radix": one.radix}) for one, way in boxes
    )  # of those that cages leave
    family = replace(
        found.family,
        hb=hb,
        nic=parts["nics"][found.family.nic.name],
        switch=switch,
        upper=tuple(upper),
        optics=tuple(
            LinkEnds(*(parts["optics"][one.name] for one in ends)) for ends in found.family.optics
        ),
    )
    return cost_of(listed, family, found.uplinks).of(listed.objective.minimize)


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One way prices may turn out: factors, the instance then, and the objective of its best
    plan.
    """

    factors: dict[str, float]
    instance: Instance
    best: float

    def cost(self, family: Family, uplinks: int) -> float:
        """The objective of a network then."""
        return cost_of(self.instance, repriced(family, self.factors), uplinks).of(
            self.instance.objective.minimize
        )

    def price(self, family: Family) -> Affine:
        """The same as an affine function of uplinks and spines."""
        return price(
            self.instance, repriced(family, self.factors), self.instance.objective.minimize
        )


def repriced(family: Family, factors: dict[str, float]) -> Family:
    """A family whose parts cost these factors times what they did."""

    def times(part: Any, factor: float) -> Any:
        return part.model_copy(update={"usd": part.usd * factor})

    hb = family.hb.model_copy(update={"usd_per_gpu": family.hb.usd_per_gpu * factors["hb"]})
    return replace(
        family,
        hb=hb,
        nic=times(family.nic, factors["nic"]),
        switch=times(family.switch, factors["switch"]),
        upper=tuple(times(switch, factors["switch"]) for switch in family.upper),
        optics=tuple(
            LinkEnds(*(times(optic, factors["optics"]) for optic in ends)) for ends in family.optics
        ),
    )


def turns(outlooks: Sequence[Outlook], family: Family, uplinks: int) -> tuple[Turn, ...]:
    """What a network costs however prices turn out, beside the best."""
    return tuple(
        Turn(factors=one.factors, value=one.cost(family, uplinks), best=one.best)
        for one in outlooks
    )


def with_scenarios(problem: SharedProblem, outlooks: Sequence[Outlook]) -> RegretData:
    """The problem's arrays with the prices of every outlook, in its units and cut off as
    `in_units_of` does.
    """
    scenarios, largest = [], 0.0
    at_most = [(n, family.uplink_choices[-1]) for n, family in enumerate(problem.families)]
    spines = np.array([problem.families[n].spines(uplinks) for n, uplinks in at_most])
    for one in outlooks:
        prices = [one.price(family) for family in problem.families]
        fixed, uplink, spine = (
            np.minimum(
                floats(getattr(price, part) / problem.scale for price in prices), NEAR * LARGEST
            )
            for part in ("fixed", "uplink", "spine")
        )
        best = one.best / problem.scale
        scenarios.append(Scenario(fixed=fixed, uplink=uplink, spine=spine, min_cost=best))
        costs = fixed + uplink * np.array([uplinks for _, uplinks in at_most]) + spine * spines
        largest = max(largest, float(costs.max()) - best)
    shared = {field.name: getattr(problem.data, field.name) for field in fields(problem.data)}
    return RegretData(**shared, scenarios=tuple(scenarios), max_regret=largest + 1.0)


def _of_problem(
    field: Field, outlooks: Sequence[Outlook], problem: SharedProblem
) -> Subproblem[Candidate]:
    def build_model() -> tuple[pyo.ConcreteModel, float]:
        return build(with_scenarios(problem, outlooks), REGRET), problem.scale

    def regret(candidate: Candidate) -> float:
        return largest_regret(turns(outlooks, candidate.family, candidate.uplinks))

    def closer(value: float) -> Subproblem[Candidate] | None:
        costs = value + max(one.best for one in outlooks)  # a regret is a difference of costs
        nearer = in_units_of(problem, costs)
        return None if nearer is None else _of_problem(field, outlooks, nearer)

    return replace(
        subproblem(field.instance, problem, field.table, build_model, regret), closer=closer
    )


def search_regret(run: Run, field: Field, outlooks: Sequence[Outlook]) -> Drive[Candidate]:
    """Search a field for the network of least regret."""
    network = _of_problem(field, outlooks, assemble(field.instance, field.families, field.table))
    gap = run.instance.solver.gap
    result = drive(
        [network], run.backend, gap=gap, deadline=run.deadline, on_standing=run.tell_standing
    )
    run.log.searches.append(result)
    return result


def robust_programs(run: Run) -> NamedPrograms:
    """The shared network at the worst prices, or with a row for every way prices may turn out."""
    if not run.instance.minimizes_regret:
        return field_programs(at_worst_prices(run))
    field = within_list_limits(run, at_least_efficiency(run.instance))
    if not isinstance(field, Field):
        return no_programs
    outlooks = outlooks_of(run)
    assert not isinstance(outlooks, str), f"the best plans were not found: {outlooks}"
    problem = assemble(field.instance, field.families, field.table)
    data = with_scenarios(problem, outlooks)
    return lambda name: iter([Program(model=build(data, FORMULATIONS[name]), unit=problem.scale)])


ROBUST = Method(
    plan=robust_plan,
    programs=robust_programs,
    formulations=lambda instance: tuple(
        FORMULATIONS if instance.minimizes_regret else SHARED_FORMULATIONS
    ),
)
