"""Speed-ups that the model claims over published mappings, with the network as published.

A search for the least predicted time finds the errors of the model. Teams tune the mappings that
they publish, so that a claim of far more than the error of the model is doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.columns.feasible import feasible_mappings, without_bound
from coopt.columns.grid import DomainSet, divisors, placed_on
from coopt.instance.base import Table
from coopt.instance.hardware import Gpu
from coopt.instance.reserves import model_kind
from coopt.instance.texts import grouped
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.mapping import RECOMPUTE, Floats, Mappings
from coopt.perf.memory import memory_bytes
from coopt.validation.batches import batches_of, unchanged_s
from coopt.validation.runs import MeasuredRun

LARGE = 0.15  # a claim beyond what tuning leaves on the table
BLOCK = 4096  # mappings timed together
WORDS = ("tp", "cp", "pp", "dp", "ep", "micro_batch", "interleave", "zero")


class Claim(Table):
    """What the model claims for a question of which a mapping was published."""

    id: str
    architecture: str
    generation: str
    claim: Annotated[
        float,
        Field(
            description="predicted time of the published mapping over that of the choice, less 1"
        ),
    ]
    published: str
    chosen: str
    memory_share: Annotated[float, Field(description="of a GPU's memory that the choice needs")]


class Claims(Table):
    """Summary of claims."""

    name: str
    n: Annotated[int, Field(description="questions")]
    median: float
    p90: Annotated[float, Field(description="90th percentile")]
    over_15: Annotated[float, Field(description="share of the claims that exceed 15%")]


class Curse(Claims):
    """Claims over all published mappings, by architecture, and by architecture and generation."""

    groups: tuple[Claims, ...]
    rows: tuple[Claim, ...]


def curse_of(runs: Sequence[MeasuredRun], *, margin: bool = False) -> Curse | None:
    """Compare the mapping that the model chooses for each question with the fastest published one.

    Mappings come from the default lists, fit into memory, and are placed on the domains of the run,
    at the full rate of its NICs. None where no mapping is left to choose.

    Parameters
    ----------
    runs
        Runs that state their mapping. Of runs that differ only in it, the fastest counts. Runs
        whose context ranks wait for the slowest have the model of that rank, and are left out.
    margin
        Leave as much memory free as plans do by default with the software of a run.
    """
    published = questions_of(runs)
    predicted = unchanged_s(batches_of(published))
    claims = [
        claim
        for run, seconds in zip(published, predicted.tolist(), strict=True)
        if (claim := _claim(run, seconds, margin=margin)) is not None
    ]
    if not claims:
        return None
    members = grouped(
        (name, claim)
        for claim in claims
        for name in (claim.architecture, f"{claim.architecture}, {claim.generation}")
    )
    groups = tuple(_summary(name, members[name]) for name in sorted(members))
    return Curse(**dict(_summary("all", claims)), groups=groups, rows=tuple(claims))


def questions_of(runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Return the fastest run of each question."""
    tuned: dict[object, MeasuredRun] = {}
    for run in sorted(runs, key=lambda run: run.measured_s):
        if run.split.cp == 1 or run.workload.model.causal:
            tuned.setdefault((*run.question, run.gpus, run.hb_size, run.nic_gbit_s), run)
    return list(tuned.values())


def fastest_choice(run: MeasuredRun, gpu: Gpu) -> tuple[float, Mappings] | None:
    """Find the mapping of least predicted time, and that time (s); None where no mapping fits.

    Parameters
    ----------
    gpu
        That of the run, which may reserve memory.
    """
    workload = without_bound(run.workload.having(mapping={"pipeline_layout": None}))
    found = feasible_mappings(workload, gpu, run.gpus)
    active = max(size for size in divisors(run.gpus) if size <= run.hb_size)
    site = DomainSet(gpus=run.gpus, hb="", domains=run.gpus // active)
    s_byte = Reciprocals.everywhere(8e-9 / run.nic_gbit_s)
    least_s, chosen = np.inf, None
    order = np.argsort(found.fastest_s, kind="stable")
    for start in range(0, len(order), BLOCK):
        block = order[start : start + BLOCK]
        if found.fastest_s[block[0]] >= least_s:  # none of the others can be faster
            break
        candidates = found.fit.take(block)
        rows, placements = placed_on(workload, candidates, site)
        if not len(rows):
            continue
        mappings = candidates.take(rows)
        parts = iteration(workload, gpu, run.hb_gbyte_s, mappings, placements)
        times = parts.time_s(s_byte)
        quickest = int(np.argmin(times))
        if times[quickest] < least_s:
            least_s, chosen = float(times[quickest]), mappings.take(np.array([quickest]))
    return None if chosen is None else (least_s, chosen)


def _claim(run: MeasuredRun, published_s: float, *, margin: bool) -> Claim | None:
    free_share = run.software.memory_margin if margin else 0.0
    choice = fastest_choice(run, run.gpu.with_memory_margin(free_share))
    if choice is None:
        return None
    least_s, chosen = choice
    return Claim(
        id=run.id,
        architecture=model_kind(run.workload),
        generation=run.generation,
        claim=published_s / least_s - 1.0,
        published=_words({name: getattr(run.split, name) for name in (*WORDS, "recompute")}),
        chosen=choice_text(chosen),
        memory_share=float(memory_bytes(run.workload, chosen)[0] / (run.gpu.hbm_gb * 1e9)),
    )


def choice_text(chosen: Mappings) -> str:
    """Name the first of some mappings: `tp=8 pp=4 dp=16 micro_batch=2 recompute=none`."""
    return _words({name: getattr(chosen, name)[0] for name in (*WORDS, "recompute")})


def _words(mapping: dict[str, int]) -> str:
    """Name what differs from 1: `tp=8 pp=4 dp=16 micro_batch=2 recompute=none`."""
    degrees = [f"{name}={mapping[name]}" for name in WORDS if mapping[name] != 1]
    return " ".join([*degrees, f"recompute={RECOMPUTE[mapping['recompute']]}"])


def _summary(name: str, claims: Sequence[Claim]) -> Claims:
    sizes: Floats = np.array([claim.claim for claim in claims])
    return Claims(
        name=name,
        n=len(sizes),
        median=float(np.median(sizes)),
        p90=float(np.quantile(sizes, 0.9)),
        over_15=float(np.mean(sizes > LARGE)),
    )
