"""Fabrics by name: how many domains, links and neighbours; and what is no fabric."""

import networkx as nx
import pytest

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import domains_of, grid_of, link_count, switches_of
from coopt.network.direct_shapes import FORMS, fabric

COUNTS = [  # text, domains, switches, links
    ("ring:2", 2, 0, 1), ("ring:8", 8, 0, 8), ("torus:4x4", 16, 0, 32), ("torus:2x4", 8, 0, 12),
    ("torus:4x4x4", 64, 0, 192), ("mesh:8x8", 64, 0, 112), ("mesh:3x3x3", 27, 0, 54), ("full:8", 8, 0, 28),
    ("hyperx:4x4", 16, 0, 48), ("dragonfly:9x4", 36, 0, 9 * 6 + 36), ("dragonfly:4x4", 16, 0, 4 * 6 + 6),
    ("regular:16:4", 16, 0, 32), ("clos:4x8", 32, 12, 64), ("clos:4x8:2", 32, 6, 40), ("clos:1x8", 8, 1, 8),
    ("fattree:4", 16, 20, 48),
]  # fmt: skip


@pytest.mark.parametrize(("text", "domains", "switches", "links"), COUNTS)
def test_a_shape_has_its_domains_switches_and_links(text: str, domains: int, switches: int, links: int) -> None:
    graph = fabric(text)
    assert (len(domains_of(graph)), len(switches_of(graph)), link_count(graph)) == (domains, switches, links)
    assert nx.is_connected(graph)
    assert {data["gbit_s"] for _, _, data in graph.edges(data=True)} == {400.0}


def test_every_shape_is_counted_above_and_the_example_of_its_form_understood() -> None:
    assert {text.partition(":")[0] for text, *_ in COUNTS} == set(FORMS)
    assert all(fabric(form.example.partition(" ")[0]).number_of_nodes() > 1 for form in FORMS.values())
    assert {data["gbit_s"] for _, _, data in fabric("mesh:3x3", gbit_s=800).edges(data=True)} == {800.0}
    assert (grid_of(fabric("hyperx:3x4")), grid_of(fabric("clos:4x4"))) == ((3, 4), None)


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("torus:4x5", nx.grid_2d_graph(4, 5, periodic=True)),
        ("mesh:4x5", nx.grid_2d_graph(4, 5)),
        ("ring:7", nx.cycle_graph(7)),
        ("full:6", nx.complete_graph(6)),
        ("hyperx:3x4", nx.cartesian_product(nx.complete_graph(3), nx.complete_graph(4))),
        ("torus:3x3x3", nx.grid_graph((3, 3, 3), periodic=True)),
    ],
)
def test_grids_are_those_of_networkx(text: str, peer: nx.Graph) -> None:
    assert nx.is_isomorphic(fabric(text), peer)


def test_a_balanced_dragonfly_is_regular_and_every_two_groups_share_one_link() -> None:
    graph = fabric("dragonfly:9x4")
    assert set(dict(graph.degree).values()) == {3 + 2}
    between = [frozenset((a.split(".")[0], b.split(".")[0])) for a, b in graph.edges]
    pairs = [pair for pair in between if len(pair) == 2]
    assert len(pairs) == len(set(pairs)) == 36


def test_a_seed_gives_the_same_regular_graph_and_another_seed_another() -> None:
    assert set(fabric("regular:24:3:5").edges) == set(fabric("regular:24:3:5").edges)
    assert set(fabric("regular:24:3:5").edges) != set(fabric("regular:24:3:6").edges)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tours:4x4", "graph 'tours:4x4': neither a shape"),
        ("torus", "needs a form such as torus:4x4"),
        ("", "graph '': neither a shape"),
        ("torus:4", "form torus:4x4"),
        ("torus:4x", "not understood"),
        ("torus:4x4:4", "not understood"),
        ("torus:-4x4", "not understood"),
        ("torus:4.5x4", "not understood"),
        ("regular:16", "form regular:16:4"),
        ("torus:0x4", "contains a 0"),
        ("clos:2x2:0", "contains a 0"),
        ("clos:2x2:99999", "above 1,024"),
        ("full:99999", "99,999 domains"),
        ("torus:999999999x999999999", "at most 1,024"),
        ("fattree:3", "radix = 3"),
        ("regular:5:3", "degree below 5"),
        ("regular:4:4", "degree below 4"),
        ("regular:8:1", "8 domains with 1 link each cannot all be connected, needs a degree of at least 2"),
        ("ring:1", "ring:1: 1 domain"),
        ("nothere.graphml", "nothere.graphml: "),
    ],
)
def test_what_is_no_shape_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(InstanceError) as refused:
        fabric(text)
    assert says in str(refused.value)
