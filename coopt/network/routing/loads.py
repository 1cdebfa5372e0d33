"""How many flows each link carries, the worst of them, and what no routing can undercut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.network.routing.layers import Flows, Ints, TwoLayer


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """Flows on the links between two layers.

    Parameters
    ----------
    links
        Parallel links of each bundle, shape (leaves, cores).
    up, down
        Flows on each bundle, from leaf to core and back; shape (leaves, cores), or (slices, leaves, cores) for
        several equal networks side by side.
    """

    links: Ints
    up: Ints
    down: Ints

    @property
    def alpha(self) -> float:
        """Flows per link on the worst bundle; 0 without flows."""
        per_link = np.maximum(self.up, self.down) / np.maximum(self.links, 1)
        return float(per_link.max(initial=0.0))


def link_loads(clos: TwoLayer, flows: Flows, cores: Ints) -> Loads:
    """Flows on every bundle when flow f takes `cores[f]`.

    Parameters
    ----------
    cores
        Core of each flow, -1 for a flow inside its leaf; shape (flows,).
    """
    out = np.flatnonzero(cores >= 0)
    shape = clos.links.shape
    up = np.bincount(flows.src[out] * clos.cores + cores[out], minlength=clos.links.size).reshape(shape)
    down = np.bincount(flows.dst[out] * clos.cores + cores[out], minlength=clos.links.size).reshape(shape)
    return Loads(links=clos.links, up=up, down=down)


def degrees(leaves: int, flows: Flows) -> Ints:
    """Flows that leave each leaf and flows that enter it, not counting those inside; shape (2, leaves)."""
    out = flows.between
    return np.stack([np.bincount(ends[out], minlength=leaves) for ends in (flows.src, flows.dst)])


def lower_bound(clos: TwoLayer, flows: Flows) -> float:
    r"""The alpha that no routing undercuts, by whole flows out of and into each leaf.

    .. math:: \min \{ t : \sum_m \lfloor t \, c_{im} \rfloor \ge \deg_i \ \forall i \}

    which is ceil(degree / cores) / c where all cores have c links to every leaf.
    """
    return least_level(clos, degrees(clos.leaves, flows), copies=1) / clos.unit


def least_level(clos: TwoLayer, degree: Ints, *, copies: int) -> int:
    """The least load per link, in 1/unit, at which every leaf's bundles hold its flows.

    Parameters
    ----------
    degree
        Flows out of and into each leaf, shape (2, leaves).
    copies
        Equal networks side by side among which the flows of a leaf are spread.
    """
    most = degree.max(axis=0, initial=0)
    steps = np.where(clos.steps > 0, clos.steps, np.iinfo(np.int64).max)
    low, high = np.zeros(clos.leaves, dtype=np.int64), most * clos.unit
    while (low < high).any():
        middle = (low + high) // 2
        enough = copies * (middle[:, None] // steps).sum(axis=1) >= most
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle + 1)
    return int(high.max(initial=0))
