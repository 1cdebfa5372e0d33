"""Cores by bipartite edge colouring: no routing is better where all cores join all leaves alike."""

from __future__ import annotations

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.routing.euler import split_classes
from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths
from coopt.network.routing.recolour import NONE, completed


def coloured_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow so that every bundle of a leaf with d flows carries at most ceil(d / cores) of them.

    Flows are edges from source to destination leaf. A leaf with more flows than cores counts as several vertices of
    `cores` edges at most, so that colours are cores. Edges are split into halves until a class is a matching; the
    smallest classes beyond the number of cores are dissolved into the others.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When a working core has not the same number of links to every leaf in use; failed cores are left out.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    out = flows.between
    if out.size:
        working = working_cores(clos, flows)
        if working is None:
            raise InstanceError(
                "links: their number differs between leaves and cores; "
                "needs equally many from every leaf to every working core, or another algorithm"
            )
        left, right = (_vertices(ends[out], working.size) for ends in (flows.src, flows.dst))
        cores[out] = working[edge_colours(left, right, working.size)]
    return cores


def working_cores(clos: TwoLayer, flows: Flows) -> Ints | None:
    """The cores that join all leaves in use, None where they do not join them by equally many links."""
    used = np.union1d(flows.src[flows.between], flows.dst[flows.between])
    links = clos.links[used]
    working = np.flatnonzero(links.any(axis=0))
    return working if np.unique(links[:, working]).size <= 1 else None


def edge_colours(left: Ints, right: Ints, colours: int) -> Ints:
    """A proper colouring of a bipartite multigraph; no vertex has more edges than there are colours.

    Parameters
    ----------
    left, right
        Vertex of each edge, numbered from 0 on either side; shape (edges,).

    Returns
    -------
    Colour of each edge, from 0; shape (edges,).
    """
    rounds = (colours - 1).bit_length()
    classes = split_classes(left, right, rounds)
    if colours == 1 << rounds:
        return classes
    largest_first = np.argsort(-np.bincount(classes, minlength=1 << rounds), kind="stable")
    renamed = np.full(1 << rounds, NONE, dtype=np.int64)
    renamed[largest_first[:colours]] = np.arange(colours)
    return completed(left, right, colours, renamed[classes])


def _vertices(leaf: Ints, most: int) -> Ints:
    """The flows of each leaf in turn in vertices of at most `most`, numbered from 0."""
    order = np.argsort(leaf, kind="stable")
    ordered = leaf[order]
    first = np.searchsorted(ordered, ordered)
    chunk = np.empty(leaf.size, dtype=np.int64)
    chunk[order] = (np.arange(leaf.size) - first) // most
    vertex: Ints = np.unique(leaf * (leaf.size // most + 1) + chunk, return_inverse=True)[1]
    return vertex
