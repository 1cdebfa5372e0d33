"""Tables of published measurements, and the iteration time of a row."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from coopt.instance.base import MAX_COUNT, Entry
from coopt.instance.catalog import sentences
from coopt.instance.quotes import THOUSANDS
from coopt.instance.software import RunSoftware
from coopt.instance.texts import InstanceError, counted, read_text
from coopt.instance.transformer import Schedule, Transformer
from coopt.perf.mapping import FULL, attended_share, hardware_flop_per_token, model_flop_per_token
from coopt.validation.facts import Framework, found, published_facts

USUAL = "model-fullattn"
COUNTS = ("hw-4/3-fullattn", USUAL, "model-fullattn-GQA-ignored", "model-causalattn")
SHORTEST, LONGEST = 1e-6, 1e9  # s


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One published measurement; None and empty texts stand for what its source does not state.

    `software` holds columns of what the run is made of (keys of `[workload.software]`), `shape`
    those of its model that have no field of their own.
    """

    id: str
    source_url: str = ""
    model: str = ""
    gpu: str = ""
    recompute: str = ""
    precision: str = ""
    notes: str = ""
    attention_kernel: str = ""
    schedule: str = ""
    pipeline_layout: str = ""
    balance: str = ""
    flop_count: str = ""
    corrections: str = ""
    layers: int | None = None
    hidden: int | None = None
    ffn: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab: int | None = None
    seq: int | None = None
    experts: int | None = None
    topk: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    hb_domain: int | None = None
    tp: int | None = None
    pp: int | None = None
    cp: int | None = None
    ep: int | None = None
    dp: int | None = None
    interleave: int | None = None
    micro_batch: int | None = None
    global_batch: int | None = None
    zero: int | None = None
    sequence_parallel: int | None = None
    offload_percent: int | None = None
    offloads: int | None = None
    ep_overlap: int | None = None
    expert_tp: int | None = None
    ran_out: int | None = None
    nic_gbps_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    mfu: float | None = None
    iter_time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    allocated_gib: float | None = None
    reserved_gib: float | None = None
    software: Mapping[str, Any] = field(default_factory=dict)
    shape: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The source of the row: its id up to the first hyphen."""
        return self.id.split("-")[0]

    def cell(self, column: str) -> Any:
        """Return what a column holds; None or an empty text if nothing."""
        table = TABLES.get(column)
        return getattr(self, table).get(column) if table else getattr(self, column)

    def having(self, column: str, value: Any) -> Measurement:
        """Return the row with another value in a column."""
        table = TABLES.get(column)
        held = {table: {**getattr(self, table), column: value}} if table else {column: value}
        return replace(self, **held)


def _kinds(annotation: Any) -> set[type]:
    """Return the types of the values that a field takes."""
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    if isinstance(annotation, type):
        return {annotation}
    if (origin := get_origin(annotation)) in (tuple, list):
        return {origin}
    return set[type]().union(*map(_kinds, get_args(annotation)))


SHAPE_COLUMNS = [
    name
    for name, info in Transformer.model_fields.items()
    if name not in {*Entry.model_fields, *Measurement.__dataclass_fields__, "top_k"}
    and not name.startswith("published")
    and _kinds(info.annotation) <= {bool, int, float, type(None)}
]
SHAPE_COLUMNS.append("mixers")  # as JSON
TABLES = dict.fromkeys(RunSoftware.model_fields, "software") | dict.fromkeys(SHAPE_COLUMNS, "shape")
COLUMNS = {f.name: str(f.type) for f in fields(Measurement) if f.name not in TABLES.values()}
COLUMNS |= dict.fromkeys(TABLES, "a key")


def corrected(row: Measurement) -> Measurement:
    """Apply the corrections that a row names, where its table prints what they correct.

    Raises
    ------
    UnusableError
        If there is no correction of a name.
    """
    corrections = {correction.name: correction for correction in published_facts().correction}
    for name in filter(None, map(str.strip, row.corrections.split("+"))):
        if name not in corrections:
            raise UnusableError(
                f"corrections {name!r}: no such correction, needs some of {', '.join(corrections)}"
            )
        correction = corrections[name]
        if all(row.cell(column) == value for column, value in correction.printed.items()):
            for column, corrected_value in correction.columns.items():
                row = row.having(column, corrected_value)
    return row


def stated(row: Measurement) -> Measurement:
    """Fill empty columns by what words of the notes say, and correct what is printed wrongly."""
    row = corrected(row)
    for words in published_facts().words:
        framework = row.software.get("framework") or framework_of(row).name
        is_open = row.cell(words.column) in (None, "") and words.framework in ("", framework)
        if is_open and (match := found(words.where, row.notes)):
            row = row.having(words.column, value_of(words.column, match.expand(words.value)))
    return row


def framework_of(row: Measurement) -> Framework:
    """Return the framework that a row names, or that its notes or its address tell; the usual one
    otherwise.
    """
    known, words = published_facts().framework, f"{row.source_url} | {row.notes}"
    name = row.software.get("framework")
    if name is None:
        return next(one for one in known if found(one.where, words))
    return next(one for one in known if one.name == name)


NEEDED = ("id", "gpu", "gpus", "tp", "pp", "global_batch", "precision")
SHAPE = ("layers", "hidden", "ffn", "heads", "vocab", "seq")  # needed where no model is named
MEASURED = ("iter_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu")  # one of them
MAY_BE_ZERO = (
    "zero",
    "experts",
    "topk",
    "ep",
    "sequence_parallel",
    "offload_percent",
    "ep_overlap",
    "expert_tp",
    "offloads",
    "ran_out",
)
SMALLEST, LARGEST = 1e-12, 1e15
SWITCH = {"0": False, "1": True, "0.0": False, "1.0": True}
UNPUBLISHED = ("", "-", "–", "—", "n/a", "na")


def read_measurements(path: str | Path) -> list[Measurement]:
    """Read all rows of a CSV file; unknown columns are ignored."""
    file = Path(path)
    text = read_text(
        file, "a CSV text file", "a CSV file of measurements (such as benchmarks/published.csv)"
    )
    return measurements_in(text, file.name)


def measurements_in(text: str, name: str) -> list[Measurement]:
    """Return all rows of a CSV text.

    Raises
    ------
    InstanceError
        With all complaints: file, row, column, given value, requirement.
    """
    try:
        table = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True))
    except csv.Error as error:
        raise InstanceError(
            f"{name}: not CSV ({error}), needs a CSV file of measurements"
        ) from None
    lines = [line for line in table if any(cell.strip() for cell in line)]
    if len(lines) < 2:
        raise InstanceError(
            f"{name}: holds no measurement, needs a header line and a line for each measurement"
        )
    names = [name.strip() for name in lines[0]]
    complaints = list(_wrong_header(names))
    if complaints:
        raise InstanceError(f"{name}: {complaint}" for complaint in complaints)
    rows = [
        measurement_of(dict(zip(names, line, strict=False)), number, complaints)
        for number, line in enumerate(lines[1:], 1)
    ]
    complaints += [
        f"row {number}: has {counted(len(line), 'value')}, needs {len(names)}"
        for number, line in enumerate(lines[1:], 1)
        if len(line) != len(names)
    ]
    if complaints:
        raise InstanceError(f"{name}: {complaint}" for complaint in complaints)
    return rows


def _wrong_header(names: list[str]) -> Iterator[str]:
    def columns(which: list[str], state: str) -> str:
        """`column tp is missing`, `columns gpus, tp are missing`."""
        noun, verb = ("column", "is") if len(which) == 1 else ("columns", "are")
        return f"{noun} {', '.join(which)} {verb} {state}"

    required = NEEDED if "model" in names else (*NEEDED, *SHAPE)
    if absent := [name for name in required if name not in names]:
        yield f"{columns(absent, 'missing')}, needs the columns {', '.join(required)}"
    if not set(MEASURED) & set(names):
        yield f"no column holds a measurement, needs one of {', '.join(MEASURED)}"
    if twice := sorted({name for name in names if name in COLUMNS and names.count(name) > 1}):
        yield f"{columns(twice, 'more than once in the table')}, needs each column once"


def measurement_of(cells: dict[str, str], number: int, complaints: list[str]) -> Measurement:
    """Parse one row; errors are appended to `complaints`."""
    name = cells.get("id", "").strip()
    if not name:
        complaints.append(f"row {number}: id is empty, needs a name")
    elif not name.isprintable():
        complaints.append(
            f"row {number}: id = {name!r}: has unprintable characters, needs a printable name"
        )
    values: dict[str, Any] = {"software": {}, "shape": {}}
    for column in COLUMNS:
        cell = cells.get(column, "").strip()
        try:
            value = value_of(column, cell)
        except ValueError as error:
            complaints.append(f"row {name or number}: {column} = {cell!r}: {error}")
            continue
        if column not in TABLES:
            values[column] = value
        elif value is not None:
            values[TABLES[column]][column] = value
    try:
        RunSoftware.model_validate(values["software"])
    except ValidationError as error:
        complaints += [f"row {name or number}: {text}" for text in sentences(error, RunSoftware)]
    return Measurement(**values)


def value_of(column: str, cell: str) -> Any:
    """Return what the cell of a column holds; None, or an empty text, if nothing was published.

    Raises
    ------
    ValueError
        If it is no value of the column.
    """
    kind = COLUMNS[column]
    if column != "id" and cell.lower() in UNPUBLISHED:
        cell = ""
    if cell and column in (known := choices()) and cell not in known[column]:
        raise ValueError(f"needs one of {', '.join(known[column])}")
    if kind == "str":
        return cell
    if kind != "a key":
        least = 0 if column in MAY_BE_ZERO else 1
        return _number(cell, is_whole=kind.startswith("int"), minimum=least)
    if not cell:
        return None
    if column == "mixers":
        try:
            return tuple(json.loads(cell))
        except (ValueError, TypeError, RecursionError):
            raise ValueError("needs a JSON list of objects") from None
    table = RunSoftware if TABLES[column] == "software" else Transformer
    kinds = _kinds(table.model_fields[column].annotation)
    if bool in kinds:
        if cell not in SWITCH:
            raise ValueError("needs 1 or 0")
        return SWITCH[cell]
    if tuple in kinds:
        return tuple(part.strip() for part in cell.split("+"))
    if int in kinds:
        return _number(cell, is_whole=True, minimum=0)
    try:
        return float(cell) if float in kinds else cell
    except ValueError:
        raise ValueError("needs a number, or nothing where it is not published") from None


@cache
def choices() -> dict[str, tuple[str, ...]]:
    """Return the known values of columns that take one of a few."""
    return {
        "framework": tuple(one.name for one in published_facts().framework),
        "attention_kernel": ("flash", "unfused"),
        "schedule": get_args(Schedule),
        "flop_count": COUNTS,
        "balance": ("forced", "trained"),
    }


def printed_cell(value: Any) -> Any:
    """Return the cell of a table that `value_of` reads as this value."""
    if isinstance(value, tuple):
        return (
            "+".join(value) if all(isinstance(part, str) for part in value) else json.dumps(value)
        )
    return int(value) if isinstance(value, bool) else "" if value is None else value


def _number(cell: str, *, is_whole: bool, minimum: int) -> int | float | None:
    """Parse a number, including `1,536` or `41.5%`; None if it was not published."""
    if cell.lower() in UNPUBLISHED:
        return None
    digits = cell.replace(",", "") if THOUSANDS.fullmatch(cell) else cell
    try:
        number = float(digits[:-1]) / 100 if digits.endswith("%") else float(digits)
    except ValueError:
        raise ValueError("needs a number, or nothing where it is not published") from None
    if not is_whole:
        if not SMALLEST <= number <= LARGEST:
            raise ValueError(f"needs a number from {SMALLEST:g} to {LARGEST:g}")
        return number
    if not math.isfinite(number) or number != int(number) or not minimum <= number <= MAX_COUNT:
        raise ValueError(f"needs a whole number from {minimum} to {MAX_COUNT}")
    return int(number)


class UnusableError(Exception):
    """A row that cannot be predicted; the text states why, in equal words for equal reasons."""


def measured_seconds(
    row: Measurement, model: Transformer, peak_flop_s: float, assumptions: list[str]
) -> float:
    """Return the measured iteration time (s): as published, else from tokens/s, TFLOP/s or MFU.

    Parameters
    ----------
    peak_flop_s
        Peak of the GPU in the precision of the row (FLOP/s).
    """
    seconds = _seconds(row, model, peak_flop_s, assumptions)
    if not SHORTEST <= seconds <= LONGEST:
        raise UnusableError(f"a measurement of {seconds:.3g} s an iteration is implausible")
    if row.global_batch is not None and row.gpus is not None:
        # with attention only to tokens that are attended to
        unattended = (1.0 - attended_share(model)) * _attention_flop(model)
        flop = row.global_batch * model.seq * (model_flop_per_token(model) - unattended)
        flop_s = flop / (seconds * row.gpus)
        if flop_s > peak_flop_s:
            raise UnusableError(
                f"the measurement implies {flop_s / 1e12:,.0f} TFLOP/s for each GPU, more than"
                f" the peak of {row.gpu} in {row.precision} ({peak_flop_s / 1e12:,.0f})"
            )
    return seconds


def _seconds(
    row: Measurement, model: Transformer, peak_flop_s: float, assumptions: list[str]
) -> float:
    if row.iter_time_s is not None:
        return row.iter_time_s
    if row.global_batch is None or row.gpus is None:
        raise UnusableError("the global batch or the GPU count is not published")
    tokens = row.global_batch * model.seq
    if row.tokens_per_s_per_gpu is not None:
        return tokens / (row.tokens_per_s_per_gpu * row.gpus)
    if row.tflops_per_gpu is None and row.mfu is None:
        raise UnusableError("no measurement is published")
    counts = row.flop_count
    if row.tflops_per_gpu is not None and counts:
        assumptions.append(f"the time is derived from TFLOP/s, counted as {counts}")
        return tokens * flop_per_token(model, counts) / (row.tflops_per_gpu * 1e12 * row.gpus)
    if row.mfu is not None:
        if row.mfu > 1.0:
            raise UnusableError(f"MFU {row.mfu:g}, needs a share of the peak of at most 1")
        counts = counts or USUAL
        assumptions.append(
            f"the time is derived from the MFU, counted as {counts}, a share of the dense peak"
        )
        return tokens * flop_per_token(model, counts) / (row.mfu * peak_flop_s * row.gpus)
    raise UnusableError(
        "only TFLOP/s are published, not how they were counted: needs flop_count, one of"
        f" {', '.join(COUNTS)}"
    )


def flop_per_token(model: Transformer, counts: str) -> float:
    """Return FLOPs per token in the convention of a source."""
    if counts == "hw-4/3-fullattn":
        return float(hardware_flop_per_token(model, FULL, flash=True))
    if counts == "model-fullattn-GQA-ignored":
        return model_flop_per_token(model.model_copy(update={"kv_heads": model.heads}))
    return model_flop_per_token(model) - (
        0.5 * _attention_flop(model) if counts == "model-causalattn" else 0.0
    )


def _attention_flop(model: Transformer) -> float:
    """Return FLOPs per token of scores and context, forward and backward, with attention to all
    tokens.
    """
    return (
        6.0 * model.with_attention * model.heads * (model.head_dim + model.value_size) * model.seq
    )
