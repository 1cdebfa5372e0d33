"""A shell script that starts Megatron-LM with the mapping of a plan, and what Megatron-LM
refuses.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, groupby

from coopt.instance.layouts import layout_text
from coopt.instance.mixers import ScanLayers
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both, that_hold
from coopt.instance.transformer import Software, Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import stage_layers, tp_of_experts
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
Values = dict[str, Value]

PRECISIONS: dict[str, Values] = {
    "bf16": {"--bf16": True},
    "fp16": {"--fp16": True},
    "fp8": {"--bf16": True, "--fp8-format": "hybrid", "--fp8-recipe": "tensorwise"},
    "fp4": {"--bf16": True, "--fp4-format": "e2m1"},
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
    | {"offload_percent", "pipeline_layout"}
)
"""What of a mapping the arguments say."""
UNSAID = ("shared_kv", "output_rank", "compression", "streams", "encoders")
"""Keys of a model that no argument here says, if they are not at their default."""
KEPT_IN_MORE_BITS = (
    "wide_layers",
    "attention_bits",
    "latent_bits",
    "mamba_output_bits",
    "prediction_bits",
)
"""Keys of a software that keep more bits than the precision, if more than by default."""
WIDE_STATES, NARROW_STATES = 12, 8
"""Bytes of a parameter's master copy and two moments, in fp32 and with moments in 16 bits."""
SHARDING = {2: "optim_grads", 3: "optim_grads_params"}


def given(values: Mapping[str, Value]) -> Iterator[Argument]:
    """The arguments that are given, each with what stands behind it."""
    for name, value in values.items():
        if value is True:
            yield (name,)
        elif isinstance(value, str) and value.startswith("-"):
            yield (f"{name}={value}",)  # it would be taken for an argument of its own
        elif isinstance(value, Sequence) and not isinstance(value, str) and value:
            yield name, *value
        elif value not in (None, False, (), []):
            yield name, str(value)


def model_arguments(workload: Workload) -> Values:
    """Shape of the transformer and format of its numbers, as Megatron-LM calls them."""
    model, dense = workload.model, workload.model.dense_layers
    latent, grouped = bool(model.kv_rank), model.kv_heads < model.heads
    look_back = model.window_layers if model.window else 0
    windows = spread({"W": look_back, "*": model.layers - look_back})
    positions = "rope" if model.extra_predictions or latent else None
    shape: Values = {
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
    multi_latent: Values = {
        "--multi-latent-attention": True,
        "--q-lora-rank": model.q_rank or None,
        "--kv-lora-rank": model.kv_rank,
        "--qk-head-dim": str(model.head_dim - model.rope_dim),
        "--qk-pos-emb-head-dim": str(model.rope_dim),
        "--v-head-dim": model.value_size,
        # Unused, but without it heads would have to divide the width.
        "--kv-channels": model.head_dim if model.hidden % model.heads else None,
    }
    own_size = model.heads * model.head_dim != model.hidden
    ordinary: Values = {
        "--kv-channels": model.head_dim if own_size else None,
        "--group-query-attention": grouped,
        "--num-query-groups": model.kv_heads if grouped else None,
        "--window-size": f"{model.window},0" if look_back else None,
        "--window-attn-skip-freq": _frequency(windows, "W")
        if 0 < look_back < model.layers
        else None,
    }
    # FlashAttention 2 wants queries and values of one size, which only cuDNN does without.
    fused = latent and workload.options.attention == "flash"
    attention: Values = {"--attention-backend": "fused" if fused else workload.options.attention}
    pattern = f"([0]*{dense}+[1]*{model.layers - dense})"
    experts: Values = {
        "--num-experts": model.experts,
        "--moe-router-topk": model.top_k,
        "--moe-router-pre-softmax": model.top_k == 1,
        "--moe-router-num-groups": model.expert_groups or None,
        "--moe-router-group-topk": model.top_groups or None,
        "--moe-ffn-hidden-size": model.ffn,
        "--moe-shared-expert-intermediate-size": model.shared_ffn or None,
        "--moe-layer-freq": pattern if dense and not model.mamba_layers else None,
        "--moe-latent-size": model.expert_latent or None,
        "--moe-grouped-gemm": True,  # times and memory are of one activation for all experts
    }
    return {
        **shape,
        **(multi_latent if latent else ordinary),
        **attention,
        **_variant(model),
        **(experts if model.experts else {}),
        **PRECISIONS[workload.precision],
    }


def _delta_net(model: Transformer) -> ScanLayers | None:
    """The gated DeltaNet of a model, whose other layers have ordinary attention."""
    match model.mixers:
        case (ScanLayers(kind="gated-deltanet", gate_rank=0) as layers,) if not model.kv_rank:
            return layers
    return None


def _is_sparse(model: Transformer) -> bool:
    """Whether an indexer chooses the keys of latent attention (DSA)."""
    return bool(model.index_heads and model.kv_rank and not model.mixers)


def _variant(model: Transformer) -> Values:
    """Attention that Megatron-LM calls experimental."""
    if layers := _delta_net(model):
        kinds = spread({"M": layers.layers, "*": model.with_attention})
        return {
            "--experimental-attention-variant": "gated_delta_net",
            "--linear-attention-freq": _frequency(kinds, "M"),
            "--linear-num-key-heads": layers.groups,
            "--linear-key-head-dim": layers.state,
            "--linear-num-value-heads": layers.heads,
            "--linear-value-head-dim": layers.head_dim,
            "--attention-output-gate": model.output_gate,
        }
    if _is_sparse(model):
        return {
            "--experimental-attention-variant": "dsa",
            "--dsa-indexer-n-heads": model.index_heads,
            "--dsa-indexer-head-dim": model.index_dim,
            "--dsa-indexer-topk": model.index_tokens,
            "--no-rope-fusion": True,
        }
    return {"--attention-output-gate": model.output_gate}


def mapping_arguments(split: RankGrid, mapping: MappingChoice, *, pp_last: bool) -> Values:
    """Degrees, batches, memory and what runs behind compute, as Megatron-LM calls them."""
    workload = split.workload
    model, software = workload.model, workload.options.software
    expert_tp = int(tp_of_experts(mapping.tp, workload.options.expert_tp))
    degrees: Values = {
        "--tensor-model-parallel-size": mapping.tp,
        "--pipeline-model-parallel-size": mapping.pp,
        "--context-parallel-size": mapping.cp,
        "--expert-model-parallel-size": mapping.ep if model.experts else None,
        "--expert-tensor-parallel-size": expert_tp if model.experts else None,
        # Megatron-LM has biases of experts only where each is whole.
        "--disable-bias-linear": (model.experts > 0 and expert_tp > 1) or _is_sparse(model),
        "--cp-comm-type": "allgather" if mapping.cp > 1 and _is_sparse(model) else None,
        "--use-tp-pp-dp-mapping": not pp_last,
    }
    modules, full = _recomputed_modules(workload, mapping), mapping.recompute == "full"
    granularity = "selective" if modules else mapping.recompute
    offloads, sharded = mapping.offload_percent > 0, sharded_fully(mapping)
    copies = workload.options.dp_replicate
    narrow_moments = software.state_bytes == NARROW_STATES
    overlaps = workload.options.dp_mode == "overlap" or sharded
    sends_wait = mapping.interleave > 1 and mapping.pp > 2 and not software.pp_overlap
    tp_overlap = software.tp_forward_overlap and mapping.tp > 1 and mapping.sequence_parallel
    rest: Values = {
        "--micro-batch-size": mapping.micro_batch,
        "--global-batch-size": workload.global_batch,
        "--sequence-parallel": mapping.sequence_parallel,
        "--recompute-granularity": granularity if granularity not in ("none", "act") else None,
        "--recompute-modules": modules,
        "--recompute-method": "uniform" if full else None,
        "--recompute-num-layers": 1 if full else None,
        "--fine-grained-activation-offloading": offloads,
        "--offload-modules": _offloaded_modules(model, mapping) if offloads else None,
        "--activation-offload-fraction": mapping.offload_percent / 100 if offloads else None,
        "--use-distributed-optimizer": mapping.zero > 0,
        "--num-distributed-optimizer-instances": copies if copies > 1 else None,
        "--use-precision-aware-optimizer": narrow_moments,
        "--exp-avg-dtype": "bf16" if narrow_moments else None,
        "--exp-avg-sq-dtype": "bf16" if narrow_moments else None,
        "--fp8-param-gather": software.parameter_bytes == 1 and workload.precision == "fp8",
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
    return degrees | _dispatcher(workload, mapping) | _stages(split, mapping) | rest


def _dispatcher(workload: Workload, mapping: MappingChoice) -> Values:
    """What sends tokens to experts, and whether that runs behind another micro-batch."""
    if not workload.model.experts:
        return {}
    once = mapping.ep > 1 and workload.options.dispatch == "once"
    return {
        "--moe-token-dispatcher-type": "flex" if once else "alltoall",
        "--moe-flex-dispatcher-backend": "hybridep" if once else None,
        "--moe-router-dtype": "fp32" if once else None,  # what it sends weights of experts in
        "--overlap-moe-expert-parallel-comm": _overlaps_experts(workload, mapping),
    }


def _overlaps_experts(workload: Workload, mapping: MappingChoice) -> bool:
    """Whether all-to-alls of experts run behind another micro-batch, where Megatron-LM can."""
    return (
        workload.options.ep_overlap
        and mapping.ep > 1
        and mapping.recompute not in ("full", "norm+ffn")
        and (mapping.pp == 1 or mapping.interleave > 1)
        and workload.model.extra_predictions <= 1
    )


def _recomputed_modules(workload: Workload, mapping: MappingChoice) -> list[str]:
    """Megatron-LM's names of what is recomputed by module; none for other kinds of
    recomputation.
    """
    model = workload.model
    experts, dense = model.experts > 0, not model.experts or model.dense_layers > 0
    activations = {"moe_act": experts, "mla_up_proj": model.kv_rank > 0}
    names = {
        "act": activations,
        "norm+act": {"layernorm": True, **activations},
        "norm+ffn": {"layernorm": True, "moe": experts, "mlp": dense},
    }
    return that_hold(names.get(mapping.recompute, {}))


def _offloaded_modules(model: Transformer, mapping: MappingChoice) -> list[str]:
    """Megatron-LM's names of modules whose inputs go to the host's memory: all that keep theirs."""
    if mapping.recompute == "full":
        return ["attn_norm"]
    norms = [] if mapping.recompute.startswith("norm") else ["attn_norm", "mlp_norm"]
    experts = ["expert_fc1"] if model.experts and mapping.recompute != "norm+ffn" else []
    activations = ["moe_act"] if experts and "act" not in mapping.recompute else []
    return [*norms, "qkv_linear", "core_attn", "attn_proj", *experts, *activations]


def sharded_fully(mapping: MappingChoice) -> bool:
    """Whether gradients are sharded as well."""
    return mapping.zero >= 2


def _stages(split: RankGrid, mapping: MappingChoice) -> Values:
    """Chunks of a stage, and how many layers each has where some are missing."""
    model, chunks = split.workload.model, mapping.pp * mapping.interleave
    sizes = chunk_layers(split, mapping)
    if model.mamba_layers:
        return {"--hybrid-layer-pattern": _pattern(model, sizes)}
    if mapping.pipeline_layout:
        return {"--pipeline-model-parallel-layout": mapping.pipeline_layout}
    uneven = len(set(sizes)) > 1
    # A shorter first or last stage has arguments of its own, but not with chunks, nor if the last
    # has no layer.
    if uneven and (mapping.interleave > 1 or not sizes[-1]):
        return {"--pipeline-model-parallel-layout": layout_text(sizes, model.extra_predictions)}
    return {
        "--num-layers-per-virtual-pipeline-stage": model.layers // chunks
        if mapping.interleave > 1
        else None,
        "--decoder-first-pipeline-num-layers": sizes[0] if sizes[0] < max(sizes) else None,
        "--decoder-last-pipeline-num-layers": sizes[-1] if sizes[-1] < max(sizes) else None,
    }


def chunk_layers(split: RankGrid, mapping: MappingChoice) -> list[int]:
    """Layers of every chunk of the pipeline, in the order of the model."""
    if split.workload.layout:
        return [chunk.layers for chunk in split.workload.layout]
    layers = split.workload.model.layers
    fullest, fewer = (int(n[0]) for n in stage_layers(split.workload.model, split.mapping))
    layers_missing = mapping.pp * fullest - layers
    return _chunk_sizes(fullest // mapping.interleave, mapping, layers_missing - fewer, fewer)


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


def _pattern(model: Transformer, sizes: Sequence[int]) -> str:
    """The layers of a hybrid in Megatron-LM's letters, each kind spread evenly, chunks apart by |,
    and behind / each layer that predicts a further token.
    """
    feed_forward = "E" if model.experts else "-"
    counts = Counter({"M": model.mamba_layers, "*": model.with_attention, "-": model.dense_layers})
    counts[feed_forward] += model.with_ffn - model.dense_layers
    letters = spread(counts)
    ends = accumulate(sizes)
    chunks = ["".join(letters[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return "/".join(["|".join(chunks), *[f"*{feed_forward}"] * model.extra_predictions])


def _frequency(letters: Sequence[str], counted: str) -> str:
    """Layers of one kind as Megatron-LM lists them: ([0]*3+[1]*5)."""
    runs = [(int(letter == counted), len(list(run))) for letter, run in groupby(letters)]
    return f"({'+'.join(f'[{kind}]*{n}' for kind, n in runs)})"


def spread(counts: Mapping[str, int]) -> list[str]:
    """As many of each letter, spread evenly."""
    places = [((i + 0.5) / n, letter) for letter, n in counts.items() for i in range(n)]
    return [letter for _, letter in sorted(places)]


def unswitched(mapping: MappingChoice, switched: Collection[str]) -> Iterator[str]:
    """Whatever a mapping holds that no switch says has to be at its default, also fields that come
    later.
    """
    for name, field in type(mapping).model_fields.items():
        value = getattr(mapping, name)
        if name not in switched and value != field.default:
            yield f"{name} = {value}: this format has no setting for it, needs {field.default}"


def refusals(split: RankGrid, mapping: MappingChoice, said: Collection[str] = ()) -> Iterator[str]:
    """What Megatron-LM stops at or has no switch for, each with what it needs; `said` are keys of a
    model that a tool above it says in its own way.
    """
    workload, model = split.workload, split.workload.model
    states = workload.options.software.state_bytes
    parts = model.mamba_layers + model.with_attention + model.with_ffn
    kinds = [
        name for name in UNSAID if getattr(model, name) != type(model).model_fields[name].default
    ]
    delta_net = _delta_net(model)
    kinds += that_hold(
        {
            "mixers": bool(model.mixers) and not delta_net,
            "index_heads": model.index_heads > 0 and not _is_sparse(model),
            "output_gate": model.output_gate and model.kv_rank > 0,
            "value_dim without kv_rank": model.value_size != model.head_dim and not model.kv_rank,
            "q_rank without kv_rank": model.q_rank > 0 and not model.kv_rank,
        }
    )
    kinds = [name for name in kinds if name not in said]
    key_heads = delta_net.groups if delta_net else 0
    reasons = {
        f"{both(kinds)} of {model.name}: no argument sets this, needs a model without it": (
            bool(kinds)
        ),
        f"tp = {mapping.tp}, cp = {mapping.cp}: the key heads of gated DeltaNet do not split"
        f" evenly, needs tp * cp to divide {key_heads}": key_heads % (mapping.tp * mapping.cp) > 0,
        f"layers = {model.layers}: Megatron-LM counts the {parts} mixers and feed-forward parts"
        f" of a hybrid model as layers, needs layers = {parts}": model.mamba_layers > 0
        and parts != model.layers,
        f"pipeline_layout = {mapping.pipeline_layout}: a hybrid model has its MTP layers behind"
        " the last layer, needs m in the last chunk only": model.mamba_layers > 0
        and any(chunk.predictions for chunk in workload.layout[:-1]),
        **dict.fromkeys(unswitched(mapping, SWITCHED), True),
        f"state_bytes = {states}: coopt writes no arguments for it, needs {WIDE_STATES}, or"
        f" {NARROW_STATES} with ZeRO": (
            states != WIDE_STATES and not (states == NARROW_STATES and mapping.zero)
        ),
        f"parameter_bytes = 1 with precision = {workload.precision!r}: Megatron-LM has no option"
        " for it, needs ZeRO and fp8": (
            workload.options.software.parameter_bytes == 1
            and not (workload.precision == "fp8" and mapping.zero)
        ),
        f"seq = {model.seq}: Megatron-LM cuts sequences into two pieces for each of cp ="
        f" {mapping.cp} ranks, needs a multiple of {2 * mapping.cp}": mapping.cp > 1
        and model.seq % (2 * mapping.cp) > 0,
        f"sequence_parallel = false with tp = {mapping.tp}: Megatron-LM does not train experts"
        " so, needs true, or tp = 1": model.experts > 0
        and mapping.tp > 1
        and not mapping.sequence_parallel,
        # its mesh is of all ranks, which DP, CP and TP have to make up
        f"zero = {mapping.zero} with pp = {mapping.pp}: Megatron-FSDP has no pipeline, needs zero ="
        " 0 or 1, or pp = 1": sharded_fully(mapping) and mapping.pp > 1,
    }
    yield from that_hold(reasons)


def remarks(split: RankGrid, mapping: MappingChoice, table: RankTable) -> Iterator[str]:
    """What the plan counts on and the arguments do not say."""
    options, model = split.workload.options, split.workload.model
    software = options.software
    in_more_bits = _kept_in_more_bits(split.workload)
    splits_experts = model.experts > 0 and mapping.ep > 1
    interleaved = mapping.interleave > 1
    dense_activations = not model.experts or bool(model.dense_layers or model.shared_ffn)
    yield from that_hold(
        {
            "dp_mode = stale-1: Megatron-LM has no argument for gradients that are one step late": (
                options.dp_mode == "stale-1"
            ),
            f"tp_sync_fraction = {options.tp_sync_fraction:g}: Megatron-LM synchronises all"
            " activations of TP ranks": options.tp_sync_fraction < 1.0,
            f"schedule = {options.schedule}: Megatron-LM runs 1F1B, whose pipeline bubble is larger"
            " than the plan's": options.schedule != "1f1b" and mapping.pp > 1,
            (
                "ep_overlap: the plan hides all-to-alls behind the compute of another micro-batch,"
                " which Megatron-LM cannot do with this mapping and model"
            ): (
                options.ep_overlap
                and mapping.ep > 1
                and split.workload.global_batch > mapping.dp * mapping.micro_batch
                and not _overlaps_experts(split.workload, mapping)
            ),
            "dispatch_bytes = 1: the plan assumes that tokens travel to experts in 8 bits": (
                options.dispatch_bytes == 1 and splits_experts
            ),
            f"{in_more_bits}: the plan computes these parts in more bits than others; set this in a"
            " quantization recipe": bool(in_more_bits),
            f"graphs = {software.graphs}: the plan assumes CUDA graphs; set --cuda-graph-impl": (
                software.graphs != "none"
            ),
            "balance = forced: the plan assumes equal loads of experts; for a benchmark set"
            " --moe-router-force-load-balancing": (
                model.experts > 0 and split.workload.balance == "forced"
            ),
            (
                f"slowdown = {options.slowdown:g}: the times of the plan include this factor for"
                " stragglers"
            ): options.slowdown > 1.0,
            "the plan assumes full attention, but Megatron-LM masks later tokens": (
                not model.causal
            ),
            (
                f"this file spreads layers of each kind evenly, but {model.name} may order them"
                " differently"
            ): bool(model.mamba_layers or model.mixers or 0 < model.window_layers < model.layers),
            f"the plan assumes that experts receive {model.capacity:g} times their even share of"
            " tokens; set --moe-expert-capacity-factor": model.capacity != 1.0,
            (
                "Megatron-LM hides sends between two interleaved stages behind compute; the plan"
                " does not"
            ): interleaved and mapping.pp == 2 and not software.pp_overlap,
            f"offload_percent = {mapping.offload_percent}: the plan offloads this share of all"
            " activations of a layer, but Megatron-LM has no option for those of dense feed-forward"
            " layers and of shared experts": (mapping.offload_percent > 0 and dense_activations),
            f"the times of the plan are for software {software.name}, not for Megatron-LM": (
                not software.name.startswith("megatron")
            ),
            "expert groups hold other GPUs than in the plan: Megatron-LM groups consecutive"
            " ranks of a stage": splits_experts
            and not same_groups(table.expert_group, megatron_expert_groups(split, table)),
        }
    )


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


def launch_file(
    tool: str,
    refused: Callable[[RankGrid, MappingChoice], Iterable[str]],
    written: Callable[[str, RankGrid, MappingChoice], str],
    instance: Instance,
    plan: Plan,
    *,
    workload: str | None = None,
    part: str | None = None,
) -> str:
    """A launch file of a tool, for a workload split over its GPUs with the mapping of a plan.

    Raises
    ------
    InstanceError
        When the plan is of another instance or has no design, several workloads and none named, or
        what the tool refuses.
    """
    check_same_question(instance, plan)
    _, splits = workload_splits(instance, plan, workload=workload, part=part)
    if not splits:
        raise InstanceError(
            f"{instance.place}: nothing trains on part {part}, needs a part that trains a workload"
        )
    require_one_workload([run.name for _, run in splits], tool)
    split, run = splits[0]
    if reasons := list(refused(split, run.mapping)):
        raise InstanceError(
            f"{instance.place}: workload {run.name!r}: {reason} ({tool})" for reason in reasons
        )
    return written(instance.name, split, run.mapping)


def megatron_script(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> str:
    """A bash script with the arguments of Megatron-LM; what it is called with comes behind them
    (docs/exports.md).

    Raises
    ------
    InstanceError
        As `launch_file`.
    """
    return launch_file(
        "megatron", refusals, launch_script, instance, plan, workload=workload, part=part
    )


def launch_script(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The script of a workload with a mapping that Megatron-LM does not refuse."""
    ranks, hybrid = rank_table(split), bool(split.workload.model.mamba_layers)
    lines = [
        "#!/usr/bin/env bash",
        *_comments(name, split, mapping, ranks),
        "set -euo pipefail",
        *_exports(split, mapping),
        "arguments=(",
        *_lines(given(model_arguments(split.workload))),
        *_lines(given(mapping_arguments(split, mapping, pp_last=ranks.pp_last))),
        ")",
        *_launch(split, ranks, "pretrain_hybrid.py" if hybrid else "pretrain_gpt.py"),
    ]
    return "\n".join(lines) + "\n"


def _comments(name: str, split: RankGrid, mapping: MappingChoice, ranks: RankTable) -> list[str]:
    title = " ".join(f"{name}, workload {split.workload.name}".split())
    return [
        f"# {title}: Megatron-LM on {split.ranks} GPUs, {_in_domains(split)}, DP {mapping.dp}.",
        "# Call it in a checkout of Megatron-LM, with data, tokenizer, learning rate and iterations"
        " as arguments.",
        *(f"# Note: {remark}." for remark in remarks(split, mapping, ranks)),
    ]


def _in_domains(split: RankGrid) -> str:
    """How many GPUs of an HB domain train."""
    return f"{'' if split.ranks == split.places else 'at most '}{split.active} in each HB domain"


def environment(split: RankGrid, mapping: MappingChoice) -> dict[str, tuple[str, str]]:
    """Variables of the environment that a run needs, each with its value and why."""
    options, sharded = split.workload.options, sharded_fully(mapping)
    reasons = {
        (
            "CUDA_DEVICE_MAX_CONNECTIONS",
            "lets collectives start before the matrix products that hide them",
        ): (not sharded and (mapping.tp > 1 or mapping.cp > 1)),
        ("NVTE_CPU_OFFLOAD_V1", "offloads activations, but no weights"): (
            mapping.offload_percent > 0
        ),
        ("NCCL_IB_DISABLE", f"transport {options.transport}"): options.transport != "rdma",
        ("NCCL_COLLNET_ENABLE", "lets the network's switches add up gradients"): (
            options.collectives == "in-network"
        ),
    }
    return {name: ("1", why) for (name, why), holds in reasons.items() if holds}


def _exports(split: RankGrid, mapping: MappingChoice) -> list[str]:
    several = "unset CUDA_DEVICE_MAX_CONNECTIONS  # Megatron-FSDP needs several queues"
    values = environment(split, mapping)
    return [
        *([several] if sharded_fully(mapping) else []),
        *(f"export {name}={value}  # {why}" for name, (value, why) in values.items()),
    ]


def _lines(arguments: Iterable[Argument]) -> Iterator[str]:
    return (f"  {shlex.join(argument)}" for argument in arguments)


def _launch(split: RankGrid, ranks: RankTable, program: str) -> list[str]:
    """By torchrun where rank i is on GPU i, else a task for each line of the rank file."""
    if ranks.in_place:
        return [
            f"gpus_per_host=${{GPUS_PER_HOST:-{split.active}}}  # a host is an HB domain, or a part"
            " of one",
            f'exec torchrun --nnodes "$(({split.ranks} / gpus_per_host))" --nproc-per-node'
            ' "$gpus_per_host" \\',
            '  --node-rank "${NODE_RANK:-0}" --master-addr "${MASTER_ADDR:-localhost}" \\',
            f'  --master-port "${{MASTER_PORT:-29500}}" {program} "${{arguments[@]}}" "$@"',
        ]
    return [
        "# Ranks do not follow the order of GPUs: start a task for each line of `coopt export"
        " --format ranks`.",
        f'export RANK="${{RANK:-$SLURM_PROCID}}" WORLD_SIZE={split.ranks} LOCAL_RANK=0',
        "CUDA_VISIBLE_DEVICES=$(awk -F, -v rank=\"$RANK\" '$1 == rank {print $8}'"
        ' "${RANKS:-ranks.csv}")',
        "export CUDA_VISIBLE_DEVICES",
        f'exec python {program} "${{arguments[@]}}" "$@"',
    ]
