"""Measurements from files of own runs: tables, logs of training software, Kineto traces, and
summaries of Nsight Systems.

docs/measurements.md lists what each of them provides (Runs of your own).
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise, takewhile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeGuard

from coopt.instance.texts import InstanceError, csv_text, read_text
from coopt.perf.mapping import model_flop_per_token, model_parameters
from coopt.validation.link_tests import LinkFit, is_link_test, link_fit_of
from coopt.validation.log_columns import cells_of
from coopt.validation.logs import log_formats, log_of
from coopt.validation.published import (
    COLUMNS,
    Measurement,
    UnusableError,
    measurement_of,
    measurements_in,
    printed_cell,
)
from coopt.validation.shapes import transformer_of

Cells = dict[str, str]

STEP = re.compile(r"ProfilerStep#(\d{1,9})$")
GPU_NAME = re.compile(
    r"\b(GB300|GB200|B300|B200|H200|H100|H800|A100|MI300X|MI325X|MI350X|MI355X)\b"
)
# head of `nsys stats --report nvtx_sum`, as a table or as CSV, in any unit of time
SUMMARY = re.compile(r"\bMed \((ns|us|ms|s|nsec|usec|msec|sec)\).*\bRange\b")
OTHER_REPORT = re.compile(r"Total Time \(\w+\).*\b(?:Instances|Num Calls|Count)\b")
PARAMETERS_OFF = 0.02  # norms and biases are not counted here
RATE_OFF = 1.4  # software counts attention to all tokens or to earlier ones, and heads or not
SECONDS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0}
LATEST = 1e18  # microseconds or nanoseconds; larger values are not times
KIND = "a text file: a table, a log, a trace or a summary"
REMEDY = "a CSV file of measurements (such as benchmarks/published.csv), a log or a trace of a run"


class OwnRuns(NamedTuple):
    """What files of measurements say: rows of tables, rows of logs and traces, and results of
    nccl-tests.
    """

    table_rows: list[Measurement]
    log_rows: list[Measurement]
    links: list[LinkFit]


def measurements_of(
    paths: Sequence[str], stated: Mapping[str, str], nvtx_range: str | None = None
) -> OwnRuns:
    """Read the files, each once.

    Parameters
    ----------
    stated
        Columns that logs do not contain, such as the GPU; values in a log take precedence.
    nvtx_range
        Pattern of the range that is an iteration in a summary of Nsight Systems.

    Raises
    ------
    InstanceError
        With the errors of each file, or for columns that do not exist.
    """
    columns = [name for name in COLUMNS if name != "id"]
    if unknown := [name for name in stated if name not in columns]:
        raise InstanceError(
            f"--set: {', '.join(unknown)}: no such column, needs some of {', '.join(columns)}"
        )
    found = OwnRuns([], [], [])
    for path in paths:
        file = Path(path)
        text = _text(file)
        if is_link_test(text):
            found.links.append(link_fit_of(text, file.name, stated))
            continue
        cells = _cells(text, file.name, nvtx_range, stated)
        if cells is None:
            found.table_rows.extend(measurements_in(text, file.name))
            continue
        complaints: list[str] = []
        row = {"id": file.name.split(".")[0], **stated, **cells}
        measurement = measurement_of(row, 1, complaints)
        if not complaints:
            complaints += _contradictions(measurement, cells)
        if complaints:
            raise InstanceError(f"{file.name}: {complaint}" for complaint in complaints)
        found.log_rows.append(_with_gpus_implied(measurement, cells))
    if stated and not found.log_rows and not found.links:
        raise InstanceError(
            "--set: adds what logs leave out, needs a log or a trace among the files"
        )
    return found


def _cells(text: str, name: str, nvtx_range: str | None, stated: Mapping[str, str]) -> Cells | None:
    """Return the columns of a file that is not a table, or None."""
    lines = text.splitlines()
    if text.lstrip()[:1] == "{":
        return _cells_of_trace(text, name)
    if any(map(SUMMARY.search, lines)):
        return _cells_of_summary(lines, name, nvtx_range)
    if (log := log_of(text, name)) is not None:
        return cells_of(log, stated, name)
    head = next((line for line in lines if line.strip()), "")
    if name.endswith(".csv") or {word.strip() for word in head.split(",")} & COLUMNS.keys():
        return None
    report = " a report of nsys stats without ranges;" if OTHER_REPORT.search(text) else ""
    formats = ", ".join(form.name for form in log_formats().format)
    raise InstanceError(
        f"{name}:{report} not a known form, needs a log of {formats}, the output of"
        " nccl-tests, a trace of PyTorch's profiler, `nsys stats --report nvtx_sum`, or a CSV file"
        " of measurements (benchmarks/published.csv is one)"
    )


def _contradictions(row: Measurement, cells: Cells) -> Iterator[str]:
    """Yield how figures that software counts from its model contradict the model of a row."""
    try:
        model = transformer_of(row, [])
    except UnusableError:
        return
    printed = float(cells.get("parameters", "0").replace(",", ""))
    parameters, _ = model_parameters(model)
    if printed and abs(printed / parameters - 1.0) > PARAMETERS_OFF:
        yield (
            f"{printed:,.0f} parameters, but {model.name} has {parameters:,.0f}: needs the model"
            " that was run"
        )
    reported, seconds = float(cells.get("reported", "0")), row.iter_time_s
    if row.gpus and row.global_batch:
        tokens = row.global_batch * model.seq / row.gpus
        rate = row.tokens_per_s_per_gpu or (tokens / seconds if seconds else 0.0)
        flop = rate * model_flop_per_token(model) / 1e12
        if reported and flop and not 1 / RATE_OFF < flop / reported < RATE_OFF:
            yield (
                f"the log reports {reported:,.0f} TFLOP/s for each GPU, but {row.gpus} GPUs with"
                f" this model, batch and time imply {flop:,.0f}: one of these figures is wrong"
            )


def _with_gpus_implied(row: Measurement, cells: Cells) -> Measurement:
    """Return a row without GPU count with a note of how many make its time and TFLOP/s."""
    reported = float(cells.get("reported", "0"))
    if row.gpus or not (reported and row.global_batch and row.iter_time_s):
        return row
    try:
        model = transformer_of(row, [])
    except UnusableError:
        return row
    flop = row.global_batch * model.seq * model_flop_per_token(model)
    count = flop / (reported * 1e12 * row.iter_time_s)
    told = f"the log does not print the GPU count: batch, time and TFLOP/s imply about {count:,.0f}"
    return replace(row, notes="; ".join(filter(None, (row.notes, told))))


def table_of(rows: Sequence[Measurement]) -> str:
    """Return the rows as a CSV table for `coopt validate` and `coopt calibrate`, without empty
    columns.
    """
    names = [name for name in COLUMNS if any(row.cell(name) not in (None, "") for row in rows)]
    return csv_text(names, ([printed_cell(row.cell(name)) for name in names] for row in rows))


def _text(file: Path) -> str:
    if file.suffix != ".gz":
        return read_text(file, KIND, REMEDY)
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            return stream.read()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InstanceError(
            f"{file}: cannot be read ({error}), needs a trace compressed by gzip"
        ) from None


def _cells_of_trace(text: str, name: str) -> Cells:
    """Read step time, GPU and number of GPUs from a trace of PyTorch's profiler (Kineto)."""
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstanceError(
            f"{name}: not JSON ({error}), needs a trace of PyTorch's profiler"
        ) from None
    events = trace.get("traceEvents")
    steps = _steps(events if isinstance(events, list) else [])
    if not steps:
        raise InstanceError(
            f"{name}: no step of the profiler, needs events named ProfilerStep#N: call prof.step()"
            " at each iteration"
        )
    # between starts, which includes gaps; the length of a single step
    between = [steps[b][0] - steps[a][0] for a, b in pairwise(sorted(steps)) if b == a + 1]
    step_us = median(between or [length for _, length in steps.values()])
    gpu = GPU_NAME.search(_word(trace, "deviceProperties", "name"))
    world = _word(trace, "distributedInfo", "world_size")
    cells = {"iter_time_s": f"{step_us * 1e-6:.6g}", "notes": "read from a trace"}
    return cells | ({"gpu": gpu[1]} if gpu else {}) | ({"gpus": world} if world.isdecimal() else {})


def _steps(events: list[Any]) -> dict[int, tuple[float, float]]:
    """Return start and length (us) of every step on the host, by its number."""
    steps: dict[int, tuple[float, float]] = {}
    for event in events:
        if not isinstance(event, dict) or event.get("cat") == "gpu_user_annotation":
            continue
        step = STEP.match(str(event.get("name", "")))
        start, length = event.get("ts"), event.get("dur")
        if step and _is_time(start) and _is_time(length):
            steps[int(step[1])] = (float(start), float(length))
    return steps


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and abs(value) <= LATEST


def _word(trace: Mapping[str, Any], table: str, key: str) -> str:
    """Return a value of a table at the head of a trace, or of the first table of a list; empty if
    missing.
    """
    value = trace.get(table)
    entry = value[0] if isinstance(value, list) and value else value
    return str(entry.get(key, "")) if isinstance(entry, dict) else ""


def _cells_of_summary(lines: Sequence[str], name: str, nvtx_range: str | None) -> Cells:
    """Read the iteration time from `nsys stats --report nvtx_sum`, as a table or as CSV."""
    place = next(i for i, line in enumerate(lines) if SUMMARY.search(line))
    rows = _summary_rows(lines[place:])
    if not rows:
        raise InstanceError(
            f"{name}: the summary lists no range, needs one with the NVTX range of an iteration"
        )
    names = [row["Range"].lstrip(":") for row in rows]
    some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
    if nvtx_range is None:
        raise InstanceError(
            f"{name}: needs --range with the NVTX range of an iteration, one of {some}"
        )
    column = next(column for column in rows[0] if column.startswith("Med "))
    medians = sorted(
        (_number(row[column], name), _number(row.get("Instances") or "1", name))
        for row, label in zip(rows, names, strict=True)
        if fnmatchcase(label, nvtx_range)
    )
    if not medians:
        raise InstanceError(f"{name}: --range = {nvtx_range!r}: no such range, needs one of {some}")
    # of each range a summary has the median and the count: their median, each as often as it ran
    upto = list(accumulate(count for _, count in medians))
    ticks, _ = medians[bisect_left(upto, upto[-1] / 2)]
    seconds = ticks * SECONDS[column[len("Med (")]]
    return {"iter_time_s": f"{seconds:.6g}", "notes": "read from a summary of NVTX ranges"}


def _summary_rows(lines: Sequence[str]) -> list[Cells]:
    """Return the rows of a report by column; columns of text are two blanks apart."""
    if "," in lines[0]:
        return [row for row in csv.DictReader(lines) if row.get("Range")]
    names = re.split(r"\s{2,}", lines[0].strip())
    table = takewhile(str.strip, lines[1:])
    cells = [re.split(r"\s{2,}", line.strip(), maxsplit=len(names) - 1) for line in table]
    whole = [row for row in cells if len(row) == len(names) and not row[0].startswith("--")]
    return [dict(zip(names, row, strict=True)) for row in whole]


def _number(cell: str | None, name: str) -> float:
    try:
        number = float((cell or "").replace(",", ""))
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= LATEST:
        raise InstanceError(f"{name}: {cell!r} in the table of ranges, needs a number from 0")
    return number
