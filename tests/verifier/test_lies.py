"""Answers to other questions are not taken for proven, true answers are not refused, and forged proofs carry no lie."""

from __future__ import annotations

from tests.verifier import forgeries, lies


def test_no_lie_is_taken_for_proven_and_no_honest_plan_is_refused() -> None:
    """A few of those that `python -m tests.verifier.lies COUNT` goes through."""
    found = lies.campaign(12, 3)
    assert found["lies refused for its bound alone"] >= 6
    assert found["lies not proven by certify"] >= 6
    assert found["honest plans accepted"] >= 3
    assert not found["lies taken for proven"]
    assert not found["lies proven by certify"]
    assert not found["honest plans refused"]


def test_no_forged_proof_carries_a_claim_that_is_not_so() -> None:
    """A few of those that `python -m tests.verifier.forgeries COUNT` goes through."""
    found = forgeries.campaign(40, 3, each=5)
    assert found["still a proof"] >= 3
    assert found["proves less"] >= 3
    assert not found["carries a lie"]
