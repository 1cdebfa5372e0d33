"""Small partition problems, and their optimum by plain enumeration with prices looked up unit by unit."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
from hypothesis import strategies as st

from coopt.solving.highs import options, solve
from formulations.partition import TOTALS, Equation, build
from formulations.partition_data import Core, Kind, Limit, PartitionData, Product


def flat(name: str, usd: float) -> Product:
    return Product(name=name, start=np.array([0.0]), usd=np.array([usd]))


def two_workloads(**changes: Any) -> PartitionData:
    """Two workloads, each with an option on product 0 (discounted from 4 units on) and one on product 1 (one price)."""
    data = PartitionData(
        workloads=2,
        workload=np.array([0, 0, 1, 1]),
        usd=np.array([1.0, 2.0, 3.0, 4.0]),
        other=np.array([0.0, 1.0, 0.0, 1.0]),
        quantity=np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 3.0]]),
        products=(Product(name="a", start=np.array([0.0, 4.0]), usd=np.array([10.0, 6.0])), flat("b", 9.0)),
        kinds=(Kind(name="hb", products=np.array([0, 1]), most=1),),
        limits=(Limit(name="gpus", use=np.array([4.0, 3.0, 6.0, 5.0]), cap=20.0, core=1.0),),
        budget=100.0,
        core=Core(product=1, ports=4, up=np.array([0.0, 3.0, 0.0, 2.0]), other=5.0),
    )
    return replace(data, **changes)


def best(data: PartitionData, equations: tuple[Equation, ...] = TOTALS) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    answer = solve(build(data, equations), time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return math.inf if answer.value is None else answer.value


def relaxed(data: PartitionData, equations: tuple[Equation, ...]) -> float:
    """The optimum of the linear relaxation; infinity when infeasible."""
    m = build(data, equations)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(m)
    answer = solve(m, time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return math.inf if answer.value is None else answer.value


def enumerated(data: PartitionData) -> float:
    """The least objective over all combinations of options; infinity when none is allowed."""
    options = [np.flatnonzero(data.workload == w).tolist() for w in range(data.workloads)]
    return min((_objective(data, list(chosen)) for chosen in product(*options)), default=math.inf)


def _objective(data: PartitionData, chosen: list[int]) -> float:
    core, switches = data.core, 0
    units = [sum(float(data.quantity[o, p]) for o in chosen) for p in range(len(data.products))]
    in_use = {p for p in range(len(data.products)) for o in chosen if data.quantity[o, p] > 0}
    if core is not None:
        switches = math.ceil(sum(float(core.up[o]) for o in chosen) / core.ports)
        units[core.product] += core.quantity * switches
        in_use |= {core.product} if switches else set()
    capex = sum(float(data.usd[o]) for o in chosen)
    capex += sum(_bill(item, count) for item, count in zip(data.products, units, strict=True))
    for limit in data.limits:
        if sum(float(limit.use[o]) for o in chosen) + limit.core * switches > limit.cap:
            return math.inf
    if any(len(in_use & {int(p) for p in kind.products}) > kind.most for kind in data.kinds):
        return math.inf
    if data.budget is not None and capex > data.budget:
        return math.inf
    other = sum(float(data.other[o]) for o in chosen) + (core.other * switches if core else 0.0)
    return data.weight * capex + other


def _bill(item: Product, units: float) -> float:
    """Units paid one by one, or all at the price of the number bought, spare ones included."""

    def price(position: float) -> float:
        return float(item.usd[max(b for b, start in enumerate(item.start) if position >= start)])

    if item.discount == "incremental":
        return sum(price(position) for position in range(int(units)))
    return min(n * price(n) for n in range(int(units), max(int(units), int(item.start[-1])) + 1))


def _whole(draw: st.DrawFn, shape: tuple[int, ...], most: int) -> np.ndarray:
    count = math.prod(shape)
    return np.array(draw(st.lists(st.integers(0, most), min_size=count, max_size=count)), dtype=float).reshape(shape)


def _product(draw: st.DrawFn, name: str) -> Product:
    brackets = draw(st.integers(1, 3))
    start = [0, *sorted(draw(st.lists(st.integers(1, 12), min_size=brackets - 1, max_size=brackets - 1, unique=True)))]
    usd = sorted(draw(st.lists(st.integers(0, 30), min_size=brackets, max_size=brackets)), reverse=True)
    discount = draw(st.sampled_from(["all-units", "incremental"]))
    return Product(name=name, start=np.array(start, dtype=float), usd=np.array(usd, dtype=float), discount=discount)


@st.composite
def problems(draw: st.DrawFn) -> PartitionData:
    """Random problems with whole prices and quantities; many are infeasible."""
    workloads, goods = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    counts = [draw(st.integers(1, 12 if workloads < 3 else 5)) for _ in range(workloads)]
    n = sum(counts)
    kinds: tuple[Kind, ...] = ()
    if draw(st.booleans()):
        split = draw(st.integers(1, goods))
        kinds = (Kind(name="hb", products=np.arange(split), most=draw(st.integers(1, 2))),)
    limits = tuple(
        Limit(
            name=name,
            use=_whole(draw, (n,), 9),
            cap=float(draw(st.integers(3, 40))),
            core=float(draw(st.integers(0, 3))),
        )
        for name in draw(st.sampled_from([(), ("gpus",), ("gpus", "watts")]))
    )
    core = None
    if draw(st.booleans()):
        core = Core(
            product=draw(st.integers(0, goods - 1)),
            ports=draw(st.integers(2, 6)),
            up=_whole(draw, (n,), 5),
            other=float(draw(st.integers(0, 9))),
            quantity=float(draw(st.integers(1, 2))),
        )
    return PartitionData(
        workloads=workloads,
        workload=np.repeat(np.arange(workloads), counts),
        usd=_whole(draw, (n,), 40),
        other=_whole(draw, (n,), 40),
        quantity=_whole(draw, (n, goods), 6) * _whole(draw, (n, goods), 1),
        products=tuple(_product(draw, f"p{i}") for i in range(goods)),
        kinds=kinds,
        limits=limits,
        budget=draw(st.one_of(st.none(), st.integers(30, 400).map(float))),
        weight=float(draw(st.sampled_from([0, 1, 2]))),
        core=core,
    )
