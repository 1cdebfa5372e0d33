"""Networks whose NICs have ports on several planes: counts, graphs, what a loss takes, and what is refused."""

import math
from collections import Counter
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.network.failures import losses
from coopt.network.family import Family, levels, without_nics
from coopt.network.graphs import whole_graph
from coopt.network.parts import end_modules
from coopt.network.plan_networks import design_of, family_of_plan
from coopt.network.space import families
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import ask, example_count, question, switch
from tests.network.graph_counts import check_counts
from tests.solving.questions import planar

BOX: dict[str, Any] = {"name": "51t", "radix": 64, "port_gbit_s": 800, "usd": 88_832, "w": 940}
BOX["modes"] = [{"radix": 64 * n, "port_gbit_s": 800 / n} for n in (2, 4, 8)]
OPTIC = {"name": "dr8", "gbit_s": 800, "breakout": [2, 4, 8], "reach_m": 500, "usd": 1200, "w": 17}
CX8 = {"name": "cx8", "gbit_s": 800, "ports": [1, 2, 4, 8], "usd": 2500, "w": 30}
NVL64 = {"name": "nvl64", "size": 64, "gbyte_s": 900, "usd_per_gpu": 0, "w_per_gpu": 0}


def large(**changes: Any) -> Instance:
    """131,072 GPUs on 2,048 domains."""
    parts = {"hb_domains": NVL64, "nics": CX8, "switches": BOX, "optics": OPTIC, "fabrics": "clos"}
    table = {f"network__{key}": value for key, value in parts.items()}
    return ask(**{**table, "network__oversubscription": 1.0, "cluster__gpus": 131_072, **changes})


@pytest.mark.parametrize(("planes", "switches", "transceivers"), [(2, 10_240, 6), (8, 6_144, 4)])
def test_eight_planes_join_131072_gpus_on_two_tiers_where_two_take_three(planes, switches, transceivers) -> None:
    # OpenAI, Multipath Reliable Connection (arXiv 2605.04333): 4,096 + 2,048 switches, two thirds of the optics.
    (family,) = families(large(network__nic_planes=planes))
    uplinks = family.uplink_choices[-1]
    assert sum(level.switches for level in levels(family, uplinks)) == switches
    assert sum(map(sum, end_modules(family, family.chain(uplinks)))) == transceivers * 131_072


def modules_of(family: Family, uplinks: int) -> list[tuple[int, int]]:
    """Modules of each level at its lower and upper ends, device by device on the whole graph: a cage of a NIC or of a
    switch is no one else's."""
    graph, counts = whole_graph(family, uplinks), [[0, 0] for _ in range(family.tiers)]
    for node, data in graph.nodes(data=True):
        if data["kind"] not in ("hb", "gpu"):
            ends: Counter[int] = Counter()
            for *_, edge in graph.edges(node, data=True):
                ends[edge["level"]] += edge["links"]
            for level, links in ends.items():
                if level:
                    upper = data["level"] == level
                    each = family.optics[level - 1][upper].gbit_s * family.nic_planes / family.nic.gbit_s
                    cages = family.nic.cages if data["kind"] == "nic" else 1
                    counts[level - 1][upper] += cages * math.ceil(links / cages / each)
    return [(lower, upper) for lower, upper in counts]


@settings(max_examples=example_count(40))
@given(planar())
def test_every_part_on_the_graph_is_counted(instance: Instance) -> None:
    for family in list(families(instance))[::7]:
        if not family.tiers:
            continue
        uplinks = family.uplink_choices[-1]
        graph = check_counts(family, uplinks)
        assert list(end_modules(family, family.chain(uplinks))) == modules_of(family, uplinks)
        assert {edge["gbit_s"] for *_, edge in graph.edges(data=True) if edge["level"]} == {family.link_gbit_s}
        nics = [node for node, kind in graph.nodes(data="kind") if kind == "nic"]
        assert {len([n for n in graph[nic] if n.startswith("leaf")]) for nic in nics} == {family.nic_planes}


def test_planes_share_no_switch() -> None:
    clos = {"network__nics": {**CX8, "gbit_s": 400}, "network__fabrics": "clos", "network__nic_planes": 4}
    box = {"name": "b", "radix": 4, "port_gbit_s": 400, "modes": {"radix": 16, "port_gbit_s": 100}, "usd": 1, "w": 1}
    optic = {**OPTIC, "gbit_s": 400}
    found = list(families(ask(network__switches=box, network__optics=optic, **clos)))
    assert {family.tiers for family in found} == {2}
    for family in found:
        graph = whole_graph(family, family.uplink_choices[-1])
        graph.remove_nodes_from([node for node, kind in graph.nodes(data="kind") if kind in ("hb", "gpu", "nic")])
        assert nx.number_connected_components(graph) == 4


def planes_of(planes: int, **changes: Any) -> Family:
    """64 GPUs in domains of 8, whose NICs have so many ports."""
    nic = {"name": "n", "gbit_s": 400, "ports": [1, 2, 4], "usd": 1, "w": 1}
    box = {"name": "b", "radix": 16, "port_gbit_s": 400, "usd": 1, "w": 1}
    box["modes"] = [{"radix": 16, "port_gbit_s": rate} for rate in (200, 100)]
    parts = {"nics": nic, "switches": box, "optics": {**OPTIC, "gbit_s": 400}, "hb_domains": "hgx-h100-8"}
    table = {f"network__{key}": value for key, value in parts.items()}
    table |= {"network__fabrics": "clos", "network__nic_planes": planes, "network__oversubscription": 1.0}
    return next(families(ask(**table, **changes)))


def test_a_lost_link_or_leaf_takes_one_port_of_each_nic() -> None:
    family = planes_of(4)
    hop = family.byte_s / (family.hb.gbyte_s * 1e9)
    assert without_nics(family, 1, 1) == (min(4 / 3, 32 / 31 + hop), True)
    assert without_nics(family, 8, 1) == (4 / 3, False)  # a leaf holds the domain: every GPU keeps three of four ports
    assert without_nics(family, 8, 4) == (math.inf, False)
    # with one plane the loss of a leaf that holds the domain cuts it off
    assert without_nics(planes_of(1), 8, 1) == (math.inf, False)


def test_losses_above_leaves_are_shared_by_all_planes() -> None:
    for planes in (1, 4):
        family = planes_of(planes)
        uplinks = family.uplink_choices[-1]
        found = {loss.part.removeprefix("link from "): loss for loss in losses(family, uplinks)}
        assert found["leaf to spine"].leaf_slowdown == planes * uplinks / (planes * uplinks - 1)
        assert found["NIC to leaf"].count == planes * 64
        assert found["spine switch"].count == planes * family.spines(uplinks)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nic_planes": 3}, "network.nic_planes = 3: .* 1, 2, 4 or 8"),
        ({"nic_planes": 8, "switches": {**BOX, "modes": []}}, r"no listed switch .* \(100 Gbit/s\)"),
        ({"nic_planes": 8, "optics": {**OPTIC, "breakout": [2]}}, "800 Gbit/s .* 8 x 100"),
        ({"nics": {**CX8, "ports": [1, 2], "cages": 2}}, "ports = 1: .* cages = 2"),
        ({"switches": {**BOX, "modes": {"radix": 32, "port_gbit_s": 800}}}, "ports of 800"),
        ({"nic_planes": [1, 8], "fabrics": ["clos", "direct"]}, "direct links"),
        ({"nic_planes": 8, "core": {"switch": BOX["name"], "gbit_s_per_gpu": 1.0}}, r"its ports .*800"),
    ],
)
def test_what_cannot_be_wired_is_refused(changes: dict[str, Any], words: str) -> None:
    parts = {"hb_domains": NVL64, "nics": CX8, "switches": BOX, "optics": OPTIC} | changes
    core = parts.pop("core", None)
    sharing = {"sharing": {"mode": "partition", "core": core}} if core else {}
    with pytest.raises(ValueError, match=words):
        ask(network=question()["network"] | parts, cluster__gpus=1024, **sharing)


def test_leaves_of_every_plane_join_a_core_of_their_rate() -> None:
    """512 GPUs at 25 Gbit/s are 128 links of 100 Gbit/s: two from each of 64 leaves, eight on each of eight planes."""
    core = {"switch": "core", "gbit_s_per_gpu": 25.0}
    box = {"name": "b", "radix": 16, "port_gbit_s": 800, "usd": 1, "w": 1}
    box["modes"] = [{"radix": 128, "port_gbit_s": 100}]
    parts = {"switches": [box, switch(128, 1, 100) | {"name": "core"}], "hb_domains": NVL64, "nics": CX8}
    far = {"name": "far", "gbit_s": 100, "reach_m": 500, "usd": 1, "w": 1}
    table = {f"network__{key}": value for key, value in parts.items()} | {"network__optics": [OPTIC, far]}
    table |= {"network__fabrics": "rail-optimized", "network__nic_planes": 8, "cluster__gpus": 512}
    instance = ask(**table, sharing={"mode": "partition", "core": core}, network__leaf_fill="ratio")
    family = next(one for one in families(instance) if one.down == 64)
    assert (family.leaves, family.chassis, family.core_ports, family.core_links) == (8, 64, 2, 128)
    assert family.down + family.uplink_choices[-1] + family.core_ports <= 128
    alone = {"workload__0__gpus": 64, "sharing": {"mode": "partition", "core": core}}
    domain = next(one for one in families(ask(**table | {"cluster__gpus": 64}, **alone)) if not one.tiers)
    assert (domain.nic_count, domain.core_links) == (16, 16)


def test_a_network_that_grows_is_found_among_optics_that_only_planes_can_take() -> None:
    """Where NICs lead to one plane, modules at half their rate carry no link."""
    module = {"name": "whole", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 600, "w": 8}
    half = {"name": "half", "gbit_s": 200, "reach_m": 500, "usd": 300, "w": 8}
    changes: dict[str, Any] = {
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "clos",
        "network__nics": {"name": "split", "gbit_s": 400, "ports": [1, 2], "usd": 1500, "w": 20},
        "network__switches": [switch(16, 9276) | {"modes": [{"radix": 32, "port_gbit_s": 200}]}],
        "network__optics": [module, half],
        "network__nic_planes": [1, 2],
        "workload__0__max_iteration_time_s": 0.302,
    }
    phases = [
        {"year": 0, "gpus": 16, "workloads": {"name": "w", "max_iteration_time_s": 3.0}},
        {"year": 1, "gpus": 64, "price": {"nic": 1.4, "switch": 0.8}, "retrofit_usd_per_link": 10},
    ]
    instance = ask(phase=phases, **changes)
    plan = solve(instance)
    optics = set()
    for part in plan.parts:
        optics |= {name for tier in part.design.fabric.tier for name in tier.ends}
        family, uplinks = family_of_plan(instance, plan, part=part.name)
        assert design_of(family, uplinks) == part.design
    assert optics == {"whole", "half"}


def test_ports_up_beyond_those_down_make_no_nic_faster() -> None:
    """Modules of two ports lead 12 uplinks from leaves of 11 NICs; the verifier took 11/12 of the time for that."""
    module = {"name": "whole", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 600, "w": 8}
    changes: dict[str, Any] = {
        "cluster__gpus": 32,
        "workload__0__max_iteration_time_s": 0.124,
        "network__fabrics": "clos",
        "network__nics": {"name": "split", "gbit_s": 400, "ports": [1, 2], "usd": 1500, "w": 20},
        "network__switches": [switch(16, 5698) | {"modes": [{"radix": 32, "port_gbit_s": 200}]}],
        "network__optics": [module],
        "network__nic_planes": [1, 2],
    }
    instance = ask(objective={"minimize": "power"}, margin={"ports": 0.2}, solver={"top": 6}, **changes)
    plan = solve(instance)
    above = [one.design.fabric.oversubscription for one in plan.alternatives]
    assert min(above) < 1.0
    assert verify(instance, plan).accepted
