"""The table of routes reproduces the loads of the links, and its paths are paths of the network that is exported."""

from __future__ import annotations

import csv
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.network.graph_files import network_graph
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan
from coopt.solving.route_files import COLUMNS, routes_csv
from coopt.traffic.flows import demand
from tests.conftest import ask, small_model, switch

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
def test_every_path_is_a_path_of_the_network(name: str) -> None:
    instance, plan, rows = solved(name)
    graph = network_graph(instance, plan)
    assert rows
    for row in rows:
        assert nx.is_simple_path(graph, hops(row)), hops(row)
        assert graph.nodes[row["source_gpu"]]["domain"] != graph.nodes[row["destination_gpu"]]["domain"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_paths_reproduce_the_loads_of_links(name: str) -> None:
    instance, plan, rows = solved(name)
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


@pytest.mark.parametrize("name", QUESTIONS)
def test_bytes_are_those_between_domains(name: str) -> None:
    instance, plan, rows = solved(name)
    for workload, chosen in zip(instance.workload, plan.workloads, strict=True):
        sent = demand(workload, chosen)
        across = sum(
            float(stream.size_bytes[stream.src // sent.active != stream.dst // sent.active].sum())
            for stream in sent.streams
        )
        listed = sum(float(row["bytes"]) for row in rows if row["workload"] == workload.name)
        assert listed == pytest.approx(across)
        assert across > 0


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
    with pytest.raises(InstanceError, match="--workload x: the plan has none of this name, needs w or v"):
        routes_csv(instance, plan, workload="x")


def test_one_domain_has_no_routes() -> None:
    instance = ask(cluster__gpus=8, workload__0__max_iteration_time_s=100.0, network__hb_domains="hgx-h100-8")
    with pytest.raises(InstanceError, match="is one HB domain and has no network"):
        routes_csv(instance, coopt.solve(instance))
