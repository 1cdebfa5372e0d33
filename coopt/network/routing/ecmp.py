"""Random cores, as hashing gives them."""

from __future__ import annotations

import numpy as np

from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths


def hashed_cores(clos: TwoLayer, flows: Flows, seed: int = 0) -> Ints:
    """A core for each flow, drawn with the odds of the source leaf's links to cores that reach the destination.

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
    src, dst = flows.src[flows.between], flows.dst[flows.between]
    odds = np.cumsum(np.where(clos.links[dst] > 0, clos.links[src], 0), axis=1)
    if src.size:
        drawn = np.random.default_rng(seed).integers(0, odds[:, -1])
        cores[flows.between] = (odds <= drawn[:, None]).sum(axis=1)
    return cores
