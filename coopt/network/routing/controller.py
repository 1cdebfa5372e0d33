"""A controller that routes anew whenever jobs or cores come and go."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.routing.algorithms import algorithm
from coopt.network.routing.layers import Flows, Ints, TwoLayer, joint
from coopt.network.routing.loads import link_loads, lower_bound


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """The routes after one event.

    Parameters
    ----------
    cores
        Core of each flow by job, -1 inside a leaf; shape (flows of the job,).
    alpha, bound
        Flows per link on the worst bundle, and the least that any routing has.
    moved
        Flows of jobs that ran before and now take another core.
    seconds
        What the algorithm took.
    """

    cores: dict[str, Ints]
    alpha: float
    bound: float
    moved: int
    seconds: float


class Controller:
    """The jobs on one network and their routes.

    Parameters
    ----------
    algorithm_name
        A key of `ALGORITHMS`; it routes all flows present at every event.
    """

    def __init__(self, clos: TwoLayer, *, algorithm_name: str = "best", seed: int = 0) -> None:
        self._clos = clos
        self._assign = algorithm(algorithm_name)
        self._seed = seed
        self._failed: frozenset[int] = frozenset()
        self._jobs: dict[str, Flows] = {}
        self._cores: dict[str, Ints] = {}

    def arrive(self, job: str, flows: Flows) -> Decision:
        """Route anew with one job more."""
        if job in self._jobs:
            raise InstanceError(f"job {job!r}: runs already, needs a name of its own")
        return self._route({**self._jobs, job: flows}, self._failed)

    def leave(self, job: str) -> Decision:
        """Route anew with one job less."""
        if job not in self._jobs:
            raise InstanceError(f"job {job!r}: does not run, needs one of {', '.join(self._jobs) or 'none'}")
        return self._route({name: flows for name, flows in self._jobs.items() if name != job}, self._failed)

    def fail(self, core: int) -> Decision:
        """Route anew without a core."""
        self._require(core, core not in self._failed, "one that works")
        return self._route(self._jobs, self._failed | {core})

    def restore(self, core: int) -> Decision:
        """Route anew with a core that works again."""
        self._require(core, core in self._failed, "one that failed")
        return self._route(self._jobs, self._failed - {core})

    def _require(self, core: int, fits: bool, need: str) -> None:
        if not (0 <= core < self._clos.cores and fits):
            raise InstanceError(f"core {core}: needs {need}, of 0 to {self._clos.cores - 1}")

    def _route(self, jobs: dict[str, Flows], failed: frozenset[int]) -> Decision:
        """Jobs and failures stay as they were when flows cannot be routed."""
        links = self._clos.links.copy()
        links[:, sorted(failed)] = 0
        clos, flows = TwoLayer(links=links), joint(jobs.values())
        start = time.perf_counter()
        cores = self._assign(clos, flows, self._seed)
        seconds = time.perf_counter() - start
        ends = np.cumsum([0, *(len(job) for job in jobs.values())])
        by_job = {job: cores[first:last] for job, (first, last) in zip(jobs, pairwise(ends.tolist()), strict=True)}
        kept = self._cores.keys() & by_job.keys()
        moved = sum(int((self._cores[job] != by_job[job]).sum()) for job in kept)
        self._jobs, self._failed, self._cores = jobs, failed, by_job
        alpha = link_loads(clos, flows, cores).alpha
        return Decision(cores=by_job, alpha=alpha, bound=lower_bound(clos, flows), moved=moved, seconds=seconds)
