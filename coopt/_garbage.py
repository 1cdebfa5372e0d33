"""How often a process looks for cycles among its objects."""

from __future__ import annotations

import gc

OBJECTS = 100_000
"""Objects after which Python looks for cycles: 700 by itself, which takes a tenth of the time of a search."""


def collect_rarely() -> None:
    """Look for cycles rarely in a process that does nothing else; programs that embed coopt decide for themselves."""
    gc.set_threshold(OBJECTS, 20, 20)
