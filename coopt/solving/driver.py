"""One search for every question: subproblems by their bounds, each solved, rounded, recomputed and
cut until it holds.

A question is one subproblem or several of which one holds the optimum: a network, sets of products,
lines of growth, rings of sites. The most promising comes first. What the solver decided is
recomputed from the rounded decisions; where it breaks a bound or a limit a cut is added and the
solver is asked again. Once no bound is below the best value, within the gap, the subproblems that
are left cannot win.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import pyomo.core as pyo

from coopt.solving.backend import Backend
from coopt.solving.highs import Outcome
from coopt.solving.runs import RunningStatistics, SearchStatistics
from coopt.solving.watching import OnStanding, SearchStanding, rescaled

Choice = TypeVar("Choice")
UNLIMITED_S = 1e9  # a time limit that never comes
ENDINGS = ("optimal", "infeasible", "time limit", "interrupted")


@dataclass(frozen=True, kw_only=True)
class Decided(Generic[Choice]):
    """What rounded decisions amount to, and its objective (USD or W), both recomputed."""

    choice: Choice
    value: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Subproblem(Generic[Choice]):
    """A model that is built when its turn comes.

    `build` returns the model and the objective (USD or W) in one unit of it. `read` recomputes what
    a solved model decided; where that does not hold it adds cuts and returns None. No choice of it
    is worth less than `bound`. With `starts` the built model holds a solution to start from. Given
    what the best choice so far is worth, `closer` is the same subproblem in units of that, None
    where it was in such units already. `close` proves, without the solver's word, that no choice is
    worth less than a value, as far as a few cases do until a time on the clock of
    `time.perf_counter`: the bound it proves, and a choice that is worth less where it meets one.
    """

    number: int = 0
    build: Callable[[], tuple[pyo.ConcreteModel, float]]
    read: Callable[[pyo.ConcreteModel], Decided[Choice] | None]
    bound: float = -math.inf
    starts: bool = False
    closer: Callable[[float], Subproblem[Choice] | None] | None = None
    close: Callable[[float, float], tuple[float, Decided[Choice] | None]] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Drive(SearchStatistics, Generic[Choice]):
    """How a search ended: the best choice, None without one, its value, and how many subproblems
    were handed over.
    """

    found: Choice | None
    value: float
    outcome: Outcome
    tried: int


def drive(
    subproblems: Sequence[Subproblem[Choice]],
    backend: Backend,
    *,
    gap: float,
    deadline: float,
    on_standing: OnStanding | None = None,
    merge: tuple[int, Callable[[list[Subproblem[Choice]]], Subproblem[Choice]]] | None = None,
) -> Drive[Choice]:
    """The best choice of all subproblems.

    Parameters
    ----------
    gap
        The relative gap at which a choice is good enough.
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    merge
        After how many subproblems those that are left are searched as one, and the function that
        makes one of them.
    """
    search = _Search[Choice](backend=backend, gap=gap, deadline=deadline, on_standing=on_standing)
    try:
        search.run(
            sorted(
                (subproblem for subproblem in subproblems if subproblem.bound < math.inf),
                key=lambda subproblem: subproblem.bound,
            ),
            merge,
        )
    except KeyboardInterrupt:
        search.outcome = "interrupted"
    return Drive(
        found=search.incumbent.choice if search.incumbent else None,
        value=search.value,
        outcome=search.outcome,
        tried=search.tried,
        bound=search.bound if math.isfinite(search.bound) else -math.inf,
        **search.taken(),
    )


@dataclass(kw_only=True, eq=False)
class _Search(RunningStatistics, Generic[Choice]):
    """The search so far; `queue` are the subproblems whose turn has not come, `proven` bounds the
    others.
    """

    backend: Backend
    gap: float
    deadline: float
    on_standing: OnStanding | None
    queue: Sequence[Subproblem[Choice]] = ()
    incumbent: Decided[Choice] | None = None
    proven: float = math.inf
    tried: int = 0
    outcome: Outcome = "infeasible"

    @property
    def value(self) -> float:
        """The value of the best; infinite without one."""
        return self.incumbent.value if self.incumbent else math.inf

    @property
    def bound(self) -> float:
        """No choice is worth less."""
        return min([self.proven, *(subproblem.bound for subproblem in self.queue)])

    def run(
        self,
        ranked: list[Subproblem[Choice]],
        merge: tuple[int, Callable[[list[Subproblem[Choice]]], Subproblem[Choice]]] | None,
    ) -> None:
        """Go through subproblems by their bounds, until no other can hold a better choice."""
        self.queue = ranked
        while self.queue and self.queue[0].bound < self.value * (1 - self.gap):
            if self.tried and time.perf_counter() >= self.deadline:
                self.outcome = "time limit"
                return
            subproblem, remainder = self.queue[0], list(self.queue[1:])
            if merge is not None and self.tried >= merge[0]:
                promising = [
                    entry for entry in self.queue if entry.bound < self.value * (1 - self.gap)
                ]
                remainder = [entry for entry in self.queue if entry not in promising]
                subproblem = merge[1](promising) if len(promising) > 1 else subproblem
            rest_bound = min([self.proven, *(entry.bound for entry in remainder)])
            outcome, bound = self._searched(subproblem, rest_bound)
            self.queue = remainder
            # the subproblem's own bound holds whatever the solver proved until its time was up
            self.proven = min(
                self.proven, math.inf if outcome == "infeasible" else max(bound, subproblem.bound)
            )
            if outcome not in ("optimal", "infeasible"):
                self.outcome = outcome
                return
            if self.on_standing and self.queue:
                value = self.value if self.incumbent else None
                self.on_standing(SearchStanding(nodes=self.nodes, best=value, bound=self.bound))
        self.outcome = "optimal" if self.incumbent else "infeasible"

    def _searched(self, subproblem: Subproblem[Choice], rest_bound: float) -> tuple[Outcome, float]:
        """Show by a few cases that a subproblem holds nothing better than the best so far; else
        solve it, and show what the solver says, as far as they do.
        """
        if self.incumbent is not None and self._is_closed(subproblem, self.value):
            return "optimal", self.value
        outcome, bound = self._looked_into(subproblem, rest_bound)
        self.tried += 1
        while outcome == "optimal" and self.incumbent is not None:
            value = self.value
            target = min(max(bound, value * (1 - self.gap)), value)
            if self._is_closed(subproblem, target):
                return outcome, target
            if self.value == value:
                break
            bound = -math.inf  # the solver overlooked a choice, so that its bound is none
        return outcome, bound

    def _is_closed(self, subproblem: Subproblem[Choice], target: float) -> bool:
        """Whether cases prove that no choice of a subproblem is worth less than a target. One that
        is, since the solver overlooked it, is the best from then on.
        """
        if subproblem.close is None:
            return False
        if self.backend.cancel.is_set():
            raise KeyboardInterrupt  # what Ctrl-C raises
        started = time.perf_counter()
        bound, better = subproblem.close(target, self.deadline)
        if better is not None and better.value < self.value:
            self.incumbent = better
        self.solve_s += time.perf_counter() - started
        return bound >= target

    def _looked_into(
        self, subproblem: Subproblem[Choice], rest_bound: float
    ) -> tuple[Outcome, float]:
        """Solve a subproblem, and again in units of the best value where its own are so large that
        the solver cannot tell values near the best apart.
        """
        outcome, bound = self._solved(subproblem, rest_bound)
        nearer: Subproblem[Choice] | None = subproblem
        while (
            outcome == "optimal"
            and nearer is not None
            and nearer.closer is not None
            and self.incumbent is not None
        ):
            nearer = nearer.closer(self.value)
            if nearer is not None:
                outcome, bound = self._solved(nearer, rest_bound)
        return outcome, bound

    def _solved(self, subproblem: Subproblem[Choice], rest_bound: float) -> tuple[Outcome, float]:
        """Solve a subproblem, recompute, cut, and repeat; how it ended and what is proven of it.

        `rest_bound` is below all other subproblems.
        """
        started = time.perf_counter()
        model, unit = subproblem.build()
        self.build_s += time.perf_counter() - started
        starts = subproblem.starts
        while True:
            left_s = min(max(self.deadline - time.perf_counter(), 0.0), UNLIMITED_S)
            listener = rescaled(self._listener(rest_bound), unit, self.nodes)
            answer = self.backend.solve(model, left_s, listener, start=starts)
            self.add(answer)
            assert answer.outcome in ENDINGS, f"{self.backend.name}: {answer.detail}"
            if answer.value is None:
                return answer.outcome, answer.bound * unit
            decided = subproblem.read(model)
            if decided is not None and decided.value < self.value:
                self.incumbent = decided
            if decided is not None or answer.outcome != "optimal":
                return answer.outcome, answer.bound * unit
            self.cuts += 1
            starts = False  # what it started from may break the cut

    def _listener(self, rest_bound: float) -> OnStanding | None:
        """The listener, who hears of the best of all subproblems and of a bound below all."""
        listener = self.on_standing
        if listener is None:
            return None

        def tell(standing: SearchStanding) -> None:
            value = min(self.value, math.inf if standing.best is None else standing.best)
            # the others are not searched yet: no more is proven of all than their bounds say
            bound = (
                None
                if standing.bound is None or rest_bound == -math.inf
                else min(standing.bound, rest_bound)
            )
            listener(replace(standing, best=value if math.isfinite(value) else None, bound=bound))

        return tell
