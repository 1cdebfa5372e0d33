"""What a plan rests on: each assumption with what it is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from coopt.instance.couplings import LOST, Prices
from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import both, grouped
from coopt.instance.variants import workloads_in
from coopt.instance.workload import Workload
from coopt.plan.couplings import network_of
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Assumption, NextBest, Plan
from coopt.report import words
from coopt.report.suggestions import changes
from coopt.report.time_errors import accuracy, certainty, outside_note
from coopt.report.words import PlanFact

ROUTING = {
    "spray": "flows are sprayed over all paths",
    "pinned": "each flow is pinned to one path",
    "ecmp": "each flow takes a path at random (ECMP)",
}


def routing_words(routing: str | float) -> str:
    """How flows share the links above leaves."""
    return (
        ROUTING[routing]
        if isinstance(routing, str)
        else f"the busiest links carry {routing:g} times the mean load"
    )


def balance_texts(workload: Workload, ep: int) -> list[str]:
    """How evenly routers are taken to send tokens to experts; nothing of a dense model."""
    if not workload.model.experts:
        return []
    if workload.balance == "forced":
        return ["experts are equally loaded on all GPUs (balance = forced)"]
    if ep == 1:
        return [f"all GPUs are equally loaded, as EP is 1 (balance = {workload.balance})"]
    from coopt.perf.mapping import unevenness  # loads arrays

    times = float(unevenness(workload, ep))
    return [f"the busiest GPU has {times:.2f} times the mean load (balance = {workload.balance})"]


def rests_on(instance: Instance, plan: Plan, *, brief: bool = False) -> Iterator[PlanFact]:
    """The error of the model, routing, balance of experts, failures and prices; in brief what each
    is worth alone, in a line where that will do.
    """
    fact = partial(PlanFact, "rests", "")
    on = {
        run.name: question_on(instance, network_of(part).hb_domain.name)
        for part in plan.parts
        for run in part.workloads
    }
    if errors := [*accuracy(instance, plan.runs, on, with_slack=len(plan.parts) > 1)]:
        sure = [*certainty(instance, plan.runs, brief=brief)]
        yield fact("Times", " ".join(sure if brief and sure else [*sure, *errors]))
    for outside in outside_note(plan.runs, brief=brief):
        yield fact("Unmeasured", outside)
    by_key = grouped((one.key.partition(" = ")[0], one) for one in plan.assumptions)
    for key, (name, text) in ASSUMED.items():
        if key in by_key:
            yield fact(name, text(instance, plan, by_key[key], brief))
    if plan.couplings.ring is not None and instance.availability is None:
        yield fact("Failures", "not counted ([availability] counts them)")
    elif any(part.links is not None for part in plan.parts):
        yield fact("Failures", "not counted (coopt counts them only on networks of switches)")
    if losses := _losses(instance, plan):
        yield fact("Losses", losses)
    if plan.next_best is not None:
        yield fact("Prices", _prices(plan, plan.next_best, brief=brief))
    elif is_cheapest(plan) and plan.rivals is None:
        yield fact("Prices", _unsought(instance, plan))


def _losses(instance: Instance, plan: Plan) -> str:
    """`time bounds hold without any one NIC or leaf`; empty where nothing has to be survived."""
    ring = plan.couplings.ring
    parts = grouped(
        (times, LOST[part])
        for part, times in instance.losses.items()
        if part != "channel" or (ring is not None and ring.wan)
    )
    kept = [
        f"time bounds{f', {times:g} times as long,' if times != 1 else ''} hold without any one"
        f" {words.alternatives(of)}"
        for times, of in parts.items()
    ]
    return "; ".join(kept)


def _worst(assumptions: list[Assumption]) -> Assumption:
    """That of the workload to which it makes most difference."""
    return max(assumptions, key=lambda one: abs((one.time_ratio or 0.0) - 1.0))


def _asked_and_run(
    instance: Instance, plan: Plan, assumption: Assumption
) -> tuple[Workload, WorkloadPlan]:
    part = [part for part in plan.parts if assumption.workload in [r.name for r in part.workloads]]
    (run,) = (run for run in part[-1].workloads if run.name == assumption.workload)
    asked = workloads_in(instance, part[-1].phase)
    return next(workload for workload in asked if workload.name == run.name), run


def _took(instance: Instance, plan: Plan, assumption: Assumption) -> str:
    """How long training takes, or an iteration."""
    workload, run = _asked_and_run(instance, plan, assumption)
    several = f" ({run.name})" if len(instance.workload) > 1 else ""
    ratio = assumption.time_ratio or 0.0
    if workload.train_tokens is not None:
        return f"{workload.duration(run.promised_s * ratio)}{several}"
    return f"{words.seconds(run.iteration_time_s * ratio)}{several}"


def _took_in_bound(instance: Instance, plan: Plan, assumption: Assumption) -> str:
    """`3.415 s (gpt), over its bound`."""
    run = _asked_and_run(instance, plan, assumption)[1]
    time_s = run.iteration_time_s * (assumption.time_ratio or 0.0)
    over = ", over its bound" if run.bounded and time_s > run.bound_s else ""
    return f"{_took(instance, plan, assumption)}{over}"


def _takes(instance: Instance, plan: Plan, assumption: Assumption) -> str:
    """`training takes 38.2 days`, as a clause."""
    dated = _asked_and_run(instance, plan, assumption)[0].train_tokens is not None
    return f"{'training' if dated else 'an iteration'} takes {_took(instance, plan, assumption)}"


def _routing(instance: Instance, plan: Plan, assumptions: list[Assumption], brief: bool) -> str:
    worst = _worst(assumptions)
    fabrics = [part.design.fabric for part in plan.parts if part.design is not None]
    assumed = routing_words(next(of.routing for of in fabrics if of.tiers > 1))
    if abs((worst.time_ratio or 0.0) - 1.0) < ALIKE:
        return f"{assumed}; ECMP takes no longer"
    if brief:
        return f"not ECMP, which takes {_took_in_bound(instance, plan, worst)}"
    return f"{assumed}; {_takes(instance, plan, worst)} under ECMP ({worst.key})"


def _experts(instance: Instance, plan: Plan, assumptions: list[Assumption], brief: bool) -> str:
    worst = _worst(assumptions)
    workload, run = _asked_and_run(instance, plan, worst)
    (assumed,), other = balance_texts(workload, run.mapping.ep), worst.key.split('"')[1]
    of = f"{run.name}: " if len({one.key for one in assumptions}) > 1 else ""
    if brief:
        takes = f"takes {_took_in_bound(instance, plan, worst)}"
        return f"{of}{workload.balance} balance; {other} {takes}"
    return f"{of}{assumed}; {_takes(instance, plan, worst)} with balance = {other}"


def _failures(instance: Instance, plan: Plan, assumptions: list[Assumption], brief: bool) -> str:
    """With the domains of the plan, then with enough that stand by."""
    worst = _worst([one for one in assumptions if one.time_ratio is not None] or assumptions)
    built, *spared = (one for one in assumptions if one.workload == worst.workload)
    dated = _asked_and_run(instance, plan, built)[0].train_tokens is not None

    def amount(one: Assumption) -> str:
        share = words.percent(1.0 / (one.time_ratio or math.inf))
        return _took(instance, plan, one) if dated else share

    one_of_several = len(instance.workload) > 1 and not dated
    trained = built.workload if one_of_several else "training"
    verb, end = ("take", "") if dated else ("train" if one_of_several else "run", " of the time")
    would = f"{verb} {amount(built)}{end}"
    if built.time_ratio is None:
        would = "make hardly any progress"
    for one in spared:
        spares = f"with {words.counted(one.spare_domains, 'spare domain')}"
        if one.time_ratio is None:
            would += f", even {spares}"
        elif built.time_ratio is None:
            would += f", but {verb} {amount(one)}{end} {spares}"
        else:
            would += f", or {amount(one)} {spares}"
    key = "" if brief else f" ({built.key})"
    return f"not counted; at published rates{key} {trained} would {would}"


ALIKE = 1e-4  # of the time
ASSUMED = {
    "network.routing": ("Routing", _routing),
    "workload.balance": ("Experts", _experts),
    "availability.rates": ("Failures", _failures),
}
"""What a plan assumes, by the key that has it otherwise."""


def is_cheapest(plan: Plan) -> bool:
    """Whether a plan is proven to be the best by its price, so that others may come next."""
    return plan.status == "optimal" and plan.objective.kind in ("capex", "tco")


def _unsought(instance: Instance, plan: Plan) -> str:
    """What is known of prices where no other choice is, and who knows more."""
    outlooks = plan.couplings.outlooks
    several = any(len(entries) > 1 for entries in instance.lists.values())
    some = several or plan.chosen.text or instance.open_keys
    known = (
        "the closest alternative is not known" if some else "no list leaves another choice of parts"
    )
    if outlooks is not None and outlooks.turns:
        worst = max(outlooks.turns, key=lambda turn: turn.regret)
        lower = words.amount(plan.objective.kind, worst.regret)
        factors = both(f"{kind} x {by:g}" for kind, by in worst.factors.items() if by != 1.0)
        known = "at all prices that [robust] allows, no plan is cheaper"
        if worst.regret > 0:
            at = factors or "list prices"
            known = f"at {at} another plan is {lower} cheaper, and less so at other prices"
    elif instance.robust is not None and instance.robust.prices != Prices():
        known = "the worst that [robust] allows"
    return f"{known}; coopt explain says more"


def _prices(plan: Plan, other: NextBest, *, brief: bool = False) -> str:
    """By how much products were chosen, and which price turns that."""
    assert plan.cost is not None
    own = plan.cost.of(plan.objective.kind)
    what = other.chosen.text or changes(plan, other)
    share = other.value / own - 1.0 if own else 0.0
    if share < ALIKE:
        return f"another choice costs the same: {what}"
    dearer = f"costs {words.percent(share)} more: {what}"
    if other.parts:
        return f"the closest alternative {dearer}"
    turn = "Halving or doubling the price of any one product would not make it the cheaper one"
    if other.product:
        source = (
            f" (that price is uncertain by {words.percent(other.doubt)})" if other.doubt else ""
        )
        rise = words.percent(abs(other.turns_at - 1.0))
        higher = "more expensive" if other.turns_at > 1.0 else "cheaper"
        turn = f"The two choices are equally good if {other.product} is {rise} {higher}{source}"
        if brief:
            close = " (a close call)" * other.close
            return f"an alternative {dearer}; as good if {other.product} is {rise} {higher}{close}"
    elif brief:
        return f"the likeliest alternative {dearer}"
    call = " This is a close call: several uncertain prices together could reverse the choice."
    return f"the likeliest alternative {dearer}. {turn}.{call * other.close}"
