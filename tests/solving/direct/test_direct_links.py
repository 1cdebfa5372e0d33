"""Direct links between HB domains: as few as enumeration finds, verified, and compared with switches."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.parts import LinkRoute
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.words import rendered
from coopt.solving.direct.grid import DomainGrid, paces_on, routes
from coopt.traffic.of_plan import demands
from tests.changes import with_part
from tests.conftest import question, small_model, switch
from tests.solving.direct.oracle import fewest_links

FOUR = {"name": "four", "size": 4, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0, "racks": 1}
SLOW = {
    "network__nics": [{"name": "slow", "gbit_s": 10, "usd": 300, "w": 5}],
    "network__optics": [{"name": "slow end", "gbit_s": 10, "reach_m": 500, "usd": 40, "w": 1}],
}


def linked(**changes: Any) -> dict[str, Any]:
    """16 GPUs in four domains of four ports."""
    table: dict[str, Any] = {
        "cluster__gpus": 16, "network__hb_domains": [FOUR], "network__fabrics": ["direct", "rail-only", "clos"],
        "network__panels": ["patch-panel", "ocs"], "network__switches": [switch(8, 5000, 10)],
        **SLOW,
        "workload__0__mapping": {"micro_batch": [1], "zero": [0, 1], "recompute": ["none"]},
        "workload__0__max_iteration_time_s": 2.2,
    }  # fmt: skip
    return question(**(table | changes))


@pytest.fixture(scope="module")
def answered() -> tuple[Instance, Plan]:
    instance = Instance.model_validate(linked())
    return instance, coopt.solve(instance)


def test_the_plan_is_direct_accepted_and_told(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    assert (plan.status, plan.parts[0].links.links) == ("optimal", 8)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures

    def told(path: tuple[int, ...]) -> str:
        routes = (LinkRoute(path=path, share=1.0),)
        phases = tuple(one.model_copy(update={"routes": routes}) for one in plan.parts[0].links.phases)
        links = plan.parts[0].links.model_copy(update={"phases": phases})
        return " ".join(rendered(plan_report(instance, with_part(plan, links=links))).split())

    for words in (
        "direct links through patch-panel",
        "Bundles of links",
        "Traffic between domains",
        "With switches, the",
    ):
        assert words in told((0, 1))
    passing_on = "takes no time in the model"
    assert [passing_on in told(path) for path in ((0, 1), (0, 1, 2))] == [False, True]
    other = Instance.model_validate(question())
    rivals = coopt.solve(other).model_copy(update={"rivals": plan.rivals})
    assert not coopt.verify(other, rivals).accepted  # one network has no rivals


MAPPINGS: dict[str, tuple[dict[str, Any], tuple[float, ...]]] = {
    "one stage": ({"pp": [1], "interleave": [1, 2]}, (1.8, 4.0)),
    "two stages": ({"pp": [2], "interleave": [1, 2]}, (1.5, 3.0)),
    "four stages": ({"pp": [4], "interleave": [1, 2]}, (1.8, 4.0)),
    "any stages": ({"pp": [1, 2, 4], "interleave": [1, 2]}, (1.5,)),
    "contexts in every domain": ({"tp": [4], "cp": [4], "pp": [1]}, (12.0, 30.0)),
    "contexts in and across domains": ({"tp": [2], "cp": [4], "pp": [2]}, (12.0,)),
    "chunks that go round": ({"tp": [4], "cp": [2], "pp": [2], "interleave": [1, 2]}, (20.0,)),
    "any ring": ({"tp": [2, 4], "cp": [1, 2, 4], "pp": [1, 2, 4]}, (12.0,)),
    "contexts beside replicas": ({"tp": [4], "cp": [2], "dp": [2]}, (20.0, 30.0)),
}


@pytest.mark.parametrize("name", MAPPINGS)
def test_links_are_as_few_as_enumeration_finds(name: str) -> None:
    mapping, bounds_s = MAPPINGS[name]
    for bound_s in bounds_s:
        plan, expected = counted(small_model(tied_embeddings=False), bound_s, mapping)
        if mapping.get("cp", [1, 2, 4]) != [1, 2, 4]:
            assert (expected is None) == (bound_s == 12.0 and mapping["pp"] == [1])
            for run in plan.workloads if expected is not None else ():
                assert run.placement["cp"][1] > 1
                assert (run.placement["dp"][1] > 1) == ("dp" in mapping)


def counted(model: dict[str, Any], bound_s: float, mapping: dict[str, Any]) -> tuple[Plan, int | None]:
    """The plan of one workload and the links that enumeration finds: as many, and what the verifier and the simulation
    say of it."""
    mapping = {"micro_batch": [1], "zero": [1], "recompute": ["none"], "sequence_parallel": [True]} | mapping
    workload = {"name": "w", "model": model, "global_batch": 64, "mapping": mapping, "max_iteration_time_s": bound_s}
    workload["allow_tp_across"] = False
    instance = Instance.model_validate(linked(workload=[workload], network__switches=[switch(8, 500_000, 10)]))
    plan, expected = coopt.solve(instance), fewest_links(instance, 4)
    assert coopt.verify(instance, plan).accepted
    assert [part.links.links for part in plan.parts if part.links] == ([] if expected is None else [expected])
    if "cp" in mapping and expected is not None:
        (run,), (simulated,) = plan.workloads, coopt.simulate(instance, plan).workloads
        assert simulated.simulated_s == pytest.approx(run.iteration_time_s, rel=1e-9)
        turned = run.placement | {"cp": run.placement["dp"], "dp": run.placement["cp"]}
        wrong = with_part(plan, workloads=(run.model_copy(update={"placement": turned}),))
        assert not coopt.verify(instance, wrong).accepted or turned == run.placement
    return plan, expected


def test_switches_beside_direct_links_have_modules_of_their_own_at_either_end() -> None:
    one = {"name": "one", "gbit_s": 10, "fibre": "f", "reach_m": 500, "usd": 40, "w": 1}
    twin = one | {"name": "twin", "gbit_s": 20, "breakout": 2, "usd": 50}
    box = switch(8, 500, 10) | {"cages": 4}
    table = linked(network__optics=[one, twin], network__switches=[box], network__link_ends="any")
    instance, values = Instance.model_validate(table), {}
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    for ends in ("own", "same"):
        network = table["network"] | {"fabrics": ["rail-only", "clos"], "panels": [], "link_ends": ends}
        values[ends] = coopt.solve(Instance.model_validate(table | {"network": network})).objective.value
    assert plan.rivals.switched.value == values["own"] < values["same"]


def test_traffic_is_that_which_the_plan_routes(answered: tuple[Instance, Plan]) -> None:
    """Rings send half of their data each way, and slowdowns compare with the NICs of a GPU."""
    instance, plan = answered
    links = plan.parts[0].links
    assert links is not None
    _, (demand,) = demands(instance, plan)
    sent: Counter[tuple[int, int]] = Counter()
    for stream in demand.streams:
        ends = zip(stream.src // demand.active, stream.dst // demand.active, stream.size_bytes, strict=True)
        for source, target, size_bytes in ends:
            sent[int(source), int(target)] += size_bytes if stream.kind == "dp" and source != target else 0.0
    assert all(size_bytes == pytest.approx(sent[b, a]) for (a, b), size_bytes in list(sent.items()))
    paces = {phase.name: phase.pace_links for phase in links.phases}
    (simulated,) = coopt.simulate(instance, plan).workloads
    for rate in simulated.traffic:
        pace = paces["pp" if rate.kind == "embedding" else rate.kind]
        slowest = links.hb_domain.active * links.nic.per_gpu / pace
        assert rate.slowdown == pytest.approx(slowest, rel=1e-6)
    assert {"pp", "dp"} <= {rate.kind for rate in simulated.traffic}


@pytest.mark.parametrize(("claimed", "accepted"), [(-5, False), (5, False), (6, True), (8, True), (9, False)])
def test_links_said_to_be_needed_lie_between_what_domains_send_and_what_is_built(
    answered: tuple[Instance, Plan], claimed: int, accepted: bool
) -> None:
    instance, plan = answered
    assert plan.parts[0].links.links == 8
    said = with_part(plan, links=plan.parts[0].links.model_copy(update={"links_bound": claimed}))
    verdict = coopt.verify(instance, said)
    assert verdict.accepted == accepted
    assert [check.recomputed for check in verdict.checks if check.name == "links-bound"] == [6]


def test_dear_or_hot_panels_leave_switches(answered: tuple[Instance, Plan]) -> None:
    dear = {"name": "gold", "usd_per_port": 1e6, "w_per_port": 0}
    instance = Instance.model_validate(linked(network__panels=[dear]))
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert plan.parts[0].links is None
    assert plan.design is not None
    assert plan.rivals.direct.value is None
    assert plan.objective.value == plan.rivals.switched.value
    assert coopt.verify(instance, plan).accepted
    assert "no better cluster" in rendered(plan_report(instance, plan))
    crooked = [{"name": "slow", "gbit_s": 10, "usd": 300, "w": 13.3}]
    hot = {"name": "hot", "usd_per_port": 1, "w_per_port": 1e4}
    aim = {"network__nics": crooked, "network__panels": [hot], "objective": {"minimize": "power"}}
    for bound_s in (1.6, 2.2, 3.0):  # a gap of rounding alone is proven
        plan = coopt.solve(Instance.model_validate(linked(**aim, workload__0__max_iteration_time_s=bound_s)))
        assert (plan.status, plan.parts[0].links) == ("optimal", None)


def test_limits_on_purchase_are_kept(answered: tuple[Instance, Plan]) -> None:
    _, plan = answered
    short = Instance.model_validate(linked(limits={"capex_usd": plan.cost.capex_usd - 1}))
    again = coopt.solve(short)
    assert again.status == "infeasible"
    assert any("direct links" in sentence for sentence in again.explanation)
    unsplit = coopt.solve(Instance.model_validate(linked(workload__0__global_batch=1)))
    assert not any("nics_per_gpu" in sentence for sentence in unsplit.explanation)
    enough = Instance.model_validate(linked(limits={"capex_usd": plan.cost.capex_usd}))
    assert coopt.solve(enough).objective.value == plan.objective.value


TWO = [linked()["workload"][0] | {"name": name} for name in ("one", "other")]


def test_mappings_that_direct_links_do_not_carry_are_counted() -> None:
    table = linked(workload__0__mapping={"pp": [4], "micro_batch": [1]}, network__fabrics=["direct", "rail-only"])
    told: list[str] = []
    coopt.solve(Instance.model_validate(table), on_progress=lambda step: told.append(step.message))
    assert any("share parameters" in message for message in told)


def test_what_a_grid_sends_is_kept_by_every_group_of_its_ladder() -> None:
    grid = DomainGrid(stages=2, replicas=4, inner=2, closed=False)
    sends = grid.sends(("pp", "dp"))
    assert sends[0].sum() == 2 * 4 * 0.5
    assert sends[1].sum() == 8
    orders = [len(group) for group in grid.ladder(np.full(8, 9), sends)]
    assert orders[0] == max(orders) == 16
    assert orders[-1] == 1


def test_flows_come_apart_into_paths_that_carry_everything() -> None:
    sends = np.zeros((3, 3))
    sends[0, 1] = 2.0
    flows = np.zeros((3, 3, 3))
    flows[0, 0, 1], flows[0, 0, 2], flows[0, 2, 1] = 1.5, 0.5, 0.5
    found = routes(flows, sends, np.arange(3)[None, :])
    assert found == (LinkRoute(path=(0, 1), share=0.75), LinkRoute(path=(0, 2, 1), share=0.25))
    links = np.array([[0, 3, 1], [3, 0, 1], [1, 1, 0]])
    assert paces_on(links, sends, found) == 2.0
