"""Split of a workload over ranks, groups of communicating ranks, and the rank order of
Megatron-LM.

Ranks are numbered TP fastest, then CP, DP, PP, first inside the domain and then across domains,
where PP can come before CP and DP (docs/network.md). The stages of a pipeline run through a domain
in one direction and through the next domain in the other, so that the hop between them stays on its
rail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.mapping import (
    Bools,
    Ints,
    Mappings,
    Placements,
    expert_ranks,
    replicas_together,
    tp_of_experts,
    uneven_replicas,
)
from coopt.plan.parts import WorkloadPlan

GRID = (
    "pl",
    "dl",
    "cl",
    "tl",
    "ph",
    "dh",
    "ch",
    "th",
)  # slowest first: rank = domain · K + rank in the domain
TURNED = ("dl", "cl", "pl", "tl", *GRID[4:])  # replicas outermost
Group = Literal["tp", "cp", "dp", "ep", "copies", "etp", "dp shards", "copies shards"]


@dataclass(frozen=True, kw_only=True)
class RankGrid:
    """A workload with its mapping and placement (one row each), and the extents of the grid of
    places, slowest first.

    Every place has a rank if HB domains are filled alike. Otherwise the grid is that of the fullest
    domain: of the domains with the replicas of a stage the first ones have `dh` of them, the others
    `fewest`, and the last places of the latter are empty.
    """

    workload: Workload
    mapping: Mappings
    placement: Placements
    names: tuple[str, ...]
    extents: tuple[int, ...]

    @property
    def places(self) -> int:
        """Number of places in the grid, which number the GPUs."""
        return int(np.prod(self.extents))

    @property
    def ranks(self) -> int:
        """N: number of training GPUs."""
        return int(self.present.sum())

    @property
    def active(self) -> int:
        """K: places per HB domain."""
        return int(np.prod(self.extents[4:]))

    @property
    def domains(self) -> int:
        """Number of HB domains."""
        return int(np.prod(self.extents[:4]))

    @property
    def fewest(self) -> int:
        """Minimum number of replicas of a stage in a domain."""
        return int(self.placement.dp_at_least[0])

    @cached_property
    def present(self) -> Bools:
        """Whether each place has a rank; shape (places,)."""
        at = dict(zip(self.names, np.indices(self.extents, sparse=True), strict=True))
        surplus = self.extent("dh") - self.fewest
        full_domains = (
            (int(self.mapping.dp[0]) - self.fewest * self.extent("dl")) // surplus if surplus else 0
        )
        is_present = np.broadcast_to(
            (at["dh"] < self.fewest) | (at["dl"] < full_domains), self.extents
        )
        return np.asarray(is_present.ravel(), dtype=np.bool_)

    def extent(self, name: str) -> int:
        """Return the extent of one dimension, such as `tl`: TP across domains."""
        return self.extents[self.names.index(name)]


def split_of(workload: Workload, workload_plan: WorkloadPlan) -> RankGrid:
    """Return the split of one workload of a plan."""
    per_domain, count = workload_plan.placement["dp"]
    is_even = per_domain * count <= workload_plan.mapping.dp
    inside = {name: parts[0] for name, parts in workload_plan.placement.items()}
    across = {name: parts[1] for name, parts in workload_plan.placement.items()}
    names = TURNED if workload_plan.mapping.outermost == "dp" else GRID
    extents = tuple((across if name[1] == "l" else inside)[f"{name[0]}p"] for name in names)
    mapping = Mappings.of_choice(workload_plan.mapping.model_dump())
    joint_replicas = replicas_together(mapping, expert_tp=workload.options.expert_tp)
    _, fewest = uneven_replicas(workload_plan.mapping.dp, int(joint_replicas[0]), count)
    return RankGrid(
        workload=workload,
        mapping=mapping,
        placement=Placements(
            tp=_row(inside["tp"]),
            cp=_row(inside["cp"]),
            pp=_row(inside["pp"]),
            dp=_row(inside["dp"]),
            dp_domains=None if is_even else _row(count),
            dp_min=None if is_even else _row(fewest),
        ),
        names=names,
        extents=extents,
    )


def _row(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([value], dtype=np.int64)


def groups(split: RankGrid, group: Group) -> Ints:
    """Return the places of every group of a kind; shape (groups, domains of a group, its places per
    domain).

    Replicas present in every domain come first in a domain. Groups without a rank are left out.
    `dp` holds the replicas of a stage with their context ranks, `ep` the ranks that share experts,
    `copies` those with the same experts, `etp` those that split each of theirs. Where ZeRO keeps
    several copies, `dp` and `copies` are those with the same shard, beside the `shards` of each.
    """
    if group in ("tp", "cp"):
        return _with_ranks(split, _table(split, [f"{group[0]}l"], [f"{group[0]}h"]))
    if group in ("dp", "dp shards"):
        return _of_copies(split, _table(split, ["dl", "cl"], ["dh", "ch"]), group)
    expert_tp = split.workload.options.expert_tp
    x_h, x_l, copies_inside, copies_across = (
        int(n[0]) for n in expert_ranks(split.mapping, split.placement, expert_tp=expert_tp)
    )
    over = int(tp_of_experts(split.mapping.tp, expert_tp)[0])
    over_inside = math.gcd(over, split.extent("th"))
    # neighbours split an expert; expert groups take neighbours of these, inside a domain and then
    # domain by domain; the copies of an expert follow
    table = _table(split, ["dl", "cl", "tl"], ["dh", "ch", "th"])
    _, domains, ranks = table.shape
    parts = over // over_inside, ranks // over_inside, over_inside
    table = table.reshape(-1, domains // parts[0], *parts)
    if group == "etp":
        return _with_ranks(split, table.transpose(0, 1, 3, 2, 4).reshape(-1, parts[0], over_inside))
    table = table.transpose(0, 2, 4, 1, 3).reshape(-1, copies_across, x_l, copies_inside, x_h)
    if group == "ep":
        return _with_ranks(split, table.transpose(0, 1, 3, 2, 4).reshape(-1, x_l, x_h))
    table = table.transpose(0, 2, 4, 1, 3).reshape(-1, copies_across, copies_inside)
    return _of_copies(split, table, group)


def _of_copies(split: RankGrid, table: Ints, group: Group) -> Ints:
    """Divide groups that hold the same into those of a copy, or those of a shard in all copies."""
    copies = split.workload.options.dp_replicate
    if copies == 1:
        return table
    _, domains, ranks = table.shape
    shards = domains * ranks // copies  # which lie in a domain
    table = table.reshape(-1, domains, ranks // shards, shards)
    if group.endswith("shards"):
        return table.reshape(-1, 1, shards)
    return table.transpose(0, 3, 1, 2).reshape(-1, domains, ranks // shards)


def _with_ranks(split: RankGrid, table: Ints) -> Ints:
    """Select the groups that have ranks: where domains differ, a group lies in one domain and has
    all its ranks or none.
    """
    return table[split.present[table[:, 0, 0]]]


def _table(split: RankGrid, across: Sequence[str], inside: Sequence[str]) -> Ints:
    group_names = [*across, *inside]
    other_names = [name for name in split.names if name not in group_names]
    order = [split.names.index(name) for name in (*other_names, *group_names)]
    ranks = np.arange(split.places, dtype=np.int64).reshape(split.extents).transpose(order)
    return ranks.reshape(-1, _product(split, across), _product(split, inside))


def _product(split: RankGrid, names: Sequence[str]) -> int:
    return int(np.prod([split.extent(name) for name in names], dtype=np.int64))


def stages(split: RankGrid) -> Ints:
    """Return the ranks of every pipeline, stage by stage; shape (p, pipelines)."""
    order = [split.names.index(name) for name in ("pl", "ph", *(n for n in GRID if n[0] != "p"))]
    ranks = np.arange(split.places, dtype=np.int64).reshape(split.extents).transpose(order)
    snake = ranks.reshape(split.extent("pl"), split.extent("ph"), -1).copy()
    # every second block of domains runs the stages backwards, so that a hop between domains stays
    # on its rail
    snake[1::2] = snake[1::2, ::-1]
    pipelines = snake.reshape(int(split.mapping.pp[0]), -1)
    return pipelines[:, split.present[pipelines[0]]]


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """The ranks of one workload; row i of every array is rank i, shape (ranks,).

    Attributes
    ----------
    gpu
        Number of the GPU: domain · K + GPU in the domain; some GPUs do not train if domains are
        filled unevenly.
    tp, cp, dp, pp, ep
        Position in the groups of each dimension.
    expert_group
        Number of the group that shares experts, as placed by the plan.
    pp_last
        Whether ranks run TP fastest, then CP, DP, PP (tp-cp-ep-dp-pp), or with DP slowest
        (tp-cp-ep-pp-dp).
    """

    gpu: Ints
    tp: Ints
    cp: Ints
    dp: Ints
    pp: Ints
    ep: Ints
    expert_group: Ints
    pp_last: bool

    @property
    def in_place(self) -> bool:
        """Whether rank i runs on GPU i, so that a launcher that fills hosts in order places all
        ranks correctly.
        """
        return bool((self.gpu == np.arange(len(self.gpu))).all())


def rank_table(split: RankGrid) -> RankTable:
    """Return the ranks in the order of Megatron-LM; with DP slowest if only that puts rank i on GPU
    i.
    """
    pp_slowest = _rank_table(split, pp_last=True)
    if pp_slowest.in_place or not _may_end_with_dp(split):
        return pp_slowest
    dp_slowest = _rank_table(split, pp_last=False)
    return dp_slowest if dp_slowest.in_place else pp_slowest


def _may_end_with_dp(split: RankGrid) -> bool:
    """Whether DP can be slowest: Megatron-LM then requires equal DP groups for experts and other
    layers.
    """
    mapping = split.mapping
    over = tp_of_experts(mapping.tp, split.workload.options.expert_tp)
    return not split.workload.model.experts or bool(
        (mapping.ep * over == mapping.tp * mapping.cp)[0]
    )


def _rank_table(split: RankGrid, *, pp_last: bool) -> RankTable:
    place = dict(zip(split.names, np.indices(split.extents).reshape(len(GRID), -1), strict=True))
    at = {d: place[f"{d}l"] * split.extent(f"{d}h") + place[f"{d}h"] for d in ("t", "c", "d")}
    t, c, p = (int(getattr(split.mapping, name)[0]) for name in ("tp", "cp", "pp"))
    stage, order, d = (
        np.zeros(split.places, dtype=np.int64),
        stages(split),
        split.extent("dl") * split.extent("dh"),
    )
    stage[order] = np.arange(p)[:, None]
    stage_and_replica = stage * d + at["d"] if pp_last else at["d"] * p + stage
    present = np.flatnonzero(split.present)
    # Megatron-LM counts TP fastest: the i-th place in its order has rank i
    gpu = present[np.argsort(((stage_and_replica * c + at["c"]) * t + at["t"])[present])]
    replica = np.unique(at["d"][gpu], return_inverse=True)[1]
    group, member = _expert_places(split)
    return RankTable(
        gpu=gpu,
        tp=at["t"][gpu],
        cp=at["c"][gpu],
        dp=replica,
        pp=stage[gpu],
        ep=member[gpu],
        expert_group=group[gpu],
        pp_last=pp_last,
    )


def _expert_places(split: RankGrid) -> tuple[Ints, Ints]:
    """Return expert group of every GPU and its position in it; one group per GPU without
    experts.
    """
    if not split.workload.model.experts:
        return np.arange(split.places, dtype=np.int64), np.zeros(split.places, dtype=np.int64)
    table = groups(split, "ep").reshape(-1, int(split.mapping.ep[0]))
    group, member = np.zeros((2, split.places), dtype=np.int64)
    group[table] = np.arange(len(table))[:, None]
    member[table] = np.arange(table.shape[1])
    return group, member


def megatron_expert_groups(split: RankGrid, table: RankTable) -> Ints:
    """Return the expert group that Megatron-LM assigns to every rank; shape (ranks,).

    Ranks of a stage, in the order TP, CP, DP, form groups of consecutive ranks, split by TP if TP
    splits experts.
    """
    mapping = split.mapping
    t, c, x = int(mapping.tp[0]), int(mapping.cp[0]), int(mapping.ep[0])
    over = int(tp_of_experts(t, split.workload.options.expert_tp))
    inside = (table.dp * c + table.cp) * t + table.tp
    number = inside // (over * x) * over + inside % over
    return np.asarray(table.pp * len(inside) + number, dtype=np.int64)


def same_groups(numbers: Ints, other_numbers: Ints) -> bool:
    """Whether two numberings partition the ranks equally."""
    pairs = np.unique(np.stack([numbers, other_numbers]), axis=1).shape[1]
    return bool(pairs == len(np.unique(numbers)) == len(np.unique(other_numbers)))
