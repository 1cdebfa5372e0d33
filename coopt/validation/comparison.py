"""Predictions compared with measurements, by row and by group."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from coopt.instance.base import Entry, Table
from coopt.instance.catalog import entries
from coopt.instance.hardware import Gpu
from coopt.instance.reserves import HYBRID, model_kind
from coopt.instance.texts import grouped
from coopt.perf.mapping import RECOMPUTE, Floats, utilisation
from coopt.perf.memory import GIB, communication_bytes, memory_bytes
from coopt.validation.batches import Ranking, batches_of, breakdowns_s, ranking_of, unchanged_s
from coopt.validation.curse import Curse, curse_of
from coopt.validation.facts import Peer, published_facts
from coopt.validation.published import Measurement, stated
from coopt.validation.runs import MeasuredRun, SkippedRow, outcome_of
from coopt.validation.settings import NARROW, OF_HARDWARE, OF_SOFTWARE
from coopt.validation.splits import mappings_of

# errors are capped: rows further off are beyond the model and must not determine parameters
CAPPED = 0.6
FITTED = re.compile(r"\bfitted\b")
NOT_FITTED = re.compile(r"\b(not|never|nothing) (been )?fitted\b")


class Score(Table):
    """Summary of the errors of rows; an error is predicted / measured - 1."""

    n: Annotated[int, Field(description="rows")]
    mean_abs_error: Annotated[float, Field(description="mean size of the errors")]
    median_abs_error: Annotated[float, Field(description="median size of the errors")]
    max_abs_error: Annotated[float, Field(description="largest size of an error")]
    bias: Annotated[
        float, Field(description="median error with its sign: below 0 is predicted too fast")
    ]


def score_of(errors: Floats) -> Score | None:
    """Summarise errors; None if there are none."""
    if not len(errors):
        return None
    sizes = np.abs(errors)
    return Score(
        n=len(errors),
        mean_abs_error=float(np.mean(sizes)),
        median_abs_error=float(np.median(sizes)),
        max_abs_error=float(np.max(sizes)),
        bias=float(np.median(errors)),
    )


def loss_of(kind: str, predicted_s: Floats, measured_s: Floats) -> float:
    """Return the loss that a fit minimises: the mean capped absolute value of log(predicted /
    measured), or the mean squared error.
    """
    if kind == "square":
        return float(np.mean((predicted_s / measured_s - 1.0) ** 2))
    return float(np.mean(np.minimum(CAPPED, np.abs(np.log(predicted_s / measured_s)))))


def fitted_parameters(runs: Sequence[MeasuredRun]) -> frozenset[str]:
    """Return the names of the fitted parameters that predictions of `runs` depend on; 16-bit ones
    affect every precision.
    """
    kinds = {(run.generation, precision) for run in runs for precision in ("16-bit", run.precision)}
    hardware = (fitted_of_hardware(*kind) for kind in kinds)
    software = map(fitted_of_software, {run.software.name for run in runs})
    return frozenset().union(*hardware, *software)


def fitted_of_hardware(generation: str, precision: str) -> frozenset[str]:
    """Return the parameters that the catalog marks as fitted for GPUs of a generation, such as
    `hopper fp8 gemm`.
    """
    table = "efficiency" if precision == "16-bit" else f"efficiency.{precision}"
    names = OF_HARDWARE if precision == "16-bit" else NARROW
    fitted_fields = {
        field
        for gpu in entries("gpu").values()
        if isinstance(gpu, Gpu) and gpu.generation == generation
        for field in _marked(gpu)
    }
    # a source may apply to a whole table of figures
    return frozenset(
        f"{generation} {precision} {name}"
        for name in names
        if {table, f"{table}.{name}"} & fitted_fields
    )


def fitted_of_software(framework: str) -> frozenset[str]:
    """Return the parameters of a framework that the catalog marks as fitted."""
    fitted_fields = set(_marked(entries("software")[framework]))
    return frozenset(f"{framework} {name}" for name in OF_SOFTWARE if name in fitted_fields)


def _marked(entry: Entry) -> Iterator[str]:
    """Yield the fields whose source states that they are fitted."""
    for source in entry.sources:
        if FITTED.search(source.source) and not NOT_FITTED.search(source.source):
            yield from source.fields


class RowResult(Table):
    """A row that was predicted, or skipped for a reason."""

    id: str
    group: str
    status: Literal["evaluated", "skipped"]
    why: Annotated[str, Field(description="why the row was skipped")] = ""
    measured_s: float | None = None
    predicted_s: float | None = None
    error: Annotated[float | None, Field(description="predicted / measured - 1")] = None
    hfu_points: Annotated[
        float | None,
        Field(
            description="HFU predicted less HFU measured, in points; where the source counts FLOPs"
        ),
    ] = None
    gpu: str = ""
    precision: str = ""
    software: str = ""
    assumptions: Annotated[
        tuple[str, ...], Field(description="what was not published, and taken instead")
    ] = ()
    breakdown_s: Annotated[dict[str, float], Field(description="predicted seconds by cause")]
    memory_gib: Annotated[
        float | None, Field(description="memory that the fullest GPU needs, as predicted")
    ] = None
    memory_limit_gib: Annotated[float | None, Field(description="memory of a GPU")] = None
    allocated_error: Annotated[
        float | None,
        Field(description="memory that tensors take, predicted over stated, less 1"),
    ] = None
    reserved_error: Annotated[
        float | None,
        Field(description="memory that tensors take over what the allocator held, less 1"),
    ] = None
    states_mapping: Annotated[
        bool,
        Field(
            description=(
                "the source states degrees and micro-batch, and how much its recipe offloads"
            )
        ),
    ] = False
    doubt: Annotated[
        str, Field(description="why a row is doubted that ran and is predicted not to fit")
    ] = ""

    @property
    def refused(self) -> bool:
        """Whether a mapping that ran is predicted not to fit into memory."""
        assert self.memory_gib is not None
        assert self.memory_limit_gib is not None
        return self.states_mapping and self.memory_gib > self.memory_limit_gib


class MemoryResult(Table):
    """Number of runs with a published mapping, and of those predicted not to fit although they
    ran.
    """

    stated: Annotated[
        int,
        Field(
            description=(
                "evaluated rows that state degrees and micro-batch, and how much their recipes"
                " offload"
            )
        ),
    ]
    refused: Annotated[int, Field(description="those predicted to need more memory than a GPU has")]
    ran_out: Annotated[int, Field(description="rows that are known to have run out of memory")]
    accepted_that_ran_out: Annotated[int, Field(description="those predicted to fit")]
    allocated_error: Annotated[
        float | None, Field(description="median size of the errors of allocated memory")
    ]
    reserved_error: Annotated[
        float | None, Field(description="median size of the errors of reserved memory")
    ]


class GroupResult(Score):
    """Errors of the rows of one group."""

    name: str
    mean_abs_hfu_points: float | None
    fitted_parameters: Annotated[
        int, Field(description="fitted parameters that its predictions rest on")
    ]


class Comparison(Table):
    """Result of `coopt validate`."""

    rows: tuple[RowResult, ...]
    groups: Annotated[
        tuple[GroupResult, ...], Field(description="by source: the id up to its first hyphen")
    ]
    hardware: Annotated[
        tuple[GroupResult, ...], Field(description="by GPU generation and precision, hybrids apart")
    ]
    architecture: Annotated[
        tuple[GroupResult, ...], Field(description="dense models, mixtures of experts, and hybrids")
    ]
    overall: GroupResult | None
    ranking: Annotated[Ranking, Field(description="rows that differ in their mapping only")]
    memory: MemoryResult
    curse: Annotated[
        Curse | None,
        Field(description="speed-ups claimed over published mappings; only where asked for"),
    ] = None
    evaluated: int
    skipped: int
    peers: tuple[Peer, ...]

    def sources_over(self, limit: float) -> tuple[GroupResult, ...]:
        """Return the sources whose mean error exceeds a limit (a share, not percent)."""
        return tuple(group for group in self.groups if group.mean_abs_error > limit)

    def fails(self, limit: float) -> bool:
        """Whether a source exceeds the limit, or no row could be predicted."""
        return not self.evaluated or bool(self.sources_over(limit))


def comparison_of(rows: Sequence[Measurement], *, curse: bool = False) -> Comparison:
    """Predict every row with sufficient information.

    Parameters
    ----------
    curse
        Also find the mapping of least predicted time for each question, which takes longer.
    """
    outcomes = [outcome_of(row) for row in rows]
    runs = [outcome for outcome in outcomes if isinstance(outcome, MeasuredRun)]
    predicted_rows = [
        stated(row)
        for row, outcome in zip(rows, outcomes, strict=True)
        if isinstance(outcome, MeasuredRun)
    ]
    batches = batches_of(runs)
    predicted, parts = unchanged_s(batches), breakdowns_s(batches)
    results = [
        _result(predicted_rows[i], run, float(predicted[i]), parts[i]) for i, run in enumerate(runs)
    ]
    in_turn = iter(results)
    groups = _grouped(runs, results, lambda run: run.group)
    return Comparison(
        rows=tuple(
            _left_out(outcome) if isinstance(outcome, SkippedRow) else next(in_turn)
            for outcome in outcomes
        ),
        groups=groups,
        hardware=_grouped(runs, results, _hardware_of),
        architecture=_grouped(runs, results, architecture_of),
        overall=next(iter(_grouped(runs, results, lambda run: "all")), None),
        ranking=ranking_of(predicted_rows, runs, predicted),
        memory=_memory_result(results, outcomes),
        curse=(
            curse_of([run for run, row in zip(runs, results, strict=True) if row.states_mapping])
            if curse
            else None
        ),
        evaluated=len(runs),
        skipped=len(rows) - len(runs),
        peers=tuple(
            peer
            for peer in published_facts().peer
            if {group.name for group in groups} & set(peer.groups)
        ),
    )


def architecture_of(run: MeasuredRun) -> str:
    """Return the kind of model of a run: dense, mixture of experts, or hybrid."""
    return model_kind(run.workload)


def _hardware_of(run: MeasuredRun) -> str:
    """Return generation and precision; hybrids form groups of their own, as no fit uses them."""
    name = f"{run.generation} {run.precision}"
    return f"{name}, hybrids" if architecture_of(run) == HYBRID else name


def _memory_result(
    results: Sequence[RowResult], outcomes: Sequence[MeasuredRun | SkippedRow]
) -> MemoryResult:
    skipped = (outcome for outcome in outcomes if isinstance(outcome, SkippedRow))
    exhausted = [row.ran_out for row in skipped if row.ran_out is not None]
    allocated, reserved = (
        [abs(error) for result in results if (error := getattr(result, name)) is not None]
        for name in ("allocated_error", "reserved_error")
    )
    return MemoryResult(
        stated=sum(result.states_mapping for result in results),
        refused=sum(result.refused for result in results),
        ran_out=len(exhausted),
        accepted_that_ran_out=sum(needed_gib(run) <= shown_gib(run) for run in exhausted),
        allocated_error=median(allocated) if allocated else None,
        reserved_error=median(reserved) if reserved else None,
    )


def needed_gib(run: MeasuredRun) -> float:
    """Return the memory that the fullest GPU of a run needs, as predicted (GiB)."""
    return float(memory_bytes(run.workload, mappings_of([run.split]))[0]) / GIB


def shown_gib(run: MeasuredRun) -> float:
    """Return the memory of a GPU of a run, as its driver shows it (GiB)."""
    return run.gpu.hbm_gb * 1e9 / GIB


def _over(predicted: float, stated: float | None) -> float | None:
    return None if stated is None else predicted / stated - 1.0


def _left_out(row: SkippedRow) -> RowResult:
    return RowResult(
        id=row.id,
        group=row.group,
        status="skipped",
        why=row.why,
        measured_s=row.measured_s,
        breakdown_s={},
    )


def _result(
    row: Measurement, run: MeasuredRun, predicted_s: float, parts: dict[str, float]
) -> RowResult:
    memory_gib = needed_gib(run)
    outside = communication_bytes(run.workload, mappings_of([run.split]))
    tensors_gib = memory_gib - run.software.reserve_gib - float(outside[0]) / GIB
    return RowResult(
        id=run.id,
        group=run.group,
        status="evaluated",
        measured_s=run.measured_s,
        predicted_s=predicted_s,
        error=predicted_s / run.measured_s - 1.0,
        hfu_points=_hfu_points(run, predicted_s) if run.counts_flops else None,
        gpu=run.gpu.name,
        precision=run.workload.precision,
        software=run.software.name,
        assumptions=run.assumptions,
        breakdown_s=parts,
        memory_gib=memory_gib,
        allocated_error=_over(tensors_gib, row.allocated_gib),
        reserved_error=_over(tensors_gib, row.reserved_gib),
        memory_limit_gib=shown_gib(run),
        # memory cannot be predicted where an unknown share of activations goes to the host
        states_mapping=row.micro_batch is not None
        and not (row.offloads and row.offload_percent is None),
        doubt=_doubt(row, run) if memory_gib > shown_gib(run) else "",
    )


def _doubt(row: Measurement, run: MeasuredRun) -> str:
    """Return, in words, the unpublished recomputation or offloading that the memory of a row
    depends on.
    """
    kind = RECOMPUTE[run.split.recompute]
    if row.recompute:
        more = "offloaded" if kind == "full" else "recomputed or offloaded"
        return f"the source states recompute = {row.recompute}, but more may have been {more}"
    recomputed = replace(run.split, recompute=RECOMPUTE.index("full"))
    least_gib = float(memory_bytes(run.workload, mappings_of([recomputed]))[0]) / GIB
    return (
        f"the source does not say what was recomputed: recompute = {kind} is assumed; with full"
        f" recomputation the run would need {least_gib:.1f} GiB"
    )


def _hfu_points(run: MeasuredRun, predicted_s: float) -> float:
    """Return predicted minus measured HFU in the same convention (percentage points)."""
    times = np.array([predicted_s, run.measured_s])
    _, hfu, _ = utilisation(run.workload, run.gpu, run.gpus, np.full(2, run.split.recompute), times)
    return float(100.0 * (hfu[0] - hfu[1]))


def _grouped(
    runs: Sequence[MeasuredRun], results: Sequence[RowResult], name_of: Callable[[MeasuredRun], str]
) -> tuple[GroupResult, ...]:
    members = grouped(
        (name_of(run), (run, result)) for run, result in zip(runs, results, strict=True)
    )
    return tuple(_group(name, *zip(*pairs, strict=True)) for name, pairs in members.items())


def _group(name: str, runs: Sequence[MeasuredRun], results: Sequence[RowResult]) -> GroupResult:
    sizes = score_of(np.array([result.error for result in results], dtype=np.float64))
    assert sizes is not None
    points = [abs(result.hfu_points) for result in results if result.hfu_points is not None]
    return GroupResult(
        **sizes.model_dump(),
        name=name,
        mean_abs_hfu_points=float(np.mean(points)) if points else None,
        fitted_parameters=len(fitted_parameters(runs)),
    )
