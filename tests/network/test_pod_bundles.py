"""Bundles of links from leaves to the switches of their pod: smaller pods, so that less of the last one is wasted."""

import csv
import io
from typing import Any

import networkx as nx
import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from coopt.plan.parts import Fabric
from coopt.plan.schema import Plan
from coopt.solving.route_files import COLUMNS, routes_csv
from tests.conftest import accepted, ask, question, switch

ROUTE = COLUMNS[COLUMNS.index("source_nic") : COLUMNS.index("destination_gpu")]
"""Columns of what a flow crosses, in this order."""


def fabric_of(instance: Instance) -> Fabric:
    """The fabric of the optimal plan, which the verifier accepts."""
    plan = accepted(instance)
    return plan.design.fabric


@pytest.mark.parametrize(("bundles", "switches"), [([1], 464), ([1, 2, 4, 8], 360)])
def test_9216_end_points_take_360_switches_of_128_ports_in_place_of_464(bundles: list[int], switches: int) -> None:
    changes = {"cluster__gpus": 9216, "network__hb_domains": "hgx-h100-8", "network__switches": switch(128, 88_832)}
    changes |= {"network__oversubscription": 1.0, "network__fabrics": "rail-optimized", "network__bundles": "any"}
    changes |= {"workload__0__global_batch": 9216, "workload__0__max_iteration_time_s": 100.0}
    fabric = fabric_of(ask(**changes, network__pod_bundles=bundles))
    assert fabric.tiers == 3
    assert fabric.switch_count == switches
    assert fabric.pod_bundle == bundles[-1]


def bundled_plan() -> tuple[Instance, Plan]:
    """A small plan whose leaves have two links to each aggregation switch."""
    changes = {"cluster__gpus": 48, "network__switches": switch(8, 5000), "network__hb_domains": "hgx-h100-8"}
    changes |= {"network__oversubscription": 1.0, "network__fabrics": "clos", "network__charge": "loads"}
    changes |= {"workload__0__global_batch": 48}
    instance = ask(**changes, network__pod_bundles=[2], workload__0__max_iteration_time_s=100.0)
    plan = coopt.solve(instance)
    assert plan.design.fabric.pod_bundle == 2
    return instance, plan


def test_flows_run_over_bundles_in_pods_as_they_are_charged() -> None:
    instance, plan = bundled_plan()
    (simulated,) = coopt.simulate(instance, plan).workloads
    assert simulated.simulated_s == pytest.approx(simulated.closed_form_s, rel=0.01)
    routed = coopt.route(instance, plan, algorithm="spray")
    assert routed.collectives
    for one in routed.collectives:
        assert one.stretch == pytest.approx(one.charged, rel=1e-9)
    assert coopt.faults(instance, plan).faults


def test_routes_name_switches_that_the_graph_joins() -> None:
    instance, plan = bundled_plan()
    family = next(one for one in families(instance) if one.pods)
    graph = whole_graph(family, *family.uplink_choices)
    rows = list(csv.DictReader(io.StringIO(routes_csv(instance, plan))))
    assert rows
    for row in rows:
        assert nx.is_path(graph, [row[key] for key in ROUTE if row[key]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"robust": {"survive": "nic", "slower": 3.0}}, "robust.survive"), ({"network__routing": "pinned"}, "pinned")],
)
def test_what_does_not_go_together_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=f"pod_bundles = 1, 2: .*{words}"):
        Instance.model_validate(question(network__pod_bundles=[1, 2], network__charge="loads", **changes))
