"""The columns of an instance: per workload and context, the mapping that needs the fewest
uplinks.

The minimum number of uplinks is searched for many networks at once.

Time never rises with uplinks, and the price of a family never falls with them. So the mapping that
meets its bound with the fewest uplinks dominates all others of its context: any network on which
another one meets the bound lets this one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from coopt.columns.feasible import FeasibleMappings, feasible_mappings
from coopt.columns.flows import NicLayout
from coopt.columns.grid import Context, DomainSet, context_of
from coopt.columns.pools import ENTRIES, MinimumUplinks, Pool, Trials, pool
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.network.family import Family, next_even

FEW = 4  # contexts searched first where most will be too expensive


@dataclass(frozen=True, kw_only=True)
class Column:
    """Minimum number of uplinks that a workload needs in a context, and the row of the mapping that
    meets its bound with them.
    """

    workload: int
    context: int
    row: int
    uplinks: int


@dataclass(frozen=True, kw_only=True)
class Columns:
    """All columns of an instance, with the pools and feasible mappings they come from and counts of
    dropped mappings (`gated`, by cause).
    """

    contexts: tuple[Context, ...]
    columns: tuple[Column, ...]
    pools: dict[tuple[int, DomainSet], Pool]
    feasible: dict[tuple[int, int], FeasibleMappings]
    enumerated: int
    kept: int
    gated: dict[str, int]

    @cached_property
    def numbers(self) -> dict[Context, int]:
        """Index of each context."""
        return {context: k for k, context in enumerate(self.contexts)}


class Ceiling(Protocol):
    """Objective value of the cheapest network found so far, to skip contexts that cannot improve on
    it.
    """

    def floor(self, context: Context) -> float:
        """Return a lower bound on the objective value of all networks of a context."""
        ...

    def is_below(self, floor: float) -> bool:
        """Whether a network with a lower value than `floor` is known."""
        ...

    def lower(self, context: Context, uplinks: int) -> None:
        """Record that `uplinks` uplinks serve all workloads in a context."""
        ...


def columns(
    instance: Instance,
    families: tuple[Family, ...],
    on_site: Callable[[DomainSet], None],
    on_context: Callable[[], None],
    ceiling: Ceiling | None = None,
) -> Columns:
    """Enumerate the mappings of all workloads for the given families and reduce them to columns.

    Parameters
    ----------
    on_site, on_context
        Called before each site and after each context.
    ceiling
        If given, contexts are searched in rising order of their lower bound, until no further one
        can hold the cheapest network.
    """
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    feasible = feasible_by_size(instance, contexts)
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    all_columns: list[Column] = []
    for site_contexts in by_site(contexts, ceiling):
        site = contexts[site_contexts[0]].site
        on_site(site)
        site_pools = pools_of(instance, [contexts[k] for k in site_contexts], feasible)
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
        feasible=feasible,
        enumerated=sum(gated.values()) + mapping_count,
        kept=mapping_count,
        gated=dict(gated),
    )


def needs(listed_columns: Iterable[Column], workloads: int) -> dict[int, int]:
    """Minimum number of uplinks with which a context serves all workloads; contexts that cannot are
    left out.
    """
    uplinks_by_workload: dict[int, dict[int, int]] = {}
    for column in listed_columns:
        uplinks_by_workload.setdefault(column.context, {})[column.workload] = column.uplinks
    return {
        k: max(by_w.values()) for k, by_w in uplinks_by_workload.items() if len(by_w) == workloads
    }


def from_least(needed: Iterable[tuple[Family, int | None]]) -> Iterator[Family]:
    """Each family with its uplinks from the least needed on; left out where there are none."""
    for family, least in needed:
        if least is not None and least <= family.uplink_choices[-1]:
            yield replace(
                family, uplink_choices=tuple(u for u in family.uplink_choices if u >= least)
            )


def by_site(contexts: tuple[Context, ...], ceiling: Ceiling | None = None) -> Iterator[list[int]]:
    """Group contexts by site; with a ceiling, in rising order of their lower bound and only below
    the ceiling.
    """
    sites = grouped((context.site, k) for k, context in enumerate(contexts))
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
    """Yield all contexts of a site at once; with a ceiling a few, then twice as many and so on,
    until the next ones lie above it.
    """
    start, count = 0, FEW if ceiling is not None else len(site_contexts)
    while start < len(site_contexts) and not (
        ceiling is not None and ceiling.is_below(ceiling.floor(contexts[site_contexts[start]]))
    ):
        yield [(k, contexts[k]) for k in site_contexts[start : start + count]]
        start, count = start + count, 2 * count


def feasible_by_size(
    instance: Instance, contexts: tuple[Context, ...]
) -> dict[tuple[int, int], FeasibleMappings]:
    """Return the feasible mappings of every workload for every number of GPUs."""
    return {
        (w, gpus): feasible_mappings(workload, instance.cluster.gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(context.site.gpus for context in contexts)
    }


def pools_of(
    instance: Instance, contexts: list[Context], feasible: dict[tuple[int, int], FeasibleMappings]
) -> list[tuple[Pool, Counter[str]]]:
    """Return the pool of every workload on the contexts of a site, with the number of dropped rows
    by cause.
    """
    site, best_case = contexts[0].site, full_bandwidth(contexts)
    domain = next(domain for domain in instance.network.hb_domains if domain.name == site.hb)
    return [
        pool(feasible[w, site.gpus], instance.cluster.gpu, domain, site, best_case)
        for w in range(len(instance.workload))
    ]


def full_bandwidth(contexts: list[Context]) -> Context:
    """Return a single-tier context with the largest bandwidth of the given ones: none of their
    networks is faster.
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
    """Return a column for every context in which some row meets its bound: the row that needs the
    fewest uplinks.
    """
    best_columns: list[Column] = []
    if not len(candidates):
        return best_columns
    for (k, context), least in zip(
        contexts, minimum_uplinks(candidates, [context for _, context in contexts]), strict=True
    ):
        on_context()
        if least is not None:
            # bundles rule some numbers out; a larger one is in time as well
            uplinks = int(next_even(least.uplinks, context.bundle))
            best_columns.append(
                Column(workload=workload, context=k, row=least.row, uplinks=uplinks)
            )
    return best_columns


def minimum_uplinks(candidates: Pool, contexts: Sequence[Context]) -> list[MinimumUplinks | None]:
    """Return the minimum number of uplinks of each context, or None where no row meets its bound;
    cached in the pool.
    """
    known, batch_size = candidates.minimum_uplinks, max(1, ENTRIES // len(candidates))
    unknown = [context for context in contexts if context not in known]
    for start in range(0, len(unknown), batch_size):
        batch = unknown[start : start + batch_size]
        known.update(zip(batch, _minimum_uplinks(candidates, batch), strict=True))
    return [known[context] for context in contexts]


def _minimum_uplinks(candidates: Pool, contexts: Sequence[Context]) -> list[MinimumUplinks | None]:
    groups, place = candidates.distinct_groups
    m, layouts = len(groups.tp), list(dict.fromkeys(context.layout for context in contexts))
    loads = candidates.stacked(layouts, contexts[0].discipline)
    # layouts with equal slowdowns at every number of uplinks are searched once
    first: dict[bytes, int] = {}
    identities = loads.identity.reshape(-1, len(layouts), m).swapaxes(0, 1)
    number = {
        layout: first.setdefault(identity.tobytes(), i)
        for i, (layout, identity) in enumerate(zip(layouts, identities, strict=True))
    }
    networks = dict.fromkeys((number[context.layout], context.byte_s) for context in contexts)
    n, k = len(candidates), len(networks)
    load_rows = np.array([of_layout for of_layout, _ in networks])[:, None] * m + np.arange(m)
    trials = Trials(
        rows=candidates.rows,
        row=np.tile(np.arange(n), k),
        view=np.repeat(np.arange(k), n),
        byte_s=np.array([byte_s for _, byte_s in networks]),
        loads=loads.take(load_rows.ravel()),
        load=(np.arange(k)[:, None] * m + place).ravel(),
        load_view=np.repeat(np.arange(k), m),
    )
    uplinks = trials.minimum_uplinks(trials.enough_uplinks())
    rows = trials.fastest_rows(np.maximum(uplinks, 1))
    fastest = zip(rows.tolist(), uplinks.tolist(), strict=True)
    of_networks = dict(zip(networks, fastest, strict=True))
    answers = [of_networks[number[context.layout], context.byte_s] for context in contexts]
    return [
        MinimumUplinks(row, 0 if context.layout.is_flat else u) if u else None
        for context, (row, u) in zip(contexts, answers, strict=True)
    ]
