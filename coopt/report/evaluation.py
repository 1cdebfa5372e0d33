"""The value of one given design."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.plan.evaluation import Evaluation
from coopt.report.design import bill_table, design_tables, tco_sentence
from coopt.report.margins import margins_table
from coopt.report.remarks import notes
from coopt.report.sentence import built, price
from coopt.report.workload import workload_tables


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
