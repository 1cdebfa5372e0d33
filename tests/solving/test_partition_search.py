"""A partition is the cheapest choice of options there is, recomputed from the data, and proven by cases."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Solver
from coopt.solving import highs
from coopt.solving.driver import Decided, Subproblem, _Search
from coopt.solving.fleet import least_limits
from coopt.solving.fleet.arrays import worth
from coopt.solving.fleet.least_limits import _exceeded
from coopt.solving.fleet.parts import narrowed, part_of, product_sets, prove_part, subset, useful
from coopt.solving.fleet.search import bounds_of_sets, lower_bound, search_partition
from coopt.solving.runs import Backend, StoppedError, backend_of
from formulations.choice_data import ChoiceData, Discount, Ints, LimitedUse, Product
from tests.conftest import example_count
from tests.formulations.partitions import doubtful_problems, enumerated, flat, growing_problems, problems, two_workloads


def least(data: ChoiceData, formulation: Literal["choice", "shares"] = "choice") -> float:
    found = search_partition(data, formulation=formulation)
    assert found.outcome == ("infeasible" if found.found is None else "optimal")
    return found.value


@pytest.mark.parametrize("drawn", [problems, growing_problems, doubtful_problems])
@settings(max_examples=example_count(120))
@given(data=st.data())
def test_the_optimum_agrees_with_enumeration_to_the_dollar(drawn: Callable[[], Any], data: st.DataObject) -> None:
    """The filter, brackets left out and sets of products cost no optimum, and no bound of a set is above its own."""
    problem = data.draw(drawn())
    expected = enumerated(problem)
    assert least(problem) == expected == enumerated(subset(problem, useful(problem)))
    if drawn is problems:
        sets = product_sets(problem)
        parts = [part_of(problem, rows) for rows in sets]
        assert least(problem, "shares") == expected == enumerated(narrowed(problem))
        assert min((enumerated(part) for part in parts), default=math.inf) == expected
        assert all(lower_bound(part) <= enumerated(part) for part in parts)
        rough = bounds_of_sets(problem, sets) if sets else []
        assert all(bound <= enumerated(part) for bound, part in zip(rough, parts, strict=True))


def test_bounds_are_sharpened_until_none_below_the_best_is_rough() -> None:
    rough, sharp, asked = (1.0, 2.0, 3.0, 9.0), (4.0, 7.0, math.inf, 9.0), list[int]()

    def sharpened(number: int) -> Subproblem[int]:
        asked.append(number)
        return Subproblem(number=number, bound=sharp[number])

    queue = [Subproblem[int](number=n, bound=rough[n], sharpened=partial(sharpened, n)) for n in range(4)]
    settings: Any = {"backend": backend_of(Solver()), "gap": 0.0, "deadline": math.inf, "on_standing": None}
    search = _Search[int](**settings, queue=queue, incumbent=Decided(choice=0, value=8.0))
    assert search._first_bound() == 4.0
    assert asked == [0, 1, 2]
    assert [one.number for one in search.queue] == [0, 1, 3]
    search.queue = search.queue[1:]
    assert search._first_bound() == 7.0
    assert asked == [0, 1, 2]


def test_a_choice_is_worth_what_its_parts_are() -> None:
    found = worth(two_workloads(), np.array([1, 3]))
    assert found.core_switches == (2,)
    assert found.quantity.tolist() == [0, 7]
    assert found.capex_usd == 2 + 4 + 7 * 9
    assert found.objective == found.capex_usd + 1 + 1 + 2 * 5
    assert found.uses == {"gpus": 10}
    assert found.is_within
    few = two_workloads(quantity=np.array([[1.0, 0], [0, 9], [2.0, 0], [0, 9]]))
    assert worth(few, np.array([0, 2])).capex_usd == 1 + 3 + 4 * 6  # too few for a bracket


def test_every_limit_that_a_choice_exceeds_is_named() -> None:
    data, rows = two_workloads(budget=1.0), np.array([1, 2])
    tight = replace(data, limits=(replace(data.limits[0], cap=1.0),))
    found = dict(_exceeded(tight, rows, worth(tight, rows)))
    assert [*found] == ["gpus", "limits.capex_usd", "sharing.most_products.hb"]
    assert found["sharing.most_products.hb"] == 2


def test_no_options_and_no_time_are_told_apart() -> None:
    assert search_partition(two_workloads(workloads=3)).outcome == "infeasible"
    assert search_partition(two_workloads(), deadline=0.0).outcome == "time limit"


def test_a_choice_over_its_limit_by_less_than_the_solver_sees_is_cut_off() -> None:
    data = two_workloads()
    tight = replace(data, limits=(replace(data.limits[0], use=data.limits[0].use * 1e9, cap=1e10 - 0.5),))
    found = search_partition(tight)
    assert found.cuts == 1
    assert found.value == enumerated(tight)


@pytest.mark.parametrize("formulation", ["choice", "shares"])
def test_scale_does_not_matter(formulation: Literal["choice", "shares"]) -> None:
    data = two_workloads()
    million = replace(
        data,
        usd=data.usd * 1e6, opex=data.opex * 1e6,
        products=tuple(replace(p, usd=p.usd * 1e6) for p in data.products), budget=100e6,
    )  # fmt: skip
    cores = tuple(replace(core, opex=5e6) for core in data.cores)
    assert least(replace(million, cores=cores), formulation) == 1e6 * least(data)


@pytest.mark.parametrize("seed", [1242, 3865, *range(example_count(150))])
def test_no_bound_is_above_the_exact_optimum_where_large_multipliers_cancel(seed: int) -> None:
    """Options that differ by a millionth in what they use of a limit that one choice just meets; the first two bounds
    were 3e-9 of their optimum above it."""
    data = nearly_alike(random.Random(seed))
    assert Fraction(lower_bound(data)) <= exact_optimum(data)


def nearly_alike(chance: random.Random) -> ChoiceData:
    """A few options a workload that use nearly the same, at prices far apart."""
    workloads = chance.choice([2, 3, 4])
    spread, count = 10 ** chance.uniform(-9, -4), 3 * workloads
    use = np.array([1000.0 * (1 + spread * chance.random()) for _ in range(count)])
    usd = np.array([chance.uniform(0, 10 ** chance.uniform(-2, 2)) for _ in range(count)])
    products = [flat("a", 10 ** chance.uniform(-9, 9))]
    if chance.random() < 0.5:
        start = np.array([0.0, float(chance.randint(2, 9))])
        prices = np.array(sorted([10 ** chance.uniform(-9, 9), 10 ** chance.uniform(-9, 9)], reverse=True))
        discount: Discount = chance.choice(["all-units", "incremental"])
        products.append(Product(name="b", start=start, usd=prices, discount=discount))
    return ChoiceData(
        workloads=workloads, workload=np.repeat(np.arange(workloads), 3), usd=usd, opex=0.0 * usd,
        quantity=np.array([[float(chance.randint(0, 3)) for _ in products] for _ in range(count)]),
        products=tuple(products),
        limits=(
            LimitedUse(
                name="l", key="l", use=use, cap=float(sum(use[chance.randrange(3) + 3 * w] for w in range(workloads)))
            ),
        ),
    )  # fmt: skip


def exact_optimum(data: ChoiceData) -> Fraction:
    """The least capex of all choices, in fractions; sums over a limit by their rounding are within it."""
    (limit,), found = data.limits, list[Fraction]()
    usd, use = [Fraction(x) for x in data.usd.tolist()], [Fraction(x) for x in limit.use.tolist()]
    for chosen in product(*(np.flatnonzero(data.workload == w).tolist() for w in range(data.workloads))):
        if sum(use[o] for o in chosen) <= Fraction(limit.cap) * (1 + Fraction(1, 10**15)):
            units = data.quantity[list(chosen)].sum(axis=0).tolist()
            bills = (bill_of(one, int(n)) for one, n in zip(data.products, units, strict=True))
            found.append(sum((usd[o] for o in chosen), Fraction()) + sum(bills, Fraction()))
    return min(found)


def bill_of(one: Product, units: int) -> Fraction:
    """The least bill of so many units or more."""
    prices, starts = [Fraction(x) for x in one.usd.tolist()], [int(x) for x in one.start.tolist()]

    def exactly(count: int) -> Fraction:
        if one.discount == "all-units":
            return count * prices[max(b for b, start in enumerate(starts) if start <= count)]
        ends = [*starts[1:], max(count, starts[-1])]
        pieces = zip(starts, ends, prices, strict=True)
        return sum((max(min(count, end) - start, 0) * usd for start, end, usd in pieces), Fraction())

    return min(exactly(count) for count in {units, *(start for start in starts if start > units)})


def test_the_bound_of_a_part_counts_its_limits() -> None:
    data = replace(two_workloads(), kinds=())
    (limit,) = data.limits
    assert lower_bound(data) < math.inf
    assert lower_bound(replace(data, limits=(replace(limit, cap=limit.use.min() / 2),))) == math.inf


every_problem = st.one_of(problems(), growing_problems(), doubtful_problems())


def shown(data: ChoiceData, value: float) -> tuple[float, float | None]:
    """The bound that cases show of a value, and what a choice is worth that they meet below it."""

    def worth_of(chosen: Ints, floor: float = math.inf) -> float:
        found = worth(data, chosen)
        return found.objective if found.is_within else math.inf

    bound, better = prove_part(data, value, time.perf_counter() + 60, worth_of)
    return bound, None if better is None else worth_of(better)


@settings(max_examples=example_count(200))
@given(every_problem)
def test_cases_show_the_least_value_and_nothing_above_it(data: ChoiceData) -> None:
    least = enumerated(data)
    assume(math.isfinite(least))
    assert shown(data, least) == (least, None)
    for above in (least * (1 + 1e-9) + 1e-6, least * 1.01 + 1, least * 2 + 1):
        bound, better = shown(data, above)
        assert bound == -math.inf
        assert better is None or least <= better < above


class Overlooking(Backend):
    """A solver that stops at the first choice it meets and calls it the best."""

    def solve(self, model: Any, time_limit_s: float, *more: Any, **settings: Any) -> highs.SolverAnswer:
        first = highs.solve(model, time_limit_s=time_limit_s, settings=self.settings | {"mip_rel_gap": 1e6})
        return first if first.value is None else replace(first, outcome="optimal", bound=first.value)


@settings(max_examples=example_count(150))
@given(every_problem)
def test_what_a_solver_overlooks_is_found(data: ChoiceData) -> None:
    honest = backend_of(Solver())
    wrong = Overlooking(name="overlooking", version="1", settings=honest.settings)
    found = search_partition(data, backend=wrong)
    least = enumerated(data)
    if found.found is None:
        assert math.isinf(least)
    else:
        assert np.isclose(found.value, least, rtol=1e-12, atol=1e-9)
        assert found.bound <= least * (1 + 1e-12) + 1e-9


def test_that_no_limit_alone_helps_is_told_though_the_last_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise StoppedError

    for name in ("_by_limits", "_by_budget", "_by_products"):
        monkeypatch.setattr(least_limits, name, lambda *_: ())
    monkeypatch.setattr(least_limits, "_least_choice", stopped)
    (said,) = least_limits.over_limits(None, [])  # type: ignore[arg-type]
    assert said.endswith("several looser limits")
    monkeypatch.setattr(least_limits, "_by_limits", stopped)
    assert least_limits.over_limits(None, []) == (least_limits.UNTRIED,)  # type: ignore[arg-type]
