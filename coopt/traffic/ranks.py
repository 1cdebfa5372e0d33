"""Groups of ranks that talk to each other.

Ranks are numbered TP fastest, then CP, DP, PP, first inside the domain and then across domains (docs/network.md). The
stages of a pipeline run through a domain in one direction and through the next one in the other, so that the hop
between them stays on its rail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from coopt.perf.mapping import Ints, expert_ranks
from coopt.traffic.split import GRID, Split

Group = Literal["tp", "cp", "dp", "ep", "copies"]


def groups(split: Split, group: Group) -> Ints:
    """The ranks of every group of a kind; shape (groups, domains a group spans, its ranks in a domain).

    `dp` holds the replicas of a stage with their context ranks, `ep` the ranks that share experts, `copies` those that
    hold the same ones.
    """
    if group in ("tp", "cp"):
        return _table(split, [f"{group[0]}l"], [f"{group[0]}h"])
    if group == "dp":
        return _table(split, ["dl", "cl"], ["dh", "ch"])
    tensor = not split.workload.options.expert_tp
    across, inside = ["dl", "cl", *(["tl"] * tensor)], ["dh", "ch", *(["th"] * tensor)]
    x_h, x_l, copies_inside, copies_across = (
        int(n[0]) for n in expert_ranks(split.mapping, split.placement, expert_tp=not tensor)
    )
    whole = _table(split, across, inside).reshape(-1, copies_across, x_l, copies_inside, x_h)
    if group == "ep":
        return whole.transpose(0, 1, 3, 2, 4).reshape(-1, x_l, x_h)
    return whole.transpose(0, 2, 4, 1, 3).reshape(-1, copies_across, copies_inside)


def _table(split: Split, across: Sequence[str], inside: Sequence[str]) -> Ints:
    named = [*across, *inside]
    others = [name for name in GRID if name not in named]
    order = [GRID.index(name) for name in (*others, *named)]
    ranks = np.arange(split.ranks, dtype=np.int64).reshape(split.extents).transpose(order)
    return ranks.reshape(-1, _product(split, across), _product(split, inside))


def _product(split: Split, names: Sequence[str]) -> int:
    return int(np.prod([split.extent(name) for name in names], dtype=np.int64))


def stages(split: Split) -> Ints:
    """The ranks of every pipeline, stage by stage; shape (p, pipelines)."""
    order = [GRID.index(name) for name in ("pl", "ph", *(n for n in GRID if n[0] != "p"))]
    ranks = np.arange(split.ranks, dtype=np.int64).reshape(split.extents).transpose(order)
    snake = ranks.reshape(split.extent("pl"), split.extent("ph"), -1).copy()
    snake[1::2] = snake[1::2, ::-1]
    return snake.reshape(int(split.mapping.pp[0]), -1)
