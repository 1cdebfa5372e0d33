"""Excerpts of networks show parts that exist, joined as they are joined, and count what they leave out."""

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.graphs import plane_graph, whole_graph
from coopt.network.placing import leaf_numbers
from coopt.network.space import families
from coopt.report.network_drawings import MAX_PARTS, Drawing, Shape, domain_drawing, excerpt, plane_drawing, pod_drawing
from coopt.report.network_pictures import svg
from tests.conftest import ask, example_count, switch
from tests.network.graphs.test_graphs import wired


def excerpts(family: Family, uplinks: int) -> list[Drawing]:
    drawings = [plane_drawing(family, uplinks), domain_drawing(family, uplinks)]
    return [*drawings, pod_drawing(family, uplinks)] if family.pods else drawings


@settings(max_examples=example_count(300, 30))
@given(wired())
def test_parts_stand_apart_and_lines_end_on_them(chosen: tuple[Family, int]) -> None:
    for drawing in excerpts(*chosen):
        for a, b in combinations(drawing.parts, 2):
            assert abs(a.x - b.x) >= (a.width + b.width) / 2 - 1e-9 or abs(a.y - b.y) >= (a.height + b.height) / 2
        edges = {
            (round(part.x, 6), round(part.y + side, 6))
            for part in drawing.parts
            for side in (part.height / 2, -part.height / 2)
        }
        for line in drawing.lines:
            assert (round(line.start[0], 6), round(line.start[1], 6)) in edges
            assert line.links >= 1


@settings(max_examples=example_count(300, 30))
@given(wired())
def test_all_links_between_drawn_parts_of_a_plane_are_drawn(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    drawing, small = plane_drawing(family, uplinks), plane_graph(family, uplinks)
    drawn = {part.name for part in drawing.parts}
    ends = ((f"{a[0]}/{a[1]}", f"{b[0]}/{b[1]}", links) for a, b, links in small.graph.edges(data="links"))
    above = sum(links for one, other, links in ends if {one, other} <= drawn)
    domains, leaves = (
        [int(name.split("/")[1]) for name in drawn if name.startswith(kind)] for kind in ("hb/", "leaf/")
    )
    nics = np.isin(leaf_numbers(family)[:, domains], leaves).sum()
    assert sum(line.links for line in drawing.lines) == above + nics


@pytest.mark.parametrize("kind", ["rail-only", "rail-optimized", "clos"])
def test_a_small_network_is_drawn_whole(kind: str) -> None:
    small = [family for family in families(asked(16, kind, 8)) if family.leaves <= MAX_PARTS]
    assert small
    for family in small:
        drawing = plane_drawing(family, family.uplink_choices[-1])
        assert sum(part.kind == "domain" for part in drawing.parts) == family.domains
        assert sum(part.name.startswith("leaf") for part in drawing.parts) == family.leaves
        assert sum(part.kind == "gap" for part in drawing.parts) == 0


def asked(gpus: int, kind: str, radix: int) -> Instance:
    """Domains of 8 GPUs on one kind of network."""
    hgx = {"network__hb_domains": "hgx-h100-8", "network__switches": [switch(radix, 1000)]}
    return ask(cluster__gpus=gpus, network__fabrics=kind, **hgx)


def rail_only(gpus: int, down: int, pods: int = 0) -> Family:
    """Domains of 8 GPUs on switches of 8 ports, `down` of them towards NICs; in pods of so many leaves, if any."""
    (family,) = (
        family
        for family in families(asked(gpus, "rail-only", 8))
        if family.active == 8 and family.down == down and (family.pods.l if family.pods else 0) == pods
    )
    return family


def numbers_of(drawing: Drawing, kind: str) -> list[int]:
    """Numbers of the parts of a kind that are drawn, without the gaps between them."""
    return sorted(int(part.name.split("/")[1]) for part in drawing.parts if part.name.startswith(f"{kind}/"))


def test_of_more_parts_than_are_drawn_the_first_three_and_the_last_stand_for_all() -> None:
    assert excerpt(MAX_PARTS) == list(range(MAX_PARTS))
    assert excerpt(MAX_PARTS + 1) == [0, 1, 2, MAX_PARTS]


@pytest.mark.parametrize(
    ("family", "leaves", "domains"),
    [
        # Leaf i of a plane holds the domains from 4 i on: up to four leaves show their first and their last domain,
        (rail_only(128, 4), [0, 1, 2, 3], [0, 3, 4, 7, 8, 11, 12, 15]),
        (rail_only(192, 4), [0, 1, 2, 5], [0, 3, 4, 7, 8, 11, 20, 23]),
        # of five leaves only the last one shows two.
        (rail_only(160, 4), [0, 1, 2, 3, 4], [0, 4, 8, 12, 16, 19]),
        # Of pods the first and the last leaf are drawn, and of the pods the first two and the last.
        (rail_only(512, 4, pods=4), [0, 3, 4, 7, 12, 15], [0, 12, 16, 28, 48, 60, 63]),
    ],
    ids=["four leaves", "six leaves", "five leaves", "four pods"],
)
def test_a_plane_shows_where_it_begins_and_where_it_ends(family: Family, leaves: list[int], domains: list[int]) -> None:
    drawing = plane_drawing(family, family.uplink_choices[-1])
    assert numbers_of(drawing, "leaf") == leaves
    assert numbers_of(drawing, "hb") == domains


def test_a_pod_shows_the_first_and_the_last_core_above_each_of_its_switches() -> None:
    drawing = pod_drawing(rail_only(512, 4, pods=4), 4)
    assert (numbers_of(drawing, "aggregation"), numbers_of(drawing, "core")) == ([0, 1, 2, 3], list(range(8)))


def test_domains_that_hang_on_the_same_leaves_are_drawn_up_to_the_last() -> None:
    found = families(asked(128, "rail-optimized", 48))
    family = next(family for family in found if family.active == 8 and family.down == 16)
    assert numbers_of(plane_drawing(family, family.uplink_choices[-1]), "hb") == [0, 1, 2, 15]


@settings(max_examples=example_count(300, 30))
@given(wired())
def test_every_drawn_domain_and_gpu_has_its_nics_on_drawn_leaves(chosen: tuple[Family, int]) -> None:
    family, uplinks = chosen
    drawing, numbers = plane_drawing(family, uplinks), leaf_numbers(family)
    leaves = [int(part.name.split("/")[1]) for part in drawing.parts if part.name.startswith("leaf/")]
    for part in drawing.parts:
        if part.kind == "domain":
            domain = int(part.name.split("/")[1])
            assert links_below(drawing, part) == np.isin(numbers[:, domain], leaves).sum()
    drawing, graph = domain_drawing(family, uplinks), whole_graph(family, uplinks)
    idle = {int(part.name.split("/")[1]) for part in drawing.parts if part.colour == "idle"}
    assert all(graph.nodes[f"gpu/0/{rank}"]["idle"] for rank in idle)
    for part in drawing.parts:
        assert part.kind != "gpu" or links_below(drawing, part) == family.nics_per_gpu


def links_below(drawing: Drawing, part: Shape) -> int:
    """Links that begin at the lower edge of a part."""
    begin = (part.x, part.y + part.height / 2)
    return sum(line.links for line in drawing.lines if np.allclose(line.start, begin))


@settings(max_examples=20)
@given(wired())
def test_an_svg_is_well_formed_and_says_what_it_shows(chosen: tuple[Family, int]) -> None:
    for drawing in excerpts(*chosen):
        tree = ElementTree.fromstring(svg(drawing, "name", 'a <plane> & "more"'))
        assert tree.get("role") == "img"
        assert tree[0].text == 'a <plane> & "more"'
        texts = [node.text for node in tree.iter() if node.tag.endswith("text")]
        assert all(part.label in texts for part in drawing.parts)
        left, top, width, height = map(float, (tree.get("viewBox") or "").split())
        for node in tree.iter():
            x, y = node.get("x"), node.get("y")
            if x and y and re.fullmatch(r"[\d.]+", x):
                assert left <= float(x) <= width
                assert top <= float(y) <= height
