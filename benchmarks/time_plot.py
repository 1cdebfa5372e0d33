"""Seconds of processor time against size, one panel for each kind of problem."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt

SIZES = {
    "workloads in turn": "workloads",
    "sites": "shares",
    "partition": "workloads",
    "phased": "phases",
    "regret": "kinds of price that may change",
}
"""What grows along a kind's series, where it is not the number of GPUs."""


def draw(rows: list[dict[str, object]], place: Path) -> None:
    """Write the picture; only series of at least three sizes are drawn."""
    mine = [row for row in rows if row["way"] == "coopt"]
    kinds = [
        kind for kind in dict.fromkeys(row["kind"] for row in mine) if len(_series(mine, kind)) >= 3
    ]
    figure, panels = plt.subplots(
        2, -(-len(kinds) // 2), figsize=(4 * -(-len(kinds) // 2), 6), layout="constrained"
    )
    for panel, kind in zip(panels.flat, kinds, strict=False):
        series = _series(mine, kind)
        panel.plot(
            [size for size, _ in series],
            [seconds for _, seconds in series],
            marker="o",
            color="#1f4e79",
        )
        panel.set_title(str(kind), fontsize=10)
        panel.set_xlabel(SIZES.get(str(kind), "GPUs"))
        panel.set_ylabel("processor time (s)")
        panel.set_yscale("log")
        if str(kind) not in SIZES:
            panel.set_xscale("log", base=2)
        panel.grid(visible=True, alpha=0.3)
    for panel in list(panels.flat)[len(kinds) :]:
        panel.set_visible(False)
    figure.savefig(place, dpi=120)
    plt.close(figure)


def _series(rows: list[dict[str, object]], kind: object) -> list[tuple[int, float]]:
    found = [
        (int(str(row["size"])), float(str(row["cpu_s"]))) for row in rows if row["kind"] == kind
    ]
    return sorted(pair for pair in found if pair[0])
