"""The columns of an instance: for every workload and context, the mapping that needs the fewest uplinks.

Time never falls as the slowdown grows, and a family's price never falls as uplinks are added. So of all mappings in a
context the one that bears the largest slowdown within the bound dominates the others exactly: whatever network lets
another meet the bound lets this one meet it too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from coopt.columns.context import Context, Site, context_of, levels_reached, reciprocals
from coopt.columns.pools import Fitting, Pool, fitting, pool
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.perf.mapping import Floats

MARGIN = 1e-9  # of a bound: far above the rounding of times, which is some 1e-16 of them for every unit of slowdown


@dataclass(frozen=True, kw_only=True)
class Column:
    """What a workload needs of a context: at least `uplinks`, at most a slowdown of `reach`, by any of its mappings.

    `row` is the mapping that bears most.
    """

    workload: int
    context: int
    row: int
    reach: float
    uplinks: int


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Everything a formulation needs to know about mappings."""

    contexts: tuple[Context, ...]
    columns: tuple[Column, ...]
    pools: dict[tuple[int, Site], Pool]
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
    on_site: Callable[[Site], None],
    on_context: Callable[[], None],
) -> Columns:
    """Enumerate, gate and filter the mappings of all workloads for the given families."""
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    fittings = fitted(instance, contexts)
    pools: dict[tuple[int, Site], Pool] = {}
    gated: Counter[str] = Counter()
    kept: list[Column] = []
    for w, site, found, dropped in pooled(instance, contexts, fittings, on_site):
        pools[w, site] = found
        of_site = [(k, context) for k, context in enumerate(contexts) if context.site == site]
        best = _best_rows(found, of_site, w, on_context)
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
    on_site: Callable[[Site], None],
) -> Iterator[tuple[int, Site, Pool, Counter[str]]]:
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


def _best_rows(
    found: Pool, contexts: list[tuple[int, Context]], workload: int, on_context: Callable[[], None]
) -> list[Column]:
    """The dominating row of every context that has one. Reach is shared by contexts that differ in `down` only."""
    borders: dict[Context, _Border] = {}
    best: list[Column] = []
    for k, context in contexts:
        on_context()
        if not len(found):
            continue
        alike = replace(context, down=min(context.down, 1))
        if alike not in borders:
            borders[alike] = _border(found, alike)
        column = _best_row(found, context, borders[alike], workload, k)
        if column is not None:
            best.append(column)
    return best


@dataclass(frozen=True, kw_only=True)
class _Border:
    """The largest slowdown that any row bears, `row` among them, and what it lies between whatever the rounding."""

    row: int
    reach: float
    surely: float
    never: float


def _border(found: Pool, context: Context) -> _Border:
    reaches, surely, never = reach(found, context, np.array([1.0, 1.0 - MARGIN, 1.0 + MARGIN]))
    row = int(np.argmax(reaches))
    return _Border(row=row, reach=float(reaches[row]), surely=float(surely.max()), never=float(never.max()))


def _best_row(found: Pool, context: Context, border: _Border, workload: int, k: int) -> Column | None:
    """The least uplinks at which the exact time of some row meets the bound; the largest reach says where to look.

    Times are computed only where the slowdown is so close to the largest reach that rounding may decide.
    """

    def late(uplinks: int) -> bool:
        ratio = context.down / uplinks if context.down else 1.0
        if ratio <= border.surely:
            return False
        return ratio > border.never or bool((found.time_s(context, uplinks) > found.workload.bound_s).all())

    uplinks = _guess(border.reach, context.down)
    while uplinks > 1 and not late(uplinks - 1):
        uplinks -= 1
    while uplinks < context.down and late(uplinks):
        uplinks += 1
    if late(uplinks):
        return None
    least = context.down / uplinks if context.down else 1.0
    return Column(workload=workload, context=k, row=border.row, reach=max(border.reach, least), uplinks=uplinks)


def _guess(reach: float, down: int) -> int:
    """Uplinks that leave down-ports and uplinks in that ratio, as far as there are ports; 0 without a choice."""
    return min(max(math.ceil(down / max(reach, 1.0)), 1), down)


def reach(found: Pool, context: Context, shares: Floats) -> Floats:
    r"""The largest ratio of down-ports to uplinks each row bears within its bound; infinite for rows that never leave
    their leaf.

    Each of the affine pieces of the iteration time is A + V·\rho in that ratio \rho, so

    .. math:: \rho_{\max} = \min_j (T - A_j) / V_j

    Parameters
    ----------
    shares
        Which shares of the bound T to ask for, shape (s,); the answer has shape (s, n).
    """
    levels = levels_reached(context, found.blocks)
    once, twice = (reciprocals(replace(context, down=down), 1, levels) for down in (1, 2))
    bounds_s = shares[:, None] * found.workload.bound_s
    largest = np.full((len(shares), len(found)), np.inf)
    for piece in found.pieces:
        at_one, at_two = (np.broadcast_to(piece.at(r), (len(found),)) for r in (once, twice))
        slope = at_two - at_one
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.where(at_one <= bounds_s, np.inf, -np.inf)
            bears = np.where(slope > 0, 1.0 + (bounds_s - at_one) / slope, flat)
        largest = np.minimum(largest, bears)
    return largest
