"""The best plan of a question that leaves generations of GPUs, batches or knobs open: each choice is searched.

A choice is a question of its own, so that nothing new is searched. The best plan is the cheapest of all choices, and
the lowest of their bounds is one on all plans. An iteration's time is compared by that of the training, as larger
batches take fewer iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from coopt.instance.choices import Chosen, at_choice, choices_of, seconds_weight
from coopt.plan.schema import Plan
from coopt.solving.outcome import claim_of, identity, infeasible, unknown, within_gap
from coopt.solving.runs import Run, StoppedError

TOLD = 5
"""Choices whose reasons are told where no choice has a plan."""


def best_choice(run: Run, answer: Callable[[Run], Plan]) -> Plan:
    """The best plan of all choices, with a bound below them all."""
    found: list[tuple[Chosen, Plan]] = []
    stopped, choices = "", list(choices_of(run.instance))
    for done, chosen in enumerate(choices):
        run.tell("choice", f"{done} of {len(choices)} choices searched, now {chosen.text}", done=(done, len(choices)))
        try:
            found.append((chosen, answer(replace(run, instance=at_choice(run.instance, chosen)))))
        except KeyboardInterrupt:
            run.on_progress, stopped = None, "interrupted"
        except StoppedError as stop:
            stopped = str(stop)
        if found and found[-1][1].stop_reason in ("time limit", "interrupted"):
            stopped = found[-1][1].stop_reason
        if stopped:
            break
    kind = run.instance.objective.minimize
    weights = [seconds_weight(at_choice(run.instance, one), kind) for one, _ in found]
    values = [math.inf if one.objective.value is None else one.objective.value for _, one in found]
    first = min(range(len(found)), key=lambda k: values[k] * weights[k], default=0)
    chosen, best = found[first] if found else (Chosen(), None)
    lowest = -math.inf
    if len(found) == len(choices):
        lowest = min(_lowest(one) * (weight / weights[first]) for (_, one), weight in zip(found, weights, strict=True))
    if best is None or best.objective.value is None:
        if stopped:
            return unknown(run, stopped, lowest)
        reasons = [f"{chosen.text}: {sentence}" for chosen, one in found[:TOLD] for sentence in one.explanation]
        return infeasible(run, (*reasons, *([f"and {len(found) - TOLD} choices more"] if len(found) > TOLD else [])))
    claim = claim_of(best.objective.kind, best.objective.value, lowest)
    proven = not stopped and within_gap(run, claim)
    return best.model_copy(
        update={
            "instance": identity(run.instance),
            "chosen": chosen,
            "objective": claim,
            "status": "optimal" if proven else "feasible",
            "stop_reason": "optimal" if proven else stopped or "the solver's own gap",
            "timing_s": best.timing_s.model_copy(update={"total": run.elapsed_s()}),
        }
    )


def _lowest(plan: Plan) -> float:
    """No plan of a choice is worth less."""
    if plan.status == "infeasible":
        return math.inf
    return -math.inf if plan.objective.bound is None else plan.objective.bound
