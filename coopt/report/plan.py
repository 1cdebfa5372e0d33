"""A plan as a planner reads it, the decision first; and a design that was given."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.instance.variants import as_billed
from coopt.plan.evaluation import Evaluation
from coopt.plan.margins import limit_checks
from coopt.plan.schema import Cost, Design, Plan
from coopt.report.comparison import runners_tables, saving_sentences, saving_table
from coopt.report.direct_links import direct_report, rivals_sentence
from coopt.report.islands import island_tables
from coopt.report.parts import bill_table, design_tables, tco_sentence, workload_tables
from coopt.report.phases import phases_report
from coopt.report.proof import search_table
from coopt.report.remarks import margins_table, notes
from coopt.report.robust import robust_tables
from coopt.report.sentence import built, headline, price
from coopt.report.sites import sites_report


def plan_report(
    instance: Instance, plan: Plan, baseline: tuple[Design, Cost] | None = None
) -> Iterator[RenderableType]:
    """Everything a plan says; without a design, why there is none."""
    yield Text(headline(plan), style="bold")
    yield from plan.explanation
    if plan.cost is not None:
        yield from _built(instance, plan, plan.cost, baseline)
    yield ""
    yield search_table(plan)


def _built(
    instance: Instance, plan: Plan, cost: Cost, baseline: tuple[Design, Cost] | None
) -> Iterator[RenderableType]:
    """What is built, by the kind of problem."""
    if plan.together is not None:
        yield from sites_report(instance, cost, plan.together)
    if plan.direct is not None:
        yield from direct_report(instance, plan, cost, plan.direct)
    if plan.rivals is not None:
        yield ""
        yield rivals_sentence(plan.rivals)
    if plan.phases:
        yield ""
        yield from phases_report(instance, plan)
    elif plan.design is not None:
        yield ""
        yield from _one_network(instance, plan, plan.design, cost, baseline)
    elif plan.islands:
        yield ""
        yield from island_tables(instance, plan, cost)


def _one_network(
    instance: Instance, plan: Plan, design: Design, cost: Cost, baseline: tuple[Design, Cost] | None
) -> Iterator[RenderableType]:
    """The network that workloads use in turn, their runs, what it saves, what it stands, and what comes next."""
    yield from design_tables(instance, design)
    yield ""
    yield bill_table(cost, worst_prices=as_billed(instance) is not instance)
    yield tco_sentence(instance, cost)
    for workload, asked in zip(plan.workloads, instance.workload, strict=True):
        yield ""
        yield from workload_tables(workload, asked)
    yield ""
    yield margins_table(tuple(limit_checks(instance, design, cost, plan.workloads)))
    yield ""
    yield from _saving(design, cost, baseline)
    yield ""
    yield from notes(instance, [design], plan.workloads)
    if plan.robust is not None:
        assert instance.robust is not None
        yield from robust_tables(plan.objective.kind, plan.robust, instance.robust)
    if plan.alternatives_stop is not None:
        yield ""
        yield from runners_tables(plan)


def _saving(design: Design, cost: Cost, baseline: tuple[Design, Cost] | None) -> Iterator[RenderableType]:
    yield saving_sentences(design, cost, baseline)
    if design.fabric.tiers and baseline is not None:
        yield ""
        yield saving_table(design, cost, baseline)


def evaluation_report(instance: Instance, evaluation: Evaluation) -> Iterator[RenderableType]:
    """Cost, time, memory and bounds of a design that was given, not chosen."""
    yield Text(evaluation_headline(instance, evaluation), style="bold")
    yield ""
    yield from design_tables(instance, evaluation.design)
    yield ""
    yield bill_table(evaluation.cost)
    yield tco_sentence(instance, evaluation.cost)
    for workload, asked in zip(evaluation.workloads, instance.workload, strict=True):
        yield ""
        yield from workload_tables(workload, asked)
    if evaluation.limits:
        yield ""
        yield margins_table(evaluation.limits)
    yield ""
    yield from notes(instance, [evaluation.design], evaluation.workloads)


def evaluation_headline(instance: Instance, evaluation: Evaluation) -> str:
    """The given design, its price, and which bounds it misses."""
    given = f"{built(evaluation.design)}, {price(instance.objective.minimize, evaluation.cost)}"
    missed = [check.name for check in evaluation.limits if not check.ok]
    outcome = f"misses {'; '.join(missed)}" if missed else "meets every bound"
    return f"Given: {given}; {outcome}."
