"""Direct links by plain enumeration, and small problems to try it on."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise, permutations
from typing import Any

import highspy
import numpy as np

from formulations.links_data import LinksData, on_orbits


def whole(**changes: Any) -> dict[str, Any]:
    """Three domains, of which the first sends 2 to the second and 1 to the third; nobody else sends."""
    demand = np.zeros((1, 3, 3))
    demand[0, 0, 1], demand[0, 0, 2] = 2.0, 1.0
    return {"ports": np.array([4, 3, 2]), "demand": demand, "weight": np.array([[1.0]])} | changes


def without_symmetry(problem: dict[str, Any]) -> LinksData:
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
    ends = np.argwhere(demand).tolist()
    # a row for each arc, whose paths are within its links, then one for each pair of ends, whose paths carry the pace
    row = {arc: n for n, arc in enumerate(arcs)}
    columns = [[(len(arcs) + k, -float(demand[s, t])) for k, (s, t) in enumerate(ends)]]
    for k, (s, t) in enumerate(ends):
        paths = [list(pairwise(path)) for path in _paths(count, s, t)]
        paths = [steps for steps in paths if all(step in row for step in steps)]
        if not paths:
            return 0.0
        columns += [[*((row[step], 1.0) for step in steps), (len(arcs) + k, 1.0)] for steps in paths]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(columns), len(arcs) + len(ends)
    lp.col_cost_ = np.array([-1.0, *[0.0] * (len(columns) - 1)])
    lp.col_lower_, lp.col_upper_ = np.zeros(len(columns)), np.full(len(columns), 1e6)
    capacity = [float(links[min(arc), max(arc)]) for arc in arcs]
    lp.row_lower_ = np.array([*[-np.inf] * len(arcs), *[0.0] * len(ends)])
    lp.row_upper_ = np.array([*capacity, *[0.0] * len(ends)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.cumsum([0, *map(len, columns)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([n for column in columns for n, _ in column], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for column in columns for _, value in column])
    h = highspy.Highs()
    # HiGHS refuses another number of threads than the first one of a thread, which is new here
    for name, setting in (("output_flag", False), ("presolve", "off"), ("threads", 1)):
        h.setOptionValue(name, setting)
    h.passModel(lp)
    with ThreadPoolExecutor(1) as fresh:
        assert fresh.submit(h.run).result() == highspy.HighsStatus.kOk
    return float(h.getSolution().col_value[0])


def _paths(count: int, s: int, t: int) -> Iterator[tuple[int, ...]]:
    others = [v for v in range(count) if v not in (s, t)]
    for length in range(len(others) + 1):
        for middle in permutations(others, length):
            yield (s, *middle, t)
