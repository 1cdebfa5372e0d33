"""Plans of fleets are accepted as they are solved; what claims something else of parts, couplings or bound is not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.verifier.audit import verify
from coopt.verifier.couplings.fleet import Tariff
from coopt.verifier.couplings.orders import least_usd
from tests.conftest import example_count, question, small_model, switch
from tests.solving.fleets import SIDES, fleets
from tests.verifier.fleets import FLEETS
from tests.verifier.kinds import solved, without_plan
from tests.verifier.test_mutations import names_of, survivors

GONE_THROUGH = "all islands and choices were gone through"
EVERY = 11
"""One of so many mutants is tried: the plans have thousands of them."""


@settings(max_examples=example_count(8))
@given(fleets(phases=(1, 2, 3), sites=(0, 1, 2), cores=True, doubts=True, losses=True))
def test_answers_to_random_fleets_are_accepted(instance: Instance) -> None:
    verdict = verify(instance, coopt.solve(instance))
    assert verdict.failures == ()


def test_a_fleet_that_need_not_survive_a_loss_tells_of_none() -> None:
    instance = FLEETS["sites"]()
    assert instance.robust is None
    plan = coopt.solve(instance)
    table = plan.model_dump(mode="json", by_alias=True)
    lost = {"part": "nic", "nics_lost": 1, "slower": 1.5, "slowdown": 1.2}
    table["couplings"]["losses"] = [{"part": plan.parts[0].name, "survived": [lost]}]
    verdict = verify(instance, Plan.model_validate(table))
    assert [check.name for check in verdict.failures] == ["status"]


@settings(max_examples=example_count(8))
@given(fleets(phases=(1, 2, 3), sites=(0, 1), doubts=True, many_sided=SIDES))
def test_answers_to_random_fleets_of_planes_and_bundles_are_accepted(instance: Instance) -> None:
    verdict = verify(instance, coopt.solve(instance))
    assert verdict.failures == ()


BOX = switch(6, 3000) | {"modes": [{"radix": 12, "port_gbit_s": 200}]}
WIDE = {"name": "wide", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 100, "w": 10}
PLANES = {
    "hb_domains": {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 10},
    "fabrics": "clos",
    "nics": {"name": "nic", "gbit_s": 400, "ports": [1, 2], "usd": 500, "w": 20},
    "nic_planes": 2,
    "switches": BOX,
    "optics": WIDE,
}
BUNDLES = PLANES | {
    "hb_domains": {"name": "hb2", "size": 2, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 10},
    "nic_planes": 1,
    "nics_per_gpu": 2,
    "pod_bundles": 2,
    "switches": switch(8, 3000),
}


@pytest.mark.parametrize(
    ("network", "gpus", "tiers", "planes", "each"), [(PLANES, (16, 64), (2, 3), 2, 1), (BUNDLES, (8, 32), (3, 3), 1, 2)]
)
def test_planes_and_bundles_grow_with_whole_modules(
    network: dict[str, Any], gpus: tuple[int, int], tiers: tuple[int, int], planes: int, each: int
) -> None:
    phases = [{"gpus": n, "year": 2 * t, "retrofit_usd_per_link": 10} for t, n in enumerate(gpus)]
    workload = {"model": small_model(), "global_batch": 64, "max_iteration_time_s": 2.0, "name": "w"}
    table = question(cluster__gpus=gpus[-1], workload=[workload], phase=phases)
    instance = Instance.model_validate(table | {"network": network})
    plan = coopt.solve(instance)
    verdict = verify(instance, plan)
    assert verdict.failures == ()
    fabrics = [part.design.fabric for part in plan.parts if part.design is not None]
    assert [(one.tiers, one.nic.planes, one.pod_bundle) for one in fabrics] == [(n, planes, each) for n in tiers]
    dearer = plan.parts[0].model_copy(update={"power_w": plan.parts[0].power_w + 1})
    assert not verify(instance, plan.model_copy(update={"parts": (dearer, *plan.parts[1:])})).accepted


@pytest.mark.parametrize("case", FLEETS.values(), ids=FLEETS)
def test_meaningful_mutants_are_rejected(case: Callable[[], Instance]) -> None:
    instance = case()
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    verdict = verify(instance, plan)
    assert verdict.failures == ()
    assert [check.recomputed for check in verdict.checks if check.name == "bound-source"] == [GONE_THROUGH]
    words = names_of(instance) | {
        "site": [site.name for site in instance.site],
        "part": [part.name for part in plan.parts],
    }
    assert survivors(instance, plan.model_dump(mode="json", by_alias=True), words, every=EVERY) == []


def test_the_case_with_everything_grows_by_a_tier_and_buys_ahead() -> None:
    _, plan = solved("fleet")
    growth = plan.couplings.growth
    assert {core.site for core in plan.couplings.cores} == {"north", "south"}
    assert growth[0].stored
    assert plan.couplings.outlooks is not None
    assert len(plan.couplings.outlooks.turns) == 4
    assert len({part.design.gpus for part in plan.parts if part.design is not None}) == 3


def test_a_fleet_that_costs_more_is_no_optimum() -> None:
    instance = FLEETS["sites"]()
    network = instance.network.model_copy(update={"hb_domains": instance.network.hb_domains[1:]})
    dearer = coopt.solve(instance.model_copy(update={"network": network}))
    claim = dearer.model_copy(update={"instance": coopt.solve(instance).instance})
    assert {check.name for check in verify(instance, claim).failures} == {"bound"}


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_regret_is_measured_from_the_best_fleets_there_are(factor: float) -> None:
    instance, plan = solved("fleet")
    outlooks = plan.couplings.outlooks
    assert outlooks is not None
    turns = tuple(turn.model_copy(update={"best": turn.best * factor}) for turn in outlooks.turns)
    value = max(0.0, *(turn.value - turn.best for turn in turns))
    claim = plan.objective.model_copy(update={"value": value, "bound": value})
    couplings = plan.couplings.model_copy(update={"outlooks": outlooks.model_copy(update={"turns": turns})})
    wrong = plan.model_copy(update={"objective": claim, "couplings": couplings})
    assert "turns" in {check.name for check in verify(instance, wrong).failures}


def test_what_is_called_infeasible_and_is_not_is_rejected() -> None:
    for status, bound, name in (("infeasible", None, "infeasible"), ("unknown", 1e12, "bound")):
        claim = Plan.model_validate(without_plan("fleet", status, bound))
        assert {check.name for check in verify(FLEETS["everything"](), claim).failures} == {name}


@pytest.mark.parametrize("limit", ["couplings.fleet_paths.MOST_STAGES", "bounds.fleets.MOST_CHOICES"])
def test_a_large_fleet_says_that_its_bound_rests_on_the_solver(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"coopt.verifier.{limit}", 1)
    instance, plan = solved("fleet")
    verdict = verify(instance, plan)
    assert verdict.accepted
    assert verdict.on_trust == "the bound"


steps = st.lists(st.integers(1, 9), max_size=2, unique=True).map(sorted)
prices = st.lists(st.integers(0, 9), min_size=3, max_size=3).map(lambda row: sorted(row, reverse=True))


@settings(max_examples=example_count(200))
@given(
    st.lists(st.tuples(steps, prices, st.booleans()), min_size=1, max_size=3),
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
)
def test_orders_cost_what_all_orders_together_find(
    phases: list[tuple[list[int], list[int], bool]], rises: list[int]
) -> None:
    tariffs = tuple(Tariff(tuple(zip([0, *begins], usd, strict=False)), whole) for begins, usd, whole in phases)
    needed = tuple(sum(rises[: t + 1]) for t in range(len(tariffs)))
    every = product(range(max(needed[-1], 9) + 1), repeat=len(tariffs))
    served = (orders for orders in every if all(sum(orders[: t + 1]) >= need for t, need in enumerate(needed)))
    least = min(sum(one.usd(units) for one, units in zip(tariffs, orders, strict=True)) for orders in served)
    assert least_usd(tariffs, needed) == pytest.approx(least)
