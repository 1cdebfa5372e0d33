"""Simulated annealing: exchange the cores of two destinations and keep what evens out the loads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopt.instance.errors import InstanceError
from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths


@dataclass(frozen=True, kw_only=True)
class Cooling:
    """The schedule: temperatures fall from `hot` to `cold` by `factor`, with `moves` exchanges tried at each.

    Temperatures have the unit of the energy, flows squared per link.
    """

    hot: float = 1.0
    cold: float = 0.1
    factor: float = 0.95
    moves: int = 1024

    def __post_init__(self) -> None:
        if not (0 < self.cold < self.hot < math.inf and 0 < self.factor < 1 and self.moves >= 1):
            raise InstanceError(f"{self}: needs 0 < cold < hot, 0 < factor < 1 and moves of at least 1")

    @property
    def temperatures(self) -> list[float]:
        """All temperatures, hottest first."""
        steps = math.ceil(math.log(self.cold / self.hot) / math.log(self.factor))
        return [self.hot * self.factor**k for k in range(steps)]


def annealed_cores(
    clos: TwoLayer, flows: Flows, seed: int = 0, *, host: Ints | None = None, cooling: Cooling | None = None
) -> Ints:
    r"""Cores by simulated annealing from random ones; all flows to one destination host share a core.

    The energy is the sum over bundles of flows squared per link, :math:`\sum_e n_e^2 / c_e`, least when loads are even.
    A move exchanges the cores of two destinations, half the time of the same leaf. What is returned has the least
    alpha, then the least energy, among the states at the end of each temperature.

    Parameters
    ----------
    host
        Destination host of each flow, shape (flows,); None when every flow has a host of its own, as in rings.

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
        _, first, unit = np.unique(out if host is None else host[out], return_index=True, return_inverse=True)
        allowed = _allowed(clos, moving, unit)
        random = np.random.default_rng(seed)
        drawn = random.integers(0, allowed.sum(axis=1))
        start = (np.cumsum(allowed, axis=1) <= drawn[:, None]).sum(axis=1)
        state = _State(clos, moving, unit, start.tolist())
        best = _annealed(state, allowed, moving.dst[first], cooling or Cooling(), random)
        cores[out] = np.array(best)[unit]
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
        one, other = self.core[a], self.core[b]
        self.core[a], self.core[b] = other, one
        return self._moved(a, one, other) + self._moved(b, other, one)

    def _moved(self, unit: int, old: int, new: int) -> float:
        change = 0.0
        for s, d in self.flows[unit]:
            for loads, links in ((self.up[s], self.links[s]), (self.down[d], self.links[d])):
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
    state: _State, allowed: NDArray[np.bool_], leaf: Ints, cooling: Cooling, random: np.random.Generator
) -> list[int]:
    peers: dict[int, list[int]] = {}
    for unit, where in enumerate(leaf.tolist()):
        peers.setdefault(where, []).append(unit)
    mates = [peers[where] for where in leaf.tolist()]
    may = allowed.tolist()
    best, kept = state.score(), state.core.copy()
    for temperature in cooling.temperatures:
        for first, second, near, luck in random.random((cooling.moves, 4)).tolist():
            a = int(first * len(mates))
            choice = mates[a] if near < 0.5 else range(len(mates))
            b = choice[int(second * len(choice))]
            one, other = state.core[a], state.core[b]
            if one == other or not (may[a][other] and may[b][one]):
                continue
            rise = state.exchange(a, b)
            if rise > 0 and luck >= math.exp(-rise / temperature):
                state.exchange(a, b)
        score = state.score()
        if score < best:
            best, kept = score, state.core.copy()
    return kept


def _allowed(clos: TwoLayer, flows: Flows, unit: Ints) -> NDArray[np.bool_]:
    """Whether a core has links to the destination and to all its sources, shape (destinations, cores)."""
    allowed = np.ones((int(unit.max()) + 1, clos.cores), dtype=np.bool_)
    np.logical_and.at(allowed, unit, (clos.links[flows.src] > 0) & (clos.links[flows.dst] > 0))
    lost = np.flatnonzero(allowed.sum(axis=1)[unit] == 0)
    if lost.size:
        raise InstanceError(
            f"leaf {flows.dst[lost[0]]}: no core has links to it and to all leaves that send to one host of it; "
            "needs one, or `host` left out"
        )
    return allowed
