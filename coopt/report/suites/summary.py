"""What a run of a suite did."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.tables import facts
from coopt.suite.driver import Summary

LEFT_OPEN = ("refused", "failed")


def summary_report(summary: Summary) -> Iterator[RenderableType]:
    """The headline, and where everything is."""
    yield Text(_headline(summary), style="bold")
    yield ""
    yield facts("Run", _facts(summary))


def _headline(summary: Summary) -> str:
    rows = sum(summary.statuses.values())
    if summary.stopped:
        return (
            f"Stopped, {summary.stopped}: {rows:,} of {words.counted(summary.cases, 'case')} have a row; "
            "the same command with --resume goes on."
        )
    bad = [f"{summary.statuses[name]:,} {name}" for name in LEFT_OPEN if name in summary.statuses]
    return f"{words.counted(summary.cases, 'case')} done{''.join(f', {text}' for text in bad)}."


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "Results", f"{summary.folder}/results.parquet, a row for each case; cases/ beside it has the plans"
    yield "Outcomes", ", ".join(f"{count:,} {name}" for name, count in summary.statuses.items()) or "none"
    repeated = summary.cases - summary.asked - summary.statuses.get("refused", 0)
    known = [f"{summary.worked:,} worked on"]
    known += [f"{summary.kept:,} known from before"] if summary.kept else []
    known += [f"{repeated:,} asked by another case as well"] if repeated > 0 else []
    known += [f"{summary.damaged:,} with a file that was damaged, so asked again"] if summary.damaged else []
    yield "Questions", ", ".join(known)
    yield "Time", f"{summary.wall_s:.1f} s, in which workers used {summary.cpu_s:.1f} s of processor time"
