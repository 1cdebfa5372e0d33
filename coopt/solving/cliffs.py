"""What little money buys and what little time saves, and the next best choice of products: designs
near the answer of one network.

The front of cost against time falls in steps, and the answer may stand right before one. All
designs that cost little more or take little longer are timed, as for the front; mappings that are
too slow for that are no part of it, so that it takes a fraction of the time of the whole front.
Other products that cost up to a fifth more are as good a choice where their prices may be off by as
much. Of these only the cheapest design in time counts, so that the fewest uplinks are sought with
which their networks are in time, as for the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from coopt.columns.grid import context_of
from coopt.columns.table import Columns, columns, from_least, needs
from coopt.columns.times import unbounded
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.texts import grouped
from coopt.network.family import Family
from coopt.network.laying import least_laid
from coopt.network.parts import cost_of, least_worth, within_limits
from coopt.network.space import Space, one_by_one
from coopt.perf.mapping import Floats
from coopt.plan.contents import promised_days_in_turn
from coopt.plan.parts import Cost, Design, WorkloadPlan
from coopt.plan.schema import Cliff, NextBest, Plan
from coopt.plan.store import decided, placed_as
from coopt.solving.days import in_days
from coopt.solving.driver import recomputed, written_out
from coopt.solving.families import every_family, repriced
from coopt.solving.fronts.designs import PacedDesigns, all_designs
from coopt.solving.shared import site_floor
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
"""Families and uplinks within reach that are looked at; of more nothing is told."""
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
    assert answer.design is not None
    value = answer.cost.of(question.objective.minimize)
    # what stands costs nothing, of which nothing is a little
    if not value:
        return None
    reach = tuple(_within_reach(question, value * (1.0 + NEAR_COST)))
    if sum(len(priced.values) for priced in reach) > MOST_DESIGNS:
        reach = _up_to(reach, value * (1.0 + LITTLE))
    if not reach or sum(len(priced.values) for priced in reach) > MOST_DESIGNS:
        return None
    return _Near(question, answer, value, reach)


class FamilyInReach(NamedTuple):
    """A family with those of its uplinks that are within reach, and what each is worth."""

    family: Family
    values: Floats

    def up_to(self, most: float) -> FamilyInReach | None:
        """The same with the uplinks that are worth no more than a limit; None without any."""
        is_within = self.values <= most
        if is_within.all():
            return self
        choices = tuple(np.array(self.family.uplink_choices)[is_within].tolist())
        family = replace(self.family, uplink_choices=choices)
        return FamilyInReach(family, self.values[is_within]) if choices else None


def _up_to(reach: Iterable[FamilyInReach], most: float) -> tuple[FamilyInReach, ...]:
    """Families with the uplinks that are worth no more than a limit."""
    narrowed = (priced.up_to(most) for priced in reach)
    return tuple(priced for priced in narrowed if priced is not None)


@dataclass(frozen=True)
class _Near:
    """Designs near an answer, which is worth `value`: all within `reach`."""

    question: Instance
    answer: Plan
    value: float
    reach: tuple[FamilyInReach, ...]

    def cliffs(self) -> Iterator[Cliff]:
        """What clearly saves time, and what clearly saves money, of what costs little more."""
        little = _up_to(self.reach, self.value * (1.0 + LITTLE) * (1.0 + TIES))
        some = tuple(priced.family for priced in little)
        table = unbounded(self.question, some, lambda site: None, pace=1.0 + LITTLE)
        is_quick = {site: True for _, site in table.pools}
        for (_, site), pool in table.pools.items():
            is_quick[site] &= len(pool) > 0
        some = tuple(family for family in some if is_quick[context_of(family).site])
        designs = all_designs(self.question, some, table, lambda: None)
        if designs is None:
            return
        is_answer = designs.value <= self.value * (1.0 + TIES)
        pace = float(designs.pace[is_answer].min(initial=math.inf))
        ways: dict[Literal["time", "money"], Callable[[PacedDesigns, float, float], int | None]]
        ways = {"time": _faster, "money": _cheaper}
        for buys, best in ways.items():
            found = best(designs, pace, self.value)
            if found is not None:
                written = designs.written_out(found, self.question, self.value, table)
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
        kind = self.answer.objective.kind
        if kind not in ("capex", "tco"):
            return None
        assert self.answer.cost is not None
        turn_to = partial(Turn.of, instance, kind, self.answer.cost)
        turns = [(design, turn_to(design.cost)) for design in self._cheapest_of_others(kind)]
        soonest, turn = max(turns, key=lambda at: at[1].nearness, default=(None, None))
        if turn is None or soonest is None:
            return best
        if best and turn.nearness <= turn_to(best.cost).nearness:
            return best
        family, table = soonest.family, soonest.table
        design = recomputed(self.question, table, family, family.uplink_choices[0])
        written = written_out(self.question, design, self.value, table)
        return NextBest(
            value=written.cost.of(kind),
            design=written.design,
            cost=written.cost,
            workloads=written.workloads,
            **turn.figures,
        )

    def _cheapest_of_others(self, kind: ObjectiveKind) -> list[_Billed]:
        """Of each other choice of products the cheapest design in time, by rising value.

        Families are looked at by what they are worth at least, a few of each choice at first, until
        no other can be cheaper.
        """
        assert self.answer.design is not None
        waiting = grouped((_products_of(priced.family), priced) for priced in self.reach)
        waiting.pop(_products(self.answer.design), None)
        for families in waiting.values():
            families.sort(key=lambda priced: float(priced.values[0]))
        cheapest: dict[Products, _Billed | None] = dict.fromkeys(waiting)
        count = 1
        while waiting:
            some = [priced.family for families in waiting.values() for priced in families[:count]]
            for found in self._in_time(some, kind):
                products = _products_of(found.family)
                rival = cheapest[products]
                if rival is None or found.worth < rival.worth:
                    cheapest[products] = found
            for products, families in list(waiting.items()):
                rival = cheapest[products]
                most = math.inf if rival is None else rival.worth * (1.0 + TIES)
                waiting[products] = [one for one in families[count:] if one.values[0] <= most]
            waiting = {products: families for products, families in waiting.items() if families}
            count *= 2
        billed = [design for design in cheapest.values() if design is not None]
        return sorted(billed, key=lambda design: design.worth)

    def _in_time(self, some: Sequence[Family], kind: ObjectiveKind) -> Iterator[_Billed]:
        """Families with those of their uplinks with which they are in time, within the limits."""
        question = self.question
        table = columns(question, tuple(some), lambda site: None, lambda: None)

        def worth(built: Family, uplinks: int) -> float:
            is_within = within_limits(question, built, cost_of(question, built, uplinks))
            return least_worth(question, built, kind) if is_within else math.inf

        for family in in_days(question, _quick(question, some, table), table, lambda: None):
            # more uplinks may have cheaper cables
            floors = (
                (least_worth(question, one, kind), one.uplink_choices[0], one)
                for one in one_by_one(family)
            )
            built = least_laid(question, floors, worth)
            if built is not None:
                cost = cost_of(question, built, built.uplink_choices[0])
                yield _Billed(built, least_worth(question, built, kind), cost, table)


class _Billed(NamedTuple):
    """A family with its fewest uplinks: what that is worth up to rounding, its bill, and the
    mappings that say which are.
    """

    family: Family
    worth: float
    cost: Cost
    table: Columns


def _quick(question: Instance, some: Iterable[Family], table: Columns) -> tuple[Family, ...]:
    """Families with those of their uplinks with which each workload has a mapping in time."""
    need = needs(table.columns, len(question.workload))
    return tuple(
        from_least((family, need.get(table.numbers[context_of(family)])) for family in some)
    )


Products = tuple[object, ...]
"""What makes a choice of products: HB domain, fabric, NIC and switches."""


def _products(design: Design) -> Products:
    fabric = design.fabric
    names = frozenset(fabric.switch_names)
    named = (fabric.kind, fabric.nic.name, fabric.nic.planes, names)
    return (design.hb_domain.name, *(named if fabric.tiers else ()))


def _products_of(family: Family) -> Products:
    names = frozenset(switch.name for switch in family.switches)
    named = (family.fabric, family.nic.name, family.nic_planes, names)
    return (family.hb.name, *(named if family.tiers else ()))


def _share_taken(question: Instance, runs: Sequence[WorkloadPlan]) -> float:
    """The largest share that a workload takes of its bound, with interruptions where it is one on
    days, or all in turn of theirs.
    """
    shares = [
        (run.promised_s if workload.calendar else run.iteration_time_s) / workload.bound_s
        for workload, run in zip(question.workload, runs, strict=True)
    ]
    if (total := question.limits.train_days_total) is not None:
        shares.append(promised_days_in_turn(question, runs) / total)
    return max(shares)


def _within_reach(question: Instance, most: float) -> Iterator[FamilyInReach]:
    """The families with those of their uplinks that are worth no more than a limit."""
    space = Space(instance=question, unlaid=True)
    sites = [
        site
        for site in space.all_sites()
        if question.stands or site_floor(space, *site) <= most * (1.0 + TIES)
    ]
    # most families are out of reach with their fewest uplinks already
    near = [
        (family, worth)
        for _, family, worth in every_family(space, sites, lambda: None)
        if worth.at(family, family.uplink_choices[0]) <= most * (1.0 + TIES)
    ]
    families = repriced(question, (family for family, _ in near))
    for family, (_, worth) in zip(families, near, strict=True):
        values = worth.at(family, np.array(family.uplink_choices))
        priced = FamilyInReach(family, np.asarray(values, dtype=np.float64)).up_to(most)
        if priced is not None:
            yield priced


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
