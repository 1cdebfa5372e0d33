"""Rooms that have the name of a public function: calling the room calls the function, as `coopt.report(...)` does.

A package becomes an attribute of `coopt` as soon as anything in it is imported, and so would hide the function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class CallableRoom(ModuleType):
    """A package that passes calls on to the public function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """What the function of `coopt` with the name of this room returns."""
        function = sys.modules["coopt"].public(self.__name__.rpartition(".")[2])
        return function(*args, **options)


def answer_calls(room: str) -> None:
    """Let the package of this name pass calls on."""
    sys.modules[room].__class__ = CallableRoom
