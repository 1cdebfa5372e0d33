"""Random questions of every coupling have the value that enumeration finds, and plans that the verifier accepts."""

from __future__ import annotations

from tests.solving.every_coupling import campaign


def test_random_questions_of_every_coupling_agree_with_enumeration() -> None:
    """A few of those that `python -m tests.solving.every_coupling COUNT` goes through."""
    found = campaign(0, 7, batch=3)
    assert any(name.endswith(": right") for name in found)
    assert not [name for name in found if name.endswith(": wrong")]
