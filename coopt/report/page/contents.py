"""What stands on a page, section by section, and its text as the templates beside this file lay it
out.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from coopt._version import __version__
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, that_hold
from coopt.network.plan_networks import baseline_of
from coopt.plan.explanation import Explanation
from coopt.plan.front import Front
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.catalog import price_origins
from coopt.report.comparison import runners_tables
from coopt.report.explanation import (
    checks_table,
    explanation_tables,
    search_rows,
    verdict_headline,
)
from coopt.report.facts import plan_facts
from coopt.report.fronts.files import (
    CHART,
    band_of,
    browser_script,
    browser_style,
    front_chart,
)
from coopt.report.fronts.text import front_sentences, front_table
from coopt.report.notes import first_sentences
from coopt.report.page.evidence import (
    FABRICS,
    details,
    memory_bar,
    planes,
    time_bar,
    timelines,
    traffic_maps,
    whole_plan,
)
from coopt.report.plan import headline, plan_sections, question_rows, run_tables
from coopt.report.traffic import COUNTING
from coopt.report.words import Cell, FactTable, FigureTable, PlanFact, facts, of_group
from coopt.verifier.checks.verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


Contents = dict[str, Any]
ADDRESS = re.compile(r"https?://[^\s<>\"']+")
HEADING = re.compile(r'<section id="(\w+)" aria-label="([^"]*)">')
PUNCTUATION = ".,:;!?"
MOST_REASONS = 3  # why checks fail, beside the verdict in a terminal
NUMBER_AND_UNIT = re.compile(
    r"(?<=\d) (?=(?:[BMk]|[MkG]?W|m?s|x|[GMTP]B|GiB|Gbit/s|GB/s|GPUs?|NICs?)\b)"
)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Which command wrote the page, from which files, and when."""

    command: str
    instance_file: str
    plan_file: str
    written: datetime


@dataclass(frozen=True, kw_only=True)
class PageCase:
    """A question, its answer, what the verifier thinks of it; where that was asked, what else could
    be had and why.
    """

    instance: Instance
    plan: Plan
    verdict: Verdict
    origin: Origin
    front: Front | None = None
    explanation: Explanation | None = None

    @property
    def answered(self) -> bool:
        """Whether the plan is right, and settles what can be built."""
        return self.verdict.accepted and self.plan.status != "unknown"

    @property
    def stands_alone(self) -> bool:
        """Whether it is one network that nothing ties to others: cost against time and other
        choices are quickly found.
        """
        return self.answered and self.plan.design is not None and not self.plan.couplings

    @property
    def buildable(self) -> bool:
        """Whether it may be built as it is."""
        return self.plan.cost is not None and self.verdict.accepted


def moment(environment: Mapping[str, str] = os.environ) -> datetime:
    """Now, or the second that SOURCE_DATE_EPOCH names, so that the same call writes the same page.

    Raises
    ------
    InstanceError
        When SOURCE_DATE_EPOCH is no number of seconds since 1970.
    """
    epoch = environment.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise InstanceError(
            f"SOURCE_DATE_EPOCH: {epoch!r}, needs whole seconds since 1970"
        ) from None


def page_contents(case: PageCase) -> Contents:
    """Names of the template and what they stand for; sections that the plan does not have are
    missing.
    """
    instance, plan = case.instance, case.plan
    verdict, decision = opening(case)
    known, told = plan_facts(instance, plan), first_sentences(instance, plan)
    has_chart = case.front is not None and len(case.front.points) > 1
    contents: Contents = {
        "style": browser_style(),
        "script": browser_script("dom", "zoom", *CHART[1:]),
        "name": instance.name,
        "description": " ".join(instance.description.split()),
        "headline": decision,
        "explanation": tuple(told),
        "accepted": case.verdict.accepted,
        "buildable": case.buildable,
        "badge": _badge(case),
        "verdict": verdict,
        "checks": checks_table(case.verdict),
        "question": facts("The question", question_rows(instance)),
        "search": facts("How the answer was found", search_rows(instance, plan)),
        "origin": facts("Provenance", _origin(case)),
    }
    if case.buildable:
        contents |= _evidence(instance, plan, known)
    baseline = baseline_of(instance, plan) if case.buildable else None
    for name, pieces in plan_sections(instance, plan, known, told, baseline).items():
        contents[f"plan_{name}"] = [_block(piece) for piece in pieces]
    if case.buildable:
        contents["runners"] = [_block(piece) for piece in runners_tables(plan)]
    if case.front is not None:
        contents |= {
            "front_sentences": front_sentences(case.front, instance),
            "front_chart": front_chart(case.front, instance) if has_chart else "",
            "band": band_of(instance)["says"],
            "front_table": front_table(case.front, instance) if case.front.points else None,
        }
    if case.explanation is not None:
        contents |= _explanation_sections(case.explanation)
    return contents | {"glossary": glossary(contents)}


def _block(piece: RenderableType) -> tuple[str, RenderableType]:
    """What a terminal shows, with its form."""
    if isinstance(piece, FactTable | FigureTable):
        return "facts" if isinstance(piece, FactTable) else "table", piece
    return "text", str(piece)


def _evidence(instance: Instance, plan: Plan, known: Sequence[PlanFact]) -> Contents:
    """What only a plan has which the verifier accepts: key figures, pictures, sources, bars of
    times and memory, traffic.
    """
    assert plan.cost is not None
    switched = [part.design.fabric for part in plan.parts if part.design is not None]
    kinds = dict.fromkeys(fabric.kind for fabric in switched if fabric.tiers)
    bars = [(time_bar(run), memory_bar(run)) for run in plan.runs]
    maps, objective = list(traffic_maps(instance, plan)) if plan.design else [], instance.objective
    has_front = objective.minimize in (objective.billed, "time") and not instance.minimizes_regret
    elsewhere = {
        "what each bound and each choice costs (coopt explain)": True,
        "what a longer iteration saves (coopt pareto)": has_front,
        "which GPUs send how much to each other (coopt traffic)": not maps,
    }
    return {
        "glances": of_group(known, "total"),
        "fabrics": [FABRICS[kind] for kind in kinds],
        "sources": price_origins(instance, plan.cost.items),
        "runs": [
            (*tables, *pair)
            for tables, pair in zip(run_tables(plan, known).values(), bars, strict=True)
        ],
        "whole": whole_plan(instance, plan),
        "timelines": timelines(instance, plan),
        "pictures": [*planes(instance, plan), *details(instance, plan)],
        "maps": maps,
        "elsewhere": words.both(that_hold(elsewhere)),
        "counting": COUNTING,
    }


def opening(case: PageCase) -> tuple[str, str]:
    """What the verifier says, and the decision; a claim where it is not confirmed."""
    decision, verdict = headline(case.instance, case.plan), case.verdict
    # Whoever reads only the first line must not take a claim for an answer.
    if not verdict.accepted:
        decision = f"Claimed, but not confirmed: {decision}"
    elif verdict.undecided is not None:
        doubted = "in full" if case.plan.cost is None else "to be best"
        decision = f"Claimed, but not confirmed {doubted}: {decision}"
    return verdict_headline(verdict), decision


def _badge(case: PageCase) -> tuple[str, str]:
    """How the verdict looks and what it is called: that nothing can be built is no success."""
    if not case.verdict.accepted:
        return "bad-box", "Do not build from this page."
    doubted, status = case.verdict.undecided is not None, case.plan.status
    if case.plan.cost is None:
        settled = status == "infeasible" and not doubted
        open_text = "No plan found; infeasibility is not proven."
        return "warn-box", "Infeasible: no design meets the question." if settled else open_text
    trusted = (
        f"Verified; {case.verdict.on_trust} rests on the solver's word."
        if case.verdict.on_trust
        else "Verified."
    )
    is_best = status == "optimal" and not doubted
    return "good-box", trusted if is_best else "Verified, not proven best."


def glossary(contents: Contents) -> list[tuple[str, str]]:
    """Terms with their meaning; those alone that belong to what was found."""
    table = tomllib.loads(
        files("coopt").joinpath("report", "page", "glossary.toml").read_text("utf-8")
    )
    return [
        (term["name"], term["means"])
        for term in table["term"]
        if contents.get(term.get("when", "question"))
    ]


def _explanation_sections(explanation: Explanation) -> Contents:
    """What binds the plan and what would change it, or what has to give; the decision itself is
    said already.
    """
    # a table says these
    rivals = tuple(f"{rival.premise}, " for rival in explanation.rivals)
    return {
        # The first sentence is the decision, which the page opens with; where it is the only one it
        # stays.
        "reasons": [
            words.sentence(sentence)
            for sentence in explanation.sentences[1:] or explanation.sentences
            if not sentence.startswith(rivals)
        ],
        **dict.fromkeys(("bounds", "rivals", "prices")),
        **explanation_tables(explanation),
    }


def _origin(case: PageCase) -> list[tuple[str, str]]:
    origin, solver = case.origin, case.plan.solver
    options = ", ".join(f"{name} = {value}" for name, value in solver.options.items())
    return [
        ("Instance", f"{case.instance.name}, file {origin.instance_file}"),
        ("SHA-256 of the instance", case.instance.sha256),
        ("Plan", f"file {origin.plan_file}"),
        ("Software", f"coopt {__version__}"),
        ("Formulation", solver.formulation),
        ("Solver", f"{solver.name} {solver.version}".rstrip()),
        ("Solver options", options or "none"),
        ("Command", origin.command),
        ("Written", f"{origin.written:%Y-%m-%d %H:%M:%S} UTC"),
    ]


def page_html(case: PageCase) -> str:
    """The whole file; it loads nothing from anywhere."""
    return environment().get_template("page.html.j2").render(page_contents(case)) + "\n"


def page_report(case: PageCase) -> list[RenderableType]:
    """The decision and the verdict, as they stand at the top of the page."""
    verdict, decision = opening(case)
    style = "green" if case.verdict.accepted else "bold red"
    return [
        Text(decision, style="bold"),
        Text(verdict, style=style),
        *[check.why for check in case.verdict.failures[:MOST_REASONS]],
    ]


@cache
def environment() -> Environment:
    """Templates that escape every text; a name that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("coopt").joinpath("report", "page")
    templates = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "cell": _cell,
        "linked": linked,
        "tied": tied,
        "headings": HEADING.findall,
    }
    return templates


def tied(text: str) -> str:
    """Keep a number and its unit on one line."""
    return NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _cell(content: Cell) -> str | Markup:
    """The text of a cell; a verdict carries its class."""
    from markupsafe import Markup

    if isinstance(content, str):
        return tied(content)
    return Markup('<span class="{}">{}</span>').format(words.mark(content), content.plain)


def linked(text: str) -> Any:
    """Addresses in a text as links; punctuation behind one belongs to the sentence, a bracket that
    it opens to it.
    """
    from markupsafe import Markup, escape

    def link(match: re.Match[str]) -> str:
        address = match[0].rstrip(PUNCTUATION)
        # A bracket that the address itself opened belongs to it, one that the sentence opened does
        # not.
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(PUNCTUATION)
        shown = Markup('<a href="{0}" rel="noreferrer">{0}</a>').format(address)
        return f"{shown}{escape(match[0][len(address) :])}"

    parts = ADDRESS.split(text)
    links = map(link, ADDRESS.finditer(text))
    return Markup("".join(f"{escape(part)}{next(links, '')}" for part in parts))
