"""How fast every design trains: all mappings of all workloads on every network, without a bound."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection

import numpy as np

from coopt.columns.context import Context, DomainSet, context_of
from coopt.columns.pools import ROUNDING, Pool
from coopt.columns.table import Columns, by_site, fitted, pools_of
from coopt.instance.schema import Instance
from coopt.instance.variants import at_pace
from coopt.network.family import Family
from coopt.perf.mapping import Floats, Ints

FEW = 64  # rows that are looked at first, to see which others may be faster


def unbounded(instance: Instance, families: tuple[Family, ...], on_site: Callable[[DomainSet], None]) -> Columns:
    """The pools of every site with no mapping dropped for its time, and no columns, which belong to a bound.

    What dominance drops has a row in its place that is nowhere slower, on any network, so these pools serve every pace.
    """
    patient = at_pace(instance, math.inf)
    contexts = tuple(dict.fromkeys(context_of(family) for family in families))
    fittings = fitted(patient, contexts)
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    for numbers in by_site(contexts):
        here = [contexts[k] for k in numbers]
        on_site(here[0].site)
        for w, (found, dropped) in enumerate(pools_of(patient, here, fittings)):
            pools[w, here[0].site] = found
            gated.update(dropped)
    kept = sum(map(len, pools.values()))
    return Columns(
        contexts=contexts,
        columns=(),
        pools=pools,
        fittings=fittings,
        enumerated=sum(gated.values()) + kept,
        kept=kept,
        gated=dict(gated),
    )


def paces(
    instance: Instance, families: tuple[Family, ...], table: Columns, over: Collection[str] | None = None
) -> tuple[Floats, ...]:
    """For every family, the largest share of a bound that a workload takes, by uplinks: one for each of its choices.

    Each workload runs its fastest mapping; infinite where one has none. Paces never rise with uplinks. Where `over`
    names workloads, theirs alone count, and paces are infinite where another one breaks its bound.
    """
    asked: dict[Context, set[int]] = {}
    for family in families:
        asked.setdefault(context_of(family), set()).update(family.uplink_choices)
    choices = {context: np.array(sorted(uplinks)) for context, uplinks in asked.items()}
    found = {context: _pace(instance, table, context, uplinks, over) for context, uplinks in choices.items()}
    return tuple(
        found[context][np.searchsorted(choices[context], family.uplink_choices)]
        for family, context in ((family, context_of(family)) for family in families)
    )


def _pace(instance: Instance, table: Columns, context: Context, choices: Ints, over: Collection[str] | None) -> Floats:
    """The pace of one context at each number of uplinks."""
    worst = np.zeros(len(choices))
    for w, workload in enumerate(instance.workload):
        share = least_times_s(table.pools[w, context.site], context, choices) / workload.bound_s
        moves = over is None or workload.name in over
        np.maximum(worst, share if moves else np.where(share <= 1.0, 0.0, np.inf), out=worst)
    return worst


def least_times_s(pool: Pool, context: Context, choices: Ints) -> Floats:
    """The time of the fastest mapping for every number of uplinks.

    No row is faster than with the full rate of its NICs. So rows that take longer with that than some others do with
    the fewest uplinks are the fastest nowhere, and nothing is counted for them.
    """
    uplinks = choices.reshape(-1, 1)
    if len(pool) > FEW:
        floors_s = pool.undisturbed_s(context.byte_s)
        few = pool.narrowed(np.argpartition(floors_s, FEW)[:FEW], context)
        slowest_s = few.time_s(context, uplinks).min(axis=1).max(initial=0.0)
        pool = pool.narrowed(np.flatnonzero(floors_s <= slowest_s * (1 + ROUNDING)), context)
    return np.asarray(pool.time_s(context, uplinks).min(axis=1, initial=np.inf), dtype=np.float64)
