"""Which GPU runs which rank of a job, numbered as Megatron-LM numbers ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.perf.mapping import Ints
from coopt.traffic.ranks import GRID, Split, groups, stages


@dataclass(frozen=True, kw_only=True)
class RankTable:
    """The ranks of one workload; row i of every array is rank i, shape (ranks,).

    Attributes
    ----------
    gpu
        Number of the GPU: domain · K + GPU in the domain.
    tp, cp, dp, pp, ep
        Place in the groups of each dimension.
    expert_group
        Number of the group that shares experts, as the plan places it.
    pp_last
        Whether ranks run TP fastest, then CP, DP, PP (tp-cp-ep-dp-pp), or with DP slowest (tp-cp-ep-pp-dp).
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
        """Whether rank i runs on GPU i, so that a launcher that fills hosts one by one places all ranks."""
        return bool((self.gpu == np.arange(len(self.gpu))).all())


def rank_table(split: Split) -> RankTable:
    """The ranks in the order of Megatron-LM; with DP slowest where only that puts rank i on GPU i."""
    usual = _table(split, pp_last=True)
    if usual.in_place or not _may_end_with_dp(split):
        return usual
    other = _table(split, pp_last=False)
    return other if other.in_place else usual


def _may_end_with_dp(split: Split) -> bool:
    """Megatron-LM numbers expert groups in that order only where DP groups of experts are those of the other layers."""
    one = split.mapping
    tp_of_experts = one.tp[0] if split.workload.options.expert_tp else 1
    return not split.workload.model.experts or bool(one.ep[0] * tp_of_experts == one.tp[0] * one.cp[0])


def _table(split: Split, *, pp_last: bool) -> RankTable:
    place = dict(zip(GRID, np.indices(split.extents).reshape(len(GRID), -1), strict=True))
    at = {d: place[f"{d}l"] * split.extent(f"{d}h") + place[f"{d}h"] for d in ("t", "c", "d")}
    t, c, p, d = (int(getattr(split.mapping, name)[0]) for name in ("tp", "cp", "pp", "dp"))
    stage, order = np.empty(split.ranks, dtype=np.int64), stages(split)
    stage[order] = np.arange(p)[:, None]
    upper = stage * d + at["d"] if pp_last else at["d"] * p + stage
    gpu = np.argsort((upper * c + at["c"]) * t + at["t"])
    group, member = _experts(split)
    return RankTable(
        gpu=gpu,
        tp=at["t"][gpu],
        cp=at["c"][gpu],
        dp=at["d"][gpu],
        pp=stage[gpu],
        ep=member[gpu],
        expert_group=group[gpu],
        pp_last=pp_last,
    )


def _experts(split: Split) -> tuple[Ints, Ints]:
    """Expert group of every GPU and its place in it; a GPU for itself without experts."""
    if not split.workload.model.experts:
        return np.arange(split.ranks, dtype=np.int64), np.zeros(split.ranks, dtype=np.int64)
    table = groups(split, "ep").reshape(-1, int(split.mapping.ep[0]))
    group, member = np.empty(split.ranks, dtype=np.int64), np.empty(split.ranks, dtype=np.int64)
    group[table] = np.arange(len(table))[:, None]
    member[table] = np.arange(table.shape[1])
    return group, member


def megatron_expert_groups(split: Split, table: RankTable) -> Ints:
    """The group in which Megatron-LM lets every rank share experts; shape (ranks,).

    Ranks of a stage, in the order TP, CP, DP, form groups of consecutive ones, split by TP where TP splits experts.
    """
    one = split.mapping
    t, c, x = int(one.tp[0]), int(one.cp[0]), int(one.ep[0])
    tp_of_experts = t if split.workload.options.expert_tp else 1
    inside = (table.dp * c + table.cp) * t + table.tp
    number = inside // (tp_of_experts * x) * tp_of_experts + inside % tp_of_experts
    return np.asarray(table.pp * len(inside) + number, dtype=np.int64)


def same_groups(one: Ints, other: Ints) -> bool:
    """Whether two numberings split the ranks in the same groups."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    return bool(pairs == len(np.unique(one)) == len(np.unique(other)))
