"""What is claimed of parts of a partition is proven by cases, and no solver has to be believed."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.instance.schema import Solver
from coopt.solving import highs
from coopt.solving.fleet.arrays import worth
from coopt.solving.fleet.parts import prove_part
from coopt.solving.fleet.search import search_partition
from coopt.solving.runs import Backend, backend_of
from formulations.choice_data import ChoiceData, Ints
from tests.conftest import example_count
from tests.formulations.partitions import doubtful_problems, enumerated, growing_problems, problems

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
        assert bound == -math.inf, "a value above the least was shown"
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
