"""Whatever kind of question is answered, its report says what a reader needs, in figures and within the terminal."""

from __future__ import annotations

import html
import io
import re
from datetime import UTC, datetime

import pytest
from rich.text import Text

from coopt.instance.schema import Instance
from coopt.network.plan_networks import baseline_of
from coopt.plan.schema import Plan
from coopt.report.explanation import search_rows
from coopt.report.page.contents import Origin, PageCase, page_html
from coopt.report.plan import plan_report
from coopt.report.sentence import headline
from coopt.report.tables import rendered
from coopt.report.words import exact, seconds
from coopt.verifier.audit import verify
from tests.changes import NOTHING_BUILT
from tests.kinds import QUESTIONS, solved
from tests.report.test_report_layout import Terminal

LIMITS = {"power_mw": "power", "capex_usd": "purchase", "racks": "racks"}
ROUNDED_AWAY = re.compile(r"(?<![\d.,])-?0\.0+ ?(?:[kMGTP]?(?:B|W|bit/s)|[kMGT]iB|bytes|s|[kMB])\b")


def text_of(instance: Instance, plan: Plan) -> str:
    """The report on one line."""
    return " ".join(rendered(plan_report(instance, plan, baseline_of(instance, plan)), io.StringIO()).split())


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_knob_and_every_limit_is_told(kind: str) -> None:
    instance, plan = solved(kind)
    text = text_of(instance, plan)
    knobs = {knob for workload in instance.workload for knob in workload.options.knobs}
    assert len(knobs) == 2
    for knob in knobs:
        assert knob in text
    bounds = text.partition("How far each bound is")[2]
    limits = {key: value for key, value in instance.limits.model_dump().items() if value is not None}
    assert limits.keys() >= {"power_mw", "racks"}
    for key in limits:
        assert re.search(rf"(\d+ )?{LIMITS[key]}( without the GPUs)? [$\d]", bounds), key


@pytest.mark.parametrize("kind", QUESTIONS)
def test_time_and_memory_stand_beside_what_they_may_be(kind: str) -> None:
    instance, plan = solved(kind)
    text = text_of(instance, plan)
    sites = plan.together.sites if plan.together else ()
    for run in (*plan.workloads, *(run for site in sites for run in site.workloads)):
        assert f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f}" in text
        assert re.search(rf"{seconds(run.iteration_time_s)},?( at most)? {seconds(run.bound_s)}", text)
        assert run.name in text
    assert "Counted: HB interconnect" in text
    assert "Times are estimates" in text


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_line_of_the_bill_is_shown_and_nothing_is_rounded_away(kind: str) -> None:
    instance, plan = solved(kind)
    text = text_of(instance, plan)
    bills = [spent.bought for spent in plan.couplings.growth] or [plan.cost.items if plan.cost else ()]
    for item in (item for bill in bills for item in bill):
        shown = (
            item.item,
            "hb/GPU" if item.kind == "hb" else item.kind,
            f"{item.count:,}",
            *map(exact, (item.unit_usd, item.usd, item.unit_w, item.w)),
        )
        assert " ".join(shown) in text
    assert ROUNDED_AWAY.findall(text) == []


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_is_enumerated_is_dropped_or_kept(kind: str) -> None:
    instance, plan = solved(kind)
    (said,) = (text for name, text in search_rows(instance, plan) if name in ("Mappings", "Options"))
    whole, *parts = (int(part.split()[0].replace(",", "")) for part in said.split(", "))
    assert whole == sum(parts) > 0
    assert said.endswith(" kept")
    assert "dropped by" not in said, "every cause has words of its own"


def test_what_a_site_sends_is_in_bytes_of_its_size() -> None:
    instance, plan = solved("sites")
    assert plan.together is not None
    (exchange,) = plan.together.exchanges
    assert f"each site sends {exchange.sent_bytes / 1e9:.3f} GB of gradients" in text_of(instance, plan)
    assert ROUNDED_AWAY.findall("sends 0.0 TB of, 0.00 s, 0.00 MW") == ["0.0 TB", "0.00 s", "0.00 MW"]
    assert ROUNDED_AWAY.findall("10.0 TB, 0.05 s, 0 W, gap 0.0%, 0.01000 MW") == []


def test_a_regret_is_never_called_a_cost() -> None:
    instance, plan = solved("regret")
    assert "Proof regret of capex: value $0, lower bound $0, gap 0.0%" in text_of(instance, plan)
    assert "no plan is cheaper by more than $0;" in text_of(instance, plan)
    claim = plan.objective.model_copy(update={"value": 1000.0, "bound": 400.0, "gap": 0.6})
    stopped = plan.model_copy(update={"status": "feasible", "stop_reason": "time limit", "objective": claim})
    text = text_of(instance, stopped)
    assert "best so far: a regret of $1.00 k, gap 60.0%" in text
    assert "Proof regret of capex: value $1,000, lower bound $400, gap 60.0%" in text
    nothing = NOTHING_BUILT | {"status": "unknown"}
    assert "it is proven that no plan has a regret below $400." in headline(
        instance, stopped.model_copy(update=nothing)
    )
    watts = plan.model_copy(update={"objective": claim.model_copy(update={"kind": "power", "gap": 0.0})})
    assert "whatever prices come, no plan draws less by more than 1.00 kW; proven optimal." in headline(instance, watts)


def test_sites_meet_a_bound_together_in_its_own_units() -> None:
    instance, plan = solved("sites")
    (workload,) = instance.workload
    rate = {"max_iteration_time_s": None, "min_tokens_per_s": workload.tokens_per_iteration / workload.bound_s}
    asked = instance.model_copy(update={"workload": (workload.model_copy(update=rate),)})
    slowest_s = max(site.workloads[0].iteration_time_s for site in plan.together.sites) if plan.together else 0.0
    said = f"131,072 tokens/s; this plan {workload.tokens_per_iteration / slowest_s:,.0f} tokens/s."
    assert f"Bound of w, all sites together: {said}" in text_of(asked, plan)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_eighty_columns_are_enough(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    instance, plan = solved(kind)
    plain = Text.from_ansi(rendered(plan_report(instance, plan, baseline_of(instance, plan)), Terminal())).plain
    assert max(len(line) for line in plain.splitlines()) <= 80
    assert "…" not in plain


@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_kind_has_a_page(kind: str) -> None:
    instance, plan = solved(kind)
    origin = Origin(command="coopt report", instance_file="i.toml", plan_file="p.json", written=datetime.now(UTC))
    page = page_html(PageCase(instance=instance, plan=plan, verdict=verify(instance, plan), origin=origin))
    said = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))
    assert " ".join(headline(instance, plan).split()) in said.replace("\N{NO-BREAK SPACE}", " ")
    assert all(workload.name in said for workload in instance.workload)
    assert "Bill" in said
    is_one_network, has_a_front = kind in ("shared", "turns"), kind not in ("shared", "turns", "regret")
    assert ("Not on this page: coopt explain says" in said) != is_one_network
    assert ("coopt pareto what a longer iteration saves" in said) == has_a_front
