"""The mapping of a workload as arguments of Megatron-LM's pretrain_gpt.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from coopt.instance.workload import Workload
from coopt.perf.mapping import stage_layers
from coopt.plan.schema import MappingChoice
from coopt.report.launch.megatron_model import Argument
from coopt.traffic.split import Split

SHARDING = {2: "optim_grads", 3: "optim_grads_params"}


def mapping_arguments(split: Split, one: MappingChoice, *, pp_last: bool) -> Iterator[Argument]:
    """Degrees, batches, memory and what runs behind compute."""
    workload = split.workload
    yield "--tensor-model-parallel-size", str(one.tp)
    yield "--pipeline-model-parallel-size", str(one.pp)
    yield "--context-parallel-size", str(one.cp)
    if workload.model.experts:
        yield "--expert-model-parallel-size", str(one.ep)
        yield "--expert-tensor-parallel-size", str(one.tp if workload.options.expert_tp else 1)
    if not pp_last:
        yield ("--use-tp-pp-dp-mapping",)
    yield from _stages(split, one)
    yield "--micro-batch-size", str(one.micro_batch)
    yield "--global-batch-size", str(workload.global_batch)
    if one.sequence_parallel:
        yield ("--sequence-parallel",)
    if one.recompute != "none":
        yield "--recompute-granularity", one.recompute
    if one.recompute == "full":
        yield "--recompute-method", "uniform"
        yield "--recompute-num-layers", "1"
    yield from _sharding(one)
    yield from _overlaps(workload, one)


def sharded_fully(one: MappingChoice) -> bool:
    """Whether gradients are sharded as well; with a pipeline ZeRO 2 and 3 shard what ZeRO 1 does (docs/model.md)."""
    return one.zero >= 2 and one.pp == 1


def _stages(split: Split, one: MappingChoice) -> Iterator[Argument]:
    """Chunks of a stage, and how many layers each has where some are missing."""
    layers, chunks = split.workload.model.layers, one.pp * one.interleave
    fullest, fewer = (int(n[0]) for n in stage_layers(layers, split.mapping))
    missing = one.pp * fullest - layers
    if missing and (one.interleave > 1 or fewer == fullest):
        sizes = _chunk_sizes(fullest // one.interleave, one, missing - fewer, fewer)
        yield "--pipeline-model-parallel-layout", _layout(sizes, split.workload.model.extra_predictions)
        return
    if one.interleave > 1:
        yield "--num-layers-per-virtual-pipeline-stage", str(layers // chunks)
    if missing - fewer:
        yield "--decoder-first-pipeline-num-layers", str(fullest - (missing - fewer))
    if fewer:
        yield "--decoder-last-pipeline-num-layers", str(fullest - fewer)


def _chunk_sizes(full: int, one: MappingChoice, first: int, last: int) -> list[int]:
    """Layers of every chunk, in the order of the model, less those that the first and the last stage go without."""
    sizes = [full] * (one.pp * one.interleave)
    for chunk in range(0, len(sizes), one.pp):
        taken = min(first, full)
        sizes[chunk], first = full - taken, first - taken
    for chunk in range(len(sizes) - 1, -1, -one.pp):
        taken = min(last, full)
        sizes[chunk], last = sizes[chunk] - taken, last - taken
    return sizes


def _layout(sizes: list[int], predictions: int) -> str:
    """The chunks in Megatron-LM's notation: embedding E, layers t, predictions m, loss L, chunks apart by |."""
    *earlier, last = sizes
    text = "E"
    for size, alike in groupby(earlier):
        count = len(list(alike))
        text += f"({'t' * size}|)*{count}" if count > 1 else f"{'t' * size}|"
    return text + "t" * last + "m" * predictions + "L"


def _sharding(one: MappingChoice) -> Iterator[Argument]:
    if one.zero:
        yield ("--use-distributed-optimizer",)
    if sharded_fully(one):
        yield ("--use-megatron-fsdp",)
        yield "--data-parallel-sharding-strategy", SHARDING[one.zero]
        yield "--ckpt-format", "fsdp_dtensor"


def _overlaps(workload: Workload, one: MappingChoice) -> Iterator[Argument]:
    software = workload.options.software
    if workload.options.dp_mode == "overlap" or sharded_fully(one):
        yield ("--overlap-grad-reduce",)
        if one.zero:
            yield ("--overlap-param-gather",)
    if one.interleave > 1 and one.pp > 2 and not software.pp_overlap:
        yield ("--no-overlap-p2p-communication",)
    if not software.fused_accumulation or sharded_fully(one):
        yield ("--no-gradient-accumulation-fusion",)
    yield ("--accumulate-allreduce-grads-in-fp32",) if software.gradient_bytes == 4 else ("--grad-reduce-in-bf16",)
