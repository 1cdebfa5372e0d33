"""The cheapest plan of several networks in which one island does without something that it has: its
HB domain, its fabric, its NIC or one of its switches.

What such an island may be is listed again without that, since the islands of an answer lack those
that one with it dominates. All others may be anything, so that the least of a few searches, one for
each island and product, is the least of all such plans. Where they are not done in time, where
GPUs, batches or options were a choice too, or what stands or a core ties more than this, nothing is
said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coopt.columns.islands.options import ListedIslands
from coopt.instance.base import Entry
from coopt.instance.schema import Instance, with_part
from coopt.plan.parts import Design
from coopt.plan.schema import NextBest, Plan
from coopt.plan.store import placed_as
from coopt.solving.driver import Drive
from coopt.solving.fleet.answer import Offer, written
from coopt.solving.fleet.listing import (
    Listed,
    Together,
    islands_listed,
    numbers_of,
)
from coopt.solving.fleet.parts import subset
from coopt.solving.fleet.placed import slots_of
from coopt.solving.fleet.search import lower_bound, search_partition
from coopt.solving.resolves import is_question, with_list
from coopt.solving.runs import Run, StoppedError, backend_of
from formulations.choice_data import Ints

TIME_S = 6.0
"""What the searches may take, and no more than the time limit leaves."""
LISTINGS = 3
"""Times as long as the answer's own listing the searches take at least; of one network one less."""


def with_nearest(instance: Instance, plan: Plan) -> Plan:
    """The plan with the cheapest other choice for one of several networks; as it is where that may
    not be known in time.
    """
    is_cheapest = plan.status == "optimal" and plan.objective.kind in ("capex", "tco")
    if not is_cheapest or plan.next_best:
        return plan
    left_s = float(plan.solver.options["time_limit_s"]) - plan.timing_s.total
    time_s = min(TIME_S, left_s)
    question, answer = placed_as(instance, plan)
    listings = LISTINGS - (len(slots_of(question)) == 1)
    if time_s <= 0 or listings * plan.timing_s.columns > time_s:
        return plan
    others = (
        question.open_keys
        or question.robust
        or question.existing
        or question.sharing.core
        or question.asks("ring", "direct")
    )
    if others or not question.several_networks:
        return plan
    limited = with_part(question, "solver", {"time_limit_s": time_s})
    limited = with_part(limited, "objective", {"minimize": plan.objective.kind})
    try:
        run = Run(
            instance=limited,
            backend=backend_of(limited.solver),
            on_progress=None,
            listed=ListedIslands(),
        )
        found = _Nearest(run).found(answer)
    except StoppedError:
        return plan
    return plan.model_copy(update={"next_best": found})


@dataclass(frozen=True)
class _Nearest:
    """The searches of a question, with the time that they may take."""

    run: Run

    @property
    def question(self) -> Instance:
        """What is asked."""
        return self.run.instance

    @property
    def alone(self) -> bool:
        """Whether one network answers, beside which no other is chosen."""
        return len(slots_of(self.question)) == 1

    def found(self, answer: Plan) -> NextBest | None:
        """The cheapest plan in which an island lacks something; None without any.

        Raises
        ------
        StoppedError
            When time is up before it is known.
        """
        best: tuple[Offer, Drive[Ints]] | None = None
        least = math.inf
        for missing in _had(self.question, answer):
            offer, rows = self._offer(missing)
            data = subset(offer.data, rows)
            if len(np.unique(data.workload)) < data.workloads or lower_bound(data) >= least:
                continue
            ended = search_partition(
                data,
                gap=self.question.solver.gap,
                backend=self.run.backend,
                deadline=self.run.deadline,
                is_allowed=lambda some, offer=offer, rows=rows: offer.allowed(rows[some]),  # type: ignore[misc]
            )
            if ended.outcome not in ("optimal", "infeasible"):
                raise StoppedError(ended.outcome)
            if ended.found is not None and ended.value < least:
                best, least = (offer, replace(ended, found=rows[ended.found])), ended.value
        if best is None:
            return None
        offer, ended = best
        assert ended.found is not None, "what is best was found"
        parts, cost, couplings = written(offer, ended.found, self.question.losses)
        return NextBest(
            value=cost.of(self.question.objective.minimize),
            cost=cost,
            parts=parts,
            couplings=couplings,
        )

    def _offer(self, missing: Missing) -> tuple[Offer, Ints]:
        """What may be built with an island that lacks something, with the options that there are
        then.
        """
        lacking = self._without(missing.part, missing.entry)
        if self.alone:
            asked, only = lacking
            return Offer(instance=asked, options=only, data=numbers_of(asked, only)), np.arange(
                len(only)
            )
        (asked, every), (_, without) = self._every, lacking
        options = Together(lists=(every, without))
        lacks = np.arange(len(options)) >= len(every)
        offer = Offer(instance=asked, options=options, data=numbers_of(asked, options))
        return offer, np.flatnonzero(lacks == (options.slot == missing.slot))

    @cached_property
    def _every(self) -> Listed:
        (listed,) = islands_listed(self.run)  # of one question, as there is no core
        return listed

    def _without(self, part: str, entry: object) -> Listed:
        """The islands of the question without an entry of a list."""
        if (part, entry) not in self._listed:
            entries = tuple(one for one in self.question.lists[part] if one != entry)
            question = with_list(self.question, part, entries)
            if not is_question(question, self.question):
                raise StoppedError("no question")
            (self._listed[part, entry],) = islands_listed(replace(self.run, instance=question))
        return self._listed[part, entry]

    @cached_property
    def _listed(self) -> dict[tuple[str, object], Listed]:
        return {}


class Missing(NamedTuple):
    """An entry of a list that the island of a slot has, and shall do without."""

    slot: int
    part: str
    entry: object


def _had(question: Instance, plan: Plan) -> Iterator[Missing]:
    """What each island has of lists that leave a choice, once."""
    numbers = {slot.name: number for number, slot in enumerate(slots_of(question))}
    missing = dict[Missing, None]()
    for part in plan.parts:
        if part.design is not None:
            slot = numbers[part.slot]
            for key, names in listed_names(part.design).items():
                entries = question.lists.get(key, ())
                for entry in entries if len(entries) > 1 else ():
                    if (entry.name if isinstance(entry, Entry) else entry) in names:
                        missing[Missing(slot, key, entry)] = None
    yield from missing


def listed_names(design: Design) -> dict[str, set[str]]:
    """What a network has of lists, by their keys."""
    fabric = design.fabric
    found = {"network.hb_domains": {design.hb_domain.name}}
    if fabric.tiers:
        found |= {
            "network.fabrics": {fabric.kind},
            "network.nics": {fabric.nic.name},
            "network.switches": {*fabric.switch_names},
        }
    return found
