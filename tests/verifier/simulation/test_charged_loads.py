"""What traffic meets on the links of the graph is what the closed form charges, under every discipline."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from coopt.verifier.parts.layouts import chains
from coopt.verifier.parts.space import families
from coopt.verifier.parts.spans import other_ways, reach_of, slowdowns_of
from coopt.verifier.parts.wiring import uneven_switches, wire
from coopt.verifier.simulation.fabric_flows import along_trees, halving
from coopt.verifier.simulation.iteration import Carrier
from coopt.verifier.simulation.networks import FabricNetwork, link_sharing
from coopt.verifier.training.gathers import halving_shares
from coopt.verifier.training.placing import Placement
from tests.conftest import example_count
from tests.verifier.agreement import Question, question

QUESTIONS = example_count(240, usual=120)
PHASES = {"tp": "tp", "cp": "cp", "dp": "dp", "ep": "ep", "edp": "edp", "tied": "tied"}


def network(asked: Question, seed: int) -> FabricNetwork | None:
    """A random network of two tiers or three, where the question has one that is charged by loads."""
    if asked.instance.network.discipline.charge == "ratio":
        return None
    offered = asked.instance.network
    if offered.discipline.routing not in ("pinned", "ecmp"):
        offered = offered.model_copy(update={"pod_bundles": (1, 2)})
    found = [
        (family, chain.with_up(up))
        for family in families(asked.instance)
        if family.active == asked.active
        for chain in chains(family, offered)
        for up in chain.uplinks
        if chain.ports.tiers > 1
    ]
    Random(seed).shuffle(found)
    if seed % 3 == 0:
        found.sort(key=lambda pair: pair[1].pod_each == 1)  # those with bundles in pods first
    for family, ports in found:
        wiring = wire(family, ports)
        if bool(uneven_switches(wiring)) == (offered.bundles == "any"):
            return FabricNetwork(family, ports, wiring, link_sharing(asked.instance.network))
    return None


def departure(found: float, charged: float, net: FabricNetwork, flow: float) -> str:
    """Random paths are one draw, which rarely exceeds the charge; flows over uneven bundles may stay below it, to
    leaves that have more links in common. Above pods paths that are pinned may take one `flow` more than counts need:
    said where they do, and `solve` tells of its own paths. Everything else is equal."""
    if net.sharing.routing == "ecmp":
        return "unlucky" if found > charged * (1 + 1e-9) else ""
    if uneven_switches(net.wiring):
        assert found <= charged * (1 + 1e-9), net.ports
    elif net.sharing.routing == "pinned" and net.ports.tiers > 2 and found > charged * (1 + 1e-9):
        assert found == pytest.approx(charged + flow, rel=1e-9, abs=0), net.ports
        return "one flow more"
    else:
        assert found == pytest.approx(charged, rel=1e-9, abs=0), net.ports
    return ""


def compare_ways(net: FabricNetwork, place: Placement, carrier: Carrier) -> Counter[Any]:
    """Halving and doubling and two trees among all groups at once, beside what they are charged."""
    seen: Counter[Any] = Counter()
    reach, to_nics_byte_s = reach_of(net.family, net.ports), net.family.hb.to_nics_gbyte_s * 1e9
    members = {"tp": place.tp_across, "dp": place.dp_across * place.cp_across, "edp": place.copies_across}
    for kind, count in members.items():
        if count < 3:
            continue
        ways = other_ways(reach, net.family.active, place, kind)
        of_stages = range(1 if kind == "tp" else place.pp_across * place.pp_in)
        names = ["tp"] if kind == "tp" else [f"{kind} {stage}" for stage in of_stages]
        s_byte = 1 / carrier.pace_byte_s
        charged = [max(slow.sure * s_byte, 1 / to_nics_byte_s) for slow in ways]
        rounds = enumerate(halving_shares(count))
        found = sum(share / carrier.rates.pace(*(halving(name, j) for name in names)) for j, share in rounds) * s_byte
        seen[departure(found, charged[0], net, s_byte)] += 1
        seen["halving", net.sharing.routing] += found > s_byte * (1 + 1e-9)
        if count > 3:
            trees_s = s_byte / carrier.rates.pace(*map(along_trees, names))
            seen[departure(trees_s, charged[1], net, s_byte / 4)] += 1
            seen["trees", net.sharing.routing] += trees_s > s_byte * (1 + 1e-9)
    return seen


def test_loads_on_the_graph_are_those_that_are_charged() -> None:
    """As `departure` says, for all kinds of traffic and all ways of theirs."""
    seen: Counter[Any] = Counter()
    for seed in range(QUESTIONS):
        asked = question(seed, most=5)
        net = network(asked, seed)
        for split, place in asked.rows if net is not None else ():
            looped = split.interleave > 1
            slower = slowdowns_of(reach_of(net.family, net.ports), net.family.active, place, looped=looped)._asdict()
            near = net.family.nic_byte_s / (net.family.hb.to_nics_gbyte_s * 1e9)
            charged = {kind: max(load.sure, near) for kind, load in slower.items()}
            carrier = net.carrier(place, split, is_tied=True, has_choice=True)
            rates = carrier.rates
            seen += compare_ways(net, place, carrier)
            for kind in PHASES:
                phases = [phase for phase in rates.number if phase.split()[0] == kind]
                if not phases:
                    continue
                flow = 1 / (place.ep_across - 1) if kind == "ep" else 1.0
                seen[departure(1 / rates.pace(*phases), charged[kind], net, flow)] += 1
                seen[net.sharing.routing] += 1
                seen["bundled"] += net.ports.pod_each > 1
                slowed = 1 + 1e-9 < charged[kind] < (1 + 1e-9) / rates.pace(*phases)
                seen["uneven"] += asked.instance.network.bundles == "any"
                seen["uneven as charged"] += asked.instance.network.bundles == "any" and slowed
    assert min(seen[routing] for routing in ("spray", "pinned", "ecmp")) > 100 * QUESTIONS / 240
    assert (
        min(seen[way, how] for way in ("halving", "trees") for how in ("spray", "pinned", "ecmp")) > QUESTIONS / 80
    ), seen
    assert seen["one flow more"] < QUESTIONS / 48
    assert seen["unlucky"] < 0.05 * seen["ecmp"]
    assert seen["bundled"] > QUESTIONS / 24
    assert seen["uneven"] > 100 * QUESTIONS / 240
    assert seen["uneven as charged"] > QUESTIONS / 12, seen
