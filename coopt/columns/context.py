"""The properties of a network that determine the time of a mapping."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from coopt.columns.flows import Groups
from coopt.columns.layouts import NicLayout
from coopt.instance.errors import counted
from coopt.instance.hardware import HbDomain
from coopt.instance.network import Discipline
from coopt.instance.workload import Workload
from coopt.network.family import Family, FilledDomains, SlowTime, common_links
from coopt.perf.mapping import STAGES_TOGETHER, Mappings, Placements, expert_ranks


@dataclass(frozen=True, kw_only=True)
class DomainSet(FilledDomains):
    """HB domains of one kind that train N GPUs; several GPUs can share a NIC.

    Where domains hold different numbers of active GPUs, `size` is the capacity of a domain.
    """

    gpus: int
    hb: str
    domains: int
    gpus_per_nic: int = 1
    size: int = 0

    def __str__(self) -> str:
        return f"{counted(self.gpus, 'GPU')} in {self.domains:,} x {self.hb}"


@dataclass(frozen=True, kw_only=True)
class Context:
    """Families of networks between which mappings differ only by the number of uplinks.

    `bundle` is that of `Family`, or 0 where it excludes no number of uplinks; `slow_times`
    likewise.
    """

    site: DomainSet
    byte_s: float
    layout: NicLayout
    discipline: Discipline
    bundle: int = 0
    slow_times: tuple[SlowTime, ...] = ()


def site_of(family: Family) -> DomainSet:
    """Return the domains that run a family's jobs."""
    return domains_filled(
        family.gpus, family.hb, family.domains, family.gpus_per_nic if family.tiers else 1
    )


def domains_filled(gpus: int, hb: HbDomain, domains: int, gpus_per_nic: int) -> DomainSet:
    """Return `domains` domains of a kind that train N GPUs."""
    size = 0 if gpus % domains == 0 else hb.size
    return DomainSet(gpus=gpus, hb=hb.name, domains=domains, gpus_per_nic=gpus_per_nic, size=size)


def context_of(family: Family) -> Context:
    """Return the context of a family."""
    site = site_of(family)
    return Context(
        site=site,
        byte_s=family.byte_s,
        layout=layout_of(family, site),
        discipline=family.discipline,
        bundle=family.bundle if family.tiers == 2 and 1 < family.bundle < family.down else 0,
        slow_times=family.slow_times,
    )


def context_left(family: Family, site: DomainSet) -> Context:
    """Return the context of a job on some of a family's domains, whichever other domain is lost."""
    # no block of a job is larger than the job, so more room than that allows no further shift
    room = min(family.domains - site.domains, site.domains)
    layout = layout_of(family, site, room)
    return Context(site=site, byte_s=family.byte_s, layout=layout, discipline=family.discipline)


def layout_of(family: Family, site: DomainSet, room: int = -1) -> NicLayout:
    """Return how the NICs of a job are distributed over the leaves and pods of a family.

    Layouts that are equivalent for all mappings are represented by one of them.

    Parameters
    ----------
    room
        After the loss of a domain: number of spare domains, including the lost one; -1 before it.
    """
    domains, after_loss = site.domains, room >= 0
    all_domains = domains + after_loss
    # one switch holds all domains, so that nothing leaves it
    if family.tiers <= 1:
        return NicLayout(domains=domains, span=all_domains, room=room)
    is_clos = family.fabric == "clos"
    span = _canonical(family, min(family.leaf_span, all_domains), domains, all_domains)
    ratio = family.discipline.charge == "ratio"
    at_random = family.discipline.routing == "ecmp"
    pods: dict[str, float] = {}
    if (
        family.pods
        and span < all_domains
        and (pod_span := _pod_span(family, all_domains)) < all_domains
    ):
        pods = {
            "pods": family.pods.count,
            "pod_span": _canonical(family, pod_span, domains, all_domains),
        }
        pods |= {"ratio": family.pod_ratio} if ratio else {"pod_up": _common_of_pods(family)}
        if pod_span == 0 and not ratio:
            pods |= {"pod_leaves": family.pods.leaves, "leaves": family.leaves, "down": family.down}
    mixed = pods.get("pod_span") == 0
    if span >= all_domains and not pods:
        return NicLayout(domains=domains, span=all_domains, room=room)
    if ratio:
        return NicLayout(domains=domains, span=span, down=family.down, room=room, **pods)
    ports = {"down": family.down} if span == 0 else {}
    if family.tiers == 2 and not family.bundle:
        most_up = family.switch.radix - family.down
        ports |= {
            "joined_leaves": family.leaves,
            "spine_ports": family.spine_ports,
            "most_up": most_up,
        }
    counts = {"leaves": family.leaves, "planes": family.all_planes} if at_random else {}
    gpus = (
        site.active if site.alike else 1
    )  # of domains that are filled otherwise each mapping says how many
    return NicLayout(
        domains=domains,
        span=span,
        nics=gpus * family.nics_per_gpu // family.gpus_per_nic if is_clos or mixed else 1,
        ends=family.nics_of_domain if is_clos else 1,
        room=room,
        **(ports | counts | pods),
    )


def _canonical(family: Family, span: int, domains: int, all_domains: int) -> int:
    """Return the smallest span that holds the same blocks of domains, where links are charged by
    the ratio of a leaf.
    """
    if family.discipline.charge == "loads" or span in (0, all_domains):
        return span
    return all_domains if span >= all_domains else math.gcd(span, domains)


def _common_of_pods(family: Family) -> float:
    """Links up of a pod switch that any two pods have in common, per link from a leaf to that
    switch.
    """
    assert family.pods is not None
    at_random = family.discipline.routing == "ecmp"
    return (
        float(common_links(family.pods.w, family.core_group, at_random=at_random))
        / family.pods.each
    )


def _pod_span(family: Family, all_domains: int) -> int:
    """Domains of each rail in a pod; 0 where a pod holds parts of rails or of domains."""
    assert family.pods is not None
    if family.discipline.charge == "ratio":
        return min(family.pod_span, all_domains)
    if family.fabric == "rail-optimized":
        of_a_rail = -(-family.domains // family.down)
        # whole rails lie in a pod, and nothing of them leaves it
        if family.pods.leaves % of_a_rail == 0:
            return all_domains
        # pods that end inside a rail hold parts of two
        if of_a_rail % family.pods.leaves:
            return 0
    return min(family.pods.leaves * family.leaf_span, all_domains)


def groups_of(workload: Workload, mappings: Mappings, placements: Placements) -> Groups:
    """Return where the groups of every mapping lie across domains; shape (n,)."""
    expert_tp = workload.options.expert_tp or not workload.model.experts
    tp, cp = mappings.tp // placements.tp, mappings.cp // placements.cp
    stage, stages = tp * cp * placements.dp_across(mappings), mappings.pp // placements.pp
    _, experts, _, copies = expert_ranks(mappings, placements, expert_tp=expert_tp)
    step = np.where(mappings.outermost == STAGES_TOGETHER, stages, 1)
    return Groups(
        tp=tp,
        cp=cp,
        stage=stage,
        stages=stages,
        # a pipeline inside a domain sends nothing out of it, and counts as one stage there
        stages_inside=(stages > 1) * (placements.pp - 1) + 1,
        # where chunks interleave, the last stage goes on to the first
        closes=((stages > 1) & (mappings.interleave > 1)).astype(mappings.tp.dtype),
        experts=experts,
        apart=tp * step if expert_tp else step,
        copies=copies,
        filled=np.ones_like(tp) if placements.dp_domains is None else placements.filled,
        step=step,
        two_way=np.full_like(tp, workload.options.schedule == "dualpipe"),
    )
