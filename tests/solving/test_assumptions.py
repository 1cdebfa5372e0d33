"""What a plan takes for granted is worth what the question with it otherwise says."""

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Assumption
from coopt.plan.store import decided
from tests.conftest import FEW_MAPPINGS, ask, small_model, switch

ONE: dict[str, Any] = {
    **{"cluster__gpus": 128, "network__hb_domains": "hgx-h100-8", "network__fabrics": "clos"},
    **{"network__switches": [switch(32, 30_000)], "network__oversubscription": [2.0], "network__max_tiers": 2},
    **{"network__charge": "loads"},
    **{"objective": {"minimize": "time"}, "workload__0__max_iteration_time_s": None},
}
EXPERTS = {"workload__0__model": small_model(experts=8, top_k=2), "workload__0__balance": "trained"}
MOE: dict[str, Any] = ONE | EXPERTS | {"workload__0__mapping": FEW_MAPPINGS | {"tp": 1, "ep": 8}}


def assumed(instance: Instance) -> tuple[coopt.Plan, list[Assumption]]:
    plan = coopt.assess(instance, coopt.solve(instance))
    assert coopt.verify(instance, plan).accepted
    return plan, list(plan.assumptions)


@pytest.mark.parametrize(
    ("changes", "other", "key"),
    [
        (ONE, {"network__routing": "ecmp"}, 'network.routing = "ecmp"'),
        (MOE, {"workload__0__balance": "forced"}, 'workload.balance = "forced"'),
        (MOE | {"workload__0__balance": "forced"}, {"workload__0__balance": "trained"}, 'workload.balance = "trained"'),
    ],
)
def test_another_assumption_takes_as_long_as_the_fastest_plan_with_it(
    changes: dict[str, Any], other: dict[str, Any], key: str
) -> None:
    instance = ask(**changes)
    plan, found = assumed(instance)
    (one,) = (assumption for assumption in found if assumption.key == key)
    times = [each.objective.value for each in (coopt.solve(ask(**changes | other)), plan)]
    assert one.time_ratio == pytest.approx(times[0] / times[1], rel=1e-9)
    assert one.time_ratio != 1.0
    assert one.run is not None
    told = [
        {name: getattr(one.run, name) * 1.05} for name in ("tokens_per_s", "mfu_causal", "memory_limit_gib", "bound_s")
    ]
    runs = [{"run": one.run.model_copy(update=wrong)} for wrong in (*told, {"breakdown_s": {}})]
    runs += [{"run": one.run.model_copy(update=wrong)} for wrong in ({"gpus": 64}, {"name": "x"}, {"routes": {"x": 1}})]
    plain = ({"time_ratio": one.time_ratio * 1.01}, {"run": None}, {"workload": "x"}, {"spare_domains": 1})
    for wrong in (*plain, {"key": "network.x = 1"}, *runs):
        lie = plan.model_copy(update={"assumptions": (one.model_copy(update=wrong),)})
        assert not coopt.verify(instance, lie).accepted


def test_failures_take_what_the_question_with_them_says() -> None:
    plan, found = assumed(ask(**ONE))
    counted = [one for one in found if one.key == 'availability.rates = "llama-3"']
    assert counted[0].spare_domains == 0 < counted[-1].spare_domains
    for one in counted:
        failing = ask(**ONE, availability={"rates": "llama-3", "spare_domains": one.spare_domains})
        (run,) = coopt.solve(failing).workloads
        assert run.uptime is not None
        assert one.time_ratio == pytest.approx(1.0 / run.uptime.goodput)
    lie = plan.model_copy(update={"assumptions": (counted[0].model_copy(update={"spare_domains": -1}),)})
    assert not coopt.verify(ask(**ONE), lie).accepted
    assert not any("availability" in one.key for one in assumed(ask(**ONE, availability={"rates": "llama-3"}))[1])


SWITCHES: dict[str, Any] = {"cluster__gpus": 64, "network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}


@pytest.mark.parametrize("kind", ["capex", "tco"])
def test_a_choice_turns_at_the_price_that_its_plan_says(kind: str) -> None:
    def question(**usd: float) -> Instance:
        listed = [switch(radix, usd.get(f"{radix}-port", price)) for radix, price in ((8, 5000), (16, 11000))]
        terms = {"minimize": kind, "labour_share": 0.1, "support_share": 0.05}
        return ask(**SWITCHES, network__switches=listed, objective=terms)

    plan, _ = assumed(question())
    best = plan.next_best
    assert best is not None
    assert plan.design is not None
    assert best.product in ("8-port", "16-port")
    price = next(entry.usd for entry in question().network.switches if entry.name == best.product)
    for share, chosen in ((0.999, plan.design), (1.001, best.design)):
        usd = price * (1.0 + (best.turns_at - 1.0) * share)
        found = coopt.solve(question(**{best.product: usd})).design
        assert found is not None
        assert found.fabric.switch == chosen.fabric.switch
    wrongs = {"turns_at": best.turns_at * 1.01, "value": best.value + 1, "close": not best.close, "doubt": 0.1}
    for wrong in ({key: value} for key, value in wrongs.items()):
        lie = plan.model_copy(update={"next_best": best.model_copy(update=wrong)})
        assert not coopt.verify(question(), lie).accepted


TWO_GPUS: dict[str, Any] = {
    "cluster__gpus": 64, "cluster__gpu": ["h100-sxm", "h200"], "network__hb_domains": ["hgx-h100-8", "hgx-h200-8"],
    "objective": {"include": ["gpu", "hb", "nic", "switch", "optics"]},
}  # fmt: skip


def test_the_next_best_gpu_is_told_and_a_close_call_is_called_one() -> None:
    instance = ask(**TWO_GPUS)
    plan, _ = assumed(instance)
    best = plan.next_best
    assert best is not None
    assert {plan.chosen.gpu, best.chosen.gpu} == {"h100-sxm", "h200"}
    assert best.close
    assert best.product in ("h100-sxm", "h200")
    elsewhere = best.model_copy(update={"chosen": best.chosen.model_copy(update={"gpu": "b200"})})
    assert not coopt.verify(instance, plan.model_copy(update={"next_best": elsewhere})).accepted
    assert coopt.verify(*decided(instance, plan)).accepted
    robust, _ = assumed(ask(**TWO_GPUS, robust={"prices": {"nic": [0.5, 2.0]}}))
    assert robust.next_best is None


def test_an_interrupt_leaves_the_plan_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coopt.solving.assumptions.with_cliffs", interrupted)
    instance = ask(**ONE)
    plan = coopt.solve(instance)
    found = coopt.assess(instance, plan)
    assert found.assumptions
    assert found.model_copy(update={"assumptions": (), "better_numbers": ()}) == plan
