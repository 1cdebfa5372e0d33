"""Fabrics by name: `ring:8`, `torus:4x4`, `clos:4x8:2`, or a GraphML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations, product
from math import prod
from pathlib import Path

import networkx as nx

from coopt.instance.texts import InstanceError, alternatives, broken, counted
from coopt.network.direct_graphs import (
    MOST_DOMAINS,
    cell_name,
    cells,
    checked_fabric,
    fabric_graph,
)
from coopt.network.graph_files import read_graphml

Steps = Callable[[int, int], Iterable[int]]
"""Places one may go to in one dimension, from a place and the extent; each link is named from one
end at least.
"""
TRIES = 200  # random graphs of few links are often not connected
Numbers = list[list[int]]


def torus(name: str, parts: Numbers) -> nx.Graph:
    """A grid whose rows close to rings; along an extent of 2 there is one link and not two."""
    # Both ways round an extent of 2 are the same edge, which the graph holds once.
    return _grid(name, parts, lambda at, extent: [(at + 1) % extent] if extent > 1 else [])


def mesh(name: str, parts: Numbers) -> nx.Graph:
    """A grid whose rows have two ends: the last domain has no link to the first."""
    return _grid(name, parts, lambda at, extent: range(at + 1, extent)[:1])


def hyperx(name: str, parts: Numbers) -> nx.Graph:
    """A grid whose rows are full meshes."""
    return _grid(name, parts, lambda at, extent: range(at + 1, extent))


def _grid(name: str, parts: Numbers, steps: Steps) -> nx.Graph:
    (shape,) = parts
    edges = (
        (cell_name(cell), cell_name((*cell[:axis], place, *cell[axis + 1 :])))
        for cell in cells(shape)
        for axis, extent in enumerate(shape)
        for place in steps(cell[axis], extent)
    )
    graph = fabric_graph(name, map(cell_name, cells(shape)), edges)
    graph.graph["grid"] = "x".join(map(str, shape))
    return graph


def dragonfly(name: str, parts: Numbers) -> nx.Graph:
    """Groups that are full meshes, one link between every two groups, spread evenly over the
    members.

    Link k of a group, k = 0 .. groups - 2, leads k + 1 groups further and starts at member floor(k
    / h), with h = ceil((groups - 1) / size) links a member.
    """
    ((groups, size),) = parts
    share = -(-(groups - 1) // size)
    inside = [
        (cell_name((group, a)), cell_name((group, b)))
        for group in range(groups)
        for a, b in combinations(range(size), 2)
    ]
    between = [
        (cell_name((a, (b - a - 1) // share)), cell_name((b, (a - b - 1) % groups // share)))
        for a, b in combinations(range(groups), 2)
    ]
    return fabric_graph(name, map(cell_name, cells((groups, size))), [*inside, *between])


def regular(name: str, parts: Numbers) -> nx.Graph:
    """A random graph in which every domain has as many links.

    The first connected graph of the seeds `seed`, `seed` + 1, ... is taken.

    Raises
    ------
    InstanceError
        Where there is no such graph, or no connected one was found.
    """
    domains, degree, seed = parts[0][0], parts[1][0], parts[2][0] if len(parts) > 2 else 0
    if degree >= domains or domains * degree % 2:
        raise InstanceError(
            f"graph {name!r}: no such regular graph exists, needs a degree below {domains} and an"
            " even product of domains and degree"
        )
    if degree < 2 < domains:
        raise InstanceError(
            f"graph {name!r}: {domains} domains with {counted(degree, 'link')} each cannot all be"
            " connected, needs a degree of at least 2"
        )
    graphs = (nx.random_regular_graph(degree, domains, seed=seed + n) for n in range(TRIES))
    graph = next(filter(nx.is_connected, graphs), None)
    if graph is None:
        raise InstanceError(
            f"graph {name!r}: no connected graph of this degree was found, needs a higher degree or"
            " another seed"
        )
    # Sorted, so that one seed gives one graph in one order.
    edges = sorted((min(edge), max(edge)) for edge in graph.edges)
    return fabric_graph(
        name, [f"d{i}" for i in range(domains)], [(f"d{a}", f"d{b}") for a, b in edges]
    )


def clos(name: str, parts: Numbers) -> nx.Graph:
    """Leaves with so many domains each, one link from every leaf to every spine; one leaf needs no
    spine. There are as many spines as domains of a leaf unless the second part has their number.
    """
    (leaves, nodes), (spines,) = parts if len(parts) > 1 else (parts[0], parts[0][1:])
    ends = list(product(range(leaves), range(nodes)))
    leaf_names = [f"leaf{leaf}" for leaf in range(leaves)]
    spine_names = [f"spine{spine}" for spine in range(spines)] if leaves > 1 else []
    down = [(cell_name(end), f"leaf{end[0]}") for end in ends]
    return fabric_graph(
        name,
        map(cell_name, ends),
        [*down, *product(leaf_names, spine_names)],
        switches=[*leaf_names, *spine_names],
    )


def fat_tree(name: str, parts: Numbers) -> nx.Graph:
    """The three-level fat tree of switches with `radix` ports: radix^3 / 4 domains, full
    bisection.

    Raises
    ------
    InstanceError
        Where the radix is odd.
    """
    radix = parts[0][0]
    if radix % 2:
        raise InstanceError(f"graph {name!r}: radix = {radix}, needs an even number of ports")
    half = range(radix // 2)
    pods = list(product(range(radix), half))
    down = [(f"d{pod}.{edge}.{port}", f"edge{pod}.{edge}") for pod, edge in pods for port in half]
    across = [(f"edge{pod}.{edge}", f"agg{pod}.{agg}") for pod, edge in pods for agg in half]
    up = [(f"agg{pod}.{agg}", f"core{agg}.{core}") for pod, agg in pods for core in half]
    switches = (
        *(f"edge{pod}.{edge}" for pod, edge in pods),
        *(f"agg{pod}.{agg}" for pod, agg in pods),
        *(f"core{agg}.{core}" for agg, core in product(half, half)),
    )
    return fabric_graph(
        name, [domain for domain, _ in down], [*down, *across, *up], switches=switches
    )


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a shape is written.

    `example` is shown to whoever mistypes it; `extents` are the allowed counts of numbers in each
    part between colons, and `optional` of the last parts may be left out.
    """

    example: str
    extents: tuple[tuple[int, ...], ...]
    build: Callable[[str, Numbers], nx.Graph]
    domains: Callable[[Numbers], int] = lambda parts: prod(parts[0])
    optional: int = 0


FORMS: dict[str, Form] = {
    "ring": Form(example="ring:8", extents=((1,),), build=torus),
    "torus": Form(example="torus:4x4 or torus:4x4x4", extents=((2, 3),), build=torus),
    "mesh": Form(example="mesh:8x8 or mesh:8x8x8", extents=((2, 3),), build=mesh),
    "full": Form(example="full:8", extents=((1,),), build=hyperx),
    "hyperx": Form(example="hyperx:4x4 or hyperx:4x4x4", extents=((2, 3),), build=hyperx),
    "dragonfly": Form(
        example="dragonfly:9x4 (groups x domains per group)", extents=((2,),), build=dragonfly
    ),
    "regular": Form(
        example="regular:16:4 or regular:16:4:7 (domains, links per domain, seed)",
        extents=((1,), (1,), (1,)),
        optional=1,
        build=regular,
    ),
    "clos": Form(
        example="clos:4x8 or clos:4x8:2 (leaves x domains per leaf, spines)",
        extents=((2,), (1,)),
        optional=1,
        build=clos,
    ),
    "fattree": Form(
        example="fattree:4 (radix)",
        extents=((1,),),
        domains=lambda parts: parts[0][0] ** 3 // 4,
        build=fat_tree,
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
        f"graph {text!r}: neither a shape with its numbers nor a file, needs a form such as"
        f" {alternatives(forms)}, or a .graphml file"
    )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # names too long, or with characters no file has
        return False


def _shape(text: str, form: Form, numbers: str) -> nx.Graph:
    parts = [_numbers(part) for part in numbers.split(":")]
    fits = len(form.extents) - form.optional <= len(parts) <= len(form.extents)
    if not fits or any(
        len(part) not in allowed for part, allowed in zip(parts, form.extents, strict=False)
    ):
        raise InstanceError(f"graph {text!r}: not understood, needs the form {form.example}")
    # a seed may be any number
    counts = [number for part in (parts[:2] if form.build is regular else parts) for number in part]
    domains, need = form.domains(parts), f"needs at most {MOST_DOMAINS:,}"
    for complaint in broken(
        (min(counts) < 1, "contains a 0, needs whole numbers from 1"),
        (domains > MOST_DOMAINS, f"{domains:,} domains, {need}"),
        (
            max(counts) > MOST_DOMAINS,
            f"contains a number above {MOST_DOMAINS:,}, needs smaller numbers",
        ),
    ):
        raise InstanceError(f"graph {text!r}: {complaint}")
    return form.build(text, parts)


def _numbers(text: str) -> list[int]:
    """`4x4` as [4, 4]; nothing where it is anything else."""
    parts = text.split("x")
    return (
        [int(part) for part in parts]
        if all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts)
        else []
    )
