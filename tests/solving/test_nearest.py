"""The closest alternative of several networks is the least of all plans in which an island does without something."""

import math
from collections.abc import Iterator
from itertools import chain

import pytest
from hypothesis import assume, given, settings

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.assumptions import rests_on
from coopt.solving.fleet import nearest
from coopt.solving.fleet.nearest import listed_names, with_nearest
from tests.conftest import example_count, switch
from tests.solving import fleet_oracle as oracle
from tests.solving.fleet_bills import Book
from tests.solving.fleets import growing_at, partitions, two


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that are busy find it too."""
    monkeypatch.setattr(nearest, "TIME_S", 600.0)


def open_names(instance: Instance, plan: Plan) -> list[set[str]]:
    """What each island has of lists with a choice."""
    islands: dict[str, set[str]] = {}
    for part in plan.parts:
        assert part.design is not None
        had = islands.setdefault(part.slot, set())
        had.update(*(names for key, names in listed_names(part.design).items() if len(instance.lists.get(key, ())) > 1))
    return list(islands.values())


def names_of(stands: oracle.Stands) -> set[str]:
    """What an island of the enumeration has."""
    families = [family for family in stands[0] if family is not None]
    joined = [(one.fabric, one.nic.name, *(box.name for box in one.switches)) for one in families if one.tiers]
    return {*chain(*joined), *(family.hb.name for family in families)}


def least_of_others(instance: Instance, plan: Plan) -> float:
    """The least objective of all fleets in which an island lacks something that it has in the plan."""
    own = open_names(instance, plan)
    return min(_least(Book(instance=instance), own), default=math.inf)


def _least(book: Book, own: list[set[str]]) -> Iterator[float]:
    menus, listed = oracle.menus_of(book, 1.0), {}
    for slot, names in enumerate(own):
        islands = oracle._islands(book.instance, [book.instance.workload[slot].name], 1.0, listed)
        others = [stands for stands in islands if not names <= names_of(stands)]
        if others:
            some = [*menus[:slot], oracle._menu(book, others), *menus[slot + 1 :]]
            yield from (float(f.objective(oracle.LISTED).min()) for f in oracle.fleets_of(book, some, oracle.LISTED))


@settings(max_examples=example_count(60))
@given(partitions())
def test_it_is_the_least_of_all_others(instance: Instance) -> None:
    plan = coopt.solve(instance, reasons=False)
    assume(plan.status == "optimal" and plan.objective.kind in ("capex", "tco"))
    try:
        least = least_of_others(instance, plan)
    except oracle.TooManyError:
        assume(False)
    found = with_nearest(instance, plan)
    verdict = coopt.verify(instance, found)
    assert verdict.accepted, verdict.failures
    assert (math.inf if found.next_best is None else found.next_best.value) == pytest.approx(least, rel=1e-9)


TWO_SWITCHES = {"network__switches": [switch(16, 11000), switch(32, 30000)], "network__fabrics": ["rail-only", "clos"]}


def alone(instance: Instance) -> Instance:
    """The first workload without others."""
    return instance.having(workload=instance.workload[:1])


@pytest.mark.parametrize(
    "instance", [two(**TWO_SWITCHES), alone(two(**TWO_SWITCHES)), growing_at(0.02, 0.04, **TWO_SWITCHES)]
)
def test_what_is_said_of_it_is_what_it_builds(instance: Instance) -> None:
    plan = with_nearest(instance, coopt.solve(instance))
    best = plan.next_best
    assert best is not None
    assert coopt.verify(instance, plan).accepted
    (told,) = (fact.shown for fact in rests_on(instance, plan) if fact.name == "Prices")
    assert told.startswith(("the closest alternative", "another choice costs"))
    assert " in place of " in told
    lies = [
        {"value": best.value + 1.0},
        {"parts": plan.parts, "cost": plan.cost, "couplings": plan.couplings, "value": plan.objective.value},
        {"parts": best.parts[:-1]},
        {"parts": ()},
        {"product": "16-port"},
        {"close": True},
    ]
    for lie in lies:
        wrong = plan.model_copy(update={"next_best": best.model_copy(update=lie)})
        assert not coopt.verify(instance, wrong).accepted, lie


def test_nothing_is_said_where_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = coopt.solve(two(**TWO_SWITCHES))
    spent = plan.timing_s.model_copy(update={"total": float(plan.solver.options["time_limit_s"])})
    assert with_nearest(two(**TWO_SWITCHES), plan.model_copy(update={"timing_s": spent})).next_best is None
    monkeypatch.setattr(nearest, "TIME_S", 1e-6)
    monkeypatch.setattr(nearest, "LISTINGS", 0)
    assert with_nearest(two(**TWO_SWITCHES), plan).next_best is None


def test_nothing_is_said_where_another_gpu_may_be_nearer() -> None:
    instance = two(cluster__gpu=["h100-sxm", "h200"], **TWO_SWITCHES)
    plan = coopt.solve(instance)
    assert plan.chosen.gpu is not None
    assert with_nearest(instance, plan).next_best is None
