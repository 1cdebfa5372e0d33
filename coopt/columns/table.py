"""The columns of an instance: for every workload and context, the mapping that needs the fewest
uplinks.

The least uplinks that the rows of a pool bear are found for many networks at once.

Time never rises with uplinks, and a family's price never falls with them. So of all mappings in a
context the one that is in time with the fewest uplinks dominates the others exactly: whatever
network lets another meet the bound lets this one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.fittings import Fitting, fitting
from coopt.columns.layouts import NicLayout
from coopt.columns.loads import Crossings
from coopt.columns.pools import ENTRIES, LeastUplinks, Pool, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even
from coopt.perf.affine import Pieces, Ways
from coopt.perf.mapping import Floats, Ints

FEW = 4  # contexts that are looked at first where most will be too dear


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a workload needs of a context: at least `uplinks`; `row` is the mapping that is in time
    with them.
    """

    workload: int
    context: int
    row: int
    uplinks: int


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Everything a formulation needs to know about mappings."""

    contexts: tuple[Context, ...]
    columns: tuple[Column, ...]
    pools: dict[tuple[int, DomainSet], Pool]
    fittings: dict[tuple[int, int], Fitting]
    enumerated: int
    kept: int
    gated: dict[str, int]

    @cached_property
    def numbers(self) -> dict[Context, int]:
        """The position of each context."""
        return {context: k for k, context in enumerate(self.contexts)}


class Ceiling(Protocol):
    """What the cheapest network found so far is worth, so that dearer ones need not be looked
    at.
    """

    def floor(self, context: Context) -> float:
        """What every network of a context is worth at least."""
        ...

    def is_below(self, floor: float) -> bool:
        """Whether a network is known that is worth less."""
        ...

    def lower(self, context: Context, uplinks: int) -> None:
        """Hear that so many uplinks serve all workloads in a context."""
        ...


def columns(
    instance: Instance,
    families: tuple[Family, ...],
    on_site: Callable[[DomainSet], None],
    on_context: Callable[[], None],
    ceiling: Ceiling | None = None,
) -> Columns:
    """Enumerate, gate and filter the mappings of all workloads for the given families.

    Parameters
    ----------
    ceiling
        Contexts are looked at from the one of least worth on, and no more of them than can hold the
        cheapest network.
    """
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    fittings = fitted(instance, contexts)
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    all_columns: list[Column] = []
    for site_contexts in by_site(contexts, ceiling):
        site = contexts[site_contexts[0]].site
        on_site(site)
        site_pools = pools_of(instance, [contexts[k] for k in site_contexts], fittings)
        site_columns: list[Column] = []
        for batch in _in_turn(contexts, site_contexts, ceiling):
            batch_columns = [
                column
                for w, (workload_pool, _) in enumerate(site_pools)
                for column in best_rows(workload_pool, batch, w, on_context)
            ]
            site_columns += batch_columns
            if ceiling is not None:
                for k, uplinks in needs(batch_columns, len(site_pools)).items():
                    ceiling.lower(contexts[k], uplinks)
        all_columns += site_columns
        for w, (workload_pool, dropped) in enumerate(site_pools):
            pools[w, site] = workload_pool
            dropped["dominated"] += len(workload_pool) - len(
                {column.row for column in site_columns if column.workload == w}
            )
            gated.update(dropped)
    mapping_count = len({(c.workload, contexts[c.context].site, c.row) for c in all_columns})
    return Columns(
        contexts=contexts,
        columns=tuple(all_columns),
        pools=pools,
        fittings=fittings,
        enumerated=sum(gated.values()) + mapping_count,
        kept=mapping_count,
        gated=dict(gated),
    )


def needs(listed_columns: Iterable[Column], workloads: int) -> dict[int, int]:
    """Least uplinks with which a context serves all workloads; contexts that cannot are left
    out.
    """
    uplinks_by_workload: dict[int, dict[int, int]] = {}
    for column in listed_columns:
        uplinks_by_workload.setdefault(column.context, {})[column.workload] = column.uplinks
    return {
        k: max(by_w.values()) for k, by_w in uplinks_by_workload.items() if len(by_w) == workloads
    }


def by_site(contexts: tuple[Context, ...], ceiling: Ceiling | None = None) -> Iterator[list[int]]:
    """The contexts of each site; those of least worth first, up to the ceiling."""
    sites: dict[DomainSet, list[int]] = {}
    for k, context in enumerate(contexts):
        sites.setdefault(context.site, []).append(k)
    if ceiling is None:
        yield from sites.values()
        return
    floors = [ceiling.floor(context) for context in contexts]
    for site_contexts in sorted(
        sites.values(), key=lambda site_contexts: min(floors[k] for k in site_contexts)
    ):
        if not ceiling.is_below(min(floors[k] for k in site_contexts)):
            yield sorted(site_contexts, key=lambda k: floors[k])


def _in_turn(
    contexts: tuple[Context, ...], site_contexts: list[int], ceiling: Ceiling | None
) -> Iterator[list[tuple[int, Context]]]:
    """All contexts of a site at once; with a ceiling a few and then twice as many, until the next
    ones lie above it.
    """
    start, count = 0, FEW if ceiling is not None else len(site_contexts)
    while start < len(site_contexts) and not (
        ceiling is not None and ceiling.is_below(ceiling.floor(contexts[site_contexts[start]]))
    ):
        yield [(k, contexts[k]) for k in site_contexts[start : start + count]]
        start, count = start + count, 2 * count


def fitted(instance: Instance, contexts: tuple[Context, ...]) -> dict[tuple[int, int], Fitting]:
    """The mappings of every workload that fit into memory, for every number of GPUs."""
    return {
        (w, gpus): fitting(workload, instance.cluster.gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(context.site.gpus for context in contexts)
    }


def pools_of(
    instance: Instance, contexts: list[Context], fittings: dict[tuple[int, int], Fitting]
) -> list[tuple[Pool, Counter[str]]]:
    """The pool of every workload on the contexts of a site, and how many rows were dropped by
    cause.
    """
    site, best_case = contexts[0].site, full_bandwidth(contexts)
    domain = next(domain for domain in instance.network.hb_domains if domain.name == site.hb)
    return [
        pool(fittings[w, site.gpus], instance.cluster.gpu, domain, site, best_case)
        for w in range(len(instance.workload))
    ]


def full_bandwidth(contexts: list[Context]) -> Context:
    """A context of one tier with the largest bandwidth among the given ones: no network of theirs
    is faster.
    """
    fastest_byte_s = max(context.byte_s for context in contexts)
    domains = contexts[0].site.domains
    return replace(
        contexts[0], byte_s=fastest_byte_s, layout=NicLayout(domains=domains, span=domains)
    )


def best_rows(
    candidates: Pool,
    contexts: list[tuple[int, Context]],
    workload: int,
    on_context: Callable[[], None],
) -> list[Column]:
    """For every context with a row in time, the row that is in time with the fewest uplinks."""
    best_columns: list[Column] = []
    if not len(candidates):
        return best_columns
    for (k, context), least in zip(
        contexts, borne(candidates, [context for _, context in contexts]), strict=True
    ):
        on_context()
        if least is not None:
            # bundles rule some numbers out; a larger one is in time as well
            uplinks = int(next_even(least.uplinks, context.bundle))
            best_columns.append(
                Column(workload=workload, context=k, row=least.row, uplinks=uplinks)
            )
    return best_columns


def borne(candidates: Pool, contexts: Sequence[Context]) -> list[LeastUplinks | None]:
    """The least uplinks of each context; None where no row is ever in time. The pool keeps what was
    found.
    """
    known, batch_size = candidates.least_uplinks, max(1, ENTRIES // len(candidates))
    unknown = [context for context in contexts if context not in known]
    for start in range(0, len(unknown), batch_size):
        batch = unknown[start : start + batch_size]
        known.update(zip(batch, _borne(candidates, batch), strict=True))
    return [known[context] for context in contexts]


def _borne(candidates: Pool, contexts: Sequence[Context]) -> list[LeastUplinks | None]:
    groups, position = candidates.distinct_groups
    place = {
        layout: i for i, layout in enumerate(dict.fromkeys(context.layout for context in contexts))
    }
    k, m = len(place), len(groups.tp)
    loads = candidates.stacked(list(place), contexts[0].discipline)
    # layouts that slow every group alike at every number of uplinks are searched once
    identities = _numbered(row.tobytes() for row in loads.identity.reshape(-1, k, m).swapaxes(0, 1))
    number = dict(zip(place, identities, strict=True))
    networks = {(number[context.layout], context.byte_s): context.layout for context in contexts}
    rows = np.array([place[layout] for layout in networks.values()])
    byte_s = np.array([byte_s for _, byte_s in networks])
    least_uplinks = _searched(
        candidates, position, loads.take((rows[:, None] * m + np.arange(m)).ravel()), byte_s
    )
    of_network = dict(zip(networks, least_uplinks, strict=True))
    answers = [of_network[number[context.layout], context.byte_s] for context in contexts]
    flat = [context.layout.is_flat for context in contexts]
    return [
        answer and (answer._replace(uplinks=0) if still else answer)
        for answer, still in zip(answers, flat, strict=True)
    ]


def _numbered(keys: Iterable[bytes]) -> list[int]:
    """A number for each key, the same for equal ones."""
    numbers: dict[bytes, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _searched(
    candidates: Pool, position: Ints, loads: Crossings, byte_s: Floats
) -> list[LeastUplinks | None]:
    """The least uplinks on each of k networks, whose loads are listed for one group after the
    other.

    What the fastest row of each needs is found first: few of the others are in time with less.
    """
    k, bound_s = len(byte_s), candidates.workload.bound_s
    every = _Trials(candidates.pieces, candidates.iteration.ways, position, loads, byte_s)
    high = loads.enough_uplinks().reshape(k, -1).max(axis=1)
    times_s = every.times_s(high)
    in_time = times_s <= bound_s
    serves, rows = np.asarray(in_time.any(axis=1)), np.flatnonzero(in_time.any(axis=0))
    # what is late with more uplinks than help is late with any, and is tried no further
    if not len(rows):
        return [None] * k
    fastest_rows = every.take(np.unique(times_s[serves].argmin(axis=1)))
    uplinks = fastest_rows.bisected(np.ones_like(high), high, bound_s)
    timed_rows, fewer = every.take(rows), np.maximum(uplinks - 1, 1)
    early = timed_rows.times_s(fewer) <= bound_s
    if (early := early & (fewer < uplinks)[:, None]).any():
        high = np.where(early.any(axis=1), fewer, uplinks)
        low = np.where(early.any(axis=1), 1, uplinks)
        uplinks = timed_rows.take(np.flatnonzero(early.any(axis=0))).bisected(low, high, bound_s)
    quickest_rows = rows[timed_rows.times_s(uplinks).argmin(axis=1)]
    return [
        LeastUplinks(row, u) if is_served else None
        for row, u, is_served in zip(
            quickest_rows.tolist(), uplinks.tolist(), serves.tolist(), strict=True
        )
    ]


class _Trials(NamedTuple):
    """Rows tried on k networks: their pieces and ways, and which of the groups they have whose
    loads are listed for one network after the other.
    """

    pieces: Pieces
    ways: Ways
    row_groups: Ints
    loads: Crossings
    byte_s: Floats

    def take(self, rows: Ints) -> _Trials:
        """The chosen rows, and the loads of their groups."""
        groups, row_groups = np.unique(self.row_groups[rows], return_inverse=True)
        k, count = len(self.byte_s), len(self.loads.peers) // len(self.byte_s)
        loads = self.loads.take((np.arange(k)[:, None] * count + groups).ravel())
        return _Trials(
            self.pieces.take(rows), self.ways.take(rows), row_groups.reshape(-1), loads, self.byte_s
        )

    def times_s(self, uplinks: Ints) -> Floats:
        """Iteration times of rows at the uplinks of each network; shape (networks, rows)."""
        k, count = len(self.byte_s), len(self.loads.peers) // len(self.byte_s)
        network_s_byte = self.loads.reciprocals(
            np.repeat(self.byte_s, count), np.repeat(uplinks, count)
        )
        r = self.ways.charged(
            network_s_byte.mapped(lambda s_byte: s_byte.reshape(k, count)[:, self.row_groups])
        )
        return np.broadcast_to(self.pieces.at(r), (k, len(self.row_groups)))

    def bisected(self, low: Ints, high: Ints, bound_s: float) -> Ints:
        """The least uplinks of each network with which some row is in time; the high ones where
        none is with fewer.
        """
        while (low < high).any():
            probe = (low + high) // 2
            enough = (self.times_s(probe) <= bound_s).any(axis=1)
            # time never rises with uplinks, so that all networks are bisected at once
            high, low = (
                np.where(enough, probe, high),
                np.where(enough, low, np.minimum(probe + 1, high)),
            )
        return high
