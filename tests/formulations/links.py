"""Direct links by plain enumeration, and small problems to try it on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, pairwise, permutations
from typing import Any

import highspy
import numpy as np

from formulations.direct_data import DirectData, on_orbits


def whole(**changes: Any) -> dict[str, Any]:
    """Three domains, of which the first sends 2 to the second and 1 to the third; nobody else sends."""
    demand = np.zeros((1, 3, 3))
    demand[0, 0, 1], demand[0, 0, 2] = 2.0, 1.0
    return {"ports": np.array([4, 3, 2]), "demand": demand, "weight": np.array([[1.0]])} | changes


def without_symmetry(problem: dict[str, Any]) -> DirectData:
    """The problem, each orbit with one member."""
    return on_orbits(np.arange(len(problem["ports"]))[None, :], **problem)


def enumerated(problem: dict[str, Any]) -> int | None:
    """The least number of links with which all phases are in time, over all ways to set links."""
    ports, pairs = problem["ports"], list(combinations(range(len(problem["ports"])), 2))
    for total in range(int(ports.sum()) // 2 + 1):
        if any(_in_time(problem, dict(zip(pairs, counts, strict=True))) for counts in ways(ports, pairs, total)):
            return total
    return None


def ways(ports: Any, pairs: list[tuple[int, int]], total: int) -> Iterator[tuple[int, ...]]:
    """All ways to spread links over pairs of domains within their ports."""
    if not pairs:
        if total == 0:
            yield ()
        return
    (i, j), rest = pairs[0], pairs[1:]
    for count in range(min(total, int(ports[i]), int(ports[j])) + 1):
        left = ports.copy()
        left[[i, j]] -= count
        for others in ways(left, rest, total - count):
            yield (count, *others)


def _in_time(problem: dict[str, Any], links: dict[tuple[int, int], int]) -> bool:
    """Whether all phases fit into the time: on links that their ends could share out, and then on paths."""
    return all(
        _fit(problem, [pace(demand, links) for demand in problem["demand"]]) for pace in (pace_of_ends, highest_pace)
    )


def _fit(problem: dict[str, Any], paces: list[float]) -> bool:
    for weights in problem["weight"]:
        if any(w > 0 and pace <= 0 for w, pace in zip(weights, paces, strict=True)):
            return False
        if sum(w / pace for w, pace in zip(weights, paces, strict=True) if w > 0) > 1 + 1e-7:
            return False
    return True


def pace_of_ends(demand: Any, links: dict[tuple[int, int], int]) -> float:
    """The multiple of the demands that no domain can exceed with the links it has; no paths are asked for."""
    sent = np.maximum(demand.sum(axis=0), demand.sum(axis=1))
    degree = np.array([sum(n for pair, n in links.items() if v in pair) for v in range(len(demand))])
    return float((degree[sent > 0] / sent[sent > 0]).min(initial=math.inf))


def highest_pace(demand: Any, links: dict[tuple[int, int], int]) -> float:
    """The largest multiple of the demands that paths carry."""
    count = len(demand)
    arcs = [(i, j) for i, j in permutations(range(count), 2) if links[min(i, j), max(i, j)]]
    degree = [sum(n for pair, n in links.items() if v in pair) for v in range(count)]
    if any(degree[v] == 0 for v in range(count) if demand[v].any() or demand[:, v].any()):
        return 0.0
    h = highspy.Highs()
    h.setOptionValue("output_flag", False)
    h.setOptionValue("presolve", "off")
    h.setOptionValue("threads", 1)  # HiGHS refuses another number than the first one of a process
    pace = h.addVariable(lb=0.0, ub=1e6, obj=-1.0)
    on: dict[tuple[int, int], list[Any]] = {arc: [] for arc in arcs}
    for s, t in zip(*np.nonzero(demand), strict=True):
        carried = []
        for path in _paths(count, int(s), int(t)):
            steps = list(pairwise(path))
            if all(step in on for step in steps):
                carried.append(h.addVariable(lb=0.0, ub=1e6))
                for step in steps:
                    on[step].append(carried[-1])
        if not carried:
            return 0.0
        h.addConstr(sum(carried) == float(demand[s, t]) * pace)
    for (i, j), flows in on.items():
        if flows:
            h.addConstr(sum(flows) <= links[min(i, j), max(i, j)])
    h.run()
    return float(h.getSolution().col_value[0])


def _paths(count: int, s: int, t: int) -> Iterator[tuple[int, ...]]:
    others = [v for v in range(count) if v not in (s, t)]
    for length in range(len(others) + 1):
        for middle in permutations(others, length):
            yield (s, *middle, t)
