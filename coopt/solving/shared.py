"""Answer a question of one network that every workload has in turn.

A formulation is solved for the networks that serve all workloads, what it decided is recomputed,
and what does not hold is cut off.

The next best designs after the best: what was found is taken out, and the rest is searched again.

A design is one family at one number of uplinks, so taking it out splits the uplinks of its family
in two runs, each a family of its own. That is exact, needs no cut in the formulation, and leaves
both formulations as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import pyomo.core as pyo

from coopt.columns.context import context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even
from coopt.network.optics import measures_of
from coopt.network.parts import within_limits
from coopt.network.space import families
from coopt.plan.couplings import one_network
from coopt.plan.schema import Alternative, AlternativesStop, Plan
from coopt.solving import explain
from coopt.solving.arrays import SharedProblem, assemble, in_units_of, viable
from coopt.solving.backend import Backend
from coopt.solving.cheapest import Cheapest, columns_of, up_to_cheapest
from coopt.solving.days import in_days
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.outcome import (
    Candidate,
    alternative_of,
    answered,
    ending,
    fastest_of_equal_cost,
    infeasible,
    recomputed,
    unknown,
)
from coopt.solving.runs import Method, NamedPrograms, Program, Run, Why, no_programs
from coopt.solving.watching import OnStanding
from formulations.network import (
    FORMULATIONS,
    NETWORK,
    add_limit_cut,
    add_uplink_cut,
    build,
    cheapest_design,
    set_design,
)


def shared_plan(run: Run) -> Plan:
    """One network that every workload has in turn."""
    field = field_of(run, run.instance, whole=run.instance.solver.top > 1)
    if not isinstance(field, Field):
        return infeasible(run, field)
    run.tell("solve", f"formulation {run.formulation!r} handed to {run.backend.name}")
    result = searched(run, field)
    if result.found is None:
        return nothing_found(run, field, result)
    alternative = alternative_of(run, result, result.found, field.table)
    reason = ending(run, result.outcome, alternative.objective)
    parts = (one_network(alternative.cost, alternative.workloads, design=alternative.design),)
    runners: dict[str, Any] = {}
    if run.instance.solver.top > 1 and reason == "optimal":
        alternatives, stop = runners_up(run, field, result.found)
        runners = {"alternatives": alternatives, "alternatives_stop": stop}
    return answered(
        run, reason, alternative.objective, cost=alternative.cost, parts=parts, **runners
    )


def runners_up(
    run: Run, field: Field, best: Candidate
) -> tuple[tuple[Alternative, ...], AlternativesStop]:
    """The `solver.top - 1` best designs after the `winner`, each proven, and why there are no more.

    The family of the `winner` is on the field.
    """
    alternatives: list[Alternative] = []
    try:
        stop = _search(run, field, best, alternatives)
    except KeyboardInterrupt:
        run.on_progress, stop = None, "interrupted"
    return tuple(alternatives), stop


def _search(
    run: Run, field: Field, winner: Candidate, found: list[Alternative]
) -> AlternativesStop:
    """Append to `alternatives` until there are enough."""
    number, design = run.instance.solver.top - 1, winner
    while len(found) < number:
        remainder = tuple(without(field.families, design.family, design.uplinks))
        field = replace(field, families=viable(field.instance, remainder, field.table))
        if not field.families:
            return "no other design"
        run.tell("solve", f"runner-up {len(found) + 1} of {number}")
        result = searched(run, field)
        if result.outcome == "infeasible":
            return "no other design"
        if result.found is None:
            return _stop_reason(result.outcome)
        alternative = alternative_of(run, result, result.found, field.table)
        stop = ending(run, result.outcome, alternative.objective)
        if stop != "optimal":
            return _stop_reason(stop)
        found.append(alternative)
        design = result.found
    return "all found"


def _stop_reason(stop: str) -> Literal["time limit", "interrupted", "not proven"]:
    """Why a search ended without a proof."""
    return (
        "time limit"
        if stop == "time limit"
        else "interrupted"
        if stop == "interrupted"
        else "not proven"
    )


def without(families: Iterable[Family], design: Family, uplinks: int) -> Iterator[Family]:
    """The families less one design, under whatever name it goes."""
    network = identity(design)
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

    A single domain buys no network, whatever is named; on one tier fabrics of as many planes are
    one and the same.
    """
    place = (family.gpus, family.hb.name, family.domains)
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    """Families that can serve every workload of an instance, at least one, and the mappings on
    them.
    """

    instance: Instance
    families: tuple[Family, ...]
    table: Columns


def field_of(run: Run, instance: Instance, *, whole: bool = True) -> Field | Why:
    """The field of an instance, or why nothing is on it; optics are compared by what the run's
    question depends on.

    Parameters
    ----------
    whole
        Whether every network that serves is on it, or those alone that may be the cheapest.
    """
    measures = measures_of(run.instance)
    # with interruptions the cheapest network that columns find to serve may still be too slow
    all_count, network = whole or instance.availability is not None, instance.network
    serving: tuple[Family, ...] = ()
    if not all_count and (network.domain_fill != "even" or network.tier_switches == "any"):
        candidates, table = up_to_cheapest(run, instance, measures)
        serving = viable(instance, candidates, table)
    if not serving:
        started_s = run.elapsed_s()
        candidates = tuple(run.in_time(families(instance, measures)))
        run.log.model_s += run.elapsed_s() - started_s
        if not candidates:
            return partial(explain.no_family, instance, may_own_ends=not run.instance.same_ends)
        run.tell("columns", f"{len(candidates):,} network families")
        table = columns_of(
            run, instance, candidates, None if all_count else Cheapest(instance, candidates)
        )
        serving = viable(instance, candidates, table)
    run.log.families, run.log.table = len(candidates), table
    run.tell(
        "build",
        f"{table.enumerated:,} mappings enumerated, {table.kept:,} kept, "
        f"{len(serving):,} families can serve every workload",
    )
    if not serving:
        return lambda: (
            *explain.no_design(instance, candidates, table, run.check_clock),
            *explain.beyond_limits(instance, candidates),
        )
    timely = in_days(instance, serving, table, run.check_clock)
    if not timely:
        return partial(explain.interrupted, instance, serving, table, run.check_clock)
    return Field(instance=instance, families=timely, table=table)


def searched(run: Run, field: Field) -> Drive[Candidate]:
    """Search a field for its cheapest network."""
    problem = assemble(field.instance, field.families, field.table)
    result = search(
        field.instance,
        problem,
        field.table,
        run.backend,
        deadline=run.deadline,
        on_standing=run.tell_standing,
    )
    run.log.searches.append(result)
    return result


def nothing_found(run: Run, field: Field, result: Drive[Candidate]) -> Plan:
    """The answer when a search of a field found no network."""
    outcome = result.outcome
    if outcome == "infeasible":
        return infeasible(
            run, partial(explain.over_limits, field.instance, field.families, field.table)
        )
    return unknown(run, outcome, result.bound)


def search(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    backend: Backend,
    *,
    deadline: float,
    on_standing: OnStanding | None = None,
) -> Drive[Candidate]:
    """The cheapest network, by the formulation of the instance; its search starts from what a pass
    over families finds.

    Parameters
    ----------
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    """
    result = drive(
        [_started(instance, problem, table)],
        backend,
        gap=instance.solver.gap,
        deadline=deadline,
        on_standing=on_standing,
    )
    if result.found is None or result.outcome != "optimal":
        return result
    with contextlib.suppress(KeyboardInterrupt):  # the one found is as good a proof
        return replace(result, found=fastest_of_equal_cost(instance, problem, table, result.found))
    return result


def _started(instance: Instance, problem: SharedProblem, table: Columns) -> Subproblem[Candidate]:
    """The shared network, which starts from what a pass over families finds."""
    design = cheapest_design(problem.data)

    def build_network() -> tuple[pyo.ConcreteModel, float]:
        model = build(problem.data, NETWORK)
        if design is not None:
            set_design(model, *design)
        return model, problem.scale

    def closer(value: float) -> Subproblem[Candidate] | None:
        nearer = in_units_of(problem, value)
        return None if nearer is None else _started(instance, nearer, table)

    network = subproblem(instance, problem, table)
    return replace(network, build=build_network, starts=design is not None, closer=closer)


def subproblem(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    build_model: Callable[[], tuple[pyo.ConcreteModel, float]] | None = None,
    value: Callable[[Candidate], float] | None = None,
) -> Subproblem[Candidate]:
    """The shared network by a model of its families and columns.

    Parameters
    ----------
    value
        What a network is worth; the objective of its bill where left out.
    """

    def worth(candidate: Candidate) -> float:
        return candidate.cost.of(instance.objective.minimize) if value is None else value(candidate)

    def read(model: pyo.ConcreteModel) -> Decided[Candidate] | None:
        candidate = _cut_off(instance, problem, table, model)
        return None if candidate is None else Decided(choice=candidate, value=worth(candidate))

    def unbuilt() -> tuple[pyo.ConcreteModel, float]:
        return build(problem.data, NETWORK), problem.scale

    return Subproblem(build=build_model or unbuilt, read=read)


def _cut_off(
    instance: Instance, problem: SharedProblem, table: Columns, model: pyo.ConcreteModel
) -> Candidate | None:
    """What the rounded decisions amount to; None, with cuts added, where they break a bound or a
    limit.
    """
    f = max(model.F, key=lambda i: model.y[i].value)
    family = problem.families[f]
    candidate = recomputed(instance, table, family, family.most_offered(round(model.u[f].value)))
    context = context_of(candidate.family)
    late_workloads = {w for w, share in enumerate(candidate.shares) if share > 1}
    for c, column in enumerate(problem.columns):
        if column.workload in late_workloads and table.contexts[column.context] == context:
            add_uplink_cut(model, c, int(next_even(candidate.uplinks + 1, context.bundle)))
    over = not within_limits(instance, candidate.family, candidate.cost)
    if over:
        add_limit_cut(model, f, candidate.uplinks - 1)
    return None if late_workloads or over else candidate


def field_programs(field: Field | Why) -> NamedPrograms:
    """One program of one network for each formulation of it."""
    if not isinstance(field, Field):
        return no_programs
    problem = assemble(field.instance, field.families, field.table)
    return lambda name: iter(
        [Program(model=build(problem.data, FORMULATIONS[name]), unit=problem.scale)]
    )


IN_TURN = Method(
    plan=shared_plan,
    programs=lambda run: field_programs(field_of(run, run.instance)),
    formulations=lambda _: tuple(FORMULATIONS),
)
