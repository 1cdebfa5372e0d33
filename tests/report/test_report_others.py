"""Verdicts, evaluations, progress, catalog entries."""

import io
import re

import pytest
from rich.console import Console
from rich.text import Text

import coopt
from coopt.instance.base import Entry, Provenance
from coopt.instance.catalog import KINDS, entries
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Progress
from coopt.plan.store import Evaluation, LimitCheck
from coopt.report.catalog import APART, find_everywhere, show_report
from coopt.report.explanation import check_row, limit_checks, value_text, verdict_report
from coopt.report.plan import evaluation_report
from coopt.report.words import progress_line, progress_shown, rendered, throttled
from coopt.verifier.checks.names import NAMES
from coopt.verifier.checks.verdict import Check, Verdict
from tests.kinds import solved
from tests.report.test_report_layout import Terminal


def text_of(parts):
    return rendered(parts, io.StringIO())


def check(name="capex", claimed=10.0, recomputed=10.0, ok=True, why=""):
    return Check(name=name, claimed=claimed, recomputed=recomputed, tolerance=1e-9, ok=ok, why=why)


def test_a_verdict_says_first_what_it_is_and_what_fails():
    text = text_of(verdict_report(Verdict(accepted=True, checks=(check(), check("power")))))
    assert text.startswith("Accepted: 2 checks,")
    assert "why" not in text
    wrong = check(recomputed=10.000000001234, ok=False, why="Sums to more.")
    text = text_of(verdict_report(Verdict(accepted=False, checks=(check("power"), wrong, wrong))))
    first, _, table = text.partition("\n")
    assert first.startswith("Rejected: 2 of 3")
    assert first.endswith(": 'capex'.")
    assert table.index("Sums to more.") < table.index("power")
    assert "10.000000001234" in table


def test_claims_are_shown_in_full_where_it_matters():
    short = {None: "none", True: "yes", 1536: "1,536", 0.1 + 0.2: "0.3", ("a", "b"): "a, b", "x" * 40: "x" * 29 + "..."}
    assert {value: value_text(value, False) for value in short} == short
    assert [value_text(value, True) for value in (0.1 + 0.2, "x" * 40)] == ["0.30000000000000004", "x" * 40]


def test_what_a_bound_rests_on_is_told_whole():
    source = " ".join(f"word{n}" for n in range(16))
    checks = (check().model_copy(update={"name": "bound-source", "recomputed": source}), check("power"))
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as shown_narrow:
        console.print(*verdict_report(Verdict(accepted=True, checks=checks)), sep="\n")
    lines = shown_narrow.get().splitlines()
    assert max(map(len, lines)) <= 80
    (start,) = (i for i, line in enumerate(lines) if "bound-source" in line)
    (end,) = (i for i, line in enumerate(lines) if line.split()[:1] == ["power"])
    assert set(source.split()) <= {word for line in lines[start:end] for word in line.split()}


@pytest.fixture
def evaluation(plan):
    limit = LimitCheck(name="power", value=2.3, limit=4.0, unit="MW", ok=True)
    return Evaluation(
        instance=plan.instance, design=plan.design, cost=plan.cost, workloads=plan.workloads, limits=(limit,)
    )


def test_an_evaluation_claims_no_optimum_and_names_the_bounds_it_misses(instance, evaluation):
    text = text_of(evaluation_report(instance, evaluation))
    assert text.startswith("Given: 128 x gh200-256")
    assert "proven" not in text
    assert "2.300 MW" in text
    missed = LimitCheck(name="racks", value=9.0, limit=4.0, unit="racks", ok=False)
    changed = evaluation.model_copy(update={"limits": (*evaluation.limits, missed)})
    lines = [" ".join(text_of(evaluation_report(instance, one)).split()) for one in (evaluation, changed)]
    assert [bool(re.search("misses .*racks", line)) for line in lines] == [False, True]


def step(stage, message="going", elapsed_s=0.0, **known):
    return Progress(stage=stage, message=message, elapsed_s=elapsed_s, **known)


def test_progress_tells_gap_and_time_and_is_noted_without_a_terminal():
    assert progress_line(step("solve", "12 nodes", 3.44)) == "solve: 12 nodes [3.4 s]"
    assert progress_line(step("solve", "x", 1.0, best=100.0, bound=98.5)) == "solve: x, gap 1.5% [1.0 s]"
    heard = []
    with progress_shown(heard.append) as on_progress:
        on_progress(step("build"))
    assert heard == ["build: going [0.0 s]"]


def test_every_stage_is_heard_and_news_within_one_now_and_then():
    heard, now = [], [0.0]
    tell = throttled(lambda one: heard.append(one.message), clock=lambda: now[0])
    for second, stage in [(0, "columns"), (1, "columns"), (2, "build"), (3, "build"), (9, "build"), (10, "done")]:
        now[0] = float(second)
        tell(step(stage, str(second)))
    assert heard == ["0", "2", "9", "10"]


def test_a_terminal_shows_how_far_and_how_long(monkeypatch):
    heard = Terminal()
    monkeypatch.setattr("sys.stderr", heard)
    with progress_shown(None) as on_progress:
        on_progress(step("solve", "3 of 4 [red]points[/red]", done=(3, 4)))
    assert "0:00:00 solve: 3 of 4 [red]points[/red]" in Text.from_ansi(heard.getvalue()).plain
    assert not heard.getvalue().endswith("\n")  # it makes room for the answer


@pytest.mark.parametrize("kind", KINDS)
def test_catalog_entries_are_shown_with_all_their_figures(kind):
    """One of those that state the same."""
    alike = {(type(entry), frozenset(entry.model_fields_set)): name for name, entry in entries(kind).items()}
    for name in alike.values():
        entry = entries(kind)[name]
        text = text_of(show_report({kind: entry}))
        assert text.startswith(f"{name}, {kind}")
        assert all(field in text for field in type(entry).model_fields if field not in APART)


def test_a_source_for_a_table_covers_what_is_inside():
    whole = Provenance(fields=("efficiency",), tag="M", source="recalled")
    one = Provenance(fields=("efficiency.hb",), tag="S", source="read")
    entry = Entry(name="entry", sources=(whole, one))
    found = [entry.source_of(key) for key in ("efficiency.hb", "efficiency.rail", "usd")]
    assert found == [one, whole, None]


def test_an_unknown_entry_is_refused_with_the_closest():
    with pytest.raises(InstanceError, match="closest: h100-sxm"):
        find_everywhere("h100-sxn")


def test_limits_and_lists_of_a_verdict_are_no_claims():
    limit = check_row(check("limit-capex", claimed=25e6, recomputed=20e6))[:3]
    assert limit == ("limit-capex", "at most 25,000,000", "20,000,000")
    listed = ("rail-only", "clos")
    assert check_row(check("fabric", claimed="clos", recomputed=listed))[2] == "one of rail-only, clos"
    assert check_row(check("bill-lines", claimed=listed, recomputed=listed))[2] == "rail-only, clos"
    assert set(NAMES) >= limit_checks()


@pytest.mark.parametrize("kind", ["partition", "fleet", "shared"])
def test_every_check_of_a_part_names_it(kind: str) -> None:
    instance, plan = solved(kind)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted
    of_parts = [one for one in verdict.checks if one.name in ("part-power", "bill-lines")]
    rows = [(one.name, one.subject) for one in of_parts]
    assert len(rows) == len(set(rows))
    names = {part.name for part in plan.parts}
    told = {one.subject for one in of_parts if one.name == "part-power"}
    assert told == ({f"Part {name!r}" for name in names} if len(names) > 1 else {""})
    parts = {one.part for one in of_parts if one.part}
    assert parts == (names if len(names) > 1 else set())
    head = next(line for line in rendered(verdict_report(verdict)).splitlines() if "claimed" in line)
    assert (head.split()[1] == "of") == (len(names) > 1)


def test_a_check_of_a_part_shows_its_name_as_it_is() -> None:
    name = """Ann's "large" \\ model"""
    one = check().model_copy(update={"subject": f"Part {name!r}", "part": name})
    other = check("power").model_copy(update={"subject": "Phase 2027"})
    text = text_of(verdict_report(Verdict(accepted=True, checks=(one, other))))
    assert [words in text for words in (name, "Phase 2027", "Part")] == [True, True, False]


def test_that_tp_groups_stay_inside_domains_is_told_in_words() -> None:
    instance, plan = solved("shared")
    (one,) = (one for one in coopt.verify(instance, plan).checks if one.name == "tp-open")
    assert (one.claimed, one.recomputed, one.ok) == ("inside HB domains", "inside HB domains", True)
    open_workloads = [w.model_copy(update={"allow_tp_across": None}) for w in instance.workload]
    open_instance = instance.model_copy(update={"workload": tuple(open_workloads)})
    (one,) = (one for one in coopt.verify(open_instance, coopt.solve(open_instance)).checks if one.name == "tp-open")
    assert (one.claimed, one.recomputed, one.ok) == ("inside HB domains", "either", True)
