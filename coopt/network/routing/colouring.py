"""Cores by bipartite edge colouring: no routing is better where all cores join all leaves alike.

On three tiers, slices of flows are nearly as even for pods as for leaves, so that links above pods
carry little more.

Flows of two slices at a time are dealt anew. At either end they are paired at their leaf, what is
left over in their pod, and what is left over then with any other; pairs chain all flows into rings,
along which the two slices alternate. So no leaf and no pod has two flows more in the one than in
the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.instance.texts import InstanceError
from coopt.network.routing.layers import Bools, Flows, Ints, TwoLayer, require_paths

NOBODY = -1
MOST_FAILURES = 200
"""Exchanges that make nothing more even after which the search ends."""

NO_EDGE = -1


def even_slices(
    flows: Flows, slices: Ints, *, count: int, pod_leaves: int, max_flows: int, max_pod_flows: int
) -> Ints:
    """Deal flows anew until no pod sends or receives more than so many by a slice, or exchanges
    help no more.

    Parameters
    ----------
    slices
        Slice of each flow below `count`, -1 inside a leaf, with no more than `max_flows` of a leaf
        in one; shape (flows,).
    pod_leaves
        Leaves of a pod, the last of which may have fewer.
    max_flows, max_pod_flows
        Flows in a slice that a leaf may have, and a pod to others, in each direction.

    Returns
    -------
    Slice of each flow, with no more than `max_flows` of a leaf in one; shape (flows,).
    """
    dealt_slices, draw, failures = slices.copy(), np.random.default_rng(0), 0
    pods = flows.src // pod_leaves, flows.dst // pod_leaves
    beyond = pods[0] != pods[1]
    loads = _pod_loads(pods, beyond, dealt_slices, count)
    while loads.max(initial=0) > max_pod_flows and failures < MOST_FAILURES:
        *pod, full_slice = np.unravel_index(int(loads.argmax()), loads.shape)
        # The emptiest slice of the pod first; once that has failed, any, or the search would repeat
        # itself.
        partner_slice = draw.integers(count) if failures else int(loads[tuple(pod)].argmin())
        pair = draw.permutation(
            np.flatnonzero((dealt_slices == full_slice) | (dealt_slices == partner_slice))
        )
        dealt = dealt_slices.copy()
        dealt[pair] = np.where(
            _halves_of_flows(flows.take(pair), pod_leaves, beyond[pair], 2 * max_flows),
            full_slice,
            partner_slice,
        )
        new_loads = _pod_loads(pods, beyond, dealt, count)
        better = int((loads**2).sum() - (new_loads**2).sum())
        # Moves that change nothing are taken as well: others become possible after them.
        if better >= 0:
            dealt_slices, loads = dealt, new_loads
        failures = 0 if better > 0 else failures + 1
    return dealt_slices


def _pod_loads(pods: tuple[Ints, Ints], beyond: Bools, slices: Ints, count: int) -> Ints:
    """Flows of every pod to others in each slice; shape (2, pods, slices), out and in."""
    size = int(max(ends.max(initial=0) for ends in pods)) + 1
    return np.stack(
        [
            np.bincount(ends[beyond] * count + slices[beyond], minlength=size * count).reshape(
                size, count
            )
            for ends in pods
        ]
    )


def _halves_of_flows(flows: Flows, pod_leaves: int, beyond: Bools, full_degree: int) -> Bools:
    """Which of two halves each flow goes to; a leaf with `full_degree` flows is halved, whoever
    else is uneven.
    """
    partners = []
    for leaves in (flows.src, flows.dst):
        odd = len(leaves) % 2  # one more flow, which is paired with whatever is left over
        padding = np.full(odd, NOBODY)
        leaf, pod, away = (
            np.append(ends, padding)
            for ends in (leaves, leaves // pod_leaves, beyond.astype(np.int64))
        )
        partner = np.full(len(leaf), NOBODY, dtype=np.int64)
        tight = np.bincount(leaves)[leaf] == full_degree
        tight[len(leaves) :] = False
        real = leaf >= 0
        # In order of need, since the flows of a pair go to different halves: a full leaf must not
        # be split unevenly.
        for key, eligible in (
            (2 * leaf + away, real),
            (leaf, real & tight),
            (pod, real & (away == 1)),
            (np.zeros_like(leaf), np.ones_like(real)),
        ):
            _pair(partner, key, eligible)
        partners.append(partner)
    return alternated(*partners)[: len(flows)]


def _pair(partner: Ints, key: Ints, eligible: Bools) -> None:
    """Pair those without a partner that have the same key."""
    unpaired = np.flatnonzero(eligible & (partner == NOBODY))
    order = unpaired[np.argsort(key[unpaired], kind="stable")]
    sorted_keys = key[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_keys, sorted_keys)
    starts = np.flatnonzero((rank[:-1] % 2 == 0) & (sorted_keys[:-1] == sorted_keys[1:]))
    partner[order[starts]], partner[order[starts + 1]] = order[starts + 1], order[starts]


def split_classes(left: Ints, right: Ints, rounds: int) -> Ints:
    """Split the edges into 2^rounds classes; a vertex of degree d has at most ceil(d / 2^rounds) in
    each.

    Neighbours share alike: consecutive vertices of one side with n edges in all have at most n /
    2^rounds + 2 in each.

    Parameters
    ----------
    left, right
        The vertex of each edge on either side, numbered from 0 on each; shape (edges,).

    Returns
    -------
    Class of each edge, from 0; shape (edges,).
    """
    classes = np.zeros(left.size, dtype=np.int64)
    lefts, rights = (int(side.max(initial=-1)) + 1 for side in (left, right))
    for _ in range(rounds):
        classes = 2 * classes + _halves(classes * lefts + left, classes * rights + right)
    return classes


def _halves(left: Ints, right: Ints) -> Bools:
    """Split the edges in two so that no vertex has more than ceil(degree / 2) in either half.

    With edges added until every degree is even, the edges of a vertex are paired. Pairs on the left
    and pairs on the right then chain all edges into closed walks, along which the halves alternate.
    Added edges meet at one vertex, in the order of their other ends, so that what two neighbouring
    vertices have left over goes to different halves.
    """
    edges = left.size
    left, right = _even(left, right)
    return alternated(_pairs(left), _pairs(right))[:edges]


def alternated(left: Ints, right: Ints) -> Bools:
    """Halves of edges so that no edge is in the half of its partner, neither of that on the left
    nor on the right.

    Parameters
    ----------
    left, right
        The edge that each is paired with on either side, where pairs are each other's partners;
        shape (edges,).
    """
    following = right[left]
    smallest = np.arange(left.size)
    distance = 1
    # Pointer doubling: after k rounds each edge knows the smallest of the 2^k edges of its walk
    # from itself on.
    while distance < left.size:
        smallest = np.minimum(smallest, smallest[following])
        following = following[following]
        distance *= 2
    return np.asarray(smallest > smallest[left])


def _even(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The edges, and an edge from each vertex of odd degree to one more vertex on the other
    side.
    """
    odd_left, odd_right = (np.flatnonzero(np.bincount(side) % 2) for side in (left, right))
    more_left, more_right = (np.array([side.max(initial=-1) + 1]) for side in (left, right))
    odd_edge = odd_left.size % 2
    return (
        np.concatenate([left, odd_left, more_left.repeat(odd_right.size + odd_edge)]),
        np.concatenate(
            [right, more_right.repeat(odd_left.size), odd_right, more_right.repeat(odd_edge)]
        ),
    )


def _pairs(ends: Ints) -> Ints:
    """For each edge the one it is paired with at its vertex; all degrees are even."""
    order = np.argsort(ends, kind="stable")
    partner = np.empty(ends.size, dtype=np.int64)
    partner[order[0::2]] = order[1::2]
    partner[order[1::2]] = order[0::2]
    return partner


@dataclass(frozen=True, kw_only=True)
class _Colouring:
    """Edge of each colour at each vertex, -1 for none; `missing_colours` has a bit for each one
    missing at a vertex.
    """

    ends: list[tuple[int, int]]
    at: list[list[int]]
    missing_colours: list[int]

    def put(self, edge: int, colour: int) -> None:
        for vertex in self.ends[edge]:
            self.at[vertex][colour] = edge
            self.missing_colours[vertex] &= ~(1 << colour)

    def drop(self, edge: int, colour: int) -> None:
        for vertex in self.ends[edge]:
            self.at[vertex][colour] = NO_EDGE
            self.missing_colours[vertex] |= 1 << colour

    def swap(self, vertex: int, a: int, b: int) -> None:
        """Exchange colours a and b along the path that leaves a vertex with a, where b is
        missing.
        """
        path = []
        colour = a
        while (edge := self.at[vertex][colour]) != NO_EDGE:
            path.append((edge, colour))
            end_a, end_b = self.ends[edge]
            vertex = end_b if vertex == end_a else end_a
            colour = a + b - colour
        for edge, old in path:
            self.drop(edge, old)
        for edge, old in path:
            self.put(edge, a + b - old)


def completed_colours(left: Ints, right: Ints, colours: int, start_colours: Ints) -> Ints:
    """A colour for every edge, no two alike at a vertex; edges may change the colour they were
    given.

    A new edge takes a colour missing at both ends, each edge starting to look from another one.
    Where there is none, a is missing at its left end and b at its right end: the path of colours a
    and b from the right end never comes to the left end, which it would enter with a, and
    exchanging its colours frees a.

    Parameters
    ----------
    left, right
        Vertex of each edge, numbered from 0 on either side, with at most `colours` edges each;
        shape (edges,).
    start_colours
        A colour from 0 to colours - 1, no two alike at a vertex, or -1 where one is wanted; shape
        (edges,).
    """
    start = int(left.max(initial=-1)) + 1
    vertices = start + int(right.max(initial=-1)) + 1
    state = _Colouring(
        ends=list(zip(left.tolist(), (right + start).tolist(), strict=True)),
        at=[[NO_EDGE] * colours for _ in range(vertices)],
        missing_colours=[(1 << colours) - 1] * vertices,
    )
    for edge, colour in enumerate(start_colours.tolist()):
        if colour != NO_EDGE:
            state.put(edge, colour)
    for edge in np.flatnonzero(start_colours == NO_EDGE).tolist():
        left_end, right_end = state.ends[edge]
        # No colour is missing at both ends: exchanging two colours along a path frees one that is.
        if not state.missing_colours[left_end] & state.missing_colours[right_end]:
            state.swap(
                right_end,
                _first_bit(state.missing_colours[left_end], edge % colours),
                _first_bit(state.missing_colours[right_end], edge % colours),
            )
        state.put(
            edge,
            _first_bit(
                state.missing_colours[left_end] & state.missing_colours[right_end], edge % colours
            ),
        )
    colour_of = np.empty(left.size, dtype=np.int64)
    for row in state.at[:start]:
        for colour, edge in enumerate(row):
            if edge != NO_EDGE:
                colour_of[edge] = colour
    return colour_of


def _first_bit(bits: int, start: int) -> int:
    """The first bit set from a place on, or else the first of all."""
    assert bits, "a vertex has more edges than colours"
    bits = bits >> start << start or bits
    return (bits & -bits).bit_length() - 1


def coloured_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow so that every bundle of a leaf with d flows carries at most ceil(d /
    cores) of them.

    Flows are edges from source to destination leaf. A leaf with more flows than cores counts as
    several vertices of `cores` edges at most, so that colours are cores. Edges are split into
    halves until a class is a matching; the smallest classes beyond the number of cores are
    dissolved into the others.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When a working core has not the same number of links to every leaf in use; failed cores are
        left out.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    out = flows.between
    if out.size:
        working = working_cores(clos, flows)
        if working is None:
            raise InstanceError(
                "links: some pairs of leaf and core have more links than others; "
                "needs equally many from every leaf to every working core, or another algorithm"
            )
        left, right = (_vertices(ends[out], working.size) for ends in (flows.src, flows.dst))
        cores[out] = working[edge_colours(left, right, working.size)]
    return cores


def working_cores(clos: TwoLayer, flows: Flows) -> Ints | None:
    """The cores that join all leaves in use, None where they do not join them by equally many
    links.
    """
    leaves = np.union1d(flows.src[flows.between], flows.dst[flows.between])
    links = clos.links[leaves]
    working = np.flatnonzero(links.any(axis=0))
    return working if np.unique(links[:, working]).size <= 1 else None


def edge_colours(left: Ints, right: Ints, colours: int) -> Ints:
    """A proper colouring of a bipartite multigraph; no vertex has more edges than there are
    colours.

    Parameters
    ----------
    left, right
        Vertex of each edge, numbered from 0 on either side; shape (edges,).

    Returns
    -------
    Colour of each edge, from 0; shape (edges,).
    """
    rounds = (
        colours - 1
    ).bit_length()  # halving makes powers of two; a class then has at most one edge a vertex
    classes = split_classes(left, right, rounds)
    if colours == 1 << rounds:
        return classes
    # the smallest classes lose their colour: fewest edges are then left to colour one by one
    largest_first = np.argsort(-np.bincount(classes, minlength=1 << rounds), kind="stable")
    renamed = np.full(1 << rounds, NO_EDGE, dtype=np.int64)
    renamed[largest_first[:colours]] = np.arange(colours)
    return completed_colours(left, right, colours, renamed[classes])


def _vertices(leaf: Ints, degree: int) -> Ints:
    """The flows of each leaf in turn in vertices of at most `degree`, numbered from 0."""
    order = np.argsort(leaf, kind="stable")
    ordered = leaf[order]
    starts = np.searchsorted(ordered, ordered)
    chunk = np.empty(leaf.size, dtype=np.int64)
    chunk[order] = (np.arange(leaf.size) - starts) // degree
    vertex: Ints = np.unique(leaf * (leaf.size // degree + 1) + chunk, return_inverse=True)[1]
    return vertex
