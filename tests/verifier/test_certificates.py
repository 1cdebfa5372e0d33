"""Bounds are proven in fractions, without a solver and without numpy."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.certificates import certify
from coopt.verifier.parts.enumeration import cheapest_design
from tests.conftest import example_count
from tests.solving.sites.oracle import enumerated, instances
from tests.verifier.cases import ask
from tests.verifier.forgeries import claiming
from tests.verifier.kinds import KINDS, solved, without_plan

PROVEN = ("shared", "runners-up", "phased", "robust", "sites")


@pytest.mark.parametrize("kind", PROVEN)
def test_a_bound_is_proven_and_a_higher_one_is_not(kind: str) -> None:
    instance, plan = solved(kind)
    value = plan.objective.value
    found = certify(instance, plan)
    assert (found.ok, found.bound_claimed, found.bound_proven) == (True, plan.objective.bound, plan.objective.bound)
    for factor in (1 + 1e-12, 100.0):
        higher = certify(instance, claiming(plan, value * factor))
        assert not higher.ok
        assert higher.bound_proven == pytest.approx(value, rel=1e-14)
    assert certify(instance, claiming(plan, value / 2)).ok
    assert not certify(instance, Plan.model_validate(without_plan(kind, "infeasible"))).ok


def test_a_least_regret_is_proven_with_the_best_design_of_every_outlook() -> None:
    prices = {"nic": [0.2, 3.0], "hb": [0.5, 2.0]}
    instance = ask(robust={"aim": "regret", "prices": prices}, cluster__gpus=[8, 16])
    plan = solve(instance)
    value, outlooks = plan.objective.value, plan.couplings.outlooks
    assert certify(instance, plan).ok
    assert not certify(instance, claiming(plan, value * 1.001 + 1.0)).ok
    for factor in (0.99, 1.01):
        turns = tuple(turn.model_copy(update={"best": turn.best * factor}) for turn in outlooks.turns)
        changed = plan.couplings.model_copy(update={"outlooks": outlooks.model_copy(update={"turns": turns})})
        found = certify(instance, plan.model_copy(update={"couplings": changed}))
        assert (found.ok, found.bound_proven) == (False, None)


def test_that_nothing_is_feasible_is_proven_where_it_is_so() -> None:
    hopeless = ask(workload__0__max_iteration_time_s=0.01)
    found = certify(hopeless, solve(hopeless, reasons=False))
    assert (found.ok, found.bound_claimed, found.bound_proven) == (True, None, None)
    assert set(found.reasons) == {"designs too slow or short of memory"}
    with_bound = certify(hopeless, claiming(solve(hopeless, reasons=False), 1.0))
    assert (with_bound.ok, with_bound.bound_proven) == (False, None)


@pytest.mark.parametrize("kind", ["direct", "switches"])
def test_links_are_proven_by_the_lengths_of_their_plan_where_whole_links_of_domains_do_not_suffice(kind: str) -> None:
    found = certify(*solved(kind))
    assert found.ok
    by = (
        "weights and cuts of the graph of direct links"
        if kind == "direct"
        else "the fewest whole links that each HB domain needs"
    )
    assert found.by.startswith(f"{by}; ")


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {*PROVEN, "regret", "direct", "switches"}))
def test_what_is_not_gone_through_is_not_called_proven(kind: str) -> None:
    found = certify(*solved(kind))
    assert (found.ok, found.bound_proven) == (False, None)
    assert found.by == ""
    assert found.missing


def test_sums_are_those_of_numbers_as_they_are_written() -> None:
    """Seven switches at 0.1 are 0.7, which floats do not say."""
    cheap = {"name": "cheap", "radix": 16, "port_gbit_s": 400, "usd": 0.1, "w": 1.0}
    instance = ask(network__switches=[cheap], objective__include=["switch"])
    plan = solve(instance)
    found = certify(instance, plan)
    assert found.ok
    design, _ = cheapest_design(instance, "capex", float("inf"))
    assert design.value == Fraction(plan.design.fabric.switch_count, 10)


def test_nothing_is_claimed_by_an_answer_without_a_bound() -> None:
    found = certify(solved("shared")[0], Plan.model_validate(without_plan("shared", "unknown")))
    assert (found.ok, "claims no bound" in found.by) == (True, True)


def test_another_question_or_objective_is_not_proven() -> None:
    instance, plan = solved("shared")
    with pytest.raises(InstanceError, match="of another instance"):
        certify(ask(cluster__gpus=32), plan)
    swapped = plan.model_copy(update={"objective": plan.objective.model_copy(update={"kind": "power"})})
    assert not certify(instance, swapped).ok


@settings(max_examples=example_count(40, usual=2))
@given(instance=instances())
def test_no_more_is_proven_of_sites_than_the_optimum(instance: Instance) -> None:
    """Limits of all sites together are not counted; without any the whole bound is proven."""
    optimum, plan = enumerated(instance), solve(instance)
    for claimed in (None if math.isinf(optimum) else optimum, 1.01 * optimum + 1.0):
        status = "infeasible" if claimed is None else "optimal"
        bound = claimed if claimed is None or math.isfinite(claimed) else 1e15
        found = certify(instance, claiming(plan, bound).model_copy(update={"status": status}))
        if claimed == optimum or claimed is None:
            assert found.ok or instance.limits.racks is not None
        elif math.isfinite(optimum):
            assert not found.ok
        assert found.bound_proven is None or found.bound_proven <= optimum * (1 + 1e-12)
