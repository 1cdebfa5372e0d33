"""One network that grows, at prices within intervals: the same as growth at prices known, worked out another way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.couplings import Robust
from coopt.instance.schema import Instance
from coopt.instance.variants import at_prices
from tests.conftest import example_count
from tests.solving.growing import clusters

KINDS = ("hb", "nic", "switch", "optics", "gpu")


def in_doubt(instance: Instance, prices: dict[str, list[float]], aim: str) -> Instance:
    robust = Robust.model_validate({"prices": prices, "aim": aim})
    return instance.model_copy(update={"robust": robust})


def alike(instance: Instance) -> Instance:
    """The instance with idle GPUs at the factor of those that train, on which fleets and growth differ."""
    phases = tuple(
        phase.model_copy(update={"price": phase.price.model_copy(update={"gpu": phase.price.hb})})
        for phase in instance.phase
    )
    return instance.model_copy(update={"phase": phases})


@st.composite
def intervals(draw: st.DrawFn) -> dict[str, list[float]]:
    """Intervals of factors, whole numbers so that prices stay whole."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2, unique=True))
    return {kind: [1.0, float(draw(st.integers(1, 4)))] for kind in kinds}


@settings(max_examples=example_count(20))
@given(clusters(), intervals())
def test_the_worst_prices_are_planned_for_as_if_they_were_known(
    instance: Instance, prices: dict[str, list[float]]
) -> None:
    instance = alike(instance)
    doubtful = in_doubt(instance, prices, "worst-case")
    assert doubtful.robust is not None
    known = coopt.solve(at_prices(instance, doubtful.robust.prices.worst))
    plan = coopt.solve(doubtful)
    assert plan.status == known.status
    if known.objective.value is not None:
        assert plan.objective.value == pytest.approx(known.objective.value, rel=1e-12)
        assert plan.parts[-1].name.startswith("network, ")
        verdict = coopt.verify(doubtful, plan)
        assert verdict.accepted, [check.why for check in verdict.checks if not check.ok]


@settings(max_examples=example_count(12))
@given(clusters(), intervals())
def test_regret_is_measured_from_growth_at_prices_known(instance: Instance, prices: dict[str, list[float]]) -> None:
    instance = alike(instance)
    doubtful = in_doubt(instance, prices, "regret")
    plan = coopt.solve(doubtful)
    if plan.status == "infeasible":
        assert coopt.solve(instance, reasons=False).status == "infeasible"
        return
    assert plan.couplings.outlooks is not None
    excess = []
    for turn in plan.couplings.outlooks.turns:
        known = coopt.solve(at_prices(instance, turn.factors))
        assert turn.best == pytest.approx(known.objective.value, rel=1e-12)
        excess.append(turn.value - turn.best)
    assert plan.objective.value == pytest.approx(max(0.0, *excess), abs=1e-6)
    assert coopt.verify(doubtful, plan).accepted
