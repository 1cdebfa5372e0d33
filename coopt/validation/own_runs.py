"""Files of one's own runs as measurements: tables, logs, traces of Kineto, summaries of Nsight Systems."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median
from typing import Any, TypeGuard

from coopt.instance.errors import InstanceError
from coopt.instance.texts import read_text
from coopt.validation.logs import Cells, cells_of_log, is_log
from coopt.validation.published import COLUMNS, Measurement, measurement_of, read_measurements

STEP = re.compile(r"ProfilerStep#(\d{1,9})$")
GPU_NAME = re.compile(r"\b(GB300|GB200|B300|B200|H200|H100|H800|A100|MI300X)\b")
SUMMARY = ("Med (ns)", "Range")  # columns of `nsys stats --report nvtx_sum --format csv`
LATEST = 1e18  # microseconds or nanoseconds: later ones are no times
KIND = "a text file: a table, a log, a trace or a summary"
REMEDY = "a CSV file of measurements (benchmarks/published.csv is one), a log or a trace of a run"


def measurements_of(
    paths: Sequence[str], stated: Mapping[str, str], nvtx_range: str | None = None
) -> tuple[list[Measurement], list[Measurement]]:
    """All rows of the files, and those among them that are read from logs and traces.

    Parameters
    ----------
    stated
        Columns that no log tells, such as the GPU; what a log itself says goes first.
    nvtx_range
        The range of a summary of Nsight Systems that is an iteration, a pattern.

    Raises
    ------
    InstanceError
        With what is wrong in which file, or with columns that do not exist.
    """
    _check_stated(stated)
    every: list[Measurement] = []
    own: list[Measurement] = []
    for path in paths:
        text = _text(Path(path))
        read = _reader(text, nvtx_range)
        if read is None:
            every += read_measurements(path)
        else:
            own.append(_row(path, {**stated, **read(text, Path(path).name)}))
    if stated and not own:
        raise InstanceError("--set: says what logs leave out, needs a log or a trace among the files")
    return every + own, own


def table_of(rows: Sequence[Measurement]) -> str:
    """The rows as a CSV table that `coopt validate` and `coopt calibrate` read, without columns that are all empty."""
    names = [name for name in COLUMNS if any(getattr(row, name) not in (None, "") for row in rows)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([["" if (value := getattr(row, name)) is None else value for name in names] for row in rows])
    return stream.getvalue()


def _check_stated(stated: Mapping[str, str]) -> None:
    unknown = [name for name in stated if name not in COLUMNS or name == "id"]
    if unknown:
        raise InstanceError(
            f"--set: {', '.join(unknown)}: no such column, needs some of {', '.join(n for n in COLUMNS if n != 'id')}"
        )


def _row(path: str, cells: Cells) -> Measurement:
    complaints: list[str] = []
    name = Path(path).name.split(".")[0]
    row = measurement_of({"id": name, **cells}, 1, complaints)
    if complaints:
        raise InstanceError(f"{Path(path).name}: {complaint}" for complaint in complaints)
    return row


def _text(file: Path) -> str:
    if file.suffix != ".gz":
        return read_text(file, KIND, REMEDY)
    try:
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            return stream.read()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InstanceError(f"{file}: cannot be read ({error}), needs a trace compressed by gzip") from None


def _reader(text: str, nvtx_range: str | None) -> Callable[[str, str], Cells] | None:
    """What reads a file that is no table."""
    if text.lstrip()[:1] == "{":
        return _cells_of_trace
    if any(all(name in line for name in SUMMARY) for line in text.splitlines()[:200]):
        return lambda whole, name: _cells_of_summary(whole, name, nvtx_range)
    return cells_of_log if is_log(text) else None


def _cells_of_trace(text: str, name: str) -> Cells:
    """Seconds of a step, GPU and GPU count from a trace that PyTorch's profiler (Kineto) writes."""
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InstanceError(f"{name}: not JSON ({error}), needs a trace of PyTorch's profiler") from None
    events = trace.get("traceEvents")
    starts = _steps(events if isinstance(events, list) else [])
    if not starts:
        raise InstanceError(
            f"{name}: no step of the profiler, needs events named ProfilerStep#N: call prof.step() at each iteration"
        )
    cells = {"iter_time_s": f"{_step_us(starts) * 1e-6:.6g}", "notes": "read from a trace"}
    gpu = GPU_NAME.search(_word(trace, "deviceProperties", "name"))
    world = _word(trace, "distributedInfo", "world_size")
    return cells | ({"gpu": gpu[1]} if gpu else {}) | ({"gpus": world} if world.isdecimal() else {})


def _steps(events: list[Any]) -> dict[int, tuple[float, float]]:
    """Start and length in microseconds of every step on the host, by its number."""
    found: dict[int, tuple[float, float]] = {}
    for event in events:
        if not isinstance(event, dict) or event.get("cat") == "gpu_user_annotation":
            continue
        step = STEP.match(str(event.get("name", "")))
        start, length = event.get("ts"), event.get("dur")
        if step and _is_time(start) and _is_time(length):
            found[int(step[1])] = (float(start), float(length))
    return found


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and abs(value) <= LATEST


def _step_us(steps: Mapping[int, tuple[float, float]]) -> float:
    """From one start to the next, so that what lies between two steps counts; the length of a single step."""
    numbers = sorted(steps)
    between = [steps[b][0] - steps[a][0] for a, b in pairwise(numbers) if b == a + 1]
    return median(between) if between else median(length for _, length in steps.values())


def _word(trace: Mapping[str, Any], table: str, key: str) -> str:
    """A value of a table at the head of a trace, or of the first table of a list; empty where there is none."""
    found = trace.get(table)
    first = found[0] if isinstance(found, list) and found else found
    return str(first.get(key, "")) if isinstance(first, dict) else ""


def _cells_of_summary(text: str, name: str, nvtx_range: str | None) -> Cells:
    """Seconds of an iteration from `nsys stats --report nvtx_sum --format csv`."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if all(column in line for column in SUMMARY))
    rows = [row for row in csv.DictReader(lines[head:]) if row.get("Range")]
    names = [row["Range"].lstrip(":") for row in rows]
    if nvtx_range is None:
        raise InstanceError(f"{name}: needs --range with the range that is an iteration, one of {_few(names)}")
    found = sorted(
        (_number(row["Med (ns)"], name), _number(row.get("Instances") or "1", name))
        for row, label in zip(rows, names, strict=True)
        if fnmatchcase(label, nvtx_range)
    )
    if not found:
        raise InstanceError(f"{name}: --range = {nvtx_range!r}: no range is like that, needs one of {_few(names)}")
    upto = list(accumulate(count for _, count in found))
    middle = next(ns for (ns, _), count in zip(found, upto, strict=True) if 2 * count >= upto[-1])
    return {"iter_time_s": f"{middle * 1e-9:.6g}", "notes": "read from a summary of NVTX ranges"}


def _number(cell: str | None, name: str) -> float:
    try:
        number = float((cell or "").replace(",", ""))
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= LATEST:
        raise InstanceError(f"{name}: {cell!r} in a column of times, needs a number")
    return number


def _few(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names[:8]) + (", ..." if len(names) > 8 else "")
