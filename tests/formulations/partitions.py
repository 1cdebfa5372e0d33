"""Small partition problems, and their optimum by plain enumeration with prices looked up unit by unit."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from formulations.choice import TOTALS, Equation, build
from formulations.choice_data import ChoiceData, CoreLayer, Kind, LimitedUse, Product, ScenarioCosts
from tests.formulations import read


def flat(name: str, usd: float) -> Product:
    return Product(name=name, start=np.array([0.0]), usd=np.array([usd]))


def standing(units: int) -> Product:
    """A product of which some units stand; a further one costs 10."""
    steps = np.array([0.0, float(units)])
    return Product(name="a", start=steps, usd=np.array([0.0, 10.0]), discount="incremental")


def two_workloads(**changes: Any) -> ChoiceData:
    """Two workloads, each with an option on product 0 (discounted from 4 units on) and one on product 1 (one price)."""
    data = ChoiceData(
        workloads=2, workload=np.array([0, 0, 1, 1]), usd=np.array([1.0, 2.0, 3.0, 4.0]),
        opex=np.array([0.0, 1.0, 0.0, 1.0]),
        quantity=np.array([[2.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 3.0]]),
        products=(Product(name="a", start=np.array([0.0, 4.0]), usd=np.array([10.0, 6.0])), flat("b", 9.0)),
        kinds=(Kind(name="hb", products=np.array([0, 1]), max_products=1),),
        limits=(LimitedUse(name="gpus", key="gpus", use=np.array([4.0, 3.0, 6.0, 5.0]), cap=20.0, core=(1.0,)),),
        budget=100.0,
        cores=(CoreLayer(product=1, ports=4, up=np.array([0.0, 3.0, 0.0, 2.0]), opex=5.0),),
    )  # fmt: skip
    return replace(data, **changes)


def best(data: ChoiceData, equations: tuple[Equation, ...] = TOTALS) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    return read.optimum(build(data, equations))


def relaxed(data: ChoiceData, equations: tuple[Equation, ...]) -> float:
    """The optimum of the linear relaxation; infinity when infeasible."""
    return read.relaxed(build(data, equations))


def enumerated(data: ChoiceData) -> float:
    """The least objective over all combinations of options; infinity when none is allowed."""
    options = [np.flatnonzero(data.workload == w).tolist() for w in range(data.workloads)]
    return min((_objective(data, list(chosen)) for chosen in product(*options)), default=math.inf)


def _objective(data: ChoiceData, chosen: list[int]) -> float:
    phases = phases_of(data)
    switches = _switches(data, chosen)
    used = {p for p in range(len(data.products)) for o in chosen if data.quantity[o, p] > 0}
    used |= {core.product for core, count in zip(data.cores, switches, strict=True) if count}
    for limit in data.limits:
        cores = sum(use * count for use, count in zip(limit.core, switches, strict=False))
        if sum(float(limit.use[o]) for o in chosen) + cores > limit.cap:
            return math.inf
    for kind in data.kinds:
        if sum(bool(used & set(chain)) for chain in phases if chain[-1] in kind.products) > kind.max_products:
            return math.inf
    prices = [product.usd for product in data.products]
    if data.budget is not None and _capex(data, chosen, switches, data.usd, prices) > data.budget:
        return math.inf
    core = [core.opex for core in data.cores]
    ours = (data.usd, prices, data.opex, core)
    if not data.scenarios:
        return _cost(data, chosen, switches, *ours)
    theirs = [(one.usd, one.prices, one.opex, one.core) for one in data.scenarios]
    costs = [_cost(data, chosen, switches, *prices) for prices in theirs]
    return max(0.0, *(cost - one.min_value for cost, one in zip(costs, data.scenarios, strict=True)))


def phases_of(data: ChoiceData) -> list[list[int]]:
    """Positions of each product over its phases."""
    after = {one.predecessor: p for p, one in enumerate(data.products) if one.predecessor is not None}
    chains = []
    for p, one in enumerate(data.products):
        if one.predecessor is None:
            chain = [p]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            chains.append(chain)
    return chains


def _switches(data: ChoiceData, chosen: list[int]) -> list[int]:
    return [math.ceil(sum(float(core.up[o]) for o in chosen) / core.ports) for core in data.cores]


def _cost(
    data: ChoiceData, chosen: list[int], switches: list[int], usd: Any, prices: Any, other: Any, core: Any
) -> float:
    capex = _capex(data, chosen, switches, usd, prices)
    beside = sum(float(other[o]) for o in chosen) + sum(w * n for w, n in zip(core, switches, strict=True))
    return data.weight * capex + beside


def _capex(data: ChoiceData, chosen: list[int], switches: list[int], usd: Any, prices: Any) -> float:
    units = [sum(float(data.quantity[o, p]) for o in chosen) for p in range(len(data.products))]
    for core, count in zip(data.cores, switches, strict=True):
        units[core.product] += core.quantity * (count - (0 if core.predecessor is None else switches[core.predecessor]))
    capex = sum(float(usd[o]) for o in chosen)
    for chain in phases_of(data):
        capex += _spent([replace(data.products[p], usd=prices[p]) for p in chain], [int(units[p]) for p in chain])
    return capex


def _spent(phases: list[Product], units: list[int]) -> float:
    """The least bill over phases, by every number of units that each could have bought by its end.

    Prices of products without brackets are already the least so far.
    """
    if len(phases) == 1 or all(len(one.usd) == 1 for one in phases):
        return sum(_bill(one, count) for one, count in zip(phases, units, strict=True))
    most = sum(units) + sum(int(one.start[-1]) for one in phases)
    least = {0: 0.0}
    for t, one in enumerate(phases):
        paid = [_exactly(one, count) for count in range(most + 1)]
        due = sum(units[: t + 1])
        least = {
            after: min(usd + paid[after - before] for before, usd in least.items() if before <= after)
            for after in range(due, most + 1)
        }
    return min(least.values())


def _exactly(item: Product, units: int) -> float:
    """What exactly so many units cost."""
    if item.discount == "incremental":
        return _bill(item, units)
    return units * float(item.usd[max(b for b, start in enumerate(item.start) if units >= start)])


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
def problems(draw: st.DrawFn) -> ChoiceData:
    """Random problems with whole prices and quantities; many are infeasible."""
    workloads, goods = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    counts = [draw(st.integers(1, 12 if workloads < 3 else 5)) for _ in range(workloads)]
    n = sum(counts)
    kinds: tuple[Kind, ...] = ()
    if draw(st.booleans()):
        split = draw(st.integers(1, goods))
        kinds = (Kind(name="hb", products=np.arange(split), max_products=draw(st.integers(1, 2))),)
    cores: tuple[CoreLayer, ...] = ()
    if draw(st.booleans()):
        core = CoreLayer(
            product=draw(st.integers(0, goods - 1)), ports=draw(st.integers(2, 6)), up=_whole(draw, (n,), 5),
            opex=float(draw(st.integers(0, 9))), quantity=float(draw(st.integers(1, 2))),
        )  # fmt: skip
        cores = (core,)
    limits = tuple(
        LimitedUse(
            name=name, key=name, use=_whole(draw, (n,), 9), cap=float(draw(st.integers(3, 40))),
            core=tuple(float(draw(st.integers(0, 3))) for _ in cores),
        )
        for name in draw(st.sampled_from([(), ("gpus",), ("gpus", "watts")]))
    )  # fmt: skip
    return ChoiceData(
        workloads=workloads, workload=np.repeat(np.arange(workloads), counts), usd=_whole(draw, (n,), 40),
        opex=_whole(draw, (n,), 40),
        quantity=_whole(draw, (n, goods), 6) * _whole(draw, (n, goods), 1),
        products=tuple(_product(draw, f"p{i}") for i in range(goods)), kinds=kinds, limits=limits,
        budget=draw(st.one_of(st.none(), st.integers(30, 400).map(float))),
        weight=float(draw(st.sampled_from([0, 1, 2]))), cores=cores,
    )  # fmt: skip


@st.composite
def growing_problems(draw: st.DrawFn) -> ChoiceData:
    """Problems of two or three phases: products with prices of their own in each, and a core that grows."""
    first, phases = draw(problems()), draw(st.integers(2, 3))
    n, goods = len(first.workload), len(first.products)
    products: list[Product] = list(first.products)
    for _ in range(phases - 1):
        for p in range(goods):
            before = len(products) - goods
            usd = products[p].usd * draw(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
            if len(usd) == 1:
                usd = np.minimum(usd, products[before].usd)
            products.append(replace(products[p], usd=usd, predecessor=before))
    quantity = [first.quantity] + [_whole(draw, (n, goods), 4) * _whole(draw, (n, goods), 1) for _ in range(phases - 1)]
    cores = list(first.cores)
    if cores:
        for _ in range(phases - 1):
            last = cores[-1]
            up = last.up + _whole(draw, (n,), 3)
            cores.append(replace(last, product=last.product + goods, up=up, predecessor=len(cores) - 1))
    later = (phases - 1) * goods
    return replace(
        first,
        quantity=np.hstack(quantity), products=tuple(products), cores=tuple(cores),
        kinds=tuple(replace(kind, products=kind.products + later) for kind in first.kinds),
        limits=tuple(
            replace(limit, core=tuple(float(draw(st.integers(0, 3))) for _ in cores)) for limit in first.limits
        ),
    )  # fmt: skip


@st.composite
def doubtful_problems(draw: st.DrawFn) -> ChoiceData:
    """Problems whose products may turn out dearer or cheaper; the best of each scenario is any number below."""
    data = draw(st.one_of(problems(), growing_problems()))
    goods = len(phases_of(data))
    scenarios = []
    for _ in range(draw(st.integers(1, 3))):
        factors = [draw(st.sampled_from([0.5, 1.0, 3.0])) for _ in range(goods)]
        scenarios.append(
            ScenarioCosts(
                usd=data.usd, opex=data.opex,
                prices=tuple(product.usd * factors[p % goods] for p, product in enumerate(data.products)),
                core=tuple(core.opex for core in data.cores), min_value=float(draw(st.integers(0, 50))),
            )
        )  # fmt: skip
    return replace(data, scenarios=tuple(scenarios))
