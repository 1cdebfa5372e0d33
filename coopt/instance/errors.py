"""What a user is told when an input cannot be used."""

from __future__ import annotations

from collections.abc import Iterable


class InstanceError(ValueError):
    """An input that cannot be used; every complaint names the place, what was given and what is needed.

    Parameters
    ----------
    complaints
        One sentence each; all that were found, not the first.
    """

    def __init__(self, complaints: str | Iterable[str]) -> None:
        self.complaints: tuple[str, ...] = (complaints,) if isinstance(complaints, str) else tuple(complaints)
        super().__init__("\n".join(self.complaints))

    def __reduce__(self) -> tuple[type[InstanceError], tuple[tuple[str, ...]]]:
        return type(self), (self.complaints,)
