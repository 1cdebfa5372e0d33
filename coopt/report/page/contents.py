"""What stands on a page, section by section, and its text as the templates beside this file lay it
out.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from coopt._version import __version__
from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.network.part_networks import network_of
from coopt.plan.evaluation import limit_checks
from coopt.plan.explanation import Explanation
from coopt.plan.front import Front
from coopt.plan.schema import Cost, Plan, WorkloadPlan
from coopt.report import words
from coopt.report.catalog import price_origins
from coopt.report.comparison import runners_sentence, runners_table, saving_sentences, saving_table
from coopt.report.explanation import (
    bounds_table,
    checks_table,
    prices_table,
    rivals_table,
    search_rows,
    verdict_headline,
)
from coopt.report.fronts.files import front_chart
from coopt.report.fronts.text import front_headline, front_notes, front_table
from coopt.report.page.evidence import (
    FABRICS,
    Bar,
    evidence_of,
    memory_bar,
    site_pictures,
    time_bar,
)
from coopt.report.parts import (
    BILL,
    bill_table,
    breakdown_table,
    decision_rows,
    degrees,
    switches_table,
    tco_sentence,
    under_bound,
    workload_rows,
)
from coopt.report.plan import plan_sections
from coopt.report.remarks import first_sentences, margins_table, notes
from coopt.report.screen import parts_table
from coopt.report.sentence import headline, question_rows, told_elsewhere, without_gpus
from coopt.report.tables import Cell, FactTable, FigureTable, facts
from coopt.report.traffic import COUNTING
from coopt.verifier.checks.verdict import Verdict

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


Contents = dict[str, Any]
ADDRESS = re.compile(r"https?://[^\s<>\"']+")
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
    def buildable(self) -> bool:
        """Whether there is one design that one may build; several networks are told block by
        block.
        """
        return (
            self.plan.design is not None
            and self.verdict.accepted
            and self.instance.problem == "shared"
        )


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


@dataclass(frozen=True, kw_only=True)
class Glance:
    """One of the figures at the top: what it is, its value, what it is measured against, and its
    number.
    """

    name: str
    value: str
    note: str
    number: float | None
    unit: str


@dataclass(frozen=True, kw_only=True)
class WorkloadSection:
    """How a workload runs."""

    name: str
    facts: FactTable
    time: Bar
    breakdown: FigureTable
    memory: Bar


def page_contents(case: PageCase) -> Contents:
    """Names of the template and what they stand for; sections that the plan does not have are
    missing.
    """
    verdict, decision = opening(case)
    contents: Contents = {
        "name": case.instance.name,
        "description": " ".join(case.instance.description.split()),
        "headline": decision,
        "explanation": tuple(first_sentences(case.instance, case.plan)),
        "accepted": case.verdict.accepted,
        "buildable": case.buildable,
        "badge": _badge(case),
        "verdict": verdict,
        "checks": checks_table(case.verdict),
        "question": facts("The question", question_rows(case.instance)),
        "counting": COUNTING,
        "search": facts("How the answer was found", search_rows(case.instance, case.plan)),
        "origin": facts("Provenance", _origin(case)),
        "halls": (),
    }
    if case.verdict.accepted and case.plan.cost is not None:
        contents["glances"] = list(glances(case.instance, case.plan))
        contents["parts"] = (
            parts_table(case.instance, case.plan) if len(case.plan.parts) > 1 else None
        )
        contents["halls"] = (
            site_pictures(case.instance, case.plan) if case.instance.problem != "shared" else ()
        )
        contents["elsewhere"] = (
            told_elsewhere(case.instance) if case.instance.problem != "shared" else ""
        )
    if case.instance.problem != "shared" and case.plan.cost is not None:
        contents["blocks"] = list(_blocks(case.instance, case.plan, case.plan.cost))
    elif case.plan.design is not None and case.plan.cost is not None:
        contents |= _claim_sections(case.instance, case.plan)
    if case.front is not None:
        contents |= _front_sections(case.instance, case.front)
    if case.explanation is not None:
        contents |= _explanation_sections(case.explanation)
    if case.buildable:
        contents |= _worth_sections(case.instance, case.plan)
    return contents | {"glossary": glossary(contents)}


def _blocks(
    instance: Instance, plan: Plan, cost: Cost
) -> Iterator[tuple[str, str | FactTable | FigureTable]]:
    """What a terminal shows of a plan of coupled parts, piece by piece with the form of each."""
    for piece in plan_sections(instance, plan, cost):
        if isinstance(piece, FactTable):
            yield "facts", piece
        elif isinstance(piece, FigureTable):
            yield "table", piece
        elif text := piece.plain if isinstance(piece, Text) else str(piece):
            yield "text", text


def opening(case: PageCase) -> tuple[str, str]:
    """What the verifier says, and the decision; a claim where it is not confirmed."""
    decision, verdict = headline(case.instance, case.plan), case.verdict
    doubted = (
        ""
        if verdict.undecided is None
        else " to be best"
        if case.plan.cost is not None
        else " in whole"
    )
    # Whoever reads only the first line must not take a claim for an answer.
    if doubted or not verdict.accepted:
        decision = f"Claimed, and not confirmed{doubted if verdict.accepted else ''}: {decision}"
    return verdict_headline(verdict), decision


def _badge(case: PageCase) -> tuple[str, str]:
    """How the verdict looks and what it is called: that nothing can be built is no success."""
    if not case.verdict.accepted:
        return "bad-box", "Do not build from this page."
    doubted = case.verdict.undecided is not None
    if case.plan.cost is None:
        is_settled = case.plan.status == "infeasible" and not doubted
        return (
            "warn-box",
            "Infeasible: nothing meets every bound." if is_settled else "Not settled.",
        )
    if case.plan.status != "optimal" or doubted:
        return "good-box", "Verified, not proven best."
    return (
        "good-box",
        "Verified, its bound on the solver's word." if case.verdict.on_trust else "Verified.",
    )


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


def _claim_sections(instance: Instance, plan: Plan) -> Contents:
    """What a plan says of itself, true or not."""
    assert plan.design is not None
    assert plan.cost is not None
    return {
        "decision": facts("The decision", decision_rows(instance, plan.design)),
        "switches": switches_table(plan.design) if plan.design.fabric.tier else None,
        "bill": bill_table(BILL, plan.cost.items, plan.cost.capex_usd, plan.cost.power_w),
    }


def _front_sections(instance: Instance, front: Front) -> Contents:
    """What a longer iteration time saves: the sentences, chart and table of the front."""
    return {
        "front_sentences": [
            front_headline(front, instance),
            *front.explanation,
            *front_notes(front, instance),
        ],
        "front_chart": front_chart(front, instance) if len(front.points) > 1 else "",
        "front_table": front_table(front, instance) if front.points else None,
    }


def _explanation_sections(explanation: Explanation) -> Contents:
    """What binds the plan and what would change it, or what has to give; the decision itself is
    said already.
    """
    rivals = tuple(
        f"{rival.part} = {rival.choice}: " for rival in explanation.rivals
    )  # a table says these
    return {
        # The first sentence is the decision, which the page opens with; where it is the only one it
        # stays.
        "reasons": [
            words.sentence(sentence)
            for sentence in explanation.sentences[1:] or explanation.sentences
            if not sentence.startswith(rivals)
        ],
        "rivals": rivals_table(explanation) if explanation.rivals else None,
        "bounds": bounds_table(explanation) if explanation.bounds else None,
        "prices": (
            prices_table(explanation.design, explanation.prices)
            if explanation.design and explanation.prices
            else None
        ),
    }


def _worth_sections(instance: Instance, plan: Plan) -> Contents:
    """The sections that only a plan has which the verifier accepts: key figures, comparison,
    pictures, runners-up.
    """
    design, cost = plan.design, plan.cost
    assert design is not None
    assert cost is not None
    evidence = evidence_of(instance, plan)
    margins = tuple(limit_checks(instance, design, cost, plan.workloads))
    runs = zip(plan.workloads, instance.workload, strict=True)
    return {
        "fabric": FABRICS[design.fabric.kind] if design.fabric.tiers else "",
        "sources": price_origins(instance, cost.items),
        "tco": tco_sentence(instance, cost),
        "saving": saving_sentences(design, cost, evidence.baseline),
        "savings": (
            saving_table(design, cost, evidence.baseline)
            if evidence.baseline and design.fabric.tiers
            else None
        ),
        "notes": list(notes(instance, [design], plan.workloads, none_inside=plan.tp_across)),
        "runs": [
            _workload_section(run, facts("", workload_rows(run, workload)))
            for run, workload in runs
        ],
        "pictures": evidence.pictures,
        "maps": evidence.maps,
        "margins": margins_table(margins),
        "runners": runners_table(plan) if plan.alternatives else None,
        "runners_sentence": runners_sentence(plan) if plan.alternatives_stop is not None else "",
    }


def _workload_section(workload: WorkloadPlan, rows: FactTable) -> WorkloadSection:
    return WorkloadSection(
        name=workload.name,
        facts=rows,
        time=time_bar(workload),
        breakdown=breakdown_table(workload),
        memory=memory_bar(workload),
    )


def glances(instance: Instance, plan: Plan) -> Iterator[Glance]:
    """What a plan costs, what it promises and how far it is proven, at a glance."""
    cost, claim = plan.cost, plan.objective
    assert cost is not None
    scope = without_gpus(cost) or "GPUs included"
    yield Glance(
        name="Purchase",
        value=words.money(cost.capex_usd),
        note=scope,
        number=cost.capex_usd,
        unit="USD",
    )
    yield Glance(
        name="Power",
        value=words.power(cost.power_w),
        note="of what is bought",
        number=cost.power_w,
        unit="W",
    )
    years = sum(years_of(instance, t) for t in range(len(instance.years)))
    owned = f"total cost of {years:g} year{'' if years == 1 else 's'}"
    yield Glance(
        name="With electricity",
        value=words.money(cost.tco_usd),
        note=owned,
        number=cost.tco_usd,
        unit="USD",
    )
    if plan.runs:
        run = min(plan.runs, key=lambda run: run.slack)
        yield Glance(
            name=f"Iteration of {run.name}" if len(plan.runs) > 1 else "Iteration",
            value=words.seconds(run.iteration_time_s),
            note=f"{under_bound(run)}; MFU {words.percent(run.mfu)}; {degrees(run.mapping)}",
            number=run.iteration_time_s,
            unit="s",
        )
    yield _built(plan)
    if claim.gap is None:
        proven = "nothing is proven"
    else:
        proven = (
            "no better plan exists"
            if plan.status == "optimal" and not claim.gap
            else "to the proven lower bound"
        )
    gap = "unknown" if claim.gap is None else words.percent(claim.gap)
    yield Glance(name="Gap", value=gap, note=proven, number=claim.gap, unit="share")


def _built(plan: Plan) -> Glance:
    """The GPUs of the only network, in its last phase where it grows, else how many networks there
    are.
    """
    several = len({(part.site, part.slot) for part in plan.parts})
    if several > 1:
        note = "each with its own design"
        return Glance(
            name="Networks", value=words.count(several), note=note, number=several, unit="networks"
        )
    network = network_of(plan.parts[-1])
    text = f"in {words.times(network.hb_domain.count, network.hb_domain.name)}"
    grows = (
        f"; {words.counted(len(plan.parts), 'phase')} of one network" if len(plan.parts) > 1 else ""
    )
    value = words.count(network.gpus)
    return Glance(
        name="GPUs that train", value=value, note=text + grows, number=network.gpus, unit="GPUs"
    )


def _origin(case: PageCase) -> Iterator[tuple[str, str]]:
    origin, plan = case.origin, case.plan
    yield "Instance", f"{case.instance.name}, file {origin.instance_file}"
    yield "SHA-256 of the instance", case.instance.sha256
    yield "Plan", f"file {origin.plan_file}"
    yield "Software", f"coopt {__version__}"
    yield "Formulation", plan.solver.formulation
    yield "Solver", f"{plan.solver.name} {plan.solver.version}".rstrip()
    options = ", ".join(f"{name} = {value}" for name, value in plan.solver.options.items())
    yield "Solver options", options or "none"
    yield "Command", origin.command
    yield "Written", f"{origin.written:%Y-%m-%d %H:%M:%S} UTC"


def page_html(case: PageCase) -> str:
    """The whole file; it loads nothing from anywhere."""
    return environment().get_template("page.html.j2").render(page_contents(case)) + "\n"


def page_report(case: PageCase) -> Iterator[RenderableType]:
    """The decision and the verdict, as they stand at the top of the page."""
    verdict, decision = opening(case)
    yield Text(decision, style="bold")
    yield Text(verdict, style="green" if case.verdict.accepted else "bold red")
    yield from (check.why for check in case.verdict.failures[:MOST_REASONS])


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
    templates.filters |= {"cell": _cell, "linked": linked, "tied": tied}
    return templates


def tied(text: str) -> str:
    """Keep a number and its unit on one line."""
    return NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _cell(content: Cell) -> str | Markup:
    """The text of a cell; a verdict carries its class."""
    from markupsafe import Markup

    if isinstance(content, str):
        return tied(content)
    look = "bad" if "red" in str(content.style) else "good"
    return Markup('<span class="{}">{}</span>').format(look, content.plain)


def linked(text: str) -> Any:
    """Addresses in a text as links; punctuation behind one belongs to the sentence, a bracket that
    it opens to it.
    """
    from markupsafe import Markup

    marked_up, end = Markup(""), 0
    for match in ADDRESS.finditer(text):
        address = match[0].rstrip(PUNCTUATION)
        # A bracket that the address itself opened belongs to it, one that the sentence opened does
        # not.
        while address.endswith(")") and address.count(")") > address.count("("):
            address = address[:-1].rstrip(PUNCTUATION)
        link = Markup('<a href="{0}" rel="noreferrer">{0}</a>').format(address)
        marked_up, end = marked_up + text[end : match.start()] + link, match.start() + len(address)
    return marked_up + text[end:]
