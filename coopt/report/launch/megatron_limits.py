"""What a plan asks for and Megatron-LM refuses, or has no argument for."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.workload import Workload
from coopt.plan.schema import MappingChoice
from coopt.report.launch.megatron_mapping import sharded_fully
from coopt.traffic.rank_order import RankTable, megatron_expert_groups, same_groups
from coopt.traffic.split import Split


def refusals(workload: Workload, one: MappingChoice) -> Iterator[str]:
    """What Megatron-LM stops at, each with what it needs."""
    model = workload.model
    if not model.kv_rank and model.kv_heads % one.tp:
        yield f"tp = {one.tp} does not divide kv_heads = {model.kv_heads}, needs a plan with a mapping.tp that does"
    if one.cp > 1 and model.seq % (2 * one.cp):
        yield f"cp = {one.cp} leaves no even share of seq = {model.seq}, needs a multiple of {2 * one.cp}"
    if workload.precision == "fp16" and one.ep > 1:
        yield f"ep = {one.ep} with precision 'fp16', needs 'bf16'"


def remarks(split: Split, one: MappingChoice, table: RankTable) -> Iterator[str]:
    """What the plan counts on and the arguments do not say."""
    yield from _knobs(split.workload)
    yield from _shape(split.workload, one)
    if not split.workload.options.software.name.startswith("megatron"):
        yield f"times of the plan are for {split.workload.options.software.name}"
    if one.zero >= 2 and not sharded_fully(one):
        yield f"zero = {one.zero} shards with a pipeline what the distributed optimizer does, ZeRO 1"
    if split.workload.model.experts and one.ep > 1:
        if not same_groups(table.expert_group, megatron_expert_groups(split, table)):
            yield "expert groups are of other GPUs than in the plan: Megatron-LM takes consecutive ranks of a stage"
        if one.tp > 1 and not one.sequence_parallel:
            yield "Megatron-LM advises --sequence-parallel where TP and experts meet, which the plan does without"


def _knobs(workload: Workload) -> Iterator[str]:
    options = workload.options
    if options.dp_mode == "stale-1":
        yield "dp_mode = stale-1: Megatron-LM has no argument for gradients that are one step late"
    if options.tp_sync_fraction < 1.0:
        yield f"tp_sync_fraction = {options.tp_sync_fraction:g}: Megatron-LM keeps all activations equal on TP ranks"
    if options.slowdown > 1.0:
        yield f"slowdown = {options.slowdown:g}: the plan counts on stragglers"


def _shape(workload: Workload, one: MappingChoice) -> Iterator[str]:
    model = workload.model
    if 0 < model.window_layers < model.layers:
        yield (
            f"{model.window_layers} of {model.layers} layers look back {model.window} tokens: say which with "
            "--window-size and --window-attn-skip-freq"
        )
    if not model.causal:
        yield "the plan counts full attention, where pretrain_gpt.py leaves out what comes later"
    if model.capacity != 1.0:
        yield f"experts work on {model.capacity:g} times their even share: --moe-expert-capacity-factor caps it"
    if one.interleave > 1 and one.pp == 2 and not workload.options.software.pp_overlap:
        yield "sends of two interleaved stages run behind compute in Megatron-LM, in the plan they do not"
