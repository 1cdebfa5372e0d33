"""Answers to other questions are not taken for proven, true answers are not refused, and forged proofs carry no lie."""

import random
from itertools import islice

from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import example_count
from tests.verifier import forgeries, lies
from tests.verifier.twists import asked

QUESTIONS = example_count(8, 3)


def test_no_lie_is_taken_for_proven_and_no_honest_plan_is_refused() -> None:
    """A few of those that `python -m tests.verifier.lies COUNT` goes through."""
    found = lies.campaign(2, 0) + lies.campaign(2, 5)
    assert found["lies refused for its bound alone"] >= 2
    assert found["lies not proven by certify"] >= 2
    assert found["honest plans accepted"] >= 2
    assert not found["lies taken for proven"]
    assert not found["lies proven by certify"]
    assert not found["honest plans refused"]


def test_no_forged_proof_carries_a_claim_that_is_not_so() -> None:
    """A few of those that `python -m tests.verifier.forgeries COUNT` goes through."""
    found = forgeries.campaign(6, 2, each=3)
    assert found["still a proof"] >= 2
    assert found["proves less"] >= 2
    assert not found["carries a lie"]


def _unasked(table: lies.Table, rng: random.Random) -> None:
    """Say otherwise what the identity of a question may leave out."""
    network = table["network"]
    for part in network["switches"]:
        part |= {"rack_units": rng.choice([1, 8, 14]), "protocol": "ethernet", "lane_gbit_s": 100.0}
    for part in network["nics"]:
        part |= {"protocol": ["ethernet"], "lane_gbit_s": [100.0]}
    for part in network["optics"]:
        part["fibre"] = rng.choice(["one", "two", "three"])
    network["hall"] = {"switch_rack_units": rng.choice([20, 42])}
    network["domain_fill"] = rng.choice(["even", "fewest", network["domain_fill"]])
    network["link_ends"] = rng.choice(["own", "same", network["link_ends"]])


def test_questions_of_one_identity_have_one_answer() -> None:
    """Whatever else they say, the plan of one is a plan of the other."""
    rng, compared = random.Random(5), 0
    for instance in islice(lies.questions(rng), 8 * QUESTIONS):
        table = lies.table_of(instance)
        _unasked(table, rng)
        other = asked(table)
        if other is not None and other != instance and other.sha256 == instance.sha256 and compared < QUESTIONS:
            compared += 1
            plan, same = solve(instance), solve(other)
            assert (plan.status, plan.objective.value) == (same.status, same.objective.value)
            assert verify(instance, same).accepted
            assert verify(other, plan).accepted
    assert compared == QUESTIONS
