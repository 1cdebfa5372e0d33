"""Flows taken apart into paths."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from coopt.perf.mapping import Floats, Ints
from coopt.plan.direct_links import LinkRoute

DUST = 1e-7  # share of what a pair sends that may be left to rounding


def routes(flows: Floats, sends: Floats) -> tuple[LinkRoute, ...]:
    """The paths of flows (source, from, to) that carry what domains send to each other (D, D), with their shares."""
    found = []
    for source in range(len(sends)):
        left = flows[source].copy()
        for target in np.flatnonzero(sends[source]).tolist():
            parts = list(_peeled(left, source, target, float(sends[source, target])))
            whole = sum(amount for _, amount in parts)
            found += [LinkRoute(path=path, share=amount / whole) for path, amount in parts]
    return tuple(found)


def _peeled(left: Floats, source: int, target: int, sent: float) -> Iterator[tuple[tuple[int, ...], float]]:
    """Paths to one target, taken out of the flows that are left; at least one."""
    missing, floor = sent, DUST * sent
    while missing > floor:
        path = _shortest(left, source, target, floor if missing < sent else 0.0)
        if path is None:
            assert missing < sent, "no flow leads to a target"
            return
        steps = (np.array(path[:-1]), np.array(path[1:]))
        amount = min(float(left[steps].min()), missing)
        left[steps] -= amount
        missing -= amount
        yield path, amount


def _shortest(left: Floats, source: int, target: int, floor: float) -> tuple[int, ...] | None:
    """The path of fewest hops over flows above a floor."""
    came: dict[int, int] = {source: source}
    queue = deque([source])
    while queue and target not in came:
        here = queue.popleft()
        for there in np.flatnonzero(left[here] > floor).tolist():
            if there not in came:
                came[there] = here
                queue.append(there)
    if target not in came:
        return None
    path = [target]
    while path[-1] != source:
        path.append(came[path[-1]])
    return tuple(reversed(path))


def paces_on(links: Ints, sends: Floats, found: tuple[LinkRoute, ...]) -> float:
    """The pace at which the busiest link is full."""
    load = np.zeros(links.shape)
    for route in found:
        steps = (np.array(route.path[:-1]), np.array(route.path[1:]))
        load[steps] += route.share * sends[route.path[0], route.path[-1]]
    used = load > 0
    return float((links[used] / load[used]).min())
