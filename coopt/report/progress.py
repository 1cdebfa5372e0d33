"""The story of a run while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from coopt.plan.progress import OnProgress, Progress

QUIET_S = 5.0


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
