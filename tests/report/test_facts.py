"""The one list of facts holds what the plan holds, and everything that shows a plan shows that list."""

import html
import io
import re
from datetime import UTC, datetime

import pytest
from rich.text import Text

import coopt
from coopt.instance.evidence import longer
from coopt.instance.schema import Instance, at_choice
from coopt.network.plan_networks import baseline_of
from coopt.plan.schema import Plan
from coopt.plan.store import plan_checks
from coopt.report.explanation import search_rows
from coopt.report.facts import label, plan_facts, servers_apart
from coopt.report.page.contents import Origin, PageCase, page_html
from coopt.report.plan import IN_FULL, headline, plan_report, plan_sections
from coopt.report.screen import Room, plan_screen
from coopt.report.words import PlanFact, exact, of_group, rendered, required_bound
from coopt.verifier.audit import verify
from tests.changes import NOTHING_BUILT
from tests.conftest import ask, question
from tests.kinds import QUESTIONS, solved
from tests.report.test_report_layout import Terminal
from tests.solving.interrupted import in_days
from tests.solving.sites.test_outages import interrupted_sites

ROUNDED_AWAY = re.compile(r"(?<![\d.,])-?0\.0+ ?(?:[kMGTP]?(?:B|W|bit/s)|[kMGT]iB|bytes|s|[kMB])\b")


def text_of(instance: Instance, plan: Plan) -> str:
    """The full report on one line."""
    return " ".join(rendered(plan_report(instance, plan, baseline_of(instance, plan)), io.StringIO()).split())


def known(instance: Instance, plan: Plan, group: str) -> dict[tuple[str, str], PlanFact]:
    return {(fact.of, fact.name): fact for fact in of_group(plan_facts(instance, plan), group)}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_facts_are_the_figures_of_the_plan(kind: str) -> None:
    instance, plan = solved(kind)
    totals, networks, runs = (known(instance, plan, group) for group in ("total", "network", "run"))
    assert plan.cost is not None
    assert totals["", "Purchase"].value == plan.cost.capex_usd
    assert totals["", "Power"].value == plan.cost.power_w
    assert totals["", "With electricity"].value == plan.cost.tco_usd
    assert totals["", "Gap"].value == plan.objective.gap
    assert {of for of, _ in networks} == {part.name for part in plan.parts}
    assert len({of for of, _ in runs}) == len(plan.runs)
    for part in plan.parts:
        built = part.design or part.links
        assert built is not None
        assert networks[part.name, "GPUs"].value == built.gpus
        assert networks[part.name, "HB domains"].value == built.hb_domain.count
        for run in part.workloads:
            name = label(plan, part, run)
            assert runs[name, "Iteration"].value == run.iteration_time_s
            assert runs[name, "Memory"].value == run.memory_gib
            assert f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f}" in runs[name, "Memory"].shown
            assert run.name in name


@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_report_shows_every_fact_knob_limit_and_line_of_the_bill(kind: str) -> None:
    instance, plan = solved(kind)
    text = text_of(instance, plan)
    assert len(plan.parts) <= IN_FULL
    for fact in plan_facts(instance, plan):
        if fact.group in ("network", "run") or (fact.group == "row" and len(plan.parts) > 1):
            assert " ".join(fact.shown.split()) in text, fact
    knobs = {knob for workload in instance.workload for knob in workload.options.knobs}
    assert len(knobs) == 2
    assert all(knob in text for knob in knobs)
    for check in plan_checks(instance, plan):
        assert check.name in text
    bills = [spent.bought for spent in plan.couplings.growth] or [plan.cost.items if plan.cost else ()]
    for item in (item for bill in bills for item in bill):
        kind_shown = "HB GPU" if item.kind == "hb" else item.kind
        amounts = map(exact, (item.unit_usd, item.usd, item.unit_w, item.w))
        assert " ".join((item.item, kind_shown, f"{item.count:,}", *amounts)) in text
    assert ROUNDED_AWAY.findall(text) == []


def test_numbers_that_were_rounded_away_are_found() -> None:
    assert ROUNDED_AWAY.findall("sends 0.0 TB of, 0.00 s, 0.00 MW") == ["0.0 TB", "0.00 s", "0.00 MW"]
    assert ROUNDED_AWAY.findall("10.0 TB, 0.05 s, 0 W, gap 0.0%, 0.01000 MW") == []


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_is_enumerated_is_dropped_or_kept(kind: str) -> None:
    instance, plan = solved(kind)
    (said,) = (text for name, text in search_rows(instance, plan) if name in ("Mappings", "Options"))
    whole, *parts = (int(part.split()[0].replace(",", "")) for part in said.split(", "))
    assert whole == sum(parts) > 0
    assert "dropped by" not in said


@pytest.mark.parametrize("kind", QUESTIONS)
def test_eighty_columns_are_enough(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    instance, plan = solved(kind)
    plain = Text.from_ansi(rendered(plan_report(instance, plan, baseline_of(instance, plan)), Terminal())).plain
    assert max(len(line) for line in plain.splitlines()) <= 80
    assert "…" not in plain


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_page_shows_all_that_the_terminal_shows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is painted: heat maps take most of a page's time."""
    monkeypatch.setattr("coopt.report.pictures.picture", lambda figure, ending: b"")
    instance, plan = solved(kind)
    origin = Origin(command="coopt report", instance_file="i.toml", plan_file="p.json", written=datetime.now(UTC))
    page = page_html(PageCase(instance=instance, plan=plan, verdict=verify(instance, plan), origin=origin))
    said = html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")
    said = " ".join(said.split())
    assert " ".join(headline(instance, plan).split()) in said
    for fact in plan_facts(instance, plan):
        assert fact.group == "row" or " ".join(fact.shown.split()) in said, fact
    ids = re.findall(r'<section id="(\w+)"', page)
    assert re.findall(r'<li><a href="#(\w+)"', page) == ids
    assert {"plan", "bill", "time", "verification"} <= set(ids)
    assert ("traffic" in ids) == (plan.design is not None)


def test_many_parts_stand_side_by_side() -> None:
    instance, plan = solved("partition")
    names = [f"island {n}" for n in range(IN_FULL + 1)]
    parts = tuple(plan.parts[0].model_copy(update={"name": name}) for name in names)
    many = plan.model_copy(update={"parts": parts})
    sections = plan_sections(instance, many, plan_facts(instance, many), ())
    titles = {name: [getattr(piece, "title", "") for piece in pieces] for name, pieces in sections.items()}
    assert titles["parts"][:3] == ["Networks and their workloads", "Networks", "Switches"]
    assert titles["runs"] == ["Workloads"]
    assert [row[0] for row in sections["parts"][1].rows] == names  # type: ignore[union-attr]


def test_a_plan_that_builds_nothing_has_no_facts() -> None:
    instance, plan = solved("shared")
    empty = plan.model_copy(update=NOTHING_BUILT | {"status": "unknown"})
    assert plan_facts(instance, empty) == []
    assert plan_sections(instance, empty, [], ()) == {}


def test_spares_goodput_and_days_are_facts_where_failures_count() -> None:
    """A rate of failures at which one island waits for no repair, and the other has no days to keep."""
    table = question(
        cluster__gpus=128, sharing={"mode": "partition"}, availability={"rates": "llama-3", "spare_domains": 2}
    )
    bare = table["workload"][0] | {"gpus": 64}
    timed = in_days(bare, 2 * bare["max_iteration_time_s"]) | {"name": "timed"}
    instance = Instance.model_validate(table | {"workload": [bare | {"name": "free"}, timed]})
    plan = coopt.solve(instance)
    rows, runs = known(instance, plan, "row"), known(instance, plan, "run")
    for part in plan.parts:
        (run,) = part.workloads
        assert run.uptime is not None
        assert part.design is not None
        assert rows[part.name, "goodput"].value == runs[part.name, "Goodput"].value == run.uptime.goodput
        assert rows[part.name, "HB domains"].shown.endswith("+ 2 spares")
        assert rows[part.name, "days"].value == run.promised_s
    days = plan.runs[1].promised_s * instance.workload[1].iterations / 86400
    assert rows["timed", "days"].shown == f"{days:.4g} of {instance.workload[1].train_days:.4g}"
    with_margin = Instance.model_validate(instance.model_dump(mode="json", by_alias=True) | {"margin": {"time": 0.25}})
    shown = known(with_margin, plan, "row")["timed", "days"].shown
    assert shown == f"{days:.4g} of {(instance.workload[1].train_days or 0.0) / 1.25:.4g}"
    assert rows["free", "days"].shown == "-"
    calm = instance.model_copy(update={"availability": None})
    assert not [key for key in known(calm, coopt.solve(calm), "row") if key[1] == "goodput"]


def test_an_island_is_told_with_its_site_and_a_site_once() -> None:
    instance, plan = solved("fleet")
    rows = known(instance, plan, "row")
    assert [rows[part.name, "site"].shown for part in plan.parts] == [part.site for part in plan.parts]
    assert "site" not in {name for _, name in known(*solved("sites"), "row")}


def test_a_model_that_sites_share_has_one_pace() -> None:
    runs = known(*solved("sites"), "run")
    assert len({fact.shown for (_, name), fact in runs.items() if name == "Training"}) == 1


def test_days_at_several_sites_hold_interruptions() -> None:
    """Those of a site, its bound, and what all sites reach together."""
    instance = interrupted_sites(8)
    plan = coopt.solve(instance)
    (workload,), slowest_s = instance.workload, max(run.promised_s for run in plan.runs)
    rows, runs = known(instance, plan, "row"), known(instance, plan, "run")
    for part in plan.parts:
        assert rows[part.name, "days"].shown.endswith(f" of {workload.train_days:.4g}")
    assert all(required_bound(workload) == fact.shown for (_, name), fact in runs.items() if name == "Required")
    assert ["of at most" in fact.shown for (_, name), fact in runs.items() if name == "Training"] == [True] * len(
        plan.runs
    )
    assert f"reaches {workload.in_own_units(slowest_s)}." in text_of(instance, plan)
    assert slowest_s > max(run.iteration_time_s for run in plan.runs)


@pytest.mark.parametrize(
    "bound", [{"min_tokens_per_s": 1e6}, {"train_days": 30.0, "train_tokens": 1e12}, {"max_iteration_time_s": 1.0}]
)
def test_a_bound_is_repeated_in_its_own_units(bound: dict[str, float]) -> None:
    table = ask().workload[0].model_dump(mode="json") | {"max_iteration_time_s": None} | bound
    instance = ask(workload=[table])
    runs = known(instance, coopt.solve(instance), "run")
    (workload,) = instance.workload
    assert runs["w", "Required"].value == workload.required_s
    took_s, dated = float(runs["w", "Iteration"].value), "train_days" in bound
    assert workload.in_own_units(workload.required_s) in runs["w", "Required"].shown
    own = runs["w", "Training" if dated else "Iteration"]
    assert workload.in_own_units(took_s).partition(" for ")[0] in own.shown
    assert ["most 30 days" in own.shown, own.shown.endswith("if nothing fails")] == [dated, dated]
    assert " of " not in runs["w", "Iteration"].shown or not dated
    days = 1e12 / workload.tokens_per_iteration * took_s / 86400
    told = f"1 trillion tokens in {days:.4g} days if nothing fails"
    assert (runs["w", "Training"].shown == told) == (not dated)
    assert not dated or runs["w", "Training"].value == days


def test_collectives_are_a_fact_where_a_workload_leaves_the_choice() -> None:
    asked = {"workload__0__mapping": {"tp": 1, "pp": 1, "dp": 64, "zero": 1}, "network__hb_domains": "hgx-h100-8"}
    for how, named in (("levels", False), ("fastest", True)):
        instance = ask(**asked, workload__0__options={"collectives": how}, workload__0__max_iteration_time_s=5.0)
        plan = coopt.solve(instance)
        runs = known(instance, plan, "run")
        assert (("w", "Collectives") in runs) == bool(plan.runs[0].collectives) == named


def test_what_trains_at_a_site_is_called_by_both_names() -> None:
    """Also where the name of the site, `west`, begins like that of its workload, `w`."""
    instance, plan = solved("sites")
    assert {of for of, _ in known(instance, plan, "run")} == {"w, east", "w, west"}


def test_a_date_stands_in_the_headline_and_how_sure_it_is_in_its_tile() -> None:
    days = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e12}
    table = ask().workload[0].model_dump(mode="json") | days
    instance = ask(workload=[table], cluster__start="2027-01-04")
    plan = coopt.solve(instance)
    (run,), (workload,) = plan.runs, instance.workload
    assert run.error is not None
    later_s = run.promised_s * (1.0 + longer(run.error, 0.8))
    assert f"by {workload.end(run.promised_s)}" in headline(instance, plan)
    sure, note = f"by {workload.end(later_s)} (80%", known(instance, plan, "total")["w", "Training"].note
    assert f"within {workload.duration(later_s)}, {sure}" in note
    assert sure in known(instance, plan, "rests")["", "Times"].shown


def test_the_headline_of_islands_has_the_day_of_the_last() -> None:
    days = {"max_iteration_time_s": None, "train_tokens": 1e11, "gpus": 64}
    table = ask().workload[0].model_dump(mode="json") | days
    rows = [table | {"name": name, "train_days": most} for name, most in (("a", 20.0), ("b", 40.0))]
    start = {"cluster__start": "2027-01-04", "cluster__gpus": 128}
    instance = ask(workload=rows, sharing={"mode": "partition"}, **start)
    plan = coopt.solve(instance)
    pairs = [(run, work) for run in plan.runs for work in instance.workload if work.name == run.name]
    run, workload = max(pairs, key=lambda pair: pair[1].days(pair[0].promised_s))
    assert f"by {workload.end(run.promised_s)}" in headline(instance, plan)
    in_turn = ask(workload=[row | {"gpus": None} for row in rows], **start)
    assert ", by " not in headline(in_turn, coopt.solve(in_turn))


def test_no_day_is_told_of_iterations_alone() -> None:
    instance = ask(cluster__start="2027-01-04")
    assert ", by " not in known(instance, coopt.solve(instance), "rests")["", "Times"].shown


def test_the_money_of_servers_has_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside that of the interconnect where both cost, in its place where servers alone do. A screen without room for
    it has one line of both, with their count."""
    domain = {"name": "box", "size": 8, "gbyte_s": 450, "host_usd_per_gpu": 7000, "host_w_per_gpu": 500, "racks": 0.25}
    include = ["host", "hb", "nic", "switch", "optics"]
    for usd, w, parts in ((300.0, 10.0, {"interconnect": (300.0, 10.0)}), (0.0, 0.0, {})):
        hb = domain | {"usd_per_gpu": usd, "w_per_gpu": w}
        instance = ask(network__hb_domains=[hb], objective={"include": include})
        plan = coopt.solve(instance)
        assert plan.cost is not None
        lines = [line for line in servers_apart(plan.cost.items, instance) if line.kind == "hb"]
        found = {line.item.partition(", ")[2]: (round(line.unit_usd, 6), round(line.unit_w, 6)) for line in lines}
        assert found == parts | {"servers": (7000.0, 500.0)}
        whole_usd = sum(line.usd for line in plan.cost.items if line.kind == "hb")
        assert sum(line.usd for line in lines) == pytest.approx(whole_usd)
        screen = rendered(plan_screen(instance, plan), io.StringIO())
        assert f"{lines[-1].usd:,.0f}" in next(row for row in screen.splitlines() if "box, servers" in row)
        with monkeypatch.context() as patch:
            patch.setattr("coopt.report.screen.ROOMS", (Room(lines=1),))
            screen = rendered(plan_screen(instance, plan), io.StringIO())
        (row,) = (row for row in screen.splitlines() if "HB GPU" in row)
        assert row.split()[:5] == ["box", "HB", "GPU", f"{lines[0].count}", f"{whole_usd:,.0f}"]
        answered = at_choice(instance, plan.chosen)  # as of a question that leaves something open
        assert lines == [line for line in servers_apart(plan.cost.items, answered) if line.kind == "hb"]


def test_every_run_has_its_tile(instance: Instance, plan: Plan) -> None:
    (part,), (run,) = plan.parts, plan.workloads
    runs = tuple(run.model_copy(update={"name": f"run{n}"}) for n in range(8))
    many = plan.model_copy(update={"parts": (part.model_copy(update={"workloads": runs}),), "workloads": runs})
    asked = instance.model_copy(update={"workload": instance.workload * 8})
    assert {of for of, _ in known(asked, many, "total") if of} == {run.name for run in runs}
