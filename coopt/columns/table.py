"""The columns of an instance: for every workload and context, the mapping that needs the fewest uplinks.

Time never rises with uplinks, and a family's price never falls with them. So of all mappings in a context the one that
is in time with the fewest uplinks dominates the others exactly: whatever network lets another meet the bound lets this
one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from coopt.columns.borders import borne
from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.layouts import NicLayout
from coopt.columns.pools import Fitting, Pool, fitting, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even

FEW = 4  # contexts that are looked at first where most will be too dear


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


class Ceiling(Protocol):
    """What the cheapest network found so far is worth, so that dearer ones need not be looked at."""

    def floor(self, context: Context) -> float:
        """No network of a context is worth less."""
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
        Contexts are looked at from the one of least worth on, and no more of them than can hold the cheapest network.
    """
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    fittings = fitted(instance, contexts)
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    kept: list[Column] = []
    for here in by_site(contexts, ceiling):
        site = contexts[here[0]].site
        on_site(site)
        found = pools_of(instance, [contexts[k] for k in here], fittings)
        best: list[Column] = []
        for some in _in_turn(contexts, here, ceiling):
            of_some = [column for w, (own, _) in enumerate(found) for column in best_rows(own, some, w, on_context)]
            best += of_some
            if ceiling is not None:
                for k, uplinks in needs(of_some, len(found)).items():
                    ceiling.lower(contexts[k], uplinks)
        kept += best
        for w, (own, dropped) in enumerate(found):
            pools[w, site] = own
            dropped["dominated"] += len(own) - len({column.row for column in best if column.workload == w})
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


def needs(found: Iterable[Column], workloads: int) -> dict[int, int]:
    """Least uplinks with which a context serves all workloads; contexts that cannot are left out."""
    own: dict[int, dict[int, int]] = {}
    for column in found:
        own.setdefault(column.context, {})[column.workload] = column.uplinks
    return {k: max(by_w.values()) for k, by_w in own.items() if len(by_w) == workloads}


def by_site(contexts: tuple[Context, ...], ceiling: Ceiling | None = None) -> Iterator[list[int]]:
    """The contexts of each site; those of least worth first, up to the ceiling."""
    sites: dict[DomainSet, list[int]] = {}
    for k, context in enumerate(contexts):
        sites.setdefault(context.site, []).append(k)
    if ceiling is None:
        yield from sites.values()
        return
    floors = [ceiling.floor(context) for context in contexts]
    for here in sorted(sites.values(), key=lambda here: min(floors[k] for k in here)):
        if not ceiling.is_below(min(floors[k] for k in here)):
            yield sorted(here, key=lambda k: floors[k])


def _in_turn(
    contexts: tuple[Context, ...], here: list[int], ceiling: Ceiling | None
) -> Iterator[list[tuple[int, Context]]]:
    """All contexts of a site at once; with a ceiling a few and then twice as many, until the next ones lie above it."""
    first, many = 0, FEW if ceiling is not None else len(here)
    while first < len(here) and not (ceiling is not None and ceiling.is_below(ceiling.floor(contexts[here[first]]))):
        yield [(k, contexts[k]) for k in here[first : first + many]]
        first, many = first + many, 2 * many


def fitted(instance: Instance, contexts: tuple[Context, ...]) -> dict[tuple[int, int], Fitting]:
    """The mappings of every workload that fit into memory, for every number of GPUs."""
    return {
        (w, gpus): fitting(workload, instance.cluster.gpu, gpus)
        for w, workload in enumerate(instance.workload)
        for gpus in dict.fromkeys(context.site.gpus for context in contexts)
    }


def pools_of(
    instance: Instance, here: list[Context], fittings: dict[tuple[int, int], Fitting]
) -> list[tuple[Pool, Counter[str]]]:
    """The pool of every workload on the contexts of a site, and how many rows were dropped by cause."""
    site, best_case = here[0].site, full_bandwidth(here)
    domain = next(domain for domain in instance.network.hb_domains if domain.name == site.hb)
    return [
        pool(fittings[w, site.gpus], instance.cluster.gpu, domain, site, best_case)
        for w in range(len(instance.workload))
    ]


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
