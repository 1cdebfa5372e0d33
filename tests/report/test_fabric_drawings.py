"""Drawings hold what their graphs hold, and nothing covers anything else."""

import runpy
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings

from coopt.network.direct_graphs import link_count
from coopt.network.direct_shapes import fabric
from coopt.network.family import Family
from coopt.network.graphs import whole_graph
from coopt.report.network_drawings import Drawing
from coopt.report.network_pictures import colour_of
from docs.paint import fingerprint
from tests.conftest import example_count
from tests.network.graph_counts import counted
from tests.network.graphs.test_graphs import wired

DRAW = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "draw.py"))
switched_drawing, direct_drawing = DRAW["switched_drawing"], DRAW["direct_drawing"]
SHAPES = ["ring:5", "full:6", "torus:4x4", "mesh:3x5", "hyperx:4x4", "dragonfly:5x4", "dragonfly:9x4", "regular:16:4"]


def overlapping(drawing: Drawing, kind: str) -> list[tuple[str, str]]:
    """Pairs of parts of a kind that share some of the paper."""
    parts = [part for part in drawing.parts if part.kind == kind]
    return [
        (a.name, b.name)
        for a, b in combinations(parts, 2)
        if abs(a.x - b.x) < (a.width + b.width) / 2 - 1e-9 and abs(a.y - b.y) < (a.height + b.height) / 2 - 1e-9
    ]


@settings(max_examples=example_count(300, 20))
@given(wired())
def test_a_switched_network_is_drawn_whole(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    graph = whole_graph(family, uplinks)
    counts, drawing = counted(graph), switched_drawing(graph, "a network")
    assert sum(part.kind == "gpu" for part in drawing.parts) == counts.gpus
    assert sum(part.kind == "switch" for part in drawing.parts) == sum(counts.switches)
    assert sum(line.links for line in drawing.lines) == sum(counts.links)
    assert sum(frame.kind == "domain" for frame in drawing.frames) == family.domains
    assert len(drawing.rows) == 1 + family.tiers
    assert not overlapping(drawing, "switch")
    assert {line.colour for line in drawing.lines} <= set(drawing.legend)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_direct_fabric_is_drawn_whole(shape: str) -> None:
    graph = fabric(shape)
    drawing = direct_drawing(graph, shape)
    assert sum(part.kind == "domain" for part in drawing.parts) == len(graph)
    assert sum(line.links for line in drawing.lines) == link_count(graph)
    assert not overlapping(drawing, "domain")
    assert {line.colour for line in drawing.lines} == set(drawing.legend)
    assert all(colour_of(colour).startswith("#") for colour in drawing.legend)


def test_a_link_to_another_place_changes_the_fingerprint() -> None:
    drawing = direct_drawing(fabric("ring:4"), "a ring")
    first, *others = drawing.lines
    moved = replace(drawing, lines=(replace(first, end=(9.0, 9.0)), *others))
    assert fingerprint(moved) != fingerprint(drawing)
    assert fingerprint(replace(drawing, lines=(replace(first, bend=1e-9), *others))) == fingerprint(drawing)
