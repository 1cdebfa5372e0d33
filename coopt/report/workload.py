"""How a workload runs: split, time, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.workload import Workload
from coopt.plan.schema import MappingChoice, WorkloadPlan
from coopt.report import words
from coopt.report.tables import Figures, facts, figures

COMPONENTS = {
    "compute": "layers, compute",
    "logits": "logits, compute",
    "tp": "tensor-parallel traffic",
    "pp": "pipeline traffic",
    "cp": "context-parallel traffic",
    "ep": "expert-parallel traffic",
    "dp": "data-parallel traffic",
    "wan": "gradients between sites",
    "embedding": "embedding gradients",
    "bubble": "pipeline bubble",
    "optimizer": "optimizer step",
    "straggler": "stragglers and overhead",
}


def workload_tables(workload: WorkloadPlan, asked: Workload) -> Iterator[RenderableType]:
    """A workload's facts and where its time goes."""
    yield facts(f"Workload {workload.name}", workload_rows(workload, asked))
    yield ""
    yield breakdown_table(workload)


def workload_rows(workload: WorkloadPlan, asked: Workload) -> Iterator[tuple[str, str]]:
    """Model, time, split, schedule, memory and utilisation, line by line."""
    yield "Model", trained(asked)
    yield "Iteration", f"{words.seconds(workload.iteration_time_s)}, at most {words.seconds(workload.bound_s)} allowed"
    if reached := asked.in_own_units(workload.iteration_time_s):
        yield "Bound", f"{asked.in_own_units(workload.bound_s)}; this plan {reached}"
    yield "Throughput", f"{workload.tokens_per_s:,.0f} tokens/s on {words.counted(workload.gpus, 'GPU')}"
    yield "Split", split(workload)
    yield "Schedule", schedule(workload.mapping)
    share = words.percent(workload.memory_gib / workload.memory_limit_gib)
    yield "Memory", f"{workload.memory_gib:.1f} of {workload.memory_limit_gib:.1f} GiB per GPU ({share})"
    for knob in workload.knobs:
        yield "Knob", knob
    yield "Utilisation", f"MFU {words.percent(workload.mfu)}, HFU {words.percent(workload.hfu)}"


def trained(asked: Workload) -> str:
    """`gpt-1t in bf16, 4,096 sequences of 2,048 tokens an iteration, software megatron-core`."""
    batch = f"{words.counted(asked.global_batch, 'sequence')} of {words.count(asked.model.seq)} tokens an iteration"
    return f"{asked.model.name} in {asked.precision}, {batch}, software {asked.options.software.name}"


def split(workload: WorkloadPlan) -> str:
    """`TP 8 (8 in the domain x 1 across), PP 16 (1 x 16), DP 32 (1 x 32)`."""
    parts: list[str] = []
    for name in ("tp", "pp", "dp", "cp", "ep"):
        degree = getattr(workload.mapping, name)
        if name in ("cp", "ep") and degree == 1:
            continue
        inside, across = workload.placement.get(name, (1, 1))
        where = f"{inside} x {across}" if parts else f"{inside} in the domain x {across} across"
        parts.append(f"{name.upper()} {degree} ({where})")
    return ", ".join(parts)


def degrees(mapping: MappingChoice) -> str:
    """`TP 8, PP 16, DP 32`; CP and EP only where there is some."""
    named = [(name, getattr(mapping, name)) for name in ("tp", "pp", "dp", "cp", "ep")]
    return ", ".join(f"{name.upper()} {degree}" for name, degree in named if degree > 1 or name not in ("cp", "ep"))


def schedule(mapping: MappingChoice) -> str:
    """Micro-batches, recomputation and sharding in words."""
    interleave = f", {mapping.interleave} interleaved chunks" if mapping.interleave > 1 else ""
    return (
        f"micro-batch {mapping.micro_batch}{interleave}, recompute {mapping.recompute}, "
        f"sequence parallelism {'on' if mapping.sequence_parallel else 'off'}, ZeRO {mapping.zero}"
    )


def knob_sentences(workloads: Sequence[WorkloadPlan]) -> Iterator[str]:
    """What departs from ordinary training, and in which workloads, where these stand in one table."""
    for knob in dict.fromkeys(knob for workload in workloads for knob in workload.knobs):
        named = [workload.name for workload in workloads if knob in workload.knobs]
        yield f"Knob of {', '.join(named)}: {knob}."


def breakdown_table(workload: WorkloadPlan) -> Figures:
    """Where the time of one iteration goes; parts that take none are left out."""
    whole = workload.iteration_time_s
    return figures(
        f"One iteration of {workload.name}",
        ("component",),
        ("time", "share"),
        [
            (COMPONENTS.get(name, name), words.seconds(spent), words.percent(spent / whole))
            for name, spent in workload.breakdown_s.items()
            if spent
        ],
        total=("iteration", words.seconds(whole), words.percent(1.0)),
    )
