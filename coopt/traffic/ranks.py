"""How a workload of a plan is split over ranks, and the groups of ranks that talk to each other.

Ranks are numbered TP fastest, then CP, DP, PP, first inside the domain and then across domains (docs/network.md). The
stages of a pipeline run through a domain in one direction and through the next one in the other, so that the hop
between them stays on its rail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Ints, Mappings, Placements, expert_ranks
from coopt.plan.schema import WorkloadPlan

GRID = ("pl", "dl", "cl", "tl", "ph", "dh", "ch", "th")  # slowest first: rank = domain · K + rank in the domain
Group = Literal["tp", "cp", "dp", "ep", "copies"]


@dataclass(frozen=True, kw_only=True)
class Split:
    """A workload, its mapping and placement as one row each, and the extents of the grid of ranks (see `GRID`)."""

    workload: Workload
    mapping: Mappings
    placement: Placements
    extents: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """N: GPUs that train."""
        return int(np.prod(self.extents))

    @property
    def active(self) -> int:
        """K: ranks of an HB domain."""
        return int(np.prod(self.extents[4:]))

    def extent(self, name: str) -> int:
        """Extent of one dimension, such as `tl`: TP across domains."""
        return self.extents[GRID.index(name)]


def split_of(workload: Workload, chosen: WorkloadPlan) -> Split:
    """What a plan says of one workload."""
    one, inside = chosen.mapping, {name: parts[0] for name, parts in chosen.placement.items()}
    across = {name: parts[1] for name, parts in chosen.placement.items()}
    extents = tuple((across if name[1] == "l" else inside)[f"{name[0]}p"] for name in GRID)
    return Split(
        workload=workload,
        mapping=Mappings(
            tp=_row(one.tp),
            cp=_row(one.cp),
            pp=_row(one.pp),
            dp=_row(one.dp),
            ep=_row(one.ep),
            micro_batch=_row(one.micro_batch),
            interleave=_row(one.interleave),
            recompute=_row(RECOMPUTE.index(one.recompute)),
            sequence_parallel=np.array([one.sequence_parallel]),
            zero=_row(one.zero),
        ),
        placement=Placements(
            tp=_row(inside["tp"]), cp=_row(inside["cp"]), pp=_row(inside["pp"]), dp=_row(inside["dp"])
        ),
        extents=extents,
    )


def _row(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([value], dtype=np.int64)


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
