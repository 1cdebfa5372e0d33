"""The all-reduces of textbooks: one ring, rings of a grid, halving and doubling, two binary
trees.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from coopt.instance.texts import InstanceError
from coopt.network.schedules.board import Board, Pair, Path, spread_paths, walked
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of

Tree = dict[int, list[int]]
"""Children of each rank, parents before their children in the order of keys."""


def ring_order(board: Board) -> list[int]:
    """Domains in the order of a depth-first walk; see `ring_paths`."""
    return [vertex for vertex in _depth_first(board)[0] if vertex < board.domains]


def ring_paths(board: Board) -> list[Path]:
    """The way from every domain of `ring_order` to the next, the last to the first.

    The way follows the tree of the walk, or a link of its own where two domains have one. The
    closed walk around a tree crosses each of its links once each way, so the ring never contends,
    on any connected fabric.
    """
    preorder, parent = _depth_first(board)
    order = [vertex for vertex in preorder if vertex < board.domains]
    return [
        (start, end) if (start, end) in board.links else _through_tree(parent, start, end)
        for start, end in zip(order, [*order[1:], order[0]], strict=True)
    ]


def _depth_first(board: Board) -> tuple[list[int], dict[int, int]]:
    """Preorder and parents of a spanning tree, found depth first, fewest exits first.

    Domains behind switches go on only where no switch does, so that the ring passes through few of
    them.
    """
    parent: dict[int, int] = {}
    children: list[list[int]] = [[] for _ in board.names]
    waiting = deque([(0, 0)])
    exits = [len(neighbours) for neighbours in board.neighbours]
    while waiting:
        vertex, origin = waiting.pop()
        if vertex in parent:
            continue
        parent[vertex] = origin
        children[origin].append(vertex)
        for neighbour in board.neighbours[vertex]:
            exits[neighbour] -= 1
        ahead = [neighbour for neighbour in board.neighbours[vertex] if neighbour not in parent]
        ahead.sort(key=lambda neighbour: (neighbour >= board.domains, exits[neighbour], neighbour))
        # What lies beyond a domain that a switch led to comes last: the walk goes on through
        # switches first.
        if vertex < board.domains <= origin:
            waiting.extendleft((neighbour, vertex) for neighbour in ahead)
        else:
            waiting.extend((neighbour, vertex) for neighbour in reversed(ahead))
    preorder = []
    stack = [0]
    while stack:
        preorder.append(stack.pop())
        stack += [child for child in reversed(children[preorder[-1]]) if child]
    return preorder, parent


def _through_tree(parent: dict[int, int], start: int, end: int) -> Path:
    up = walked(parent, start)[::-1]
    down = [end]
    # Both climb towards the root: the first vertex that they share is where the path turns.
    while down[-1] not in up:
        down.append(parent[down[-1]])
    return (*up[: up.index(down[-1])], *reversed(down))


def ring_schedule(board: Board) -> Schedule:
    """N - 1 steps: in each, every domain hands the chunk it got last to the next domain of one
    ring.
    """
    paths = ring_paths(board)
    n = board.domains
    hops = [
        Hop(step, paths[at][0], paths[(at + step) % n]) for at in range(n) for step in range(n - 1)
    ]
    return schedule_of(board, "ring", hops)


def ring2d_schedule(board: Board) -> Schedule:
    """Rings along columns, then along rows, for one half of the data, and the other way round for
    the other half.

    On r rows of c domains, the gather phase of the first half takes r - 1 steps of one chunk a link
    and c - 1 steps of r chunks. Halves run at the same time. The data is cut into 2 N chunks.

    Raises
    ------
    InstanceError
        When the fabric is no grid of two dimensions.
    """
    shape = board.grid
    if shape is None or len(shape) != 2 or min(shape) < 2:
        raise InstanceError(
            f"{board.name}: algorithm ring2d on a graph without rows and columns, needs a grid of"
            " at least 2x2 in two dimensions (torus:4x4, mesh:8x8, hyperx:4x4, or a GraphML graph"
            " attribute such as grid = 4x4)"
        )
    rows, columns = shape
    n = rows * columns
    paths = spread_paths(board, _grid_neighbours(rows, columns))
    hops = [
        Hop(step, axis * n + root, paths[pair])
        for root in range(n)
        for axis in (0, 1)
        for step, pair in _ring_tree(divmod(root, columns), (rows, columns), axis)
    ]
    return schedule_of(board, "ring2d", hops, roots=[*range(n), *range(n)])


def _grid_neighbours(rows: int, columns: int) -> list[Pair]:
    places = [(row, column) for row in range(rows) for column in range(columns)]
    down = [(row * columns + column, (row + 1) % rows * columns + column) for row, column in places]
    right = [
        (row * columns + column, row * columns + (column + 1) % columns) for row, column in places
    ]
    return list(dict.fromkeys([*down, *right]))


def _ring_tree(
    root: tuple[int, int], shape: tuple[int, int], first: int
) -> Iterator[tuple[int, Pair]]:
    """The ring of axis `first` through the root, then the rings of the other axis through all it
    has reached.
    """
    second_axis = 1 - first

    def number(steps_first: int, steps_second: int) -> int:
        place = list(root)
        place[first] = (place[first] + steps_first) % shape[first]
        place[second_axis] = (place[second_axis] + steps_second) % shape[second_axis]
        return place[0] * shape[1] + place[1]

    for step in range(shape[first] - 1):
        yield step, (number(step, 0), number(step + 1, 0))
    for along in range(shape[first]):
        for step in range(shape[second_axis] - 1):
            yield shape[first] - 1 + step, (number(along, step), number(along, step + 1))


def halving_doubling_schedule(board: Board) -> Schedule:
    """log2 N steps a phase; in step s of the gather phase a domain sends all its 2^s chunks to its
    partner.

    Partners move away from distance 1 or come closer from N/2; the order that loads the links less
    is taken. Where partners are not neighbours, ways share links and a step takes as long as its
    busiest link.

    Raises
    ------
    InstanceError
        When the number of domains is no power of two.
    """
    n = board.domains
    if n & (n - 1):
        raise InstanceError(
            f"{board.name}: algorithm halving-doubling on {n} domains, needs a power of two"
        )
    bits = range(n.bit_length() - 1)
    return min(
        (_doubled(board, order) for order in (bits, bits[::-1])), key=lambda schedule: schedule.work
    )


def _doubled(board: Board, order: Sequence[int]) -> Schedule:
    n = board.domains
    hops = []
    chunks_of = [[rank] for rank in range(n)]
    for step, bit in enumerate(order):
        paths = spread_paths(board, [(rank, rank ^ 1 << bit) for rank in range(n)])
        hops += [
            Hop(step, chunk, path) for (rank, _), path in paths.items() for chunk in chunks_of[rank]
        ]
        # All partners exchange at once: what comes in a step is handed on in the next one only.
        chunks_of = [chunks_of[rank] + chunks_of[rank ^ 1 << bit] for rank in range(n)]
    return schedule_of(board, "halving-doubling", hops)


def double_tree_schedule(board: Board) -> Schedule:
    """Chunks flow down two binary trees one behind the other, every second one down the same tree.

    A domain sends and receives one chunk a step; a chunk goes as soon as it can. Where the ways of
    two tree edges share a link, the step takes longer.
    """
    n = board.domains
    tree, mirror_tree = two_trees(n)
    pairs = [
        (parent, child)
        for t in (tree, mirror_tree)
        for parent, children in t.items()
        for child in children
    ]
    paths = spread_paths(board, dict.fromkeys(pairs))
    sending: dict[int, set[int]] = defaultdict(set)
    receiving: dict[int, set[int]] = defaultdict(set)
    hops = []
    roots = []
    for chunk in range(n):
        flows = (tree, mirror_tree)[chunk % 2]
        root = next(iter(flows))
        roots.append(root)
        ready = {root: 0}
        for parent, children in flows.items():
            for child in children:
                step = ready[parent]
                # A domain sends and receives one chunk a step, so a chunk waits until both ends are
                # free.
                while step in sending[parent] or step in receiving[child]:
                    step += 1
                sending[parent].add(step)
                receiving[child].add(step)
                ready[child] = step + 1
                hops.append(Hop(step, chunk, paths[parent, child]))
    return schedule_of(board, "double-tree", hops, roots=roots)


def two_trees(ranks: int) -> tuple[Tree, Tree]:
    """A binary tree in which the odd ranks are leaves, and one in which they are not.

    The second is the mirror image of the first (an even number of ranks) or is moved by one (odd).
    """
    tree = in_order_tree(ranks)
    moved = range(ranks)[::-1] if ranks % 2 == 0 else [*range(1, ranks), 0]
    return tree, {moved[at]: [moved[child] for child in tree[at]] for at in tree}


def in_order_tree(ranks: int) -> Tree:
    """Rank 0 above a balanced tree in which a rank with lowest set bit b has its parent at distance
    b.

    The parent of rank r has the next higher bit set in place of b, or only r's bits above b where
    that rank does not exist.
    """
    children: Tree = {rank: [] for rank in range(ranks)}
    for rank in range(1, ranks):
        bit = rank & -rank
        parent = (rank - bit) | (bit << 1)
        children[parent if parent < ranks else rank - bit].append(rank)
    order = [0]
    for rank in order:
        order += children[rank]
    assert len(order) == ranks
    return {rank: children[rank] for rank in order}
