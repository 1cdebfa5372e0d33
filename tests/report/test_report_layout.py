"""Reports suit the place they go to."""

from __future__ import annotations

import io

import pytest
from rich.text import Text

from coopt.report.plan import plan_report
from coopt.report.terminal import rendered


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


def test_piped_text_is_plain_and_at_most_100_wide(instance, plan, baseline, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = text_of(*plan_report(instance, plan, baseline))
    assert "\x1b" not in text
    assert 80 < max(len(line) for line in text.splitlines()) <= 100


def test_a_terminal_gets_colours(instance, plan, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in text_of(*plan_report(instance, plan), stream=Terminal())


def test_names_are_never_read_as_markup(instance, plan):
    run = plan.workloads[0].model_copy(update={"name": "[red]x[/red] :smile: [/]"})
    assert "[red]x[/red] :smile: [/]" in text_of(*plan_report(instance, plan.model_copy(update={"workloads": (run,)})))
