"""What the time of a mapping depends on in a network, and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.network.family import Family
from coopt.perf.affine import Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, Mappings, Placements, expert_ranks


@dataclass(frozen=True, kw_only=True)
class DomainSet:
    """HB domains of one kind holding N GPUs, `active` in each."""

    gpus: int
    hb: str
    active: int


@dataclass(frozen=True, kw_only=True)
class Context:
    """Families that look the same to every mapping, but for their uplinks.

    `down` is 0 on at most one tier, where uplinks play no part. A span of 0 holds no block, a smaller one than all
    domains the blocks that divide it. `bundle` is that of `Family`, 0 where it rules out no number of uplinks.
    """

    site: DomainSet
    byte_s: float
    down: int
    leaf_span: int
    pod_span: int
    pod_ratio: float
    routing: float = 1.0
    bundle: int = 0
    room: int | None = None
    """After the loss of a domain: how many domains the job has to spare, the lost one among them (`levels_reached`)."""

    def slowdown(self, uplinks: int | Ints) -> float | Floats:
        """Slowdown inside a pod at u uplinks."""
        return self.routing * self.down / uplinks if self.down else 1.0


def context_of(family: Family) -> Context:
    """The context a family belongs to.

    Blocks of domains that groups occupy divide the number of domains D, so a block divides a span exactly where it
    divides gcd(span, D): spans of one gcd are told apart by no mapping. Nor are pods that hold everything.
    """
    tiered = family.tiers > 1
    domains = family.domains
    pod_span = _alike(family.pod_span, domains) if family.pods else domains
    return Context(
        site=DomainSet(gpus=family.gpus, hb=family.hb.name, active=family.active),
        byte_s=family.byte_s,
        down=family.down if tiered else 0,
        leaf_span=_alike(family.leaf_span, domains) if tiered else domains,
        pod_span=pod_span,
        pod_ratio=family.pod_ratio if pod_span < domains else 1.0,
        routing=family.routing if tiered else 1.0,
        bundle=family.bundle if family.tiers == 2 and 1 < family.bundle < family.down else 0,
    )


def context_left(family: Family, site: DomainSet) -> Context:
    """What a job on some of a family's domains sees of its network, whichever other domain is lost."""
    tiered, domains = family.tiers > 1, site.gpus // site.active

    def alike(span: int) -> int:
        return domains + 1 if span > domains else math.gcd(span, domains) if span else 0

    pod_span = alike(family.pod_span) if family.pods else domains + 1
    return Context(
        site=site,
        byte_s=family.byte_s,
        down=family.down if tiered else 0,
        leaf_span=alike(family.leaf_span) if tiered else domains + 1,
        pod_span=pod_span,
        pod_ratio=family.pod_ratio if pod_span <= domains else 1.0,
        routing=family.routing if tiered else 1.0,
        room=min(family.domains - domains, domains),
    )


def _alike(span: int, domains: int) -> int:
    """The smallest span that holds the same blocks; all domains where all fit, 0 where none does."""
    return domains if span >= domains else math.gcd(span, domains) if span else 0


def levels_reached(context: Context, occupied: tuple[Ints, Ints, Ints]) -> Reciprocals:
    """How high the groups of every mapping reach: 1 on their leaf, 2 in their pod or on two tiers, 3 beyond a pod.

    After the loss of a domain a job takes whole blocks without it (docs/robust.md): groups keep to a span that their
    block divides if there is room for a block, and all do where the job is smaller than the span.

    Parameters
    ----------
    occupied
        Domains that TP, DP and expert groups occupy, as `blocks` has them; shape (n,) each.
    """
    domains = context.site.gpus // context.site.active

    def stays(span: int, block: Ints, whole: Ints) -> Bools:
        if context.room is None:
            return holds(span, block, domains)
        return (span > domains) | ((whole <= context.room) & holds(span, block, domains))

    def level(block: Ints, whole: Ints) -> Ints:
        above = np.where(stays(context.pod_span, block, whole), 2, 3)
        return np.where(stays(context.leaf_span, block, whole), 1, above)

    tp, dp, ep = occupied
    pp = np.full(len(dp), domains)
    return Reciprocals(tp=level(tp, tp), pp=level(pp, pp), dp=level(dp, dp), ep=level(ep, np.lcm(tp, ep)))


def reciprocals(context: Context, uplinks: int | Ints, levels: Reciprocals) -> Reciprocals:
    """Seconds per byte that groups see at u uplinks, by how high they reach: shape (n,), or (k, n) for u in (k, 1)."""
    ratios = np.broadcast_arrays(*ratios_of(context, uplinks))
    seen = np.concatenate([np.atleast_1d(ratio) for ratio in ratios], axis=-1) / context.byte_s
    return Reciprocals(**{name: seen[..., getattr(levels, name)] for name in ("tp", "pp", "dp", "ep")})


def ratios_of(context: Context, uplinks: int | Ints) -> tuple[Any, Any, Any, Any]:
    """The slowdown at u uplinks of groups by how high they reach; none reaches less than its leaf, which is 1."""
    slow = context.slowdown(uplinks)
    return np.nan, 1.0, slow, slow * context.pod_ratio


@dataclass(frozen=True, kw_only=True)
class Spans:
    """HB domains of the whole, of a leaf and of a pod, and the slowdown beyond a pod: numbers, or arrays (n,)."""

    domains: Any
    leaf: Any
    pod: Any
    pod_ratio: Any

    def reciprocals(self, groups: tuple[Ints, Ints, Ints], slow: Any, byte_s: float) -> Reciprocals:
        """Seconds per byte that the groups of `blocks` see where leaving the leaf slows down by `slow`."""

        def seen(block: Ints) -> Floats:
            beyond_leaf = np.where(holds(self.pod, block, self.domains), slow, slow * self.pod_ratio)
            return np.asarray(np.where(holds(self.leaf, block, self.domains), 1.0, beyond_leaf) / byte_s)

        tp, dp, ep = groups
        return Reciprocals(tp=seen(tp), pp=seen(np.broadcast_to(self.domains, tp.shape)), dp=seen(dp), ep=seen(ep))


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


def holds(span: Any, block: Ints, domains: Any) -> Bools:
    """Whether every block of consecutive domains lies inside one span."""
    return np.asarray((span >= domains) | ((span > 0) & (span % block == 0)), dtype=np.bool_)
