"""Reports suit the place they go to."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from coopt.explain.limits import numeric_limits
from coopt.plan.explanation import Bound, Explanation, NextPlan
from coopt.plan.schema import InstanceId
from coopt.report.explanation import explanation_tables
from coopt.report.plan import plan_report
from coopt.report.words import FigureTable, figures, rendered
from tests.changes import with_part
from tests.kinds import solved


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def text_of(*parts, stream=None):
    return rendered(parts, stream or io.StringIO())


@pytest.mark.parametrize("width", [80, 200])
def test_no_number_is_cut_and_no_line_is_too_long(instance, plan, baseline, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    text = text_of(*plan_report(instance, plan, baseline), stream=Terminal())
    plain = Text.from_ansi(text).plain
    assert max(len(line) for line in plain.splitlines()) <= width
    assert "…" not in plain
    for number in ("94,306,304", "152,829,952", "68,222,976", "26,083,328", "2,326,528", "58,523,648 (38.3%)"):
        assert number in plain


def test_piped_text_is_plain_and_at_most_100_wide_and_a_terminal_gets_colours(instance, plan, baseline, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = text_of(*plan_report(instance, plan, baseline))
    assert "\x1b" not in text
    assert 80 < max(len(line) for line in text.splitlines()) <= 100
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in text_of(*plan_report(instance, plan), stream=Terminal())


def test_names_are_never_read_as_markup(instance, plan):
    run = plan.workloads[0].model_copy(update={"name": "[red]x[/red] :smile: [/]"})
    assert "[red]x[/red] :smile: [/]" in text_of(*plan_report(instance, with_part(plan, workloads=(run,))))


LONG = ("workload[0].max_iteration_time_s, s", "phase[1].workloads[0].max_iteration_time_s, s", "limits.racks, racks")


def text_at(width: int, table: FigureTable) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("compact", [False, True])
def test_a_key_that_would_break_stands_above_its_figures(compact: bool) -> None:
    rows = [(key, "no", *(f"{n}{digit * 6}" for digit in "123456")) for n, key in enumerate(LONG)]
    table = figures("Bounds", ("bound", "binds"), tuple("abcdef"), rows, compact=compact)
    narrow, wide = text_at(80, table), text_at(140, table)
    assert max(map(len, narrow)) <= 80
    for n, key in enumerate(LONG):
        at = narrow.index(f"  {key}")
        assert narrow[at + 1].split() == ["no", *(f"{n}{digit * 6}" for digit in "123456")]
        assert any(line.split()[:3] == [*key.split(), "no"] for line in wide)
    assert sum("binds" in line for line in narrow) == 1


@pytest.mark.parametrize("kind", ["partition", "fleet"])
def test_an_explanation_of_eighty_columns_keeps_its_keys_whole(kind: str) -> None:
    question, _ = solved(kind)
    keys = [limit.key for limit in numeric_limits(question)]
    bounds = [
        Bound(limit=key, unit="s", bound=0.2, used=0.1754931, slack=0.123, binds=True, tighter=None, looser=None,
              without=NextPlan(bound=1.0, value=1.0, extra=-653_201.0), loosest=1.0, step=0.01)
        for key in keys
    ]  # fmt: skip
    told = Explanation(
        instance=InstanceId(name="x", sha256="0" * 64), status="optimal", kind="capex", bounds=tuple(bounds)
    )
    lines = text_at(80, explanation_tables(told)["bounds"])
    assert max(map(len, lines)) <= 80
    assert {f"  {key}, s" for key in keys} <= set(lines)
