"""The mixed-integer programs that an instance makes by each formulation of its kind, before any search.

A search may take the same program in parts or in an order of its own, and adds cuts to it; here is what it begins with,
and how tight each formulation is: its optimum with fractions in place of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyomo.core as pyo
from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.columns.islands.options import list_options
from coopt.instance.schema import Instance
from coopt.instance.variants import at_least_efficiency, with_tp
from coopt.network.core import with_core_optics
from coopt.network.growth import lines
from coopt.plan.schema import Plan
from coopt.solving.arrays import assemble
from coopt.solving.backend import backend_of
from coopt.solving.direct.answer import listed_rows
from coopt.solving.fleet.answer import offered as offered_fleet
from coopt.solving.highs import LARGEST, options, solve
from coopt.solving.partition.arrays import partition_data
from coopt.solving.partition.parts import scaled, subset, useful
from coopt.solving.phased_search import demanded, line_bounds, numbers_of
from coopt.solving.phased_search import scaled as in_unit
from coopt.solving.robust.answer import at_worst_prices, outlooks_of, with_scenarios, within_list_limits
from coopt.solving.runs import Run, Why
from coopt.solving.shared import Field, field_of
from coopt.solving.sites.answer import offered
from coopt.solving.sites.arrays import ring_problems
from formulations import direct, partition, phased, regret, shared, sites

UNHURRIED_S = 1e9
"""Time for what comes before a program; a number, since an answer that there is none states it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """A model; `base` plus `unit` times its objective is one of the instance (USD or W)."""

    model: pyo.ConcreteModel
    unit: float = 1.0
    base: float = 0.0


Programs = Callable[[str], Iterator[Program]]
"""By the name of a formulation the programs of which the cheapest is the answer; none where nothing serves."""


def formulations_of(instance: Instance) -> tuple[str, ...]:
    """The names of the formulations of an instance."""
    if instance.problem == "robust" and not instance.minimizes_regret:
        return tuple(shared.FORMULATIONS)
    if instance.problem == "fleet" and instance.minimizes_regret:
        return tuple(partition.IN_DOUBT)
    return NAMES[instance.problem]


def programs_of(instance: Instance) -> Programs:
    """What an instance is made into, however long that takes; all formulations have the same list of what may be.

    TP groups lie inside HB domains where the instance leaves that open: so it is asked first.
    """
    unhurried = instance.solver.model_copy(update={"time_limit_s": UNHURRIED_S})
    instance = with_tp(instance, across=False).model_copy(update={"solver": unhurried})
    run = Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)
    return KINDS[instance.problem](run)


def _shared(run: Run) -> Programs:
    return _of_field(field_of(run, run.instance))


def _of_field(field: Field | Why) -> Programs:
    """One network, by formulations of the shared network."""
    if not isinstance(field, Field):
        return _nothing
    problem = assemble(field.instance, field.families, field.table)
    return lambda name: iter([Program(model=shared.build(problem.data, shared.FORMULATIONS[name]), unit=problem.scale)])


def _nothing(name: str) -> Iterator[Program]:
    return iter(())


def _robust(run: Run) -> Programs:
    """The shared network at the worst prices, or with a row for every way prices may turn out."""
    if not run.instance.minimizes_regret:
        return _of_field(at_worst_prices(run))
    field = within_list_limits(run, at_least_efficiency(run.instance))
    if not isinstance(field, Field):
        return _nothing
    outlooks = outlooks_of(run)
    assert not isinstance(outlooks, str), f"the best plans were not found: {outlooks}"
    problem = assemble(field.instance, field.families, field.table)
    data = with_scenarios(problem, outlooks)
    return lambda name: iter([Program(model=regret.build(data, regret.FORMULATIONS[name]), unit=problem.scale)])


def _partition(run: Run) -> Programs:
    """All islands of all workloads, in a program for each optic that a core may have."""
    small = []
    for asked in with_core_optics(run.instance):
        options = list_options(asked, lambda _: None, run.check_clock)
        if len(set(options.workload.tolist())) < len(run.instance.workload):
            return _nothing
        small.append(scaled(partition_data(asked, options)))
    return lambda name: (
        Program(model=partition.build(data, partition.FORMULATIONS[name]), unit=unit) for data, unit in small
    )


def _fleet(run: Run) -> Programs:
    """The useful islands of a fleet at sites and in phases, in a program for each optic that a core may have."""
    choice = offered_fleet(run)
    if isinstance(choice, Plan):
        return _nothing
    small = [scaled(subset(offer.data, useful(offer.data))) for offer in choice.offers]
    known = partition.FORMULATIONS | partition.IN_DOUBT
    return lambda name: (Program(model=partition.build(data, known[name]), unit=unit) for data, unit in small)


def _phased(run: Run) -> Programs:
    """All lines in one program."""
    every = tuple(lines(run.instance))
    asked = demanded(run.instance, every, lambda _: None, run.check_clock)
    chosen = asked.serving
    if not chosen:
        return _nothing
    data = numbers_of(run.instance, [every[f] for f in chosen], [asked.allowed[f] for f in chosen])
    unit = max(float(line_bounds(data).min()), 1.0) / LARGEST
    small = in_unit(data, unit)
    return lambda name: iter([Program(model=phased.build(small, phased.FORMULATIONS[name]), unit=unit)])


def _sites(run: Run) -> Programs:
    """One program for each ring."""
    problems = ring_problems(run.instance, offered(run))
    return lambda name: (
        Program(model=sites.build(one.data, sites.FORMULATIONS[name]), unit=one.scale) for one in problems
    )


def _direct(run: Run) -> Programs:
    """One program for each mapping on direct links; switches are another problem.

    `links` are alike on the orbits of the smallest group that is tried, which is none on few domains, `averages` on
    those of the largest.
    """
    rows = listed_rows(run)

    def of(name: str) -> Iterator[Program]:
        for row in rows:
            asked = row.demands
            groups = list(asked.grid.ladder(asked.ports, asked.sends))
            data = asked.on_orbits(groups[0 if name == "averages" else -1])
            bare, one = row.place.value(0), row.place.value(1)
            yield Program(model=direct.build(data, direct.FORMULATIONS[name]), unit=one - bare, base=bare)

    return of


KINDS: dict[str, Callable[[Run], Programs]] = {
    "shared": _shared,
    "partition": _partition,
    "phased": _phased,
    "sites": _sites,
    "direct": _direct,
    "robust": _robust,
    "fleet": _fleet,
}
NAMES: dict[str, tuple[str, ...]] = {
    "shared": tuple(shared.FORMULATIONS),
    "partition": tuple(partition.FORMULATIONS),
    "phased": tuple(phased.FORMULATIONS),
    "sites": tuple(sites.FORMULATIONS),
    "direct": ("links", "averages"),  # `pace` is for links that are given
    "robust": tuple(regret.FORMULATIONS),
    "fleet": ("totals",),  # `shares` is for products of one phase
}


def lp_bounds(instance: Instance) -> dict[str, float | None]:
    """By the name of each formulation the optimum of its linear relaxation, before any cut.

    In USD or W, as the objective. None where nothing can serve every workload, or where even fractions exceed a limit.
    """
    programs = programs_of(instance)
    found = {name: [_relaxed(program) for program in programs(name)] for name in formulations_of(instance)}
    return {name: min((bound for bound in bounds if bound is not None), default=None) for name, bounds in found.items()}


def _relaxed(program: Program) -> float | None:
    RelaxIntegerVars().apply_to(program.model)
    answer = solve(program.model, time_limit_s=math.inf, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return None if answer.value is None else program.base + program.unit * answer.value
