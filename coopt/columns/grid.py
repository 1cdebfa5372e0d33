"""Every mapping of a workload on N GPUs (docs/network.md, Mappings), and the part of it that lies
inside HB domains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.context import DomainSet
from coopt.instance.workload import Workload
from coopt.perf.mapping import (
    RECOMPUTE,
    STAGES_APART,
    Bools,
    Ints,
    Mappings,
    Placements,
    distinct_rows,
    replicas_together,
    uneven_replicas,
)

Degrees = tuple[int, int, int, int]

# embedding, loss and a further prediction may each stand for a layer (docs/network.md, Mappings)
MISSING_LAYERS = 3
EMBEDDING_AND_LOSS = 2
STYLES = tuple(column.name for column in fields(Mappings))[4:]
"""What else is chosen with the degrees of TP, CP, PP and DP. Mappings stand in the order of a
product of these choices: all values of the last column with one of the column before it, and so on.
"""


@dataclass(frozen=True, kw_only=True)
class MappingCounts:
    """Mappings that are counted and not listed: a row stands for so many that have its degrees,
    experts included.
    """

    rows: Mappings
    counts: Ints


@cache
def splits(
    t: int, c: int, p: int, d: int, active_gpus: int, *, tp_across: bool = True
) -> tuple[Degrees, ...]:
    """(t_h, c_h, p_h, d_h) that divide the degrees and multiply to the active GPUs of a domain."""
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
    """(t, c, p_h, d_h, d_l, d_f) on domains that are not filled alike: TP and context groups lie
    inside.

    d_l domains hold the d / g groups of replicas of a stage, as even as they go: d_h replicas in
    the fullest, d_f in those that hold fewest.
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
    """As `placements_of`, on domains that may not be filled alike: then expert groups lie inside,
    whole everywhere.
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
    if site.gpus_per_nic > 1:  # GPUs that share a NIC are of one stage
        one_stage_rows = np.flatnonzero(site.active // site.gpus_per_nic % placements.pp == 0)
        rows, placements = rows[one_stage_rows], placements.take(one_stage_rows)
    return rows, placements


def counts_on(workload: Workload, mappings: Mappings, site: DomainSet) -> Ints:
    """How many placements each mapping has on domains that may not be filled alike; shape (n,)."""
    if site.alike:
        return split_counts(mappings, site.active, tp_across=not workload.tp_inside)
    rows, _ = placed_on(workload, mappings, site)
    return np.bincount(rows, minlength=len(mappings))


def split_counts(mappings: Mappings, active_gpus: int, *, tp_across: bool = True) -> Ints:
    """How many placements each mapping has; shape (n,)."""
    keys, position = _degrees(_within(mappings, active_gpus, tp_across=tp_across))
    counts = np.array(
        [len(splits(*degrees, active_gpus, tp_across=tp_across)) for degrees in keys],
        dtype=np.int64,
    )
    return counts[position] if len(counts) else np.zeros(0, dtype=np.int64)


def placements_of(
    mappings: Mappings, active_gpus: int, *, tp_across: bool = True
) -> tuple[Ints, Placements]:
    """Every placement of every mapping; those with TP ranks of one domain alone, where it is not to
    lie across.

    Returns
    -------
    rows, placements
        `rows[i]` is the mapping that placement i belongs to.
    """
    parts = _within(mappings, active_gpus, tp_across=tp_across)
    rows, table = _spread(
        parts, 4, lambda *degrees: splits(*degrees, active_gpus, tp_across=tp_across)
    )
    return rows, Placements(tp=table[:, 0], cp=table[:, 1], pp=table[:, 2], dp=table[:, 3])


def _within(mappings: Mappings, active_gpus: int, *, tp_across: bool) -> tuple[Ints, ...]:
    """The degrees (n,) as far as domains of `active_gpus` tell them apart: what lies inside divides
    these as well.
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
    """The row of each of the placements that are listed for the degrees of rows, and its numbers
    (n, width).
    """
    keys, position = _degrees(degrees)
    # many rows have the same degrees: each list is made once
    lists = [np.array(list_placements(*key), dtype=np.int64).reshape(-1, width) for key in keys]
    list_lengths = np.array([len(placements) for placements in lists], dtype=np.int64)
    counts, starts = list_lengths[position], (np.cumsum(list_lengths) - list_lengths)[position]
    rows = np.repeat(np.arange(len(position)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (
        rows,
        np.concatenate([np.zeros((0, width), dtype=np.int64), *lists])[starts[rows] + within],
    )


def _degrees(degrees: tuple[Ints, ...]) -> tuple[list[tuple[int, ...]], Ints]:
    columns, position = distinct_rows(*degrees)
    return list(zip(*(column.tolist() for column in columns), strict=True)), position


@cache
def divisors(n: int) -> tuple[int, ...]:
    """All divisors of n in rising order."""
    small = [i for i in range(1, int(n**0.5) + 1) if n % i == 0]
    return tuple(sorted({*small, *(n // i for i in small)}))


def degrees(workload: Workload, gpus: int) -> Iterator[tuple[int, int, int, int]]:
    """(t, c, p, d) with t·c·p·d = N that divide heads, widths, sequence and global batch."""
    model, limits = workload.model, workload.mapping
    for t in _allowed(divisors(gpus), limits.tp):
        if not splits_tensors(workload, t):
            continue
        for c in _allowed(divisors(gpus // t), limits.cp):
            if not splits_sequences(workload, c):
                continue
            for p in _allowed(divisors(gpus // (t * c)), limits.pp):
                d = gpus // (t * c * p)
                if (
                    p <= model.layers
                    and workload.global_batch % d == 0
                    and (limits.dp is None or d in limits.dp)
                ):
                    yield t, c, p, d


def degrees_up_to(workload: Workload, gpus: int) -> Ints:
    """The (t, c, p, d) of `degrees` on any number of GPUs up to that many, for which chunks of
    layers exist; (n, 4).
    """
    model, limits = workload.model, workload.mapping
    batches = np.array(_allowed(divisors(workload.global_batch), limits.dp), dtype=np.int64)
    stage_counts = [
        p for p in _allowed(range(1, model.layers + 1), limits.pp) if interleaves(model.layers, p)
    ]
    tables = [np.zeros((0, 4), dtype=np.int64)]
    for t in _allowed(
        [t for t in range(1, model.heads + 1) if splits_tensors(workload, t)], limits.tp
    ):
        for c in (
            c for c in _allowed(divisors(model.seq), limits.cp) if splits_sequences(workload, c)
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


def splits_sequences(workload: Workload, c: int) -> bool:
    """Whether c ranks can share a sequence evenly; scans of Mamba-2 are not cut here."""
    return workload.model.seq % c == 0 and (c == 1 or not workload.model.mamba_layers)


def splits_tensors(workload: Workload, t: int) -> bool:
    """Whether t ranks can share the heads and the widths of every layer evenly, and groups of
    Mamba-2 with them.
    """
    model = workload.model
    if model.mamba_groups % t:
        return False
    split_ffn = model.ffn if not model.experts or workload.options.expert_tp else 0
    shares_kv = model.kv_heads % t == 0 or t % model.kv_heads == 0
    return (
        not model.heads % t
        and shares_kv
        and not any(w % t for w in (split_ffn, model.shared_ffn, model.dense_ffn))
    )


def mappings(workload: Workload, gpus: int) -> tuple[Mappings, MappingCounts]:
    """Combinations of the allowed values that divide evenly, stages outermost, and how many others
    there are.

    Returns
    -------
    whole, uneven
        Mappings whose micro-batches fit the batch and the interleaved schedule, and how many do
        not.
    """
    tcpd = list(degrees(workload, gpus))
    choices = [_choices(workload, *quadruple) for quadruple in tcpd]
    return _combined(tcpd, choices), _uneven(tcpd, choices)


def whole_mappings(
    workload: Workload, quadruples: Iterable[Degrees], is_wanted: Callable[[Mappings], Bools]
) -> Mappings:
    """The first of `mappings`, those that are wanted, for the given (t, c, p, d) of any number of
    GPUs.

    Parameters
    ----------
    is_wanted
        Says of mappings without ZeRO which to list with any of its stages.
    """
    tcpd = list(quadruples)
    rows = _combined(tcpd, [_choices(workload, *quadruple, zero=False) for quadruple in tcpd])
    rows = rows.take(is_wanted(rows))
    # all numbers of ranks above one allow the same stages, so that two stand for any
    alone_stages, shared_stages = (
        np.array(_allowed(_zero_stages(workload, ranks), workload.mapping.zero)) for ranks in (1, 2)
    )
    is_shared = rows.dp * rows.cp > 1
    count = np.where(is_shared, len(shared_stages), len(alone_stages))
    row = np.repeat(np.arange(len(rows)), count)
    place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    stages = np.concatenate([alone_stages, shared_stages]).astype(np.int64)
    return replace(
        rows.take(row), zero=stages[place + np.where(is_shared[row], len(alone_stages), 0)]
    )


class _Choices(NamedTuple):
    """What may be chosen with a (t, c, p, d): the values of every column of `STYLES`, each as the
    user lists them.

    Micro-batch and interleaving are one column of pairs, those that fit the batch and the schedule;
    `uneven` others do not.
    """

    columns: tuple[tuple[Any, ...], ...]
    uneven: int


def _combined(tcpd: Sequence[Degrees], choices: Sequence[_Choices]) -> Mappings:
    """Some (t, c, p, d) with everything else that may be chosen."""
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
    """Every combination of the values of columns, of which a pair is two; shape (len(STYLES),
    n).
    """
    counts = [len(values) for values in columns]
    if not all(counts):
        return np.zeros((len(STYLES), 0), dtype=np.int64)
    places = np.indices(counts).reshape(len(counts), -1)
    tables = [np.array(values, dtype=np.int64).reshape(len(values), -1) for values in columns]
    return np.concatenate([table.T[:, place] for table, place in zip(tables, places, strict=True)])


def _uneven(tcpd: Sequence[Degrees], choices: Sequence[_Choices]) -> MappingCounts:
    """How many combinations with each (t, c, p, d) and each degree of experts do not divide
    evenly.
    """
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
    """Micro-batches and chunks of a stage with which the batch of a replica is whole micro-batches
    that fit a schedule.

    Interleaved they go round the stages; in two directions each stage has a twin, and they fill the
    pipeline from both ends (DualPipe's repository, dualpipe/dualpipe.py).
    """
    numbers = [(b, batch // b) for b in micro_batches if batch % b == 0]
    if schedule == "dualpipe":
        numbers = [
            (b, m) for b, m in numbers if p == 1 or (p % 2 == 0 and m % 2 == 0 and m >= 2 * p)
        ]
    return tuple((b, v) for b, m in numbers for v in chunks if v == 1 or m % p == 0)


def _choices(workload: Workload, t: int, c: int, p: int, d: int, *, zero: bool = True) -> _Choices:
    """What may be chosen with a (t, c, p, d), stages of ZeRO only if asked to."""
    limits, schedule = workload.mapping, workload.options.schedule
    one_sequence = t == 1 or workload.options.tp_sync_fraction < 1.0
    chunks = tuple(
        _allowed(
            interleaves(workload.model.layers, p), limits.interleave if schedule == "1f1b" else (1,)
        )
    )
    pairs = _schedules(schedule, workload.global_batch // d, p, limits.micro_batch, chunks)
    columns = (
        _allowed(_expert_degrees(workload, t, c, d), limits.ep),
        pairs,
        (RECOMPUTE.index(name) for name in allowed_recompute(workload)),
        _allowed((0,) if one_sequence else (0, 1), [*map(int, limits.sequence_parallel)]),
        _allowed(_zero_stages(workload, d * c), limits.zero) if zero else (0,),
        limits.offload_percent,
        (STAGES_APART,),
    )
    return _Choices(tuple(map(tuple, columns)), len(limits.micro_batch) * len(chunks) - len(pairs))


@cache
def interleaves(layers: int, p: int) -> tuple[int, ...]:
    """Model chunks of a GPU that leave few layers missing; embedding, loss and a prediction take
    their place.

    Where chunks are single layers, embedding and loss may each have one of their own, as in Llama 3
    (arXiv 2407.21783, section 3.3.2).
    """
    most_chunks = (layers + EMBEDDING_AND_LOSS) // p if 1 < p <= layers else 1
    return tuple(
        v
        for v in range(1, most_chunks + 1)
        if p * v * -(-layers // (p * v)) - layers <= MISSING_LAYERS
    )


def _zero_stages(workload: Workload, ranks: int) -> tuple[int, ...]:
    """Stages with `ranks` to share with; gradients that are one step late are whole, and parameters
    cannot be late.

    DualPipe's gradients are whole until both copies of a stage have theirs.
    """
    if ranks == 1:
        return (0,)
    options = workload.options
    return (
        (0, 1) if options.dp_mode == "stale-1" or options.schedule == "dualpipe" else (0, 1, 2, 3)
    )


def _expert_degrees(workload: Workload, t: int, c: int, d: int) -> tuple[int, ...]:
    if not workload.model.experts:
        return (1,)
    ranks = c * d * (1 if workload.options.expert_tp else t)
    return tuple(x for x in divisors(workload.model.experts) if ranks % x == 0)


def allowed_recompute(workload: Workload) -> tuple[str, ...]:
    """What a mapping may recompute: where the user leaves it open, all that the framework can and
    that differs.

    Under flash attention, which stores no scores, `selective` is `none`.
    """
    if workload.mapping.recompute is not None:
        return workload.mapping.recompute
    unfused, modules = (
        workload.options.attention == "unfused",
        workload.options.software.recompute_modules,
    )
    possible = {"selective": unfused, "norm+act": modules, "norm+ffn": modules}
    return tuple(kind for kind in RECOMPUTE if possible.get(kind, True))


def _allowed(possible: Sequence[int], limit: Sequence[int] | None) -> list[int]:
    """The possible values a user's list leaves."""
    return [value for value in possible if limit is None or value in limit]
