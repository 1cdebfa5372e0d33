"""Boards and graphs of shapes."""

from collections.abc import Callable

import networkx as nx
import pytest

from coopt.network.direct_shapes import fabric
from coopt.network.schedules.board import Board, board_of

Drawn = Callable[[str], tuple[nx.Graph, Board]]


@pytest.fixture
def drawn() -> Drawn:
    """`drawn("torus:4x4")`: the graph and its numbers."""

    def draw(text: str) -> tuple[nx.Graph, Board]:
        graph = fabric(text)
        return graph, board_of(graph)

    return draw
