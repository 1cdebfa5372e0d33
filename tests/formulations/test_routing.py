"""Every equation of routing reads as written, binds, and agrees with enumeration."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from formulations import routing
from tests.formulations import read


def crossing(**changes: Any) -> routing.RoutingData:
    """Leaves 0 and 1 send one flow each to leaf 2; core 0 has a link to every leaf, core 1 two, none to leaf 1."""
    data = routing.RoutingData(
        src=np.array([0, 1]), dst=np.array([2, 2]), flows=np.array([1, 1]), step=np.array([[2, 1], [2, 0], [2, 1]]),
        min_load=1, max_load=9,
    )  # fmt: skip
    return replace(data, **changes)


def enumerated(data: routing.RoutingData) -> float:
    """The optimum by trying every core for every flow."""
    pairs = [p for p, n in enumerate(data.flows) for _ in range(int(n))]
    cores = range(data.step.shape[1])
    choices = [[m for m in cores if data.step[data.src[p], m] and data.step[data.dst[p], m]] for p in pairs]
    found = math.inf
    for chosen in product(*choices):
        up, down = np.zeros(data.step.shape, dtype=int), np.zeros(data.step.shape, dtype=int)
        for p, m in zip(pairs, chosen, strict=True):
            up[data.src[p], m] += 1
            down[data.dst[p], m] += 1
        worst = max(int((np.maximum(up, down) * data.step).max()), data.min_load)
        found = min(found, worst if worst <= data.max_load else math.inf)
    return found


FROM_ONE_LEAF = crossing(src=np.array([0, 0]), dst=np.array([1, 2]))
READS: dict[routing.Equation, tuple[routing.RoutingData, dict[str, str]]] = {
    routing.add_worst_load: (crossing(), {"worst_load": "worst"}),
    routing.add_every_flow: (
        crossing(flows=np.array([3, 1])),
        {"every_flow[0]": "x[0,0] + x[0,1]  ==  3", "every_flow[1]": "x[1,0]  ==  1"},
    ),
    routing.add_load_up: (
        FROM_ONE_LEAF,
        {"load_up[0,0]": "2*(x[0,0] + x[1,0])  <=  worst", "load_up[0,1]": "x[1,1]  <=  worst"},
    ),
    routing.add_load_down: (
        crossing(),
        {"load_down[2,0]": "2*(x[0,0] + x[1,0])  <=  worst", "load_down[2,1]": "x[0,1]  <=  worst"},
    ),
    routing.add_worst_range: (crossing(), {"worst_range": "1  <=  worst  <=  9"}),
}


def test_the_worst_load_is_what_is_sought() -> None:
    m = routing.build(crossing(), routing.ROUTES)
    read.optimum(m)
    assert (m.worst.value, m.x[0, 1].value, m.x[1, 0].value) == (2, 1, 1)


BINDS = [
    (routing.add_every_flow, crossing()),
    (routing.add_load_up, replace(FROM_ONE_LEAF, flows=np.array([1, 4]))),
    (routing.add_load_down, crossing(flows=np.array([4, 1]))),
    (routing.add_worst_range, crossing(min_load=5)),
]


def test_no_load_lies_beyond_its_range() -> None:
    assert read.optimum(routing.build(crossing(min_load=5), routing.ROUTES)) == 5
    assert read.optimum(routing.build(crossing(max_load=1), routing.ROUTES)) == math.inf


@st.composite
def problems(draw: st.DrawFn) -> routing.RoutingData:
    """Up to four pairs between four leaves; core 0 joins all."""
    cores = draw(st.integers(1, 3))
    row = st.lists(st.sampled_from([0, 1, 2, 6]), min_size=cores, max_size=cores)
    step = np.array(draw(st.lists(row, min_size=4, max_size=4)))
    step[:, 0] = np.maximum(step[:, 0], 1)
    leaf = st.integers(0, 3)
    pairs = draw(st.lists(st.tuples(leaf, leaf).filter(lambda p: p[0] != p[1]), min_size=1, max_size=4, unique=True))
    src, dst = np.array(pairs).T
    flows = np.array(draw(st.lists(st.integers(1, 2), min_size=len(pairs), max_size=len(pairs))))
    return routing.RoutingData(src=src, dst=dst, flows=flows, step=step, min_load=draw(st.integers(0, 3)), max_load=20)
