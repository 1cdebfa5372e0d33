"""The flows of an iteration on the graph of a fabric: who sends to whom, and which links carry how
much of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.link_loads import SpreadPaths
from coopt.verifier.parts.loads import tree_edges
from coopt.verifier.parts.network_checks import GpuPlaces
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.wiring import Node, WiredGraph
from coopt.verifier.simulation.events import FairRates, Flow, Resource
from coopt.verifier.simulation.whole_paths import LeafPair, SingleLink, WholePaths
from coopt.verifier.training.gathers import Flows
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


class FlowGroups(NamedTuple):
    """Groups of `members` domains, `stride` apart, that tile the domains of a rail."""

    members: int
    stride: int

    def of(self, domain: int) -> range:
        """The group that a domain belongs to, in the order of its ring."""
        start = domain - domain // self.stride % self.members * self.stride
        return range(start, start + self.members * self.stride, self.stride)

    def successor(self, domain: int, distance: int = 1) -> int:
        """The next member of the ring, or that so far on, after the last the first."""
        group = self.of(domain)
        return group[(group.index(domain) + distance) % self.members]


def messages(
    place: Placement,
    by_stage: list[list[Lane]],
    domains: int,
    *,
    goes_round: bool,
    is_tied: bool,
    ways: Collection[Flows] = (),
) -> Iterator[Message]:
    """Everything that one domain sends to another in an iteration.

    TP ranks are numbered fastest, then CP, DP, PP, or PP right after TP. Gradients go round CP and
    DP ranks together, and those of experts from one expert group to the next.

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
    q, t, c, step = place.stage_across, place.tp_across * place.step, place.cp_across, place.step
    all_lanes = [lane for lanes_of_stage in by_stage for lane in lanes_of_stage]
    yield from _gathers("tp", FlowGroups(place.tp_across, 1), all_lanes, range(domains), ways)
    yield from _rings("cp", FlowGroups(c, t), all_lanes, range(domains))
    experts = FlowGroups(place.ep_across, q // (place.copies_across * place.ep_across) * step)
    yield from _exchanges(experts, all_lanes, domains)
    data = FlowGroups(c * place.dp_across, t)
    of_experts = FlowGroups(place.copies_across, q // place.copies_across * step)
    for stage in range(place.pp_across * place.pp_in):
        members, senders = _domains(place, stage // place.pp_in), _home(place, by_stage, stage)
        yield from _gathers(replicas(stage), data, senders, members, ways)
        yield from _gathers(expert_copies(stage), of_experts, senders, members, ways)
    if place.pp_across > 1:
        yield from _hops(place, by_stage, goes_round=goes_round)
        last_stage = place.pp_across * place.pp_in - 1
        if is_tied and place.two_way:
            for block in range(place.pp_across):
                twin = place.pp_across - 1 - block
                yield from _between(place, TIED, all_lanes, block, twin) if twin != block else ()
        elif is_tied:
            yield from _between(
                place, TIED, _home(place, by_stage, last_stage), 0, place.pp_across - 1
            )
            yield from _between(place, TIED, _home(place, by_stage, 0), place.pp_across - 1, 0)


def _home(place: Placement, by_stage: list[list[Lane]], stage: int) -> list[Lane]:
    """The lanes of a stage: stages run through one domain upwards and through the next one
    downwards.
    """
    block, place_in_block = divmod(stage, place.pp_in)
    return by_stage[place_in_block if block % 2 == 0 else place.pp_in - 1 - place_in_block]


def _hops(place: Placement, by_stage: list[list[Lane]], *, goes_round: bool) -> Iterator[Message]:
    """Between the last stage of a domain and the first one of the next, on rails of the receiver,
    which are the same.

    Those of the last stage of all and of the first may differ: hops there are passed on inside the
    sender's domain.
    """
    block_stages, blocks = place.pp_in, place.pp_across
    for block in range(blocks if goes_round else blocks - 1):
        next_block = (block + 1) % blocks
        last_stage, next_stage = block * block_stages + block_stages - 1, next_block * block_stages
        yield from _between(
            place, forward(last_stage), _home(place, by_stage, next_stage), block, next_block
        )
        yield from _between(
            place, backward(next_stage), _home(place, by_stage, last_stage), next_block, block
        )


def _between(
    place: Placement, phase: str, senders: list[Lane], source: int, target: int
) -> Iterator[Message]:
    """From every domain of one block of stages to its peer in another."""
    for sender, receiver in zip(_domains(place, source), _domains(place, target), strict=True):
        yield from (Message(phase, lane, sender, receiver, 1.0) for lane in senders)


def _domains(place: Placement, block: int) -> list[int]:
    """The domains of a block of stages: one after the other, or a TP block of each pipeline."""
    t = place.tp_across
    blocks = range(
        block * place.hop, block * place.hop + place.stage_across * place.step, t * place.step
    )
    return [start + i for start in blocks for i in range(t)]


def _rings(
    phase: str, groups: FlowGroups, senders: list[Lane], domains: Iterable[int]
) -> Iterator[Message]:
    """Every member of a ring sends to the next one."""
    for source in domains if groups.members > 1 else ():
        target = groups.successor(source)
        yield from (Message(phase, lane, source, target, 1.0) for lane in senders)


def _gathers(
    phase: str,
    groups: FlowGroups,
    senders: list[Lane],
    domains: Sequence[int],
    ways: Collection[Flows],
) -> Iterator[Message]:
    """Rings, and what takes their place by other ways, each in phases of its own."""
    yield from _rings(phase, groups, senders, domains)
    count, stride = groups
    for number in range((count - 1).bit_length() if "halving" in ways and count > 2 else 0):
        distance, paired = 2**number, FlowGroups(2, stride * 2**number)
        for source in domains:
            # among 2^i members partners swap; else each sends to the one so far ahead, as in the
            # gather of Bruck et al.
            target = (
                groups.successor(source, distance)
                if count & (count - 1)
                else paired.successor(source)
            )
            yield from (
                Message(halving(phase, number), lane, source, target, 1.0) for lane in senders
            )
    if "trees" in ways and count > 3:
        firsts = [domain for domain in domains if groups.of(domain)[0] == domain]
        for members in map(groups.of, firsts):
            # each of two trees carries half of the data, up and down in the two halves of a sum
            # together
            for child, parent in tree_edges(count):
                ends = members[child], members[parent]
                for source, target in (ends, ends[::-1]):
                    yield from (
                        Message(along_trees(phase), lane, source, target, 1 / 4) for lane in senders
                    )


def _exchanges(groups: FlowGroups, senders: list[Lane], domains: int) -> Iterator[Message]:
    """Every member of a group sends to all others alike."""
    for source in range(domains if groups.members > 1 else 0):
        for target in groups.of(source):
            if target != source:
                share = 1 / (groups.members - 1)
                yield from (Message("ep", lane, source, target, share) for lane in senders)


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
