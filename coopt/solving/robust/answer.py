"""Answer an instance that asks for a robust plan."""

from __future__ import annotations

from dataclasses import replace

from coopt.instance.robust import Robust, corners
from coopt.instance.schema import Instance, Limits
from coopt.instance.variants import at_efficiency, at_prices
from coopt.network.family import LinkEnds
from coopt.network.parts import cost_of, within_limits
from coopt.plan.couplings import Couplings, Outlooks, one_network, one_networks_losses
from coopt.plan.schema import Alternative, Plan
from coopt.solving import explain
from coopt.solving.arrays import viable
from coopt.solving.backend import backend_of
from coopt.solving.candidates import Candidate
from coopt.solving.outcome import answered, claim_of, ending, infeasible, unknown, written_out
from coopt.solving.robust.reasons import no_survivor
from coopt.solving.robust.regret import Outlook, largest_regret, repriced, search_regret, turns
from coopt.solving.robust.survival import survived, surviving
from coopt.solving.runs import Run
from coopt.solving.serving import Field, field_of, nothing_found, searched


def robust_plan(run: Run) -> Plan:
    """The plan of least worst-case cost, or of least regret, among those that stand every loss."""
    robust = run.instance.robust
    assert robust is not None
    listed = at_efficiency(run.instance, robust.efficiency[0])
    return (_worst_case if robust.aim == "worst-case" else _least_regret)(run, robust, listed)


def _worst_case(run: Run, robust: Robust, listed: Instance) -> Plan:
    """The plan of least cost at the worst prices."""
    field = at_worst_prices(run, listed, robust)
    if isinstance(field, tuple):
        return infeasible(run, field)
    result = searched(run, field)
    if result.found is None:
        return nothing_found(run, field, result)
    best = written_out(field.instance, result.found, result.bound, field.table)
    return _answered(run, robust, listed, result.found, best, ending(run, result.outcome, best.objective))


def _least_regret(run: Run, robust: Robust, listed: Instance) -> Plan:
    """The plan of least regret over all prices."""
    run.formulation = "regret"
    field = within_list_limits(run, listed, robust)
    if isinstance(field, tuple):
        return infeasible(run, field)
    outlooks = outlooks_of(run, robust)
    if isinstance(outlooks, str):
        return unknown(run, outlooks)
    result = search_regret(run, field, outlooks)
    if result.found is None:
        return nothing_found(run, field, result)
    regret = largest_regret(outlooks, result.found.family, result.found.uplinks)
    claim = claim_of(listed.objective.minimize, regret, result.bound)
    best = written_out(field.instance, result.found, result.bound, field.table)
    best = best.model_copy(update={"objective": claim})
    return _answered(run, robust, listed, result.found, best, ending(run, result.outcome, claim), outlooks)


def at_worst_prices(run: Run, listed: Instance, robust: Robust) -> Field | tuple[str, ...]:
    """What can be built at the upper ends of all prices, or why there is nothing."""
    return _standing(run, at_prices(listed, robust.prices.worst), robust)


def _standing(run: Run, instance: Instance, robust: Robust) -> Field | tuple[str, ...]:
    """The networks of an instance without intervals that survive every loss, or why there is none."""
    field = field_of(run, instance)
    if isinstance(field, tuple):
        return field
    kept = surviving(instance, robust, field.families, run.check_clock)
    run.tell("columns", f"{len(kept):,} families survive every loss")
    return replace(field, families=kept) if kept else no_survivor(instance, robust, field.families, run.check_clock)


def within_list_limits(run: Run, instance: Instance, robust: Robust) -> Field | tuple[str, ...]:
    """Of these the networks within the limits at list prices, for the instance without limits, or why there is none.

    What a network uses never falls with uplinks, so that each family keeps its uplinks up to some number.
    """
    field = _standing(run, instance, robust)
    if isinstance(field, tuple):
        return field
    kept = []
    for family in field.families:
        costs = ((uplinks, cost_of(instance, family, uplinks)) for uplinks in family.uplink_choices)
        fits = [uplinks for uplinks, cost in costs if within_limits(instance, family, cost)]
        if fits:
            kept.append(replace(family, uplink_choices=tuple(fits)))
    free = instance.model_copy(update={"limits": Limits()})
    standing = viable(free, tuple(kept), field.table)
    if not standing:
        return explain.over_limits(instance, field.families, field.table)
    return replace(field, instance=free, families=standing)


def outlooks_of(run: Run, robust: Robust) -> tuple[Outlook, ...] | str:
    """Every way prices may turn out at the best efficiency, with its optimum; why a search ended that left one open.

    These optima are exact, whatever gap the instance allows: regret is measured from them.
    """
    field = within_list_limits(run, at_efficiency(run.instance, robust.efficiency[1]), robust)
    assert isinstance(field, Field), "what serves at the least efficiency serves at the best"
    solver = run.instance.solver.model_copy(update={"gap": 0.0})
    exact = replace(
        run,
        instance=run.instance.model_copy(update={"solver": solver}),
        backend=backend_of(solver, run.backend.cancel),
        on_progress=None,
    )
    found: list[Outlook] = []
    outcomes = corners(robust.prices)
    for factors in outcomes:
        then = at_prices(field.instance, factors)
        families = tuple(repriced(family, factors) for family in field.families)
        result = searched(exact, replace(field, instance=then, families=families))
        if result.found is None:
            return result.outcome
        best = result.found.cost.of(then.objective.minimize)
        reason = ending(exact, result.outcome, claim_of(then.objective.minimize, best, result.bound))
        if reason != "optimal":
            return reason
        found.append(Outlook(factors=factors, instance=then, best=best))
        run.tell_outcomes(len(found), len(outcomes))
    return tuple(found)


def _answered(
    run: Run,
    robust: Robust,
    listed: Instance,
    found: Candidate,
    best: Alternative,
    reason: str,
    outlooks: tuple[Outlook, ...] = (),
) -> Plan:
    couplings = Couplings(
        outlooks=Outlooks(
            aim=robust.aim,
            efficiency=robust.efficiency,
            list_value=_at_list_prices(listed, found),
            turns=turns(outlooks, found.family, found.uplinks),
        ),
        losses=one_networks_losses(survived(listed, found.family, found.uplinks, robust)),
    )
    parts = (one_network(best.cost, best.workloads, design=best.design),)
    return answered(run, reason, best.objective, cost=best.cost, parts=parts, couplings=couplings)


def _at_list_prices(listed: Instance, found: Candidate) -> float:
    """The objective of a network at the prices of the instance, whatever it was found at."""
    hb = next(hb for hb in listed.network.hb_domains if hb.name == found.family.hb.name)
    parts = {kind: {part.name: part for part in getattr(listed.network, kind)} for kind in ("nics", "optics")}
    ways = {(way.name, way.port_gbit_s): way for way in listed.network.switch_ways}
    switch, *upper = (ways[one.name, one.port_gbit_s] for one in (found.family.switch, *found.family.upper))
    family = replace(
        found.family,
        hb=hb,
        nic=parts["nics"][found.family.nic.name],
        switch=switch,
        upper=tuple(upper),
        optics=tuple(LinkEnds(*(parts["optics"][one.name] for one in ends)) for ends in found.family.optics),
    )
    return cost_of(listed, family, found.uplinks).of(listed.objective.minimize)
