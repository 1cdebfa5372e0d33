"""How far predicted times may be off, by the runs that were measured."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType

from coopt.instance.evidence import longer
from coopt.instance.reserves import own_error
from coopt.instance.schema import Instance
from coopt.instance.texts import alternatives
from coopt.instance.workload import Workload
from coopt.plan.parts import WorkloadPlan
from coopt.report import words

SURE = {0.80: " likely", 0.95: ""}
"""Probabilities at which times are stated beside the predicted ones, and how these read."""


def likely(run: WorkloadPlan, workload: Workload) -> list[str]:
    """`within 58.86 days, by 4 March 2027 (80% likely)` and `62.24 days, by 8 March 2027 (95%)`, by
    the error of the model; of iterations where tokens are not given. Empty where the error is not
    known.
    """
    if run.error is None:  # a plan of before errors were in plans
        return []
    dated = workload.train_tokens is not None
    time_s = run.promised_s if dated else run.iteration_time_s
    texts = []
    for chance, word in SURE.items():
        longer_s = time_s * (1.0 + longer(run.error, chance))
        by = workload.by_end(longer_s) if dated else ""
        time_text = workload.duration(longer_s) if dated else words.seconds(longer_s)
        texts.append(f"{time_text}{by} ({chance:.0%}{word})")
    return [f"within {texts[0]}", *texts[1:]]


def accuracy(
    instance: Instance,
    workloads: Sequence[WorkloadPlan],
    on: Mapping[str, Instance] = MappingProxyType({}),
    *,
    with_slack: bool = False,
) -> Iterator[str]:
    """How far the model is off where that is known, of several workloads from the least to the
    most, and which times exceed their bounds if they are off by as much.

    Parameters
    ----------
    on
        The questions for the GPUs that workloads run on, by name, where kinds differ.
    with_slack
        Whether the slack of each stands beside, which says the same where no margin is kept.
    """
    # Of several runs of a workload the one with the least slack counts.
    runs = {run.name: run for run in sorted(workloads, key=lambda run: -run.slack)}
    asked = (
        workload
        for name in (workload.name for workload in instance.workload)
        for workload in on.get(name, instance).workload
        if workload.name == name
    )
    known = [
        (run.error, run, workload)
        for workload in asked
        if (run := runs.get(workload.name)) and run.error is not None and run.nearest
    ]
    if not known:
        return
    workload_of = {run.name: workload for _, run, workload in known}
    errors = [
        (run.error, run)
        for run in workloads
        if run.name in workload_of and run.error is not None and run.nearest
    ]
    (least, nearer), (most, run) = (of(errors, key=lambda each: each[0]) for of in (min, max))
    workload = workload_of[run.name]
    size, gpu = words.percent(most), on.get(run.name, instance).cluster.gpu
    for_run = f" to {run.name}" if least < most else ""
    if least < most:
        of_each = [f" ({one.name})" * (nearer.name != run.name) for one in (nearer, run)]
        size = f"{words.percent(least)}{of_each[0]} to {size}{of_each[1]}"
    basis = f"nearest published run{for_run}: {words.nearest_run(run.nearest[0])}"
    if own_error(gpu, workload) is not None:
        basis = f"{run.name}: " * (least < most) + f"on the runs that {gpu.name} was fitted to"
    is_told = with_slack and not any(workload.time_margin for workload in workload_of.values())
    exceeded = "" if is_told else _exceeded(known)
    yield f"Time estimates are off by {size} on average ({basis}){exceeded}."


MOST_EXCEEDED = 3
"""Workloads whose bounds are named as the first to be exceeded."""


def _exceeded(known: Sequence[tuple[float, WorkloadPlan, Workload]]) -> str:
    """The bounds that a time exceeds if it is longer by the error, the nearest first."""
    narrow = {}
    for error, run, workload in known:
        # What the margin keeps free is there for the error.
        allowed_s, time_s = run.bound_s * (1.0 + workload.time_margin), run.iteration_time_s
        growth = allowed_s / time_s - 1.0 if time_s > 0.0 else math.inf
        # A bound that is exceeded already is reported elsewhere.
        if 0.0 <= growth < error:
            narrow[run.name] = max(growth, 0.001)
    if not narrow:
        return ""
    nearest = sorted(narrow, key=narrow.__getitem__)[:MOST_EXCEEDED]
    shares = [words.percent(narrow[name]) for name in nearest]
    if len(known) == 1:
        return f"; an iteration more than {shares[0]} longer exceeds its bound"
    named = alternatives(f"{share} ({of})" for share, of in zip(shares, nearest, strict=True))
    return f"; iterations exceed the nearest bounds if they take {named} longer"


OUTSIDE = 3
"""Properties outside what was measured that are named."""


def outside_note(workloads: Sequence[WorkloadPlan], *, brief: bool = False) -> Iterator[str]:
    """What no published run has, of the hardware and mapping of each workload; what differs in the
    number of GPUs alone is said once, from the least to the most. In brief the first of them, and
    how many more there are.
    """
    sizes: dict[str, set[int]] = {}
    for text in dict.fromkeys(text for run in workloads for text in run.outside[:OUTSIDE]):
        sized = re.fullmatch(r"(.*\bon) ([\d,]+) GPUs", text)
        counts = sizes.setdefault(sized[1] if sized else text, set())
        counts |= {int(sized[2].replace(",", ""))} if sized else set()
    missing = [
        f"{text} {' to '.join(map(words.count, sorted({min(counts), max(counts)})))} GPUs"
        if counts
        else text
        for text, counts in sizes.items()
    ]
    if missing and brief:
        more = f"; {len(missing) - 1} more (--full)" if len(missing) > 1 else ""
        yield f"no run compared {missing[0]}{more}"
    elif missing:
        yield f"The model was compared with no run {alternatives(missing)}."


def certainty(
    instance: Instance, workloads: Sequence[WorkloadPlan], *, brief: bool = False
) -> Iterator[str]:
    """How sure the time of the run with the least slack is by the error of the model."""
    asked_of = {workload.name: workload for workload in instance.workload}
    runs = sorted((run for run in workloads if run.name in asked_of), key=attrgetter("slack"))
    for run in runs[:1]:
        workload = asked_of[run.name]
        if not (times := likely(run, workload)):
            continue
        dated = workload.train_tokens is not None
        name = f" of {run.name}" if len(asked_of) > 1 else ""
        undisturbed = ", if nothing fails" if dated and run.uptime is None else ""
        timed = run.name if brief and name and not dated else f"Iterations{name}"
        yield f"{f'Training{name}' if dated else timed}: {', '.join(times)}{undisturbed}."
