"""Bundles of links from leaves to the switches of their pod: smaller pods, so that less of the last one is wasted."""

from __future__ import annotations

import csv
import io
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.network.family import levels
from coopt.network.graphs import whole_graph
from coopt.network.parts import cost_of, open_bill
from coopt.network.space import families
from coopt.plan.parts import Fabric
from coopt.plan.schema import Plan
from coopt.solving.route_files import COLUMNS, routes_csv
from tests.conftest import DISCIPLINES, accepted, ask, example_count, question, switch, value_of
from tests.network.even_bundles import on_gpus
from tests.network.graph_counts import check_counts
from tests.solving.oracle import enumerated, instances

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


@st.composite
def podded(draw: st.DrawFn) -> Instance:
    """Random questions of three tiers with bundles in pods."""
    drawn, gpus = draw(instances()), draw(st.sampled_from([48, 64, 96, 128]))
    table = [switch(radix, draw(st.integers(0, 3000)), 400) for radix in draw(st.sampled_from([[8], [8, 12], [12]]))]
    charged = draw(st.sampled_from([one for one in DISCIPLINES if one.get("routing") not in ("pinned", "ecmp")]))
    asked = question(network__switches=table, network__nics="cx7-400g")
    network = Instance.model_validate(asked).network
    changes = {"switches": network.switches, "nics": network.nics, "optics": network.optics, **charged}
    own = {"pod_bundles": draw(st.sampled_from([(1, 2), (2,), (1, 2, 3)])), "fabrics": ("rail-optimized", "clos")}
    merged = drawn.network.model_copy(update={"routing": "spray", **changes, **own})
    slower = draw(st.sampled_from([2.0, 6.0, 20.0]))
    merged = merged.model_copy(update={"oversubscription": draw(st.sampled_from([1.0, 1.0, 2.0, (1.0, 2.0)]))})
    return on_gpus(drawn, gpus, slower).model_copy(update={"network": merged})


@settings(max_examples=example_count(25))
@given(podded())
def test_the_optimum_is_that_of_enumeration(instance: Instance) -> None:
    assert value_of(accepted(instance)) == pytest.approx(enumerated(instance), rel=1e-9)


def test_graphs_hold_what_levels_count_and_the_bill_prices() -> None:
    changes = {"cluster__gpus": 48, "network__switches": switch(8, 5000), "network__hb_domains": "hgx-h100-8"}
    instance = ask(**changes, network__pod_bundles=[2], network__oversubscription=1.0)
    bundled = [family for family in families(instance) if family.pods]
    assert bundled
    for family in bundled:
        (uplinks,) = family.uplink_choices
        check_counts(family, uplinks)
        items = {item.kind: item.count for item in cost_of(instance, family, uplinks).items}
        assert items["switch"] == sum(tier.switches for tier in levels(family, uplinks))
        assert open_bill(instance, family).fixed["switch", family.switch.name] == items["switch"]


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
