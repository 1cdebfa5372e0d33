"""A configuration of TorchTitan, a Python module: facts of a plan, and what builds them."""

from __future__ import annotations

import math
import pprint
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from coopt.instance.layouts import Chunk
from coopt.instance.texts import alternatives, that_hold
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import tp_of_experts
from coopt.plan.parts import MappingChoice
from coopt.report.megatron import WIDE_STATES, chunk_layers, unswitched
from coopt.traffic.ranks import RankGrid, rank_table

QUANTIZED = {
    "bf16": (),
    "fp8": ("Float8LinearConverter", "Float8GroupedExpertsConverter"),
    "fp4": ("NVFP4LinearConverter",),
}
"""What replaces products in fewer bits, of layers and of experts; no other precision is there."""
SWITCHED = frozenset(
    {"tp", "pp", "dp", "cp", "ep", "micro_batch", "interleave", "recompute", "sequence_parallel"}
    | {"zero", "outermost", "pipeline_layout"}
)
"""What of a mapping the module says."""
UNSAID = (
    *("mixers", "output_gate", "shared_kv", "output_rank", "compression", "index_heads", "streams"),
    *("encoders", "mamba_layers", "window", "expert_latent"),
)
"""Keys of a model that no builder of TorchTitan's takes, if they are not at their default."""


def torchtitan_text(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The module of a workload with a mapping that TorchTitan does not refuse; its function `plan`
    is for `--module` and `--config`.
    """
    comments = comments_of_fsdp("TorchTitan", name, split, mapping)
    facts = [
        f"{key} = {pprint.pformat(value, width=96, sort_dicts=False)}"
        for key, value in _facts(split, mapping).items()
    ]
    facts.append(f"CONVERTERS = [{', '.join(_converters(split.workload))}]")
    builders = files("coopt.report").joinpath("torchtitan.txt").read_text("utf-8")
    return "\n".join(comments) + "\n\n" + builders.replace("# facts", "\n".join(facts))


def _converters(workload: Workload) -> list[str]:
    """What replaces products in fewer bits, as the module builds it."""
    names = QUANTIZED[workload.precision]
    within = 'fqns=["layers"], ' if workload.precision == "fp4" else ""
    return [
        f"{name}.Config({within}model_compile_enabled=COMPILED)"
        for name in (names if workload.model.experts else names[:1])
    ]


def _facts(split: RankGrid, mapping: MappingChoice) -> dict[str, Any]:
    """What the builders take, by the names of their arguments."""
    workload, model = split.workload, split.workload.model
    copies, pipelined = copies_of(workload, mapping), mapping.pp > 1
    return {
        "NAME": workload.name,
        "MODEL": {
            "layers": model.layers,
            "hidden": model.hidden,
            "heads": model.heads,
            "kv_heads": model.kv_heads,
            "head_dim": model.head_dim,
            "rope_dim": model.rope_dim or model.head_dim,
            "ffn": model.dense_ffn or model.ffn,
            "dense_layers": model.dense_layers,
            "vocab": model.vocab,
            "seq": model.seq,
            "tied": model.tied_embeddings,
            "predictions": model.extra_predictions,
        },
        "LATENT": _latent(model),
        "EXPERT": _experts(workload, mapping),
        "TRAINING": {
            "local_batch_size": local_batch(workload, mapping),
            "global_batch_size": workload.global_batch,
            "seq_len": model.seq,
            "steps": 20,
            "dtype": "float32",
            "mixed_precision_param": "bfloat16",
            "mixed_precision_reduce": "float32",
            "disable_cuda_graphs": workload.options.software.graphs != "full",
        },
        "PARALLELISM": {
            "data_parallel_replicate_degree": copies,
            "data_parallel_shard_degree": mapping.dp // copies,
            "fsdp_reshard_after_forward": "always" if mapping.zero == 3 else "never",
            "tensor_parallel_degree": mapping.tp,
            "enable_sequence_parallel": mapping.sequence_parallel,
            "context_parallel_degree": mapping.cp,
            "expert_parallel_degree": mapping.ep if model.experts else 1,
            "pipeline_parallel_degree": mapping.pp,
            "pipeline_parallel_schedule": "Interleaved1F1B" if mapping.interleave > 1 else "1F1B",
            "pipeline_parallel_microbatch_size": mapping.micro_batch if pipelined else 1,
            "module_fqns_per_model_part": chunk_modules(
                split, mapping, ("tok_embeddings", "layers", "norm", "lm_head")
            )
            if pipelined
            else None,
        },
        "FULL_RECOMPUTATION": mapping.recompute == "full",
        "COMPILED": workload.options.software.name != "fsdp-eager",
        "FORCED_BALANCE": model.experts > 0 and workload.balance == "forced",
    }


def _latent(model: Transformer) -> dict[str, Any] | None:
    """Ranks and sizes of latent attention; None for ordinary attention."""
    return (
        {
            "q_lora_rank": model.q_rank,
            "kv_lora_rank": model.kv_rank,
            "qk_nope_head_dim": model.head_dim - model.rope_dim,
            "qk_rope_head_dim": model.rope_dim,
            "v_head_dim": model.value_size,
        }
        if model.kv_rank
        else None
    )


def _experts(workload: Workload, mapping: MappingChoice) -> dict[str, Any] | None:
    """Shape of experts and what sends tokens to them; None for a dense model."""
    model = workload.model
    once = mapping.ep > 1 and workload.options.dispatch == "once"
    return (
        {
            "count": model.experts,
            "top_k": model.top_k,
            "width": model.ffn,
            "shared_width": model.shared_ffn,
            "groups": model.expert_groups or None,
            "top_groups": model.top_groups or None,
            "dispatcher": "hybridep" if once else "standard",
        }
        if model.experts
        else None
    )


def chunk_modules(
    split: RankGrid, mapping: MappingChoice, names: tuple[str, str, str, str]
) -> list[list[str]]:
    """Modules of every chunk of the pipeline, in the order of the model.

    Parameters
    ----------
    names
        What the table of tokens, a list of layers, the last norm and the output are called.
    """
    embedding, block, *output = names
    layers = iter(range(split.workload.model.layers))
    chunks = [[f"{block}.{next(layers)}" for _ in range(n)] for n in chunk_layers(split, mapping)]
    chunks[0].insert(0, embedding)
    chunks[-1] += output
    return chunks


def refusals(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    """What TorchTitan stops at or has no key for, each with what it needs."""
    workload = split.workload
    model, options, software = workload.model, workload.options, workload.options.software
    splits_experts = mapping.tp > 1 and model.experts > 0
    shards = mapping.dp // copies_of(workload, mapping) * mapping.cp * mapping.tp
    expert_split = (
        "splits no expert over TP ranks where ep > 1, needs expert_tp = false"
        if mapping.ep > 1
        else "splits every expert over all TP ranks where ep = 1, needs expert_tp = true"
    )
    reasons = {
        (
            f"extra_predictions = {model.extra_predictions}: TorchTitan has further predictions"
            " only with latent attention and pp = cp = 1, needs both of these, or 0"
        ): (
            model.extra_predictions > 0 and (not model.kv_rank or mapping.pp > 1 or mapping.cp > 1)
        ),
        f"precision = {workload.precision}: TorchTitan trains in other formats, needs"
        f" {alternatives(QUANTIZED)}": (workload.precision not in QUANTIZED),
        (
            "precision = fp4 with experts: TorchTitan has no fp4 converter for experts, needs"
            " bf16 or fp8"
        ): (workload.precision == "fp4" and model.experts > 0),
        (
            f"zero = 0 with cp = {mapping.cp}: TorchTitan shards states over CP ranks, needs zero"
            " = 2 or 3"
        ): (mapping.zero == 0 and mapping.cp > 1),
        (
            f"graphs = {software.graphs}: TorchTitan has no such CUDA graphs, needs none, or full"
            " with pp = 1 and ep = 1"
        ): (
            software.graphs == "scoped"
            or (software.graphs == "full" and (mapping.pp > 1 or mapping.ep > 1))
        ),
        f"tp = {mapping.tp} and ep = {mapping.ep}: TorchTitan {expert_split}": (
            splits_experts
            and tp_of_experts(mapping.tp, options.expert_tp)
            != (1 if mapping.ep > 1 else mapping.tp)
        ),
        f"ep = {mapping.ep}: needs a divisor of {shards} (sharded DP ranks x CP x TP)": (
            model.experts > 0 and shards % mapping.ep > 0
        ),
    }
    yield from refusals_of_fsdp(split, mapping)
    yield from that_hold(reasons)


def refusals_of_fsdp(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    """What models built of PyTorch's own parts with FSDP2 have no key for, each with what it
    needs.
    """
    workload = split.workload
    model, options, software = workload.model, workload.options, workload.options.software
    kinds = [key for key in UNSAID if getattr(model, key) != type(model).model_fields[key].default]
    moves = mapping.ep > 1 and options.dispatch == "once"
    tokens = math.lcm(
        mapping.tp if mapping.sequence_parallel else 1,
        2 * mapping.cp if mapping.cp > 1 else 1,
        mapping.tp * mapping.cp if moves else 1,
    )
    yield from that_hold(
        {
            f"{', '.join(kinds)} of {model.name}: this format has no such keys, needs a model with"
            " ordinary or latent attention and with dense layers or experts": bool(kinds),
            "gated = false: the framework has only gated feed-forward layers, needs gated = true": (
                not model.gated
            ),
            "causal = false: the framework has only causal attention, needs causal = true": (
                not model.causal
            ),
            (
                "q_rank without kv_rank: the framework has low-rank queries only in latent"
                " attention, needs kv_rank"
            ): (model.q_rank > 0 and not model.kv_rank),
            (
                f"tied_embeddings with pp = {mapping.pp}: the framework cannot tie embeddings of"
                " different pipeline stages, needs pp = 1"
            ): (model.tied_embeddings and mapping.pp > 1),
            (
                f"gradient_bytes = {software.gradient_bytes}: FSDP2 reduces gradients in fp32,"
                " needs 4"
            ): (software.gradient_bytes != 4),
            f"state_bytes = {software.state_bytes}: FSDP2 keeps parameters and moments in fp32,"
            f" needs {WIDE_STATES}": software.state_bytes != WIDE_STATES,
            (
                f"parameter_bytes = {software.parameter_bytes}: FSDP2 gathers parameters in 16"
                " bits, needs 2"
            ): (software.parameter_bytes != 2),
            "zero = 1: FSDP2 shards gradients with optimizer states, needs zero = 0, 2 or 3": (
                mapping.zero == 1
            ),
            (
                f"recompute = {mapping.recompute}: the framework has no such recomputation, needs"
                " none, full, or selective with flash attention"
            ): (
                mapping.recompute not in ("none", "full")
                and not (mapping.recompute == "selective" and options.attention == "flash")
            ),
            (
                f"attention = {options.attention}: the framework has only fused attention"
                " kernels, needs flash"
            ): (options.attention != "flash"),
            f"schedule = {options.schedule}: this format has only 1F1B, needs 1f1b": (
                options.schedule != "1f1b" and mapping.pp > 1
            ),
            (
                f"dp_mode = {options.dp_mode}: FSDP2 applies gradients in the same step, needs sync"
                " or overlap"
            ): (options.dp_mode == "stale-1"),
            (
                f"tp_sync_fraction = {options.tp_sync_fraction:g}: the framework synchronises all"
                " activations of TP ranks, needs 1"
            ): (options.tp_sync_fraction < 1.0),
            "ep_overlap: the framework runs one micro-batch at a time, needs ep_overlap = false": (
                options.ep_overlap and mapping.ep > 1
            ),
            "dispatch_bytes = 1: the framework sends tokens to experts in 16 bits, needs 2": (
                options.dispatch_bytes == 1 and mapping.ep > 1
            ),
            f"tp = {mapping.tp}: needs a divisor of kv_heads = {model.kv_heads}": (
                not model.kv_rank and model.kv_heads % mapping.tp > 0
            ),
            f"seq = {model.seq}: needs a multiple of {tokens} for its TP and CP ranks": (
                model.seq % tokens > 0
            ),
            f"pipeline_layout = {mapping.pipeline_layout}: a chunk is empty, needs a layer in every"
            " chunk": (Chunk(0, 0, embeds=False, loss=False) in workload.layout),
            **dict.fromkeys(unswitched(mapping, SWITCHED), True),
        }
    )


def comments_of_fsdp(tool: str, name: str, split: RankGrid, mapping: MappingChoice) -> list[str]:
    """The first lines of a configuration of a tool that trains by FSDP2."""
    title = " ".join(f"{name}, workload {split.workload.name}".split())
    return [
        f"# {title}: {tool} on {split.ranks} GPUs, DP {mapping.dp}.",
        "# Data, tokenizer, learning rate and steps are placeholders: replace them with your own.",
        *(f"# Note: {remark}." for remark in _remarks(split, mapping)),
    ]


def copies_of(workload: Workload, mapping: MappingChoice) -> int:
    """Copies of the states that DP ranks hold: one of each where nothing is sharded."""
    return mapping.dp if mapping.zero == 0 else workload.options.dp_replicate


def local_batch(workload: Workload, mapping: MappingChoice) -> int:
    """The sequences of a DP rank that FSDP2 takes at once: all where a pipeline divides them."""
    return workload.global_batch // mapping.dp if mapping.pp > 1 else mapping.micro_batch


def _remarks(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    """What the plan counts on and a configuration does not say."""
    options, table = split.workload.options, rank_table(split)
    yield from that_hold(
        {
            f"the times of the plan are for software {options.software.name}, not for FSDP2": (
                not options.software.name.startswith("fsdp")
            ),
            (
                f"slowdown = {options.slowdown:g}: the times of the plan include this factor for"
                " stragglers"
            ): options.slowdown > 1.0,
            f"transport = {options.transport}: set NCCL_IB_DISABLE=1 in the environment": (
                options.transport != "rdma"
            ),
            "collectives = in-network: set NCCL_COLLNET_ENABLE=1 in the environment": (
                options.collectives == "in-network"
            ),
            "dp_mode = sync: FSDP2 hides the reduction of gradients behind the backward pass": (
                options.dp_mode == "sync" and mapping.dp > 1
            ),
            (
                "ranks are numbered differently from the plan: here TP varies fastest, then CP, DP"
                " and PP"
            ): (not (table.pp_last and table.in_place)),
        }
    )
