"""Check what a plan says of numbers near those typed: which there may be, and how fast a workload
trains with them.

A batch is timed on the network of the plan. Of fewer GPUs it is known that they are no faster than
on a network that slows nothing down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.instance.variants import within
from coopt.instance.workload import Workload
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import BetterNumber, Plan
from coopt.verifier.checks.verdict import LENIENT, TOLERANCE, Ledger, agree
from coopt.verifier.couplings.prices import days_in_turn
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.space import DesignFamily, domain_counts
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.timings import Trainer

LEAST_SAVED, NEAR, MOST_IDLE = 0.05, 0.02, 0.25
DEGREES = ("cp", "micro_batch")


def check_better_numbers(ledger: Ledger, instance: Instance, plan: Plan, part: CountedPart) -> None:
    """Check every number that a plan says is better."""
    runs = {run.name: run for run in plan.workloads}
    for other in plan.ties:
        if other.name in runs and other.iteration_time_s < runs[other.name].iteration_time_s:
            runs[other.name] = other
    for claim in plan.better_numbers:
        fault = next(_faults(instance, claim, runs.get(claim.workload), part), None)
        ledger.holds(
            "better-number",
            fault is None,
            claim.value,
            None,
            f"The plan suggests {claim.value:,} in place of {claim.now:,} ({claim.key}), but"
            f" {fault}.",
        )


def _faults(
    instance: Instance, claim: BetterNumber, run: WorkloadPlan | None, part: CountedPart
) -> Iterator[str]:
    """What is wrong with such a number."""
    index, kind = _place(instance, claim)
    if index is None or run is None:
        yield f"the instance leaves no such number open for a workload {claim.workload!r}"
        return
    workload, family = instance.workload[index], part.family
    numbers = {"batch_tolerance": workload.global_batch, "idle_gpus": family.gpus}
    now = (numbers | run.mapping.model_dump())[kind]
    if claim.now != now:
        yield f"the number that it would replace is {now:,}"
    rise = claim.value - now
    near = {
        "batch_tolerance": 0 < abs(rise) <= NEAR * now,
        "idle_gpus": 0 < -rise <= MOST_IDLE * now,
    }
    if not near.get(kind, claim.value in (2 * now, 4 * now)):
        allowed = {
            "batch_tolerance": f"differ from the one in use by up to {NEAR:.0%}",
            "idle_gpus": f"be up to {MOST_IDLE:.0%} below the one in use",
        }
        yield f"that number has to {allowed.get(kind, 'be 2 or 4 times the one in use')}"
        return
    changed = workload
    if kind == "batch_tolerance":
        changed = workload.model_copy(update={"global_batch": claim.value})
    elif kind in DEGREES:
        limits = workload.mapping.model_copy(update={kind: (claim.value,)})
        changed = workload.model_copy(update={"mapping": limits})
    pace = run.uptime.pace if run.uptime else 1.0
    longer = workload.tokens_per_iteration / workload.tokens_for_one
    longer *= changed.tokens_for_one / changed.tokens_per_iteration
    saved = 1.0 - claim.iteration_time_s * longer * pace / run.iteration_time_s
    if not agree(claim.saved, saved):
        yield f"it saves {saved:.7%} of the time, where the plan says {claim.saved:.7%}"
    elif saved < LEAST_SAVED - TOLERANCE:
        yield (
            f"this saves {saved:.4%} of the time, and a suggestion has to save at least"
            f" {LEAST_SAVED:.0%}"
        )
    if kind != "idle_gpus":
        reach = reach_of(family, part.ports)
        # with TP groups inside HB domains, then as the workload has it
        ways = changed.model_copy(update={"allow_tp_across": False}), changed
        times = [_least_s(instance, of_tp, claim, family, reach) for of_tp in ways]
        if not any(agree(claim.iteration_time_s, time_s) for time_s in times):
            yield _time_fault(claim, min(times))
        return
    least_s = min(
        (
            _least_s(instance, changed, claim, fewer, Reach(domains, domains, domains, 1.0, 1.0))
            for domains in domain_counts(claim.value, family.hb.size)
            for fewer in [family._replace(gpus=claim.value, domains=domains)]
        ),
        default=math.inf,
    )
    if claim.iteration_time_s < least_s * (1 - TOLERANCE):
        yield _time_fault(claim, least_s, "at least ")


def _time_fault(claim: BetterNumber, least_s: float, degree: str = "") -> str:
    stated = f"where the plan says {claim.iteration_time_s:.9g} s"
    if math.isinf(least_s):
        return f"no mapping then takes nearly so little time, {stated}"
    return f"an iteration then takes {degree}{least_s:.9g} s, {stated}"


def _place(instance: Instance, claim: BetterNumber) -> tuple[int | None, str]:
    """The workload that a claim is about, and the last part of its key."""
    for index, workload in enumerate(instance.workload):
        if workload.name == claim.workload:
            kinds = {f"workload[{index}].batch_tolerance": "batch_tolerance"}
            if len(instance.workload) == 1:
                kinds["cluster.idle_gpus"] = "idle_gpus"
            kinds |= {
                f"workload[{index}].mapping.{degree}": degree
                for degree in DEGREES
                if degree not in workload.mapping.model_fields_set
            }
            if claim.key in kinds:
                return index, kinds[claim.key]
    return None, ""


def _least_s(
    instance: Instance, workload: Workload, claim: BetterNumber, family: DesignFamily, reach: Reach
) -> float:
    """The least time of an iteration; infinite where it is clearly above the claim."""
    bounded = within(workload, claim.iteration_time_s * (1 + NEAR))
    question = instance.model_copy(update={"workload": (bounded,)})
    return Trainer(question, LENIENT).least_s(family, reach, 0)


def bounded_as(instance: Instance, plan: Plan) -> Instance:
    """The instance, with the time that its plan takes as the bound of workloads without one."""
    workloads = []
    for workload, run in zip(instance.workload, plan.workloads, strict=True):
        seconds = run.iteration_time_s * (1 + workload.time_margin)
        own = workload.model_copy(update={"max_iteration_time_s": seconds})
        workloads.append(workload if workload.bounded else own)
    return instance.model_copy(update={"workload": tuple(workloads)})


def share_taken(instance: Instance, runs: Sequence[WorkloadPlan]) -> float:
    """The largest share of its bound that a workload takes, on the calendar where that is one on
    days, or that all of them take in turn.
    """
    shares = []
    for workload, run in zip(instance.workload, runs, strict=True):
        goodput = run.uptime.promised if run.uptime and workload.calendar else 1.0
        shares.append(run.iteration_time_s / goodput / workload.bound_s)
    if (most := instance.limits.train_days_total) is not None:
        shares.append(days_in_turn(instance, runs) / most)
    return max(shares)
