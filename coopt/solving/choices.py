"""The best plan of a question that leaves generations of GPUs, batches or knobs open: each choice is searched.

A choice is a question of its own, so that nothing new is searched. The best plan is the cheapest of all choices, and
the lowest of their bounds is one on all plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from coopt.instance.choices import Chosen, at_choice, choices_of
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
    lowest = min((_lowest(one) for _, one in found), default=-math.inf) if len(found) == len(choices) else -math.inf
    chosen, best = min(
        found,
        key=lambda pair: math.inf if pair[1].objective.value is None else pair[1].objective.value,
        default=(Chosen(), None),
    )
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
