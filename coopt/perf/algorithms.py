"""Which algorithm each kind of traffic of a mapping runs by: what the time of `iteration` supposes, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import Overlaps, Reciprocals
from coopt.perf.collectives import GRADIENTS
from coopt.perf.mapping import Mappings, Placements, expert_ranks

Extent = tuple[int, int]


def algorithm_names(
    workload: Workload, gpu: Gpu, mapping: Mappings, placement: Placements, overlaps: Overlaps, r: Reciprocals
) -> dict[str, str]:
    """The algorithm of each kind of traffic whose groups have several ranks (docs/model.md, Collectives).

    Nothing where all goes level by level, which leaves no choice.

    Parameters
    ----------
    mapping, placement, overlaps
        One row each.
    r
        What the network gives that row (s/byte).
    """
    if workload.options.collectives == "levels":
        return {}
    left, found = overlaps.left(r), {}
    for kind, (x, y) in _extents(workload, mapping, placement).items():
        faster = bool(np.any(np.asarray(getattr(left, kind)) < np.asarray(getattr(r, kind)) * (1 - 1e-12)))
        if x * y > 1:
            at_once = x > 1 and y > 1 and faster
            found[kind] = _name(workload, gpu, kind, (x, y), _sums(kind, mapping), at_once)
    return found


def _name(workload: Workload, gpu: Gpu, kind: str, ends: Extent, sums: bool, at_once: bool) -> str:
    (x, y), how, own = ends, workload.options.collectives, gpu.efficiency
    if kind == "ep":
        return "exchange on both levels at once" if at_once else "exchange"
    if at_once:
        return "ring through all ranks"
    if sums and y == 1 and (own.hb_reduce or 0.0) > own.hb:
        return "switches of the HB domain"
    if sums and y > 1 and how == "in-network" and kind in GRADIENTS:
        return "switches of the network"
    trees = 2 * (x - 1).bit_length() + 2 * (y - 1).bit_length()
    return "trees" if trees < x - 1 + y - 1 else "rings"


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
