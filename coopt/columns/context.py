"""What the time of a mapping depends on in a network, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.network.family import Family
from coopt.perf.affine import Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, Mappings, Placements, expert_ranks


@dataclass(frozen=True, kw_only=True)
class Site:
    """HB domains of one kind holding N GPUs, `active` in each."""

    gpus: int
    hb: str
    active: int


@dataclass(frozen=True, kw_only=True)
class Context:
    """Families that look the same to every mapping, but for their uplinks.

    `down` is 0 on at most one tier, where uplinks play no part.
    """

    site: Site
    byte_s: float
    down: int
    leaf_span: int
    pod_span: int
    pod_ratio: float
    routing: float = 1.0

    def slowdown(self, uplinks: int | Ints) -> float | Floats:
        """Slowdown inside a pod at u uplinks."""
        return self.routing * self.down / uplinks if self.down else 1.0


def context_of(family: Family) -> Context:
    """The context a family belongs to."""
    tiered = family.tiers > 1
    domains = family.domains
    return Context(
        site=Site(gpus=family.gpus, hb=family.hb.name, active=family.active),
        byte_s=family.byte_s,
        down=family.down if tiered else 0,
        leaf_span=family.leaf_span if tiered else domains,
        pod_span=family.pod_span if family.pods else domains,
        pod_ratio=family.pod_ratio,
        routing=family.routing if tiered else 1.0,
    )


def levels_reached(context: Context, mappings: Mappings, placements: Placements, *, expert_tp: bool) -> Reciprocals:
    """How high the groups of every mapping reach: 1 on their leaf, 2 in their pod or on two tiers, 3 beyond a pod."""
    domains = context.site.gpus // context.site.active
    blocks_tp, blocks_dp, blocks_ep = blocks(mappings, placements, expert_tp=expert_tp)

    def level(block: Ints) -> Ints:
        above = np.where(holds(context.pod_span, block, domains), 2, 3)
        return np.where(holds(context.leaf_span, block, domains), 1, above)

    return Reciprocals(
        tp=level(blocks_tp), pp=level(np.full(len(mappings), domains)), dp=level(blocks_dp), ep=level(blocks_ep)
    )


def reciprocals(
    context: Context, uplinks: int | Ints, mappings: Mappings, placements: Placements, *, expert_tp: bool
) -> Reciprocals:
    """Seconds per byte that the groups of every mapping see at u uplinks: shape (n,), or (k, n) for k in (k, 1)."""
    domains = context.site.gpus // context.site.active
    blocks_tp, blocks_dp, blocks_ep = blocks(mappings, placements, expert_tp=expert_tp)
    slow = context.slowdown(uplinks)

    def seen(block: Ints) -> Floats:
        beyond_leaf = np.where(holds(context.pod_span, block, domains), slow, slow * context.pod_ratio)
        return np.where(holds(context.leaf_span, block, domains), 1.0, beyond_leaf) / context.byte_s

    return Reciprocals(
        tp=seen(blocks_tp), pp=seen(np.full(len(mappings), domains)), dp=seen(blocks_dp), ep=seen(blocks_ep)
    )


def blocks(mappings: Mappings, placements: Placements, *, expert_tp: bool) -> tuple[Ints, Ints, Ints]:
    """Consecutive domains that a TP group, a DP group (with its context ranks) and an expert group occupy; shape (n,).

    Without expert parallelism the last is that of the DP group.
    """
    tp = mappings.tp // placements.tp
    dp = tp * (mappings.cp // placements.cp) * (mappings.dp // placements.dp)
    if not (mappings.ep > 1).any():
        return tp, dp, dp
    *_, copies_across = expert_ranks(mappings, placements, expert_tp=expert_tp)
    return tp, dp, np.where(mappings.ep > 1, dp // copies_across, dp)


def holds(span: int, block: Ints, domains: int) -> Bools:
    """Whether every block of consecutive domains lies inside one span."""
    if span >= domains:
        return np.ones(len(block), dtype=np.bool_)
    return np.asarray((span > 0) & (span % block == 0), dtype=np.bool_)
