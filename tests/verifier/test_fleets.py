"""Plans of fleets are accepted as they are solved; what claims something else of parts, couplings or bound is not."""

import math
from itertools import product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.verifier.audit import verify
from coopt.verifier.bounds.fleets import ENUMERATED, LACKING, choices_of
from coopt.verifier.couplings.fleet import Tariff
from coopt.verifier.couplings.orders import least_usd
from tests.conftest import example_count, question, small_model, switch
from tests.verifier.kinds import solved

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
def test_planes_and_bundles_grow_with_whole_modules(network, gpus, tiers, planes, each):
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


def test_the_case_with_everything_grows_by_a_tier_and_buys_ahead() -> None:
    _, plan = solved("fleet")
    growth = plan.couplings.growth
    assert {core.site for core in plan.couplings.cores} == {"north", "south"}
    assert growth[0].stored
    assert len(plan.couplings.outlooks.turns) == 4
    assert len({part.design.gpus for part in plan.parts if part.design is not None}) == 3


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_regret_is_measured_from_the_best_fleets_there_are(factor: float) -> None:
    instance, plan = solved("fleet")
    outlooks = plan.couplings.outlooks
    turns = tuple(turn.model_copy(update={"best": turn.best * factor}) for turn in outlooks.turns)
    value = max(0.0, *(turn.value - turn.best for turn in turns))
    claim = plan.objective.model_copy(update={"value": value, "bound": value})
    couplings = plan.couplings.model_copy(update={"outlooks": outlooks.model_copy(update={"turns": turns})})
    wrong = plan.model_copy(update={"objective": claim, "couplings": couplings})
    assert "turns" in {check.name for check in verify(instance, wrong).failures}


@pytest.mark.parametrize("limit", ["couplings.fleet_paths.MOST_STAGES", "bounds.fleets.MOST_CHOICES"])
def test_a_large_fleet_says_that_its_bound_rests_on_the_solver(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"coopt.verifier.{limit}", 1)
    choices_of.cache_clear()
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
def test_orders_cost_what_all_orders_together_find(phases, rises):
    tariffs = tuple(Tariff(tuple(zip([0, *begins], usd, strict=False)), whole) for begins, usd, whole in phases)
    needed = tuple(sum(rises[: t + 1]) for t in range(len(tariffs)))
    every = product(range(max(needed[-1], 9) + 1), repeat=len(tariffs))
    served = (orders for orders in every if all(sum(orders[: t + 1]) >= need for t, need in enumerate(needed)))
    least = min(sum(one.usd(units) for one, units in zip(tariffs, orders, strict=True)) for orders in served)
    assert least_usd(tariffs, needed) == pytest.approx(least)


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_list_without_the_networks_of_the_plan_proves_nothing(monkeypatch, is_whole):
    instance, plan = solved("partition")
    if not is_whole:
        empty = SimpleNamespace(least_value=lambda *_: math.inf)
        monkeypatch.setattr("coopt.verifier.bounds.fleets.choices_of", lambda *_: empty)
    verdict = verify(instance, plan)
    (source,) = (check.recomputed for check in verdict.checks if check.name == "bound-source")
    assert verdict.accepted
    assert source == (ENUMERATED if is_whole else LACKING)
