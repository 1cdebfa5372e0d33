"""What `coopt` changes in how Python runs it: rooms that can be called, and how often cycles are
looked for.

A package becomes an attribute of `coopt` as soon as anything in it is imported, and so would hide
the function of its name: calling the room calls the function, as `coopt.report(...)` does.
"""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any

OBJECTS = 300_000
"""Objects after which Python looks for cycles: 700 by itself, which takes a tenth of the time of a
search.

The modules of a search alone hold more than 100,000, none of which is ever free.
"""


class CallableRoom(ModuleType):
    """A package that passes calls on to the public function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function of `coopt` with the name of this room returns."""
        function = sys.modules["coopt"].public(self.__name__.rpartition(".")[2])
        return function(*args, **options)


def answer_calls(room: str) -> None:
    """Let the package of this name pass calls on."""
    sys.modules[room].__class__ = CallableRoom


def collect_rarely() -> None:
    """Look for cycles rarely in a process that does nothing else; programs that embed coopt decide
    for themselves.
    """
    gc.set_threshold(OBJECTS, 20, 20)
