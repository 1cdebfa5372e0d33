"""What docs/model.md shows of measurements: errors of a calibration as a small table, and how far
repeats lie apart.

The table is kept so that its errors can be shown without fitting again, which takes minutes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.reserves import HYBRID
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.calibration import Calibration, feasible_sets
from coopt.validation.comparison import Score, architecture_of
from coopt.validation.facts import FitSet
from coopt.validation.fitting import is_used, runs_used, set_name
from coopt.validation.published import COLUMNS as ROW_COLUMNS
from coopt.validation.published import MEASURED, Measurement, read_measurements
from coopt.validation.runs import MeasuredRun, outcome_of, runs_among
from coopt.validation.settings import reference_of

LATER = Path(__file__).parents[1] / "benchmarks" / "later.csv"
"""Published runs that came after the fits; `fitted` marks those that single values of the catalog
were fitted to since.
"""
BEFORE = {
    "ampere": "hopper",
    "hopper": "ampere",
    "blackwell": "hopper",
    "cdna3": "hopper",
    "cdna4": "hopper",
}
"""Whose efficiencies a generation takes where its own runs are left out."""
WHOLE = "all"
COLUMNS = (
    "set",
    "parameters",
    "rows",
    "fitted_mean",
    "fitted_median",
    "held_out_mean",
    "left_out_rows",
    "left_out_mean",
    "left_out_median",
)
APART = ("id", "source_url", "notes", "release", "flop_count", "corrections", *MEASURED)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What errors are recorded of: a set, an architecture, or all rows used."""

    name: str
    parameters: int
    rows: int


def fitted_runs(rows: Sequence[Measurement]) -> list[MeasuredRun]:
    """Runs that fits may use: none of a hybrid or of sparse or compressed attention, whose layers
    are charged by their kernels alone.
    """
    return [
        run
        for run in runs_among(rows)
        if architecture_of(run) != HYBRID
        and not any(
            getattr(mixer, "index_heads", 0) or getattr(mixer, "compression", 1) > 1
            for _, mixer in run.workload.model.kinds
        )
    ]


def subjects(runs: Sequence[MeasuredRun], sets: Sequence[FitSet]) -> list[Subject]:
    """What a calibration of these sets would record, without fitting."""
    feasible = feasible_sets(runs, sets)
    count = sum(len(asked.parameters) for asked in feasible)
    every = [run for run in runs if any(is_used(asked, run) for asked in feasible)]
    kinds = [architecture_of(run) for run in every]
    return [
        *(
            Subject(
                name=set_name(asked),
                parameters=len(asked.parameters),
                rows=len(runs_used(asked, runs)),
            )
            for asked in feasible
        ),
        *(
            Subject(name=kind, parameters=count, rows=kinds.count(kind))
            for kind in dict.fromkeys(kinds)
        ),
        Subject(name=WHOLE, parameters=count, rows=len(every)),
    ]


def record_lines(found: Calibration) -> Iterator[dict[str, str]]:
    """The lines of the table: fits, architectures, all."""
    count = sum(len(fit.parameters) for fit in found.fits)
    for fit in found.fits:
        yield _line(
            fit.name, len(fit.parameters), fit.fitted, fit.held_out, fit.leave_one_group_out
        )
    for kind in found.architecture:
        yield _line(kind.name, count, kind.fitted, None, kind.leave_one_group_out)
    yield _line(WHOLE, count, found.fitted, None, found.leave_one_group_out)


def unseen_lines(found: Calibration) -> Iterator[dict[str, str]]:
    """The errors of the rows that were used, each by fits without its source."""
    for row in found.unseen:
        yield row.model_dump() | {"error": _share(row.error)}


def of_generation_before(gpu: Gpu) -> Gpu:
    """Return a GPU with the efficiencies it would have without a run of its generation."""
    efficiency = reference_of(BEFORE[gpu.generation]).efficiency
    return gpu.model_copy(update={"efficiency": efficiency})


def later_runs() -> tuple[list[MeasuredRun], set[str]]:
    """Return the runs that came after the fits, and the generations fitted to some of them."""
    with LATER.open(encoding="utf-8", newline="") as stream:
        fitted = {row["id"] for row in csv.DictReader(stream) if row["fitted"]}
    runs = runs_among(read_measurements(LATER))
    return runs, {run.generation for run in runs if run.id in fitted}


def later_errors(runs: Sequence[MeasuredRun], fitted: set[str]) -> dict[str, float]:
    """Return predicted / measured - 1 of each by what was known without it: generations that were
    fitted to later runs with the efficiencies of the generation before.
    """
    seconds = predicted_s(
        batches_of(runs),
        lambda gpu: of_generation_before(gpu) if gpu.generation in fitted else gpu,
        lambda software: software,
    )
    errors = seconds / np.array([run.measured_s for run in runs]) - 1.0
    return {run.id: float(error) for run, error in zip(runs, errors, strict=True)}


def read_record(path: Path) -> list[dict[str, str]]:
    """The lines of a table written before."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def _line(
    name: str, parameters: int, fitted: Score, held_out: Score | None, left_out: Score | None
) -> dict[str, str]:
    values = (
        name,
        str(parameters),
        str(fitted.n),
        _share(fitted.mean_abs_error),
        _share(fitted.median_abs_error),
        _share(held_out.mean_abs_error) if held_out else "",
        str(left_out.n) if left_out else "0",
        _share(left_out.mean_abs_error) if left_out else "",
        _share(left_out.median_abs_error) if left_out else "",
    )
    return dict(zip(COLUMNS, values, strict=True))


def _share(error: float) -> str:
    return f"{error:.4f}"


def spreads(rows: Iterable[Measurement]) -> list[tuple[float, tuple[str, ...]]]:
    """Slowest over fastest measurement of every configuration that was published more than once,
    with its ids.

    Rows are of one configuration where all columns but the measurement, the id, the address, the
    notes and the release are equal; the largest ratio comes first.
    """
    alike: dict[object, list[tuple[float, str]]] = {}
    for row in rows:
        outcome = outcome_of(row)
        if isinstance(outcome, MeasuredRun):
            key = tuple(row.cell(name) for name in ROW_COLUMNS if name not in APART)
            alike.setdefault(key, []).append((outcome.measured_s, row.id))
    many = [sorted(members) for members in alike.values() if len(members) > 1]
    found = [
        (members[-1][0] / members[0][0], tuple(name for _, name in members)) for members in many
    ]
    return sorted(found, reverse=True)
