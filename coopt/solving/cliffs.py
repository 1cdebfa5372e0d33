"""What little money buys and what little time saves: designs near the answer of one network.

The front of cost against time falls in steps, and the answer may stand right before one. All
designs that cost little more or take little longer are timed, as for the front; mappings that are
too slow for that are no part of it, so that it takes a fraction of the time of the whole front.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from coopt.columns.times import unbounded
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import price
from coopt.network.space import families
from coopt.perf.mapping import Floats
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Cliff, Plan
from coopt.plan.store import decided, placed_as
from coopt.solving.fronts.designs import PacedDesigns, all_designs

LITTLE = 0.05
"""Share of money or of time that is little."""
CLEAR, STEEP = 3.0, 5.0
"""How many times more has to be gained, in shares, than is given for it; and what a share that is
given weighs where several designs are clear.
"""
MOST_DESIGNS = 50_000
"""Families and uplinks within reach that are timed; of more nothing is told."""
TIES = 1e-9  # sums of floats in another order


def with_cliffs(instance: Instance, plan: Plan) -> Plan:
    """The plan with the designs near it that clearly save time or money, of one network of switches
    that all workloads have in turn.
    """
    timed = plan.objective.kind not in ("time", instance.objective.billed)
    if plan.status != "optimal" or plan.design is None or plan.cost is None or timed:
        return plan
    question, answer = placed_as(*decided(instance, plan))
    if question.beyond_one_network:
        return plan
    return plan.model_copy(update={"cliffs": tuple(_cliffs(_bounded(question, answer), answer))})


def _bounded(question: Instance, answer: Plan) -> Instance:
    """The question by its bill, each workload without a bound within the time that it takes."""
    workloads = tuple(
        workload
        if workload.bounded
        else workload.model_copy(
            update={"max_iteration_time_s": run.iteration_time_s * (1.0 + workload.time_margin)}
        )
        for workload, run in zip(question.workload, answer.workloads, strict=True)
    )
    kind = question.objective.billed if answer.objective.kind == "time" else answer.objective.kind
    return question.having(workload=workloads, objective={"minimize": kind})


def _cliffs(question: Instance, answer: Plan) -> Iterator[Cliff]:
    assert answer.cost is not None
    value = answer.cost.of(question.objective.minimize)
    near = tuple(_within_reach(question, value * (1.0 + LITTLE)))
    # what stands costs nothing, of which nothing is a little
    if not value or sum(len(family.uplink_choices) for family in near) > MOST_DESIGNS:
        return
    table = unbounded(question, near, lambda site: None, pace=1.0 + LITTLE)
    designs = all_designs(question, near, table, lambda: None)
    if designs is None:
        return
    is_answer = designs.value <= value * (1.0 + TIES)
    pace = float(designs.pace[is_answer].min(initial=math.inf))
    ways: dict[Literal["time", "money"], Callable[[PacedDesigns, float, float], int | None]]
    ways = {"time": _faster, "money": _cheaper}
    for buys, best in ways.items():
        found = best(designs, pace, value)
        if found is not None:
            written = designs.written_out(found, question, value, table)
            taken = _share_taken(question, written.workloads)
            yield Cliff(
                buys=buys,
                pace=taken / _share_taken(question, answer.workloads),
                value=written.cost.of(question.objective.minimize),
                design=written.design,
                cost=written.cost,
                workloads=written.workloads,
            )


def _share_taken(question: Instance, runs: Sequence[WorkloadPlan]) -> float:
    """The largest share that a workload takes of its bound, with interruptions where it is one on
    days.
    """
    return max(
        (run.promised_s if workload.calendar else run.iteration_time_s) / workload.bound_s
        for workload, run in zip(question.workload, runs, strict=True)
    )


def _within_reach(question: Instance, most: float) -> Iterator[Family]:
    """The families with those of their uplinks that cost little more at most."""
    for family in families(question):
        worth = price(question, family, question.objective.minimize)
        choices = np.array(family.uplink_choices)
        cheap = choices[np.asarray(worth.at(family, choices)) <= most]
        if len(cheap):
            yield replace(family, uplink_choices=tuple(cheap.tolist()))


def _faster(designs: PacedDesigns, pace: float, value: float) -> int | None:
    """The design that little money buys most time with."""
    more = np.maximum(designs.value / value - 1.0, 0.0)
    return _clearest(1.0 - designs.pace / pace, more)


def _cheaper(designs: PacedDesigns, pace: float, value: float) -> int | None:
    """The design that little time beyond the bounds saves most money with."""
    longer = np.maximum(designs.pace / max(pace, 1.0) - 1.0, 0.0)
    return _clearest(1.0 - designs.value / value, longer)


def _clearest(gained: Floats, given: Floats) -> int | None:
    """The design with the most gained for what is given, where both are clear."""
    clear = (given <= LITTLE) & (gained >= LITTLE) & (gained >= CLEAR * given)
    if not clear.any():
        return None
    return int(np.argmax(np.where(clear, gained - STEEP * given, -np.inf)))
