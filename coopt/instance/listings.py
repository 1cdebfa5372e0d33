"""Names as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def alternatives(names: Iterable[str]) -> str:
    """`a, b or c`; empty without any."""
    return _joined(names, "or")


def both(names: Iterable[str]) -> str:
    """`a, b and c`; empty without any."""
    return _joined(names, "and")


def _joined(names: Iterable[str], word: str) -> str:
    *most, last = [*names] or [""]
    return f"{', '.join(most)} {word} {last}" if most else last
