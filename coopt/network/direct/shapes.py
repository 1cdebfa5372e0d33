"""Fabrics by name: `ring:8`, `torus:4x4`, `clos:4x8:2`, or a GraphML file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from pathlib import Path

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.network.direct.checks import checked
from coopt.network.direct.graphml import read_graphml
from coopt.network.direct.grids import full, hyperx, mesh, ring, torus
from coopt.network.direct.irregular import dragonfly, regular
from coopt.network.direct.switched import clos, fat_tree
from coopt.network.direct.wires import MOST_DOMAINS

Numbers = list[list[int]]
Build = Callable[[str, Numbers], nx.Graph]


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a shape is written.

    `example` is shown to whoever mistypes it; `extents` are the allowed counts of numbers in each part between colons,
    and `optional` of the last parts may be left out.
    """

    example: str
    extents: tuple[tuple[int, ...], ...]
    build: Build
    domains: Callable[[Numbers], int]
    optional: int = 0


def _first(parts: Numbers) -> int:
    return prod(parts[0])


def _regular(name: str, parts: Numbers) -> nx.Graph:
    domains, degree = parts[0][0], parts[1][0]
    if degree >= domains or domains * degree % 2:
        raise InstanceError(
            f"graph {name!r}: no such graph, needs a degree below {domains} and an even number of link ends"
        )
    graph = regular(name, domains, degree, parts[2][0] if len(parts) > 2 else 0)
    if graph is None:
        raise InstanceError(f"graph {name!r}: no connected one was found, needs a degree of 2 or more")
    return graph


def _clos(name: str, parts: Numbers) -> nx.Graph:
    leaves, nodes = parts[0]
    return clos(name, leaves, nodes, parts[1][0] if len(parts) > 1 else nodes)


def _fat_tree(name: str, parts: Numbers) -> nx.Graph:
    if parts[0][0] % 2:
        raise InstanceError(f"graph {name!r}: radix {parts[0][0]}, needs an even one")
    return fat_tree(name, parts[0][0])


FORMS: dict[str, Form] = {
    "ring": Form(example="ring:8", extents=((1,),), domains=_first, build=lambda n, p: ring(n, p[0])),
    "torus": Form(example="torus:4x4", extents=((2, 3),), domains=_first, build=lambda n, p: torus(n, p[0])),
    "mesh": Form(example="mesh:8x8", extents=((2, 3),), domains=_first, build=lambda n, p: mesh(n, p[0])),
    "full": Form(example="full:8", extents=((1,),), domains=_first, build=lambda n, p: full(n, p[0])),
    "hyperx": Form(example="hyperx:4x4", extents=((2, 3),), domains=_first, build=lambda n, p: hyperx(n, p[0])),
    "dragonfly": Form(
        example="dragonfly:9x4 (groups x domains of a group)",
        extents=((2,),),
        domains=_first,
        build=lambda n, p: dragonfly(n, *p[0]),
    ),
    "regular": Form(
        example="regular:16:4 or regular:16:4:7 (domains, links of each, seed)",
        extents=((1,), (1,), (1,)),
        optional=1,
        domains=_first,
        build=_regular,
    ),
    "clos": Form(
        example="clos:4x8 or clos:4x8:2 (leaves x domains of a leaf, spines)",
        extents=((2,), (1,)),
        optional=1,
        domains=_first,
        build=_clos,
    ),
    "fattree": Form(example="fattree:4 (radix)", extents=((1,),), domains=lambda p: p[0][0] ** 3 // 4, build=_fat_tree),
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
        When there is no such shape or file, or the graph is no fabric; the message names what is wrong in it.
    """
    kind, colon, rest = text.partition(":")
    if kind in FORMS and colon:
        return checked(_shape(text, FORMS[kind], rest), text, gbit_s=gbit_s)
    if text.lower().endswith(".graphml") or _is_file(text):
        return checked(read_graphml(text), Path(text).name, gbit_s=gbit_s)
    close = get_close_matches(kind, FORMS, n=1)
    forms = [FORMS[name].example for name in close] or [form.example.partition(" ")[0] for form in FORMS.values()]
    raise InstanceError(f"graph {text!r}: no such shape, needs {', '.join(forms)} or a .graphml file")


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # names too long, or with characters no file has
        return False


def _shape(text: str, form: Form, rest: str) -> nx.Graph:
    parts = [_numbers(part) for part in rest.split(":")]
    counts = [len(part) for part in parts]
    fewest = len(form.extents) - form.optional
    fits = fewest <= len(parts) <= len(form.extents)
    if not fits or any(n not in allowed for n, allowed in zip(counts, form.extents, strict=False)):
        raise InstanceError(f"graph {text!r}: not understood, needs the form {form.example}")
    seeds = form.build is _regular
    if any(number < 1 for part in (parts[:2] if seeds else parts) for number in part):
        raise InstanceError(f"graph {text!r}: holds a 0, needs whole numbers from 1")
    if form.domains(parts) > MOST_DOMAINS:
        raise InstanceError(f"graph {text!r}: {form.domains(parts):,} end points, needs at most {MOST_DOMAINS:,}")
    if max(number for part in (parts[:2] if seeds else parts) for number in part) > MOST_DOMAINS:
        raise InstanceError(f"graph {text!r}: holds a number over {MOST_DOMAINS:,}, needs smaller ones")
    return form.build(text, parts)


def _numbers(text: str) -> list[int]:
    """`4x4` as [4, 4]; nothing where it is anything else."""
    parts = text.split("x")
    return [int(part) for part in parts] if all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts) else []
