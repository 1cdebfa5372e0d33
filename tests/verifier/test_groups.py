from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.loads import Pattern
from coopt.verifier.parts.network_checks import GpuPlaces, groups_across, neighbours, pairs_outside, unconnected_pairs
from coopt.verifier.parts.spans import Reach, blocks_of, reach_of
from coopt.verifier.parts.wiring import attached_ends, wire
from coopt.verifier.training.placing import Placement
from tests.verifier.test_layouts import family

CLOS = family("clos", 240, 4, 16)
PORTS = Ports(3, 8, 4, 10, 6)
PLACE = Placement(2, 2, 1, 15, 2, 2)


def across(place: Placement) -> dict[str, tuple[int, int]]:
    """Members and stride of the groups of each kind that cross domains."""
    return {kind: (group.members, group.stride) for kind, group in groups_across(place).items()}


def test_groups_are_numbered_tp_first_then_dp_then_pp() -> None:
    assert across(PLACE) == {"tp": (2, 1), "dp": (2, 2), "pp": (15, 4)}
    pairs = [(0, 2), (1, 3), (2, 0), (3, 1), (4, 6), (5, 7), (6, 4), (7, 5)]
    assert list(neighbours(Pattern("ring", 2, 2), 8)) == pairs
    assert list(neighbours(Pattern("hops", 3, 2), 6)) == [(0, 2), (1, 3), (2, 4), (3, 5), (4, 0), (5, 1)]


def test_context_groups_lie_within_the_block_of_data_parallelism_and_expert_groups_in_one_of_their_own() -> None:
    place = Placement(2, 2, 1, 5, 1, 3, 2, 2, 4, 4, 1, 3)
    own = {"tp": (2, 1), "cp": (2, 2), "dp": (6, 2), "ep": (4, 1), "edp": (3, 4), "pp": (5, 12)}
    assert across(place) == own
    assert across(place._replace(ep_across=2)) == own | {"ep": (2, 2)}
    assert blocks_of(place, 60) == (2, 12, 12, 4, 12, 60, 60)


def test_expert_groups_are_followed_over_the_graph() -> None:
    places = GpuPlaces(CLOS, PORTS, wire(CLOS, PORTS))
    place = Placement(1, 1, 1, 5, 4, 12, 1, 1, 4, 4, 1, 3)
    assert unconnected_pairs(places, place) == 0
    assert pairs_outside(places, place, reach_of(CLOS, PORTS), 3) == 0
    generous = Reach(60, 12, 12, 2.0, 10 / 3)
    # Blocks of 12 domains on leaves of 2: each of 4 local ranks has 12 DP neighbours, of which 6 are elsewhere; of 4
    # expert neighbours in a group half are, and copies, 4 domains apart, always.
    assert pairs_outside(places, place, generous, 3) == 4 * (30 + 30 + 60)


def test_a_sound_network_connects_all_groups_where_they_are_charged() -> None:
    places = GpuPlaces(CLOS, PORTS, wire(CLOS, PORTS))
    assert unconnected_pairs(places, PLACE) == 0
    assert pairs_outside(places, PLACE, reach_of(CLOS, PORTS), 3) == 0


def test_a_cut_link_is_noticed() -> None:
    wiring = wire(CLOS, PORTS)
    leaf = (1, 0, 5)
    wiring.graph.remove_edges_from([(leaf, other) for other in list(wiring.graph[leaf]) if other[0] == 2])
    places = GpuPlaces(CLOS, PORTS, wiring)
    # Leaf 5 holds domains 10 and 11, 8 GPUs: their TP stays inside, their DP and PP neighbours are out of reach.
    assert unconnected_pairs(places, Placement(2, 2, 1, 60, 2, 1)._replace(pp_across=30)) == 2 * 2 * 4
    assert unconnected_pairs(places, PLACE) == 8 + 8 + 2 * 8
    wiring.graph.remove_edge(leaf, (0, 0, 10, 0))
    assert attached_ends(wiring) == 239


def test_a_rate_granted_too_generously_is_noticed() -> None:
    places = GpuPlaces(CLOS, PORTS, wire(CLOS, PORTS))
    generous = Reach(60, 4, 60, 2.0, 10 / 3)
    # Blocks of 4 domains do not fit into leaves of 2: each of 4 local ranks has 60 DP neighbours elsewhere.
    assert pairs_outside(places, PLACE, generous._replace(pod_span=0), 3) == 240
    everywhere = generous._replace(leaf_span=1)
    crossing = pairs_outside(places, PLACE, everywhere, 3)
    # Pods hold 20 domains and stages are 4 domains apart: 4 x 4 ranks leave each of three pods for the next.
    assert crossing == 3 * 4 * 4
