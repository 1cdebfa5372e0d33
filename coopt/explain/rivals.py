"""What else was possible: the cheapest plan without an entry of a list or with nothing else in it,
with another choice of what is left open, and the runner-up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from coopt.explain.inquiry import Inquiry
from coopt.explain.labels import (
    SAYINGS,
    number,
    panels_apart,
    sentence,
    why_dearer,
    why_worse,
    without_optics,
)
from coopt.instance.base import Entry
from coopt.instance.rules.couplings import unsearched_runners_up
from coopt.instance.schema import Instance, with_part
from coopt.instance.texts import both, counted
from coopt.network.failures import slower_without_leaf
from coopt.network.family import Family
from coopt.network.plan_networks import families_of_design
from coopt.plan.contents import SOLD_AS, built, parts_used
from coopt.plan.explanation import Rival, RunnerUp
from coopt.plan.parts import Cost, Design, DirectLinks, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.solving.resolves import is_question, value_of, with_list

IDLE_WHERE_NOT_BUILT = (*SOLD_AS, "fabrics", "nics_per_gpu", "gpus_per_nic", "nic_planes")
"""Lists of whose entries a plan shows which ones it has."""
WITHIN_ONE = ("network.switches", "network.optics")
"""Lists of which one network may have several entries."""
PROVEN_NONE = "the search proved that there is none"


@dataclass(frozen=True, kw_only=True)
class ListedChoice:
    """An entry of a list with more than one, by the key of the list."""

    part: str
    entry: Any

    @property
    def name(self) -> str:
        """The entry as it stands in the instance."""
        return self.entry.name if isinstance(self.entry, Entry) else str(self.entry)

    def as_only(self, instance: Instance) -> Instance:
        """The instance with nothing else in the list."""
        return with_list(instance, self.part, (self.entry,))

    def excluded(self, instance: Instance) -> Instance:
        """The instance without it in the list."""
        return with_list(
            instance,
            self.part,
            tuple(entry for entry in instance.lists[self.part] if entry != self.entry),
        )

    def is_idle_in(self, plan: Plan) -> bool:
        """Whether a plan stands as it is without it; not where lists are told apart by more than
        what is built.
        """
        used = used_of(plan, self.part)
        return used is not None and self.name not in used


def used_of(plan: Plan, part: str) -> set[str] | None:
    """The entries of a list that a plan has, by their names; None where it does not show."""
    key = part.rpartition(".")[2]
    if key not in IDLE_WHERE_NOT_BUILT:
        return None
    used = {*map(str, parts_used(plan, key))}
    if key == "nics":  # GPUs of a single domain have theirs, which no bill counts
        used |= {
            (one if isinstance(one, DirectLinks) else one.fabric).nic.name for one in built(plan)
        }
    return used


def lists_of_choices(instance: Instance) -> Iterator[tuple[ListedChoice, ...]]:
    """The entries of every list with more than one, and the numbers of GPUs to choose from."""
    for part, entries in instance.lists.items():
        if len(entries) > 1:
            yield tuple(ListedChoice(part=part, entry=entry) for entry in entries)


@dataclass(frozen=True, kw_only=True)
class RivalPlans:
    """The rivals of a plan that costs `value`, which may be more than the `optimum` does."""

    study: Inquiry
    plan: Plan
    optimum: Plan
    value: float

    def among(self, entries: tuple[ListedChoice, ...]) -> list[Rival]:
        """The rivals of one list: what the plan costs more without an entry; where nothing, what it
        costs with that entry alone, unless that is the plan itself; of one that the plan has not,
        the latter.
        """
        rivals, others = list[Rival](), list[Plan]()
        for choice in entries:
            without, alone = choice.excluded(self._instance), choice.as_only(self._instance)
            # without what the optimum does not have nothing costs more than it does
            if not choice.is_idle_in(self.optimum) and self._is_question(without):
                plan = self.study.plan_of(without)
                others.append(plan)
                rival = self._compared(choice, plan, excluded=True)
                if rival.extra is None or rival.extra > 0:
                    rivals.append(rival)
                    continue
            used = used_of(self.plan, choice.part)
            is_own = used is not None and used <= {choice.name} and self._is_best
            if not is_own and self._is_question(alone):
                # the best without another entry may have this one alone
                known = (one for one in others if used_of(one, choice.part) == {choice.name})
                plan = next(known, None) or self.study.plan_of(alone)
                rivals.append(self._compared(choice, plan, excluded=False))
        return rivals

    @property
    def _is_best(self) -> bool:
        """Whether no plan costs less."""
        least = value_of(self.optimum)
        return least is not None and self.study.resolver.beyond(least, self.value) >= 0

    @property
    def _instance(self) -> Instance:
        return self.study.instance

    def _is_question(self, question: Instance) -> bool:
        """Whether the changed instance is a question, as far as the instance is one."""
        return is_question(question, self._instance)

    def _compared(self, choice: ListedChoice, rival: Plan, *, excluded: bool) -> Rival:
        value, extra = value_of(rival), None
        if value is None:
            reason = "; ".join(rival.explanation) or PROVEN_NONE
        else:
            extra = self.study.resolver.beyond(value, self.value)
            assert rival.cost is not None
            reason = self._why(rival.design, rival.cost, extra)
        is_fabric = choice.part == "network.fabrics" and not excluded and value is not None
        return Rival(
            part=choice.part,
            choice=choice.name,
            value=value,
            extra=extra,
            design=rival.design,
            why=reason,
            excluded=excluded,
            gives=_given_by(self._instance, self.plan, rival) if is_fabric else "",
        )

    def _why(self, design: Design | None, cost: Cost, extra: float) -> str:
        """Why another plan is not the chosen one."""
        ours, objective = self.plan.cost, self._instance.objective
        assert ours is not None
        same = "" if extra else SAYINGS[objective.minimize].same
        if same and objective.minimize == objective.billed:
            return same
        if self.plan.design is not None and design is not None:
            reason = why_dearer(objective, (self.plan.design, ours), (design, cost))
        else:
            bills = (panels_apart(self._instance, bill) for bill in (ours, cost))
            reason = why_worse(objective, *bills)
        if reason and self._instance.minimizes_regret:
            reason += " at list prices"
        less = "less" if extra < 0 else "more"
        return f"{same}, and {reason}" if same else reason or f"costs {less}"

    def runner_up(self) -> RunnerUp | None:
        """The best plan besides the optimum: the next one with what it has, or the best that lacks
        some of that.
        """
        found = [
            (plan.design, plan.cost, value)
            for plan, value in self.study.known
            if plan.cost is not None and self._is_other(plan)
        ]
        found += self._next_with_the_same()
        if not found:
            return None
        design, cost, value = min(found, key=itemgetter(2))
        extra = self.study.resolver.beyond(value, self.value)
        return RunnerUp(
            value=value, regret=extra, design=design, why=self._why(design, cost, extra)
        )

    @property
    def has_second(self) -> bool:
        """Whether the second best of all plans can be had; not of several networks, where another
        one may have the same entries of lists.
        """
        second = with_part(self._instance, "solver", {"top": 2})
        return self.optimum.design is not None and not any(unsearched_runners_up(second))

    def _is_other(self, plan: Plan) -> bool:
        """Whether a plan builds something else than other optics for the same network."""
        ours, theirs = self.optimum.design, plan.design
        if ours is None or theirs is None:
            return plan.parts != self.optimum.parts
        return without_optics(ours) != without_optics(theirs)

    def _next_with_the_same(self) -> Iterator[tuple[Design | None, Cost, float]]:
        """The second best of one network with its own entry of every list that gives it one."""
        question = self._instance
        if not self.has_second:
            return
        for entries in lists_of_choices(question):
            mine = [one for one in entries if not one.is_idle_in(self.optimum)]
            if len(mine) == 1 and entries[0].part not in WITHIN_ONE:
                question = mine[0].as_only(question)
        for one in self.study.resolver.plan(question, top=2).alternatives:
            if one.objective.value is not None:
                yield one.design, one.cost, one.objective.value


def _given_by(instance: Instance, plan: Plan, rival: Plan) -> str:
    """What else sets another fabric apart: whom it joins, how fast training is on it, and what it
    is without a leaf.
    """
    families = [
        next((family for family, _ in families_of_design(instance, one.design)), None)
        for one in (plan, rival)
        if one.design is not None
    ]
    if len(families) < 2 or not all(family and family.tiers for family in families):
        return ""
    ours, theirs = (family for family in families if family is not None)
    joins = ""
    if ours.rails_apart and _joins_all(theirs):
        joins = (
            "its switches connect any two GPUs, while the plan connects GPUs of different rails"
            " only inside HB domains"
        )
    elif theirs.rails_apart and _joins_all(ours):
        joins = (
            "it connects GPUs of different rails only inside HB domains, while the plan's switches"
            " connect any two GPUs"
        )
    hops, own_hops = 2 * theirs.tiers - 1, 2 * ours.tiers - 1
    way = (
        f"a route crosses at most {counted(hops, 'switch')}, against {own_hops} in the plan"
        if hops != own_hops
        else ""
    )
    speeds = (
        ()
        if instance.objective.minimize == "time"
        else (times_of((instance, plan), (instance, rival)),)
    )
    phrases = (
        ", and ".join(filter(None, (joins, way))),
        "; ".join([*speeds, _without_leaf(theirs, ours)]),
    )
    return ". ".join(map(sentence, filter(None, phrases)))


def _joins_all(family: Family) -> bool:
    """Whether switches above the leaves join all of them."""
    return family.fabric != "rail-only" and family.tiers > 1


def times_of(ours: tuple[Instance, Plan], theirs: tuple[Instance, Plan]) -> str:
    """`an iteration takes 0.3 s in place of 0.7 s`, or training, in days, where the bound is one of
    days; by workload where there are several. Plans come with what they answer.
    """
    own_runs, rivals = (
        {run.name: _took(instance, run) for run in plan.runs} for instance, plan in (ours, theirs)
    )
    phrases = list[str]()
    for name, (subject, own_text) in own_runs.items():
        if name in rivals:
            _, text = rivals[name]
            of = f" of {name}" if len(own_runs) > 1 else ""
            phrases.append(
                f"{subject}{of} takes as long as in the plan"
                if text == own_text
                else f"{subject}{of} takes {text} in place of {own_text}"
            )
    return both(phrases)


def _took(instance: Instance, run: WorkloadPlan) -> tuple[str, str]:
    """What takes time, and how long: an iteration, or training with a bound in days."""
    dated = (one for one in instance.workload if one.name == run.name and one.calendar)
    if (workload := next(dated, None)) is None:
        return "an iteration", f"{number(run.iteration_time_s)} s"
    return "training", workload.duration(run.promised_s)


def _without_leaf(rival: Family, ours: Family) -> str:
    """What the loss of a leaf does to traffic between HB domains, on theirs and on ours."""
    factor, own_factor = slower_without_leaf(rival), slower_without_leaf(ours)
    takes, own_takes = (
        "stops" if math.isinf(x) else f"takes {x:.4g} times as long" for x in (factor, own_factor)
    )
    if math.isclose(factor, own_factor):
        return f"after the loss of a leaf, traffic between HB domains {takes} on both networks"
    return (
        f"after the loss of a leaf, traffic between HB domains {takes}, while it {own_takes} on"
        " the plan's network"
    )
