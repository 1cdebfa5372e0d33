"""The algorithms by name."""

from __future__ import annotations

from collections.abc import Callable

from coopt.instance.errors import InstanceError
from coopt.network.routing.annealing import annealed_cores
from coopt.network.routing.colouring import coloured_cores, working_cores
from coopt.network.routing.ecmp import hashed_cores
from coopt.network.routing.fairness import flow_rates, group_rates, hops, two_layered
from coopt.network.routing.greedy import greedy_cores
from coopt.network.routing.layers import Floats, Flows, Ints, TwoLayer, require_paths
from coopt.network.routing.loads import link_loads
from coopt.network.routing.shelter import sheltered_cores

Assign = Callable[[TwoLayer, Flows, int], Ints]


def best_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores by colouring where it is optimal, by the greedy algorithm elsewhere.

    Where even the optimum makes flows share links, many routings have its alpha: of a plain colouring and one that
    shelters groups the one is taken that is fairer to groups, the slowest first.
    """
    require_paths(clos, flows)
    if working_cores(clos, flows) is None:
        return greedy_cores(clos, flows)
    coloured = coloured_cores(clos, flows)
    if link_loads(clos, flows, coloured).alpha <= 1:
        return coloured
    either = coloured, sheltered_cores(clos, flows)
    return max(either, key=lambda cores: two_layered(group_rates(flows.group, _rates(clos, flows, cores))))


def _rates(clos: TwoLayer, flows: Flows, cores: Ints) -> Floats:
    return flow_rates(hops(clos, flows, cores))


ALGORITHMS: dict[str, Assign] = {
    "ecmp": hashed_cores,
    "greedy": lambda clos, flows, seed: greedy_cores(clos, flows),
    "colouring": lambda clos, flows, seed: coloured_cores(clos, flows),
    "sheltered": lambda clos, flows, seed: sheltered_cores(clos, flows),
    "annealing": annealed_cores,
    "best": lambda clos, flows, seed: best_cores(clos, flows),
}


def algorithm(name: str) -> Assign:
    """The algorithm of a name."""
    if name not in ALGORITHMS:
        raise InstanceError(f"routing algorithm: {name!r}, needs one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
