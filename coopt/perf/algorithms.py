"""Which algorithm each kind of traffic of a mapping runs by: what the time of `iteration` supposes, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import Reciprocals, Ways
from coopt.perf.collectives import GRADIENTS, steps
from coopt.perf.mapping import Mappings, Placements, expert_ranks
from coopt.perf.ways import EXCHANGE, HALVING, RINGS, SWITCHES

Extent = tuple[int, int]


def algorithm_names(
    workload: Workload, gpu: Gpu, mapping: Mappings, placement: Placements, ways: Ways, r: Reciprocals
) -> dict[str, str]:
    """The algorithm of each kind of traffic whose groups have several ranks (docs/model.md, Collectives).

    Nothing where all goes level by level, which leaves no choice.

    Parameters
    ----------
    mapping, placement, ways
        One row each.
    r
        What the network gives that row (s/byte).
    """
    if workload.options.collectives == "levels":
        return {}
    found = {}
    for kind, (x, y) in _extents(workload, mapping, placement).items():
        if x * y > 1:
            taken = _taken(ways, kind, r) if y > 1 else None
            found[kind] = _name(workload, gpu, kind, (x, y), _sums(kind, mapping), taken)
    return found


def _taken(ways: Ways, kind: str, r: Reciprocals) -> str | None:
    """The fastest way of a kind; None where its row has no choice."""
    if kind not in ways.named:
        return None
    left = {one.name: float(np.ravel(one.left(r.by(kind, one.flows)))[0]) for one in ways.named[kind]}
    return min(left, key=lambda name: left[name] * (1 if name == RINGS else 1 + 1e-12))


def _name(workload: Workload, gpu: Gpu, kind: str, ends: Extent, sums: bool, taken: str | None) -> str:
    """In the words of a plan, where `taken` is the way between domains."""
    (x, y), options, own = ends, workload.options, gpu.efficiency
    if kind == "ep":
        return taken or EXCHANGE
    if taken not in (None, RINGS):
        return str(taken)
    if sums and y == 1 and (own.hb_reduce or 0.0) > own.hb:
        return "switches of the HB domain"
    if sums and y > 1 and options.collectives == "in-network" and kind in GRADIENTS:
        return SWITCHES
    sized = kind in GRADIENTS or (kind == "tp" and not (options.expert_tp and workload.model.experts))
    if sized:
        return RINGS if y > 1 or x == 2 else HALVING
    return "trees" if steps(x, y) < x - 1 + y - 1 else RINGS


def _sums(kind: str, mapping: Mappings) -> bool:
    """Whether a kind adds up what others scatter and gather."""
    if kind == "tp":
        return not mapping.sequence_parallel[0]
    return kind in GRADIENTS and bool(mapping.zero[0] == 0)


def _extents(workload: Workload, mapping: Mappings, placement: Placements) -> dict[str, Extent]:
    """Ranks of each kind's groups inside a domain, and domains that they lie in."""
    inside, replicas = placement, placement.dp * placement.cp
    found: dict[str, tuple[Any, Any]] = {
        "tp": (inside.tp, mapping.tp // inside.tp),
        "cp": (inside.cp, mapping.cp // inside.cp),
        "dp": (replicas, inside.dp_across(mapping) * (mapping.cp // inside.cp)),
    }
    if workload.model.experts:
        within, across, *copies = expert_ranks(mapping, inside, expert_tp=workload.options.expert_tp)
        found |= {"ep": (within, across), "edp": (copies[0], copies[1])}
    return {kind: (int(x[0]), int(y[0])) for kind, (x, y) in found.items()}
