"""Enumeration of all mappings of a workload on N GPUs (docs/network.md, Mappings) and of their
placements.

A placement is the part of each degree that lies inside an HB domain. A context is all of a network
that the time of a placed mapping depends on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.flows import Groups, NicLayout, ranges
from coopt.instance.hardware import HbDomain
from coopt.instance.layouts import chunks_of_stage
from coopt.instance.network import Discipline
from coopt.instance.texts import counted
from coopt.instance.workload import Workload
from coopt.network.family import Family, FilledDomains, SlowTime, common_links
from coopt.perf.mapping import (
    RECOMPUTE,
    STAGES_APART,
    STAGES_TOGETHER,
    Bools,
    Ints,
    Mappings,
    Placements,
    distinct_rows,
    expert_ranks,
    part_of_tp,
    replicas_together,
    split_copies,
    tp_of_experts,
    uneven_replicas,
)
from coopt.perf.mixers import laws_of


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


@lru_cache(maxsize=1 << 12)
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
    # of domains that are filled otherwise each mapping says how many
    gpus = site.active if site.alike else 1
    in_turn = span > 0 and family.takes_turns
    groups = family.rail_groups if in_turn else 1
    return NicLayout(
        domains=domains,
        span=span,
        nics=(
            gpus * family.nics_per_gpu // family.gpus_per_nic // groups
            if is_clos or mixed or in_turn
            else 1
        ),
        ends=family.nics_of_domain // groups if is_clos or in_turn else 1,
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
        of_a_rail = -(-family.domains // family.leaf_span)
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
        apart=tp * step if expert_tp is True else step,
        copies=copies,
        filled=np.ones_like(tp) if placements.dp_domains is None else placements.filled,
        step=step,
        two_way=np.full_like(tp, workload.options.schedule == "dualpipe"),
    )


Degrees = tuple[int, int, int, int]

# embedding, loss and a further prediction may each stand for a layer (docs/network.md, Mappings)
MISSING_LAYERS = 3
EMBEDDING_AND_LOSS = 2
STYLES = tuple(column.name for column in fields(Mappings))[4:]
"""Choices made besides the degrees of TP, CP, PP and DP. Mappings are in the order of the product
of these choices: the last column varies fastest.
"""


@dataclass(frozen=True, kw_only=True)
class MappingCounts:
    """Mappings that are counted rather than listed: a row stands for `counts` mappings with its
    degrees.
    """

    rows: Mappings
    counts: Ints


@cache
def splits(
    t: int, c: int, p: int, d: int, active_gpus: int, *, tp_across: bool = True
) -> tuple[Degrees, ...]:
    """Return all (t_h, c_h, p_h, d_h) that divide the degrees and whose product is the number of
    active GPUs of a domain.
    """
    placements = []
    for t_h in divisors(t) if tp_across else (t,):
        for c_h in divisors(c):
            for p_h in divisors(p):
                d_h, remainder = divmod(active_gpus, t_h * c_h * p_h)
                if remainder == 0 and d % d_h == 0:
                    placements.append((t_h, c_h, p_h, d_h))
    return tuple(placements)


@cache
def uneven_splits(
    t: int, c: int, p: int, d: int, g: int, domains: int, size: int
) -> tuple[tuple[int, ...], ...]:
    """Return all (t, c, p_h, d_h, d_l, d_f) on domains with different numbers of active GPUs; TP
    and context groups lie inside a domain.

    d_l domains hold the d / g groups of replicas of a stage, as evenly as possible: d_h replicas in
    the fullest domains, d_f in the emptiest.
    """
    placements = []
    for p_h in divisors(p):
        d_l, remainder = divmod(domains * p_h, p)
        if remainder == 0 and 0 < d_l <= d // g:
            d_h, d_f = uneven_replicas(d, g, d_l)
            if t * c * p_h * d_h <= size:
                placements.append((t, c, p_h, d_h, d_l, d_f))
    return tuple(placements)


def placed_on(workload: Workload, mappings: Mappings, site: DomainSet) -> tuple[Ints, Placements]:
    """Return all placements on a site, as `placements_of` does.

    Where domains have different numbers of active GPUs, expert groups lie wholly inside domains, as
    do everywhere the TP ranks of which some split each expert.
    """
    if site.alike:
        rows, placements = placements_of(mappings, site.active, tp_across=not workload.tp_inside)
    else:
        joint_replicas = replicas_together(mappings, expert_tp=workload.options.expert_tp)
        whole_degrees = (mappings.tp, mappings.cp, mappings.pp, mappings.dp, joint_replicas)
        rows, table = _spread(
            whole_degrees, 6, lambda *degrees: uneven_splits(*degrees, site.domains, site.size)
        )
        placements = Placements(
            **dict(zip((f.name for f in fields(Placements)), table.T, strict=True))
        )
    rows, placements = keeping_groups(workload, mappings, rows, placements)
    if site.gpus_per_nic > 1:  # GPUs that share a NIC are of one stage
        one_stage_rows = np.flatnonzero(site.active // site.gpus_per_nic % placements.pp == 0)
        rows, placements = rows[one_stage_rows], placements.take(one_stage_rows)
    return rows, placements


def keeping_groups(
    workload: Workload, mappings: Mappings, rows: Ints, placements: Placements
) -> tuple[Ints, Placements]:
    """Return the placements, with their mappings, of which groups that must share a domain do: TP
    ranks of which some split an expert, and ranks that share out a copy of what ZeRO shards.
    """
    expert_tp, copies = workload.options.expert_tp, workload.options.dp_replicate
    part = part_of_tp(expert_tp)
    if part == copies == 1:
        return rows, placements
    kept = placements.tp % part == 0
    if copies > 1:
        m = mappings.take(rows)
        ends = [(placements.cp * placements.dp, placements.dp_across(m))]
        if workload.model.experts:
            ends.append(expert_ranks(m, placements, expert_tp=expert_tp)[2:])
        kept &= (placements.cp == m.cp) & (placements.dp_domains is None)
        for inside, across in ends:
            kept &= split_copies(inside, across, copies)[0][1] == 1
    return rows[kept], placements.take(kept)


def counts_on(workload: Workload, mappings: Mappings, site: DomainSet) -> Ints:
    """Count the placements of each mapping on a site; shape (n,)."""
    if site.alike and part_of_tp(workload.options.expert_tp) == workload.options.dp_replicate == 1:
        return split_counts(mappings, site.active, tp_across=not workload.tp_inside)
    rows, _ = placed_on(workload, mappings, site)
    return np.bincount(rows, minlength=len(mappings))


def split_counts(mappings: Mappings, active_gpus: int, *, tp_across: bool = True) -> Ints:
    """Count the placements of each mapping on domains of `active_gpus`; shape (n,)."""
    keys, position = _degrees(_within(mappings, active_gpus, tp_across=tp_across))
    counts = np.array(
        [len(splits(*degrees, active_gpus, tp_across=tp_across)) for degrees in keys],
        dtype=np.int64,
    )
    return counts[position] if len(counts) else np.zeros(0, dtype=np.int64)


def placements_of(
    mappings: Mappings, active_gpus: int, *, tp_across: bool = True
) -> tuple[Ints, Placements]:
    """Return every placement of every mapping; without `tp_across`, only those with TP inside a
    domain.

    Returns
    -------
    rows, placements
        `rows[i]` is the mapping of placement i.
    """
    parts = _within(mappings, active_gpus, tp_across=tp_across)
    rows, table = _spread(
        parts, 4, lambda *degrees: splits(*degrees, active_gpus, tp_across=tp_across)
    )
    return rows, Placements(tp=table[:, 0], cp=table[:, 1], pp=table[:, 2], dp=table[:, 3])


def _within(mappings: Mappings, active_gpus: int, *, tp_across: bool) -> tuple[Ints, ...]:
    """Reduce the degrees (n,) to what matters for domains of `active_gpus`: parts inside a domain
    divide both.
    """
    tp, *other_degrees = mappings.tp, mappings.cp, mappings.pp, mappings.dp
    return np.gcd(tp, active_gpus) if tp_across else tp, *(
        np.gcd(degree, active_gpus) for degree in other_degrees
    )


def _spread(
    degrees: tuple[Ints, ...],
    width: int,
    list_placements: Callable[..., tuple[tuple[int, ...], ...]],
) -> tuple[Ints, Ints]:
    """List the placements for the degrees of all rows: the row of each, and its numbers (n,
    width).
    """
    keys, position = _degrees(degrees)
    # many rows have the same degrees: each list is made once
    lists = [np.array(list_placements(*key), dtype=np.int64).reshape(-1, width) for key in keys]
    list_lengths = np.array([len(placements) for placements in lists], dtype=np.int64)
    starts = np.cumsum(list_lengths) - list_lengths
    rows, number = ranges(list_lengths[position], starts[position])
    return rows, np.concatenate([np.zeros((0, width), dtype=np.int64), *lists])[number]


def _degrees(degrees: tuple[Ints, ...]) -> tuple[list[tuple[int, ...]], Ints]:
    columns, position = distinct_rows(*degrees)
    return list(zip(*(column.tolist() for column in columns), strict=True)), position


@cache
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of n in rising order."""
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    return tuple(sorted({*small, *(n // i for i in small)}))


def degrees(workload: Workload, gpus: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield all (t, c, p, d) with t·c·p·d = N that divide heads, widths, sequence and global
    batch.
    """
    limits = workload.mapping
    for t in _allowed(divisors(gpus), limits.tp):
        if not splits_tensors(workload, t):
            continue
        for c in _allowed(divisors(gpus // t), limits.cp):
            if not splits_sequences(workload, t, c):
                continue
            for p in _allowed(divisors(gpus // (t * c)), limits.pp):
                d = gpus // (t * c * p)
                if (
                    chunk_counts(workload, p)
                    and workload.global_batch % d == d % workload.options.dp_replicate == 0
                    and (limits.dp is None or d in limits.dp)
                ):
                    yield t, c, p, d


def degrees_up_to(workload: Workload, gpus: int) -> Ints:
    """Return the (t, c, p, d) of `degrees` for every number of GPUs up to `gpus`; shape (n, 4).

    Numbers of stages into which the layers cannot be divided are left out.
    """
    model, limits = workload.model, workload.mapping
    copies = workload.options.dp_replicate
    replicas = [d for d in divisors(workload.global_batch) if d % copies == 0]
    batches = np.array(_allowed(replicas, limits.dp), dtype=np.int64)
    most_stages = max(model.layers, len(workload.layout))
    stage_counts = [
        p for p in _allowed(range(1, most_stages + 1), limits.pp) if chunk_counts(workload, p)
    ]
    tables = [np.zeros((0, 4), dtype=np.int64)]
    for t in _allowed(
        [t for t in range(1, model.heads + 1) if splits_tensors(workload, t)], limits.tp
    ):
        for c in (
            c for c in _allowed(divisors(model.seq), limits.cp) if splits_sequences(workload, t, c)
        ):
            ranks = t * c * np.array(stage_counts, dtype=np.int64)[:, None] * batches
            p, d = np.nonzero(ranks <= gpus)
            tables.append(
                np.stack(
                    [np.full_like(p, t), np.full_like(p, c), np.array(stage_counts)[p], batches[d]],
                    axis=1,
                )
            )
    return np.concatenate(tables)


def splits_sequences(workload: Workload, t: int, c: int) -> bool:
    """Whether c ranks can share a sequence evenly where t share the heads."""
    laws = laws_of(workload.model)
    return workload.model.seq % c == 0 and all(law.splits_sequences(t, c) for _, law in laws)


def splits_tensors(workload: Workload, t: int) -> bool:
    """Whether t ranks can share the heads and widths of every layer evenly."""
    model, expert_tp = workload.model, workload.options.expert_tp
    split = tp_of_experts(t, expert_tp) if model.experts else t
    if t % part_of_tp(expert_tp) or model.ffn % split:
        return False
    widths = [model.shared_ffn, model.dense_ffn]
    widths += [size for e in model.encoders for size in (e.heads, e.ffn, e.projector, e.hidden)]
    return not any(width % t for width in widths) and all(
        law.divides(t) for _, law in laws_of(model)
    )


def mappings(workload: Workload, gpus: int) -> tuple[Mappings, MappingCounts]:
    """Return all combinations of allowed values that divide evenly, with stages outermost, and the
    number of others.

    Returns
    -------
    whole, uneven
        Mappings whose micro-batches fit the batch and the interleaved schedule, and counts of those
        that do not.
    """
    tcpd = list(degrees(workload, gpus))
    choices = [_choices(workload, *quadruple) for quadruple in tcpd]
    return _combined(tcpd, choices), _uneven(tcpd, choices)


def whole_mappings(
    workload: Workload, quadruples: Iterable[Degrees], is_wanted: Callable[[Mappings], Bools]
) -> Mappings:
    """Return the mappings of `mappings` that divide evenly and are wanted, for (t, c, p, d) of any
    number of GPUs.

    Parameters
    ----------
    is_wanted
        Predicate on mappings without ZeRO; a wanted mapping is listed with every ZeRO stage.
    """
    tcpd = list(quadruples)
    rows = _combined(tcpd, [_choices(workload, *quadruple, zero=False) for quadruple in tcpd])
    rows = rows.take(is_wanted(rows))
    # all numbers of ranks above one allow the same stages, so that two stand for any
    alone_stages, shared_stages = (np.array(_zero_stages(workload, ranks)) for ranks in (1, 2))
    is_shared = rows.dp * rows.cp > 1
    row, place = ranges(np.where(is_shared, len(shared_stages), len(alone_stages)))
    stages = np.concatenate([alone_stages, shared_stages]).astype(np.int64)
    return replace(
        rows.take(row), zero=stages[place + np.where(is_shared[row], len(alone_stages), 0)]
    )


class _Choices(NamedTuple):
    """Choices that go with a (t, c, p, d): the values of every column of `STYLES`, in the user's
    order.

    Micro-batch and interleaving form one column of pairs, those that fit the batch and the
    schedule; `uneven` counts the other pairs.
    """

    columns: tuple[tuple[Any, ...], ...]
    uneven: int


def _combined(tcpd: Sequence[Degrees], choices: Sequence[_Choices]) -> Mappings:
    """Combine each (t, c, p, d) with all of its other choices."""
    # many degrees leave the same choices
    grids = [_grid(columns) for columns, _ in choices]
    degrees_of = np.repeat(
        np.array(tcpd, dtype=np.int64).reshape(-1, 4), [grid.shape[1] for grid in grids], axis=0
    )
    no_rows = np.zeros((len(STYLES), 0), dtype=np.int64)
    return Mappings.of_table(
        np.concatenate([degrees_of.T, np.concatenate([no_rows, *grids], axis=1)])
    )


@lru_cache(maxsize=1 << 10)
def _grid(columns: tuple[tuple[Any, ...], ...]) -> Ints:
    """Return every combination of the values of columns; shape (len(STYLES), n).

    A column of pairs fills two rows.
    """
    counts = [len(values) for values in columns]
    if not all(counts):
        return np.zeros((len(STYLES), 0), dtype=np.int64)
    places = np.indices(counts).reshape(len(counts), -1)
    tables = [np.array(values, dtype=np.int64).reshape(len(values), -1) for values in columns]
    return np.concatenate([table.T[:, place] for table, place in zip(tables, places, strict=True)])


def _uneven(tcpd: Sequence[Degrees], choices: Sequence[_Choices]) -> MappingCounts:
    """Count the combinations with each (t, c, p, d) and expert degree that do not divide evenly."""
    counts: dict[tuple[int, ...], int] = {}
    for quadruple, (columns, uneven) in zip(tcpd, choices, strict=True):
        expert_degrees, _, *others = columns
        if count := uneven * math.prod(map(len, others)):
            counts |= {(*quadruple, x): count for x in expert_degrees}
    table = np.array(list(counts), dtype=np.int64).reshape(-1, 5).T
    rows = Mappings.of(**dict(zip(("tp", "cp", "pp", "dp", "ep"), table, strict=True)))
    return MappingCounts(rows=rows, counts=np.array(list(counts.values()), dtype=np.int64))


@lru_cache(maxsize=1 << 12)
def _schedules(
    schedule: str, batch: int, p: int, micro_batches: tuple[int, ...], chunks: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of micro-batch size and chunks per stage that fit the batch of a replica and
    the schedule.

    Interleaved micro-batches go round the stages; in DualPipe each stage has a twin, and
    micro-batches fill the pipeline from both ends (DualPipe's repository, dualpipe/dualpipe.py).
    """
    numbers = [(b, batch // b) for b in micro_batches if batch % b == 0]
    if schedule == "dualpipe":
        numbers = [
            (b, m) for b, m in numbers if p == 1 or (p % 2 == 0 and m % 2 == 0 and m >= 2 * p)
        ]
    return tuple((b, v) for b, m in numbers for v in chunks if v == 1 or m % p == 0)


def _choices(workload: Workload, t: int, c: int, p: int, d: int, *, zero: bool = True) -> _Choices:
    """Return the choices for a (t, c, p, d); ZeRO stages only if `zero`."""
    limits, schedule = workload.mapping, workload.options.schedule
    one_sequence = t == 1 or workload.options.tp_sync_fraction < 1.0
    chunks = tuple(
        _allowed(chunk_counts(workload, p), limits.interleave if schedule == "1f1b" else (1,))
    )
    pairs = _schedules(schedule, workload.global_batch // d, p, limits.micro_batch, chunks)
    columns = (
        _allowed(_expert_degrees(workload, t, c, d), limits.ep),
        pairs,
        (RECOMPUTE.index(name) for name in allowed_recompute(workload)),
        _allowed((0,) if one_sequence else (0, 1), [*map(int, limits.sequence_parallel)]),
        _zero_stages(workload, d * c) if zero else (0,),
        limits.offload_percent,
        (STAGES_APART,),
    )
    return _Choices(tuple(map(tuple, columns)), len(limits.micro_batch) * len(chunks) - len(pairs))


def chunk_counts(workload: Workload, p: int) -> tuple[int, ...]:
    """Numbers of model chunks per GPU that p stages can have; none where they cannot be filled."""
    layers = workload.model.layers
    if workload.layout:
        chunks = chunks_of_stage(workload.layout, p, None, None)
        return (chunks,) if chunks else ()
    return interleaves(layers, p) if p <= layers else ()


@cache
def interleaves(layers: int, p: int) -> tuple[int, ...]:
    """Numbers of model chunks per GPU that the layers fill.

    Of several chunks few layers are missing, whose place embedding, loss and a prediction take;
    where chunks are single layers, embedding and loss can each have their own, as in Llama 3 (arXiv
    2407.21783, section 3.3.2). Of one chunk the first and the last stage may have fewer layers than
    the others, but one at least.
    """
    most_chunks = (layers + EMBEDDING_AND_LOSS) // p if 1 < p <= layers else 1
    return tuple(v for v in range(1, most_chunks + 1) if _are_filled(layers, p, v))


def _are_filled(layers: int, p: int, v: int) -> bool:
    fullest = -(-layers // (p * v))
    missing = p * v * fullest - layers
    return missing <= MISSING_LAYERS or (v == 1 and -(-missing // 2) < fullest)


def _zero_stages(workload: Workload, ranks: int) -> list[int]:
    """ZeRO stages allowed for `ranks` ranks to shard over; one rank alone needs the lowest.

    Gradients that are one step late are not sharded, nor can parameters be late. DualPipe does not
    shard gradients until both copies of a stage have theirs.
    """
    options = workload.options
    lowest = 1 if options.dp_replicate > 1 else 0  # copies are of what ZeRO shards
    whole_gradients = options.dp_mode == "stale-1" or options.schedule == "dualpipe"
    stages = _allowed(range(lowest, 2 if whole_gradients else 4), workload.mapping.zero)
    return stages[:1] if ranks == 1 else stages


def _expert_degrees(workload: Workload, t: int, c: int, d: int) -> tuple[int, ...]:
    if not workload.model.experts:
        return (1,)
    ranks = c * d * (t // tp_of_experts(t, workload.options.expert_tp))
    whole = ranks // workload.options.dp_replicate  # a copy of all experts
    return tuple(x for x in divisors(workload.model.experts) if whole % x == 0)


def allowed_recompute(workload: Workload) -> tuple[str, ...]:
    """Kinds of recomputation that a mapping can use: as listed by the user, or all distinct ones
    that the framework supports; `act` only as listed.

    Under flash attention, which stores no scores, `selective` equals `none`.
    """
    if workload.mapping.recompute is not None:
        return workload.mapping.recompute
    software = workload.options.software
    scores = workload.options.attention == "unfused" and "selective" not in software.lacks
    modules = software.recompute_modules
    possible = {"act": False, "selective": scores, "norm+act": modules, "norm+ffn": modules}
    return tuple(kind for kind in RECOMPUTE if possible.get(kind, True))


def _allowed(possible: Sequence[int], limit: Sequence[int] | None) -> list[int]:
    """Return the possible values that the user's list includes."""
    return [value for value in possible if limit is None or value in limit]
