"""Two and three tiers against explicit paths on a graph built by the rules of docs/network.md."""

import math
from collections import Counter
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.ring_traffic import random_rings
from coopt.instance.texts import InstanceError
from coopt.network.family import Pods
from coopt.network.routing.algorithms import ALGORITHMS, annealed_cores
from coopt.network.routing.layers import Flows, flow_rates
from coopt.network.routing.tiers import Plane, PlaneRoutes, plane_of, route_tiers
from coopt.network.space import families
from tests.conftest import ask
from tests.network.routing.small import QUICK, between, plane

Node = tuple[object, ...]


class Wired(NamedTuple):
    """A plane by its numbers."""

    leaves: int
    uplinks: int
    radix: int
    pods: Pods | None = None

    @property
    def plane(self) -> Plane:
        return plane(*self)


def graph(plane: Wired) -> nx.Graph:
    """Switches as nodes, bundles as edges with their number of links."""
    net = nx.Graph()
    pods, u = plane.pods, plane.uplinks
    spines = math.ceil(plane.leaves * u / plane.radix)
    for i in range(plane.leaves):
        for j in range(u):
            _link(
                net, ("leaf", i), ("agg", i // pods.leaves, j // pods.each) if pods else ("spine", (i * u + j) % spines)
            )
    if pods:
        cores = math.ceil(pods.count * pods.w / plane.radix)
        for p in range(pods.count):
            for j in range(u // pods.each):
                for i in range(pods.w):
                    _link(net, ("agg", p, j), ("core", j, (p * pods.w + i) % cores))
    return net


def _link(net: nx.Graph, a: Node, b: Node) -> None:
    net.add_edge(a, b, links=net.get_edge_data(a, b, {"links": 0})["links"] + 1)


def path(plane: Wired, s: int, d: int, middle: int, core: int) -> list[Node]:
    """The switches a flow passes."""
    if s == d:
        return [("leaf", s)]
    if plane.pods is None:
        return [("leaf", s), ("spine", middle), ("leaf", d)]
    up, down = ("agg", s // plane.pods.leaves, middle), ("agg", d // plane.pods.leaves, middle)
    return (
        [("leaf", s), up, ("leaf", d)] if up == down else [("leaf", s), up, ("core", middle, core), down, ("leaf", d)]
    )


def loads_on_paths(plane: Wired, flows: Flows, routed: PlaneRoutes) -> Counter[tuple[Node, Node]]:
    """Flows on every directed bundle."""
    net = graph(plane)
    loads: Counter[tuple[Node, Node]] = Counter()
    for s, d, middle, core in zip(flows.src, flows.dst, routed.middle, routed.core, strict=True):
        nodes = path(plane, int(s), int(d), int(middle), int(core))
        assert nx.is_path(net, nodes)
        loads.update(pairwise(nodes))
    return loads


PLANES = [
    Wired(leaves=8, uplinks=4, radix=8),
    Wired(leaves=6, uplinks=5, radix=8),
    Wired(leaves=12, uplinks=4, radix=8, pods=Pods(l=4, w=4, count=3)),
    Wired(leaves=18, uplinks=3, radix=8, pods=Pods(l=5, w=3, count=4)),
    Wired(leaves=10, uplinks=2, radix=4, pods=Pods(l=3, w=1, count=4)),
    Wired(leaves=9, uplinks=4, radix=8, pods=Pods(l=4, w=2, count=5, each=2)),
]
GENERAL = [name for name in ALGORITHMS if name not in ("colouring", "sheltered")]  # these need equal links


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("plane", PLANES)
def test_loads_are_those_of_explicit_paths(plane: Wired, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "annealing", partial(annealed_cores, cooling=QUICK))
    flows = random_rings(plane.leaves, 4, 5, seed=2)
    routed = route_tiers(plane.plane, flows, algorithm_name=name, seed=1)
    loads, net = loads_on_paths(plane, flows, routed), graph(plane)
    worst = max(n / net.edges[edge]["links"] for edge, n in loads.items())
    assert routed.alpha == pytest.approx(worst)
    assert routed.bound <= routed.alpha
    for i, j in np.ndindex(routed.loads[0].up.shape):
        above = ("agg", i // plane.pods.leaves, j) if plane.pods else ("spine", j)
        assert routed.loads[0].up[i, j] == loads[("leaf", i), above]
        assert routed.loads[0].down[i, j] == loads[above, ("leaf", i)]
    for row, m in np.ndindex(routed.loads[1].up.shape if plane.pods else (0, 0)):
        j, p = divmod(row, plane.pods.count if plane.pods else 1)
        assert routed.loads[1].up[row, m] == loads[("agg", p, j), ("core", j, m)]
        assert routed.loads[1].down[row, m] == loads[("core", j, m), ("agg", p, j)]


@pytest.mark.parametrize("plane", PLANES)
def test_hops_are_the_bundles_of_the_paths(plane: Wired) -> None:
    flows = random_rings(plane.leaves, 4, 5, seed=2)
    routed = route_tiers(plane.plane, flows)
    loads, net = loads_on_paths(plane, flows, routed), graph(plane)
    crossed = routed.hops.bundles[routed.hops.bundles >= 0]
    sharing = np.bincount(crossed, minlength=routed.hops.capacity.size)
    found = sorted((n, links) for n, links in zip(sharing.tolist(), routed.hops.capacity.tolist(), strict=True) if n)
    assert found == sorted((n, net.edges[edge]["links"]) for edge, n in loads.items())
    assert flow_rates(routed.hops).min() <= 1 / routed.bound + 1e-12


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 4]))
def test_three_tiers_without_oversubscription_block_no_permutation(seed: int, hosts: int) -> None:
    wired = plane(leaves=16, uplinks=4, radix=8, pods=Pods(l=4, w=4, count=4))
    routed = route_tiers(wired, random_rings(16, hosts, 16 * hosts, seed), algorithm_name="colouring")
    assert routed.alpha <= 1


def test_a_flow_inside_its_pod_needs_no_core_and_one_inside_its_leaf_no_slice() -> None:
    wired = plane(leaves=8, uplinks=2, radix=8, pods=Pods(l=4, w=4, count=2))
    routed = route_tiers(wired, between((0, 3), (5, 5), (0, 4)))
    assert (routed.middle >= 0).tolist() == [True, False, True]
    assert (routed.core >= 0).tolist() == [False, False, True]
    routed = route_tiers(plane(leaves=1, uplinks=0, radix=8), between((0, 0)))
    assert (routed.alpha, routed.bound, routed.middle.tolist()) == (0, 0, [-1])


def test_the_bound_knows_the_links_between_pods_and_slices_share_their_flows() -> None:
    """Exchanges between slices may end with a flow too many above a pod."""
    tapered = plane(leaves=8, uplinks=2, radix=8, pods=Pods(l=4, w=1, count=2))
    leaving = between(*[(i, 4 + i) for i in range(4)])  # four flows over two links
    wide, rings = plane(leaves=64, uplinks=16, radix=32, pods=Pods(l=16, w=8, count=4)), random_rings(64, 8, 8, seed=0)
    narrow, few = plane(leaves=8, uplinks=3, radix=64, pods=Pods(l=2, w=1, count=4)), random_rings(8, 2, 8, seed=240)
    for wired, flows, name, alpha, bound in (
        (tapered, leaving, "best", 2, 2), (wide, rings, "colouring", 1, 1), (narrow, few, "best", 2, 1)
    ):  # fmt: skip
        routed = route_tiers(wired, flows, algorithm_name=name)
        assert (routed.alpha, routed.bound) == (alpha, bound)


def test_every_family_of_an_instance_has_a_plane_with_its_links() -> None:
    seen = set()
    for family in families(ask(cluster__gpus=512)):
        for uplinks in family.uplink_choices if family.tiers > 1 else ():
            wired = plane_of(family, uplinks)
            seen.add(family.tiers)
            first, *second = wired.layers
            assert first.links.sum() == family.leaves * uplinks
            assert family.pods is not None or first.cores == family.spines(uplinks)
            for layer in second:
                assert layer.links.sum() == family.pods.count * uplinks * family.pods.w
    assert seen == {2, 3}


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(2, 6), st.integers(1, 3), st.integers(1, 8))
def test_links_above_tapered_pods_have_at_most_one_flow_more_than_they_must(seed, uplinks, leaves, w, hosts) -> None:
    wired = plane(leaves=4 * leaves, uplinks=uplinks, radix=64, pods=Pods(l=leaves, w=w, count=4))
    routed = route_tiers(wired, random_rings(4 * leaves, hosts, 2 * leaves * hosts, seed))
    assert routed.alpha <= max(routed.loads[0].alpha, math.ceil(routed.bound)) + 1


FOUR_GROUPS = plane(leaves=16, uplinks=4, radix=8, pods=Pods(l=4, w=4, count=4))  # two cores in each of four groups


@settings(max_examples=60)
@given(st.integers(0, 5), st.integers(0, 50), st.sampled_from(["best", "greedy", "ecmp"]))
def test_flows_between_pods_avoid_what_failed(failed: int, seed: int, name: str) -> None:
    flows = random_rings(16, 4, 4, seed)
    try:
        _, second = FOUR_GROUPS.without_cores(failed, seed)
    except InstanceError:
        return
    found = route_tiers(FOUR_GROUPS, flows, algorithm_name=name, seed=seed, failed_cores=failed)
    for f in np.flatnonzero(found.core >= 0).tolist():
        for end in (flows.src[f], flows.dst[f]):
            row = found.middle[f] * 4 + end // 4
            assert second.links[row, found.core[f]] > 0
    assert found.alpha >= found.bound


def test_a_slice_without_cores_is_left_out_and_without_any_core_it_is_said() -> None:
    """Of eight core switches two fail; where they are the two of one group, three slices carry all."""
    hit = next(seed for seed in range(100) if (FOUR_GROUPS.without_cores(2, seed)[0].links.sum(axis=0) == 0).any())
    first, _ = FOUR_GROUPS.without_cores(2, hit)
    assert sorted((first.links.sum(axis=0) > 0).tolist()) == [False, True, True, True]
    assert route_tiers(FOUR_GROUPS, random_rings(16, 4, 4, 0), seed=hit, failed_cores=2).alpha > 1
    with pytest.raises(InstanceError, match="failed cores: 8"):
        FOUR_GROUPS.without_cores(8, 0)
