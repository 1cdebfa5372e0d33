"""Renderables to text that suits the place it goes to."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType

PIPED_WIDTH = 100


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
