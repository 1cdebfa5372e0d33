"""Flows that keep to one path: as even as whole flows can be where they are pinned, no better at random."""

import math
from collections import Counter
from random import Random

import pytest

from coopt.verifier.parts.layouts import Ports
from coopt.verifier.simulation.fabric_flows import LinkSharing
from coopt.verifier.simulation.networks import FabricNetwork
from coopt.verifier.simulation.whole_paths import even_colours
from coopt.verifier.training.placing import Placement
from tests.verifier.cases import split
from tests.verifier.simulation.networks import network, placement

STAGES_OF_4 = placement(pp_across=3, dp_across=4)


def slowdown(on: FabricNetwork, place: Placement, routing: str, *phases: str) -> float:
    sharing = LinkSharing(routing)  # type: ignore[arg-type]
    rates = on._replace(sharing=sharing).carrier(place, split(), is_tied=False).rates
    assert rates is not None
    return 1 / rates.pace(*phases)


@pytest.mark.parametrize("seed", range(60))
def test_colours_are_even_in_every_class(seed: int) -> None:
    """At both ends, and in pods of two vertices each as well."""
    draw = Random(seed)
    sides, colours = draw.randint(1, 7), draw.randint(1, 6)
    numbers = [(draw.randrange(sides), draw.randrange(sides)) for _ in range(draw.randint(0, 60))]
    edges = [(((a, "leaf"), (a // 2, "pod")), ((b, "leaf"), (b // 2, "pod"))) for a, b in numbers]
    found = even_colours(edges, colours)
    assert len(found) == len(edges)
    assert all(0 <= colour < colours for colour in found)
    for side in (0, 1):
        sizes = Counter(group for edge in edges for group in edge[side])
        held = Counter((group, colour) for edge, colour in zip(edges, found, strict=True) for group in edge[side])
        for (group, _), count in held.items():
            assert math.floor(sizes[group] / colours) <= count <= math.ceil(sizes[group] / colours)


@pytest.mark.parametrize("ports", [Ports(2, 4, 3), Ports(2, 4, 2), Ports(3, 4, 2, 2, 2)])
@pytest.mark.parametrize(
    "place", [STAGES_OF_4, placement(dp_across=12, ep_across=6), placement(tp_across=3, dp_across=4)]
)
def test_chance_is_no_better_than_pins_and_pins_no_better_than_spreading(ports: Ports, place: Placement) -> None:
    rails = network("rail-only", 12, 1, ports)
    rates = rails.carrier(place, split(), is_tied=False).rates
    assert rates is not None
    for phase in rates.number:
        spread, pinned, random = (slowdown(rails, place, routing, phase) for routing in ("spray", "pinned", "ecmp"))
        assert spread <= pinned * (1 + 1e-9)
        assert spread <= random * (1 + 1e-9)


def test_one_draw_of_random_paths_is_the_same_each_time() -> None:
    rails = network("rail-only", 12, 1, Ports(2, 4, 4))
    one, again = (slowdown(rails, STAGES_OF_4, "ecmp", "forward 0", "forward 1") for _ in range(2))
    assert one == again > 1
    assert rails._replace(sharing=LinkSharing("ecmp")).coverage(STAGES_OF_4).endswith("draw of random paths")


def test_planes_left_out_are_not_said_to_have_the_paths_drawn() -> None:
    planes = network("rail-only", 4, 4, Ports(2, 2, 1))._replace(sharing=LinkSharing("ecmp"))
    said = planes.coverage(placement(tp_in=4, dp_across=4))
    assert said.startswith("1 of 4 rails")
    assert "paths of their own" in said
