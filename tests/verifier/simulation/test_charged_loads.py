"""What traffic meets on the links of the graph is what the closed form charges, under every discipline."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from coopt.verifier.parts.layouts import chains
from coopt.verifier.parts.space import families
from coopt.verifier.parts.spans import reach_of, slowdowns_of
from coopt.verifier.parts.wiring import uneven_switches, wire
from coopt.verifier.simulation.networks import FabricNetwork, link_sharing
from tests.verifier.agreement import Question, question

PHASES = {"tp": "tp", "cp": "cp", "dp": "dp", "ep": "ep", "edp": "edp", "tied": "tied"}


def network(asked: Question, seed: int) -> FabricNetwork | None:
    """A random network of two tiers or three with even bundles, where the question has one that is charged by loads."""
    if asked.instance.network.discipline.charge == "ratio":
        return None
    found = [
        (family, chain.with_up(up))
        for family in families(asked.instance)
        if family.active == asked.active
        for chain in chains(family, asked.instance.network)
        for up in chain.uplinks
        if chain.ports.tiers > 1
    ]
    Random(seed).shuffle(found)
    for family, ports in found:
        wiring = wire(family, ports)
        if not uneven_switches(wiring):
            return FabricNetwork(family, ports, wiring, link_sharing(asked.instance.network))
    return None


def test_loads_on_the_graph_are_those_that_are_charged() -> None:
    """Random paths are one draw, which with luck to spare stays below the charge; everything else is equal."""
    seen: Counter[str] = Counter()
    for seed in range(160):
        asked = question(seed, most=5)
        net = network(asked, seed)
        for split, place in asked.rows if net is not None else ():
            assert net is not None
            looped = split.interleave > 1
            charged = slowdowns_of(reach_of(net.family, net.ports), net.family.active, place, looped=looped)._asdict()
            rates = net.carrier(place, split, is_tied=True).rates
            assert rates is not None
            for kind in PHASES:
                phases = [phase for phase in rates.number if phase.split()[0] == kind]
                if not phases:
                    continue
                slowdown, routing = 1 / rates.pace(*phases), net.sharing.routing
                if routing == "ecmp":
                    assert slowdown <= charged[kind] * (1 + 1e-9)
                else:
                    assert slowdown == pytest.approx(charged[kind], rel=1e-9), (seed, kind, net.ports, place)
                seen[routing] += 1
    assert min(seen[routing] for routing in ("spray", "pinned", "ecmp")) > 100
