"""Why a plan is as it is, how it was found, and what the verifier says of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from coopt.instance.numerics import EQUAL
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import with_names
from coopt.instance.workload import LONGEST_S
from coopt.plan.parts import Design
from coopt.plan.schema import Plan, SolverReport, Timing
from coopt.report import words
from coopt.report.comparison import OTHERWISE, differences
from coopt.report.facts import claim_text, value_name
from coopt.report.words import Cell, FigureTable, facts, figures, verdict_word

if TYPE_CHECKING:
    from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange
    from coopt.verifier.certificates import Certificate
    from coopt.verifier.checks.verdict import Check, Value, Verdict

UNITS: dict[ObjectiveKind, tuple[str, float, str]] = {
    "capex": ("$", 1.0, "+,.0f"),
    "tco": ("$", 1.0, "+,.0f"),
    "power": ("W", 1.0, "+,.0f"),
    "time": ("s", 1.0, "+,.4g"),
    "usd_per_token": ("$ / M tokens", 1e6, "+,.4g"),
    "carbon": ("t of CO2", 1e-3, "+,.4g"),
}
"""What tables show of each objective: the unit, how many of it are one of the objective's own, and
digits.
"""

GATES = {
    "divisibility": "do not divide model and batch evenly",
    "memory": "do not fit into memory",
    "compute": "miss the bound even without communication",
    "communication": "miss the bound on any network",
    "crossing": "place stages that share parameters in domains that are not neighbours",
    "dominated": "are no better than another",
}
STAGES = ("model", "columns", "build", "handover", "solve")
MAX_TEXT = 32
TIMES = frozenset({"deadline", "bound-time"})
"""Checks of the time that an iteration may take, where there is such a bound."""
BOUNDS_MOVED = ("tighter", "looser", "without")
BINDS = "binds"
"""The column of bounds that says whether a better plan waits beyond one, whatever its slack."""
SOURCES = ("bound-source", "tp-inside-source")
"""The checks that say in words what a bound rests on, or that nothing is feasible."""


@cache
def limit_checks() -> frozenset[str]:
    """Checks of what the plan takes against a limit of the instance; what makes them is loaded with
    a verdict only.
    """
    from coopt.verifier.audit import LIMITS

    return frozenset(LIMITS) - {"survives"}


def explanation_report(explanation: Explanation) -> list[RenderableType]:
    """The sentences, then bounds and prices as tables."""
    first, *others = explanation.sentences
    sentences = Table.grid(padding=(0, 1))
    for sentence in others:
        sentences.add_row(" -", words.sentence(sentence))
    tables = explanation_tables(explanation)
    tables.pop("rivals", None)  # sentences say these
    return [Text(first, style="bold"), sentences, *tables.values()]


def explanation_tables(explanation: Explanation) -> dict[str, FigureTable]:
    """Bounds, rivals and prices, of what there is any."""
    unit, tables = UNITS[explanation.kind][0], dict[str, FigureTable]()
    if explanation.bounds:
        # A long unit has a line of its own, so that names of bounds have room.
        gap = "\n" if len(unit) > len("USD") else " "
        tables["bounds"] = figures(
            "What each bound costs if it is tighter, looser or removed",
            ("bound", BINDS),
            ("plan", "bound", "slack", *(f"{way}{gap}{unit}" for way in BOUNDS_MOVED)),
            [_bound_row(explanation, bound) for bound in explanation.bounds],
        )
    if explanation.rivals:
        rivals = [
            (
                rival.part,
                f"without {rival.choice}" if rival.excluded else rival.choice,
                f"no such design meets every limit; {rival.why}"
                if rival.extra is None
                else rival.told,
                "-" if rival.extra is None else _excess(explanation, rival.extra),
            )
            for rival in explanation.rivals
        ]
        tables["rivals"] = figures(
            "The best design with one part changed",
            ("part", "choice", "how the design differs"),
            (f"more {unit}",),
            rivals,
        )
    if explanation.prices:
        tables["prices"] = figures(
            "Price ranges in which the plan stays the best, one price at a time",
            ("price of", "what is best outside the range"),
            ("unit", "from", "now", "to"),
            [_price_row(explanation.design, price) for price in explanation.prices],
        )
    return tables


def _bound_row(explanation: Explanation, bound: Bound) -> tuple[Cell, ...]:
    is_asked = bound.step is not None

    def extra(plan: NextPlan | None, *, asked: bool) -> str:
        """What the next plan costs more: nothing where it was asked for and none is cheaper."""
        if plan is None:
            return "+0" if asked else "not computed"
        return _excess(explanation, plan.extra)

    return (
        f"{with_names(bound.limit, explanation.rows)}, {bound.unit}",
        words.yes_no(bound.binds),
        _number(bound.used),
        _number(bound.bound),
        "-" if bound.slack is None else words.percent(bound.slack),
        "no plan" if bound.tighter is None and is_asked else extra(bound.tighter, asked=is_asked),
        extra(bound.looser, asked=not bound.binds),
        extra(bound.without, asked=not bound.binds),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.6g}" if value < 99_999.5 else f"{value:,.0f}"


def _excess(explanation: Explanation, extra: float) -> str:
    """What a plan is worth more, in the unit of the table."""
    _, units, form = UNITS[explanation.kind]
    return f"{extra * units:{form}}" if extra else "+0"


def _price_row(design: Design | None, price: PriceRange) -> tuple[Cell, ...]:
    ends = {"below": price.below} if price.low > 0 else {}
    ends |= {"above": price.above} if price.high is not None else {}
    effects = dict.fromkeys(ends, "another plan")
    if price.above is None and price.tried is not None and price.high == price.tried[1]:
        effects["above"] = "the plan exceeds a limit"
    if design is not None:
        effects |= {
            way: _takes_over(design, taker) for way, taker in ends.items() if taker is not None
        }
    return (
        price.item,
        "; ".join(f"{way}: {effect}" for way, effect in effects.items()) or "no change",
        price.unit,
        f"{price.low:,.6g}",
        f"{price.now:,.6g}",
        "any" if price.high is None else f"{price.high:,.6g}",
    )


def _takes_over(design: Design, other_design: Design) -> str:
    """What the other design changes: of switches or optics alone, what stands in place of what."""
    text = differences(design, other_design)
    if text == f"switches {other_design.fabric.switch_text}":
        return f"{text} in place of {design.fabric.switch_text}"
    if text != OTHERWISE:
        return text
    # Optics that come and go, by name; of the same ones, there are other numbers.
    had, has = (
        dict.fromkeys(name for tier in either.fabric.tier for name in tier.optics)
        for either in (design, other_design)
    )
    come = words.both(name for name in has if name not in had)
    gone = words.both(name for name in had if name not in has)
    if come:
        return f"{come} in place of {gone}" if gone else f"{come} as well"
    return f"without {gone}" if gone else "other counts"


def search_rows(instance: Instance, plan: Plan) -> list[tuple[str, str]]:
    """What was searched, what is proven, and how long each stage took, line by line."""
    solver, proven = plan.solver, plan.status != "infeasible"
    reason = "" if plan.stop_reason == plan.status else f" ({plan.stop_reason})"
    if plan.status == "optimal" and (plan.objective.gap or 0.0) > EQUAL:
        reason = " within the target gap"
    kinds = words.counted(solver.families, "combination")
    rows = {
        "Outcome": f"{plan.status}{reason}",
        "Proof": claim_text(plan.objective, name=value_name(instance, plan.objective.kind))
        if proven
        else "",
        "Formulation": f"{solver.formulation}, solved by {solver.name} {solver.version}".rstrip(),
        "Mappings" if solver.families else "Options": narrowing(solver),
        "Networks": f"{kinds} of domain, fabric, tiers and parts, each with any number of uplinks"
        if solver.families
        else "",
        "Tree": f"{words.counted(solver.nodes, 'node')}, {words.counted(solver.cuts, 'cut')}",
        "Time": stages(plan.timing_s),
    }
    return [(name, text) for name, text in rows.items() if text]


def narrowing(solver: SolverReport) -> str:
    """`289,000 enumerated, 12,000 do not fit into memory, 91 kept`."""
    dropped = [
        f"{words.count(n)} {GATES.get(gate, f'dropped by {gate}')}"
        for gate, n in solver.columns_gated.items()
        if n
    ]
    enumerated, kept = map(words.count, (solver.columns_enumerated, solver.columns_kept))
    return ", ".join([f"{enumerated} enumerated", *dropped, f"{kept} kept"])


def stages(timing: Timing) -> str:
    """Wall time of each stage that took any."""
    parts = [
        f"{stage} {getattr(timing, stage):.2f} s"
        for stage in STAGES
        if getattr(timing, stage) >= 0.005
    ]
    return f"{timing.total:.2f} s" + (f" ({', '.join(parts)})" if parts else "")


def verdict_report(verdict: Verdict) -> list[RenderableType]:
    """Accepted or rejected, then every check, those that fail first with the reason."""
    return [
        Text(verdict_headline(verdict), style="bold green" if verdict.accepted else "bold red"),
        checks_table(verdict),
    ]


def checks_table(verdict: Verdict) -> FigureTable:
    """Every check, those that fail first; what each is of where some are of parts, and why some
    fail.
    """
    # What failed has to be seen without scrolling, and its reason is told only where there is one.
    columns = ("claimed", "recomputed", "ok", *(() if verdict.accepted else ("why",)))
    of = ["of"] if any(check.subject for check in verdict.checks) else []
    return figures(
        "Checks",
        ("check", *of, *columns),
        (),
        [
            (name, *([check.part or check.subject] if of else []), *cells[: len(columns)])
            for check in sorted(verdict.checks, key=lambda check: check.ok)
            for name, *cells in (check_row(check),)
        ],
    )


def verdict_headline(verdict: Verdict) -> str:
    """`Rejected: 2 of 54 checks fail: 'capex', 'power'.`

    One that accepts says the gap, what the run was asked for in place of what the instance says,
    and what was taken on trust; where a rival is not ruled out, the gap that is proven comes first.
    """
    from coopt.verifier.checks.verdict import SOLVERS_WORD  # loaded with a verdict only

    made = words.counted(len(verdict.checks), "check")
    if not verdict.accepted:
        names = ", ".join(dict.fromkeys(repr(check.name) for check in verdict.failures))
        return f"Rejected: {len(verdict.failures)} of {made} fail: {names}."
    gap = f"the gap is {words.percent(verdict.gap)}" if verdict.gap is not None else ""
    proven, rival = gap, verdict.undecided
    trusted = [verdict.on_trust] if verdict.on_trust else []
    if rival is not None:
        open_rival = (
            f"a better design ({words.amount(rival.kind, rival.value)} or more), which keeps the"
            " bounds only if rounding helps, is not ruled out"
        )
        share = "" if rival.gap is None else words.percent(rival.gap)
        proven = f"the proven gap is {share}, because {open_rival}" if share else open_rival
        if gap:  # the claim is that of the bound
            trusted = [*(text for text in trusted if text != "the bound"), f"the claim that {gap}"]
    rest = "rests" if len(trusted) == 1 else "rest"
    replaced = words.both(verdict.overridden)
    clauses = [
        f"Accepted: {made}, all of them hold",
        proven,
        f"the plan was solved for {replaced}" if replaced else "",
        f"{words.both(trusted)} {rest} on {SOLVERS_WORD}" if trusted else "",
    ]
    return "; ".join(filter(None, clauses)) + "."


def check_row(check: Check) -> tuple[Cell, ...]:
    """A check as a line; where it holds long texts are cut, but for what a bound rests on.

    A limit of the instance stands as `at most`, and what it allows as `one of`: neither is a claim
    that is derived again.
    """
    is_full = not check.ok or check.name in SOURCES
    claimed_text = value_text(check.claimed, full=not check.ok)
    recomputed_text = value_text(check.recomputed, full=is_full)
    # Where nothing bounds the time, its check holds a number that stands for no bound, which nobody
    # should read.
    if check.name in TIMES and isinstance(check.claimed, float) and check.claimed >= LONGEST_S:
        claimed_text = words.NO_BOUND
        recomputed_text = recomputed_text if check.name in limit_checks() else words.NO_BOUND
    elif check.name in limit_checks():
        claimed_text = f"at most {claimed_text}"
    elif (
        isinstance(check.recomputed, tuple)
        and len(check.recomputed) > 1
        and not isinstance(check.claimed, tuple)
    ):
        recomputed_text = f"one of {recomputed_text}"
    return check.name, claimed_text, recomputed_text, verdict_word(check.ok), check.why


def value_text(value: Value, full: bool = False) -> str:
    """A value of a check; `full` keeps every digit and every word."""
    if value is None or isinstance(value, bool):
        return "none" if value is None else words.yes_no(value)
    if isinstance(value, int | float):
        whole = isinstance(value, int)
        return words.count(int(value)) if whole else repr(value) if full else f"{value:,.10g}"
    text = value if isinstance(value, str) else ", ".join(value)
    return text if full or len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 3].rstrip()}..."


def certificate_report(certificate: Certificate) -> list[RenderableType]:
    """What is proven of a bound, and what was tried."""
    bound_claimed, bound_proven = certificate.bound_claimed, certificate.bound_proven
    word = "Proven" if certificate.ok else "Not proven"
    if not certificate.ok and bound_claimed and bound_proven is not None:
        below = words.percent(1 - bound_proven / bound_claimed)
        word = f"The proven bound is {below} below the claimed one"
    how = f": {certificate.by or certificate.missing}"
    rows = [
        (name, "none" if bound is None else f"{bound:,}".removesuffix(".0"))
        for name, bound in (("Bound claimed", bound_claimed), ("Bound proven", bound_proven))
    ]
    rows += [
        (f"{kind[0].upper()}{kind[1:]}", words.count(n)) for kind, n in certificate.reasons.items()
    ]
    return [
        Text(f"{word}{how}.", style="bold green" if certificate.ok else "bold red"),
        facts("Proof", rows),
    ]
