"""The columns of an instance: for every workload and context, the mapping that needs the fewest uplinks.

Time never falls as the slowdown grows, and a family's price never falls as uplinks are added. So of all mappings in a
context the one that bears the largest slowdown within the bound dominates the others exactly: whatever network lets
another meet the bound lets this one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from coopt.columns.borders import Border, borders_of
from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.pools import Fitting, Pool, fitting, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a workload needs of a context: at least `uplinks`, by any of its mappings.

    `row` is the mapping that bears most.
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
    site = contexts[0].site
    domains = site.gpus // site.active
    fastest = max(context.byte_s for context in contexts)
    return Context(site=site, byte_s=fastest, down=0, leaf_span=domains, pod_span=domains, pod_ratio=1.0)


def best_rows(
    found: Pool, contexts: list[tuple[int, Context]], workload: int, on_context: Callable[[], None]
) -> list[Column]:
    """The dominating row of every context that has one. Reach is shared by contexts that differ in uplinks only."""
    best: list[Column] = []
    alike = {k: replace(context, down=min(context.down, 1), bundle=0) for k, context in contexts}
    borders = borders_of(found, tuple(dict.fromkeys(alike.values()))) if len(found) else {}
    for k, context in contexts:
        on_context()
        if len(found):
            column = _best_row(found, context, borders[alike[k]], workload, k)
            if column is not None:
                best.append(column)
    return best


def _best_row(found: Pool, context: Context, border: Border, workload: int, k: int) -> Column | None:
    """The least uplinks on offer at which the exact time of some row meets the bound; the largest reach says where to
    look.

    Times are computed only where the slowdown is so close to the largest reach that rounding may decide.
    """

    def late(uplinks: int) -> bool:
        ratio = context.down / uplinks if context.down else 1.0
        if ratio <= border.surely:
            return False
        return ratio > border.never or bool((found.time_s(context, uplinks) > found.workload.bound_s).all())

    uplinks = border.guess(context.down)
    while uplinks > 1 and not late(uplinks - 1):
        uplinks -= 1
    while uplinks < context.down and late(uplinks):
        uplinks += 1
    if late(uplinks):
        return None
    offered = int(next_even(uplinks, context.bundle))
    return Column(workload=workload, context=k, row=border.row, uplinks=offered)
