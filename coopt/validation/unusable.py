"""Why a row is left out."""

from __future__ import annotations


class UnusableError(Exception):
    """A row that cannot be predicted; the text says why, and the same words stand for the same reason."""
