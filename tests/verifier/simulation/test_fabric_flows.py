"""Flows on the links of small fabrics, counted by hand: F flows over u uplinks take F/u times as long."""

import pytest

from coopt.instance.network import SwitchedKind
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.simulation.fabric_flows import Lane, fabric_rates, messages
from coopt.verifier.simulation.networks import FabricNetwork
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import Placement
from tests.verifier.cases import split
from tests.verifier.simulation.networks import network, placement

LEAVES_OF_4 = Ports(2, 4, 2)
LOOPED: ScalarMapping = split(pp=4, interleave=2)


def slowdown(
    on: FabricNetwork, place: Placement, *phases: str, mapping: ScalarMapping | None = None, is_tied: bool = False
) -> float:
    rates = on.carrier(place, mapping or split(), is_tied=is_tied).rates
    return 1 / rates.pace(*phases)


def every(word: str, stages: int) -> list[str]:
    return [f"{word} {stage}" for stage in range(stages)]


def test_hops_leave_where_a_stage_ends_with_its_leaf() -> None:
    """Stages of 4 domains all leave; of stages of 2, every other one does; the last may hop to the first."""
    rails = network("rail-only", 12, 1, LEAVES_OF_4)
    assert slowdown(rails, placement(pp_across=3, dp_across=4), *every("forward", 2)) == pytest.approx(2.0)
    assert slowdown(rails, placement(pp_across=6, dp_across=2), *every("forward", 5)) == pytest.approx(1.0)
    whole = network("rail-only", 16, 1, LEAVES_OF_4)
    assert slowdown(whole, placement(pp_across=4, dp_across=4), "forward 3", mapping=LOOPED) == pytest.approx(2.0)


def test_hops_of_both_ways_share_nics_of_middle_stages() -> None:
    """A middle stage has two messages to send, up and down; every NIC sends one unit in a unit of time."""
    rails = network("rail-only", 12, 1, Ports(1, 12))
    place = placement(pp_across=3, dp_across=4)
    assert slowdown(rails, place, *every("forward", 2)) == pytest.approx(1.0)
    assert slowdown(rails, place, "forward 1", "backward 1") == pytest.approx(2.0)
    assert slowdown(rails, place, "forward 0", "backward 1") == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("outer", "rails"),
    [
        (2, {"forward 1": 1, "backward 2": 1, "forward 3": 0, "backward 0": 0, "dp 1": 1, "dp 2": 1, "dp 3": 0}),
        (3, {"forward 1": 1, "forward 3": 0, "backward 4": 0, "forward 5": 0, "backward 0": 1, "dp 4": 0, "dp 5": 1}),
    ],
)
def test_stages_run_through_one_domain_upwards_and_through_the_next_downwards(outer, rails):
    """Two stages a domain: the hop between domains stays on one rail, the last one takes the receiver's."""
    place, by_stage = placement(pp_in=2, pp_across=outer, dp_across=2), [[Lane(inner, 0, 1)] for inner in (0, 1)]
    sent = list(messages(place, by_stage, goes_round=True, is_tied=True))
    for phase, rail in rails.items():
        assert {one.lane.plane for one in sent if one.phase == phase} == {rail}
    assert {one.phase for one in sent if one.phase.startswith("forward")} == {
        f"forward {2 * i + 1}" for i in range(outer)
    }


@pytest.mark.parametrize(("kind", "domains"), [("rail-only", 16), ("rail-optimized", 16)])
def test_pods_are_left_by_fewer_links(kind: SwitchedKind, domains: int) -> None:
    """Pods of two leaves of 4, 2 uplinks each, one link up from each of the two aggregation switches.

    Half of the domains hop to the other half: 8 flows of a rail over 2 links, where leaves have 4 over 2.
    """
    pods = network(kind, domains, 2, Ports(3, 4, 2, 2, 1))
    place = placement(tp_in=2, pp_across=2, dp_across=8)
    assert slowdown(pods, place, "forward 0") == pytest.approx(8 / 2)
    assert slowdown(pods, place, "dp 0") == pytest.approx(1.0)


def test_uneven_bundles_take_what_their_narrower_end_gives() -> None:
    """3 uplinks over 2 spines: of the two links of a leaf to one of them, the one counts that goes on down."""
    uneven = network("rail-only", 12, 1, Ports(2, 4, 3), radix=7)
    place = placement(pp_across=3, dp_across=4)
    assert slowdown(uneven, place, "forward 0") == pytest.approx(4 / 2)


@pytest.mark.parametrize(("up", "simulated"), [(2, 1), (3, 2)])
def test_a_rail_stands_for_all_that_share_no_link_and_are_alike(up: int, simulated: int) -> None:
    """Leaves of one rail each, with as many links to each spine; of 3 uplinks over 2 spines some have two to one."""
    fabric = network("rail-optimized", 12, 2, Ports(2, 4, up), radix=up * 6 // 2 + 1)
    place = placement(tp_in=2, pp_across=3, dp_across=4)
    assert fabric.coverage(place).startswith(("1 of 2 equal rails", "all 2 NICs")[simulated - 1])
    (lanes,) = fabric._lanes(place)
    every_lane = [Lane(0, rail, 1) for rail in (0, 1)]
    sent = messages(place, [every_lane], goes_round=False, is_tied=False)
    whole = fabric_rates(fabric.family, fabric.ports, fabric.wiring, list(sent), fabric.sharing)
    rates = fabric.carrier(place, split(), is_tied=False).rates
    assert rates is not None
    assert [rates.pace(phase) for phase in rates.number] == [whole.pace(phase) for phase in rates.number]
    assert len(lanes) == simulated


def test_what_is_simulated_is_said() -> None:
    place = placement(tp_in=4, dp_across=4)
    assert network("rail-only", 4, 4, Ports(2, 2, 1)).coverage(place) == ("1 of 4 equal rails of all 4 HB domains")
    whole = network("clos", 4, 4, Ports(2, 2, 1)).coverage(place)
    assert whole == "all 4 NICs of training GPUs in each of 4 HB domains"
