"""A plan that grows: what to buy now, what later, and what foresight is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase
from coopt.plan.couplings import PhaseSpending
from coopt.plan.margins import phase_checks
from coopt.plan.schema import Cost, Plan
from coopt.plan.views import PhasePlan
from coopt.report import words
from coopt.report.parts import bill_table, design_tables, workload_tables
from coopt.report.remarks import margins_table, notes
from coopt.report.sentence import design_text
from coopt.report.tables import figures


def phases_report(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """Growth at a glance, every phase with its bill, the last network in full, every workload, the myopic planner."""
    assert plan.cost is not None
    last = plan.phases[-1]
    yield growth_table(plan)
    yield spending_sentence(plan.cost)
    yield ""
    yield from foresight(plan)
    yield from phase_bills(plan.couplings.growth)
    yield ""
    yield from design_tables(instance, last.design)
    for t, phase in enumerate(plan.phases):
        question = of_phase(instance, t)
        for run, workload in zip(phase.workloads, question.workload, strict=True):
            yield ""
            yield f"From {phase.year:g}:"
            yield from workload_tables(run, workload)
    yield ""
    yield margins_table(phase_checks(instance, plan.phases))
    yield ""
    yield from notes(of_phase(instance, len(plan.phases) - 1), [last.design], last.workloads)


def spending_sentence(cost: Cost) -> str:
    """What all phases cost."""
    bought, electricity = words.money(cost.capex_usd), words.money(cost.tco_usd - cost.capex_usd)
    return f"All phases together: {bought} to buy, {electricity} of electricity."


def phase_bills(growth: Sequence[PhaseSpending], prices: str = "prices") -> Iterator[RenderableType]:
    """The bill of every phase at its prices, and what waits for a later one."""
    for phase in growth:
        yield ""
        title, power_w = f"Bill of {phase.year:g}, at its {prices}", sum(item.w for item in phase.bought)
        yield bill_table(title, phase.bought, phase.capex_usd, power_w)
        if phase.stored:
            listed = ", ".join(words.times(unit.count, unit.item) for unit in phase.stored)
            yield f"Bought ahead and kept for later: {listed}."
            yield "Watts of the bill are of everything bought; what is kept for later does not draw them yet."


def growth_table(plan: Plan) -> RenderableType:
    """One line for each phase: what stands, and what it spends."""
    return figures(
        "What to buy when",
        ("from", "HB domains", "network"),
        ("GPUs", "uplinks", "buy $", "MW"),
        [
            (
                f"{phase.year:g}",
                words.times(phase.design.hb_domain.count, phase.design.hb_domain.name),
                network_of(phase),
                words.count(phase.design.gpus),
                uplinks_of(phase),
                words.exact(phase.capex_usd),
                words.digits(phase.power_w / 1e6, 4),
            )
            for phase in plan.phases
        ],
    )


def network_of(phase: PhasePlan) -> str:
    """`2-tier rail-only`."""
    fabric = phase.design.fabric
    return f"{fabric.tiers}-tier {fabric.kind}" if fabric.tiers else "none"


def uplinks_of(phase: PhasePlan) -> str:
    """Uplinks of a leaf, or none on one tier."""
    tiers = phase.design.fabric.tier
    return words.count(tiers[0].uplinks_per_switch) if len(tiers) > 1 else "none"


def foresight(plan: Plan) -> Iterator[str]:
    """What planning phase by phase would have come to."""
    claim, kind = plan.myopic, plan.objective.kind
    if claim is None:
        return
    first_design = claim.steps[0].design if claim.steps else None
    start = "" if first_design is None else f" It starts with {design_text(first_design)}."
    if claim.dead_end is not None:
        yield f"Planning each phase on its own runs into a dead end: {claim.dead_end}.{start}"
    elif claim.saving is not None and claim.value is not None and plan.objective.value is not None:
        if claim.saving <= words.ROUNDING * abs(claim.value):
            yield "Planning each phase on its own costs the same here."
        else:
            share = words.percent(claim.saving / claim.value)
            yield (
                f"Planning each phase on its own takes {words.money(claim.value)} of {kind}: foresight saves "
                f"{words.money(claim.saving)} ({share}).{start}"
            )
