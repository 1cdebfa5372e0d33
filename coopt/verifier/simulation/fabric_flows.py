"""The flows of an iteration on the graph of a fabric: who sends to whom, and which links carry how
much of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Literal, NamedTuple

from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.link_loads import (
    DomainFlow,
    SpreadPaths,
    exchange_flows,
    rail_of,
    ring_flows,
    ring_groups,
    stage_flows,
    tied_flows,
    way_flows,
)
from coopt.verifier.parts.network_checks import GpuPlaces
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.wiring import Node, WiredGraph
from coopt.verifier.simulation.events import FairRates, Flow, Resource
from coopt.verifier.simulation.whole_paths import LeafPair, SingleLink, WholePaths
from coopt.verifier.training.gathers import Flows, doublings
from coopt.verifier.training.placing import Placement

Link = tuple[int, Node, Node]


class LinkSharing(NamedTuple):
    """How flows share links between switches: spread over all paths, pinned to one each, or at
    random on one each.

    A link carries the share `capacity` of its rate.
    """

    routing: Literal["spray", "pinned", "ecmp"] = "spray"
    capacity: float = 1.0


class Lane(NamedTuple):
    """NICs of a domain that send alike: one stands for `copies` of them, with the number `rail` on
    its plane.

    Lanes of different `plane` share nothing.
    """

    plane: int
    rail: int
    copies: int


class Message(NamedTuple):
    """What NICs of a lane send from one domain to another in a phase, in units of the phase."""

    phase: str
    lane: Lane
    source: int
    target: int
    volume: float


forward, backward = "forward {}".format, "backward {}".format
"""The phases in which a stage passes activations on, and in which it passes gradients back."""

replicas, expert_copies = "dp {}".format, "edp {}".format
"""The phases in which the replicas of a stage, or the copies of its experts, add up gradients and
hand out parameters.
"""

halving, along_trees = "round {1} of {0}".format, "trees of {}".format
"""The phases of a round of halving and doubling, and of two trees, in place of the rings of a
phase.
"""

TIED = "tied"
"""The phase in which first and last stage add up gradients of the embedding, or GPUs with the same
stages those.
"""


def lanes(
    family: DesignFamily, ports: Ports, place: Placement, *, spread: bool, rails_alike: bool
) -> list[list[Lane]]:
    """The lanes of each stage inside a domain; rails that are alike are simulated once.

    All domains count as filled as the fullest, as traffic is charged. All planes of a rail-only
    network are the same network, and stages take as many of them each. Where a leaf of a Clos
    network holds whole domains, all NICs of a domain are on the same leaf, and alike where flows
    are spread. Rails that share no link, and that nothing tells apart, are the same network, too.
    """
    attachment = family.network
    stage_nics = family.nics_of(place.filled) // place.pp_in
    if family.planes > 1:
        return [[Lane(stage, 0, 1)] for stage in range(place.pp_in)]
    if ports.tiers == 1 or (
        spread and attachment.kind == "clos" and ports.down % family.rails == 0
    ):
        return [[Lane(0, stage, stage_nics)] for stage in range(place.pp_in)]
    if rails_alike:
        return [[Lane(0, stage * stage_nics, 1)] for stage in range(place.pp_in)]
    return [
        [Lane(0, stage * stage_nics + i, 1) for i in range(stage_nics)]
        for stage in range(place.pp_in)
    ]


def rails_alike(family: DesignFamily, ports: Ports, wiring: WiredGraph | None) -> bool:
    """Whether rails share no link and nothing tells them apart: each leaf has NICs of one rail, and
    all have the same links up, to the same switches.
    """
    if wiring is None or ports.tiers != 2 or family.network.kind != "rail-optimized":
        return False
    rails_of_leaf, _ = family.leaf_block(ports.down)
    links_up = (
        {upper: edge["links"] for upper, edge in wiring.graph[node].items() if upper[0] > 1}
        for node in wiring.graph
        if node[0] == 1
    )
    first = next(links_up)
    return rails_of_leaf == 1 and all(links == first for links in links_up)


def messages(
    place: Placement,
    by_stage: list[list[Lane]],
    *,
    goes_round: bool,
    is_tied: bool,
    ways: Collection[Flows] = (),
) -> Iterator[Message]:
    """Everything that one domain sends to another in an iteration.

    Hops pass between the last stage of a domain and the first one of the next, on rails of the
    receiver, which are the same. Those of the last stage of all and of the first may differ: hops
    there are passed on inside the sender's domain.

    Parameters
    ----------
    goes_round
        Whether the pipeline passes through its stages several times.
    is_tied
        Whether first and last stage hold the same embedding, or, of pipelines in two directions,
        what they all hold.
    ways
        What else than rings TP and gradients may take.
    """
    # where fewer domains than those of a stage divide its experts, TP splits each of them
    expert_tp = place.ep_across * place.copies_across < place.stage_across
    rings = ring_groups(place, range(place.pp_across), expert_tp=expert_tp)
    yield from _gathers("tp", rings["tp"], by_stage, ways)
    yield from _gathers("cp", rings["cp"], by_stage, ())
    share = 1 / max(place.ep_across - 1, 1)
    yield from _sent("ep", sorted(exchange_flows(place, expert_tp=expert_tp)), by_stage, share)
    stages = place.pp_across * place.pp_in
    for stage in range(stages):
        groups = ring_groups(place, [stage // place.pp_in], expert_tp=expert_tp)
        home = [by_stage[rail_of(place, stage)]]
        yield from _gathers(replicas(stage), groups["dp"], home, ways)
        yield from _gathers(expert_copies(stage), groups["edp"], home, ways)
    for stage in range(stages - 1 + goes_round):
        next_stage = (stage + 1) % stages
        yield from _sent(forward(stage), stage_flows(place, stage, next_stage), by_stage)
        yield from _sent(backward(next_stage), stage_flows(place, next_stage, stage), by_stage)
    if is_tied:
        yield from _sent(TIED, tied_flows(place), by_stage)


def _gathers(
    phase: str, groups: list[list[int]], by_stage: list[list[Lane]], ways: Collection[Flows]
) -> Iterator[Message]:
    """Rings, and what takes their place by other ways, each in phases of its own."""
    yield from _sent(phase, sorted(ring_flows(groups)), by_stage)
    count = max(map(len, groups), default=1)
    for number in range(doublings(count) if "halving" in ways and count > 2 else 0):
        # among 2^i members partners swap; else each sends to the one so far ahead, as in the
        # gather of Bruck et al.
        flows = sorted(way_flows(groups, "halving", number))
        yield from _sent(halving(phase, number), flows, by_stage)
    if "trees" in ways and count > 3:
        # each of two trees carries half of the data, up and down in the two halves of a sum
        # together
        yield from _sent(along_trees(phase), way_flows(groups, "trees"), by_stage, 1 / 4)


def _sent(
    phase: str, flows: Iterable[DomainFlow], by_stage: list[list[Lane]], volume: float = 1.0
) -> Iterator[Message]:
    """What domains send in a phase, on the lanes of all stages inside or on those of one."""
    for source, target, rail in flows:
        for lane in chain(*by_stage) if rail is None else by_stage[rail]:
            yield Message(phase, lane, source, target, volume)


def fabric_rates(
    family: DesignFamily,
    ports: Ports,
    wiring: WiredGraph | None,
    traffic: list[Message],
    sharing: LinkSharing,
) -> FairRates:
    """Rates of messages whose NICs send one unit each in a unit of time at most.

    Parameters
    ----------
    wiring
        The graph; None where one switch holds a plane.
    sharing
        How flows share links between switches.
    """
    busy = max(1.0, family.nic_byte_s / (family.hb.to_nics_gbyte_s * 1e9))
    if wiring is None:
        return FairRates(
            Flow(message.phase, message.volume, _nics(message, busy)) for message in traffic
        )
    places = GpuPlaces(family, ports, wiring)

    def leaves(message: Message) -> LeafPair:
        plane, rail, _ = message.lane
        return plane, places.leaf(0, message.source, rail), places.leaf(0, message.target, rail)

    ends = [leaves(message) for message in traffic]
    if sharing.routing != "spray":
        paths = _whole_paths(WholePaths(wiring, sharing.routing), traffic, ends)
        return FairRates(
            Flow(
                message.phase,
                message.volume,
                _nics(message, busy) | dict.fromkeys(path, 1.0 / sharing.capacity),
            )
            for message, path in zip(traffic, paths, strict=True)
        )
    shares = link_shares(wiring, ports, sorted({pair for pair in ends if pair[1] != pair[2]}))
    flows = (
        Flow(
            message.phase,
            message.volume,
            _nics(message, busy) | {link: copies * share for link, share in carried},
        )
        for message, pair in zip(traffic, ends, strict=True)
        for copies, carried in [(message.lane.copies / sharing.capacity, shares.get(pair, ()))]
    )
    return FairRates(flows)


def _whole_paths(
    router: WholePaths, traffic: list[Message], ends: list[LeafPair]
) -> list[tuple[SingleLink, ...]]:
    """One path for each message that leaves its leaf, kind by kind; hops one way at a time."""
    paths: list[tuple[SingleLink, ...]] = [()] * len(traffic)
    kinds: defaultdict[str, list[int]] = defaultdict(list)
    for number, (message, (_, source, target)) in enumerate(zip(traffic, ends, strict=True)):
        if source != target:
            kinds[_kind_of(message.phase)].append(number)
    for numbers in kinds.values():
        for number, path in zip(
            numbers, router.of_kind([ends[number] for number in numbers]), strict=True
        ):
            paths[number] = path
    return paths


def _kind_of(phase: str) -> str:
    """What is under way together in all stages: a kind of traffic, or a round or the trees of
    it.
    """
    words = phase.split()
    return " ".join(words[: words.index("of") + 2 if "of" in words else 1])


def _nics(message: Message, busy: float) -> dict[Resource, float]:
    """The NIC that sends and the one that receives, and how busy a flow at their rate keeps them or
    what joins them to their GPUs.
    """
    lane = message.lane
    return {
        ("out", lane.plane, lane.rail, message.source): busy,
        ("in", lane.plane, lane.rail, message.target): busy,
    }


def link_shares(
    wiring: WiredGraph, ports: Ports, pairs: list[LeafPair]
) -> dict[LeafPair, tuple[tuple[Resource, float], ...]]:
    """Which share of the links between switches a flow of rate 1 takes, for each pair of leaves.

    Links that carry the same shares of the same pairs are one resource.
    """
    paths = SpreadPaths(wiring.graph, ports.slices if ports.tiers == 3 else 0)
    carried: defaultdict[Link, dict[LeafPair, float]] = defaultdict(dict)
    for pair in pairs:
        plane, source, target = pair
        for (lower, upper), share in paths.between(source, target).items():
            carried[plane, lower, upper][pair] = share
    first_links: dict[frozenset[tuple[LeafPair, float]], Link] = {}
    flow_shares: defaultdict[LeafPair, list[tuple[Resource, float]]] = defaultdict(list)
    for link, shares in carried.items():
        if first_links.setdefault(frozenset(shares.items()), link) == link:
            for pair, share in shares.items():
                flow_shares[pair].append((link, share))
    return {pair: tuple(link_list) for pair, link_list in flow_shares.items()}
