"""What a plan says right below its headline of other numbers: those that divide better."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.plan.schema import BetterNumber, Plan
from coopt.report import words


def suggestions(plan: Plan) -> Iterator[str]:
    """What would train clearly faster, with both numbers and the key that lets the search take
    it.
    """
    now_s = {run.name: run.iteration_time_s for run in plan.workloads}
    for better in plan.better_numbers:
        took = f"{words.seconds(better.iteration_time_s)} in place of"
        took += f" {words.seconds(now_s[better.workload])} an iteration"
        yield f"{_number(plan, better)} {took}, {_less(better)}."


def _number(plan: Plan, better: BetterNumber) -> str:
    """The other number in place of that of the plan."""
    value, now = words.count(better.value), words.count(better.now)
    if better.key == "cluster.idle_gpus":
        idle = words.count(better.now - better.value)
        return f"{value} GPUs with the other {idle} of the {now} idle would take"
    of = f" of {better.workload}" if len(plan.workloads) > 1 else ""
    return f"A batch{of} of {value}, not {now}, would take"


def _less(better: BetterNumber) -> str:
    """How much is saved, and with which key."""
    saved = f"{words.percent(better.saved)} less time for the same training"
    if better.key == "cluster.idle_gpus":
        return f"{saved}: {better.key} = true lets the search leave GPUs idle"
    return f"{saved}: {better.key} = 0.02 lets the search choose the batch"
