"""Answer an instance that grows in phases."""

from __future__ import annotations

from coopt.columns.context import context_of
from coopt.instance.errors import InstanceError
from coopt.instance.rules.phases import phase_disagreements
from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.network.growth import Line, lines
from coopt.network.parts import cost_of
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Part, PhaseSpending, phase_name
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.driver import Drive
from coopt.solving.outcome import answered, claim_of, infeasible, unknown, within_gap
from coopt.solving.phased.arrays import numbers_of
from coopt.solving.phased.demand import Demand, demanded
from coopt.solving.phased.myopic import without_foresight
from coopt.solving.phased.reasons import no_growth, no_line
from coopt.solving.phased.search import FORMULATION, Growth, search_lines
from coopt.solving.runs import Run
from coopt.solving.workloads import fastest_row, workload_plan


def phased_plan(run: Run) -> Plan:
    """What to buy in which phase at the least cost, with a proof.

    Raises
    ------
    InstanceError
        When a caller asks for an objective or a solver setting that phases do not have.
    """
    instance, run.formulation = run.instance, FORMULATION
    complaints = list(phase_disagreements(instance))
    if complaints:
        raise InstanceError(f"{instance.name}: {complaint}" for complaint in complaints)
    every = _lines(run)
    if not every:
        return infeasible(run, no_line(instance))
    asked = _demand(run, every)
    serving = asked.serving
    run.tell("build", f"{asked.kept:,} mappings kept, {len(serving):,} of {len(every):,} lines can serve every phase")
    if not serving:
        return infeasible(run, no_growth(instance, asked))
    chosen = [every[f] for f in serving]
    data = numbers_of(instance, chosen, [asked.allowed[f] for f in serving])
    result = search_lines(instance, chosen, data, run.backend, deadline=run.deadline, on_standing=run.tell_standing)
    run.log.searches.append(result)
    run.tell("solve", f"{result.tried:,} of {len(serving):,} lines handed to {run.backend.name}")
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    return _plan(run, asked, result, result.found)


def _lines(run: Run) -> tuple[Line, ...]:
    found = []
    for line in lines(run.instance):
        run.check_clock()
        found.append(line)
    run.log.model_s, run.log.families = run.elapsed_s(), len(found)
    return tuple(found)


def _demand(run: Run, every: tuple[Line, ...]) -> Demand:
    before = run.elapsed_s()

    def on_phase(t: int) -> None:
        phase = run.instance.phase[t]
        run.tell("columns", f"{phase.year:g}: {phase.gpus:,} GPUs on {len(every):,} lines")

    run.log.table = asked = demanded(run.instance, every, on_phase, run.check_clock)
    run.log.columns_s = run.elapsed_s() - before
    return asked


def _plan(run: Run, asked: Demand, result: Drive[Growth], found: Growth) -> Plan:
    instance, kind = run.instance, run.instance.objective.minimize
    claim = claim_of(kind, found.cost.of(kind), result.bound)
    reason: str = result.outcome
    if reason == "optimal" and not within_gap(run, claim):
        reason = "the solver's own gap"
    steps = range(len(instance.phase))
    couplings = Couplings(
        growth=tuple(_spending(instance, found, t) for t in steps),
        myopic=without_foresight(instance, asked, claim.value),
    )
    parts = tuple(_part(instance, asked, found, t) for t in steps)
    return answered(run, reason, claim, cost=found.cost, parts=parts, couplings=couplings)


def _part(instance: Instance, asked: Demand, found: Growth, t: int) -> Part:
    """The whole network in place in a phase, with its bill at the prices of the instance."""
    family, uplinks, year = found.line.phases[t], found.uplinks[t], instance.phase[t].year
    return Part(
        name=phase_name(year),
        phase=year,
        design=design_of(family, uplinks),
        workloads=_workloads(asked, found, t),
        cost=cost_of(instance, family, uplinks),
        power_w=found.spent[t].power_w,
    )


def _spending(instance: Instance, found: Growth, t: int) -> PhaseSpending:
    spent = found.spent[t]
    return PhaseSpending(
        year=instance.phase[t].year,
        years=years_of(instance, t),
        bought=spent.bought,
        stored=spent.stored,
        capex_usd=spent.capex_usd,
        power_w=spent.power_w,
        energy_usd=spent.energy_usd,
    )


def _workloads(asked: Demand, found: Growth, t: int) -> tuple[WorkloadPlan, ...]:
    """Every workload of a phase on the network in place, by its fastest mapping."""
    context, uplinks, question = context_of(found.line.phases[t]), found.uplinks[t], asked.questions[t]
    pools = [asked.tables[t].pools[w, context.site] for w in range(len(question.workload))]
    return tuple(
        workload_plan(pool, question.cluster.gpu, context, uplinks, fastest_row(pool, context, uplinks)[0])
        for pool in pools
    )
