"""Answers to other questions are not taken for proven, and true answers are not refused."""

from __future__ import annotations

from tests.verifier.lies import campaign


def test_no_lie_is_taken_for_proven_and_no_honest_plan_is_refused() -> None:
    """A few of those that `python -m tests.verifier.lies COUNT` goes through."""
    found = campaign(12, 3)
    assert found["lies refused"] >= 8
    assert found["honest plans accepted"] >= 3
    assert not found["lies taken for proven"]
    assert not found["honest plans refused"]
