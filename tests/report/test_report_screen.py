"""Whatever kind of question is answered, the answer stands on one screen, and a study is called one at once."""

import io
import math
import re
from itertools import product
from typing import Any

import pytest
from rich.text import Text

import coopt
from coopt.instance.schema import Instance
from coopt.network.failures import losses
from coopt.network.family import without_nics
from coopt.network.orders import order_notes_of_parts
from coopt.network.plan_networks import baseline_of, design_of
from coopt.network.space import families
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.building import leaf_notes
from coopt.report.facts import pace_text
from coopt.report.notes import numbers_between
from coopt.report.plan import headline
from coopt.report.screen import MOST_LINES, _as_they_stand, plan_screen
from coopt.report.words import PlanFact, rendered
from tests.changes import with_part
from tests.conftest import ask, question, switch
from tests.kinds import QUESTIONS, solved
from tests.report.test_report_layout import Terminal


def lines_of(instance: Instance, plan: Plan) -> list[str]:
    text = rendered(plan_screen(instance, plan, baseline_of(instance, plan)), Terminal())
    return Text.from_ansi(text).plain.splitlines()


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_plan_of_every_kind_fits_on_one_screen(kind: str) -> None:
    instance, plan = solved(kind)
    plan = coopt.assess(instance, plan)
    lines = lines_of(instance, plan)
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert text.startswith(" ".join(headline(instance, plan).split()))
    assert plan.cost is not None
    assert f"{plan.cost.capex_usd:,.0f}" in text
    for run in plan.runs:
        assert re.search(rf"{re.escape(words.seconds(run.iteration_time_s)[:-2])}[ s]", text), run.name
    assert text.index("Nearest limits") < text.rindex("Proof") < text.rindex("gap 0.0%")
    assert "1 trillion tokens in" in text
    assert ("after the other" in text) == (kind == "turns")
    assert ("not counted (" in text) == (kind in ("sites", "direct"))


def test_electricity_that_the_headline_counts_stands_below_the_bill(instance: Instance, plan: Plan) -> None:
    """A limit that is missed is said in capitals."""
    assert plan.cost is not None
    for aim, said in (("tco", True), ("capex", False)):
        objective = instance.objective.model_copy(update={"minimize": aim})
        text = " ".join(lines_of(instance.model_copy(update={"objective": objective}), plan))
        assert (words.money(plan.cost.tco_usd) in text) == said
    tight = instance.limits.model_copy(update={"power_mw": 2.0})
    text = rendered(plan_screen(instance.model_copy(update={"limits": tight}), plan), io.StringIO())
    assert " 16.3% TOO MUCH" in text


def test_of_many_workloads_those_with_the_least_slack_are_shown(instance: Instance, plan: Plan) -> None:
    (run,) = plan.workloads
    (part,) = plan.parts
    runs = tuple(run.model_copy(update={"name": f"run{n:02}", "bound_s": 12.0 + n}) for n in range(20))
    many = plan.model_copy(update={"parts": (part.model_copy(update={"workloads": runs}),), "workloads": runs})
    asked = instance.model_copy(update={"workload": instance.workload * 20})
    lines = lines_of(asked, many)
    shown = [line.split()[0] for line in lines if line.startswith("run")]
    assert shown == [f"run{n:02}" for n in range(MOST_LINES)]
    assert any(line.startswith(f"  {20 - MOST_LINES} more rows") for line in lines)
    workload = instance.workload[0]
    slower = [(run.model_copy(update={"iteration_time_s": 1.0 + n}), workload) for n, run in enumerate(runs)]
    assert re.findall(r"\((.*?)\)", pace_text(asked, slower)) == ["run19", "run18", "run17", "17 others"]
    assert re.findall(r"\((.*?)\)", pace_text(asked, slower[:4])) == ["run03", "run02", "run01", "run00"]


def test_many_networks_of_a_kind_are_a_line() -> None:
    instance, plan = solved("partition")
    parts = tuple(
        part.model_copy(update={"name": f"{part.name}-{n}", "slot": f"{part.slot}-{n}"})
        for part in plan.parts
        for n in range(MOST_LINES)
    )
    lines = lines_of(instance, plan.model_copy(update={"parts": parts}))
    assert len(lines) <= 40
    rows = [line for line in lines if re.search(r"^\d+ clusters?  ", line)]
    assert sum(int(line.split()[0]) for line in rows) == len(parts)
    for row in rows:
        domain = next(part.design.hb_domain for part in parts if part.design and part.design.hb_domain.name in row)
        alike = [one for one in parts if one.design and one.design.hb_domain.name == domain.name]
        alike = [one for one in alike if one.design and f" {one.design.fabric.title} " in row]
        assert f"{sum(one.design.hb_domain.count for one in alike if one.design):,} x {domain.name}" in row
        assert f" {sum(one.design.gpus for one in alike if one.design):,} " in row


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_screen_with_much_to_say_keeps_what_comes_first(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instance, plan = solved(kind)
    notes = [f"{n} is one of the notes. " + "It takes some lines to say all of it. " * 6 for n in range(9)]
    monkeypatch.setattr("coopt.report.screen.first_sentences", lambda *_: notes)
    lines = lines_of(instance, coopt.assess(instance, plan))
    assert len(lines) <= 40
    assert sum("of the notes" in line for line in lines) < 9
    assert any(line.startswith("0 is one") for line in lines)
    assert any(line.endswith("more notes with --full.") for line in lines)


MANY = tuple(f"{number} of the models of the research department" for number in range(12))


def test_of_many_workloads_that_no_plan_serves_those_that_fit_are_told() -> None:
    instance = ask(workload=[question()["workload"][0] | {"name": name, "max_iteration_time_s": 0.01} for name in MANY])
    plan = coopt.solve(instance)
    lines = lines_of(instance, plan)
    assert plan.status == "infeasible"
    assert len(plan.explanation) > len(MANY)
    assert 30 < len(lines) <= 40
    assert any(line.endswith("more notes with --full.") for line in lines)


def test_limits_of_many_workloads_keep_their_figures() -> None:
    instance, plan = solved("turns")
    (part,) = plan.parts
    runs = tuple(part.workloads[0].model_copy(update={"name": name}) for name in MANY)
    asked = tuple(instance.workload[0].model_copy(update={"name": name}) for name in MANY)
    text = " ".join(lines_of(instance.model_copy(update={"workload": asked}), with_part(plan, workloads=runs)))
    limit = text[text.index("Nearest limits") :]
    assert re.search(rf"memory, {MANY[0][:20]}.* [\d.]+ GiB of [\d.]+ GiB, [\d.]+% left", limit)
    assert "and 11 others" in " ".join(limit.split())


def test_what_stands_and_what_is_bought_of_it_fit_on_one_screen() -> None:
    tier = {"ports": 16, "switch": switch(16, 11000), "optic": "400g-199"}
    stands = {"id": "old", "hb_domain": "hgx-h100-8", "domains": 2, "gpus_per_domain": 8, "leaf_domains": 2}
    instance = ask(existing=[stands | {"fabric": "rail-only", "nic": "cx7-400g", "tiers": [tier]}])
    plan = coopt.assess(instance, coopt.solve(instance))
    lines = lines_of(instance, plan)
    assert len(lines) <= 40
    assert any(line.startswith("Existing parts ") for line in lines)


def test_parts_of_phases_stand_in_the_order_of_their_phases() -> None:
    instance, plan = solved("phased")
    shown = [line.split() for line in lines_of(instance, plan) if line.startswith("network, ")]
    years = [f"{part.phase:g}" for part in plan.parts if part.phase is not None]
    assert [words[1] for words in shown] == sorted(years)
    slack = {f"{part.phase:g}": part.workloads[0].slack for part in plan.parts if part.phase is not None}
    assert sorted(slack, key=lambda year: slack[year]) != sorted(years)


def test_numbers_of_gpus_that_a_coarse_list_leaves_out_are_named(instance: Instance, plan: Plan) -> None:
    assert plan.design is not None
    built, step = plan.design.gpus, plan.design.hb_domain.active

    def said(*listed: int, minimize: str = "capex") -> str:
        cluster = instance.cluster.model_copy(update={"gpus": listed})
        objective = instance.objective.model_copy(update={"minimize": minimize})
        asked = instance.model_copy(update={"cluster": cluster, "objective": objective})
        return " ".join(numbers_between(asked, plan))

    between = f"least = {built // 2}, most = {built}, step = {step}"
    assert between in said(built // 2, built, 2 * built)
    assert f"least = {built}, most = {2 * built}" in said(built // 2, built, 2 * built, minimize="time")
    assert said(built - step, built) == said(built) == said(2 * built) == ""
    assert f"step = {3 * step} }}" in said(built, built + 25_000 * step, minimize="time")


LONE = {"name": "lone", "size": 1, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
TWO_PORTS = {"name": "two ports", "gbit_s": 400, "ports": [1, 2], "usd": 1750, "w": 22.5}
TWIN = {"name": "twin", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 150, "w": 5}
CAGES = [{**switch(16, 5000, 200), "cages": 8}]
RAIL_ONLY: dict[str, dict[str, Any]] = {
    "a leaf a rail": {"switches": [switch(8, 5000)]},
    "rails that share a leaf": {"switches": [switch(32, 5000)]},
    "all rails on one": {"switches": "64x400g"},
    "several tiers": {"switches": [switch(4, 2000)]},
    "several ports": {"nics": [TWO_PORTS], "optics": [TWIN], "nic_planes": [2], "switches": CAGES},
    "one rail": {"hb_domains": [LONE]},
}


JOINED = [case for case in RAIL_ONLY if case != "several tiers"]  # whose switches have too few ports to join rails


@pytest.mark.parametrize(
    ("case", "kind"), [*((case, "rail-only") for case in RAIL_ONLY), *product(JOINED, ("rail-optimized", "clos"))]
)
def test_what_a_lost_leaf_does_is_a_line_that_agrees_with_faults(case: str, kind: str) -> None:
    family = next(
        families(ask(network__fabrics=kind, **{f"network__{key}": value for key, value in RAIL_ONLY[case].items()}))
    )
    (said,) = leaf_notes([design_of(family, family.uplink_choices[0])])
    assert len(said) <= 80
    leaves = [loss for loss in losses(family, family.uplink_choices[0]) if loss.part == "leaf switch"]
    assert ("stops training" in said) == any(math.isinf(loss.domain_slowdown) for loss in leaves)
    assert ("training restarts" in said) == all(loss.aborts and math.isfinite(loss.domain_slowdown) for loss in leaves)
    if others := re.search(r"the other (\d+)", said):
        taken = family.nics_of_domain - int(others[1])
        assert max(loss.domain_slowdown for loss in leaves) == without_nics(family, taken)[0]


def test_of_several_networks_it_is_said_where_they_differ() -> None:
    family = next(families(ask(network__fabrics="rail-only")))
    rails = design_of(family, family.uplink_choices[0])
    other = rails.model_copy(update={"fabric": rails.fabric.model_copy(update={"planes": rails.fabric.planes * 2})})
    assert list(leaf_notes([])) == []
    assert len(list(leaf_notes([rails, rails]))) == 1
    (several,) = leaf_notes([rails, other])
    assert "coopt faults" in several
    assert several not in {*leaf_notes([rails]), *leaf_notes([other])}


def test_what_goes_for_some_parts_alone_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, plan = solved("partition")
    design = plan.parts[0].design
    assert design is not None
    named = {
        name: design.model_copy(update={"gpus": gpus}) for name, gpus in zip("abcde", (1, 2, 3, 3, 3), strict=True)
    }

    def notes(_: Instance, one: Design, *others: object) -> list[str]:
        return ["all", str(max(1, one.gpus - (one.gpus == 2)))]

    monkeypatch.setattr("coopt.network.orders.order_notes", notes)
    assert list(order_notes_of_parts(instance, named)) == ["all", "a and b: 1", "c, d and e: 3"]
    more = {**named, "f": named["e"]}
    assert "4 of 6 parts: 3" in list(order_notes_of_parts(instance, more))


@pytest.mark.parametrize("kind", ["partition", "fleet"])
def test_of_several_parts_each_says_what_it_gets(kind: str) -> None:
    instance, plan = solved(kind)
    lines = lines_of(instance, plan)
    assert any(re.match(r"Part +(site +)?HB domains +fabric +GPUs +iteration", line) for line in lines)
    for part in plan.parts:
        assert part.design is not None
        domain, gpus = part.design.hb_domain, words.count(part.design.gpus)
        site = f"{part.site} +" if part.site else ""
        row = rf"{re.escape(part.name)} +{site}{domain.count} x {re.escape(domain.name)} +[a-z-]+ +{gpus} +[\d.]+ of"
        assert any(re.match(row, line) for line in lines), (part.name, lines)


def test_a_network_that_stays_as_it_is_has_one_line_for_all_its_years() -> None:
    _, plan = solved("phased")
    names = [part.name for part in plan.parts]
    slot, years = plan.parts[0].slot, [name.rpartition(", ")[2] for name in names]
    rows = [PlanFact("row", name, "GPUs", 16) for name in names]
    assert _as_they_stand(plan, rows) == {names[0]: f"{slot}, {', '.join(years)}"}
    rows[-1] = PlanFact("row", names[-1], "GPUs", 32)
    assert names[-1] in _as_they_stand(plan, rows)


def test_columns_come_nearer_where_words_would_break() -> None:
    rows = [(f"part {n}", f"{n:,} x hgx-h100-8 " + "and so on " * 4, "1,234") for n in (1024, 2048)]
    table = words.figures("", ("part", "domains"), ("count", "of"), [(*row, "56") for row in rows], compact=True)
    assert max(len(row[1]) for row in rows) > 50
    text = rendered([table], Terminal())
    assert len(text.splitlines()) == 3
