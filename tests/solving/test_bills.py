"""Bills of networks tell how many cables lead from a switch to each one above: those of the graph."""

from __future__ import annotations

from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.solving.plan_bills import _network
from tests.conftest import example_count
from tests.solving.questions import twin_ported


def bundles(family: Family, uplinks: int) -> list[int]:
    """The fewest parallel links of a bundle above each tier."""
    if family.tiers < 2:
        return [0] * family.tiers
    return [int(wires.links.min()) for wires in family.chain(uplinks).wires()] + [0]


@settings(max_examples=example_count(60, usual=8))
@given(twin_ported((1, 2, 4)))
def test_bundles_are_those_of_the_graph(instance: Instance) -> None:
    for family in list(families(instance))[::7]:
        for uplinks in family.uplink_choices[::3]:
            cost = cost_of(instance, family, uplinks)
            told = _network("network", design_of(family, uplinks), cost).tier
            assert [tier.bundle for tier in told] == bundles(family, uplinks)
