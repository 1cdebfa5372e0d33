"""The columns of an instance: for every workload and context, the mapping that needs the fewest uplinks.

Time never rises with uplinks, and a family's price never falls with them. So of all mappings in a context the one that
is in time with the fewest uplinks dominates the others exactly: whatever network lets another meet the bound lets this
one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from coopt.columns.borders import borne
from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.layouts import NicLayout
from coopt.columns.pools import Fitting, Pool, fitting, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a workload needs of a context: at least `uplinks`; `row` is the mapping that is in time with them."""

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


def columns(
    instance: Instance,
    families: tuple[Family, ...],
    on_site: Callable[[DomainSet], None],
    on_context: Callable[[], None],
) -> Columns:
    """Enumerate, gate and filter the mappings of all workloads for the given families."""
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    fittings = fitted(instance, contexts)
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    kept: list[Column] = []
    for w, site, found, dropped in pooled(instance, contexts, fittings, on_site):
        pools[w, site] = found
        of_site = [(k, context) for k, context in enumerate(contexts) if context.site == site]
        best = best_rows(found, of_site, w, on_context)
        kept += best
        dropped["dominated"] += len(found) - len({column.row for column in best})
        gated.update(dropped)
    chosen = len({(c.workload, contexts[c.context].site, c.row) for c in kept})
    return Columns(
        contexts=contexts,
        columns=tuple(kept),
        pools=pools,
        fittings=fittings,
        enumerated=sum(gated.values()) + chosen,
        kept=chosen,
        gated=dict(gated),
    )


def fitted(instance: Instance, contexts: tuple[Context, ...]) -> dict[tuple[int, int], Fitting]:
    """The mappings of every workload that fit into memory, for every number of GPUs."""
    return {
        (w, gpus): fitting(workload, instance.cluster.gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(context.site.gpus for context in contexts)
    }


def pooled(
    instance: Instance,
    contexts: tuple[Context, ...],
    fittings: dict[tuple[int, int], Fitting],
    on_site: Callable[[DomainSet], None],
) -> Iterator[tuple[int, DomainSet, Pool, Counter[str]]]:
    """For every site and workload its pool, and how many rows were dropped by cause."""
    domains = {domain.name: domain for domain in instance.network.hb_domains}
    for site in dict.fromkeys(context.site for context in contexts):
        on_site(site)
        best_case = full_bandwidth([context for context in contexts if context.site == site])
        for w in range(len(instance.workload)):
            found, dropped = pool(fittings[w, site.gpus], instance.cluster.gpu, domains[site.hb], site, best_case)
            yield w, site, found, dropped


def full_bandwidth(contexts: list[Context]) -> Context:
    """A context of one tier with the largest bandwidth among the given ones: no network of theirs is faster."""
    fastest = max(context.byte_s for context in contexts)
    domains = contexts[0].site.domains
    return replace(contexts[0], byte_s=fastest, layout=NicLayout(domains=domains, span=domains))


def best_rows(
    found: Pool, contexts: list[tuple[int, Context]], workload: int, on_context: Callable[[], None]
) -> list[Column]:
    """The row that bears most of every context that has one in time."""
    best: list[Column] = []
    if not len(found):
        return best
    for (k, context), one in zip(contexts, borne(found, [context for _, context in contexts]), strict=True):
        on_context()
        if one is not None:
            uplinks = int(next_even(one.uplinks, context.bundle))
            best.append(Column(workload=workload, context=k, row=one.row, uplinks=uplinks))
    return best
