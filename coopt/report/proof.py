"""How an answer was found, and what the verifier says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.plan.effort import SolverReport, Timing
from coopt.plan.schema import ObjectiveClaim, Plan
from coopt.report import words
from coopt.report.sentence import of_regret
from coopt.report.tables import Cell, FigureTable, facts, figures, verdict_word
from coopt.verifier.checks.verdict import SOLVERS_WORD, Check, Value, Verdict

if TYPE_CHECKING:  # it stands with the whole verifier, which the report of a plan does not need
    from coopt.verifier.certificates import Certificate

GATES = {
    "divisibility": "do not divide evenly",
    "memory": "do not fit into memory",
    "compute": "too slow by their compute alone",
    "communication": "too slow on any network",
    "crossing": "cross domains otherwise than by stages and replicas",
    "dominated": "no better than another",
}
STAGES = ("model", "columns", "build", "handover", "solve")
SHORT = 32
LIMITS = frozenset(
    {"deadline", "memory-fits", "limit-capex", "limit-power", "limit-racks", "limit-gpus", "most-products"}
)
"""Checks of what the plan takes against a limit of the instance."""
SOURCE = "bound-source"
"""The check that says in words what a bound rests on."""


def search_table(instance: Instance, plan: Plan) -> RenderableType:
    """What was searched, what is proven, and how long each stage took."""
    return facts("Search", search_rows(instance, plan))


def search_rows(instance: Instance, plan: Plan) -> Iterator[tuple[str, str]]:
    """The search line by line."""
    yield "Outcome", plan.status if plan.stop_reason == plan.status else f"{plan.status} ({plan.stop_reason})"
    if plan.status != "infeasible":
        yield "Proof", claim_text(plan.objective, regret=of_regret(instance))
    yield "Formulation", f"{plan.solver.formulation}, solved by {plan.solver.name} {plan.solver.version}".rstrip()
    yield "Mappings" if plan.solver.families else "Options", narrowing(plan.solver)
    if plan.solver.families:
        kinds = words.counted(plan.solver.families, "combination")
        yield "Networks", f"{kinds} of domain, fabric, tiers and parts, each with any number of uplinks"
    yield "Tree", f"{words.counted(plan.solver.nodes, 'node')}, {words.counted(plan.solver.cuts, 'cut')}"
    yield "Time", stages(plan.timing_s)


UNITS = {"capex": "USD", "power": "W", "tco": "USD"}


def claim_text(claim: ObjectiveClaim, *, regret: bool = False, whole: bool = False) -> str:
    """Value, bound and gap of the objective; `whole` rounds dollars and watts, of which nobody reads parts."""
    claims = [
        f"{word} {_with_unit(claim.kind, value, whole)}"
        for word, value in (("value", claim.value), ("lower bound", claim.bound))
        if value is not None
    ]
    if claim.gap is not None:
        claims.append(f"gap {words.percent(claim.gap)}")
    return f"{'regret of ' if regret else ''}{claim.kind}: {', '.join(claims) if claims else 'nothing known'}"


def _with_unit(kind: str, value: float, whole: bool) -> str:
    if kind not in UNITS:
        return words.amount(kind, value)
    return words.with_unit(round(value) if whole else value, UNITS[kind])


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


def verdict_report(verdict: Verdict) -> Iterator[RenderableType]:
    """Accepted or rejected, then every check, those that fail first with the reason."""
    yield Text(verdict_headline(verdict), style="bold green" if verdict.accepted else "bold red")
    yield checks_table(verdict)


def checks_table(verdict: Verdict) -> FigureTable:
    """Every check, those that fail first; why stands there where some do."""
    columns = ("check", "claimed", "recomputed", "ok", *(() if verdict.accepted else ("why",)))
    rows = [check_row(check)[: len(columns)] for check in sorted(verdict.checks, key=lambda check: check.ok)]
    return figures("Checks", columns, (), rows)


def verdict_headline(verdict: Verdict) -> str:
    """`Rejected: 2 of 54 checks fail: capex, power.`

    One that accepts says the gap, what the run was asked for in place of what the instance says, and what was taken on
    trust.
    """
    made = words.counted(len(verdict.checks), "check")
    if verdict.accepted:
        said = [f"the gap is {words.percent(verdict.gap)}"] if verdict.gap is not None else []
        said += [f"the run was asked for {words.both(verdict.overridden)}"] if verdict.overridden else []
        said += [f"{verdict.on_trust} rests on {SOLVERS_WORD}"] if verdict.on_trust else []
        return "; ".join([f"Accepted: {made}, all of them hold", *said]) + "."
    names = ", ".join(dict.fromkeys(check.name for check in verdict.failures))
    return f"Rejected: {len(verdict.failures)} of {made} fail: {names}."


def check_row(check: Check) -> tuple[Cell, ...]:
    """A check as a line; where it holds long texts are cut, but for what a bound rests on.

    A limit of the instance stands as `at most`, and what it allows as `one of`: neither is a claim that is derived
    again.
    """
    full = not check.ok or check.name == SOURCE
    claimed, recomputed = value_text(check.claimed, full=not check.ok), value_text(check.recomputed, full=full)
    if check.name in LIMITS:
        claimed = f"at most {claimed}"
    elif isinstance(check.recomputed, tuple) and len(check.recomputed) > 1 and not isinstance(check.claimed, tuple):
        recomputed = f"one of {recomputed}"
    return check.name, claimed, recomputed, verdict_word(check.ok), check.why


def value_text(value: Value, full: bool = False) -> str:
    """A value of a check; `full` keeps every digit and every word."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return words.yes_no(value)
    if isinstance(value, int):
        return words.count(value)
    if isinstance(value, float):
        return repr(value) if full else f"{value:,.10g}"
    text = value if isinstance(value, str) else ", ".join(value)
    return text if full or len(text) <= SHORT else f"{text[: SHORT - 3].rstrip()}..."


def certificate_report(found: Certificate) -> Iterator[RenderableType]:
    """What is proven of a bound, and how many designs fail for which reason."""
    claimed, proven = found.bound_claimed, found.bound_proven
    word = "Proven" if found.ok else "Not proven"
    if not found.ok and claimed and proven is not None:
        word = f"Proven but for a share of {1 - proven / claimed:.2g} of the bound"
    yield Text(f"{word}, by {found.by}.", style="bold green" if found.ok else "bold red")
    bounds = (("Bound claimed", claimed), ("Bound proven", proven))
    rows = [(word, "none" if bound is None else f"{bound:,}".removesuffix(".0")) for word, bound in bounds]
    rows += [(f"Designs: {reason}", words.count(n)) for reason, n in found.reasons.items()]
    yield facts("Proof", rows)
