"""Conversion of published rows to inputs of the performance model, or the reason why that is
impossible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import ValidationError

from coopt.instance.catalog import OWN, find, sentences
from coopt.instance.hardware import Gpu, HbDomain, Precision
from coopt.instance.software import RunSoftware
from coopt.instance.transformer import MappingLimits, Software, Transformer
from coopt.instance.workload import Options, Workload
from coopt.perf.mapping import RECOMPUTE
from coopt.validation.facts import Framework, PublishedGpu, published_facts
from coopt.validation.published import (
    COLUMNS,
    LONGEST,
    Measurement,
    UnusableError,
    corrected,
    framework_of,
    measured_seconds,
    stated,
)
from coopt.validation.shapes import transformer_of
from coopt.validation.splits import (
    MeasuredSplit,
    domain_of,
    split_of,
    with_largest_micro_batch,
    with_least_recomputation,
)

NO_NAME = re.compile(r"nvidia|amd|instinct|tesla|dgx|hgx|sxm\d?|oam|hbm\d?e?|")
PrecisionClass = Literal["16-bit", "fp8", "fp4"]


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """A measured run with all inputs of the performance model."""

    id: str
    group: str
    workload: Workload
    gpu: Gpu
    gpus: int
    hb_gbyte_s: float
    hb_size: int
    nic_gbit_s: float
    split: MeasuredSplit
    measured_s: float
    counts_flops: bool
    assumptions: tuple[str, ...]

    @property
    def generation(self) -> str:
        """Generation of the GPU; GPUs of one generation are fitted together."""
        return self.gpu.generation

    @property
    def precision(self) -> PrecisionClass:
        """Class of the precision; each class has its own fitted parameters."""
        precision = self.workload.precision
        return precision if precision in ("fp8", "fp4") else "16-bit"

    @property
    def software(self) -> Software:
        """The training framework."""
        return self.workload.options.software

    @property
    def question(self) -> tuple[object, ...]:
        """What runs share that are evaluated together: all but mapping, GPUs and network."""
        workload = self.workload
        model = workload.model.model_copy(update={"name": "", "description": "", "sources": ()})
        options = workload.options.having(software={"release": ""})
        trained = (model, workload.global_batch, workload.precision, workload.balance, options)
        return *trained, workload.layout, self.gpu.name, self.hb_gbyte_s


@dataclass(frozen=True, kw_only=True)
class SkippedRow:
    """A row that is skipped, and why; `ran_out` is a run that had too little memory."""

    id: str
    group: str
    measured_s: float | None
    why: str
    ran_out: MeasuredRun | None = None


def outcome_of(row: Measurement) -> MeasuredRun | SkippedRow:
    """Return a row as a run, or the reason why it is skipped."""
    try:
        if row.ran_out:  # of which no time is known
            return SkippedRow(
                id=row.id,
                group=row.group,
                measured_s=None,
                why="ran out of memory",
                ran_out=run_of(replace(row, iter_time_s=LONGEST)),
            )
        return run_of(row)
    except UnusableError as reason:
        return SkippedRow(id=row.id, group=row.group, measured_s=row.iter_time_s, why=str(reason))


def runs_among(rows: Iterable[Measurement]) -> list[MeasuredRun]:
    """Return the rows that can be predicted."""
    return [outcome for row in rows if isinstance(outcome := outcome_of(row), MeasuredRun)]


def run_of(row: Measurement) -> MeasuredRun:
    """Return a row as a run; UnusableError with the first thing that is missing."""
    # what the source corrects elsewhere comes first, and each correction is an assumption that is
    # listed
    printed_row, row = row, corrected(row)
    assumptions = [
        f"{name} {row.cell(name)}, printed as {printed_row.cell(name)}"
        for name in COLUMNS
        if row.cell(name) != printed_row.cell(name)
    ]
    row, framework = stated(row), framework_of(row)
    device = device_of(row)
    gpu, domain = find("gpu", device.gpu), find("hb_domain", device.hb_domain)
    assert isinstance(gpu, Gpu)
    assert isinstance(domain, HbDomain)
    model = transformer_of(row, assumptions)
    precision = _precision(row, gpu)
    size = domain_of(row, domain, assumptions)
    split = split_of(row, model, framework, size, assumptions)
    measured_s = measured_seconds(row, model, gpu.peak_flop_s(precision), assumptions)
    workload = _workload(row, model, framework, split, precision, measured_s, assumptions)
    split = _fitted(row, workload, gpu, split, assumptions)
    if device.hb_gbyte_s is not None:
        assumptions.append(
            f"{row.gpu} is treated as {gpu.name} with {device.hb_gbyte_s:g} GB/s inside the domain"
        )
    if row.nic_gbps_per_gpu is None:
        assumptions.append(f"a {device.nic_gbit_s:g}G NIC for each GPU is assumed")
    return MeasuredRun(
        id=row.id,
        group=row.group,
        workload=workload,
        gpu=gpu,
        gpus=split.tp * split.cp * split.pp * split.dp,
        hb_gbyte_s=device.hb_gbyte_s or domain.gbyte_s,
        hb_size=size,
        nic_gbit_s=row.nic_gbps_per_gpu or device.nic_gbit_s,
        split=split,
        measured_s=measured_s,
        counts_flops=row.tflops_per_gpu is not None,
        assumptions=tuple(assumptions),
    )


def _fitted(
    row: Measurement, workload: Workload, gpu: Gpu, split: MeasuredSplit, assumptions: list[str]
) -> MeasuredSplit:
    """Choose micro-batch and recomputation by memory where the row omits them."""
    if row.micro_batch is None:
        split = with_largest_micro_batch(workload, gpu, split) if split.pp == 1 else split
        assumptions.append(f"micro-batch {split.micro_batch}")
    if not row.recompute:
        split = with_least_recomputation(workload, gpu, split)
        fits = ", the least that fits into memory" if split.recompute else ""
        assumptions.append(f"recomputation {RECOMPUTE[split.recompute]}{fits}")
    return split


def _workload(
    row: Measurement,
    model: Transformer,
    framework: Framework,
    split: MeasuredSplit,
    precision: Precision,
    measured_s: float,
    assumptions: list[str],
) -> Workload:
    """Return the workload of the run, bounded by its measured time."""
    if "framework" not in row.software:
        assumptions.append(f"software as {framework.name}")
    if split.cp > 1 and not framework.balanced_ring:
        assumptions.append("context-parallel ranks wait for the rank with the most attention")
        # the last of consecutive ranks attends to 1 - 1/(2c) of the sequence on average
        window = max(1, round(model.seq * (1.0 - 0.5 / split.cp)))
        changed = {"causal": False, "window": window, "window_layers": model.layers}
        model = model.model_copy(update=changed)
    return Workload(
        name=row.id,
        model=model,
        global_batch=split.micro_batches * split.micro_batch * split.dp,
        precision=precision,
        balance="trained" if row.balance == "trained" else "forced",
        max_iteration_time_s=measured_s,
        mapping=MappingLimits(pipeline_layout=row.pipeline_layout or None),
        options=_options(row, framework, split),
    )


def _options(row: Measurement, framework: Framework, split: MeasuredSplit) -> Options:
    """Return the options of a run: as stated, else as its framework usually does."""
    table = {
        "attention": row.attention_kernel or framework.attention,
        "dp_mode": framework.dp_mode,
        "schedule": row.schedule or "1f1b",
        "expert_tp": split.expert_tp,
        "dp_replicate": split.dp_replicate,
        "ep_overlap": bool(row.ep_overlap),
    }
    try:
        made_of = RunSoftware.model_validate({"framework": framework.name, **row.software})
        return Options.model_validate(made_of.options(table, None))
    except ValidationError as error:
        raise UnusableError(sentences(error, Options)[0]) from None
    except ValueError as error:
        raise UnusableError(str(error)) from None


def device_of(row: Measurement) -> PublishedGpu:
    """Return the GPU of a row with the domain and network it usually has."""
    if not row.gpu:
        raise UnusableError("GPU not published")
    # without vendor, board and memory type: `a100-80g` for `NVIDIA A100-SXM4-80GB`
    words = re.split(r"[\s_()-]+", re.sub(r"(\d)\s*gi?b\b", r"\1g", row.gpu.lower()))
    plain_name = "-".join(word for word in words if not NO_NAME.fullmatch(word))
    notes = f"{row.notes} | {plain_name}"
    known = published_facts().device
    device = next((one for one in known if one.is_named(plain_name, notes)), None)
    own = OWN.get().get("gpu", {}).get(row.gpu)
    if isinstance(own, Gpu):  # in servers like those of its generation
        alike = (one for one in known if generation_of(one.gpu) == own.generation)
        device = next((one.model_copy(update={"gpu": own.name}) for one in alike), None)
    if device is None:
        raise UnusableError(f"accelerator {row.gpu} is not known from measured runs")
    return device


def generation_of(name: str) -> str:
    """Return the generation of a GPU of the catalog."""
    gpu = find("gpu", name)
    assert isinstance(gpu, Gpu)
    return gpu.generation


def _precision(row: Measurement, gpu: Gpu) -> Precision:
    precision = published_facts().precisions.get(re.sub(r"[\s_]+", "-", row.precision.lower()))
    if precision is None:
        unknown = f"precision {row.precision!r} is not known"
        raise UnusableError(unknown if row.precision else "the precision is not published")
    if not gpu.peak_flop_s(precision):
        raise UnusableError(f"{gpu.name} has no {precision}")
    return precision
