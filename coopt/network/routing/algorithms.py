"""The routing algorithms: random, greedy, sheltered, simulated annealing, the best of them, and all
by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopt.instance.texts import InstanceError, grouped
from coopt.network.routing.colouring import coloured_cores, working_cores
from coopt.network.routing.layers import (
    Flows,
    Ints,
    TwoLayer,
    degrees,
    fairness_key,
    flow_rates,
    group_rates,
    hops,
    link_loads,
    require_paths,
)

NO_LINK = (
    np.iinfo(np.int64).max // 2
)  # more than any load; half of the largest number, so that a step fits on top
Assign = Callable[[TwoLayer, Flows, int], Ints]


@dataclass(frozen=True, kw_only=True)
class Cooling:
    """The schedule: temperatures fall from `hot` to `cold` by `factor`, with `moves` exchanges
    tried at each.

    Temperatures have the unit of the energy, flows squared per link.
    """

    hot: float = 1.0
    cold: float = 0.1
    factor: float = 0.95
    moves: int = 1024

    def __post_init__(self) -> None:
        if not (0 < self.cold < self.hot < math.inf and 0 < self.factor < 1 and self.moves >= 1):
            raise InstanceError(
                f"{self}: needs 0 < cold < hot < inf, 0 < factor < 1 and moves of at least 1"
            )

    @property
    def temperatures(self) -> list[float]:
        """All temperatures, hottest first."""
        steps = math.ceil(math.log(self.cold / self.hot) / math.log(self.factor))
        return [self.hot * self.factor**k for k in range(steps)]


def annealed_cores(
    clos: TwoLayer,
    flows: Flows,
    seed: int = 0,
    *,
    host: Ints | None = None,
    cooling: Cooling | None = None,
) -> Ints:
    r"""Cores by simulated annealing from random ones; all flows to one destination host share a
    core.

    The energy is the sum over bundles of flows squared per link, :math:`\sum_e n_e^2 / c_e`, least
    when loads are even. A move exchanges the cores of two destinations, half the time of the same
    leaf. What is returned has the least alpha, then the least energy, among the states at the end
    of each temperature.

    Parameters
    ----------
    host
        Destination host of each flow, shape (flows,); None when every flow has a host of its own,
        as in rings.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,). The same for the same seed.

    Raises
    ------
    InstanceError
        When no core has links to a host's leaf and to all leaves that send to it.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    out = flows.between
    if out.size:
        moving = flows.take(out)
        _, first_flows, unit = np.unique(
            out if host is None else host[out], return_index=True, return_inverse=True
        )
        is_allowed = _usable_cores(clos, moving, unit)
        random = np.random.default_rng(seed)
        ranks = random.integers(0, is_allowed.sum(axis=1))
        start = (np.cumsum(is_allowed, axis=1) <= ranks[:, None]).sum(axis=1)
        state = _State(clos, moving, unit, start.tolist())
        best_units = _annealed(
            state, is_allowed, moving.dst[first_flows], cooling or Cooling(), random
        )
        cores[out] = np.array(best_units)[unit]
    return cores


class _State:
    """The core of each destination and the flows on each bundle."""

    def __init__(self, clos: TwoLayer, flows: Flows, unit: Ints, core: list[int]) -> None:
        self.core = core
        self.flows: list[list[tuple[int, int]]] = [[] for _ in core]
        self.links: list[list[int]] = clos.links.tolist()
        self.up, self.down = ([[0] * clos.cores for _ in range(clos.leaves)] for _ in range(2))
        for s, d, u in zip(flows.src.tolist(), flows.dst.tolist(), unit.tolist(), strict=True):
            self.flows[u].append((s, d))
            self.up[s][core[u]] += 1
            self.down[d][core[u]] += 1

    def exchange(self, a: int, b: int) -> float:
        """Give each of two destinations the other's core; the change of energy."""
        core_a, core_b = self.core[a], self.core[b]
        self.core[a], self.core[b] = core_b, core_a
        return self._moved(a, core_a, core_b) + self._moved(b, core_b, core_a)

    def _moved(self, unit: int, old: int, new: int) -> float:
        change = 0.0
        for s, d in self.flows[unit]:
            for loads, links in ((self.up[s], self.links[s]), (self.down[d], self.links[d])):
                # The energy sums squares: leaving a bundle of n flows changes it by 1 - 2n, joining
                # one by 1 + 2n.
                change += (1 - 2 * loads[old]) / links[old]
                loads[old] -= 1
                change += (1 + 2 * loads[new]) / links[new]
                loads[new] += 1
        return change

    def score(self) -> tuple[float, float]:
        """Alpha and energy of the cores as they are, smaller is better."""
        links = np.maximum(np.array(self.links), 1)
        loads = np.array([self.up, self.down])
        return float((loads / links).max()), float((loads**2 / links).sum())


def _annealed(
    state: _State,
    is_allowed: NDArray[np.bool_],
    leaf: Ints,
    cooling: Cooling,
    random: np.random.Generator,
) -> list[int]:
    peers = grouped((host_leaf, unit) for unit, host_leaf in enumerate(leaf.tolist()))
    mates = [peers[host_leaf] for host_leaf in leaf.tolist()]
    may_use = is_allowed.tolist()
    best_score, cores = state.score(), state.core.copy()
    for temperature in cooling.temperatures:
        for draw_a, draw_b, draw_near, luck in random.random((cooling.moves, 4)).tolist():
            a = int(draw_a * len(mates))
            # Within a leaf, loads down stay as they are where hosts receive equally many flows:
            # only loads up change.
            choice = mates[a] if draw_near < 0.5 else range(len(mates))
            b = choice[int(draw_b * len(choice))]
            core_a, core_b = state.core[a], state.core[b]
            if core_a == core_b or not (may_use[a][core_b] and may_use[b][core_a]):
                continue
            rise = state.exchange(a, b)
            if rise > 0 and luck >= math.exp(-rise / temperature):
                state.exchange(a, b)
        score = state.score()
        if score < best_score:
            best_score, cores = score, state.core.copy()
    return cores


def _usable_cores(clos: TwoLayer, flows: Flows, unit: Ints) -> NDArray[np.bool_]:
    """Whether a core has links to the destination and to all its sources, shape (destinations,
    cores).
    """
    is_allowed = np.ones((int(unit.max()) + 1, clos.cores), dtype=np.bool_)
    np.logical_and.at(is_allowed, unit, (clos.links[flows.src] > 0) & (clos.links[flows.dst] > 0))
    stranded = np.flatnonzero(is_allowed.sum(axis=1)[unit] == 0)
    if stranded.size:
        raise InstanceError(
            f"leaf {flows.dst[stranded[0]]}: all flows to one host below it share a core, but no"
            " core has links to this leaf and to all leaves that send them, needs such a core, or"
            " no argument `host`"
        )
    return is_allowed


def hashed_cores(clos: TwoLayer, flows: Flows, seed: int = 0) -> Ints:
    """A core for each flow, drawn with the odds of the source leaf's links to cores that reach the
    destination.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    src, dst = flows.src[flows.between], flows.dst[flows.between]
    odds = np.cumsum(np.where(clos.links[dst] > 0, clos.links[src], 0), axis=1)
    if src.size:
        ranks = np.random.default_rng(seed).integers(0, odds[:, -1])
        cores[flows.between] = (odds <= ranks[:, None]).sum(axis=1)
    return cores


def greedy_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow: the first that keeps the busier of the two bundles, up and down, least
    busy.

    Leaves with most flows go first. At most twice the optimum where all working cores join all
    leaves by equally many links: of D - 1 flows at either end, fewer than `cores` bundles can hold
    2 ceil(D / cores) or more (Cohen et al., arXiv 2503.05324).

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    steps = list(clos.steps)
    # Levels are loads with one flow more, so that a bundle is chosen by what it would carry.
    level = np.where(clos.steps > 0, clos.steps, NO_LINK)
    up, down = list(level.copy()), list(level.copy())
    worse = np.empty(clos.cores, dtype=np.int64)
    order = _order(clos, flows)
    choices = []
    for s, d in zip(flows.src[order].tolist(), flows.dst[order].tolist(), strict=True):
        loads_up, loads_down = up[s], down[d]
        core = np.maximum(loads_up, loads_down, out=worse).argmin()
        loads_up[core] += steps[s][core]
        loads_down[core] += steps[d][core]
        choices.append(core)
    cores[order] = choices
    return cores


def _order(clos: TwoLayer, flows: Flows) -> Ints:
    """Flows by the fullest leaf and direction they belong to; ties: up before down, then leaf, then
    flow.
    """
    busiest_first = np.argsort(-degrees(clos.leaves, flows).ravel(), kind="stable")
    rank = np.empty(2 * clos.leaves, dtype=np.int64)
    rank[busiest_first] = np.arange(2 * clos.leaves)
    out = flows.between
    turn = np.minimum(rank[flows.src[out]], rank[clos.leaves + flows.dst[out]])
    return out[np.argsort(turn, kind="stable")]


def sheltered_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores of optimal alpha with as many groups as this finds on bundles that carry one flow each.

    A group waits for its slowest flow, so it is better to have a few groups share all their links
    than all groups share a few. Groups are taken, small ones first, while no leaf has more than `a`
    of their flows in or out; they are coloured with a cores and the rest with the others. a is as
    large as lets the rest keep to the optimal alpha.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        As `coloured_cores`.
    """
    require_paths(clos, flows)
    working = working_cores(clos, flows)
    degree = degrees(clos.leaves, flows).ravel()
    max_degree = int(degree.max(initial=0))
    if working is None or max_degree <= working.size:
        return coloured_cores(clos, flows)
    level = -(-max_degree // working.size)
    low, high = 0, working.size - 1
    is_sheltered = np.zeros(len(flows), dtype=np.bool_)
    ends = _ends_by_group(clos, flows)
    # The more cores shelter groups, the fewer are left to the rest, so the largest number that does
    # is bisected.
    while low < high:
        a = (low + high + 1) // 2
        groups, flows_of_end = _fitting(ends, 2 * clos.leaves, a)
        # the rest of each leaf's flows has to fit on the cores left over, at most `level` of them a
        # bundle
        if (degree - flows_of_end).max() <= level * (working.size - a):
            low, is_sheltered = a, np.isin(flows.group, groups)
        else:
            high = a - 1
    cores = np.empty(len(flows), dtype=np.int64)
    for share, part in ((working[:low], is_sheltered), (working[low:], ~is_sheltered)):
        rows = np.flatnonzero(part)
        links = np.zeros_like(clos.links)
        links[:, share] = clos.links[:, share]
        cores[rows] = coloured_cores(TwoLayer(links=links), flows.take(rows))
    return cores


def _ends_by_group(clos: TwoLayer, flows: Flows) -> list[tuple[int, list[int]]]:
    """Each group with the ends of its flows between leaves, leaf for out and leaves + leaf for in;
    small ones first.
    """
    moving = flows.take(flows.between)
    names, group_of = np.unique(moving.group, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(group_of))[:-1])
    ends = [
        np.concatenate([moving.src[part], clos.leaves + moving.dst[part]]).tolist()
        for part in parts
    ]
    return sorted(zip(names.tolist(), ends, strict=True), key=lambda pair: len(pair[1]))


def _fitting(
    ends: list[tuple[int, list[int]]], size: int, max_flows: int
) -> tuple[list[int], Ints]:
    """Groups taken in turn while no end has more than `max_flows`, and the flows of each end."""
    flows_of_end = [0] * size
    groups = []
    for name, group_ends in ends:
        for end in group_ends:
            flows_of_end[end] += 1
        if max(flows_of_end[end] for end in group_ends) <= max_flows:
            groups.append(name)
        else:
            for end in group_ends:
                flows_of_end[end] -= 1
    return groups, np.array(flows_of_end)


def best_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores by colouring where it is optimal, by the greedy algorithm elsewhere.

    Where even the optimum makes flows share links, many routings have its alpha: of a plain
    colouring and one that shelters groups the one is taken that is fairer to groups, the slowest
    first.
    """
    require_paths(clos, flows)
    if working_cores(clos, flows) is None:
        return greedy_cores(clos, flows)
    coloured = coloured_cores(clos, flows)
    if (
        link_loads(clos, flows, coloured).alpha <= 1
    ):  # no flow shares a link, so no group can do better
        return coloured
    either = coloured, sheltered_cores(clos, flows)
    return max(
        either,
        key=lambda cores: fairness_key(
            group_rates(flows.group, flow_rates(hops(clos, flows, cores)))
        ),
    )


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
