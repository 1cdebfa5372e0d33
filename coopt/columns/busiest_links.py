"""Number of flows on the busiest uplink of a switch where each flow takes a single path;
docs/loads.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from coopt.instance.numerics import REORDERED
from coopt.network.family import common_links
from coopt.perf.mapping import Floats, Ints, distinct_rows

SURE = 0.95
"""Probability with which flows on random paths take no longer than they are charged for."""


@cache
def serving_uplinks(joined_leaves: int, spine_ports: int, most_up: int, at_random: bool) -> Floats:
    """Effective number of uplinks for each number from 0 up to `most_up`: the minimum over all
    larger numbers, whose spines differ.

    This makes time non-increasing in uplinks. It is exact where no larger number has fewer common
    links.
    """
    if not joined_leaves:
        return np.zeros(1)
    uplinks = np.arange(1, most_up + 1)
    common = common_links(uplinks, -(-joined_leaves * uplinks // spine_ports), at_random=at_random)
    return np.concatenate([[0.0], np.minimum.accumulate(common[::-1])[::-1]])


def whole_flows(count: Floats, links: Any) -> Floats:
    """Number of flows on the busiest link where each flow has one path and paths are as even as
    possible.
    """
    # a quotient that rounding lifts above a whole number would add a flow
    return np.asarray(np.ceil(count / links * (1 - REORDERED)))


def flows_at_random(count: Floats, links: Any, switches: Any) -> Floats:
    """Number of flows on the busiest link, not exceeded with probability `SURE`, where each flow
    takes a random path.
    """
    rates, rate = _numbered(
        np.asarray(links, dtype=np.float64)
    )  # few differ before they are spread over all counts
    columns = np.broadcast_arrays(
        np.rint(count).astype(np.int64), rate, np.asarray(switches, dtype=np.int64)
    )
    (counts, links_of, switches_of), position = distinct_rows(
        *(column.ravel() for column in columns)
    )
    cases = zip(counts.tolist(), rates[links_of].tolist(), switches_of.tolist(), strict=True)
    crowds = np.array([crowd(*case) for case in cases], dtype=np.float64)
    return crowds[position].reshape(columns[0].shape)


def _numbered(values: Floats) -> tuple[Floats, Ints]:
    """Return distinct values in rising order, and the index of each value among them (the value
    itself where all are integers).
    """
    whole = np.rint(values).astype(np.int64)
    if (whole == values).all():
        return np.arange(whole.max(initial=0) + 1.0), whole
    distinct_values, number = np.unique(values, return_inverse=True)
    return distinct_values, number.reshape(values.shape)


@cache
def crowd(count: int, links: float, switches: int) -> int:
    r"""Smallest k such that, with probability `SURE`, no flow shares its link with more than k - 1
    others.

    Each of n flows out of a switch takes one of u links at random; uplinks and downlinks both
    count:

    .. math:: 2 \, M n \, P\bigl(\mathrm{Bin}(n - 1, 1/u) \ge k\bigr) \le 1 - 0.95

    Parameters
    ----------
    switches
        M: number of switches with as many flows.
    """
    # with one link all flows are on it
    if count <= 1 or links <= 1:
        return count
    sharers = np.arange(count)
    share = 1.0 / links
    steps = np.log((count - sharers[1:]) / sharers[1:]) + np.log(share / (1 - share))
    mass = np.exp((count - 1) * np.log1p(-share) + np.concatenate([[0.0], np.cumsum(steps)]))
    # a flow is on its link itself: more than k there are at least k others
    beyond = np.cumsum(mass[::-1])[::-1]  # P(Bin >= k) for k = 0 .. n - 1
    rare = beyond * 2 * switches * count <= 1 - SURE
    return int(np.argmax(rare)) if rare.any() else count
