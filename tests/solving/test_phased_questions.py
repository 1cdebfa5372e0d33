"""Phases that do not go together are refused, and those that nothing meets say which phase and which limit."""

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.instance.variants import of_phase
from coopt.network.growth import lines
from coopt.network.parts import cost_of
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import PLAIN_H100, ask, small_model, switch

FIRST: dict[str, Any] = {"year": 2026, "gpus": 32}
LAST: dict[str, Any] = {"year": 2028, "gpus": 64}


def growing(*phases: dict[str, Any], **changes: Any) -> Instance:
    return ask(phase=list(phases) or [FIRST, LAST], **changes)


@pytest.mark.parametrize("given", [{"objective": "power"}, {"top": 2}])
def test_a_caller_cannot_ask_for_what_phases_do_not_have(given: dict[str, Any]) -> None:
    with pytest.raises(InstanceError, match="phase"):
        solve(growing(), **given)


def test_what_looks_at_one_network_asks_for_the_phase() -> None:
    instance = growing()
    plan = solve(instance)
    names = [part.name for part in plan.parts]
    with pytest.raises(InstanceError, match=", ".join(map(repr, names))):
        coopt.route(instance, plan)
    assert [len(coopt.route(instance, plan, part=name).workloads) for name in names] == [1] * len(names)
    counts = [coopt.faults(instance, plan, part=name).faults[0].count for name in names]
    assert counts == [phase.gpus for phase in instance.phase]


def test_a_phase_has_its_own_workloads_and_bounds() -> None:
    phase = FIRST | {"workloads": [{"name": "w", "min_tokens_per_s": 1000.0}]}
    question_then, question_last = (of_phase(growing(phase, LAST), t) for t in (0, 1))
    assert question_then.cluster.gpus == (32,)
    assert (question_then.workload[0].min_tokens_per_s, question_then.workload[0].max_iteration_time_s) == (
        1000.0,
        None,
    )
    assert question_last.workload[0].max_iteration_time_s == 1.0
    assert not question_then.beyond_one_network


def told(instance: Instance) -> str:
    plan = solve(instance)
    assert plan.status == "infeasible"
    assert verify(instance, plan).accepted
    return " ".join(plan.explanation)


def _domain(size: int, gbyte_s: float = 450) -> dict[str, Any]:
    return {"name": f"hb{size}", "size": size, "gbyte_s": gbyte_s, "usd_per_gpu": 1, "w_per_gpu": 1}


HOPELESS = FIRST | {"workloads": {"name": "w", "max_iteration_time_s": 0.001}}
WHY: dict[str, tuple[Instance, str]] = {
    "a bound": (growing(HOPELESS, LAST), "phase of 2026: workload 'w': the fastest design takes"),
    "a limit": (growing(limits={"power_mw": 0.002}), "limits.power_mw = 0.002: needs at least"),
    "no common domain, though each phase alone has one": (
        growing(FIRST | {"gpus": 36}, LAST, network__hb_domains=[_domain(9), _domain(8)]),
        "no HB domain can have the same number of active GPUs in every phase (36, 64 GPUs)",
    ),
}


@pytest.mark.parametrize(("instance", "says"), WHY.values(), ids=WHY)
def test_why_nothing_grows_is_said(instance: Instance, says: str) -> None:
    assert says in told(instance)


def test_uplinks_that_even_bundles_rule_out_in_an_earlier_phase_are_said() -> None:
    # 16 uplinks on 8 spines in the end, with two links each; a leaf of 15 domains would have one link left over
    phases = FIRST | {"gpus": 150}, LAST | {"gpus": 160}
    rails = {"hb_domains": _domain(10), "fabrics": "rail-optimized", "switches": switch(32, 1000)}
    network = {f"network__{key}": part for key, part in rails.items()} | {"network__oversubscription": 1.0}
    text = told(growing(*phases, cluster__gpus=160, **network))
    assert "of 160 GPUs" in text
    assert "network.bundles = 'any'" in text
    assert any(lines(growing(*phases, cluster__gpus=160, **network, network__bundles="any")))


def test_bounds_that_ask_for_two_networks_are_told_from_a_bound_nobody_meets() -> None:
    shape = {"model": small_model(), "global_batch": 256}
    narrow = shape | {"name": "narrow", "max_iteration_time_s": 0.595, "mapping": {"tp": 8, "micro_batch": 1}}
    wide = shape | {"name": "wide", "max_iteration_time_s": 0.47, "mapping": {"tp": 16, "micro_batch": 1}}
    domains = [_domain(8, 900), _domain(16, 450)]
    phases = FIRST | {"workloads": "narrow"}, LAST | {"workloads": "wide"}
    gpu = {"extends": "h100-sxm", "efficiency": PLAIN_H100}
    text = told(growing(*phases, workload=[narrow, wide], network__hb_domains=domains, cluster__gpu=gpu))
    assert text.startswith("no network meets")
    factor = float(text.split("needs bounds ")[1].split(" times")[0])
    longer = [one | {"max_iteration_time_s": factor * one["max_iteration_time_s"]} for one in (narrow, wide)]
    eased = growing(*phases, workload=longer, network__hb_domains=domains, cluster__gpu=gpu)
    assert solve(eased).status == "optimal"


def test_uplinks_that_stand_count_against_the_limit_of_a_later_phase() -> None:
    slow = {"nics": {"name": "n", "gbit_s": 50, "usd": 1, "w": 1}, "hb_domains": _domain(8), "fabrics": "clos"}
    slow |= {"optics": {"name": "o", "gbit_s": 50, "reach_m": 500, "usd": 1, "w": 9}, "switches": switch(16, 5000, 50)}
    changes = {f"network__{key}": part for key, part in slow.items()}
    full = solve(of_phase(growing(**changes, network__oversubscription=1.0), 0)).workloads[0].iteration_time_s
    quick = FIRST | {"workloads": {"name": "w", "max_iteration_time_s": full}}
    (line,) = lines(growing(**changes))
    watts = [cost_of(growing(**changes), line[-1], u).power_w for u in line[-1].uplink_choices]
    plan = solve(growing(quick, LAST, **changes, limits={"power_mw": watts[-1] / 1e6}))
    assert [part.design.fabric.tier[0].uplinks_per_switch for part in plan.parts] == [8, 8]
    text = told(growing(quick, LAST, **changes, limits={"power_mw": watts[-2] / 1e6}))
    least = float(text.split("needs at least ")[1].split(" ")[0])
    assert text.startswith("limits.power_mw = ")
    assert least == pytest.approx(watts[-1] / 1e6)


def test_an_interrupt_keeps_what_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coopt.solving.fleet.search.build", interrupted)
    instance = growing()
    plan = solve(instance)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")
    monkeypatch.undo()
    assert plan.objective.bound == pytest.approx(solve(instance).objective.value, rel=1e-8)
    assert verify(instance, plan).accepted


def test_a_phase_that_changes_nothing_costs_nothing() -> None:
    instance = growing(LAST | {"year": 2027}, LAST)
    plan = solve(instance)
    assert plan.couplings.growth[1].bought == ()
    alone = solve(of_phase(instance, 1))
    assert plan.objective.value == alone.objective.value


@pytest.mark.parametrize("aim", ["regret", "worst-case"])
def test_prices_in_doubt_are_not_compared_with_those_of_no_foresight(aim: str) -> None:
    """Nothing checks such a comparison, so that no plan may make one."""
    instance = growing(robust={"aim": aim, "prices": {"switch": [0.5, 2.0]}})
    plan = solve(instance)
    assert plan.couplings.myopic is None
    told = plan.couplings.model_copy(update={"myopic": solve(growing()).couplings.myopic})
    failures = verify(instance, plan.model_copy(update={"couplings": told})).failures
    assert [check.name for check in failures] == ["status"]
