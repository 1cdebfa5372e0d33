"""Renderables as text of the width and colours that suit a stream, and the progress of a run on one line."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

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
    """A callback that keeps one line up to date on a terminal, and elsewhere notes the stages.

    Parameters
    ----------
    note
        Writes one line to stderr; used where stderr is no terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield plain_notes(note)
        return
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with console.status(Text("starting")) as status:
        yield lambda step: status.update(Text(progress_line(step)))


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
    """`solve: 12 nodes, 3.4 s, gap 1.5%`."""
    gap = "" if step.gap is None else f", gap {100 * step.gap:.2g}%"
    return f"{step.stage}: {step.message}{gap} [{step.elapsed_s:.1f} s]"
