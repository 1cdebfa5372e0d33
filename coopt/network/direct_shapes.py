"""Fabrics by name: `ring:8`, `torus:4x4`, `clos:4x8:2`, or a GraphML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path

import networkx as nx

from coopt.instance.base import InstanceError
from coopt.network.direct_graphs import (
    GBIT_S,
    MOST_DOMAINS,
    SWITCH,
    cell_name,
    cells,
    checked_fabric,
    fabric_graph,
)
from coopt.network.graph_files import read_graphml

Steps = Callable[[int, int], list[int]]
"""Places one may go to in one dimension, from a place and the extent; each link is named from one
end at least.
"""
TRIES = 200  # random graphs of few links are often not connected
Numbers = list[list[int]]
Build = Callable[[str, Numbers], nx.Graph]


def ring(name: str, shape: Sequence[int]) -> nx.Graph:
    """N domains in a circle; two domains share one link."""
    return torus(name, shape)


def torus(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows close to rings; along an extent of 2 there is one link and not two."""
    # Both ways round an extent of 2 are the same edge, which the graph holds once.
    return _grid(name, shape, lambda at, extent: [(at + 1) % extent] if extent > 1 else [])


def mesh(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows have two ends: the last domain has no link to the first."""
    return _grid(name, shape, lambda at, extent: [at + 1] if at + 1 < extent else [])


def hyperx(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows are full meshes."""
    return _grid(name, shape, lambda at, extent: list(range(at + 1, extent)))


def full_mesh(name: str, shape: Sequence[int]) -> nx.Graph:
    """Every domain linked to every other."""
    return hyperx(name, shape)


def _grid(name: str, shape: Sequence[int], steps: Steps) -> nx.Graph:
    graph = fabric_graph(name, map(cell_name, cells(shape)), _edges(shape, steps))
    graph.graph["grid"] = "x".join(map(str, shape))
    return graph


def _edges(shape: Sequence[int], steps: Steps) -> Iterator[tuple[str, str]]:
    for cell in cells(shape):
        for axis, extent in enumerate(shape):
            for place in steps(cell[axis], extent):
                yield cell_name(cell), cell_name((*cell[:axis], place, *cell[axis + 1 :]))


def dragonfly(name: str, groups: int, size: int) -> nx.Graph:
    """Groups that are full meshes, one link between every two groups, spread evenly over the
    members.

    Link k of a group, k = 0 .. groups - 2, leads k + 1 groups further and starts at member floor(k
    / h), with h = ceil((groups - 1) / size) links a member.
    """
    domains = [cell_name((group, member)) for group in range(groups) for member in range(size)]
    inside = [
        (cell_name((group, a)), cell_name((group, b)))
        for group in range(groups)
        for a in range(size)
        for b in range(a + 1, size)
    ]
    share = -(-(groups - 1) // size)
    between = [
        (cell_name((a, (b - a - 1) // share)), cell_name((b, (a - b - 1) % groups // share)))
        for a in range(groups)
        for b in range(a + 1, groups)
    ]
    return fabric_graph(name, domains, [*inside, *between])


def regular_graph(name: str, domains: int, degree: int, seed: int) -> nx.Graph | None:
    """A random graph in which every domain has `degree` links; None where no connected one was
    found.

    The first connected graph of the seeds `seed`, `seed` + 1, ... is taken.
    """
    for attempt in range(TRIES):
        graph = nx.random_regular_graph(degree, domains, seed=seed + attempt)
        if nx.is_connected(graph):
            # Sorted, so that one seed gives one graph in one order.
            edges = sorted((min(edge), max(edge)) for edge in graph.edges)
            return fabric_graph(
                name, [f"d{i}" for i in range(domains)], [(f"d{a}", f"d{b}") for a, b in edges]
            )
    return None


def clos(name: str, leaves: int, nodes: int, spines: int) -> nx.Graph:
    """Leaves with `nodes` domains each, one link from every leaf to every spine; one leaf needs no
    spine.
    """
    domains = [f"d{leaf}.{node}" for leaf in range(leaves) for node in range(nodes)]
    graph = fabric_graph(name, domains, [])
    leaf_names = [f"leaf{leaf}" for leaf in range(leaves)]
    spine_names = [f"spine{spine}" for spine in range(spines)] if leaves > 1 else []
    graph.add_nodes_from([*leaf_names, *spine_names], kind=SWITCH)
    down = [(f"d{leaf}.{node}", f"leaf{leaf}") for leaf in range(leaves) for node in range(nodes)]
    up = [(leaf, spine) for leaf in leaf_names for spine in spine_names]
    return _with_edges(graph, [*down, *up])


def fat_tree(name: str, radix: int) -> nx.Graph:
    """The three-level fat tree of switches with `radix` ports: radix^3 / 4 domains, full
    bisection.
    """
    half = radix // 2
    pods = [(pod, switch) for pod in range(radix) for switch in range(half)]
    graph = fabric_graph(
        name, [f"d{pod}.{edge}.{port}" for pod, edge in pods for port in range(half)], []
    )
    graph.add_nodes_from([f"edge{pod}.{edge}" for pod, edge in pods], kind=SWITCH)
    graph.add_nodes_from([f"agg{pod}.{agg}" for pod, agg in pods], kind=SWITCH)
    graph.add_nodes_from(
        [f"core{agg}.{core}" for agg in range(half) for core in range(half)], kind=SWITCH
    )
    down = [
        (f"d{pod}.{edge}.{port}", f"edge{pod}.{edge}") for pod, edge in pods for port in range(half)
    ]
    across = [(f"edge{pod}.{edge}", f"agg{pod}.{agg}") for pod, edge in pods for agg in range(half)]
    up = [(f"agg{pod}.{agg}", f"core{agg}.{core}") for pod, agg in pods for core in range(half)]
    return _with_edges(graph, [*down, *across, *up])


def _with_edges(graph: nx.Graph, edges: list[tuple[str, str]]) -> nx.Graph:
    graph.add_edges_from(edges, links=1, gbit_s=GBIT_S)
    return graph


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a shape is written.

    `example` is shown to whoever mistypes it; `extents` are the allowed counts of numbers in each
    part between colons, and `optional` of the last parts may be left out.
    """

    example: str
    extents: tuple[tuple[int, ...], ...]
    build: Build
    domains: Callable[[Numbers], int]
    optional: int = 0


def _domain_count(parts: Numbers) -> int:
    return prod(parts[0])


def _regular(name: str, parts: Numbers) -> nx.Graph:
    domains, degree = parts[0][0], parts[1][0]
    if degree >= domains or domains * degree % 2:
        raise InstanceError(
            f"graph {name!r}: no such graph, needs a degree below {domains} and an even number of"
            " link ends"
        )
    graph = regular_graph(name, domains, degree, parts[2][0] if len(parts) > 2 else 0)
    if graph is None:
        raise InstanceError(
            f"graph {name!r}: no connected one was found, needs a degree of 2 or more"
        )
    return graph


def _clos(name: str, parts: Numbers) -> nx.Graph:
    leaves, nodes = parts[0]
    return clos(name, leaves, nodes, parts[1][0] if len(parts) > 1 else nodes)


def _fat_tree(name: str, parts: Numbers) -> nx.Graph:
    if parts[0][0] % 2:
        raise InstanceError(f"graph {name!r}: radix {parts[0][0]}, needs an even one")
    return fat_tree(name, parts[0][0])


FORMS: dict[str, Form] = {
    "ring": Form(
        example="ring:8", extents=((1,),), domains=_domain_count, build=lambda n, p: ring(n, p[0])
    ),
    "torus": Form(
        example="torus:4x4",
        extents=((2, 3),),
        domains=_domain_count,
        build=lambda n, p: torus(n, p[0]),
    ),
    "mesh": Form(
        example="mesh:8x8",
        extents=((2, 3),),
        domains=_domain_count,
        build=lambda n, p: mesh(n, p[0]),
    ),
    "full": Form(
        example="full:8",
        extents=((1,),),
        domains=_domain_count,
        build=lambda n, p: full_mesh(n, p[0]),
    ),
    "hyperx": Form(
        example="hyperx:4x4",
        extents=((2, 3),),
        domains=_domain_count,
        build=lambda n, p: hyperx(n, p[0]),
    ),
    "dragonfly": Form(
        example="dragonfly:9x4 (groups x domains of a group)",
        extents=((2,),),
        domains=_domain_count,
        build=lambda n, p: dragonfly(n, *p[0]),
    ),
    "regular": Form(
        example="regular:16:4 or regular:16:4:7 (domains, links of each, seed)",
        extents=((1,), (1,), (1,)),
        optional=1,
        domains=_domain_count,
        build=_regular,
    ),
    "clos": Form(
        example="clos:4x8 or clos:4x8:2 (leaves x domains of a leaf, spines)",
        extents=((2,), (1,)),
        optional=1,
        domains=_domain_count,
        build=_clos,
    ),
    "fattree": Form(
        example="fattree:4 (radix)",
        extents=((1,),),
        domains=lambda p: p[0][0] ** 3 // 4,
        build=_fat_tree,
    ),
}


def fabric(text: str, *, gbit_s: float | None = None) -> nx.Graph:
    """The graph a planner asks for.

    Parameters
    ----------
    text
        A shape, or the path of a GraphML file.
    gbit_s
        Rate of every link, each way, in place of what the graph says (Gbit/s).

    Raises
    ------
    InstanceError
        When there is no such shape or file, or the graph is no fabric; the message names what is
        wrong in it.
    """
    kind, colon, numbers = text.partition(":")
    if kind in FORMS and colon:
        return checked_fabric(_shape(text, FORMS[kind], numbers), text, gbit_s=gbit_s)
    if text.lower().endswith(".graphml") or _is_file(text):
        return checked_fabric(read_graphml(text), Path(text).name, gbit_s=gbit_s)
    close = get_close_matches(kind, FORMS, n=1)
    forms = [FORMS[name].example for name in close] or [
        form.example.partition(" ")[0] for form in FORMS.values()
    ]
    raise InstanceError(
        f"graph {text!r}: no such shape, needs {', '.join(forms)} or a .graphml file"
    )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # names too long, or with characters no file has
        return False


def _shape(text: str, form: Form, numbers: str) -> nx.Graph:
    parts = [_numbers(part) for part in numbers.split(":")]
    counts = [len(part) for part in parts]
    fewest = len(form.extents) - form.optional
    fits = fewest <= len(parts) <= len(form.extents)
    if not fits or any(
        n not in counts_allowed for n, counts_allowed in zip(counts, form.extents, strict=False)
    ):
        raise InstanceError(f"graph {text!r}: not understood, needs the form {form.example}")
    seeds = form.build is _regular
    if any(number < 1 for part in (parts[:2] if seeds else parts) for number in part):
        raise InstanceError(f"graph {text!r}: holds a 0, needs whole numbers from 1")
    if form.domains(parts) > MOST_DOMAINS:
        raise InstanceError(
            f"graph {text!r}: {form.domains(parts):,} end points, needs at most {MOST_DOMAINS:,}"
        )
    if max(number for part in (parts[:2] if seeds else parts) for number in part) > MOST_DOMAINS:
        raise InstanceError(
            f"graph {text!r}: holds a number over {MOST_DOMAINS:,}, needs smaller ones"
        )
    return form.build(text, parts)


def _numbers(text: str) -> list[int]:
    """`4x4` as [4, 4]; nothing where it is anything else."""
    parts = text.split("x")
    return (
        [int(part) for part in parts]
        if all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts)
        else []
    )
