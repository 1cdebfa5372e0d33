"""One ring through all domains, and rings along rows and columns."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.errors import InstanceError
from coopt.network.schedules.board import Board
from coopt.network.schedules.routing import Pair, spread_paths
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of
from coopt.network.schedules.tour import ring_paths


def ring_schedule(board: Board) -> Schedule:
    """N - 1 steps: in each, every domain hands the chunk it got last to the next domain of one ring."""
    paths = ring_paths(board)
    n = board.domains
    hops = [Hop(step, paths[at][0], paths[(at + step) % n]) for at in range(n) for step in range(n - 1)]
    return schedule_of(board, "ring", hops)


def ring2d_schedule(board: Board) -> Schedule:
    """Rings along columns, then along rows, for one half of the data, and the other way round for the other half.

    On r rows of c domains, the gather phase of the first half takes r - 1 steps of one chunk a link and c - 1 steps of
    r chunks. Halves run at the same time. The data is cut into 2 N chunks.

    Raises
    ------
    InstanceError
        When the fabric is no grid of two dimensions.
    """
    shape = board.grid
    if shape is None or len(shape) != 2 or min(shape) < 2:
        raise InstanceError(
            f"{board.name}: algorithm ring2d on a graph without rows and columns, needs a grid of two dimensions "
            "(torus:4x4, mesh:8x8, hyperx:4x4, or a GraphML graph attribute such as grid = 4x4)"
        )
    rows, columns = shape
    n = rows * columns
    paths = spread_paths(board, _neighbours(rows, columns))
    hops = []
    for root in range(n):
        place = divmod(root, columns)
        hops += [Hop(step, root, paths[pair]) for step, pair in _tree(place, (rows, columns), 0)]
        hops += [Hop(step, n + root, paths[pair]) for step, pair in _tree(place, (rows, columns), 1)]
    return schedule_of(board, "ring2d", hops, roots=[*range(n), *range(n)])


def _neighbours(rows: int, columns: int) -> list[Pair]:
    places = [(row, column) for row in range(rows) for column in range(columns)]
    down = [(row * columns + column, (row + 1) % rows * columns + column) for row, column in places]
    right = [(row * columns + column, row * columns + (column + 1) % columns) for row, column in places]
    return list(dict.fromkeys([*down, *right]))


def _tree(root: tuple[int, int], shape: tuple[int, int], first: int) -> Iterator[tuple[int, Pair]]:
    """The ring of axis `first` through the root, then the rings of the other axis through all it has reached."""
    second = 1 - first

    def number(steps_first: int, steps_second: int) -> int:
        place = list(root)
        place[first] = (place[first] + steps_first) % shape[first]
        place[second] = (place[second] + steps_second) % shape[second]
        return place[0] * shape[1] + place[1]

    for step in range(shape[first] - 1):
        yield step, (number(step, 0), number(step + 1, 0))
    for along in range(shape[first]):
        for step in range(shape[second] - 1):
            yield shape[first] - 1 + step, (number(along, step), number(along, step + 1))
