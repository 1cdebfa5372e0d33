"""The columns of an instance: for every workload and context, the mapping that needs the fewest uplinks.

The least uplinks that the rows of a pool bear are found for many networks at once.

Time never rises with uplinks, and a family's price never falls with them. So of all mappings in a context the one that
is in time with the fewest uplinks dominates the others exactly: whatever network lets another meet the bound lets this
one meet it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.layouts import NicLayout
from coopt.columns.loads import Crossings
from coopt.columns.pools import ENTRIES, Fitting, Pool, fitting, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family, next_even
from coopt.perf.mapping import Floats, Ints

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


class Least(NamedTuple):
    """The least uplinks of a leaf with which any row is in time, 0 where leaves have none, and the fastest row then."""

    row: int
    uplinks: int


def borne(found: Pool, contexts: Sequence[Context]) -> list[Least | None]:
    """The least uplinks of each context; None where no row is ever in time."""
    each = max(1, ENTRIES // len(found))
    chunks = (contexts[first : first + each] for first in range(0, len(contexts), each))
    return [pair for some in chunks for pair in _borne(found, some)]


def _borne(found: Pool, contexts: Sequence[Context]) -> list[Least | None]:
    few, position = found.distinct_groups
    place = {layout: i for i, layout in enumerate(dict.fromkeys(context.layout for context in contexts))}
    k, m = len(place), len(few.tp)
    loads = found.stacked(list(place), contexts[0].discipline)
    same = _numbered(row.tobytes() for row in loads.identity.reshape(-1, k, m).swapaxes(0, 1))
    number = dict(zip(place, same, strict=True))
    networks = {(number[context.layout], context.byte_s): context.layout for context in contexts}
    rows = np.array([place[layout] for layout in networks.values()])
    byte_s = np.array([byte_s for _, byte_s in networks])
    least = _searched(found, position, loads.take((rows[:, None] * m + np.arange(m)).ravel()), byte_s)
    of_network = dict(zip(networks, least, strict=True))
    answers = [of_network[number[context.layout], context.byte_s] for context in contexts]
    flat = [context.layout.is_flat for context in contexts]
    return [one and (one._replace(uplinks=0) if still else one) for one, still in zip(answers, flat, strict=True)]


def _numbered(keys: Iterable[bytes]) -> list[int]:
    """A number for each key, the same for equal ones."""
    seen: dict[bytes, int] = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


def _searched(found: Pool, position: Ints, loads: Crossings, byte_s: Floats) -> list[Least | None]:
    """The least uplinks on each of k networks, whose loads are listed for one group after the other."""
    k, m = len(byte_s), len(loads.peers) // len(byte_s)

    def times_s(some: Pool, which: Ints, uplinks: Ints) -> Floats:
        """Iteration times of rows at the uplinks of each network; shape (networks, rows)."""
        seen = loads.reciprocals(np.repeat(byte_s, m), np.repeat(uplinks, m))
        r = some.charged(seen.each(lambda s_byte: s_byte.reshape(k, m)[:, which]))
        return np.asarray(np.maximum.reduce([np.broadcast_to(piece.at(r), (k, len(some))) for piece in some.pieces]))

    bound_s, high = found.workload.bound_s, loads.enough_uplinks().reshape(k, m).max(axis=1)
    in_time = times_s(found, position, high) <= bound_s
    serves, rows = np.asarray(in_time.any(axis=1)), np.flatnonzero(in_time.any(axis=0))
    if not len(rows):
        return [None] * k
    some, which, low = found.take(rows), position[rows], np.ones_like(high)
    while (low < high).any():
        middle = (low + high) // 2
        enough = (times_s(some, which, middle) <= bound_s).any(axis=1)
        high, low = np.where(enough, middle, high), np.where(enough, low, np.minimum(middle + 1, high))
    best = rows[times_s(some, which, high).argmin(axis=1)]
    return [Least(int(row), int(u)) if one else None for row, u, one in zip(best, high, serves.tolist(), strict=True)]
