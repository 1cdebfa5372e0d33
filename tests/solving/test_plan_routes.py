"""Routes of plans: loads against the flows they carry, bounds, times, tables of paths, and exact ones."""

import csv
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from benchmarks.ring_traffic import random_rings
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.network.graph_files import network_graph
from coopt.network.plan_networks import family_of_plan
from coopt.network.routing.algorithms import greedy_cores
from coopt.network.routing.colouring import coloured_cores
from coopt.network.routing.layers import Flows, TwoLayer, fail_cores, link_loads
from coopt.plan.schema import Plan
from coopt.plan.traffic import Routing
from coopt.solving import plan_routes
from coopt.solving.answer import solve
from coopt.solving.flow_routes import NAMES, route_exactly
from coopt.solving.plan_routes import CHARGED_AS, route_plan
from coopt.solving.route_files import COLUMNS, routes_csv
from coopt.traffic.flows import demand
from coopt.traffic.of_plan import leaf_flows
from tests.conftest import DISCIPLINES, ask, example_count, small_model, switch
from tests.network.routing.small import between, complete, counted_alpha, enumerated_alpha, routable
from tests.solving.oracle import instances


def small(fabric: str = "rail-only", radix: int = 8, **changes: object) -> Instance:
    return ask(
        cluster__gpus=128, workload__0__global_batch=128, workload__0__max_iteration_time_s=20.0,
        workload__0__mapping={"tp": 4, "pp": 2}, network__hb_domains="hgx-h100-8", network__fabrics=fabric,
        network__switches=switch(radix, 5000), network__oversubscription=1.0,
        **changes,
    )  # fmt: skip


@cache
def planned(fabric: str, radix: int) -> tuple[Instance, Plan]:
    instance = small(fabric, radix)
    return instance, solve(instance)


def test_paths_of_gpus_with_the_same_stages_are_charged_and_accepted() -> None:
    """Sixteen stages of a domain each, six to a leaf of two uplinks: six send to their twin, two at most to a hop."""
    instance = ask(
        cluster__gpus=128, network__hb_domains="hgx-h100-8", network__fabrics="rail-only",
        network__switches=switch(8, 5000), network__routing="pinned", network__charge="loads",
        network__oversubscription=3.0, workload__0__model=small_model(layers=16), workload__0__global_batch=128,
        workload__0__max_iteration_time_s=100.0,
        workload__0__mapping={
            "tp": 4, "pp": 16, "interleave": 1, "zero": [0, 1], "recompute": "none", "micro_batch": 1,
        },
        workload__0__options={"schedule": "dualpipe"},
    )  # fmt: skip
    plan = solve(instance)
    assert plan.workloads[0].routes == {"pp": 1.0, "tied": 3.0}
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("fabric", "radix"), [("rail-only", 8), ("rail-optimized", 16), ("clos", 32)])
def test_links_carry_every_flow_that_leaves_its_leaf(name: str, fabric: str, radix: int) -> None:
    instance, plan = planned(fabric, radix)
    family, _ = family_of_plan(instance, plan)
    assert family.tiers == 2
    found = route_plan(instance, plan, algorithm=name)
    asked: dict[str, int] = defaultdict(int)
    for workload, chosen in zip(instance.workload, plan.workloads, strict=True):
        for flows in leaf_flows(family, demand(workload, chosen)):
            asked[flows.collective] += len(flows.planes) * int((flows.src != flows.dst).sum())
    carried: dict[str, int] = defaultdict(int)
    for link in found.links:
        carried[link.collective] += link.planes * link.up
        assert link.up >= 0
        assert link.links >= 1
    assert dict(carried) == dict(asked)
    assert sum(asked.values()) > 0
    for direction in ("up", "down"):
        worst: dict[str, float] = defaultdict(float)
        for link in found.links:
            worst[link.collective] = max(worst[link.collective], getattr(link, direction) / link.links)
        for one in found.collectives:
            assert worst[one.collective] <= one.alpha
            assert one.bound <= one.alpha


def test_what_is_said_of_routes_does_not_depend_on_listing_links() -> None:
    instance, plan = planned("clos", 32)
    listed, short = (route_plan(instance, plan, with_links=wish) for wish in (True, False))
    assert listed.links
    assert not short.links
    unlike = {"links", "seconds", "collectives"}
    assert listed.model_dump(exclude=unlike) == short.model_dump(exclude=unlike)
    assert [one.alpha for one in listed.collectives] == [one.alpha for one in short.collectives]


def test_exact_routes_are_never_worse() -> None:
    instance, plan = planned("clos", 32)
    exact = {one.collective: one for one in route_plan(instance, plan, algorithm="exact").collectives}
    for name in ("best", "ecmp", "greedy"):
        for one in route_plan(instance, plan, algorithm=name).collectives:
            assert 0 < exact[one.collective].alpha <= one.alpha
            assert exact[one.collective].optimal


@settings(max_examples=example_count(25))
@given(instances(), st.integers(0, 3))
def test_random_plans_have_routes_no_faster_than_the_model(instance: Instance, seed: int) -> None:
    """The largest stretch, fed back as network.routing, is what the plan then takes at most."""
    plan = solve(instance)
    if plan.design is None:
        return
    bare = instance.model_copy(update={"network": instance.network.model_copy(update={"routing": 1.0})})
    again = solve(bare)
    if again.design is None:
        return
    found = route_plan(bare, again, seed=seed)
    for one, workload in zip(found.workloads, again.workloads, strict=True):
        assert one.routed_time_s >= workload.iteration_time_s * (1 - 1e-9)
    assert (found.routing > 1) >= any(
        one.routed_time_s > workload.iteration_time_s * (1 + 1e-9)
        for one, workload in zip(found.workloads, again.workloads, strict=True)
    )
    assert all(one.routing <= found.routing for one in found.collectives)


@settings(max_examples=example_count(25))
@given(instances(), st.sampled_from([one for one in DISCIPLINES if one["routing"] != "ecmp"]))
def test_random_plans_keep_their_times_under_the_discipline_they_name(
    instance: Instance, discipline: dict[str, Any]
) -> None:
    named = instance.model_copy(update={"network": instance.network.model_copy(update=discipline)})
    plan = solve(named)
    if plan.design is None:
        return
    found = route_plan(named, plan)
    for one in found.workloads:
        assert one.routed_time_s <= one.iteration_time_s * (1 + 1e-9)
        assert one.within_bound
    assert found.routing == 1


def test_what_is_sprayed_loads_links_evenly() -> None:
    instance, plan = planned("clos", 8)
    spread = route_plan(instance, plan, algorithm="spray")
    assert {link.level for link in spread.links} == {2, 3}
    assert all(one.optimal for one in spread.collectives)
    pinned = {one.collective: one.alpha for one in route_plan(instance, plan, algorithm="best").collectives}
    assert all(one.alpha <= pinned[one.collective] for one in spread.collectives)
    efficiency = instance.network.spray_efficiency
    assert all(one.stretch == pytest.approx(one.alpha / one.per_nic / efficiency) for one in spread.collectives)


def test_time_with_routes_is_that_of_the_factor() -> None:
    """One collective above the leaves: the model with network.routing says what its routes say."""
    instance, plan = planned("clos", 32)
    found = route_plan(instance, plan, algorithm="ecmp", seed=3)
    assert found.routing > 1
    from coopt.solving.evaluate import evaluate_instance

    network = instance.network.model_copy(update={"routing": found.routing})
    slower = instance.model_copy(update={"network": network})
    mapping = [workload.mapping for workload in plan.workloads]
    design = plan.design.model_copy(update={"fabric": plan.design.fabric.model_copy(update={"routing": found.routing})})
    charged = evaluate_instance(slower, design, mapping).workloads[0].iteration_time_s
    assert plan.workloads[0].iteration_time_s < found.workloads[0].routed_time_s <= charged * (1 + 1e-9)


def test_failed_cores_make_links_busier() -> None:
    instance, plan = planned("clos", 32)
    alphas = [_worst(route_plan(instance, plan, algorithm="best", failed_cores=n)) for n in (0, 2, 3)]
    assert alphas == sorted(alphas)
    assert alphas[-1] > alphas[0]


def _worst(found: Routing) -> float:
    return max(one.alpha for one in found.collectives)


def test_what_has_no_routes_is_refused() -> None:
    rails, plan = planned("rail-optimized", 32)
    flat, alone = planned("rail-only", 64)
    with pytest.raises(InstanceError, match=r"failed cores: 99, .*needs 0 to"):
        route_plan(rails, plan, failed_cores=99)
    with pytest.raises(InstanceError, match="failed cores: 1, "):
        route_plan(flat, alone, failed_cores=1)
    with pytest.raises(InstanceError, match="this instance allows"):
        route_plan(small("clos", 32), plan)
    with pytest.raises(ValueError, match=r"bundles = 'any': .*needs 'even'"):
        small(network__charge="loads", network__routing="pinned", network__bundles="any")


def test_three_tiers_are_routed_in_two_stages() -> None:
    instance, plan = planned("clos", 8)
    family, _ = family_of_plan(instance, plan)
    assert family.tiers == 3
    found = route_plan(instance, plan)
    assert {link.level for link in found.links} == {2, 3}
    assert np.isfinite(found.workloads[0].routed_time_s)
    with pytest.raises(InstanceError, match="two tiers"):
        route_plan(instance, plan, algorithm="exact")


def pinned(**changes: Any) -> Instance:
    """Leaves whose uplinks are fewer the better: everything is allowed up to 4 down for one up."""
    table = {
        "cluster__gpus": 128, "network__hb_domains": "hgx-h100-8", "network__fabrics": "clos",
        "network__switches": switch(16, 5000), "network__oversubscription": 4.0,
        "workload__0__max_iteration_time_s": 20.0, "network__charge": "loads", "network__routing": "pinned",
    }  # fmt: skip
    return ask(**{**table, **changes})


def routed_otherwise(monkeypatch: pytest.MonkeyPatch, misses: Callable[[Plan], bool]) -> None:
    """Let routes miss the bounds of some plans."""
    found = plan_routes.route_plan

    def routes(instance: Instance, plan: Plan, **options: Any) -> Routing:
        routing = found(instance, plan, **options)
        late = tuple(one.model_copy(update={"within_bound": not misses(plan)}) for one in routing.workloads)
        return routing.model_copy(update={"workloads": late})

    monkeypatch.setattr(plan_routes, "route_plan", routes)


def ratio(plan: Plan) -> float:
    return plan.design.fabric.oversubscription


@pytest.mark.parametrize("radix", [16, 8])
def test_a_plan_says_what_its_routes_are_worth(radix: int) -> None:
    instance = pinned(network__switches=switch(radix, 5000))
    plan = coopt.solve(instance)
    (run,) = plan.workloads
    found = coopt.route(instance, plan).collectives
    assert set(run.routes) == {CHARGED_AS.get(one.collective, one.collective) for one in found}
    assert all(run.routes[CHARGED_AS.get(one.collective, one.collective)] >= one.stretch for one in found)
    assert coopt.verify(instance, plan).accepted
    assert plan.status == "optimal"


def test_sprayed_flows_and_single_tiers_have_no_routes() -> None:
    for changes in ({"network__routing": "spray"}, {"network__switches": "64x400g", "network__fabrics": "rail-only"}):
        (run,) = coopt.solve(pinned(**changes)).workloads
        assert run.routes == {}


def test_a_network_whose_routes_miss_a_bound_is_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned()
    first = coopt.solve(instance)
    assert ratio(first) > 1.5
    routed_otherwise(monkeypatch, lambda plan: ratio(plan) > 1.5)
    plan = coopt.solve(instance)
    assert ratio(plan) <= 1.5
    assert (plan.status, plan.stop_reason) == ("feasible", plan_routes.MISSED_BELOW)
    assert plan.objective.bound == first.objective.value
    assert plan.objective.value > first.objective.value
    assert plan.workloads[0].routes
    assert coopt.verify(instance, plan).accepted


def test_listed_ratios_are_ruled_out_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned(network__oversubscription=[1.0, 2.0, 3.0])
    routed_otherwise(monkeypatch, lambda plan: ratio(plan) > 1)
    assert ratio(coopt.solve(instance)) == 1


def test_without_any_network_whose_routes_keep_a_bound_there_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned()
    bound = coopt.solve(instance).objective.bound
    routed_otherwise(monkeypatch, lambda plan: True)
    plan = coopt.solve(instance)
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", plan_routes.MISSED, bound)


@pytest.mark.parametrize(
    ("routes", "name"),
    [
        (lambda kinds: dict.fromkeys(kinds, 0.5), "routes"),
        (lambda kinds: {"tea": 1.0}, "routes"),
        (lambda kinds: dict.fromkeys(kinds, 1e6), "routes-deadline"),
    ],
)
def test_slowdowns_that_no_routes_have_are_found(routes: Callable[[dict[str, float]], Any], name: str) -> None:
    instance = pinned()
    plan = coopt.solve(instance)
    (part,) = plan.parts
    runs = tuple(run.model_copy(update={"routes": routes(run.routes)}) for run in part.workloads)
    changed = part.model_copy(update={"workloads": runs})
    wrong = plan.model_copy(update={"parts": (changed,), "workloads": runs})
    assert [check.name for check in coopt.verify(instance, wrong).failures] == [name]


MOE = small_model(experts=8, top_k=2, ffn=2048)
QUESTIONS: dict[str, dict[str, Any]] = {
    "one tier": {"network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only", "network__switches": "64x400g"},
    "rails of two tiers": {
        "cluster__gpus": 128,
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "rail-only",
        "network__switches": [switch(12, 5000)],
        "network__oversubscription": 5.0,
    },
    "clos of two tiers": {
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "clos",
        "network__switches": [switch(16, 5000)],
        "network__max_tiers": 2,
    },
    "two NICs": {"network__nics_per_gpu": 2, "network__fabrics": "rail-optimized", "network__switches": "64x400g"},
    "three tiers": {
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "clos",
        "network__switches": [switch(8, 5000)],
    },
    "experts over pods": {
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "clos",
        "network__switches": [switch(8, 5000)],
        "workload__0__model": MOE,
        "workload__0__mapping": {"ep": 8, "tp": 4, "pp": 2},
    },
    "two workloads": {
        "network__fabrics": "clos",
        "network__switches": [switch(16, 5000)],
        "network__hb_domains": "hgx-h100-8",
        "workload": [
            {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": bound}
            for name, bound in (("w", 1.0), ("v", 2.0))
        ],
    },
}


@cache
def solved(name: str) -> tuple[Instance, Plan, tuple[dict[str, str], ...]]:
    instance = ask(**QUESTIONS[name])
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    return instance, plan, tuple(csv.DictReader(routes_csv(instance, plan).splitlines()))


def hops(row: dict[str, str]) -> list[str]:
    """What a flow crosses, end to end."""
    path = [row[name] for name in COLUMNS[4:-1] if row[name]]
    return [here for here, after in pairwise([*path, ""]) if here != after]


@pytest.mark.parametrize("name", QUESTIONS)
def test_paths_are_paths_of_the_network_and_reproduce_the_loads_of_links_and_bytes_between_domains(name: str) -> None:
    instance, plan, rows = solved(name)
    graph = network_graph(instance, plan)
    assert rows
    for row in rows:
        assert nx.is_simple_path(graph, hops(row)), hops(row)
        assert graph.nodes[row["source_gpu"]]["domain"] != graph.nodes[row["destination_gpu"]]["domain"]
    for workload, chosen in zip(instance.workload, plan.workloads, strict=True):
        sent = demand(workload, chosen)
        leaving = (one.size_bytes[one.src // sent.active != one.dst // sent.active].sum() for one in sent.streams)
        listed = sum(float(row["bytes"]) for row in rows if row["workload"] == workload.name)
        assert listed == pytest.approx(float(sum(leaving)))
        assert listed > 0
    family, uplinks = family_of_plan(instance, plan)
    found: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        for lower, upper, way in (
            (row["source_leaf"], row["source_aggregation"] or row["top"], "up"),
            (row["destination_leaf"], row["destination_aggregation"] or row["top"], "down"),
            (row["source_aggregation"], row["top"], "up"),
            (row["destination_aggregation"], row["top"], "down"),
        ):
            if lower and upper:
                found[row["workload"], row["collective"], lower, upper, way] += 1
    expected: Counter[tuple[object, ...]] = Counter()
    for link in coopt.route(instance, plan).links:
        planes = [link.plane] if link.planes == 1 else range(family.planes)
        for plane in planes:
            if family.pods is None:
                ends = f"leaf/{plane}/{link.lower}", f"spine/{plane}/{link.upper}"
            elif link.level == 2:
                pod = link.lower // family.pods.l
                ends = f"leaf/{plane}/{link.lower}", f"aggregation/{plane}/{pod * uplinks + link.upper}"
            else:
                j, pod = divmod(link.lower, family.pods.count)
                group = -(-family.pods.count * family.pods.w // family.switch.radix)
                ends = f"aggregation/{plane}/{pod * uplinks + j}", f"core/{plane}/{j * group + link.upper}"
            for way, flows in (("up", link.up), ("down", link.down)):
                if flows:
                    expected[link.workload, link.collective, *ends, way] += flows
    assert found == expected
    assert bool(expected) == (name not in ("one tier", "two NICs"))


def test_the_traffic_of_a_pair_of_gpus_is_split_over_their_nics() -> None:
    _, _, rows = solved("two NICs")
    by_pair: dict[tuple[str, ...], list[tuple[str, float]]] = {}
    for row in rows:
        key = (row["kind"], row["collective"], row["source_gpu"], row["destination_gpu"])
        by_pair.setdefault(key, []).append((row["source_nic"], float(row["bytes"])))
    for flows in by_pair.values():
        assert len({nic for nic, _ in flows}) == 2
        assert np.ptp([size for _, size in flows]) == 0


def test_one_workload_is_taken_by_name() -> None:
    instance, plan, rows = solved("two workloads")
    only = list(csv.DictReader(routes_csv(instance, plan, workload="v").splitlines()))
    assert only == [row for row in rows if row["workload"] == "v"]
    with pytest.raises(InstanceError, match=r"--workload x: .* w or v"):
        routes_csv(instance, plan, workload="x")


def test_one_domain_has_no_routes() -> None:
    instance = ask(cluster__gpus=8, workload__0__max_iteration_time_s=100.0, network__hb_domains="hgx-h100-8")
    with pytest.raises(InstanceError, match="one HB domain"):
        routes_csv(instance, coopt.solve(instance))


@settings(max_examples=example_count(120))
@given(st.one_of(*(routable(flows=6, equal=equal, leaves=4, cores=3) for equal in (True, False))))
def test_exact_routes_agree_with_enumeration(case: tuple[TwoLayer, Flows]) -> None:
    """Where cores failed, and on links that are not equal."""
    found = route_exactly(*case)
    assert found.alpha == found.bound
    assert float(counted_alpha(*case, found.cores)) == pytest.approx(found.alpha)
    assert found.alpha == pytest.approx(enumerated_alpha(*case))


@settings(max_examples=example_count(30))
@given(routable(flows=40, equal=False))
def test_greedy_is_never_better(case: tuple[TwoLayer, Flows]) -> None:
    found = route_exactly(*case, time_limit_s=5)
    assert found.bound <= found.alpha <= link_loads(*case, greedy_cores(*case)).alpha


@pytest.mark.parametrize("failed", [0, 2])
def test_exact_routes_agree_with_colouring(failed: int) -> None:
    clos, flows = fail_cores(complete(16, 8), failed, seed=0), random_rings(16, 8, 8, seed=0)
    found = route_exactly(clos, flows)
    assert found.alpha == found.bound
    assert found.alpha == link_loads(clos, flows, coloured_cores(clos, flows)).alpha
    assert found.alpha < link_loads(clos, flows, greedy_cores(clos, flows)).alpha or failed


def test_an_optimum_above_the_bound_is_proven() -> None:
    """Each leaf could send its flows over two cores, but each pair shares one core only."""
    clos = TwoLayer(links=np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]))
    found = route_exactly(clos, between((0, 1), (0, 1), (1, 2)))
    assert (found.alpha, found.bound) == (2, 2)


def test_without_time_the_greedy_routes_remain_unproven() -> None:
    clos, flows = complete(16, 8), random_rings(16, 8, 8, seed=0)
    found = route_exactly(clos, flows, time_limit_s=0)
    assert (found.cores == greedy_cores(clos, flows)).all()
    assert (found.alpha, found.bound) == (2, 1)


def test_routes_at_the_bound_need_no_search() -> None:
    found = route_exactly(complete(4, 4), between((0, 1), (1, 1)))
    assert (found.alpha, found.bound) == (1, 1)


def test_flows_without_a_path_are_refused() -> None:
    with pytest.raises(InstanceError, match="links to both"):
        route_exactly(TwoLayer(links=np.eye(2, dtype=int)), between((0, 1)))
