"""Solve changed instances one after the other, within the time limit of the first one for all of
them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from coopt.columns.islands.options import ListedIslands
from coopt.columns.islands.shapes import quick_degrees
from coopt.instance.existing import existing_complaints
from coopt.instance.hardware import Gpu
from coopt.instance.numerics import PROVEN
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import (
    NO_LIMIT,
    Instance,
    ample_s,
    domains_of,
    own_time,
    questions_by_gpu,
    require_decided,
    with_part,
)
from coopt.instance.texts import InstanceError
from coopt.instance.variants import inside_first, required_bounds, with_value
from coopt.plan.contents import SOLD_AS
from coopt.plan.schema import Plan
from coopt.solving.answer import solve_measured
from coopt.solving.feasibility import feasible
from coopt.solving.given_design import open_design
from coopt.solving.given_mappings import open_mapping, with_one_cp

ANY_PLAN_GAP = 0.99
"""A gap with which the first plan that is found ends the search."""
MORE_POWER = 4  # times as much power of a site is worth a try
SHARE, AS_LONG = 4, 3
"""A question may take one part in `SHARE` of the time left, or `AS_LONG` times as long as the first
one did.
"""


class UnprovenError(Exception):
    """A solve ended without proof; the reason is its text."""


def only_plan(instance: Instance) -> Plan:
    """The plan that an instance leaves, whatever its bounds; what has no key of its own is the
    cheapest.

    Raises
    ------
    InstanceError
        When a choice is open, with the keys to pin, or when nothing can be built.
    """
    require_decided(instance, "an evaluation")
    instance = instance.model_copy(update={"workload": with_one_cp(instance.workload)})
    if complaints := [*open_design(instance), *_open_workloads(instance)]:
        raise InstanceError(f"{instance.place}: {text}" for text in complaints)
    question = instance
    for bound in required_bounds(instance):
        ample = own_time(bound.workload, ample_s(bound.workload))
        question = with_value(question, bound.key, ample)
    for key in instance.limits.given:
        question = with_value(question, f"limits.{key}", NO_LIMIT)
    for i, site in enumerate(instance.site):
        question = with_value(question, f"site[{i}].power_mw", site.power_mw * MORE_POWER)
    plan = Resolver(instance, shared_out=False).plan(question)
    if plan.cost is None:
        raise InstanceError(f"{instance.place}: {text}" for text in plan.explanation)
    return plan


def _open_workloads(instance: Instance) -> Iterator[str]:
    """What workloads leave open on the GPUs that they have, in the last phase where there are
    several.
    """
    shared_out = instance.sharing.mode == "partition"
    for workload in instance.workload:
        sizes = workload.gpus if shared_out else (instance.cluster.most_gpus,)
        if sizes is None or (shared_out and len(sizes) > 1):
            yield (
                f"workload {workload.name!r}: gpus does not fix the size of its island, needs one"
                " number to evaluate"
            )
        elif instance.cluster.shares is None:  # shares of sites are of other numbers of GPUs
            yield from open_mapping(workload, sizes[-1])


class Resolver:
    """Answers changed instances, each once; how they are searched stays as the first instance says.

    Parameters
    ----------
    shared_out
        Whether a question may take a part of the time only, so that one that is hard leaves some to
        others.

    Attributes
    ----------
    solves
        How many questions were searched.
    """

    def __init__(self, instance: Instance, *, shared_out: bool = True) -> None:
        self._shared_out = shared_out
        self._deadline = time.perf_counter() + instance.solver.time_limit_s
        self._solver = instance.solver.model_copy(update={"top": 1})
        self._listed = ListedIslands(prices_vary=True)
        self._known: dict[tuple[str, str, float, int], tuple[Plan, bool]] = {}
        self._first_s: float | None = None
        self._least_costs: tuple[float, ...] = ()
        self.solves = 0

    def measure_from(self, optimum: Plan) -> None:
        """Measure the regrets of later questions from the least costs that this plan's is measured
        from.

        They then compare, and that of a question which allows more may be below 0.
        """
        self._least_costs = optimum.couplings.least_costs

    def beyond(self, value: float, than: float) -> float:
        """By how much a value is above another, 0 where that is rounding; a regret is a difference
        of costs.
        """
        smallest = max(abs(than), self._dearest) * PROVEN
        return 0.0 if abs(value - than) <= smallest else value - than

    @property
    def _dearest(self) -> float:
        """The largest of the costs that regrets are measured from; 0 where none are."""
        return max(self._least_costs, default=0.0)

    def plan(
        self, instance: Instance, *, gap: float | None = None, reasons: bool = True, top: int = 1
    ) -> Plan:
        """The optimum of an instance within the gap, or that there is none, on request without why
        and with so many best designs.

        Raises
        ------
        UnprovenError
            When the time for all questions has passed, or this one took more than its share of it.
        KeyboardInterrupt
            When the search was interrupted.
        """
        target_gap = self._solver.gap if gap is None else gap
        key = (instance.sha256, instance.objective.minimize, target_gap, top)
        plan, with_reasons = self._known.get(key, (None, False))
        if plan is None or (reasons and plan.cost is None and not with_reasons):
            plan = self._solved(instance, target_gap, reasons, top)
            self._known[key] = plan, reasons
        return plan

    def any_plan(self, instance: Instance) -> Plan | None:
        """The first plan that answers an instance, None where there is none; raises as `plan`
        does.
        """
        self.check_clock()  # what follows may be known without a search, again and again
        if _takes_too_long(instance):
            return None
        plan = self.plan(instance, gap=ANY_PLAN_GAP, reasons=False)
        return None if plan.cost is None else plan

    def has_plan(self, instance: Instance) -> bool:
        """Whether an instance has a plan; raises as `plan` does."""
        self.check_clock()
        if instance.beyond_one_network:
            return self.any_plan(instance) is not None
        return inside_first(instance, partial(feasible, check_clock=self.check_clock), bool)[0]

    def end_within(self, seconds: float) -> None:
        """Answer questions no longer than so many seconds from now."""
        self._deadline = min(self._deadline, time.perf_counter() + seconds)

    @contextmanager
    def within_share(self, share: float) -> Iterator[None]:
        """Answer questions within a share of the time that is left."""
        deadline = self._deadline
        self.end_within(share * (deadline - time.perf_counter()))
        try:
            yield
        finally:
            self._deadline = deadline

    def check_clock(self) -> None:
        """Raise UnprovenError when the time has passed."""
        if time.perf_counter() >= self._deadline:
            raise UnprovenError("time limit")

    def _solved(self, instance: Instance, gap: float, reasons: bool, top: int) -> Plan:
        self.check_clock()
        started = time.perf_counter()
        left_s = max(self._deadline - started, 1e-9)
        # the first question is the plan itself, without which the others are not asked: it may take
        # all the time
        if self._first_s is not None and self._shared_out:
            left_s = min(left_s, max(left_s / SHARE, AS_LONG * self._first_s))
        solver = self._solver.model_copy(update={"gap": gap, "time_limit_s": left_s, "top": top})
        self.solves += 1
        question = with_part(instance, "solver", solver.model_dump())
        least_costs = self._measured_from(instance, gap)
        plan = solve_measured(question, least_costs, listed=self._listed, reasons=reasons)
        if self._first_s is None:
            self._first_s = time.perf_counter() - started
        if plan.stop_reason == "interrupted":
            raise KeyboardInterrupt
        if plan.stop_reason == "time limit" or plan.status == "unknown":
            raise UnprovenError(plan.stop_reason)
        return self._measured(plan)

    def _measured_from(self, instance: Instance, gap: float) -> tuple[float, ...] | None:
        """From what the regret of a question is measured; None where its own least costs are
        sought.

        A plan that allows more may cost less than all that were asked for, and a search knows no
        regret below 0: it measures from costs that are less by the dearest of them. Any plan will
        do where nothing is compared.
        """
        if self._least_costs:
            return tuple(cost - self._dearest for cost in self._least_costs)
        return ((0.0,) * len(instance.price_scenarios) or None) if gap == ANY_PLAN_GAP else None

    def _measured(self, plan: Plan) -> Plan:
        """The plan with its regret from the costs that regrets are measured from."""
        claim = plan.objective
        if not self._least_costs or claim.value is None or claim.bound is None:
            return plan
        nearer = {"value": claim.value - self._dearest, "bound": claim.bound - self._dearest}
        return plan.model_copy(update={"objective": claim.model_copy(update=nearer)})


def _takes_too_long(instance: Instance) -> bool:
    """Whether compute alone breaks the bound of some workload, whatever the network and memory."""
    kinds, most = instance.cluster.kinds, instance.cluster.most_gpus
    elsewhere = instance.asks("phases", "ring") or instance.open_keys  # other bounds, or batches
    return not elsewhere and any(
        not any(len(quick_degrees(workload, gpu, most)) for gpu in kinds)
        for workload in instance.workload
    )


def value_of(plan: Plan) -> float | None:
    """The objective of a plan, None where there is no plan."""
    return None if plan.cost is None else plan.objective.value


def cheaper(value: float, than: float) -> bool:
    """Whether one value is below another by more than rounding."""
    return value < than - abs(than) * PROVEN


def _with_kinds(instance: Instance, kinds: tuple[Gpu, ...]) -> Instance:
    """The instance of islands with some kinds of GPUs, in the HB domains sold with these."""
    if len(kinds) == 1:
        by_gpu = questions_by_gpu(instance)
        return next(one for one in by_gpu if one.cluster.gpu.name == kinds[0].name)
    sold = {hb.name: hb for gpu in kinds for hb in domains_of(instance, gpu.name)}
    return instance.having(
        cluster={"gpu": kinds[0], "generations": kinds}, network={"hb_domains": (*sold.values(),)}
    )


def with_list(instance: Instance, part: str, entries: tuple[Any, ...]) -> Instance:
    """The instance with another list, and without discounts and panels for what it lists no
    longer.
    """
    table, key = part.split(".")
    if key == "gpu":
        return _with_kinds(instance, entries)
    question = with_part(instance, table, {key: entries})
    if key == "fabrics" and "direct" not in entries:
        question = with_part(question, "network", {"panels": ()})
    if key not in SOLD_AS or not instance.sharing.discount:
        return question
    names = {entry.name for entry in entries}
    discounts = tuple(
        discount
        for discount in instance.sharing.discount
        if discount.kind != SOLD_AS[key] or discount.item in names
    )
    return with_part(question, "sharing", {"discount": discounts})


def is_question(changed: Instance, instance: Instance) -> bool:
    """Whether an instance with another list is a question, as far as it was one before."""
    if changed.existing and any(existing_complaints(changed)):
        return False  # islands share what stands, which has to be listed then
    if not all(domains_of(changed, gpu.name) for gpu in changed.cluster.generations):
        return False
    return set(disagreements(changed)) <= set(disagreements(instance))
