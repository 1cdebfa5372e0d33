"""A shell script that starts Megatron-LM with the mapping of a plan."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.plan.identity import check_same_question
from coopt.plan.schema import MappingChoice, Plan
from coopt.report.launch.megatron_limits import refusals, remarks
from coopt.report.launch.megatron_mapping import mapping_arguments, sharded_fully
from coopt.report.launch.megatron_model import Argument, model_arguments
from coopt.traffic.of_plan import check_only_one, splits
from coopt.traffic.rank_order import RankTable, rank_table
from coopt.traffic.split import Split


def megatron_script(instance: Instance, plan: Plan, *, workload: str | None = None) -> str:
    """A bash script with the arguments of pretrain_gpt.py; what it is called with comes behind them (docs/exports.md).

    Raises
    ------
    InstanceError
        When the plan is of another instance or has no design, several workloads and none named, or a mapping that
        Megatron-LM refuses.
    """
    check_same_question(instance, plan)
    _, found = splits(instance, plan, workload=workload)
    check_only_one([chosen.name for _, chosen in found], "megatron")
    split, chosen = found[0]
    refused = [f"{instance.name}: workload {chosen.name!r}: {why}" for why in refusals(split.workload, chosen.mapping)]
    if refused:
        raise InstanceError(f"{why} (Megatron-LM)" for why in refused)
    ranks = rank_table(split)
    lines = [
        "#!/usr/bin/env bash",
        *_comments(instance, split, chosen.mapping, ranks),
        "set -euo pipefail",
        *_environment(split, chosen.mapping),
        "arguments=(",
        *_lines(model_arguments(split.workload)),
        *_lines(mapping_arguments(split, chosen.mapping, pp_last=ranks.pp_last)),
        ")",
        *_launch(split, ranks),
    ]
    return "\n".join(lines) + "\n"


def _comments(instance: Instance, split: Split, one: MappingChoice, ranks: RankTable) -> Iterator[str]:
    name = " ".join(f"{instance.name}, workload {split.workload.name}".split())
    yield f"# {name}: Megatron-LM on {split.ranks} GPUs, {split.active} in each HB domain, DP {one.dp}."
    yield "# Call it in a checkout of Megatron-LM, with data, tokenizer, learning rate and iterations as arguments."
    for remark in remarks(split, one, ranks):
        yield f"# Not said by the arguments: {remark}."


def _environment(split: Split, one: MappingChoice) -> Iterator[str]:
    if sharded_fully(one):
        yield "unset CUDA_DEVICE_MAX_CONNECTIONS  # sharded parameters need several queues"
    elif one.tp > 1 or one.cp > 1:
        yield "export CUDA_DEVICE_MAX_CONNECTIONS=1  # lets collectives start before the products they run behind"
    if split.workload.options.transport != "rdma":
        yield f"export NCCL_IB_DISABLE=1  # transport {split.workload.options.transport}"


def _lines(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield f"  {shlex.join(argument)}"


def _launch(split: Split, ranks: RankTable) -> Iterator[str]:
    """By torchrun where rank i is on GPU i, else a task for each line of the rank file."""
    if ranks.in_place:
        yield f"gpus_per_host=${{GPUS_PER_HOST:-{split.active}}}  # a host is an HB domain, or a part of one"
        yield f'exec torchrun --nnodes "$(({split.ranks} / gpus_per_host))" --nproc-per-node "$gpus_per_host" \\'
        yield '  --node-rank "${NODE_RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" \\'
        yield '  --master-port "${MASTER_PORT:-29500}" pretrain_gpt.py "${arguments[@]}" "$@"'
        return
    yield "# Ranks do not follow the order of GPUs: start a task for each line of `coopt export --format ranks`."
    yield f'export RANK="${{RANK:-$SLURM_PROCID}}" WORLD_SIZE={split.ranks} LOCAL_RANK=0'
    yield 'CUDA_VISIBLE_DEVICES=$(awk -F, -v rank="$RANK" \'$1 == rank {print $8}\' "${RANKS:-ranks.csv}")'
    yield "export CUDA_VISIBLE_DEVICES"
    yield 'exec python pretrain_gpt.py "${arguments[@]}" "$@"'
