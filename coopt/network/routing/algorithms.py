"""The algorithms by name."""

from __future__ import annotations

from collections.abc import Callable

from coopt.instance.errors import InstanceError
from coopt.network.routing.annealing import annealed_cores
from coopt.network.routing.colouring import coloured_cores, working_cores
from coopt.network.routing.ecmp import hashed_cores
from coopt.network.routing.greedy import greedy_cores
from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths

Assign = Callable[[TwoLayer, Flows, int], Ints]


def best_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores by colouring where it is optimal, otherwise by the greedy algorithm."""
    require_paths(clos, flows)
    return greedy_cores(clos, flows) if working_cores(clos, flows) is None else coloured_cores(clos, flows)


ALGORITHMS: dict[str, Assign] = {
    "ecmp": hashed_cores,
    "greedy": lambda clos, flows, seed: greedy_cores(clos, flows),
    "colouring": lambda clos, flows, seed: coloured_cores(clos, flows),
    "annealing": annealed_cores,
    "best": lambda clos, flows, seed: best_cores(clos, flows),
}


def algorithm(name: str) -> Assign:
    """The algorithm of a name."""
    if name not in ALGORITHMS:
        raise InstanceError(f"routing algorithm: {name!r}, needs one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
