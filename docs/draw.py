"""Draw the networks of docs/network.md into docs/pictures/, from graphs of small examples.

Only those are drawn anew that show something else than their graph; `--all` draws every one, after
a change of how they are painted. `--check` writes nothing and exits 1 when one is out of date.
`--png FOLDER` draws them there as PNG.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from math import cos, hypot, pi, sin
from pathlib import Path
from typing import Any

from coopt.instance.schema import Instance
from coopt.network.direct_graphs import domains_of, grid_of
from coopt.network.direct_shapes import fabric
from coopt.network.graphs import whole_graph
from coopt.network.space import families
from coopt.report.network_drawings import Drawing, Frame, Shape, Stroke
from docs.paint import fingerprint, paint

PICTURES = Path(__file__).parent / "pictures"
# file: fabric, HB domains, GPUs of each, ports of a switch, tiers, title
SWITCHED = {
    "one-tier": ("rail-only", 4, 4, 8, 1, "One tier: two rails share each switch of 8 ports"),
    "rail-only": ("rail-only", 8, 2, 4, 2, "Rail-only: a network of its own for every rail"),
    "rail-optimized": (
        "rail-optimized",
        4,
        4,
        8,
        2,
        "Rail-optimized: leaves by rail, spines join all",
    ),
    "clos-2": ("clos", 4, 4, 8, 2, "Clos, two tiers: leaves by HB domain, spines join all"),
    "clos-3": (
        "clos",
        8,
        2,
        4,
        3,
        "Clos, three tiers: pods of leaves and aggregation switches, cores join them",
    ),
}
DIRECT = {
    "ring": ("ring:8", "Ring of 8 HB domains"),
    "torus": ("torus:4x4", "Torus of 4 x 4"),
    "mesh": ("mesh:4x4", "Mesh of 4 x 4"),
    "hyperx": ("hyperx:4x4", "HyperX of 4 x 4"),
    "dragonfly": ("dragonfly:5x4", "Dragonfly of 5 groups of 4"),
    "regular": ("regular:16:4", "Random regular graph of 16 HB domains with 4 links each"),
}
Graph = Any  # networkx is untyped; of `graphs.whole_graph` or `direct.shapes.fabric`
DISC, GAP, STOREY = 0.78, 1.0, 2.7
SWITCH_HEIGHT = 0.74
ROWS = {"leaf": "leaves", "spine": "spines", "aggregation": "aggregation", "core": "cores"}
UP = "up"
Place = tuple[float, float]
BOX, PITCH = 1.5, 3.6
GPUS = ((-1, 1), (1, 1), (-1, -1), (1, -1))  # a box shows four, in quarters
MEMBERS = 2.5  # from one domain of a group to the next
CLEAR = 1.15  # from the middle of a domain to a link that passes it
BENDS = {1: 0.0, 2: CLEAR, 3: 1.65}
ROW, COLUMN, INSIDE, BETWEEN, ANY = "row", "column", "inside", "between", "link"
NAMES = {
    ROW: "link along a row",
    COLUMN: "link along a column",
    INSIDE: "link inside a group",
    BETWEEN: "link between groups",
    ANY: "link between HB domains",
}


def main() -> None:
    """Draw or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, exit 1 when a picture is out of date"
    )
    parser.add_argument("--all", action="store_true", help="draw every picture anew")
    parser.add_argument("--png", metavar="FOLDER", type=Path, help="draw PNG files there instead")
    wishes = parser.parse_args()
    stale = [name for name, drawing in drawings() if not current(name, drawing)]
    if wishes.check:
        sys.exit(
            f"docs/pictures/: {', '.join(stale)} out of date, `make docs` draws them"
            if stale
            else 0
        )
    for name, drawing in drawings():
        if wishes.png:
            paint(drawing, wishes.png / f"{name}.png")
        elif wishes.all or name in stale:
            paint(drawing, PICTURES / f"{name}.svg")


def drawings() -> Iterator[tuple[str, Drawing]]:
    """Every picture by the name of its file."""
    for name, (kind, domains, size, radix, tiers, title) in SWITCHED.items():
        (family,) = (
            one for one in families(example(kind, domains, size, radix)) if one.domains == domains
        )
        assert family.tiers == tiers
        yield name, switched_drawing(whole_graph(family, family.uplink_choices[-1]), title)
    for name, (shape, title) in DIRECT.items():
        yield name, direct_drawing(fabric(shape), title)


def current(name: str, drawing: Drawing) -> bool:
    """Whether the picture that is there shows this drawing."""
    file = PICTURES / f"{name}.svg"
    return file.exists() and fingerprint(drawing) in file.read_text("utf-8")


def example(kind: str, domains: int, size: int, radix: int) -> Instance:
    """A question with one answer; only its network is drawn."""
    nothing = {"usd": 0, "w": 0}
    hb = {"name": "small", "size": size, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0}
    return Instance.model_validate(
        {
            "schema": 1,
            "name": "example",
            "cluster": {"gpu": "h100-sxm", "gpus": domains * size},
            "workload": [
                {
                    "name": "w",
                    "model": "gpt-22b",
                    "global_batch": domains * size,
                    "max_iteration_time_s": 1.0,
                }
            ],
            "network": {
                "hb_domains": hb,
                "fabrics": kind,
                "nics": {"name": "nic", "gbit_s": 400, **nothing},
                "switches": {"name": "switch", "radix": radix, "port_gbit_s": 400, **nothing},
                "optics": "400g-199",
                "oversubscription": 1.0,
                "max_tiers": 3,
            },
        }
    )


def switched_drawing(graph: Graph, title: str) -> Drawing:
    """The drawing of a network with every part; NICs are left out, each link of a GPU is that of
    one of its NICs.
    """
    gpus = {name: data for name, data in graph.nodes(data=True) if data["kind"] == "gpu"}
    size = 1 + max(data["rank"] for data in gpus.values())
    places = {
        name: (data["domain"] * (size + GAP) + data["rank"], 0.0) for name, data in gpus.items()
    }
    width = max(x for x, _ in places.values())
    down = _down(graph)
    rails = {leaf: sorted({gpus[gpu]["rank"] for gpu in ends}) for leaf, ends in down.items()}
    switches: list[Shape] = []
    for level in range(1, 1 + int(graph.graph["tiers"])):
        switches += _row(graph, level, width, rails)
    places |= {part.name: (part.x, part.y) for part in switches}
    colour = {part.name: part.colour for part in switches}
    lines = (*_first_links(down, gpus, places), *_further_links(graph, places, colour))
    several = {UP: "several rails"} if any(line.colour == UP for line in lines) else {}
    return Drawing(
        title=title,
        parts=(*_gpu_parts(gpus, places), *switches),
        frames=(*_domain_frames(places, gpus, size), *_pod_frames(graph, places)),
        lines=lines,
        legend={_rail(rank): f"rail {rank}" for rank in range(size)} | several,
        rows=(
            (0.0, "GPUs"),
            *(
                (part.y, ROWS[part.name.split("/")[0]])
                for part in {s.y: s for s in switches}.values()
            ),
        ),
    )


def _down(graph: Graph) -> dict[str, list[str]]:
    """GPUs below each leaf, one entry for each NIC."""
    found: dict[str, list[str]] = {}
    for nic, kind in graph.nodes(data="kind"):
        if kind == "nic":
            gpu, leaf = sorted(graph[nic], key=lambda name: graph.nodes[name]["level"])
            found.setdefault(leaf, []).append(gpu)
    return found


def _rail(rank: int) -> str:
    return f"rail {rank}"


def _row(graph: Graph, level: int, width: float, rails: dict[str, list[int]]) -> Iterator[Shape]:
    """The switches of a level, evenly over the width, in the order of planes and numbers."""
    names = sorted(
        (name for name, here in graph.nodes(data="level") if here == level),
        key=lambda name: tuple(map(int, name.split("/")[1:])),
    )
    pitch = (width + GAP) / len(names)
    for place, name in enumerate(names):
        below = rails.get(name) or sorted({r for leaf in graph[name] for r in rails.get(leaf, [])})
        label, colour = _called(name, below, shared=graph.graph["tiers"] == 1)
        yield Shape(
            name=name,
            kind="switch",
            x=(place + 0.5) * pitch - GAP / 2,
            y=level * STOREY,
            width=min(0.8 * pitch, 3.4),
            height=SWITCH_HEIGHT,
            label=label,
            colour=colour,
        )


def _called(name: str, rails: list[int], shared: bool) -> tuple[str, str]:
    """Label and colour of a switch above some rails; `shared` where the planes of these rails share
    it.
    """
    kind, _, number = name.split("/")
    called = f"{'agg.' if kind == 'aggregation' else kind} {number}"
    if len(rails) == 1:
        return f"rail {rails[0]}, {called}", _rail(rails[0])
    return f"rails {rails[0]}-{rails[-1]}" if shared else called, UP


def _gpu_parts(gpus: dict[str, Any], places: dict[str, tuple[float, float]]) -> Iterator[Shape]:
    for name, data in gpus.items():
        x, y = places[name]
        yield Shape(
            name=name,
            kind="gpu",
            x=x,
            y=y,
            width=DISC,
            height=DISC,
            label=str(data["rank"]),
            colour="idle" if data["idle"] else _rail(data["rank"]),
        )


def _domain_frames(
    places: dict[str, tuple[float, float]], gpus: dict[str, Any], size: int
) -> Iterator[Frame]:
    for name, data in gpus.items():
        if data["rank"] == 0:
            yield Frame(
                x=places[name][0] - 0.6,
                y=-0.6,
                width=size + 0.2,
                height=1.2,
                label=f"HB domain {data['domain']}",
                kind="domain",
            )


def _pod_frames(graph: Graph, places: dict[str, tuple[float, float]]) -> Iterator[Frame]:
    """Leaves and aggregation switches that are joined, plane by plane."""
    pods: dict[tuple[str, ...], set[str]] = {}
    for name, kind in graph.nodes(data="kind"):
        if kind == "leaf" and graph.graph["tiers"] == 3:
            middle = tuple(
                sorted(n for n in graph[name] if graph.nodes[n]["kind"] == "aggregation")
            )
            pods.setdefault(middle, set(middle)).add(name)
    for number, pod in enumerate(pods.values()):
        left, right = min(places[n][0] for n in pod), max(places[n][0] for n in pod)
        edge = max(0.8, 0.46 * (right - left) / max(1, len(pod) // 2 - 1))
        yield Frame(
            x=left - edge,
            y=STOREY - 0.62,
            width=right - left + 2 * edge,
            height=STOREY + 1.24,
            label=f"pod {number}",
            kind="pod",
        )


def _first_links(
    down: dict[str, list[str]], gpus: dict[str, Any], places: dict[str, tuple[float, float]]
) -> Iterator[Stroke]:
    for leaf, ends in down.items():
        for gpu in dict.fromkeys(ends):
            x, y = places[gpu]
            to_x, to_y = places[leaf]
            yield Stroke(
                start=(x, y + DISC / 2),
                end=(to_x, to_y - SWITCH_HEIGHT / 2),
                links=ends.count(gpu),
                colour=_rail(gpus[gpu]["rank"]),
            )


def _further_links(
    graph: Graph, places: dict[str, tuple[float, float]], colour: dict[str, str]
) -> Iterator[Stroke]:
    for one, other, edge in graph.edges(data=True):
        if edge["level"] > 1:
            low, high = sorted((one, other), key=lambda name: places[name][1])
            yield Stroke(
                start=(places[low][0], places[low][1] + SWITCH_HEIGHT / 2),
                end=(places[high][0], places[high][1] - SWITCH_HEIGHT / 2),
                links=edge["links"],
                colour=colour[low],
            )


def direct_drawing(graph: Graph, title: str) -> Drawing:
    """The drawing of a fabric without switches: flat grids as grids, groups as groups, others on a
    circle.
    """
    names, shape = domains_of(graph), grid_of(graph)
    grouped = shape is None and all("." in name for name in names)
    if shape is not None and len(shape) == 2:
        places = _on_grid(names, shape)
    else:
        places = _on_circles(names) if grouped else _on_circle(names)
    lines = tuple(_direct_link(graph, places, one, other) for one, other in graph.edges)
    return Drawing(
        title=title,
        parts=tuple(part for name in names for part in _direct_domain(name, places[name])),
        frames=tuple(_group_frames(places)) if grouped else (),
        lines=lines,
        legend={
            colour: NAMES[colour]
            for colour in NAMES
            if any(line.colour == colour for line in lines)
        },
    )


def _on_grid(names: list[str], shape: tuple[int, ...]) -> dict[str, Place]:
    columns = shape[1]
    return {name: (i % columns * PITCH, -(i // columns) * PITCH) for i, name in enumerate(names)}


def _on_circle(
    names: list[str], *, around: Place = (0.0, 0.0), pitch: float = 2.7, turn: float = 0.0
) -> dict[str, Place]:
    """Clockwise from the top, or from `turn` (radians); neighbours are `pitch` apart."""
    radius = pitch / (2 * sin(pi / len(names))) if len(names) > 1 else 0.0
    angles = [pi / 2 - turn - 2 * pi * i / len(names) for i in range(len(names))]
    return {
        name: (around[0] + radius * cos(a), around[1] + radius * sin(a))
        for name, a in zip(names, angles, strict=True)
    }


def _members(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.split(".")[0], []).append(name)
    return found


def _on_circles(names: list[str]) -> dict[str, Place]:
    """Groups on a large circle, their members on small ones, so that links to the next group start
    beside it.
    """
    groups = _members(names)
    centres = _on_circle(list(groups), pitch=2.3 * max(map(_reach, groups.values())))
    found: dict[str, Place] = {}
    for number, (group, members) in enumerate(groups.items()):
        turn = 2 * pi * number / len(groups) + pi / len(members)
        found |= _on_circle(members, around=centres[group], pitch=MEMBERS, turn=turn)
    return found


def _reach(members: list[str]) -> float:
    """Radius of the disc around a group."""
    return (MEMBERS / (2 * sin(pi / len(members))) if len(members) > 1 else 0.0) + 0.85 * BOX


def _group_frames(places: dict[str, Place]) -> Iterator[Frame]:
    for group, members in _members(list(places)).items():
        x, y = (sum(places[name][axis] for name in members) / len(members) for axis in (0, 1))
        reach = _reach(members)
        yield Frame(
            x=x - reach,
            y=y - reach,
            width=2 * reach,
            height=2 * reach,
            label=f"group {group[1:]}",
            kind="group",
        )


def _direct_domain(name: str, place: Place) -> Iterator[Shape]:
    x, y = place
    yield Shape(
        name=name,
        kind="domain",
        x=x,
        y=y,
        width=BOX,
        height=BOX,
        label=name[1:].replace(".", ","),
        colour="domain",
    )
    for number, (right, up) in enumerate(GPUS):
        yield Shape(
            name=f"{name}/{number}",
            kind="gpu",
            x=x + right * BOX / 3.4,
            y=y + up * BOX / 3.4,
            width=0.3 * BOX,
            height=0.3 * BOX,
            label="",
            colour="gpu",
        )


def _direct_link(graph: Graph, places: dict[str, Place], one: str, other: str) -> Stroke:
    (x, y), (to_x, to_y) = places[one], places[other]
    colour, bend = ANY, 0.0
    shape = grid_of(graph)
    if shape is not None and len(shape) == 2:
        colour = ROW if y == to_y else COLUMN
        span = round(hypot(to_x - x, to_y - y) / PITCH)
        bend = BENDS.get(span, 0.5 * span)
        if (x, -y) > (to_x, -to_y):
            x, y, to_x, to_y = to_x, to_y, x, y
        bend = bend if colour == ROW else -bend
    elif shape is None and "." in one:
        colour = INSIDE if one.split(".")[0] == other.split(".")[0] else BETWEEN
    else:
        bend = _inwards(places, one, other)
    return Stroke(
        start=(x, y),
        end=(to_x, to_y),
        links=graph.edges[one, other]["links"],
        colour=colour,
        bend=bend,
    )


def _inwards(places: dict[str, Place], one: str, other: str) -> float:
    """The bend that keeps a link of a circle away from the domains it passes."""
    names = list(places)
    steps = (names.index(other) - names.index(one)) % len(names)
    if steps in (1, len(names) - 1):
        return 0.0
    radius = hypot(*places[one])
    depth = radius * (1 - cos(pi * steps / len(names)))
    clockwise = steps <= len(names) / 2
    nearest = min(depth, 2 * radius - depth)
    return max(0.0, CLEAR - nearest) * (-1 if clockwise else 1)


if __name__ == "__main__":
    main()
