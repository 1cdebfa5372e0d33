"""A page says what the terminal says, with sources, and nothing it does not know."""

import html
import io
import json
import re
import tomllib
from contextlib import suppress
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib.resources import files
from itertools import islice
from pathlib import Path

import pytest
from pydantic import ValidationError
from rich.text import Text

from coopt.instance.catalog import KINDS, entries
from coopt.instance.schema import Instance, load
from coopt.instance.texts import InstanceError
from coopt.network.parts import bill
from coopt.network.space import families
from coopt.plan.schema import Plan
from coopt.plan.store import plan_json
from coopt.report import words
from coopt.report.catalog import OWN, TAG_WORDS, UNKNOWN, price_origins
from coopt.report.page.contents import (
    Origin,
    PageCase,
    glossary,
    linked,
    moment,
    opening,
    page_contents,
    page_html,
    page_report,
    tied,
)
from coopt.report.page.evidence import memory_bar, planes
from coopt.report.plan import headline, plan_report
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests import kinds
from tests.changes import NOTHING_BUILT
from tests.conftest import ask
from tests.report.test_report_layout import Terminal
from tests.verifier.mutants import mutants, replaced

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def solved() -> tuple[Instance, Plan]:
    """A shipped instance and its plan."""
    question = load(ROOT / "instances" / "tiny-64.toml")
    return question, solve(question, top=3)


@pytest.fixture(scope="module")
def page(solved: tuple[Instance, Plan]) -> str:
    """The page of that plan."""
    return page_html(case_of(*solved))


def case_of(question: Instance, plan: Plan) -> PageCase:
    origin = Origin(
        command="coopt report a b -o c", instance_file="a", plan_file="b", written=datetime(2030, 1, 2, tzinfo=UTC)
    )
    return PageCase(instance=question, plan=plan, verdict=verify(question, plan), origin=origin)


def text_of(page: str) -> str:
    """What a reader sees, with single spaces."""
    body = re.sub(r"<(style|script)>.*?</\1>", " ", page.split("<body>")[1], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_every_word_and_figure_of_the_terminal_stands_on_the_page(solved, page):
    shown = text_of(page)
    lines = words.rendered(plan_report(*solved)).splitlines()
    cells = {cell for line in lines for cell in re.split(r"\s{2,}", line.strip()) if re.search(r"[a-z0-9]", cell)}
    assert len(cells) > 80
    missing = {cell for cell in cells if " ".join(cell.split()) not in shown}
    assert missing <= {"Search", *wrapped(plan_report(*solved))}


def wrapped(pieces):
    """The lines of sentences that a terminal breaks."""
    return {line for piece in pieces if isinstance(piece, str) for line in words.rendered([piece]).splitlines()}


class Balance(HTMLParser):
    """Complains of a tag that is closed and was not open, and keeps those that are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in ("meta", "link", "img", "rect", "line", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in ("rect",):
            assert self.open.pop() == tag


def test_every_tag_is_closed_and_every_id_is_given_once(page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) > 15
    assert len(set(parser.ids)) == len(parser.ids)


@pytest.mark.parametrize("width", [80, 200])
def test_the_two_sentences_suit_a_terminal_and_a_pipe(solved, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    case = case_of(*solved)
    shown = Text.from_ansi(words.rendered(page_report(case), Terminal())).plain
    assert max(len(line) for line in shown.splitlines()) <= width
    assert "\x1b" not in words.rendered(page_report(case), io.StringIO())
    assert shown.rstrip().endswith(" 0.0%.")


def test_a_page_without_a_chart_is_small_and_needs_nothing_else(page):
    assert len(page.encode("utf-8")) < 500_000
    assert re.findall(r'(?:src|href|url)\s*[=(]\s*"?(?!#|data:|https://)[^">\s)]+', page) == []
    assert "default-src 'none'" in page


def test_drawings_of_several_networks_say_whose_they_are() -> None:
    instance, plan = kinds.solved("fleet")
    captions = [one.caption for one in planes(instance, plan)]
    assert all(said.startswith(part.name) for part, said in zip(plan.parts, captions, strict=True))


def test_a_page_of_least_regret_names_no_front() -> None:
    for kind, has_front in (("fleet", True), ("regret", False)):
        assert ("(coopt pareto)" in text_of(page_html(case_of(*kinds.solved(kind))))) == has_front


def test_provenance_stands_on_the_page(solved, page):
    question, plan = solved
    known = (question.sha256, "coopt report a b -o c", "2030-01-02 00:00:00 UTC", plan.solver.version, "network")
    assert all(text in text_of(page) for text in known)


def test_prices_carry_their_source_and_how_it_is_known():
    question = ask(network__switches={"name": "own", "radix": 64, "port_gbit_s": 400, "usd": 5000, "w": 100})
    plan = solve(question)
    assert plan.cost is not None
    found = {line.item: line for line in price_origins(question, plan.cost.items)}
    assert found["own"].usd == OWN
    assert found["400g-199"].usd.startswith(TAG_WORDS["2nd"])
    assert "2307.12169" in found["400g-199"].usd
    assert found["cx7-400g"].usd.startswith(TAG_WORDS["M"])
    changed = plan.cost.items[0].model_copy(update={"name": "unheard of"})
    assert price_origins(question, [changed])[0].usd == UNKNOWN


def test_gpus_that_idle_or_are_counted_have_sources_too():
    question = ask(cluster__gpus=60, network__hb_domains="h100-hb16", objective={"include": ["hb", "gpu"]})
    family = next(family for family in families(question) if family.active < family.hb.size)
    lines = price_origins(question, bill(question, family, family.uplink_choices[-1]))
    assert [line.item for line in lines] == ["h100-sxm", "h100-hb16", "h100-sxm (idle)"]
    assert not {OWN, UNKNOWN} & {said for line in lines for said in (line.usd, line.w)}
    assert lines[0].usd == lines[2].usd


def test_servers_that_are_counted_have_the_source_of_their_own_price():
    question = ask(network__hb_domains="hgx-h100-8", objective={"include": ["hb", "host", "nic", "switch", "optics"]})
    family = next(iter(families(question)))
    lines = {line.item: line for line in price_origins(question, bill(question, family, family.uplink_choices[-1]))}
    for said, figure in ((lines["hgx-h100-8"].usd, "310,000 USD"), (lines["hgx-h100-8"].w, "575 W")):
        assert figure in said.partition("servers, derived")[2]


@pytest.mark.parametrize("status", ["infeasible", "unknown"])
def test_a_plan_without_a_design_says_why(solved, status):
    question, plan = solved
    claim = plan.objective.model_copy(update={"value": None, "gap": None})
    nothing = {"status": status, "objective": claim, "alternatives": (), "explanation": ("too near",)}
    page = page_html(case_of(question, plan.model_copy(update=NOTHING_BUILT | nothing)))
    assert "Too near." in text_of(page)
    assert 'id="bill"' not in page


def test_a_rejected_plan_shows_claims_and_no_evidence(solved):
    question, plan = solved
    assert plan.cost is not None
    wrong = plan.model_copy(update={"cost": plan.cost.model_copy(update={"capex_usd": 1.0})})
    case = case_of(question, wrong)
    page, (verdict, decision) = page_html(case), opening(case)
    assert text_of(page).index(verdict) < text_of(page).index(decision)
    assert decision.endswith(headline(question, wrong)) > decision.startswith("Build")
    assert ["as claimed" in page, "<svg" in page, "<img" in page] == [True, False, False]


@pytest.mark.parametrize("key", ["size", "active"])
def test_domains_of_no_gpus_are_rejected_on_a_page(solved, monkeypatch, key):
    monkeypatch.setattr("coopt.report.pictures.picture", lambda figure, ending: b"")
    question, plan = solved
    changed = replaced(json.loads(plan_json(plan)), ("design", "hb_domain", key), 0)
    assert "bad-box" in page_html(case_of(question, Plan.model_validate(changed))).split("<body>")[1]


def test_no_change_to_a_plan_leaves_it_without_a_page(solved, monkeypatch):
    """Whatever is painted, which tests/report/test_every_kind.py sees: heat maps take most of a page's time."""
    monkeypatch.setattr("coopt.report.pictures.picture", lambda figure, ending: b"")
    question, plan = solved
    rejected = 0
    for _, changed in islice(mutants(json.loads(plan_json(plan)), {}), 0, None, 110):
        with suppress(ValidationError):
            case = case_of(question, Plan.model_validate(changed))
            rejected += not case.verdict.accepted
            assert ("bad-box" in page_html(case).split("<body>")[1]) is not case.verdict.accepted
    assert rejected > 6


def test_punctuation_behind_an_address_is_no_part_of_the_link():
    """Nor in the catalog; numbers stay with their units."""
    for text, address, rest in (
        ("Guide (https://a.org/b-NS): twin port", "https://a.org/b-NS", "): twin port"),
        ("https://a.org/Rail_(network), read", "https://a.org/Rail_(network)", ", read"),
        ("see (https://a.org/x_(y)).", "https://a.org/x_(y)", ")."),
        ("https://a.org/?a=1&b=2: <b>", "https://a.org/?a=1&amp;b=2", ": &lt;b&gt;"),
    ):
        assert linked(text).endswith(f'<a href="{address}" rel="noreferrer">{address}</a>{rest}')
    sources = [source.source for kind in KINDS for entry in entries(kind).values() for source in entry.sources]
    links = [link for source in sources for link in re.findall('href="([^"]*)"', linked(source))]
    assert len(links) > 50
    assert [link for link in links if link.endswith((":", ",", ".", ";")) or link.count("(") != link.count(")")] == []
    said = "for $94.3\u00a0M and 1.07\u00a0MW, 3\u00a0x box, 12 Mice"
    assert tied(said.replace("\u00a0", " ")) == said


def test_every_term_belongs_to_something_and_those_of_what_is_not_shown_are_left_out(solved):
    known = set(page_contents(case_of(*solved))) | {"bounds", "front_table"}
    table = tomllib.loads(files("coopt").joinpath("report", "page", "glossary.toml").read_text("utf-8"))
    assert {term["when"] for term in table["term"] if "when" in term} <= known
    few, more = (
        {term for term, _ in glossary(dict.fromkeys(keys, True))} for keys in (["question"], ["question", "fabrics"])
    )
    assert "HB domain" in few
    assert more - few >= {"Rail", "Plane"}


def test_a_margin_is_no_memory_that_is_held_or_free(solved):
    assert " usable GiB" in memory_bar(solved[1].runs[0]).says


def test_a_date_can_be_fixed_and_a_wrong_one_is_refused():
    assert moment({"SOURCE_DATE_EPOCH": "0"}) == datetime(1970, 1, 1, tzinfo=UTC)
    assert abs((moment({}) - datetime.now(UTC)).total_seconds()) < 3600
    for wrong in ("", "soon", "1.5", "9" * 30):
        with pytest.raises(InstanceError, match=r"SOURCE_DATE_EPOCH: .* whole seconds"):
            moment({"SOURCE_DATE_EPOCH": wrong})


def test_what_is_close_is_marked_and_nothing_beside_it() -> None:
    (run,) = solve(ask()).runs
    question = ask(workload__0__max_iteration_time_s=1.01 * run.iteration_time_s)
    plan = solve(question)
    assert 0.0 < plan.runs[0].slack < words.CLOSE
    origin = Origin(command="coopt report", instance_file="i.toml", plan_file="p.json", written=datetime.now(UTC))
    page = page_html(PageCase(instance=question, plan=plan, verdict=verify(question, plan), origin=origin))
    marked = re.findall(r'<span class="note"><span class="warn">([^<]*)</span>; ', page)
    assert [text.partition(":")[0] for text in marked] == ["close"]
    assert ";" not in marked[0]
