"""Small questions of every coupling, and their plans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest

from hypothesis import HealthCheck, Phase, given, seed, settings

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from tests.kinds import QUESTIONS
from tests.solving.every_coupling import couplings, questions

PLANS = 30
EACH = 2  # plans of each coupling at least
DRAWN = 400
ROUNDS = 5  # of draws at most, until every coupling has its plans


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A question and its proven plan."""

    name: str
    instance: Instance
    plan: Plan

    @property
    def parts(self) -> Iterator[str | None]:
        """Parts with a network of their own; None for the only one."""
        names = [part.name for part in self.plan.parts]
        yield from names if len(names) > 1 else [None]


@cache
def _drawn(start: int) -> list[Instance]:
    """Random questions, one of each set of couplings after the other."""
    found: list[Instance] = []

    def take(question: tuple[Instance, object]) -> None:
        found.append(question[0])

    drawing = settings(
        max_examples=DRAWN,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(start)(drawing(given(questions())(take)))()
    return list(_in_turn(found))


@cache
def _solved(start: int, number: int) -> Plan:
    return coopt.solve(_drawn(start)[number])


def _in_turn(instances: list[Instance]) -> Iterator[Instance]:
    """One of each set of couplings after the other, the rarest set first."""
    sets: defaultdict[tuple[str, ...], list[Instance]] = defaultdict(list)
    for instance in instances:
        sets[tuple(couplings(instance))].append(instance)
    turns = zip_longest(
        *(sets[names][:: 1 + len(sets[names]) // 8] for names in sorted(sets, key=lambda n: len(sets[n])))
    )
    yield from (instance for turn in turns for instance in turn if instance is not None)


@cache
def _kinds() -> tuple[Case, ...]:
    kinds = {name: Instance.model_validate(table) for name, table in QUESTIONS.items()}
    return tuple(Case(name=name, instance=instance, plan=coopt.solve(instance)) for name, instance in kinds.items())


@cache
def cases(start: int = 0, least: int = PLANS) -> tuple[Case, ...]:
    """Plans of every kind of question and of every coupling: the same for the same numbers and code."""
    found = list(_kinds())
    count: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    missing: set[str] = set()
    for further in range(start, start + ROUNDS):
        for number, instance in enumerate(_drawn(further)):
            names = list(couplings(instance))
            if len(found) < least or any(count[name] < EACH for name in names):
                plan = _solved(further, number)
                if plan.status == "optimal" and (*names, plan.objective.value) not in seen:
                    seen.add((*names, plan.objective.value))
                    found.append(Case(name=f"random-{len(found):02d}", instance=instance, plan=plan))
                    count.update(names)
            missing = {name for name in (*missing, *names) if count[name] < EACH}
        if not missing:
            break
    assert not missing, f"fewer than {EACH} plans of {', '.join(sorted(missing))}"
    return tuple(found)
