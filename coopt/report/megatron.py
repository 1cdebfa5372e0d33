"""A shell script that starts Megatron-LM with the mapping of a plan, and what Megatron-LM
refuses.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.instance.transformer import Software, Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import stage_layers
from coopt.plan.parts import MappingChoice
from coopt.plan.schema import Plan
from coopt.plan.store import check_same_question
from coopt.traffic.of_plan import require_one_workload, workload_splits
from coopt.traffic.ranks import RankGrid, RankTable, megatron_expert_groups, rank_table, same_groups

Argument = tuple[str, ...]
Value = str | int | float | bool | Sequence[str] | None
"""What stands behind an argument: True for nothing, and False, None or no modules where it is left
out.
"""

PRECISIONS: dict[str, tuple[Argument, ...]] = {
    "bf16": (("--bf16",),),
    "fp16": (("--fp16",),),
    "fp8": (("--bf16",), ("--fp8-format", "hybrid"), ("--fp8-recipe", "tensorwise")),
    "fp4": (("--bf16",), ("--fp4-format", "e2m1")),
}
SWITCHED = frozenset(
    {
        "tp",
        "pp",
        "dp",
        "cp",
        "ep",
        "micro_batch",
        "interleave",
        "recompute",
        "sequence_parallel",
        "zero",
        "outermost",
    }
    | {"offload_percent"}
)
"""What of a mapping the arguments say."""
UNSAID = (
    *("mixers", "output_gate", "shared_kv", "output_rank", "compression", "index_heads"),
    *("streams", "encoders"),
)
"""Keys of a model that no argument here says, if they are not at their default."""
KEPT_IN_MORE_BITS = (
    "wide_layers",
    "attention_bits",
    "latent_bits",
    "mamba_output_bits",
    "prediction_bits",
)
"""Keys of a software that keep more bits than the precision, if more than by default."""
SHARDING = {2: "optim_grads", 3: "optim_grads_params"}


def _given(values: Mapping[str, Value]) -> Iterator[Argument]:
    """The arguments that are given, each with what stands behind it."""
    for name, value in values.items():
        if value is True:
            yield (name,)
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield name, *value
        elif value not in (None, False, (), []):
            yield name, str(value)


def model_arguments(workload: Workload) -> Iterator[Argument]:
    """Shape of the transformer and format of its numbers."""
    model, dense = workload.model, workload.model.dense_layers
    latent, grouped = bool(model.kv_rank), model.kv_heads < model.heads
    windowed = bool(model.window) and model.window_layers == model.layers
    positions = "rope" if model.extra_predictions or latent else None
    yield from _given(
        {
            "--num-layers": model.layers,
            "--hidden-size": model.hidden,
            "--ffn-hidden-size": model.dense_ffn or model.ffn,
            "--seq-length": model.seq,
            "--max-position-embeddings": model.seq,
            "--vocab-size": model.vocab,
            "--swiglu": model.gated,
            "--untie-embeddings-and-output-weights": not model.tied_embeddings,
            "--mtp-num-layers": model.extra_predictions or None,
            "--position-embedding-type": "none" if model.mamba_layers else positions,
            "--num-attention-heads": model.heads,
            "--mamba-num-heads": model.mamba_heads or None,
            "--mamba-head-dim": model.mamba_head_dim or None,
            "--mamba-num-groups": model.mamba_groups or None,
            "--mamba-state-dim": model.mamba_state or None,
        }
    )
    multi_latent: dict[str, Value] = {
        "--multi-latent-attention": True,
        "--q-lora-rank": model.q_rank or None,
        "--kv-lora-rank": model.kv_rank,
        "--qk-head-dim": str(model.head_dim - model.rope_dim),
        "--qk-pos-emb-head-dim": str(model.rope_dim),
        "--v-head-dim": model.value_size,
    }
    own_size = model.heads * model.head_dim != model.hidden
    ordinary: dict[str, Value] = {
        "--kv-channels": model.head_dim if own_size else None,
        "--group-query-attention": grouped,
        "--num-query-groups": model.kv_heads if grouped else None,
        "--window-size": f"{model.window},0" if windowed else None,
    }
    yield from _given(multi_latent if latent else ordinary)
    # FlashAttention 2 wants queries and values of one size, which only cuDNN does without.
    fused = latent and workload.options.attention == "flash"
    yield "--attention-backend", "fused" if fused else workload.options.attention
    pattern = f"([0]*{dense}+[1]*{model.layers - dense})"
    experts: dict[str, Value] = {
        "--num-experts": model.experts,
        "--moe-router-topk": model.top_k,
        "--moe-router-pre-softmax": model.top_k == 1,
        "--moe-router-num-groups": model.expert_groups or None,
        "--moe-router-group-topk": model.top_groups or None,
        "--moe-ffn-hidden-size": model.ffn,
        "--moe-token-dispatcher-type": "alltoall",
        "--moe-shared-expert-intermediate-size": model.shared_ffn or None,
        "--moe-layer-freq": pattern if dense and not model.mamba_layers else None,
        "--moe-latent-size": model.expert_latent or None,
        "--moe-grouped-gemm": True,  # times and memory are of one activation for all experts
    }
    yield from _given(experts if model.experts else {})
    yield from PRECISIONS[workload.precision]


def mapping_arguments(
    split: RankGrid, mapping: MappingChoice, *, pp_last: bool
) -> Iterator[Argument]:
    """Degrees, batches, memory and what runs behind compute."""
    workload = split.workload
    model, software = workload.model, workload.options.software
    expert_tp = mapping.tp if workload.options.expert_tp else 1
    yield from _given(
        {
            "--tensor-model-parallel-size": mapping.tp,
            "--pipeline-model-parallel-size": mapping.pp,
            "--context-parallel-size": mapping.cp,
            "--expert-model-parallel-size": mapping.ep if model.experts else None,
            "--expert-tensor-parallel-size": expert_tp if model.experts else None,
            # Megatron-LM has biases of experts only where each is whole.
            "--disable-bias-linear": model.experts > 0 and expert_tp > 1,
            "--use-tp-pp-dp-mapping": not pp_last,
        }
    )
    yield from _stages(split, mapping)
    modules, full = _recomputed_modules(workload, mapping), mapping.recompute == "full"
    granularity = "selective" if modules else mapping.recompute
    offloads, sharded = mapping.offload_percent > 0, sharded_fully(mapping)
    overlaps = workload.options.dp_mode == "overlap" or sharded
    sends_wait = mapping.interleave > 1 and mapping.pp > 2 and not software.pp_overlap
    tp_overlap = software.tp_forward_overlap and mapping.tp > 1 and mapping.sequence_parallel
    yield from _given(
        {
            "--micro-batch-size": mapping.micro_batch,
            "--global-batch-size": workload.global_batch,
            "--sequence-parallel": mapping.sequence_parallel,
            "--recompute-granularity": granularity if granularity != "none" else None,
            "--recompute-modules": modules,
            "--recompute-method": "uniform" if full else None,
            "--recompute-num-layers": 1 if full else None,
            "--fine-grained-activation-offloading": offloads,
            "--offload-modules": _offloaded_modules(model, mapping) if offloads else None,
            "--activation-offload-fraction": mapping.offload_percent / 100 if offloads else None,
            "--use-distributed-optimizer": mapping.zero > 0,
            "--use-megatron-fsdp": sharded,
            "--data-parallel-sharding-strategy": SHARDING.get(mapping.zero),
            "--ckpt-format": "fsdp_dtensor" if sharded else None,
            "--overlap-grad-reduce": overlaps,
            "--overlap-param-gather": overlaps and mapping.zero > 0,
            "--tp-comm-overlap": tp_overlap,
            "--no-overlap-p2p-communication": sends_wait,
            "--no-gradient-accumulation-fusion": not software.fused_accumulation or sharded,
            "--accumulate-allreduce-grads-in-fp32": software.gradient_bytes == 4,
            "--grad-reduce-in-bf16": software.gradient_bytes != 4,
        }
    )


def _recomputed_modules(workload: Workload, mapping: MappingChoice) -> list[str]:
    """Megatron-LM's names of what is recomputed by module; none for other kinds of
    recomputation.
    """
    model = workload.model
    experts, dense = model.experts > 0, not model.experts or model.dense_layers > 0
    names = {
        "norm+act": {"layernorm": True, "moe_act": experts, "mla_up_proj": model.kv_rank > 0},
        "norm+ffn": {"layernorm": True, "moe": experts, "mlp": dense},
    }
    return [name for name, is_there in names.get(mapping.recompute, {}).items() if is_there]


def _offloaded_modules(model: Transformer, mapping: MappingChoice) -> list[str]:
    """Megatron-LM's names of modules whose inputs go to the host's memory: all that keep theirs."""
    if mapping.recompute == "full":
        return ["attn_norm"]
    norms = [] if mapping.recompute.startswith("norm") else ["attn_norm", "mlp_norm"]
    experts = ["expert_fc1"] if model.experts and mapping.recompute != "norm+ffn" else []
    activations = ["moe_act"] if experts and mapping.recompute != "norm+act" else []
    return [*norms, "qkv_linear", "core_attn", "attn_proj", *experts, *activations]


def sharded_fully(mapping: MappingChoice) -> bool:
    """Whether gradients are sharded as well."""
    return mapping.zero >= 2


def _stages(split: RankGrid, mapping: MappingChoice) -> Iterator[Argument]:
    """Chunks of a stage, and how many layers each has where some are missing."""
    layers, chunks = split.workload.model.layers, mapping.pp * mapping.interleave
    fullest, fewer = (int(n[0]) for n in stage_layers(split.workload.model, split.mapping))
    layers_missing = mapping.pp * fullest - layers
    sizes = _chunk_sizes(fullest // mapping.interleave, mapping, layers_missing - fewer, fewer)
    if split.workload.model.mamba_layers:
        # A pattern that begins with - would be taken for an argument of its own.
        yield (f"--hybrid-layer-pattern={_pattern(split.workload.model, sizes)}",)
        return
    # A shorter first or last stage has arguments of its own, but not with chunks, nor if the last
    # has no layer.
    if layers_missing and (mapping.interleave > 1 or fewer == fullest):
        yield (
            "--pipeline-model-parallel-layout",
            _layout(sizes, split.workload.model.extra_predictions),
        )
        return
    if mapping.interleave > 1:
        yield "--num-layers-per-virtual-pipeline-stage", str(layers // chunks)
    if layers_missing - fewer:
        yield "--decoder-first-pipeline-num-layers", str(fullest - (layers_missing - fewer))
    if fewer:
        yield "--decoder-last-pipeline-num-layers", str(fullest - fewer)


def _chunk_sizes(
    layers_per_chunk: int, mapping: MappingChoice, first_less: int, last_less: int
) -> list[int]:
    """Layers of every chunk, in the order of the model, less those that the first and the last
    stage go without.
    """
    sizes = [layers_per_chunk] * (mapping.pp * mapping.interleave)
    # The first stage has every pp-th chunk from the first on, and goes without layers in the
    # earliest of them.
    for chunk in range(0, len(sizes), mapping.pp):
        layers = min(first_less, layers_per_chunk)
        sizes[chunk], first_less = layers_per_chunk - layers, first_less - layers
    for chunk in range(len(sizes) - 1, -1, -mapping.pp):
        layers = min(last_less, layers_per_chunk)
        sizes[chunk], last_less = sizes[chunk] - layers, last_less - layers
    return sizes


def _layout(sizes: list[int], predictions: int) -> str:
    """The chunks in Megatron-LM's notation: embedding E, layers t, predictions m, loss L, chunks
    apart by |.
    """
    *earlier, last_size = sizes
    text = "E"
    for size, repeats in groupby(earlier):
        count = len(list(repeats))
        text += f"({'t' * size}|)*{count}" if count > 1 else f"{'t' * size}|"
    return text + "t" * last_size + "m" * predictions + "L"


def _pattern(model: Transformer, sizes: Sequence[int]) -> str:
    """The layers of a hybrid in Megatron-LM's letters, each kind spread evenly, chunks apart by |,
    and behind / each layer that predicts a further token.
    """
    feed_forward = "E" if model.experts else "-"
    counts = Counter({"M": model.mamba_layers, "*": model.with_attention, "-": model.dense_layers})
    counts[feed_forward] += model.with_ffn - model.dense_layers
    places = [((i + 0.5) / n, letter) for letter, n in counts.items() for i in range(n)]
    letters = [letter for _, letter in sorted(places)]
    ends = accumulate(sizes)
    chunks = ["".join(letters[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return "/".join(["|".join(chunks), *[f"*{feed_forward}"] * model.extra_predictions])


def refusals(workload: Workload, mapping: MappingChoice) -> Iterator[str]:
    """What Megatron-LM stops at or has no switch for, each with what it needs."""
    model = workload.model
    # Whatever a mapping may hold that no argument says has to be at its default, also fields that
    # come later.
    unswitched = {
        f"{name} = {value} has no switch, needs a plan with {name} = {field.default}": True
        for name, field in type(mapping).model_fields.items()
        if name not in SWITCHED and (value := getattr(mapping, name)) != field.default
    }
    parts = model.mamba_layers + model.with_attention + model.with_ffn
    kinds = [
        name for name in UNSAID if getattr(model, name) != type(model).model_fields[name].default
    ]
    kinds += ["q_rank without kv_rank"] if model.q_rank and not model.kv_rank else []
    reasons = {
        f"{', '.join(kinds)} of {model.name}: no argument says it, needs ordinary or latent"
        " attention or Mamba-2 in all layers": bool(kinds),
        f"layers = {model.layers} have {parts} mixers and feed-forward parts, needs one for each in"
        " a hybrid": model.mamba_layers > 0 and parts != model.layers,
        **unswitched,
        f"cp = {mapping.cp} leaves no even share of seq = {model.seq}, needs a multiple of"
        f" {2 * mapping.cp}": mapping.cp > 1 and model.seq % (2 * mapping.cp) > 0,
    }
    yield from (reason for reason, holds in reasons.items() if holds)


def remarks(split: RankGrid, mapping: MappingChoice, table: RankTable) -> Iterator[str]:
    """What the plan counts on and the arguments do not say."""
    options, model = split.workload.options, split.workload.model
    software = options.software
    in_more_bits = _kept_in_more_bits(split.workload)
    splits_experts = model.experts > 0 and mapping.ep > 1
    interleaved, sharded = mapping.interleave > 1, sharded_fully(mapping)
    dense_activations = not model.experts or bool(model.dense_layers or model.shared_ffn)
    said = {
        "dp_mode = stale-1: Megatron-LM has no argument for gradients that are one step late": (
            options.dp_mode == "stale-1"
        ),
        f"tp_sync_fraction = {options.tp_sync_fraction:g}: Megatron-LM keeps all activations equal"
        " on TP ranks": options.tp_sync_fraction < 1.0,
        f"schedule = {options.schedule}: Megatron-LM runs 1F1B, which waits longer than the plan"
        " says": options.schedule != "1f1b",
        "ep_overlap: the plan counts on all-to-alls behind the compute of another micro-batch": (
            options.ep_overlap
        ),
        "dispatch_bytes = 1: the plan counts on numbers of 8 bits on their way to experts": (
            options.dispatch_bytes == 1
        ),
        f"{in_more_bits}: the plan counts on layers and products in more bits than others, as a"
        " quantization recipe says": bool(in_more_bits),
        f"slowdown = {options.slowdown:g}: the plan counts on stragglers": options.slowdown > 1.0,
        f"{model.window_layers} of {model.layers} layers look back {model.window} tokens: say which"
        " with --window-size and --window-attn-skip-freq": 0 < model.window_layers < model.layers,
        "the plan counts full attention, where pretrain_gpt.py leaves out what comes later": (
            not model.causal
        ),
        f"layers of each kind are spread evenly: {model.name} has an order of its own for"
        " --hybrid-layer-pattern": bool(model.mamba_layers),
        f"experts work on {model.capacity:g} times their even share: --moe-expert-capacity-factor"
        " caps it": model.capacity != 1.0,
        "sends of two interleaved stages run behind compute in Megatron-LM, in the plan they do"
        " not": interleaved and mapping.pp == 2 and not software.pp_overlap,
        f"offload_percent = {mapping.offload_percent}: the plan counts all activations of a layer,"
        " and Megatron-LM has no switch for those of dense feed-forward layers and of shared"
        " experts": (mapping.offload_percent > 0 and dense_activations),
        "shards_in_rounds: Megatron-FSDP reduces and gathers shards for every micro-batch": (
            interleaved and sharded and software.shards_in_rounds
        ),
        f"times of the plan are for {software.name}": not software.name.startswith("megatron"),
        "expert groups are of other GPUs than in the plan: Megatron-LM takes consecutive ranks of a"
        " stage": splits_experts
        and not same_groups(table.expert_group, megatron_expert_groups(split, table)),
        "Megatron-LM advises --sequence-parallel where TP and experts meet, which the plan does"
        " without": splits_experts and mapping.tp > 1 and not mapping.sequence_parallel,
    }
    yield from (remark for remark, holds in said.items() if holds)


def _kept_in_more_bits(workload: Workload) -> str:
    """Keys of the software that keep more bits than the precision, with their values; empty where
    none does.
    """
    software = workload.options.software
    settings = {name: getattr(software, name) for name in KEPT_IN_MORE_BITS}
    return ", ".join(
        f"{name} = {value}"
        for name, value in settings.items()
        if workload.precision in ("fp8", "fp4") and value > Software.model_fields[name].default
    )


def megatron_script(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """A bash script with the arguments of Megatron-LM; what it is called with comes behind them
    (docs/exports.md).

    Raises
    ------
    InstanceError
        When the plan is of another instance or has no design, several workloads and none named, or
        a mapping that Megatron-LM refuses.
    """
    check_same_question(instance, plan)
    _, splits = workload_splits(instance, plan, workload=workload, part=part)
    if not splits:
        raise InstanceError(
            f"{instance.name}: nothing trains on part {part}, needs one that trains a workload"
        )
    require_one_workload([run.name for _, run in splits], "megatron")
    split, run = splits[0]
    complaints = [
        f"{instance.name}: workload {run.name!r}: {reason}"
        for reason in refusals(split.workload, run.mapping)
    ]
    if complaints:
        raise InstanceError(f"{reason} (Megatron-LM)" for reason in complaints)
    return launch_script(instance.name, split, run.mapping)


def launch_script(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The script of a workload with a mapping that Megatron-LM does not refuse."""
    ranks, hybrid = rank_table(split), bool(split.workload.model.mamba_layers)
    lines = [
        "#!/usr/bin/env bash",
        *_comments(name, split, mapping, ranks),
        "set -euo pipefail",
        *_environment(split, mapping),
        "arguments=(",
        *_lines(model_arguments(split.workload)),
        *_lines(mapping_arguments(split, mapping, pp_last=ranks.pp_last)),
        ")",
        *_launch(split, ranks, "pretrain_hybrid.py" if hybrid else "pretrain_gpt.py"),
    ]
    return "\n".join(lines) + "\n"


def _comments(
    name: str, split: RankGrid, mapping: MappingChoice, ranks: RankTable
) -> Iterator[str]:
    title = " ".join(f"{name}, workload {split.workload.name}".split())
    yield f"# {title}: Megatron-LM on {split.ranks} GPUs, {_in_domains(split)}, DP {mapping.dp}."
    yield (
        "# Call it in a checkout of Megatron-LM, with data, tokenizer, learning rate and iterations"
        " as arguments."
    )
    for remark in remarks(split, mapping, ranks):
        yield f"# Not said by the arguments: {remark}."


def _in_domains(split: RankGrid) -> str:
    """How many GPUs of an HB domain train."""
    return f"{'' if split.ranks == split.places else 'at most '}{split.active} in each HB domain"


def _environment(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    if sharded_fully(mapping):
        yield "unset CUDA_DEVICE_MAX_CONNECTIONS  # sharded parameters need several queues"
    elif mapping.tp > 1 or mapping.cp > 1:
        yield (
            "export CUDA_DEVICE_MAX_CONNECTIONS=1  # lets collectives start before the products"
            " they run behind"
        )
    if mapping.offload_percent:
        yield "export NVTE_CPU_OFFLOAD_V1=1  # activations are offloaded, and no weights"
    if split.workload.options.transport != "rdma":
        yield f"export NCCL_IB_DISABLE=1  # transport {split.workload.options.transport}"
    if split.workload.options.collectives == "in-network":
        yield "export NCCL_COLLNET_ENABLE=1  # the network's switches add up gradients"


def _lines(arguments: Iterable[Argument]) -> Iterator[str]:
    for argument in arguments:
        yield f"  {shlex.join(argument)}"


def _launch(split: RankGrid, ranks: RankTable, program: str) -> Iterator[str]:
    """By torchrun where rank i is on GPU i, else a task for each line of the rank file."""
    if ranks.in_place:
        yield (
            f"gpus_per_host=${{GPUS_PER_HOST:-{split.active}}}  # a host is an HB domain, or a part"
            " of one"
        )
        yield (
            f'exec torchrun --nnodes "$(({split.ranks} / gpus_per_host))" --nproc-per-node'
            ' "$gpus_per_host" \\'
        )
        yield '  --node-rank "${NODE_RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" \\'
        yield f'  --master-port "${{MASTER_PORT:-29500}}" {program} "${{arguments[@]}}" "$@"'
        return
    yield (
        "# Ranks do not follow the order of GPUs: start a task for each line of `coopt export"
        " --format ranks`."
    )
    yield f'export RANK="${{RANK:-$SLURM_PROCID}}" WORLD_SIZE={split.ranks} LOCAL_RANK=0'
    yield (
        "CUDA_VISIBLE_DEVICES=$(awk -F, -v rank=\"$RANK\" '$1 == rank {print $8}'"
        ' "${RANKS:-ranks.csv}")'
    )
    yield "export CUDA_VISIBLE_DEVICES"
    yield f'exec python {program} "${{arguments[@]}}" "$@"'
