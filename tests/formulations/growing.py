"""Small clusters that grow, their optimum by plain enumeration, and by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from hypothesis import strategies as st

from coopt.solving.highs import options, solve
from formulations.phased import Equation, PhasedData, build


def one_line(**changes: Any) -> PhasedData:
    """Two leaves, then four; spines of four ports; links, then spines, as items; everything cheaper later."""
    data = PhasedData(
        min_uplinks=np.array([[1, 3]]),
        max_uplinks=np.array([[4, 4]]),
        leaves=np.array([[2, 4]]),
        ports=np.array([[4, 4]]),
        stood=np.array([[0, 2]]),
        trunks=np.array([[0, 1]]),
        fixed=np.array([[[5, 0], [9, 0]]]),
        uplink=np.array([[[2, 0], [4, 0]]]),
        spine=np.array([[[0, 1], [0, 1]]]),
        price=np.array([[10.0, 50.0], [8.0, 40.0]]),
        run=np.array([[0.0, 1.0], [0.0, 1.0]]),
        labour=np.array([0.0, 7.0]),
    )
    return replace(data, **changes)


def model(data: PhasedData, *equations: Equation) -> pyo.ConcreteModel:
    """A model of some equations."""
    return build(data, equations)


def best(data: PhasedData, equations: tuple[Equation, ...]) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    answer = solve(build(data, equations), time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return math.inf if answer.value is None else answer.value


def enumerated(data: PhasedData) -> float:
    """The optimum by trying every line, all uplinks, and every time to buy what is needed."""
    return min((_cost(data, f, u) for f in range(len(data.fixed)) for u in rising(data, f)), default=math.inf)


def rising(data: PhasedData, f: int) -> Iterator[tuple[int, ...]]:
    """All uplinks of the phases that never fall."""
    ranges = [range(int(a), int(b) + 1) for a, b in zip(data.min_uplinks[f], data.max_uplinks[f], strict=True)]
    return (u for u in product(*ranges) if all(a <= b for a, b in pairwise(u)))


def _cost(data: PhasedData, f: int, u: tuple[int, ...]) -> float:
    phases, items = range(len(u)), range(data.price.shape[1])
    spines = [-(-int(data.leaves[f, t]) * u[t] // int(data.ports[f, t])) for t in phases]
    placed = [
        [int(data.fixed[f, t, i] + data.uplink[f, t, i] * u[t] + data.spine[f, t, i] * spines[t]) for i in items]
        for t in phases
    ]
    links = [int(data.stood[f, t]) * (u[t] - u[t - 1]) + int(data.trunks[f, t]) * u[t - 1] for t in phases if t]
    labour = sum(float(rate) * count for rate, count in zip(data.labour[1:], links, strict=True))
    standing = sum(float(data.run[t, i]) * placed[t][i] for t in phases for i in items)
    return labour + standing + sum(_cheapest(data.price[:, i], [row[i] for row in placed]) for i in items)


def _cheapest(price: np.ndarray, placed: list[int]) -> float:
    """The least to pay for an item: what a phase adds is bought in any phase up to it."""
    added = [b - a for a, b in zip([0, *placed], placed, strict=False)]
    times = product(*(range(t + 1) for t in range(len(placed))))
    return min(sum(float(price[when]) * count for when, count in zip(one, added, strict=True)) for one in times)


@st.composite
def clusters(draw: st.DrawFn) -> PhasedData:
    """Random problems with whole prices that rise or fall; counts never fall with phases or uplinks."""
    lines, phases, items = draw(st.integers(1, 3)), draw(st.integers(2, 3)), draw(st.integers(1, 3))
    small, money = st.integers(0, 6), st.integers(0, 40)

    def table(numbers: st.SearchStrategy[int], *shape: int) -> np.ndarray:
        count = math.prod(shape)
        return np.array(draw(st.lists(numbers, min_size=count, max_size=count)), dtype=np.int64).reshape(shape)

    most = np.sort(table(small, lines, phases), axis=1)
    least = np.minimum(table(small, lines, phases), most)
    leaves = np.sort(table(st.integers(0, 5), lines, phases), axis=1)
    stood = np.hstack([np.zeros((lines, 1), dtype=np.int64), table(small, lines, phases - 1)])
    trunks = np.hstack([np.zeros((lines, 1), dtype=np.int64), table(st.integers(0, 2), lines, phases - 1)])
    return PhasedData(
        min_uplinks=least,
        max_uplinks=most,
        leaves=leaves,
        ports=np.repeat(table(st.integers(2, 8), lines, 1), phases, axis=1),
        stood=stood,
        trunks=trunks,
        fixed=np.sort(table(small, lines, phases, items), axis=1),
        uplink=np.sort(table(small, lines, phases, items), axis=1),
        spine=np.sort(table(small, lines, phases, items), axis=1),
        price=table(money, phases, items).astype(np.float64),
        run=table(st.integers(0, 5), phases, items).astype(np.float64),
        labour=table(money, phases).astype(np.float64),
    )
