"""Flows on the busiest of the links that lead up from a switch, where each flow takes a single path; docs/loads.md."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from coopt.network.family import common_links
from coopt.perf.mapping import Floats, distinct_rows

SURE = 0.95
"""The probability with which flows on random paths take no longer than they are charged for."""


@cache
def serving_uplinks(joined_leaves: int, spine_ports: int, most_up: int, at_random: bool) -> Floats:
    """What each number of uplinks is worth, from 0 up to the most: no more than any larger one, which has other spines.

    So more uplinks are never slower. It is exact where no larger number has fewer in common.
    """
    if not joined_leaves:
        return np.zeros(1)
    uplinks = np.arange(1, most_up + 1)
    common = common_links(uplinks, -(-joined_leaves * uplinks // spine_ports), at_random=at_random)
    return np.concatenate([[0.0], np.minimum.accumulate(common[::-1])[::-1]])


def whole_flows(count: Floats, links: Any) -> Floats:
    """Flows on the busiest link where each has one path and paths are as even as they can be."""
    # a quotient that rounding lifts above a whole number would add a flow
    return np.asarray(np.ceil(count / links * (1 - 1e-12)))


def flows_at_random(count: Floats, links: Any, switches: Any) -> Floats:
    """Flows on the busiest link, with probability `SURE` no more, where each takes a path at random."""
    values, numbers = [], []
    for part in (count, links, switches):  # few differ, and these before they are spread over all uplinks
        distinct_values, number = np.unique(part, return_inverse=True)
        values.append(distinct_values)
        numbers.append(number.reshape(np.shape(part)))
    several = np.broadcast_arrays(*numbers)
    cases, position = distinct_rows(*(number.ravel() for number in several))
    distinct = zip(
        *(distinct_values[number].tolist() for distinct_values, number in zip(values, cases, strict=True)), strict=True
    )
    crowds = np.array([crowd(round(n), float(u), int(m)) for n, u, m in distinct], dtype=np.float64)
    return np.asarray(crowds[position].reshape(several[0].shape), dtype=np.float64)


@cache
def crowd(count: int, links: float, switches: int) -> int:
    r"""The least k so that, with probability `SURE`, none of the flows shares its link with more than k - 1 others.

    Each of n flows out of a switch takes one of u links at random, and up links as well as down ones count:

    .. math:: 2 \, M n \, P\bigl(\mathrm{Bin}(n - 1, 1/u) \ge k\bigr) \le 1 - 0.95

    Parameters
    ----------
    switches
        M: how many have as many flows.
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
