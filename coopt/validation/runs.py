"""Conversion of published rows to inputs of the performance model, or the reason why that is
impossible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu, HbDomain, Precision
from coopt.instance.transformer import Software, Transformer
from coopt.instance.workload import Options, Workload
from coopt.perf.mapping import RECOMPUTE
from coopt.validation.facts import PublishedGpu, SoftwareStack, published_facts
from coopt.validation.published import (
    COLUMNS,
    Measurement,
    UnusableError,
    corrected,
    measured_seconds,
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
        trained = (model, workload.global_batch, workload.precision, workload.options)
        return *trained, self.gpu.name, self.hb_gbyte_s


@dataclass(frozen=True, kw_only=True)
class SkippedRow:
    """A row that is skipped, and why."""

    id: str
    group: str
    measured_s: float | None
    why: str


def outcome_of(row: Measurement) -> MeasuredRun | SkippedRow:
    """Return a row as a run, or the reason why it is skipped."""
    try:
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
        f"{name} {getattr(row, name)}, printed as {getattr(printed_row, name)}"
        for name in COLUMNS
        if getattr(row, name) != getattr(printed_row, name)
    ]
    device = device_of(row)
    gpu, domain = find("gpu", device.gpu), find("hb_domain", device.hb_domain)
    assert isinstance(gpu, Gpu)
    assert isinstance(domain, HbDomain)
    model = transformer_of(row, assumptions)
    stack, precision = _stack(row, gpu.generation), _precision(row, gpu)
    size = domain_of(row, domain, assumptions)
    split = split_of(row, model, stack, size, assumptions)
    measured_s = measured_seconds(row, model, gpu.peak_flop_s(precision), assumptions)
    workload = _workload(row, model, stack, split, precision, measured_s, assumptions)
    split = _fitted(row, workload, gpu, split, assumptions)
    if device.hb_gbyte_s is not None:
        assumptions.append(
            f"{row.gpu} as {gpu.name} with {device.hb_gbyte_s:g} GB/s inside the domain"
        )
    if row.nic_gbps_per_gpu is None:
        assumptions.append(f"a {device.nic_gbit_s:g}G adapter for each GPU")
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
    if not row.recompute and not any("recipe" in text for text in assumptions):
        split = with_least_recomputation(workload, gpu, split)
        fits = ", the least that fits into memory" if split.recompute else ""
        assumptions.append(f"recomputation {RECOMPUTE[split.recompute]}{fits}")
    return split


def _workload(
    row: Measurement,
    model: Transformer,
    stack: SoftwareStack,
    split: MeasuredSplit,
    precision: Precision,
    measured_s: float,
    assumptions: list[str],
) -> Workload:
    """Return the workload of the run, bounded by its measured time."""
    options, changes = _recipe(row)
    software = software_of(stack, changes)
    if not stack.where:
        assumptions.append(f"software as {software.name}")
    if split.cp > 1 and not stack.balanced_ring:
        assumptions.append("context ranks wait for the one that attends most")
        # the last of consecutive ranks attends to 1 - 1/(2c) of the sequence on average
        window = max(1, round(model.seq * (1.0 - 0.5 / split.cp)))
        changed = {"causal": False, "window": window, "window_layers": model.layers}
        model = model.model_copy(update=changed)
    return Workload(
        name=row.id,
        model=model,
        global_batch=split.micro_batches * split.micro_batch * split.dp,
        precision=precision,
        max_iteration_time_s=measured_s,
        options=Options.model_validate(
            {
                "software": software.model_dump(),
                "attention": stack.attention,
                "dp_mode": stack.dp_mode,
                "expert_tp": split.expert_tp,
                **options,
            }
        ),
    )


def _recipe(row: Measurement) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and software settings that the row's recipe enables; columns of the row
    take precedence.
    """
    options, changes = dict[str, Any](), dict[str, Any]()
    for recipe in published_facts().recipe:
        if recipe.holds_for_row(row):
            options |= recipe.options
            changes |= recipe.changes
    if row.ep_overlap is not None:
        options["ep_overlap"] = bool(row.ep_overlap)
    return options, changes


def software_of(stack: SoftwareStack, recipe: Mapping[str, Any]) -> Software:
    """Return the catalog's framework with the changes of the stack and the recipe."""
    software, changes = find("software", stack.software), {**(stack.changes or {}), **recipe}
    assert isinstance(software, Software)
    return Software.model_validate(software.model_dump() | changes) if changes else software


def device_of(row: Measurement) -> PublishedGpu:
    """Return the GPU of a row with the domain and network it usually has."""
    if not row.gpu:
        raise UnusableError("GPU not published")
    # without vendor, board and memory type: `a100-80g` for `NVIDIA A100-SXM4-80GB`
    words = re.split(r"[\s_()-]+", re.sub(r"(\d)\s*gi?b\b", r"\1g", row.gpu.lower()))
    plain_name = "-".join(word for word in words if not NO_NAME.fullmatch(word))
    text = f"{row.text} | {plain_name}"
    named = [fact for fact in published_facts().device if plain_name in map(str.lower, fact.names)]
    device = next((fact for fact in named if fact.holds_for(text)), None)
    if device is None:
        raise UnusableError(f"accelerator {row.gpu} is not in the catalog")
    return device


def _stack(row: Measurement, generation: str) -> SoftwareStack:
    """Return the first software stack that fits a row; the last one takes every row."""
    return next(
        stack
        for stack in published_facts().stack
        if stack.generation in ("", generation)
        and stack.precision in ("", row.precision)
        and stack.holds_for(row.text)
    )


def _precision(row: Measurement, gpu: Gpu) -> Precision:
    precision = published_facts().precisions.get(re.sub(r"[\s_]+", "-", row.precision.lower()))
    if precision is None:
        unknown = f"precision {row.precision!r} is not known"
        raise UnusableError(unknown if row.precision else "precision not published")
    if not gpu.peak_flop_s(precision):
        raise UnusableError(f"{gpu.name} has no {precision}")
    return precision
