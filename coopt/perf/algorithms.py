r"""Algorithms of collectives over y HB domains with x ranks each; the fastest is charged.

Half of an all-reduce, an all-gather or a reduce-scatter of D bytes takes, inside the domains and
then between them,

.. math:: \frac{x-1}{x} \frac{D}{e_{nv} F} + w \frac{D}{x} \frac{r}{e_{ib}} + \lambda + \alpha\,n

with w = (y-1)/y. Inside a domain all links are equally fast, so that ceil(log2 x) steps suffice.
Between domains a ring takes y - 1 steps. Halving and doubling takes ceil(log2 y) steps with as many
bytes, at distances 1, 2, 4, ..., which load other links (`coopt/columns/algorithm_loads.py`). Two
binary trees take as many steps, with w = 1. Small messages are therefore bound by the number of
steps, and large ones by the bytes on the busiest link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.collectives import (
    GRADIENTS,
    AffineSeconds,
    Algorithm,
    Algorithms,
    LinkRates,
    Reciprocals,
    available_algorithms,
    min_steps,
    steps,
    switched_share,
    tree_levels,
)
from coopt.perf.exchanges import Visits, forwards_at_once, started_exchange, visits_of
from coopt.perf.mapping import (
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    expert_ranks,
    split_copies,
)
from coopt.perf.traffic import ReplicaExchange, Replicas, StageTraffic

Extent = tuple[int, int]

RINGS = "rings"
ONE_RING = "ring through all ranks"
HALVING = "halving and doubling"
TREES = "double binary tree"
SWITCHES = "switches of the network"
EXCHANGE = "exchange"
EXCHANGE_AT_ONCE = "exchange on both levels at once"
FEW = 3  # domains, of which none has a parent in both trees and two children


def algorithm_names(
    workload: Workload,
    gpu: Gpu,
    mapping: Mappings,
    placement: Placements,
    algorithms: Algorithms,
    r: Reciprocals,
) -> dict[str, str]:
    """Name the algorithm of each kind of traffic whose groups have several ranks (docs/model.md,
    Collectives).

    The result is empty where `collectives = "levels"`, which leaves no choice.

    Parameters
    ----------
    mapping, placement, algorithms
        One row each.
    r
        Seconds per byte that the network offers to that row.
    """
    if workload.options.collectives == "levels":
        return {}
    names, copies = {}, workload.options.dp_replicate
    for kind, (x, y) in _extents(workload, mapping, placement).items():
        if x * y > 1:
            algorithm = _fastest_algorithm(algorithms, kind, r) if y > 1 else None
            names[kind] = _name(
                workload, gpu, kind, (x, y), _sums(kind, mapping, copies), algorithm
            )
    return names


def _fastest_algorithm(algorithms: Algorithms, kind: str, r: Reciprocals) -> str | None:
    """Return the name of the fastest algorithm of a kind, or None where its row has no choice."""
    if kind not in algorithms.by_kind:
        return None
    s_byte = {
        algorithm.name: float(np.ravel(algorithm.charged(r.by(kind, algorithm.flows)))[0])
        for algorithm in algorithms.by_kind[kind]
    }
    # keep rings where another algorithm is faster only by rounding
    return min(s_byte, key=lambda name: s_byte[name] * (1 if name == RINGS else 1 + 1e-12))


def _name(
    workload: Workload, gpu: Gpu, kind: str, ends: Extent, sums: bool, algorithm: str | None
) -> str:
    """Return the algorithm as plans name it; `algorithm` is the one chosen between domains."""
    (x, y), options, efficiency = ends, workload.options, gpu.efficiency
    if kind == "ep":
        return algorithm or EXCHANGE
    if algorithm not in (None, RINGS):
        return str(algorithm)
    if sums and y == 1 and (efficiency.hb_reduce or 0.0) > efficiency.hb:
        return "switches of the HB domain"
    if sums and y > 1 and options.collectives == "in-network" and kind in GRADIENTS:
        return SWITCHES
    sized = kind in GRADIENTS or (
        kind == "tp" and not (options.expert_tp and workload.model.experts)
    )
    if sized:
        return RINGS if y > 1 or x == 2 else HALVING
    return "trees" if steps(x, y) < x - 1 + y - 1 else RINGS


def _sums(kind: str, mapping: Mappings, copies: int) -> bool:
    """Whether the collectives of a kind are all-reduces rather than pairs of scatter and gather."""
    if kind == "tp":
        return not mapping.sequence_parallel[0]
    return kind in GRADIENTS and (copies > 1 or bool(mapping.zero[0] == 0))


def _extents(workload: Workload, mapping: Mappings, placement: Placements) -> dict[str, Extent]:
    """Return, for each kind, the ranks of a group inside one domain and the number of domains it
    spans.
    """
    inside, replicas = placement, placement.dp * placement.cp
    copies, domains = workload.options.dp_replicate, inside.dp_across(mapping)
    extents: dict[str, tuple[Any, Any]] = {
        "tp": (inside.tp, mapping.tp // inside.tp),
        "cp": (inside.cp, mapping.cp // inside.cp),
        "dp": _between(replicas, domains * (mapping.cp // inside.cp), copies),
    }
    if workload.model.experts:
        within, across, *holders = expert_ranks(
            mapping, inside, expert_tp=workload.options.expert_tp
        )
        extents |= {"ep": (within, across), "edp": _between(holders[0], holders[1], copies)}
    return {kind: (int(x[0]), int(y[0])) for kind, (x, y) in extents.items()}


def _between(inside: Any, across: Any, copies: int) -> tuple[Any, Any]:
    """Ranks in a domain, and domains, of what gradients cross domains among."""
    return split_copies(inside, across, copies)[1] if copies > 1 else (inside, across)


def ring_algorithms(
    links: LinkRates, x: Ints, y: Ints, share: Any = 1.0, filled_share: Any = 1.0
) -> tuple[Algorithm, ...]:
    r"""A ring per level, or a single ring through all n = x·y ranks where that is faster.

    Both have the same start-up time. In the single ring every rank forwards (n-1)/n of the data,
    over the links inside its domain and over the NICs of all the domain's members at the same time,

    .. math:: \frac{n-1}{n} D \max\left(\frac{1}{e_{nv} F}, \frac{r}{x\,e_{ib}}\right)

    which is less than the time of `gather` while r < n·q, with q = e_ib/(e_nv F).

    Parameters
    ----------
    share
        Bytes sent between domains relative to a ring, as in `switched_share`.
    filled_share
        Ranks in the domain with the fewest, divided by x: its NICs send correspondingly more.
    """
    on_both_levels = (x > 1) & (y > 1)
    if not np.any(on_both_levels):
        return ()
    even, apart = filled_share * links.rail / links.hb_byte_s, np.maximum(y - 1, 1) * share
    start, floor = (
        np.where(on_both_levels, 0.0, np.inf),
        np.broadcast_to(even / share, on_both_levels.shape),
    )
    single_ring = Algorithm(
        ONE_RING, "ring", floor, (y - 1 / x) / apart, (x - 1) * y / apart * even, start
    )
    return Algorithm.plain(RINGS, np.zeros(len(start))), single_ring


def sized_algorithms(
    links: LinkRates,
    x: Ints,
    y: Ints,
    starts: Floats,
    share: Any = 1.0,
    trees: Bools | None = None,
    filled_share: Any = 1.0,
) -> tuple[Algorithm, ...]:
    """All algorithms for messages whose size is known.

    Parameters
    ----------
    starts
        Number of collectives per byte that `gather` sends between domains.
    share, filled_share
        As in `ring_algorithms`; where the share is not 1, the switches of the network sum the data.
    trees
        Rows whose collectives are all-reduces, which can run on trees.
    """
    # `gather` already charges the minimum number of steps
    fewest, crosses = min_steps(x, y), y > 1
    share = np.broadcast_to(np.asarray(share, dtype=np.float64), y.shape)

    def start_of(steps: Ints, exists: Bools = crosses) -> Floats:
        """Charge the steps beyond the minimum per byte; infinite where a row cannot use the
        algorithm.
        """
        return np.where(
            exists, links.step_s * (steps - fewest) * np.where(crosses, starts, 0.0), np.inf
        )

    nothing = np.zeros(y.shape)
    rounds = np.where(share == 1, y - 1, tree_levels(y))
    algorithms = [Algorithm.plain(RINGS, start_of(tree_levels(x) + rounds, np.ones_like(crosses)))]
    around = ring_algorithms(links, x, y, share, filled_share)[1:]
    algorithms += [
        replace(algorithm, start=start_of(x * y - 1, np.isfinite(algorithm.start)))
        for algorithm in around
    ]
    algorithms.append(
        Algorithm(HALVING, "halving", nothing, 1 / share, nothing, start_of(fewest, y > 2))
    )
    if trees is not None and np.any(trees & (y > FEW)):
        slope, even = y / np.maximum(y - 1, 1) / share, filled_share * links.rail / links.hb_byte_s
        floor = np.where(x > 1, even * slope, 0.0)
        start = start_of(x - 1 + tree_levels(y), trees & (y > FEW))
        algorithms.append(Algorithm(TREES, "trees", floor, slope, (x - 1) * even * slope, start))
    return available_algorithms(algorithms)


def exchange_algorithms(
    links: LinkRates, x: Ints, y: Ints, visits: Visits
) -> tuple[Algorithm, ...]:
    """An all-to-all level by level, or with forwarding inside domains overlapped with the rails."""
    on_both_levels = (x > 1) & (y > 1)
    if not np.any(on_both_levels):
        return ()
    # both have the same start-up time, which `all_to_all` charges
    exchange = started_exchange(links, 1.0, x, y, visits)
    saved = np.where(
        on_both_levels, exchange.fixed / np.where(on_both_levels, exchange.ep, 1.0), 0.0
    )
    nothing = np.zeros_like(saved)
    at_once = Algorithm(
        EXCHANGE_AT_ONCE,
        "ring",
        nothing,
        np.ones_like(saved),
        saved,
        np.where(on_both_levels, nothing, np.inf),
    )
    return Algorithm.plain(EXCHANGE, nothing), at_once


def starts_per_byte(collectives: Any, exchange: AffineSeconds, kind: str) -> Floats:
    """Collectives per byte sent between domains (in bytes at the full rate of a rail)."""
    size_bytes = np.asarray(getattr(exchange, kind), dtype=np.float64)
    return np.where(size_bytes > 0, collectives / np.where(size_bytes > 0, size_bytes, 1.0), 0.0)


def algorithms_of(workload: Workload, traffic: StageTraffic, replicas: Replicas) -> Algorithms:
    """Return the algorithms available to the collectives of each kind of traffic."""
    options, m, inside, links = (
        workload.options,
        traffic.mappings,
        traffic.placements,
        traffic.links,
    )
    if options.collectives == "levels":
        return Algorithms()
    within, across, *holders = expert_ranks(m, inside, expert_tp=options.expert_tp)
    copies = options.dp_replicate
    ranks, domains = inside.dp * inside.cp, inside.dp_across(m) * (m.cp // inside.cp)
    mixed, summed, filled_share = (
        bool(workload.model.experts),
        (m.zero == 0) | (copies > 1),
        inside.dp_at_least / inside.dp,
    )

    def gradients(x: Ints, y: Ints, exchange: ReplicaExchange, kind: str) -> tuple[Algorithm, ...]:
        x, y = _between(x, y, copies)
        share = switched_share(y, summed) if links.rail_reduces else 1.0
        starts = starts_per_byte(replicas.exchanges, exchange.crossing, kind)
        return sized_algorithms(links, x, y, starts, share, summed, filled_share)

    over_tp = inside.tp, m.tp // inside.tp
    gather_starts = starts_per_byte(1.0, traffic.tp_gather, "tp")
    return Algorithms(
        tp=(
            sized_algorithms(links, *over_tp, gather_starts)
            if traffic.tp_is_sized
            else ring_algorithms(links, *over_tp)
        ),
        cp=ring_algorithms(links, inside.cp, m.cp // inside.cp),
        dp=gradients(ranks, domains, replicas.shared_exchange(), "dp"),
        ep=(
            exchange_algorithms(links, within, across, visits_of(workload))
            if mixed and forwards_at_once(workload)
            else ()
        ),
        edp=gradients(holders[0], holders[1], replicas.expert_exchange(), "edp") if mixed else (),
    )
