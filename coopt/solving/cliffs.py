"""What little money buys and what little time saves, and the next best choice of products: designs
near the answer of one network.

The front of cost against time falls in steps, and the answer may stand right before one. All
designs that cost little more or take little longer are timed, as for the front; mappings that are
too slow for that are no part of it, so that it takes a fraction of the time of the whole front.
Products that cost hardly more are as good a choice where their prices may be off by as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from coopt.columns.table import Columns
from coopt.columns.times import unbounded
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of, price
from coopt.network.space import families
from coopt.perf.mapping import Floats
from coopt.plan.parts import Cost, Design, WorkloadPlan
from coopt.plan.schema import Alternative, Cliff, NextBest, Plan
from coopt.plan.store import decided, placed_as
from coopt.solving.days import ROUNDED
from coopt.solving.fronts.designs import PacedDesigns, all_designs
from coopt.solving.turns import Turn

LITTLE = 0.05
"""Share of money or of time that is little."""
CLEAR, STEEP = 3.0, 5.0
"""How many times more has to be gained, in shares, than is given for it; and what a share that is
given weighs where several designs are clear.
"""
NEAR_COST = 0.20
"""How much more the next best choice may cost, in shares: prices turn no choice that is farther."""
MOST_DESIGNS = 50_000
"""Families and uplinks within reach that are timed; of more nothing is told."""
TIES = 1e-9  # sums of floats in another order


def with_cliffs(instance: Instance, plan: Plan) -> Plan:
    """The plan with the designs near it that clearly save time or money, and the next best choice
    of products; of one network of switches that all workloads have in turn.
    """
    timed = plan.objective.kind not in ("time", instance.objective.billed)
    if plan.status != "optimal" or plan.design is None or plan.cost is None or timed:
        return plan
    question, answer = placed_as(*decided(instance, plan))
    if question.beyond_one_network:
        return plan
    near = _near(_bounded(question, answer), answer)
    if near is None:
        return plan
    beside = {"cliffs": tuple(near.cliffs()), "next_best": near.next_best(instance, plan.next_best)}
    return plan.model_copy(update=beside)


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


def _near(question: Instance, answer: Plan) -> _Near | None:
    """The designs near an answer; None where nothing is near, or too many are."""
    assert answer.cost is not None
    value = answer.cost.of(question.objective.minimize)
    # what stands costs nothing, of which nothing is a little
    for reach in (NEAR_COST, LITTLE) if value else ():
        near = tuple(_within_reach(question, value * (1.0 + reach)))
        if sum(len(family.uplink_choices) for family in near) <= MOST_DESIGNS:
            table = unbounded(question, near, lambda site: None, pace=1.0 + LITTLE)
            designs = all_designs(question, near, table, lambda: None)
            return None if designs is None else _Near(question, answer, value, designs, table)
    return None


@dataclass(frozen=True)
class _Near:
    """Designs near an answer, which is worth `value`."""

    question: Instance
    answer: Plan
    value: float
    designs: PacedDesigns
    table: Columns

    def cliffs(self) -> Iterator[Cliff]:
        """What clearly saves time, and what clearly saves money."""
        is_answer = self.designs.value <= self.value * (1.0 + TIES)
        pace = float(self.designs.pace[is_answer].min(initial=math.inf))
        ways: dict[Literal["time", "money"], Callable[[PacedDesigns, float, float], int | None]]
        ways = {"time": _faster, "money": _cheaper}
        for buys, best in ways.items():
            found = best(self.designs, pace, self.value)
            if found is not None:
                written = self._written_out(found)
                taken = _share_taken(self.question, written.workloads)
                yield Cliff(
                    buys=buys,
                    pace=taken / _share_taken(self.question, self.answer.workloads),
                    value=written.cost.of(self.question.objective.minimize),
                    design=written.design,
                    cost=written.cost,
                    workloads=written.workloads,
                )

    def next_best(self, instance: Instance, best: NextBest | None) -> NextBest | None:
        """Of designs in time of other products, the cheapest of each choice, and of the best with
        another GPU, the one that prices turn soonest; None where money is not what is minimised.
        """
        assert self.answer.design is not None
        kind, designs, own = self.answer.objective.kind, self.designs, _products(self.answer.design)
        if kind not in ("capex", "tco"):
            return None
        cheapest: dict[tuple[object, ...], int] = {}
        in_time = np.flatnonzero(designs.pace <= ROUNDED)
        for design in in_time[np.argsort(designs.value[in_time], kind="stable")].tolist():
            cheapest.setdefault(_products_of(designs.families[designs.family[design]]), design)
        cheapest.pop(own, None)
        assert self.answer.cost is not None
        turn_to = partial(Turn.of, instance, kind, self.answer.cost)
        turns = {design: turn_to(self._cost(design)) for design in cheapest.values()}
        soonest = max(turns, key=lambda design: turns[design].nearness, default=None)
        if soonest is None or (best and turns[soonest].nearness <= turn_to(best.cost).nearness):
            return best
        written = self._written_out(soonest)
        return NextBest(
            value=written.cost.of(kind),
            design=written.design,
            cost=written.cost,
            workloads=written.workloads,
            **turns[soonest].figures,
        )

    def _cost(self, design: int) -> Cost:
        family = self.designs.families[self.designs.family[design]]
        return cost_of(self.question, family, int(self.designs.uplinks[design]))

    def _written_out(self, design: int) -> Alternative:
        return self.designs.written_out(design, self.question, self.value, self.table)


def _products(design: Design) -> tuple[object, ...]:
    """What makes a choice of products: HB domain, fabric, NIC and switches."""
    fabric = design.fabric
    names = frozenset(fabric.switch_names)
    named = (fabric.kind, fabric.nic.name, fabric.nic.planes, names)
    return (design.hb_domain.name, *(named if fabric.tiers else ()))


def _products_of(family: Family) -> tuple[object, ...]:
    names = frozenset(switch.name for switch in family.switches)
    named = (family.fabric, family.nic.name, family.nic_planes, names)
    return (family.hb.name, *(named if family.tiers else ()))


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
