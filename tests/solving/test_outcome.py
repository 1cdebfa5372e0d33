"""What a claim says of its value: the bound never lies above it, and the gap is what lies between them."""

from __future__ import annotations

import math

import pytest

from coopt.solving.driver import claim_of, infeasible
from coopt.solving.runs import Run, StoppedError, backend_of
from tests.conftest import ask


@pytest.mark.parametrize(
    ("value", "proven", "bound", "gap"),
    [
        (200.0, 150.0, 150.0, 0.25),
        (200.0, 200.0, 200.0, 0.0),
        (200.0, 200.0 + 1e-7, 200.0, 0.0),  # a bound that a tolerance of the solver lifted above the plan it found
        (200.0, math.inf, 200.0, 0.0),  # nothing else is feasible
        (200.0, -math.inf, None, None),  # nothing is proven
        (0.0, 0.0, 0.0, 0.0),
        (0.0, -1.0, 0.0, 0.0),  # nothing is worth less than nothing
    ],
)
def test_a_bound_is_at_most_the_value_it_bounds(
    value: float, proven: float, bound: float | None, gap: float | None
) -> None:
    claim = claim_of("capex", value, proven)
    assert (claim.kind, claim.value, claim.bound, claim.gap) == ("capex", value, bound, gap)


def test_a_regret_of_nothing_is_proven_though_the_solver_found_less() -> None:
    claim = claim_of("capex", 0.0, -6.606369424844161e-10)
    assert (claim.bound, claim.gap) == (0.0, 0.0)


def test_what_only_the_last_digits_keep_from_the_value_is_no_gap() -> None:
    short = math.nextafter(690.0, 0.0)
    claim = claim_of("power", 690.0, short)
    assert (claim.bound, claim.gap) == (690.0, 0.0)
    claim = claim_of("power", 690.0, 690.0 * (1 - 1e-11))
    assert claim.bound == 690.0 * (1 - 1e-11)
    assert claim.gap > 0


def test_that_there_is_no_plan_stays_proven_where_time_runs_out_for_the_reasons() -> None:
    def reasons() -> tuple[str, ...]:
        raise StoppedError("time limit")

    run = Run(instance=ask(), backend=backend_of(ask().solver), on_progress=None)
    plan = infeasible(run, reasons)
    assert plan.status == "infeasible"
    assert "time limit" in plan.explanation[0]
