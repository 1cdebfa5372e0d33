"""Small shared-network problems, their optimum by plain enumeration, and by HiGHS."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from formulations.network import Equation, NetworkData, Resource, build
from tests.formulations import read


def two_families(**changes: Any) -> NetworkData:
    """A tapered family of eight down-ports and a flat one without uplinks; one workload with a column on each."""
    data = NetworkData(
        workloads=1, contexts=2, fixed=np.array([10.0, 30.0]), uplink=np.array([2.0, 0.0]), spine=np.array([1.0, 0.0]),
        min_uplinks=np.array([2, 0]), max_uplinks=np.array([8, 0]), leaves=np.array([4, 0]), radix=np.array([16, 16]),
        context=np.array([0, 1]), column_workload=np.array([0, 0]), column_context=np.array([0, 1]),
        need=np.array([5, 0]),
    )  # fmt: skip
    return replace(data, **changes)


def best(data: NetworkData, equations: tuple[Equation, ...]) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    return read.optimum(build(data, equations))


def enumerated(data: NetworkData) -> float:
    """The optimum by trying every family, number of uplinks and choice of columns."""
    found = math.inf
    for f in range(len(data.fixed)):
        for u in range(int(data.min_uplinks[f]), int(data.max_uplinks[f]) + 1):
            s = math.ceil(int(data.leaves[f]) * u / int(data.radix[f])) if data.leaves[f] else 0
            if all(_served(data, f, u, w) for w in range(data.workloads)) and all(
                _within(r, f, u, s) for r in data.resources
            ):
                found = min(found, data.fixed[f] + data.uplink[f] * u + data.spine[f] * s)
    return found


def _served(data: NetworkData, f: int, u: int, w: int) -> bool:
    mine = (data.column_workload == w) & (data.column_context == data.context[f])
    return bool((mine & (data.need <= u)).any())


def _within(r: Resource, f: int, u: int, s: int) -> bool:
    return bool(r.fixed[f] + r.uplink[f] * u + r.spine[f] * s <= r.cap)


@st.composite
def problems(draw: st.DrawFn) -> NetworkData:
    """Random problems with whole prices; families of a context share their down-ports, as contexts demand."""
    contexts, workloads = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    downs = [draw(st.sampled_from([0, 4, 8, 12])) for _ in range(contexts)]
    context = [*range(contexts), *draw(st.lists(st.integers(0, contexts - 1), max_size=4))]
    n = len(context)
    down = np.array([downs[k] for k in context])
    most = np.array([draw(st.integers(max(d // 2, 1), d)) if d else 0 for d in down])
    least = np.array([draw(st.integers(1, int(m))) if m else 0 for m in most])
    pairs = [(w, k) for w in range(workloads) for k in range(contexts) if draw(st.integers(0, 4))]
    pairs += draw(st.lists(st.sampled_from(pairs), max_size=3)) if pairs else []
    need = np.array([draw(st.integers(1, downs[k])) if downs[k] else 0 for _, k in pairs], dtype=np.int64)
    money = st.integers(0, 50)

    def prices() -> np.ndarray:
        return np.array([float(draw(money)) for _ in range(n)])

    resources = ()
    if draw(st.booleans()):
        resources = (
            Resource(name="w", fixed=prices(), uplink=prices(), spine=prices(), cap=float(draw(st.integers(50, 300)))),
        )
    return NetworkData(
        workloads=workloads, contexts=contexts, fixed=prices(), uplink=prices(), spine=prices(), min_uplinks=least,
        max_uplinks=most,
        leaves=np.array([draw(st.integers(0, 6)) if d else 0 for d in down]),
        radix=np.array([draw(st.integers(4, 16)) for _ in range(n)]), context=np.array(context),
        column_workload=np.array([w for w, _ in pairs], dtype=np.int64),
        column_context=np.array([k for _, k in pairs], dtype=np.int64), need=need, resources=resources,
    )  # fmt: skip
