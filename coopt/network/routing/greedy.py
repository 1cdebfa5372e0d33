"""One flow after the other onto the core that is worst off the least."""

from __future__ import annotations

import numpy as np

from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths
from coopt.network.routing.loads import degrees

NO_LINK = np.iinfo(np.int64).max // 2


def greedy_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow: the first that keeps the busier of the two bundles, up and down, least busy.

    Leaves with most flows go first. At most twice the optimum where all working cores join all leaves by equally many
    links: of D - 1 flows at either end, fewer than `cores` bundles can hold 2 ceil(D / cores) or more
    (Cohen et al., arXiv 2503.05324).

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    steps = list(clos.steps)
    level = np.where(clos.steps > 0, clos.steps, NO_LINK)
    up, down = list(level.copy()), list(level.copy())
    worse = np.empty(clos.cores, dtype=np.int64)
    order = _order(clos, flows)
    chosen = []
    for s, d in zip(flows.src[order].tolist(), flows.dst[order].tolist(), strict=True):
        above, below = up[s], down[d]
        core = np.maximum(above, below, out=worse).argmin()
        above[core] += steps[s][core]
        below[core] += steps[d][core]
        chosen.append(core)
    cores[order] = chosen
    return cores


def _order(clos: TwoLayer, flows: Flows) -> Ints:
    """Flows by the fullest leaf and direction they belong to; ties: up before down, then leaf, then flow."""
    busiest_first = np.argsort(-degrees(clos.leaves, flows).ravel(), kind="stable")
    rank = np.empty(2 * clos.leaves, dtype=np.int64)
    rank[busiest_first] = np.arange(2 * clos.leaves)
    out = flows.between
    turn = np.minimum(rank[flows.src[out]], rank[clos.leaves + flows.dst[out]])
    return out[np.argsort(turn, kind="stable")]
