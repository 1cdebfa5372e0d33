"""Switched networks: HB domains in a row, above them leaves, spines or pods, and cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coopt.report.fabrics.drawing import Drawing, Frame, Line, Part

Graph = Any  # networkx is untyped; of `coopt.network.graphs.every_part.explicit`

DISC, GAP, STOREY = 0.78, 1.0, 2.7
SWITCH_HEIGHT = 0.74
ROWS = {"leaf": "leaves", "spine": "spines", "aggregation": "aggregation", "core": "cores"}
UP = "up"


def switched_drawing(graph: Graph, title: str) -> Drawing:
    """The drawing of a network with every part; NICs are left out, each link of a GPU is that of one of its NICs."""
    gpus = {name: data for name, data in graph.nodes(data=True) if data["kind"] == "gpu"}
    size = 1 + max(data["rank"] for data in gpus.values())
    places = {name: (data["domain"] * (size + GAP) + data["rank"], 0.0) for name, data in gpus.items()}
    width = max(x for x, _ in places.values())
    down = _down(graph)
    rails = {leaf: sorted({gpus[gpu]["rank"] for gpu in ends}) for leaf, ends in down.items()}
    switches: list[Part] = []
    for level in range(1, 1 + int(graph.graph["tiers"])):
        switches += _row(graph, level, width, rails)
    places |= {part.name: (part.x, part.y) for part in switches}
    colour = {part.name: part.colour for part in switches}
    lines = (*_first_links(down, gpus, places), *_further_links(graph, places, colour))
    several = {UP: "several rails"} if any(line.colour == UP for line in lines) else {}
    return Drawing(
        title=title,
        parts=(*_gpus(gpus, places), *switches),
        frames=(*_domains(places, gpus, size), *_pods(graph, places)),
        lines=lines,
        legend={_rail(rank): f"rail {rank}" for rank in range(size)} | several,
        rows=(
            (0.0, "GPUs"),
            *((part.y, ROWS[part.name.split("/")[0]]) for part in {s.y: s for s in switches}.values()),
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


def _row(graph: Graph, level: int, width: float, rails: dict[str, list[int]]) -> Iterator[Part]:
    """The switches of a level, evenly over the width, in the order of planes and numbers."""
    names = sorted(
        (name for name, here in graph.nodes(data="level") if here == level),
        key=lambda name: tuple(map(int, name.split("/")[1:])),
    )
    pitch = (width + GAP) / len(names)
    for place, name in enumerate(names):
        below = rails.get(name) or sorted({r for leaf in graph[name] for r in rails.get(leaf, [])})
        label, colour = _called(name, below, shared=graph.graph["tiers"] == 1)
        yield Part(
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
    """Label and colour of a switch above some rails; `shared` where the planes of these rails share it."""
    kind, _, number = name.split("/")
    called = f"{'agg.' if kind == 'aggregation' else kind} {number}"
    if len(rails) == 1:
        return f"rail {rails[0]}, {called}", _rail(rails[0])
    return f"rails {rails[0]}-{rails[-1]}" if shared else called, UP


def _gpus(gpus: dict[str, Any], places: dict[str, tuple[float, float]]) -> Iterator[Part]:
    for name, data in gpus.items():
        x, y = places[name]
        yield Part(
            name=name, kind="gpu", x=x, y=y, width=DISC, height=DISC, label=str(data["rank"]),
            colour="idle" if data["idle"] else _rail(data["rank"]),
        )  # fmt: skip


def _domains(places: dict[str, tuple[float, float]], gpus: dict[str, Any], size: int) -> Iterator[Frame]:
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


def _pods(graph: Graph, places: dict[str, tuple[float, float]]) -> Iterator[Frame]:
    """Leaves and aggregation switches that are joined, plane by plane."""
    pods: dict[tuple[str, ...], set[str]] = {}
    for name, kind in graph.nodes(data="kind"):
        if kind == "leaf" and graph.graph["tiers"] == 3:
            middle = tuple(sorted(n for n in graph[name] if graph.nodes[n]["kind"] == "aggregation"))
            pods.setdefault(middle, set(middle)).add(name)
    for number, pod in enumerate(pods.values()):
        left, right = min(places[n][0] for n in pod), max(places[n][0] for n in pod)
        edge = max(0.8, 0.46 * (right - left) / max(1, len(pod) // 2 - 1))
        yield Frame(
            x=left - edge, y=STOREY - 0.62, width=right - left + 2 * edge, height=STOREY + 1.24, label=f"pod {number}",
            kind="pod",
        )  # fmt: skip


def _first_links(
    down: dict[str, list[str]], gpus: dict[str, Any], places: dict[str, tuple[float, float]]
) -> Iterator[Line]:
    for leaf, ends in down.items():
        for gpu in dict.fromkeys(ends):
            x, y = places[gpu]
            to_x, to_y = places[leaf]
            yield Line(
                start=(x, y + DISC / 2), end=(to_x, to_y - SWITCH_HEIGHT / 2), links=ends.count(gpu),
                colour=_rail(gpus[gpu]["rank"]),
            )  # fmt: skip


def _further_links(graph: Graph, places: dict[str, tuple[float, float]], colour: dict[str, str]) -> Iterator[Line]:
    for one, other, edge in graph.edges(data=True):
        if edge["level"] > 1:
            low, high = sorted((one, other), key=lambda name: places[name][1])
            yield Line(
                start=(places[low][0], places[low][1] + SWITCH_HEIGHT / 2),
                end=(places[high][0], places[high][1] - SWITCH_HEIGHT / 2),
                links=edge["links"],
                colour=colour[low],
            )
