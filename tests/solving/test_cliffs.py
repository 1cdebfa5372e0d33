"""What little money buys and little time saves is what the whole front has nearby."""

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.report.suggestions import changes as changes_of
from coopt.report.suggestions import other_numbers
from coopt.solving.cliffs import CLEAR, LITTLE, STEEP, with_cliffs
from tests.conftest import ask, switch


def near(instance: Instance, pace: float, value: float) -> dict[str, tuple[float, float]]:
    """The best designs of the front near one: pace and value of each."""
    found: dict[str, tuple[float, tuple[float, float]]] = {}
    for point in coopt.pareto(instance, points=1000).points:
        other = point.best.objective.value
        assert other is not None
        pairs = {
            "time": (1 - point.pace / pace, max(other / value - 1, 0.0)),
            "money": (1 - other / value, max(point.pace / max(pace, 1.0) - 1, 0.0)),
        }
        for buys, (gained, given) in pairs.items():
            if given <= LITTLE and gained >= max(LITTLE, CLEAR * given):
                found[buys] = max(found.get(buys, (-9.0, (0.0, 0.0))), (gained - STEEP * given, (point.pace, other)))
    return {buys: entry for buys, (_, entry) in found.items()}


ALL = ["gpu", "host", "hb", "nic", "switch", "optics"]
DAYS: dict[str, Any] = {
    **{"cluster__gpus": 512, "workload__0__global_batch": 512, "network__hb_domains": "hgx-h100-8"},
    **{"workload__0__train_tokens": 1e11, "workload__0__train_days": 4.0, "workload__0__max_iteration_time_s": None},
    **{"availability": {"rates": "llama-3"}, "objective": {"include": ALL}},
}


@pytest.mark.parametrize(
    ("changes", "bought"),
    [
        (DAYS, {"time"}),
        ({"workload__0__max_iteration_time_s": 0.051}, {"money"}),
        ({"workload__0__max_iteration_time_s": 0.3, "objective": {"minimize": "time"}}, {"money"}),
        ({"workload__0__max_iteration_time_s": 0.3}, set()),
    ],
)
def test_cliffs_are_the_nearest_steps_of_the_front(changes: dict[str, Any], bought: set[str]) -> None:
    instance = ask(**{"cluster__gpus": 128, "network__oversubscription": 4} | changes)
    plan = with_cliffs(instance, coopt.solve(instance))
    assert plan.cost is not None
    (run,) = plan.workloads
    pace = run.promised_s / instance.workload[0].bound_s
    expected = near(instance, pace, plan.cost.capex_usd)
    assert set(expected) == bought
    assert {cliff.buys: cliff.value for cliff in plan.cliffs} == pytest.approx({k: v for k, (_, v) in expected.items()})
    for cliff in plan.cliffs:
        assert cliff.pace == pytest.approx(expected[cliff.buys][0] / pace)
    assert coopt.verify(instance, plan).accepted
    assert len(list(other_numbers(instance, plan))) == len(plan.cliffs)
    for cliff in plan.cliffs:
        for change in ({"pace": cliff.pace * 0.99}, {"value": cliff.value * 1.01}, {"cost": plan.cost}):
            wrong = plan.model_copy(update={"cliffs": (cliff.model_copy(update=change),)})
            assert not coopt.verify(instance, wrong).accepted


def test_another_switch_above_the_same_leaves_is_another_product() -> None:
    instance = ask(
        **{"cluster__gpus": 32, "workload__0__global_batch": 32, "workload__0__max_iteration_time_s": 30.0},
        **{"network__hb_domains": "hgx-h100-8", "network__fabrics": "clos", "network__tier_switches": "any"},
        **{"network__switches": [switch(8, 4800), switch(16, 9600)], "network__oversubscription": 2},
    )
    plan = with_cliffs(instance, coopt.solve(instance))
    assert plan.next_best is not None
    assert changes_of(plan, plan.next_best).startswith("8-port below 16-port ")
