"""Answer an instance that grows in phases, or say which phase, bound or limit stands against every
network.

Each phase is also planned as if it were the last, which tells what not looking ahead costs.

The myopic planner knows how many GPUs will come, so that leaves and ports suit the end, and knows
nothing of later bounds, workloads and prices. In each phase it adds what is cheapest then, and buys
nothing ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from coopt.columns.context import context_of
from coopt.instance.errors import InstanceError
from coopt.instance.rules.couplings import phase_disagreements
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase, workloads_of
from coopt.network.growth import Line, grows, lines
from coopt.network.parts import cost_of
from coopt.network.plan_networks import design_of
from coopt.network.space import domain_counts, families
from coopt.plan.couplings import Couplings, Myopic, MyopicStep, Part, phase_name
from coopt.plan.schema import Design, Plan, WorkloadPlan
from coopt.solving import explain
from coopt.solving.arrays import fastest_row, workload_plan
from coopt.solving.driver import Drive
from coopt.solving.outcome import answered, claim_of, infeasible, unknown, within_gap
from coopt.solving.phased_search import (
    FORMULATION,
    Demand,
    Growth,
    demanded,
    grown_at,
    numbers_of,
    phased_programs,
    search_lines,
)
from coopt.solving.runs import Method, Run
from formulations.phased import FORMULATIONS


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
    candidates = _lines(run)
    if not candidates:
        return infeasible(run, partial(no_line, instance))
    demand = _demand(run, candidates)
    serving = demand.serving
    run.tell(
        "build",
        f"{demand.kept:,} mappings kept, {len(serving):,} of {len(candidates):,} lines can serve"
        " every phase",
    )
    if not serving:
        return infeasible(run, partial(no_growth, instance, demand))
    serving_lines = [candidates[f] for f in serving]
    data = numbers_of(instance, serving_lines, [demand.allowed[f] for f in serving])
    result = search_lines(
        instance,
        serving_lines,
        data,
        run.backend,
        deadline=run.deadline,
        on_standing=run.tell_standing,
    )
    run.log.searches.append(result)
    run.tell("solve", f"{result.tried:,} of {len(serving):,} lines handed to {run.backend.name}")
    if result.found is None:
        return unknown(run, result.outcome, result.bound)
    return _plan(run, demand, result, result.found)


def _lines(run: Run) -> tuple[Line, ...]:
    candidates = []
    for line in lines(run.instance):
        run.check_clock()
        candidates.append(line)
    run.log.model_s, run.log.families = run.elapsed_s(), len(candidates)
    return tuple(candidates)


def _demand(run: Run, candidates: tuple[Line, ...]) -> Demand:
    started_s = run.elapsed_s()

    def on_phase(t: int) -> None:
        phase = run.instance.phase[t]
        run.tell("columns", f"{phase.year:g}: {phase.gpus:,} GPUs on {len(candidates):,} lines")

    run.log.table = demand = demanded(run.instance, candidates, on_phase, run.check_clock)
    run.log.columns_s = run.elapsed_s() - started_s
    return demand


def _plan(run: Run, demand: Demand, result: Drive[Growth], growth: Growth) -> Plan:
    instance, kind = run.instance, run.instance.objective.minimize
    claim = claim_of(kind, growth.cost.of(kind), result.bound)
    reason: str = result.outcome
    if reason == "optimal" and not within_gap(run, claim):
        reason = "the solver's own gap"
    steps = range(len(instance.phase))
    couplings = Couplings(
        growth=growth.spending, myopic=without_foresight(instance, demand, claim.value)
    )
    parts = tuple(_part(instance, demand, growth, t) for t in steps)
    return answered(run, reason, claim, cost=growth.cost, parts=parts, couplings=couplings)


def _part(instance: Instance, demand: Demand, growth: Growth, t: int) -> Part:
    """The whole network in place in a phase, with its bill at the prices of the instance."""
    family, uplinks, year = growth.line.phases[t], growth.uplinks[t], instance.phase[t].year
    return Part(
        name=phase_name(year),
        phase=year,
        design=design_of(family, uplinks),
        workloads=_workloads(demand, growth, t),
        cost=cost_of(instance, family, uplinks),
        power_w=growth.spending[t].power_w,
    )


def _workloads(demand: Demand, growth: Growth, t: int) -> tuple[WorkloadPlan, ...]:
    """Every workload of a phase on the network in place, by its fastest mapping."""
    context, uplinks, question = (
        context_of(growth.line.phases[t]),
        growth.uplinks[t],
        demand.questions[t],
    )
    pools = [demand.tables[t].pools[w, context.site] for w in range(len(question.workload))]
    return tuple(
        workload_plan(
            pool, question.cluster.gpu, context, uplinks, fastest_row(pool, context, uplinks)[0]
        )
        for pool in pools
    )


def no_line(instance: Instance) -> tuple[str, ...]:
    """Nothing in [network] can join the GPUs of every phase."""
    sentences = [
        _in_phase(instance, t, text)
        for t in range(len(instance.phase))
        if next(families(question := of_phase(instance, t)), None) is None
        for text in explain.no_family(question)
    ]
    if sentences:
        return tuple(sentences)
    counts = [phase.gpus for phase in instance.phase]
    final = counts[-1]
    spread = [
        final // domains
        for hb in instance.network.hb_domains
        for domains in domain_counts(final, hb)
        if all(gpus % (final // domains) == 0 for gpus in counts)
    ]
    listing = ", ".join(f"{gpus:,}" for gpus in counts)
    if not spread:
        return (
            (
                f"no HB domain holds the same number of active GPUs in every phase ({listing}"
                " GPUs): needs GPU counts that share a divisor of more than half of an HB domain"
            ),
        )
    if any(family.active in spread and grows(family, counts) for family in families(instance)):
        return (
            (
                f"no network that joins {final:,} GPUs has uplinks in every phase that spread over"
                " the spines of the last one in even bundles: needs a larger oversubscription, or"
                " network.bundles = 'any'"
            ),
        )
    return (
        (
            f"every network that joins {final:,} GPUs is rail-optimized with three tiers, which"
            f" cannot grow from {counts[0]:,}: needs another fabric, switches of more ports, or all"
            " GPUs from the start"
        ),
    )


def no_growth(instance: Instance, demand: Demand) -> tuple[str, ...]:
    """Lines, but none that serves every phase."""
    return tuple(_bounds(instance, demand)) or tuple(_limits(instance, demand))


def _bounds(instance: Instance, demand: Demand) -> Iterator[str]:
    """Phases whose time bounds no line meets; or that each is met, and never all by one line."""
    unmet = [t for t in range(len(instance.phase)) if not any(row[t] for row in demand.timely)]
    for t in unmet:
        families_then = tuple(line.phases[t] for line in demand.lines)
        for text in explain.no_design(demand.questions[t], families_then, demand.tables[t]):
            yield _in_phase(instance, t, text)
    if not unmet and not any(all(row) for row in demand.timely):
        first_failure = max(
            next(t for t, part in enumerate(row) if not part) for row in demand.timely
        )
        yield (
            "the time bounds of each phase can be met by some network, but those of all phases by"
            " none that grows: the one that keeps them longest fails in"
            f" {instance.phase[first_failure].year:g}; needs a looser bound there or before"
        )


def _limits(instance: Instance, demand: Demand) -> Iterator[str]:
    """Phases whose limits every line exceeds that meets all time bounds."""
    timely = [f for f, row in enumerate(demand.timely) if all(row)]
    over = [t for t in range(len(instance.phase)) if not any(demand.allowed[f][t] for f in timely)]
    for t in over:
        families_then = tuple(demand.lines[f].phases[t] for f in timely)
        for text in explain.over_limits(demand.questions[t], families_then, demand.tables[t]):
            yield _in_phase(instance, t, text)
    if not over:
        yield (
            "the limits of each phase can be kept by some network, but those of all phases by none"
            " that grows: needs a looser limit, or looser bounds in an early phase"
        )


def _in_phase(instance: Instance, t: int, text: str) -> str:
    return f"phase of {instance.phase[t].year:g}: {text}"


Uplinks = tuple[int, ...]
OpenLines = list[
    tuple[int, Uplinks]
]  # lines that begin with what is in place, and their uplinks so far


def without_foresight(instance: Instance, demand: Demand, value: float | None) -> Myopic:
    """What planning phase by phase builds.

    Parameters
    ----------
    value
        The objective of the plan to compare with; None without one.
    """
    open_lines: OpenLines = [(f, ()) for f in range(len(demand.lines))]
    steps: list[MyopicStep] = []
    growth = None
    for t, phase in enumerate(instance.phase):
        able = [
            (f, (*history, u))
            for f, history in open_lines
            if (u := _uplinks(demand, f, t, history)) is not None
        ]
        if not able:
            reason = _dead_end(instance, demand, open_lines, t, steps[-1].design if steps else None)
            return Myopic(steps=tuple(steps), value=None, saving=None, dead_end=reason)
        growth, design = _cheapest_growth(instance, demand, able, t)
        expense = growth.spending[t]
        paid = {
            "capex_usd": expense.capex_usd,
            "energy_usd": expense.energy_usd,
            "work_usd": expense.work_usd,
        }
        steps.append(MyopicStep(year=phase.year, design=design, **paid))
        open_lines = list(_lines_in_place(demand, open_lines, t, growth.uplinks[-1], design))
    assert growth is not None
    own_value = growth.cost.of(instance.objective.minimize)
    saving = None if value is None else own_value - value
    return Myopic(steps=tuple(steps), value=own_value, saving=saving, dead_end=None)


def _lines_in_place(
    demand: Demand, open_lines: OpenLines, t: int, uplinks: int, design: Design
) -> Iterator[tuple[int, Uplinks]]:
    """Lines that stand as built, with their uplinks."""
    for f, history in open_lines:
        line, rises = demand.lines[f], not history or history[-1] <= uplinks
        if (
            rises
            and uplinks in demand.allowed[f][t]
            and _builds_same(_design(line, (*history, uplinks)), design)
        ):
            yield f, (*history, uplinks)


def _builds_same(design: Design, rival: Design) -> bool:
    """Whether two designs build the same; one HB domain buys no network, whatever is named."""
    is_single_domain = design.fabric.tiers == rival.fabric.tiers == 0
    return design.hb_domain == rival.hb_domain if is_single_domain else design == rival


def _uplinks(demand: Demand, f: int, t: int, history: Sequence[int]) -> int | None:
    """The fewest uplinks that serve a phase over those that stand; None where no number does."""
    choices = demand.allowed[f][t]
    fewest = max(choices[0], *history) if choices and history else choices[0] if choices else None
    return fewest if fewest is not None and fewest <= choices[-1] else None


def _cheapest_growth(
    instance: Instance, demand: Demand, able: OpenLines, t: int
) -> tuple[Growth, Design]:
    """What adds least in a phase, with electricity and work where they count; the earliest among
    equals.
    """
    grown = (grown_at(instance, demand.lines[f], uplinks, ahead=False) for f, uplinks in able)
    cheapest_growth = min(grown, key=lambda growth: _added(instance, growth, t))
    return cheapest_growth, _design(cheapest_growth.line, cheapest_growth.uplinks)


def _added(instance: Instance, growth: Growth, t: int) -> float:
    expense = growth.spending[t]
    return expense.capex_usd + (
        expense.energy_usd + expense.work_usd if instance.objective.minimize == "tco" else 0.0
    )


def _design(line: Line, uplinks: Sequence[int]) -> Design:
    """What stands in the phase of the last of some uplinks."""
    return design_of(line.phases[len(uplinks) - 1], uplinks[-1])


def _dead_end(
    instance: Instance, demand: Demand, open_lines: OpenLines, t: int, design: Design | None
) -> str:
    """Which phase cannot be served from what stands, and what it would have to keep."""
    phase = instance.phase[t]
    is_timely = any(demand.timely[f][t] for f, _ in open_lines)
    limits = (
        "the limits of the instance"
        if is_timely
        else "the time bounds of "
        + ", ".join(workload.name for workload in workloads_of(instance, phase))
    )
    start = "nothing" if design is None else f"{design.hb_domain.count:,} x {design.hb_domain.name}"
    return (
        f"in {phase.year:g} no network that grows from {start} to {phase.gpus:,} GPUs keeps"
        f" {limits}"
    )


PHASED = Method(
    plan=phased_plan, programs=phased_programs, formulations=lambda _: tuple(FORMULATIONS)
)
