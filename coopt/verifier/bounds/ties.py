"""Check the mappings that the model cannot tell apart: none that is nearer to published runs takes
as little time at no cost, and those that are listed run as they say.
"""

from __future__ import annotations

import math

from coopt.instance.question import BILLED
from coopt.instance.schema import Instance, question_on
from coopt.instance.variants import within
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import STRICT, TOLERANCE, Ledger
from coopt.verifier.parts.evidence import error_of_kind
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.spans import reach_of, slowest_case
from coopt.verifier.parts.timings import Timings, Trainer
from coopt.verifier.parts.workload_checks import (
    ClaimedRun,
    check_other,
)


def check_ties(ledger: Ledger, question: Instance, plan: Plan, parts: list[CountedPart]) -> None:
    """Check every mapping of a plan beside those that are as fast by the model."""
    if not question.tells_ties:
        return
    listed = {run.name: run for run in plan.ties}
    is_timed = plan.objective.kind != BILLED[plan.objective.kind]
    for part in parts:
        for run in part.runs:
            other = listed.pop(run.workload.name, None)
            beside = Ledger()
            own = question_on(question, part.family.hb.name)
            fault = _fault(beside, own, part, run, other, is_timed=is_timed)
            ledger.turn_to(f"Ties of {run.workload.name}", aside=True)
            ledger.take(check for check in beside.checks if check.name != "deadline")
            text = "none" if other is None else f"{other.iteration_time_s:.9g} s"
            ledger.holds(
                "ties",
                not fault,
                text,
                fault or "no other tied mapping is nearer to published runs",
                f"{fault}.",
            )
    ledger.turn_to()
    ledger.same(
        "ties",
        tuple(listed),
        (),
        "The plan has ties of workloads for which it has no valid mapping of its own:"
        f" {', '.join(listed)}.",
    )
    names = tuple(run.name for run in plan.ties)
    once = tuple(dict.fromkeys(names))
    ledger.same("ties", names, once, "A workload has several mappings among the ties of the plan.")


def _fault(
    ledger: Ledger,
    question: Instance,
    part: CountedPart,
    run: ClaimedRun,
    other: WorkloadPlan | None,
    *,
    is_timed: bool,
) -> str:
    """What is wrong with the choice among ties; empty if nothing."""
    claim, bound_s = run.claim, run.claim.bound_s
    runs = [claim] if other is None else [claim, other]
    if any(one.error is None for one in runs):
        return "The plan states no error of the iteration time of a mapping"
    reach, gpu = reach_of(part.family, part.ports), question.cluster.gpu
    if other is not None and not check_other(
        ledger, run, run.workload, other, part.family, reach, gpu
    ):
        return "The tied mapping is not feasible, or the plan misstates its figures"
    fast, *nearer = sorted(runs, key=lambda one: one.iteration_time_s)
    tied_s = fast.iteration_time_s * (1.0 + (fast.error or 0.0))
    for one in nearer:
        if one.iteration_time_s > tied_s * (1.0 + TOLERANCE):
            return (
                f"The slower of the tied mappings takes more than {tied_s:.9g} s, the longest time"
                " that is a tie"
            )
        if (one.error or 0.0) >= (fast.error or 0.0):
            return (
                "The slower of the tied mappings is no nearer to published runs than the faster one"
            )
    if is_timed and claim is not fast:
        return "The objective depends on time, but the plan has the slower of the tied mappings"
    index = [workload.name for workload in question.workload].index(run.workload.name)
    below_s = fast.iteration_time_s * (1.0 - TOLERANCE)
    quicker_s = Trainer(question).least_s(part.family, reach, index, below_s)
    # where ports are out at times, the fastest on average counts
    if quicker_s < below_s and not question.availability:
        return f"A mapping with {quicker_s:.9g} s an iteration is faster than any the plan states"
    limits = [(claim, min(tied_s, bound_s))]
    if claim is fast:
        # days in turn may have no room for one that is within its own bound
        may_cost = is_timed or question.limits.train_days_total is not None
        limits = [*([] if may_cost else limits), (nearer[0] if nearer else fast, tied_s)]
    for kept, limit_s in limits:
        below = (kept.error or 0.0) * (1.0 - TOLERANCE)
        found_s = _least_s(question, part, run, limit_s, below)
        if found_s < limit_s * (1.0 - TOLERANCE):
            return (
                f"A mapping that is nearer to published runs than one of the plan's takes"
                f" {found_s:.9g} s an iteration, within the limit of {limit_s:.9g} s"
            )
    return ""


def _least_s(
    question: Instance, part: CountedPart, run: ClaimedRun, limit_s: float, error: float
) -> float:
    """The least time below a limit of the mappings whose error is less; infinite without any."""
    workload, family, gpu = run.workload, part.family, question.cluster.gpu

    def error_at(across: bool, batch: int) -> float:
        return error_of_kind(gpu, workload, across, batch, family.gpus)

    spread = (False, True) if workload.model.experts else (False,)
    batches = tuple(
        batch
        for batch in workload.mapping.micro_batch
        if any(error_at(across, batch) < error for across in spread)
    )
    if not batches:
        return math.inf
    limits = workload.mapping.model_copy(update={"micro_batch": batches})
    bounded = within(workload.model_copy(update={"mapping": limits}), limit_s)
    timings = Timings((bounded,), gpu)
    reach, least_s = reach_of(family, part.ports), limit_s
    for undisturbed_s, (work, place) in timings.near_works(family, 0, STRICT):
        if undisturbed_s >= least_s:
            continue
        if error_at(place.ep_across > 1, work.split.micro_batch) < error:
            least_s = min(least_s, slowest_case(family, reach, work, place).seconds)
    return least_s if least_s < limit_s else math.inf
