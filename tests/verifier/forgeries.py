"""Proofs that were tampered with, and claims that they do not prove.

`python -m tests.verifier.forgeries COUNT [SEED]` tells how many forged proofs carry a claim that is not so, over
islands with every coupling and direct links. Any multipliers prove something, so that a forged proof may still be one
of what is true: how many are is told as well.
"""

import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan, Proof
from coopt.plan.store import proof_json
from coopt.solving.answer import solve
from coopt.solving.proofs.search import prove
from coopt.verifier.certificates import Certificate, certify
from tests.conftest import small_model, switch
from tests.solving.direct.test_direct_links import linked
from tests.solving.drawn import by_hand
from tests.verifier.fleets import FLEETS
from tests.verifier.kinds import solved
from tests.verifier.twists import twisted_islands

PROVEN = 1 + 1e-12
"""A bound may be above the best value by so much, which is the rounding of its own number."""

Answered = tuple[Instance, Plan, Proof]
Document = dict[str, Any]
Forgery = Callable[[Document, random.Random], None]


@cache
def answered(name: str) -> Answered:
    """A question of islands, its plan and a proof of the plan's bound."""
    instance, plan = solved("partition") if name == "partition" else _solved(FLEETS[name]())
    assert plan.status == "optimal", plan.explanation
    return instance, plan, prove(instance, plan)


def _solved(instance: Instance) -> tuple[Instance, Plan]:
    return instance, solve(instance)


def asked_links(bound_s: float, pp: list[int], interleave: Sequence[int] = (1, 2)) -> Instance:
    """A question of four domains whose switches are dear."""
    mapping = {"micro_batch": [1], "zero": [1], "recompute": ["none"], "sequence_parallel": [True], "pp": pp}
    workload = {"name": "w", "model": small_model(tied_embeddings=False), "global_batch": 64}
    workload |= {"mapping": mapping | {"interleave": [*interleave]}, "max_iteration_time_s": bound_s}
    return Instance.model_validate(linked(workload=[workload], network__switches=[switch(8, 500_000, 10)]))


@cache
def answered_links() -> tuple[Instance, Plan, Proof]:
    """A question with sends and exchanges, its plan, and lengths that prove the bound."""
    instance = asked_links(1.8, [2])
    plan = solve(instance)
    return instance, plan, prove(instance, plan)


def claiming(plan: Plan, bound: float | None) -> Plan:
    """The plan with another bound, or as one that says that nothing is feasible."""
    claim = plan.objective.model_copy(update={"bound": bound})
    status = "infeasible" if bound is None else plan.status
    return plan.model_copy(update={"objective": claim, "status": status})


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document that holds a number, a name or a choice."""
    keys = document.keys() if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        yield document, key
        yield from places(document[key])


def changed(document: Document, chance: random.Random) -> None:
    """One amount, threshold, name or case is another, or two cases are swapped."""
    holder, key = chance.choice([*places(_content(document))])
    old = holder[key]
    if isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int):
        holder[key] = max(old + chance.choice([-1, 1, 10, -10, 1000]), 0)
    elif isinstance(old, str) and old.replace(".", "").isdigit():
        holder[key] = str(float(old) * chance.choice([0.5, 0.99, 1.01, 2.0, 100.0]))
    elif isinstance(old, dict) and isinstance(holder, dict):
        other = chance.choice([k for k in holder if isinstance(holder[k], dict)])
        holder[key], holder[other] = holder[other], holder[key]
    elif isinstance(holder, dict):
        del holder[key]


def _content(document: Document) -> Document:
    return {key: document[key] for key in ("cases", "bests", "links") if document.get(key)}


def transplanted(document: Document, chance: random.Random) -> None:
    """What stands at one place stands at another of its kind as well."""
    every = [*places(_content(document))]
    holder, key = chance.choice(every)
    alike = [one[at] for one, at in every if type(one[at]) is type(holder[key])]
    holder[key] = json.loads(json.dumps(chance.choice(alike)))


def emptied(document: Document, chance: random.Random) -> None:
    """A case, a list or a name is gone."""
    holder, key = chance.choice([*places(_content(document))])
    if isinstance(holder[key], dict | list):
        holder[key] = type(holder[key])()
    else:
        del holder[key]


def inflated(document: Document, chance: random.Random) -> None:
    """An amount is enormous, next to nothing, or that of another; the bound that the proof names may be, too."""
    every = [(holder, key) for holder, key in places(_content(document)) if isinstance(holder[key], str)]
    holder, key = chance.choice(every)
    holder[key] = chance.choice(["0", "0.000000001", "1" + "0" * 30, "340282366920938463463374607431768211456.5"])
    if chance.random() < 0.3:
        document["bound"] = "1" + "0" * chance.randint(1, 20)


def uncosted(document: Document, chance: random.Random) -> None:
    """Multipliers that count costs are to show that no choice keeps the limits, and the other way round."""
    leaves = [holder[key] for holder, key in places(_content(document)) if _is_leaf(holder[key])]
    for leaf in leaves if chance.random() < 0.5 else [chance.choice(leaves)] if leaves else []:
        leaf["costs"] = not leaf.get("costs", True)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, dict) and "units" in value


FORGERIES: tuple[Forgery, ...] = (changed, changed, transplanted, emptied, inflated, uncosted)


def forged(document: Document, chance: random.Random) -> Document:
    """A proof with one thing to three amiss."""
    copy: Document = json.loads(json.dumps(document))
    for _ in range(chance.choice([1, 1, 2, 3])):
        chance.choice(FORGERIES)(copy, chance)
    return copy


def questions(chance: random.Random) -> Iterator[Answered]:
    """Proven answers without end: islands with every coupling, direct links, and random islands."""
    while True:
        for name in ("partition", *FLEETS):
            yield answered(name)
        yield answered_links()
        for _ in range(4):
            found = _random_islands(chance)
            if found is not None:
                yield found


def _random_islands(chance: random.Random) -> Answered | None:
    """Random islands with a plan and a proof; None where the draw is no question, or has no plan."""
    instance = twisted_islands(chance)
    if instance is None:
        return None
    plan = solve(instance, time_limit_s=20.0)
    if plan.status != "optimal" or not plan.objective.bound or instance.sharing.mode != "partition":
        return None
    return instance, plan, prove(instance, plan)


def told(instance: Instance, plan: Plan, proof: Proof) -> Certificate | None:
    """What is proven; None where the proof is refused in words."""
    try:
        return certify(instance, plan, proof)
    except InstanceError:
        return None


def campaign(count: int, start: int = 0, each: int = 25) -> Counter[str]:
    """What becomes of so many forged proofs."""
    chance, found = random.Random(start), Counter[str]()
    for instance, plan, proof in questions(chance):
        value, document = plan.objective.value, json.loads(proof_json(proof))
        for _ in range(each):
            if sum(found.values()) >= count:
                return found
            try:
                one = Proof.model_validate(forged(document, chance))
            except (ValueError, IndexError):
                found["no proof"] += 1
                continue
            word = _word(instance, plan, value, one, chance)
            found[word] += 1
            if word == "carries a lie":
                sys.stderr.write(f"{word}: {instance.model_dump_json(by_alias=True)} {proof_json(one)}\n")
        sys.stderr.write(f"{dict(found)}\n")
    return found


def _word(instance: Instance, plan: Plan, value: float, proof: Proof, chance: random.Random) -> str:
    """What becomes of a forged proof."""
    lies = [claiming(plan, value * chance.choice([1.0001, 1.01, 2.0]) + 1e-6), claiming(plan, None)]
    for lie in lies:
        found = told(instance, lie, proof)
        if found is not None and (found.ok or (found.bound_proven or 0.0) > value * PROVEN):
            return "carries a lie"
    found = told(instance, plan, proof)
    return "refused" if found is None else "still a proof" if found.ok else "proves less"


if __name__ == "__main__":
    by_hand(campaign, "carries a lie")
