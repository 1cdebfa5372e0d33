"""The network of least regret over the ways prices and efficiency may turn out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyomo.core as pyo

from coopt.instance.schema import Instance
from coopt.network.family import Family, LinkEnds
from coopt.network.parts import Affine, cost_of, price
from coopt.plan.couplings import Turn
from coopt.solving.arrays import SharedProblem, assemble, floats, in_units_of
from coopt.solving.driver import Drive, Subproblem, drive
from coopt.solving.highs import LARGEST, NEAR
from coopt.solving.outcome import Candidate
from coopt.solving.runs import Run
from coopt.solving.shared import Field, subproblem
from formulations.regret import REGRET, RegretData, Scenario, build


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One way prices may turn out: factors, the instance then, and the objective of its best plan."""

    factors: dict[str, float]
    instance: Instance
    best: float

    def cost(self, family: Family, uplinks: int) -> float:
        """The objective of a network then."""
        return cost_of(self.instance, repriced(family, self.factors), uplinks).of(self.instance.objective.minimize)

    def price(self, family: Family) -> Affine:
        """The same as an affine function of uplinks and spines."""
        return price(self.instance, repriced(family, self.factors), self.instance.objective.minimize)


def repriced(family: Family, factors: dict[str, float]) -> Family:
    """A family whose parts cost these factors times what they did."""

    def times(part: Any, factor: float) -> Any:
        return part.model_copy(update={"usd": part.usd * factor})

    hb = family.hb.model_copy(update={"usd_per_gpu": family.hb.usd_per_gpu * factors["hb"]})
    return replace(
        family,
        hb=hb,
        nic=times(family.nic, factors["nic"]),
        switch=times(family.switch, factors["switch"]),
        upper=tuple(times(switch, factors["switch"]) for switch in family.upper),
        optics=tuple(LinkEnds(*(times(optic, factors["optics"]) for optic in ends)) for ends in family.optics),
    )


def turns(outlooks: Sequence[Outlook], family: Family, uplinks: int) -> tuple[Turn, ...]:
    """What a network costs however prices turn out, beside the best."""
    return tuple(Turn(factors=one.factors, value=one.cost(family, uplinks), best=one.best) for one in outlooks)


def largest_regret(outlooks: Sequence[Outlook], family: Family, uplinks: int) -> float:
    """The largest excess of a network over the best one, at least 0."""
    return max(0.0, *(turn.value - turn.best for turn in turns(outlooks, family, uplinks)))


def with_scenarios(problem: SharedProblem, outlooks: Sequence[Outlook]) -> RegretData:
    """The problem's arrays with the prices of every outlook, in its units and cut off as `in_units_of` does."""
    scenarios, largest = [], 0.0
    at_most = [(n, family.uplink_choices[-1]) for n, family in enumerate(problem.families)]
    spines = np.array([problem.families[n].spines(uplinks) for n, uplinks in at_most])
    for one in outlooks:
        prices = [one.price(family) for family in problem.families]
        fixed, uplink, spine = (
            np.minimum(floats(getattr(price, part) / problem.scale for price in prices), NEAR * LARGEST)
            for part in ("fixed", "uplink", "spine")
        )
        best = one.best / problem.scale
        scenarios.append(Scenario(fixed=fixed, uplink=uplink, spine=spine, best=best))
        costs = fixed + uplink * np.array([uplinks for _, uplinks in at_most]) + spine * spines
        largest = max(largest, float(costs.max()) - best)
    shared = {field.name: getattr(problem.data, field.name) for field in fields(problem.data)}
    return RegretData(**shared, scenarios=tuple(scenarios), largest=largest + 1.0)


def _of_problem(field: Field, outlooks: Sequence[Outlook], problem: SharedProblem) -> Subproblem[Candidate]:
    def build_model() -> tuple[pyo.ConcreteModel, float]:
        return build(with_scenarios(problem, outlooks), REGRET), problem.scale

    def regret(candidate: Candidate) -> float:
        return largest_regret(outlooks, candidate.family, candidate.uplinks)

    def closer(value: float) -> Subproblem[Candidate] | None:
        costs = value + max(one.best for one in outlooks)  # a regret is a difference of costs
        nearer = in_units_of(problem, costs)
        return None if nearer is None else _of_problem(field, outlooks, nearer)

    return replace(subproblem(field.instance, problem, field.table, build_model, regret), closer=closer)


def search_regret(run: Run, field: Field, outlooks: Sequence[Outlook]) -> Drive[Candidate]:
    """Search a field for the network of least regret."""
    network = _of_problem(field, outlooks, assemble(field.instance, field.families, field.table))
    gap = run.instance.solver.gap
    result = drive([network], run.backend, gap=gap, deadline=run.deadline, on_standing=run.tell_standing)
    run.log.searches.append(result)
    return result
