"""Answers as documents that the page shows: sentences, figures, tables and drawings, with numbers
where it reckons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.plan_networks import baseline_of
from coopt.plan.explanation import Explanation
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import MappingRanking, plan_checks
from coopt.report import words
from coopt.report.catalog import price_origins
from coopt.report.csv_files import bill_csv
from coopt.report.explanation import (
    checks_table,
    explanation_tables,
    search_rows,
    verdict_headline,
)
from coopt.report.facts import BILL, asked_of, bill_table, label, plan_facts
from coopt.report.notes import first_sentences, margins_table, remarks
from coopt.report.page.evidence import planes, time_bar, timelines, whole_plan
from coopt.report.plan import headline, parts_table, plan_sections, ranking_report
from coopt.report.words import Cell, FactTable, FigureTable, facts, figures, of_group
from coopt.verifier.checks.verdict import Verdict

Document = dict[str, Any]


def plan_contents(instance: Instance, plan: Plan) -> Document:
    """Everything that the page shows of a plan, and the plan itself."""
    known, told = plan_facts(instance, plan), first_sentences(instance, plan)
    document: Document = {
        "name": instance.name,
        "status": plan.status,
        "stop_reason": plan.stop_reason,
        "headline": headline(instance, plan),
        "explanation": told,
        "search": _table(facts("How the search went", search_rows(instance, plan))),
        "total_s": plan.timing_s.total,
        "plan": plan.model_dump(mode="json", by_alias=True),
        "figures": [
            {
                "name": one.name,
                "value": one.shown,
                "note": one.note,
                "number": None if isinstance(one.value, str) else one.value,
                "unit": one.unit,
            }
            for one in of_group(known, "total")
        ],
    }
    if plan.cost is not None:
        sections = plan_sections(instance, plan, known, told, baseline_of(instance, plan))
        noted = remarks(instance, plan)
        others = (piece for pieces in sections.values() for piece in pieces if piece not in noted)
        # each product once, with the sources of its price and of its power
        columns = ("item", "price", "power")
        origins = list(dict.fromkeys(price_origins(instance, plan.cost.items)))
        document |= {
            "parts": _table(parts_table(plan, known)) if len(plan.parts) > 1 else None,
            "bill": _table(
                bill_table(BILL, plan.cost.items, plan.cost.capex_usd, plan.cost.power_w, instance)
            ),
            "origins": _table(
                figures("Where prices and power figures come from", columns, (), origins)
            ),
            "bill_csv": bill_csv(instance, plan),
            "margins": _table(margins_table(plan_checks(instance, plan))),
            "remarks": [
                *(f"{fact.name}: {fact.shown}" for fact in of_group(known, "rests")),
                *noted,
            ],
            "runs": [
                _run(label(plan, part, run), run, workload)
                for part in plan.parts
                for run, workload in asked_of(instance, part)
            ],
            "whole": asdict(whole_plan(instance, plan)),
            "timelines": timelines(instance, plan),
            "drawings": [asdict(picture) for picture in planes(instance, plan)],
            "sections": [*_sections(others)],
        }
    return document


def _run(name: str, run: WorkloadPlan, workload: Workload) -> Document:
    """How a workload runs: its time by components, in percent of its bound, in days where that
    is.
    """
    time, bound, unit = run.iteration_time_s, run.bound_s, "s"
    if workload.train_days is not None:
        time, bound, unit = workload.days(run.promised_s), workload.train_days, "days"
    number = words.in_days if unit == "days" else words.seconds
    bar, share = time_bar(run), run.iteration_time_s / run.bound_s if run.bounded else 1.0
    return {
        "name": name,
        "says": bar.says,
        "time": number(time),
        "number": time,
        "unit": unit,
        "bound": number(bound) if run.bounded else None,
        "close": run.bounded and 0.0 <= run.slack < words.CLOSE,
        "segments": [
            {
                "name": segment.name,
                "says": f"{segment.name} {words.percent(segment.share / 100)}",
                "colour": segment.colour,
                "start": segment.start * share,
                "share": segment.share * share,
            }
            for segment in bar.segments
        ],
    }


def _sections(pieces: Iterable[RenderableType]) -> Iterator[Document]:
    """What a terminal shows of a plan, piece by piece."""
    for piece in pieces:
        if isinstance(piece, FactTable | FigureTable):
            yield _table(piece)
        else:
            yield {"form": "text", "text": str(piece)}


def verdict_contents(verdict: Verdict) -> Document:
    """What the verifier says."""
    return {
        "accepted": verdict.accepted,
        "best": verdict.undecided is None,
        "trusted": bool(verdict.on_trust),
        "headline": verdict_headline(verdict),
        "checks": _table(checks_table(verdict)),
    }


def explanation_contents(
    explanation: Explanation, ranking: MappingRanking | None = None, *, is_regret: bool = False
) -> Document:
    """What binds a plan, or what has to give; every way out with the changes that it takes;
    mappings of its network. `is_regret` where values of ways out are regrets.
    """
    worth = "with a regret of" if is_regret else "of"
    return {
        "status": explanation.status,
        "sentences": [words.sentence(sentence) for sentence in explanation.sentences],
        "tables": [
            *map(_table, explanation_tables(explanation).values()),
            *(_sections(ranking_report(ranking)) if ranking is not None else ()),
        ],
        "relaxations": [
            {
                "value": f"{worth} {words.amount(explanation.kind, relaxation.value)}",
                "changes": [
                    {"limit": change.limit, "now": change.now, "to": change.to}
                    for change in relaxation.changes
                ],
            }
            for relaxation in explanation.relaxations
        ],
    }


def _table(table: FactTable | FigureTable) -> Document:
    """A table with its cells as texts; a cell that says no is marked."""
    if isinstance(table, FactTable):
        rows = [(name, _cell(value)) for name, value in table.rows]
        return {"form": "facts", "title": table.title, "rows": rows}
    total = None if table.total is None else [_cell(cell) for cell in table.total]
    return {
        "form": "figures",
        "title": table.title,
        "words": list(table.words),
        "numbers": list(table.numbers),
        "rows": [[_cell(cell) for cell in row] for row in table.rows],
        "total": total,
    }


def _cell(cell: Cell) -> str | Document:
    if isinstance(cell, str):
        return cell
    return {"text": cell.plain, "mark": words.mark(cell)}
