"""Edge colouring: proper, and as good as any routing where links are equal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.ring_traffic import joint, random_rings
from coopt.instance.texts import InstanceError
from coopt.network.routing import layers
from coopt.network.routing.algorithms import best_cores, greedy_cores, sheltered_cores
from coopt.network.routing.colouring import NO_EDGE, coloured_cores, completed_colours, edge_colours, split_classes
from tests.network.routing.small import between, complete, counted_alpha, routable

EDGES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60)


def _largest_share(ends: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Edges of the fullest class at each vertex."""
    table = np.zeros((7, int(classes.max(initial=0)) + 1), dtype=int)
    np.add.at(table, (ends, classes), 1)
    return table.max(axis=1)


@given(EDGES, st.integers(0, 4))
def test_splitting_shares_the_edges_of_every_vertex_out(edges: list[tuple[int, int]], rounds: int) -> None:
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    classes = split_classes(left, right, rounds)
    for ends in (left, right):
        degree = np.bincount(ends, minlength=7)
        assert (_largest_share(ends, classes) <= -(-degree // 2**rounds)).all()


@given(EDGES, st.integers(0, 4), st.integers(0, 6), st.integers(0, 6))
def test_splitting_shares_the_edges_of_neighbours_out(edges, rounds, first, last) -> None:
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    classes = split_classes(left, right, rounds)
    for ends in (left, right):
        shares = np.bincount(classes[(first <= ends) & (ends <= last)])
        assert shares.max(initial=0) <= shares.sum() / 2**rounds + 2


@given(EDGES, st.integers(0, 3))
def test_colourings_are_proper_with_no_more_colours_than_the_largest_degree(edges, spare) -> None:
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    colours = max(np.bincount(left).max(initial=1), np.bincount(right).max(initial=1)) + spare
    found = edge_colours(left, right, int(colours))
    assert ((found >= 0) & (found < colours)).all()
    assert (_largest_share(left, found) <= 1).all()
    assert (_largest_share(right, found) <= 1).all()


@given(EDGES)
def test_alternating_paths_alone_colour_every_graph(edges: list[tuple[int, int]]) -> None:
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    colours = int(max(np.bincount(left).max(initial=1), np.bincount(right).max(initial=1)))
    found = completed_colours(left, right, colours, np.full(left.size, NO_EDGE))
    assert (_largest_share(left, found) <= 1).all()
    assert (_largest_share(right, found) <= 1).all()


@given(routable(flows=120))
def test_no_routing_is_better_where_links_are_equal(case: tuple[layers.TwoLayer, layers.Flows]) -> None:
    assert float(counted_alpha(*case, coloured_cores(*case))) == pytest.approx(layers.lower_bound(*case))


@given(routable(flows=120))
def test_every_leaf_shares_its_own_flows_out(case: tuple[layers.TwoLayer, layers.Flows]) -> None:
    clos, flows = case
    loads = layers.link_loads(clos, flows, coloured_cores(clos, flows))
    working = int((clos.links[0] > 0).sum())
    for table in (loads.up, loads.down):
        assert (table.max(axis=1) <= -(-table.sum(axis=1) // working)).all()


def test_the_best_is_the_colouring_or_else_the_greedy_routing() -> None:
    """A colouring needs equal links, but for leaves without flows."""
    flows = between((0, 1), (0, 1), (1, 0))
    equal, unequal = complete(2, 3), layers.TwoLayer(links=np.array([[1, 2], [1, 1]]))
    assert (best_cores(equal, flows) == coloured_cores(equal, flows)).all()
    assert (best_cores(unequal, flows) == greedy_cores(unequal, flows)).all()
    with pytest.raises(InstanceError, match="equally many"):
        coloured_cores(unequal, between((0, 1)))
    third = layers.TwoLayer(links=np.array([[1, 1], [1, 1], [0, 3]]))
    assert sorted(coloured_cores(third, between((0, 1), (0, 1))).tolist()) == [0, 1]


@settings(max_examples=50)
@given(routable(flows=60))
def test_the_best_has_the_optimal_alpha_and_is_as_fair_as_either(case: tuple[layers.TwoLayer, layers.Flows]) -> None:
    def rank(cores: layers.Ints) -> tuple[float, tuple[float, ...]]:
        return -float(counted_alpha(*case, cores)), layers.fairness_key(
            layers.group_rates(case[1].group, layers.flow_rates(layers.hops(*case, cores)))
        )

    best = rank(best_cores(*case))
    assert -best[0] == pytest.approx(layers.lower_bound(*case))
    assert best >= rank(coloured_cores(*case))
    assert -best[0] <= 1 or best >= rank(sheltered_cores(*case))


@given(routable(flows=120))
def test_sheltering_groups_costs_no_alpha(case: tuple[layers.TwoLayer, layers.Flows]) -> None:
    assert float(counted_alpha(*case, sheltered_cores(*case))) == pytest.approx(layers.lower_bound(*case))


def test_sheltered_groups_notice_no_other() -> None:
    flows = between((0, 1), group=0), between((0, 1), group=1), between((0, 1), (0, 1), group=2)
    clos, together = complete(2, 3), joint(flows)
    rates = layers.group_rates(
        together.group, layers.flow_rates(layers.hops(clos, together, sheltered_cores(clos, together)))
    )
    assert rates.tolist() == [1, 1, 0.5]


def test_sheltering_helps_more_groups_than_plain_colouring_when_cores_failed() -> None:
    clos, flows = complete(64, 28), random_rings(64, 32, 8, seed=0)
    plain, sheltered = (
        layers.efficiency(
            layers.group_rates(flows.group, layers.flow_rates(layers.hops(clos, flows, assign(clos, flows))))
        )
        for assign in (coloured_cores, sheltered_cores)
    )
    assert sheltered > plain + 0.1
