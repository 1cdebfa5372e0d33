"""Route every flow between domains over the graph of a network, and find the busiest link.

Nothing is taken from the intervals by which loads are charged: flows come from the numbers of
ranks, paths from links.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

from coopt.verifier.parts.loads import tree_edges
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.wiring import Graph, Node, WiredGraph
from coopt.verifier.training.gathers import Flows
from coopt.verifier.training.placing import Placement


class DomainFlow(NamedTuple):
    """What one domain sends to another, on all rails, or on those of one of the stages inside a
    domain.
    """

    sender: int
    receiver: int
    stage: int | None = None


def domain_flows(place: Placement, *, looped: bool, expert_tp: bool) -> dict[str, list[DomainFlow]]:
    """Who sends to whom, by kind of traffic; `looped` says whether hops lead from the last stage to
    the first.
    """
    t, c, d, p = place.tp_across, place.cp_across, place.dp_across, place.pp_across
    flows: dict[str, list[DomainFlow]] = {kind: [] for kind in ("ep", "pp", "tied")}
    for kind, groups in ring_groups(place, expert_tp=expert_tp).items():
        flows[kind] = [flow for members in groups for flow in _ring(members)]
    for members in _holders(place, expert_tp=expert_tp):
        for start in range(0, len(members), place.ep_across):
            group = members[start : start + place.ep_across]
            flows["ep"] += [DomainFlow(a, b) for a, b in product(group, group) if a != b]
    last_stage = p * place.pp_in - 1
    for ranks in product(range(d), range(c), range(t)):
        pipeline = [_domain(place, e, *ranks) for e in range(p)]
        for stage in range(last_stage + looped if p > 1 else 0):
            flows["pp"] += _both_ways(
                stage, (stage + 1) % (last_stage + 1), place, pipeline.__getitem__
            )
        if place.two_way:
            flows["tied"] += [
                DomainFlow(pipeline[i], pipeline[p - 1 - i]) for i in range(p) if i != p - 1 - i
            ]
        elif p > 1:
            flows["tied"] += _both_ways(0, last_stage, place, pipeline.__getitem__)
    return flows


def _domain(place: Placement, stage: int, replica: int, context: int, tensor: int) -> int:
    """The domain of a rank by its numbers across domains."""
    slot = replica * place.cp_across + context
    if place.outermost == "dp":
        return (slot * place.pp_across + stage) * place.tp_across + tensor
    return (stage * place.dp_across * place.cp_across + slot) * place.tp_across + tensor


def _holders(place: Placement, *, expert_tp: bool) -> Iterator[list[int]]:
    """The domains that divide the experts of a stage, those of each TP rank apart where TP splits
    experts, too.
    """
    axes = range(place.dp_across), range(place.cp_across), range(place.tp_across)
    for stage in range(place.pp_across):
        domains = [_domain(place, stage, *ranks) for ranks in product(*axes)]
        yield from [domains[i :: place.tp_across] for i in axes[2]] if expert_tp else [domains]


def ring_groups(place: Placement, *, expert_tp: bool) -> dict[str, list[list[int]]]:
    """The domains of each group that gathers and scatters, by kind of traffic, in the order of
    their ring.
    """
    axes = range(place.dp_across), range(place.cp_across), range(place.tp_across)
    replicas, contexts, tensors = axes
    groups: dict[str, list[list[int]]] = {kind: [] for kind in ("tp", "cp", "dp", "edp")}
    for stage in range(place.pp_across):
        groups["tp"] += [
            [_domain(place, stage, *ranks, i) for i in tensors]
            for ranks in product(replicas, contexts)
        ]
        groups["cp"] += [
            [_domain(place, stage, d, i, t) for i in contexts]
            for d, t in product(replicas, tensors)
        ]
        groups["dp"] += [
            [_domain(place, stage, *ranks, t) for ranks in product(replicas, contexts)]
            for t in tensors
        ]
    for members in _holders(place, expert_tp=expert_tp):
        if place.ep_across * place.copies_across == len(members):
            groups["edp"] += [members[i :: place.ep_across] for i in range(place.ep_across)]
    return groups


def way_flows(groups: Iterable[Sequence[int]], flows: Flows, turn: int = 0) -> list[DomainFlow]:
    """Who sends to whom in a round of halving and doubling, or along two trees, by which edges may
    be doubled.
    """
    domain_pairs = []
    for members in groups:
        y, distance = len(members), 2**turn
        if flows == "trees":
            edges = [(members[a], members[b]) for a, b in tree_edges(y)]
            domain_pairs += [DomainFlow(*ends) for edge in edges for ends in (edge, edge[::-1])]
        else:
            to = [(i + distance) % y if y & (y - 1) else i ^ distance for i in range(y)]
            domain_pairs += [DomainFlow(members[i], members[j]) for i, j in enumerate(to)]
    return domain_pairs


def _both_ways(
    a: int, b: int, place: Placement, domain: Callable[[int], int]
) -> Iterator[DomainFlow]:
    """What GPUs of two stages send each other across domains, each on the rail of the receiver.

    Stages run through a domain upwards, through the next one downwards.
    """
    for sender, receiver in ((a, b), (b, a)):
        block, inside = divmod(receiver, place.pp_in)
        if sender // place.pp_in != block:
            rail = inside if block % 2 == 0 else place.pp_in - 1 - inside
            yield DomainFlow(domain(sender // place.pp_in), domain(block), rail)


def _ring(members: Sequence[int]) -> list[DomainFlow]:
    """Each to the next one, the last to the first."""
    return [
        DomainFlow(a, b) for a, b in zip(members, [*members[1:], members[0]], strict=True) if a != b
    ]


class LeafPair(NamedTuple):
    """Leaves of a NIC that sends and of one that receives."""

    sender: Node
    receiver: Node


class Router:
    """Spreads flows over all shortest paths of a graph of two or three tiers, each of them as much
    as any other.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._shares: dict[LeafPair, dict[tuple[Node, Node], float]] = {}

    def upward(self, pair: LeafPair) -> dict[tuple[Node, Node], float]:
        """What each single link on the way up carries of a flow of 1 between two leaves."""
        if pair not in self._shares:
            weights: defaultdict[tuple[Node, Node], float] = defaultdict(float)
            total = 0
            for hops, count in self._paths(pair):
                total += count
                for hop in hops:
                    # by parallel links, so that each single one of them carries as much
                    weights[hop] += count
            self._shares[pair] = {
                (lower_switch, upper_switch): (
                    weight / total / self._links(lower_switch, upper_switch)
                )
                for (lower_switch, upper_switch), weight in weights.items()
            }
        return self._shares[pair]

    def _links(self, a: Node, b: Node) -> int:
        return int(self._graph[a][b]["links"])

    def _uplinks(self, node: Node) -> list[Node]:
        return [neighbour for neighbour in self._graph.neighbors(node) if neighbour[0] > node[0]]

    def _paths(self, pair: LeafPair) -> Iterator[tuple[list[tuple[Node, Node]], int]]:
        """The hops upward of every path between two leaves, and by how many parallel links it may
        go.
        """
        a, b = pair
        if a == b:
            return
        # below a switch that joins both leaves, or else over the cores
        common = [node for node in self._uplinks(a) if self._graph.has_edge(node, b)]
        for node in common:
            yield [(a, node)], self._links(a, node) * self._links(node, b)
        for lower_switch in [] if common else self._uplinks(a):
            for core in self._uplinks(lower_switch):
                for upper_switch in self._graph[core]:
                    if self._graph.has_edge(upper_switch, b):
                        stops = (a, lower_switch, core, upper_switch, b)
                        ways = math.prod(self._links(*hop) for hop in pairwise(stops))
                        yield [(a, lower_switch), (lower_switch, core)], ways

    def busiest(
        self, targets: Counter[tuple[Node, tuple[Node, ...]]], *, one_by_one: bool
    ) -> float:
        """The load of the busiest link on the way up, where so many NICs at a leaf each send 1 to
        each of some leaves.

        Parameters
        ----------
        one_by_one
            Whether a NIC sends to one of them at a time, any of them.
        """
        loads: defaultdict[tuple[Node, Node], float] = defaultdict(float)
        for (leaf, receivers), count in targets.items():
            nic_loads: defaultdict[tuple[Node, Node], float] = defaultdict(float)
            for receiver in receivers:
                for link, share in self.upward(LeafPair(leaf, receiver)).items():
                    nic_loads[link] = (
                        max(nic_loads[link], share) if one_by_one else nic_loads[link] + share
                    )
            for link, share in nic_loads.items():
                loads[link] += count * share
        return max(loads.values(), default=0.0)


def nic_pairs(
    family: DesignFamily, place: Placement, flow: DomainFlow
) -> Iterator[tuple[Node, Node]]:
    """The end points between which a flow of domains runs; of separate planes those of the first
    and last rail.
    """
    assert family.gear is not None
    nics = family.nics_of(place.filled)
    ends = nics // place.pp_in
    rails = range(nics) if flow.stage is None else range(flow.stage * ends, (flow.stage + 1) * ends)
    for rail in rails:
        if family.planes == 1:
            yield (0, 0, flow.sender, rail), (0, 0, flow.receiver, rail)
        elif rail in (0, nics - 1):
            yield (0, rail, flow.sender, 0), (0, rail, flow.receiver, 0)


def busiest_links(
    wiring: WiredGraph, family: DesignFamily, place: Placement, *, looped: bool, expert_tp: bool
) -> dict[str, float]:
    """The load of the busiest link under each kind of traffic, in rates of a NIC, all flows sprayed
    over all paths.

    A link loads both ways: what NICs send up to it, and what others receive down from it.
    """
    loads, network = {}, RoutedNetwork(wiring, family, place)
    for kind, flows in domain_flows(place, looped=looped, expert_tp=expert_tp).items():
        rate = 1 / (place.ep_across - 1) if kind == "ep" and place.ep_across > 1 else 1.0
        loads[kind] = rate * network.busiest(flows, one_by_one=kind == "pp")
    return loads


class RoutedNetwork:
    """A network over whose graph the NICs of a placement send."""

    def __init__(self, wiring: WiredGraph, family: DesignFamily, place: Placement) -> None:
        self._router, self._family, self._place = Router(wiring.graph), family, place
        self._leaf = {
            node: next(iter(edges)) for node, edges in wiring.graph.adjacency() if node[0] == 0
        }

    def busiest(self, flows: Iterable[DomainFlow], *, one_by_one: bool = False) -> float:
        """The load of the busiest link under flows of the rate of a NIC each, or `one_by_one` those
        of a NIC.
        """
        receivers: defaultdict[Node, list[Node]] = defaultdict(list)
        senders: defaultdict[Node, list[Node]] = defaultdict(list)
        for flow in flows:
            for sender, receiver in nic_pairs(self._family, self._place, flow):
                receivers[sender].append(self._leaf[receiver])
                senders[receiver].append(self._leaf[sender])
        counters = (
            Counter((self._leaf[nic], tuple(sorted(leaves))) for nic, leaves in side.items())
            for side in (receivers, senders)
        )
        return max(self._router.busiest(counter, one_by_one=one_by_one) for counter in counters)


def is_even(wiring: WiredGraph) -> bool:
    """Whether every switch of a level has the same number of links to each of the same number of
    switches above.
    """
    shapes: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    for node, edges in wiring.graph.adjacency():
        links = sorted(
            edge["links"] for neighbour, edge in edges.items() if neighbour[0] > node[0] > 0
        )
        if links:
            shapes[node[0]].add(tuple(links))
    return all(
        len(level_shapes) == 1 and len(set(next(iter(level_shapes)))) == 1
        for level_shapes in shapes.values()
    )
