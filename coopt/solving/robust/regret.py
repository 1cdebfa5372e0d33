"""The network of least regret over the ways prices and efficiency may turn out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.linear import Affine, price
from coopt.network.parts import cost_of
from coopt.plan.robust import Turn
from coopt.solving.arrays import Problem, floats
from coopt.solving.loop import Search, cut_off
from coopt.solving.outcome import Run
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
        optics=tuple(times(optic, factors["optics"]) for optic in family.optics),
    )


def turns(outlooks: Sequence[Outlook], family: Family, uplinks: int) -> tuple[Turn, ...]:
    """What a network costs however prices turn out, beside the best."""
    return tuple(Turn(factors=one.factors, value=one.cost(family, uplinks), best=one.best) for one in outlooks)


def largest_regret(outlooks: Sequence[Outlook], family: Family, uplinks: int) -> float:
    """The largest excess of a network over the best one, at least 0."""
    return max(0.0, *(turn.value - turn.best for turn in turns(outlooks, family, uplinks)))


def with_scenarios(problem: Problem, outlooks: Sequence[Outlook]) -> RegretData:
    """The problem's arrays with the prices of every outlook, in its units."""
    scenarios = []
    for one in outlooks:
        cost = [one.price(family) for family in problem.families]
        scenarios.append(
            Scenario(
                fixed=floats(a.fixed / problem.scale for a in cost),
                uplink=floats(a.uplink / problem.scale for a in cost),
                spine=floats(a.spine / problem.scale for a in cost),
                best=one.best / problem.scale,
            )
        )
    most = [(family, family.uplink_choices[-1]) for family in problem.families]
    largest = max(largest_regret(outlooks, family, uplinks) for family, uplinks in most) / problem.scale
    shared = {field.name: getattr(problem.data, field.name) for field in fields(problem.data)}
    return RegretData(**shared, scenarios=tuple(scenarios), largest=largest + 1.0)


def search_regret(
    run: Run, instance: Instance, problem: Problem, table: Columns, outlooks: Sequence[Outlook]
) -> Search:
    """The network of least regret; what HiGHS decided is recomputed, and cut off where it breaks a bound or a limit."""
    started = time.perf_counter()
    model = build(with_scenarios(problem, outlooks), REGRET)
    build_s = time.perf_counter() - started
    nodes, handover_s, solve_s = 0, 0.0, 0.0
    while True:
        answer = run.backend.solve(model, max(run.deadline - time.perf_counter(), 0.0))
        nodes, handover_s, solve_s = nodes + answer.nodes, handover_s + answer.handover_s, solve_s + answer.solve_s
        found = None if answer.value is None else cut_off(instance, problem, table, model)
        if answer.value is not None and answer.outcome == "optimal" and found is None:
            continue
        return Search(
            found=found,
            answer=answer,
            model=model,
            bound=answer.bound * problem.scale,
            cuts=len(model.cuts),
            nodes=nodes,
            build_s=build_s,
            handover_s=handover_s,
            solve_s=solve_s,
        )
