"""How an answer was found."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.plan.effort import SolverReport, Timing
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.report import words
from coopt.report.margins import measured
from coopt.report.sentence import of_regret
from coopt.report.tables import facts

GATES = {
    "divisibility": "do not divide evenly",
    "memory": "do not fit into memory",
    "compute": "too slow by their compute alone",
    "communication": "too slow on any network",
    "crossing": "cross domains otherwise than by stages and replicas",
    "dominated": "no better than another",
}
STAGES = ("model", "columns", "build", "handover", "solve")


def search_table(plan: Plan) -> RenderableType:
    """What was searched, what is proven, and how long each stage took."""
    return facts("Search", search_rows(plan))


def search_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """The search line by line."""
    yield "Outcome", plan.status if plan.stop_reason == plan.status else f"{plan.status} ({plan.stop_reason})"
    if plan.status != "infeasible":
        yield "Proof", proof(plan.objective, regret=of_regret(plan))
    yield "Formulation", f"{plan.solver.formulation}, solved by {plan.solver.name} {plan.solver.version}".rstrip()
    yield "Mappings" if plan.solver.families else "Options", narrowing(plan.solver)
    if plan.solver.families:
        kinds = words.counted(plan.solver.families, "combination")
        yield "Networks", f"{kinds} of domain, fabric, tiers and parts, each with any number of uplinks"
    yield "Tree", f"{words.counted(plan.solver.nodes, 'node')}, {words.counted(plan.solver.cuts, 'cut')}"
    yield "Time", stages(plan.timing_s)


def proof(claim: ObjectiveClaim, *, regret: bool = False) -> str:
    """Value, bound and gap of the objective."""
    known = [
        f"{word} {measured(value, 'W' if claim.kind == 'power' else 'USD')}"
        for word, value in (("value", claim.value), ("lower bound", claim.bound))
        if value is not None
    ]
    if claim.gap is not None:
        known.append(f"gap {words.percent(claim.gap)}")
    return f"{'regret of ' if regret else ''}{claim.kind}: {', '.join(known) if known else 'nothing known'}"


def narrowing(solver: SolverReport) -> str:
    """`289,000 enumerated, 12,000 do not fit into memory, 91 kept`."""
    dropped = [
        f"{words.count(n)} {GATES.get(why, f'dropped by {why}')}" for why, n in solver.columns_gated.items() if n
    ]
    steps = [
        f"{words.count(solver.columns_enumerated)} enumerated",
        *dropped,
        f"{words.count(solver.columns_kept)} kept",
    ]
    return ", ".join(steps)


def stages(timing: Timing) -> str:
    """Wall time of each stage that took any."""
    parts = [f"{stage} {getattr(timing, stage):.2f} s" for stage in STAGES if getattr(timing, stage) >= 0.005]
    return f"{timing.total:.2f} s" + (f" ({', '.join(parts)})" if parts else "")
