"""Errors of predicted times, worked out anew from the published runs that
coopt/instance/measured.json lists.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from itertools import combinations
from statistics import NormalDist
from typing import Any, NamedTuple

from coopt.instance.catalog import ModelError, entries
from coopt.instance.evidence import in_words
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.parts import NearestRun, WorkloadPlan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree

PROPERTIES = (
    "architecture",
    "generation",
    "precision",
    "gpu",
    "software",
    "graphs",
    "experts_across",
    "micro_batch",
    "gpus",
)
Run = tuple[Any, ...]
"""The values of `PROPERTIES` of one run."""
TIMED_BY = (
    "generation",
    "bf16_tflop_s",
    "fp8_tflop_s",
    "fp4_tflop_s",
    "hbm_gbyte_s",
    "sm_count",
    "efficiency",
)
NAMED, TIE = 2, 1e-9


@cache
def _table() -> dict[str, Any]:
    text = resources.files("coopt.instance").joinpath("measured.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def _gaps(own: Run, other: Run) -> list[float]:
    *kinds, batch, gpus = own
    *other_kinds, other_batch, other_gpus = other
    apart = [float(kind != one) for kind, one in zip(kinds, other_kinds, strict=True)]
    far = max(batch, other_batch) > 2 * min(batch, other_batch)
    return [*apart, float(far), max(0.0, math.log2(gpus) - math.log2(other_gpus) - 1.0)]


class Compared(NamedTuple):
    """A published run, how far each of its properties is from those of a run, and all together."""

    id: str
    run: Run
    gaps: list[float]
    away: float


@lru_cache(maxsize=256)
def _compared(own: Run) -> tuple[Compared, ...]:
    """Every published run beside one; further plans with the same mapping ask again."""
    table = _table()
    weights = [table["weights"][name] for name in PROPERTIES]
    found = []
    for name, _, *run in table["runs"]:
        gaps = _gaps(own, tuple(run))
        away = math.fsum(w * gap for w, gap in zip(weights, gaps, strict=True))
        found.append(Compared(name, tuple(run), gaps, away))
    return tuple(found)


def _words(run: Run, places: Sequence[int]) -> str:
    return " ".join(in_words(PROPERTIES[i], run[i]) for i in places)


def _catalog_gpus() -> list[Gpu]:
    return [entry for entry in entries("gpu").values() if isinstance(entry, Gpu)]


def _twins(gpu: Gpu) -> list[str]:
    """Those of the catalog with the same peaks, memory, multiprocessors and efficiencies."""
    return [
        entry.name
        for entry in _catalog_gpus()
        if all(getattr(entry, name) == getattr(gpu, name) for name in TIMED_BY)
    ]


def _run_of(gpu: Gpu, workload: Workload, across: bool, micro_batch: int, gpus: int) -> Run:
    twins, model, software = _twins(gpu), workload.model, workload.options.software
    framework = software.name.replace("megatron-bridge", "megatron-core")
    return (
        "hybrid" if model.scans else "mixture of experts" if model.experts else "dense",
        gpu.generation,
        {"fp8": "fp8", "fp4": "fp4"}.get(workload.precision, "16-bit"),
        gpu.name if gpu.name in twins else twins[0] if twins else f"{gpu.name} (own)",
        framework,
        software.graphs,
        across,
        micro_batch,
        gpus,
    )


def _error(gpu: Gpu, workload: Workload, own: Run) -> float:
    """The mean size of the log error of a time; of hardware without published runs no less than
    what is known of its generation and kind of model.
    """
    is_own = not _twins(gpu)
    borrowed = any(entry.efficiency == gpu.efficiency for entry in _catalog_gpus())
    stated = gpu.error(workload.precision)
    if is_own and not borrowed and stated is not None:
        return stated
    table = _table()
    kinds = own[0], own[1], f"{own[1]} {own[2]}"
    harder = math.fsum(table["harder"].get(kind, 0.0) for kind in kinds)
    by_law = table["base"] * math.exp(harder + min(one.away for one in _compared(own)))
    if any(one.run[3] == own[3] for one in _compared(own)):
        return float(by_law)
    known = {
        entry.name: entry.left_out
        for entry in entries("model_error").values()
        if isinstance(entry, ModelError)
    }
    if kinds[2] not in known:
        return float(max(by_law, 1.5 * max(known.values())))
    return float(max(by_law, (1.5 if is_own else 1.0) * max(known[kinds[2]], known[kinds[0]])))


def error_of_kind(gpu: Gpu, workload: Workload, across: bool, micro_batch: int, gpus: int) -> float:
    """The error of mappings with a micro-batch, and experts across HB domains or inside."""
    return _error(gpu, workload, _run_of(gpu, workload, across, micro_batch, gpus))


@lru_cache(maxsize=256)
def _outside(own: Run) -> tuple[str, ...]:
    """What no published run has, alone or with one other property."""
    shown, compared = {i for i in range(len(own)) if i != 1}, _compared(own)
    if not any(one.run[3] == own[3] for one in compared):
        shown.add(1)
    differ = [{i for i, gap in enumerate(one.gaps) if gap} for one in compared]
    alone = {i for i in shown if all(i in gaps for gaps in differ)}
    pairs = (
        pair
        for pair in combinations(sorted(shown - alone), 2)
        if all(gaps & set(pair) for gaps in differ)
    )
    return tuple(_words(own, places) for places in (*([i] for i in sorted(alone)), *pairs))


def check_margin(ledger: Ledger, instance: Instance) -> None:
    """Check the share of time that bounds keep free, where it follows from the error."""
    margin = instance.kept_margin
    if margin.time != "model":
        return
    chance = NormalDist().cdf(1.0) if margin.confidence is None else margin.confidence
    deviations = NormalDist().inv_cdf(chance) * math.sqrt(math.pi / 2)
    gpu, gpus = instance.cluster.gpu, max(instance.cluster.gpus)
    for workload in instance.workload:
        limits = workload.mapping
        spread = {False, workload.model.experts > 1 and tuple(limits.ep or ()) != (1,)}
        largest = max(
            _error(gpu, workload, _run_of(gpu, workload, across, batch, gpus))
            for across in spread
            for batch in limits.micro_batch
        )
        share, kept = math.exp(deviations * largest) - 1.0, workload.time_margin
        ledger.holds(
            "time-margin",
            agree(kept, share),
            kept,
            share,
            f"The bound of workload {workload.name!r} keeps a margin of {kept:.7%}, but the error"
            f" of its time requires {share:.7%}.",
            TOLERANCE,
        )


def check_evidence(
    ledger: Ledger, workload: Workload, claim: WorkloadPlan, gpu: Gpu, gpus: int
) -> None:
    """Check the error of a time, the published runs that are named as the nearest, and what is
    said to be outside them.
    """
    subject = f"workload {workload.name!r}"
    across = claim.placement["ep"][1] > 1
    own = _run_of(gpu, workload, across, claim.mapping.micro_batch, gpus)
    error = _error(gpu, workload, own)
    ledger.holds(
        "time-error",
        agree(claim.error, error),
        "none" if claim.error is None else claim.error,
        error,
        f"The expected error of the time of {subject} is {error:.9g}, but the plan states"
        f" {'none' if claim.error is None else f'{claim.error:.9g}'}.",
        TOLERANCE,
    )
    fault = _fault_of_nearest(own, claim.nearest)
    ids = ", ".join(run.id for run in claim.nearest)
    ledger.holds(
        "nearest-runs", not fault, ids, fault or "no other run is nearer", f"In {subject}: {fault}"
    )
    ledger.same(
        "outside-measured",
        claim.outside,
        _outside(own),
        f"The plan does not name exactly the properties of {subject} that no compared run has.",
    )


def _fault_of_nearest(own: Run, claimed: Sequence[NearestRun]) -> str:
    """What is wrong with the runs that a plan names; empty if nothing."""

    def key(one: Compared) -> tuple[float, float]:
        return round(one.away / TIE), abs(math.log2(own[-1]) - math.log2(one.run[-1]))

    runs = {one.id: one for one in _compared(own)}
    if len({run.id for run in claimed} & runs.keys()) != NAMED or len(claimed) != NAMED:
        return f"The plan has to name {NAMED} different runs of the table of published runs."
    for named in claimed:
        one = runs[named.id]
        texts = tuple(_words(one.run, [i]) for i, gap in enumerate(one.gaps) if gap)
        if texts != named.differs:
            has, told = (", ".join(each) or "none" for each in (texts, named.differs))
            return (
                f"Published run {named.id} has these properties that the plan does not have: {has}."
                f" The plan states {told}."
            )
    furthest = max(key(runs[run.id]) for run in claimed)
    nearer = (name for name, one in runs.items() if key(one) < furthest)
    unnamed = [name for name in nearer if name not in {run.id for run in claimed}]
    return (
        f"Published run {unnamed[0]} is nearer to the plan than one that the plan names."
        if unnamed
        else ""
    )
