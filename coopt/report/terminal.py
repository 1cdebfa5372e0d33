"""Renderables as text of the width and colours that suit a stream, and the progress of a run on one line."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Column

from coopt.plan.effort import OnProgress, Progress

PIPED_WIDTH = 100
QUIET_S = 5.0


def rendered(parts: Iterable[RenderableType], stream: TextIO | None = None) -> str:
    """The text of `parts` for a stream (stdout): colours and width of a terminal, 100 plain columns elsewhere."""
    target = stream or sys.stdout
    terminal = target is not None and target.isatty()
    console = Console(
        file=target, width=None if terminal else PIPED_WIDTH, no_color=None if terminal else True,
        force_terminal=terminal, markup=False, emoji=False, highlight=False,
    )  # fmt: skip
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines) + "\n"


@contextmanager
def progress_shown(note: Callable[[str], None]) -> Iterator[OnProgress]:
    """A callback that keeps a bar with the time that passed up to date on a terminal, and elsewhere notes the stages.

    Parameters
    ----------
    note
        Writes one line to stderr; used where stderr is no terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield plain_notes(note)
        return
    from rich import progress

    said = progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
    columns = (progress.SpinnerColumn(), progress.BarColumn(24), progress.TimeElapsedColumn(), said)
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def tell(step: Progress) -> None:
            done, total = step.done or (0, None)
            shown.update(task, completed=done, total=total, description=progress_text(step))

        yield tell


def plain_notes(note: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> OnProgress:
    """Note every new stage at once, and news within a stage at most every 5 seconds."""
    last_stage, last_time = "", -QUIET_S

    def tell(step: Progress) -> None:
        nonlocal last_stage, last_time
        now = clock()
        if step.stage != last_stage or now - last_time >= QUIET_S:
            note(progress_line(step))
            last_stage, last_time = step.stage, now

    return tell


def progress_line(step: Progress) -> str:
    """`solve: 12 nodes, gap 1.5% [3.4 s]`."""
    return f"{progress_text(step)} [{step.elapsed_s:.1f} s]"


def progress_text(step: Progress) -> str:
    """`solve: 12 nodes, gap 1.5%`."""
    gap = "" if step.gap is None else f", gap {100 * step.gap:.2g}%"
    return f"{step.stage}: {step.message}{gap}"
