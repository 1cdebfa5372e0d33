"""Route every flow between domains over the graph of a network, and find the busiest link.

Nothing is taken from the intervals by which loads are charged: flows come from the numbers of
ranks, paths from links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

from coopt.verifier.parts.loads import tree_edges
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.wiring import Graph, Node, WiredGraph
from coopt.verifier.training.caching import kept
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
    blocks, stages = range(place.pp_across), place.pp_across * place.pp_in
    groups = ring_groups(place, blocks, expert_tp=expert_tp)
    hops = [(stage, (stage + 1) % stages) for stage in range(stages - 1 + looped)]
    return {
        "ep": exchange_flows(place, expert_tp=expert_tp),
        "pp": [
            flow for a, b in hops for ends in ((a, b), (b, a)) for flow in stage_flows(place, *ends)
        ],
        "tied": tied_flows(place),
        **{kind: ring_flows(of_kind) for kind, of_kind in groups.items()},
    }


def ring_flows(groups: Iterable[Sequence[int]]) -> list[DomainFlow]:
    """Each member of a group to the next one, the last to the first."""
    rings = (zip(one, [*one[1:], one[0]], strict=True) for one in groups)
    return [DomainFlow(a, b) for ring in rings for a, b in ring if a != b]


def exchange_flows(place: Placement, *, expert_tp: bool) -> list[DomainFlow]:
    """Each member of an expert group to all others."""
    groups = (
        members[start : start + place.ep_across]
        for members in _holders(place, range(place.pp_across), expert_tp=expert_tp)
        for start in range(0, len(members), place.ep_across)
    )
    return [DomainFlow(*ends) for group in groups for ends in permutations(group, 2)]


def stage_flows(place: Placement, sender: int, receiver: int) -> list[DomainFlow]:
    """What GPUs of a stage send those of another in other domains, on the rail of the receiver."""
    source, target = sender // place.pp_in, receiver // place.pp_in
    rail = rail_of(place, receiver)
    return [
        DomainFlow(_domain(place, source, *ranks), _domain(place, target, *ranks), rail)
        for ranks in _ranks(place)
        if source != target
    ]


def tied_flows(place: Placement) -> list[DomainFlow]:
    """First and last stage to each other; in two directions all stages as far from either end."""
    if not place.two_way:
        last = place.pp_across * place.pp_in - 1
        return [*stage_flows(place, 0, last), *stage_flows(place, last, 0)]
    twins = [(block, place.pp_across - 1 - block) for block in range(place.pp_across)]
    return [
        DomainFlow(_domain(place, a, *ranks), _domain(place, b, *ranks))
        for a, b in twins
        for ranks in _ranks(place)
        if a != b
    ]


def rail_of(place: Placement, stage: int) -> int:
    """Where in its domain a stage is: stages run through one domain upwards, through the next one
    downwards.
    """
    block, inside = divmod(stage, place.pp_in)
    return inside if block % 2 == 0 else place.pp_in - 1 - inside


def _ranks(place: Placement) -> Iterator[tuple[int, ...]]:
    return product(range(place.dp_across), range(place.cp_across), range(place.tp_across))


def _domain(place: Placement, stage: int, replica: int, context: int, tensor: int) -> int:
    """The domain of a rank by its numbers across domains."""
    slot = replica * place.cp_across + context
    if place.outermost == "dp":
        return (slot * place.pp_across + stage) * place.tp_across + tensor
    return (stage * place.dp_across * place.cp_across + slot) * place.tp_across + tensor


def _holders(place: Placement, blocks: Iterable[int], *, expert_tp: bool) -> Iterator[list[int]]:
    """The domains that divide the experts of a stage, those of each TP rank apart where TP splits
    experts, too.
    """
    t = place.tp_across
    for block in blocks:
        domains = [_domain(place, block, *ranks) for ranks in _ranks(place)]
        yield from [domains[i::t] for i in range(t)] if expert_tp else [domains]


def ring_groups(
    place: Placement, blocks: Sequence[int], *, expert_tp: bool
) -> dict[str, list[list[int]]]:
    """The domains of each group of some blocks of stages that gathers and scatters, by kind of
    traffic, in the order of their ring.
    """
    axes = range(place.dp_across), range(place.cp_across), range(place.tp_across)
    replicas, contexts, tensors = axes
    groups: dict[str, list[list[int]]] = {kind: [] for kind in ("tp", "cp", "dp", "edp")}
    for stage in blocks:
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
    for members in _holders(place, blocks, expert_tp=expert_tp):
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


class SpreadPaths:
    """Flows spread over all shortest paths: every switch divides what it holds over its links
    towards the end.

    On the way up a switch above gets as much as its links on towards the end can take: of two links
    to it that are followed by one, one counts.

    On three tiers the links of a leaf to each aggregation switch lead into a slice of its own, and
    all slices are the same network: where their number is given, the first one is walked for all.
    """

    def __init__(self, graph: Graph, slices: int = 0) -> None:
        self._graph, self._slices = graph, slices

    @kept()
    def uplinks(self, node: Node) -> dict[Node, int]:
        """Switches of the next level, with the links there."""
        links = {
            upper: data["links"] for upper, data in self._graph[node].items() if upper[0] > node[0]
        }
        if self._slices and node[0] == 1:
            links = {upper: count for upper, count in links.items() if upper[3] == 0}
        return links

    def between(self, source: Node, target: Node) -> Mapping[tuple[Node, Node], float]:
        """The share of each link that a flow of rate 1 takes."""
        shares: dict[tuple[Node, Node], float] = {}
        levels = [{target}]
        while True:
            levels.append({upper for node in levels[-1] for upper in self.uplinks(node)})
            turning = self._switches_above(source, len(levels) - 1)
            if turning & levels[-1]:
                break
            assert levels[-1], "all leaves of a plane are joined"
        amounts = {source: 1.0 / (self._slices or 1)}
        for height in range(1, len(levels)):
            ups = [self._towards(node, levels, height) for node in amounts]
            onward = {
                upper: self._onward(upper, levels, height + 1) for ways in ups for upper in ways
            }
            amounts = self._hand_on(shares, amounts, ups, onward)
        for nodes in reversed(levels[:-1]):
            links_up = {node: self.uplinks(node) for node in nodes}
            down = [
                {node: links[upper] for node, links in links_up.items() if upper in links}
                for upper in amounts
            ]
            amounts = self._hand_on(shares, amounts, down)
        return shares

    def _switches_above(self, source: Node, height: int) -> set[Node]:
        nodes = {source}
        for _ in range(height):
            nodes = {upper for node in nodes for upper in self.uplinks(node)}
        return nodes

    def _towards(self, node: Node, levels: list[set[Node]], height: int) -> dict[Node, int]:
        """The switches above from which one that leads down to the end can be reached."""
        climbs = len(levels) - 1 - height
        return {
            upper: n
            for upper, n in self.uplinks(node).items()
            if self._switches_above(upper, climbs) & levels[-1]
        }

    def _onward(self, node: Node, levels: list[set[Node]], height: int) -> int:
        """Links of a switch on the way up that lead on towards the end."""
        if height < len(levels):
            return sum(self._towards(node, levels, height).values())
        return sum(self.uplinks(lower).get(node, 0) for lower in levels[-2])

    @staticmethod
    def _hand_on(
        shares: dict[tuple[Node, Node], float],
        amounts: Mapping[Node, float],
        links: list[dict[Node, int]],
        onward: Mapping[Node, int] | None = None,
    ) -> dict[Node, float]:
        """Hand on what each switch holds over its links, of which no more count than lead on."""
        arrived: defaultdict[Node, float] = defaultdict(float)
        for (node, amount), ways in zip(amounts.items(), links, strict=True):
            weights = {
                neighbour: min(count, (onward or ways)[neighbour])
                for neighbour, count in ways.items()
            }
            total = sum(weights.values())
            for neighbour, count in ways.items():
                shares[node, neighbour] = amount * weights[neighbour] / total / count
                arrived[neighbour] += amount * weights[neighbour] / total
        return dict(arrived)


def nic_pairs(
    family: DesignFamily, place: Placement, flow: DomainFlow
) -> Iterator[tuple[Node, Node]]:
    """The end points between which a flow of domains runs; of separate planes those of the first
    and last rail.
    """
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
        self._paths, self._family, self._place = SpreadPaths(wiring.graph), family, place
        self._upward = cache(self._links_up)
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
        return max(self._busiest(counter, one_by_one=one_by_one) for counter in counters)

    def _links_up(self, source: Node, target: Node) -> dict[tuple[Node, Node], float]:
        """What each single link on the way up carries of a flow of 1 between two leaves."""
        shares = self._paths.between(source, target) if source != target else {}
        return {(a, b): share for (a, b), share in shares.items() if a[0] < b[0]}

    def _busiest(
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
                for link, share in self._upward(leaf, receiver).items():
                    nic_loads[link] = (
                        max(nic_loads[link], share) if one_by_one else nic_loads[link] + share
                    )
            for link, share in nic_loads.items():
                loads[link] += count * share
        return max(loads.values(), default=0.0)


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
