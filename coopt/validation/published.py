"""Tables of published measurements, and the iteration time of a row."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from coopt.instance.base import MAX_COUNT
from coopt.instance.quotes import THOUSANDS
from coopt.instance.texts import InstanceError, read_text
from coopt.instance.transformer import Transformer
from coopt.perf.mapping import FULL, attended_share, hardware_flop_per_token, model_flop_per_token
from coopt.validation.facts import published_facts

USUAL = "model-fullattn"
COUNTS = ("hw-4/3-fullattn", USUAL, "model-fullattn-GQA-ignored", "model-causalattn")
SHORTEST, LONGEST = 1e-6, 1e9  # s
NOTED = re.compile(r"flop_conv=([\w./-]+)")
# a year and a month after `v`, `NeMo` or a hyphen, as in NeMo 25.11 or v25.05.05
RELEASE = re.compile(r"(?:\bv|\bNeMo |-)(2\d\.(?:0[1-9]|1[0-2])(?:\.\d+)?)\b")


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One published measurement; None and empty texts stand for what its source does not state."""

    id: str
    source_url: str = ""
    model: str = ""
    gpu: str = ""
    recompute: str = ""
    precision: str = ""
    notes: str = ""
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
    ep_overlap: int | None = None
    nic_gbps_per_gpu: float | None = None
    tflops_per_gpu: float | None = None
    mfu: float | None = None
    iter_time_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    gated: int | None = None
    tied_embeddings: int | None = None
    q_rank: int | None = None
    kv_rank: int | None = None
    rope_dim: int | None = None
    value_dim: int | None = None
    shared_ffn: int | None = None
    dense_layers: int | None = None
    dense_ffn: int | None = None
    expert_groups: int | None = None
    top_groups: int | None = None
    expert_latent: int | None = None
    window: int | None = None
    window_layers: int | None = None
    extra_predictions: int | None = None
    mamba_layers: int | None = None
    attention_layers: int | None = None
    ffn_layers: int | None = None
    mamba_heads: int | None = None
    mamba_head_dim: int | None = None
    mamba_groups: int | None = None
    mamba_state: int | None = None

    @property
    def group(self) -> str:
        """The source of the row: its id up to the first hyphen."""
        return self.id.split("-")[0]

    @property
    def release(self) -> str:
        """The state of software and machine that its source distinguishes, or the release named in
        its text.
        """
        match = RELEASE.search(self.text)
        facts = (fact.name for fact in published_facts().release if fact.holds_for_row(self))
        return next(facts, match[1] if match else "")

    @property
    def text(self) -> str:
        """All text of the row, for rules that match words."""
        return " | ".join((self.id, self.source_url, self.model, self.notes))


def corrected(row: Measurement) -> Measurement:
    """Apply corrections by the same source, or by the recipe that was run, to the values of the
    table.
    """
    for correction in published_facts().correction:
        if correction.holds_for_row(row):
            columns: dict[str, Any] = dict(correction.columns)
            row = replace(row, **columns)
    return row


COLUMNS = {field.name: str(field.type) for field in fields(Measurement)}
NEEDED = ("id", "gpu", "gpus", "tp", "pp", "global_batch", "precision")
SHAPE = ("layers", "hidden", "ffn", "heads", "vocab", "seq")  # needed where no model is named
# columns of what a shape has beside that, named as the keys of a model
SHAPE_DETAILS = tuple(COLUMNS)[tuple(COLUMNS).index("gated") :]
MEASURED = ("iter_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu")  # one of them
MAY_BE_ZERO = (
    "zero",
    "experts",
    "topk",
    "ep",
    "sequence_parallel",
    "offload_percent",
    "ep_overlap",
    *SHAPE_DETAILS,
)
SMALLEST, LARGEST = 1e-12, 1e15
UNPUBLISHED = ("", "-", "–", "—", "n/a", "na")


def read_measurements(path: str | Path) -> list[Measurement]:
    """Read all rows of a CSV file; unknown columns are ignored.

    Raises
    ------
    InstanceError
        With all complaints: file, row, column, given value, requirement.
    """
    file = Path(path)
    text = read_text(
        file, "a CSV text file", "a CSV file of measurements (benchmarks/published.csv is one)"
    )
    try:
        table = list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True))
    except csv.Error as error:
        raise InstanceError(
            f"{file.name}: not CSV ({error}), needs a CSV file of measurements"
        ) from None
    lines = [line for line in table if any(cell.strip() for cell in line)]
    if len(lines) < 2:
        raise InstanceError(
            f"{file.name}: holds no measurement, needs a header line and a line for each"
        )
    names = [name.strip() for name in lines[0]]
    complaints = list(_wrong_header(names))
    if complaints:
        raise InstanceError(f"{file.name}: {complaint}" for complaint in complaints)
    rows = [
        measurement_of(dict(zip(names, line, strict=False)), number, complaints)
        for number, line in enumerate(lines[1:], 1)
    ]
    complaints += [
        f"row {number}: has {len(line)} values, needs {len(names)}"
        for number, line in enumerate(lines[1:], 1)
        if len(line) != len(names)
    ]
    if complaints:
        raise InstanceError(f"{file.name}: {complaint}" for complaint in complaints)
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
        yield f"{columns(twice, 'in the table more than once')}, needs one of each"


def measurement_of(cells: dict[str, str], number: int, complaints: list[str]) -> Measurement:
    """Parse one row; errors are appended to `complaints`."""
    name = cells.get("id", "").strip()
    if not name:
        complaints.append(f"row {number}: id is empty, needs a name")
    elif not name.isprintable():
        complaints.append(
            f"row {number}: id = {name!r}: needs a name of characters that can be printed"
        )
    values: dict[str, Any] = {}
    for column, kind in COLUMNS.items():
        cell = cells.get(column, "").strip()
        if kind == "str":
            values[column] = cell
            continue
        try:
            values[column] = _number(
                cell, is_whole=kind.startswith("int"), minimum=0 if column in MAY_BE_ZERO else 1
            )
        except ValueError as error:
            complaints.append(f"row {name or number}: {column} = {cell!r}: {error}")
    return Measurement(**values)


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
            raise ValueError(f"needs a number above 0 and at most {LARGEST:g}")
        return number
    if not math.isfinite(number) or number != int(number) or not minimum <= number <= MAX_COUNT:
        raise ValueError(f"needs a whole number of {minimum} to {MAX_COUNT}")
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
        raise UnusableError(f"a measurement of {seconds:.3g} s an iteration is beyond reason")
    if row.global_batch is not None and row.gpus is not None:
        # with attention only to tokens that are attended to
        unattended = (1.0 - attended_share(model)) * _attention_flop(model)
        flop = row.global_batch * model.seq * (model_flop_per_token(model) - unattended)
        flop_s = flop / (seconds * row.gpus)
        if flop_s > peak_flop_s:
            raise UnusableError(
                f"a measurement that implies {flop_s / 1e12:,.0f} TFLOP/s for each GPU, "
                f"more than the peak of {row.gpu} in {row.precision}, {peak_flop_s / 1e12:,.0f}"
            )
    return seconds


def _seconds(
    row: Measurement, model: Transformer, peak_flop_s: float, assumptions: list[str]
) -> float:
    if row.iter_time_s is not None:
        return row.iter_time_s
    if row.global_batch is None or row.gpus is None:
        raise UnusableError("global batch or GPU count not published")
    tokens = row.global_batch * model.seq
    if row.tokens_per_s_per_gpu is not None:
        return tokens / (row.tokens_per_s_per_gpu * row.gpus)
    if row.tflops_per_gpu is None and row.mfu is None:
        raise UnusableError("no measurement published")
    counts = convention_of(row)
    if row.tflops_per_gpu is not None and counts is not None:
        assumptions.append(f"time from TFLOP/s, counted as {counts}")
        return tokens * flop_per_token(model, counts) / (row.tflops_per_gpu * 1e12 * row.gpus)
    if row.mfu is not None:
        if row.mfu > 1.0:
            raise UnusableError(f"MFU {row.mfu:g}, needs a share of the peak of at most 1")
        assumptions.append(
            "time from MFU, counted as model FLOPs with full attention, a share of the dense peak"
        )
        return tokens * flop_per_token(model, USUAL) / (row.mfu * peak_flop_s * row.gpus)
    raise UnusableError(
        "only TFLOP/s published, and how they were counted is not known: "
        f"needs flop_conv= in notes, with one of {', '.join(COUNTS)}"
    )


def convention_of(row: Measurement) -> str | None:
    """Return the FLOP convention of the row, from its notes or its group; None if unknown."""
    if note := NOTED.search(row.notes):
        return note[1] if note[1] in COUNTS else None
    facts = published_facts().convention
    return next((fact.counts for fact in facts if fact.holds_for(row.id)), None)


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
