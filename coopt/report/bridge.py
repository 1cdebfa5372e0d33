"""A configuration of Megatron Bridge: what Megatron-LM's arguments say, at its places for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isqrt
from typing import Any

import yaml  # type: ignore[import-untyped]

from coopt.instance.mixers import AttentionLayers, Encoder
from coopt.instance.texts import both, broken, that_hold
from coopt.instance.transformer import Transformer
from coopt.plan.parts import MappingChoice
from coopt.report.megatron import (
    Values,
    chunk_layers,
    environment,
    mapping_arguments,
    model_arguments,
    remarks,
    spread,
)
from coopt.report.megatron import refusals as refusals_of_megatron
from coopt.traffic.ranks import RankGrid, rank_table

Sections = dict[str, dict[str, Any]]

CONFIG = "megatron.bridge.training.config"
MODELS, TRANSFORMERS = "megatron.bridge.models", "transformers.models"
PROVIDERS = {
    "gpt": f"{MODELS}.gpt_provider.GPTModelProvider",
    "latent": f"{MODELS}.mla_provider.MLAModelProvider",
    "hybrid": f"{MODELS}.hybrid.hybrid_provider.HybridModelProvider",
    "windowed": f"{MODELS}.mimo_v2_flash.mimo_v2_flash_provider.MiMoV2FlashModelProvider",
}
TOWERS = {
    "Qwen3-VL": ("qwen3_vl_provider.Qwen3VL{}ModelProvider", "qwen3_vl{}", "Qwen3VL{}VisionConfig"),
    "Qwen3.5": ("qwen35_vl_provider.Qwen35VL{}ModelProvider", "qwen3_5{}", "Qwen3_5{}VisionConfig"),
}
"""Providers of models with a vision tower and its configurations, each with and without experts."""
PROCESSORS = {"Qwen3-VL": "Qwen/Qwen3-VL-8B-Instruct", "Qwen3.5": "Qwen/Qwen3.5-9B"}
PATCH = 16
"""Pixels of a side of a patch."""
SAID_BY_PROVIDERS = {
    "windowed": ("mixers", "value_dim without kv_rank"),
    **dict.fromkeys(TOWERS, ("encoders",)),
}
"""Keys of a model that Megatron-LM has no argument for."""
VARIANTS = (
    "megatron.core.models.gpt.experimental_attention_variant_module_specs"
    ".get_transformer_block_with_experimental_attention_variant_spec"
)
PLACES = {
    "seq-length": ("model.seq_length", "dataset.seq_length"),
    "num-experts": ("model.num_moe_experts",),
    "micro-batch-size": ("train.micro_batch_size",),
    "global-batch-size": ("train.global_batch_size",),
    "decoder-first-pipeline-num-layers": ("model.num_layers_in_first_pipeline_stage",),
    "decoder-last-pipeline-num-layers": ("model.num_layers_in_last_pipeline_stage",),
    "use-tp-pp-dp-mapping": ("dist.use_tp_pp_dp_mapping",),
    "use-distributed-optimizer": (
        "ddp.use_distributed_optimizer",
        "optimizer.use_distributed_optimizer",
    ),
    "num-distributed-optimizer-instances": ("ddp.num_distributed_optimizer_instances",),
    "use-precision-aware-optimizer": ("optimizer.use_precision_aware_optimizer",),
    "use-megatron-fsdp": ("dist.use_megatron_fsdp", "ddp.use_megatron_fsdp"),
    "data-parallel-sharding-strategy": ("ddp.data_parallel_sharding_strategy",),
    "ckpt-format": ("checkpoint.ckpt_format",),
    "overlap-grad-reduce": ("ddp.overlap_grad_reduce",),
    "overlap-param-gather": ("ddp.overlap_param_gather", "optimizer.overlap_param_gather"),
    "accumulate-allreduce-grads-in-fp32": ("mixed_precision.grad_reduce_in_fp32",),
    "fp8-param-gather": ("mixed_precision.fp8_param_gather",),
    "bf16": ("mixed_precision.bf16",),
    "fp16": ("mixed_precision.fp16",),
    "fp8-format": ("mixed_precision.fp8",),
    "fp8-recipe": ("mixed_precision.fp8_recipe",),
    "fp4-format": ("mixed_precision.fp4",),
    "swiglu": ("model.gated_linear_unit",),
}
"""Where arguments stand whose place is not `model`, under their own name."""
OPPOSITES = {
    "untie-embeddings-and-output-weights": "model.share_embeddings_and_output_weights",
    "disable-bias-linear": "model.add_bias_linear",
    "no-rope-fusion": "model.apply_rope_fusion",
    "no-gradient-accumulation-fusion": "model.gradient_accumulation_fusion",
}
IMPLIED = (
    *("group-query-attention", "grad-reduce-in-bf16", "no-overlap-p2p-communication"),
    *("num-layers-per-virtual-pipeline-stage", "exp-avg-dtype", "exp-avg-sq-dtype"),
    "max-position-embeddings",
)
"""Arguments that other places say, or `_rest`."""
DTYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def refusals(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    """What Megatron-LM refuses and no provider of Bridge says, and what these refuse."""
    model, kind = split.workload.model, _kind(split.workload.model)
    yield from refusals_of_megatron(split, mapping, SAID_BY_PROVIDERS.get(kind, ()))
    reasons: dict[str, bool] = {}
    if layers := _windowed(model):
        fewest = min(model.kv_heads, layers.kv_heads)
        reasons = {
            (
                f"cp = {mapping.cp}: Megatron Bridge cannot split the sequences of {model.name},"
                " needs cp = 1"
            ): (mapping.cp > 1),
            f"tp = {mapping.tp}: Megatron Bridge cannot give one KV head of {model.name} to several"
            f" TP ranks, needs tp of at most {fewest}": mapping.tp > fewest,
            (
                f"extra_predictions = {model.extra_predictions}: the MTP layers of Megatron Bridge"
                " use windowed attention, which the plan does not assume, needs 0"
            ): model.extra_predictions > 0,
        }
    elif kind in TOWERS:
        reasons = _reasons_of_towers(split, mapping, kind)
    yield from that_hold(reasons)


def _reasons_of_towers(split: RankGrid, mapping: MappingChoice, kind: str) -> dict[str, bool]:
    """Where the providers of a model with a vision tower stop, by what they need."""
    model, tower = split.workload.model, split.workload.model.encoders[0]
    plain = kind == "Qwen3-VL"  # layers of one kind, in one chunk for each stage
    most = 1 + plain * chunk_layers(split, mapping)[0]
    needs = {
        "a single encoder": len(model.encoders) == 1,
        "gated = false": not tower.gated,
        "heads · head_dim = hidden": tower.heads * tower.head_dim == tower.hidden,
        "projector = merge · hidden": tower.projector == tower.merge * tower.hidden,
        f"projectors of at most {most}": tower.projectors <= most,
        f"a square number in merge = {tower.merge}": isqrt(tower.merge) ** 2 == tower.merge,
        f"a multiple of merge = {tower.merge} in tokens": tower.tokens % tower.merge == 0,
    }
    return {
        f"encoders of {model.name}: Megatron Bridge builds only the vision tower of {kind}, needs"
        f" {both([need for need, is_met in needs.items() if not is_met])}": (
            not all(needs.values())
        ),
        **{
            f"{key} = {value}: Megatron Bridge does not support it for {kind}, needs {need}": (
                plain and value > need
            )
            for key, value, need in (
                ("dense_layers", model.dense_layers, 0),
                ("extra_predictions", model.extra_predictions, 0),
                ("interleave", mapping.interleave, 1),
            )
        },
    }


def _kind(model: Transformer) -> str:
    """Which provider has the layers of a model."""
    if model.encoders and not (model.kv_rank or model.mamba_layers):
        return "Qwen3.5" if model.mixers else "Qwen3-VL"
    if _windowed(model):
        return "windowed"
    return "hybrid" if model.mamba_layers else "latent" if model.kv_rank else "gpt"


def _windowed(model: Transformer) -> AttentionLayers | None:
    """The layers with a window and key heads of their own, as MiMo-V2-Flash has them."""
    match model.mixers:
        case (AttentionLayers(window=window) as layers,) if window and not model.window:
            attention = layers.model_dump(exclude={"kind", "layers", "kv_heads", "window"})
            others = (model.kv_rank, model.q_rank, model.index_heads, model.output_rank)
            is_same = all(getattr(model, key) == value for key, value in attention.items())
            return layers if is_same and not any(others) else None
    return None


def _image(tower: Encoder) -> list[int] | None:
    """Sides in pixels of an image of so many patches, which the projector merges in squares."""
    merged = isqrt(tower.merge)
    patches = isqrt(tower.tokens)
    sides = [n for n in range(merged, patches + 1, merged) if tower.tokens % (n * merged) == 0]
    if not sides or merged**2 != tower.merge:
        return None
    return [PATCH * sides[-1], PATCH * tower.tokens // sides[-1]]


def bridge_text(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The configuration of a workload with a mapping that Megatron-LM does not refuse, as
    `ConfigContainer.from_yaml` of Megatron Bridge reads it.
    """
    comments = [f"# {text}" for text in _comments(name, split, mapping)]
    text: str = yaml.safe_dump(
        {"_target_": f"{CONFIG}.ConfigContainer", **_sections(split, mapping)}, sort_keys=False
    )
    return "\n".join(comments) + "\n" + text


def _comments(name: str, split: RankGrid, mapping: MappingChoice) -> list[str]:
    table, has_tower = rank_table(split), bool(split.workload.model.encoders)
    title = " ".join(f"{name}, workload {split.workload.name}".split())
    notes = "".join(f"Note: {remark}.\n" for remark in remarks(split, mapping, table))
    own_notes = re.sub(r"--([\w-]+)", lambda found: f"model.{found[1].replace('-', '_')}", notes)
    return [
        f"{title}: Megatron Bridge on {split.ranks} GPUs, DP {mapping.dp}.",
        "Data, tokenizer, learning rate and iterations are placeholders: replace them with your"
        " own.",
        *broken(
            (
                not table.in_place,
                "Ranks are not in the order of the GPUs: `coopt export --format ranks` lists the"
                " GPU of each rank.",
            )
        ),
        *own_notes.splitlines(),
        *broken(
            (has_tower, f"Train with the `forward_step` of {MODELS}.qwen_vl.qwen3_vl_step."),
            (
                has_tower and mapping.pp > 1,
                "This file puts the whole encoder on the first pipeline stage; the plan puts a"
                " part of it on each stage.",
            ),
        ),
    ]


def _sections(split: RankGrid, mapping: MappingChoice) -> Sections:
    """The sections of a configuration that have no default, and those that a plan decides."""
    model, kind = split.workload.model, _kind(split.workload.model)
    sections: Sections = {
        "env_vars": {name: value for name, (value, _) in environment(split, mapping).items()},
        "model": {"_target_": _provider(model, kind)},
        "train": {"_target_": f"{CONFIG}.TrainingConfig", "train_iters": 20},
        "mixed_precision": {
            "_target_": "megatron.bridge.training.mixed_precision.MixedPrecisionConfig"
        },
        "optimizer": {"_target_": f"{CONFIG}.OptimizerConfig", "optimizer": "adam", "lr": 1e-4},
        "ddp": {"_target_": f"{CONFIG}.DistributedDataParallelConfig"},
        "dist": {"_target_": f"{CONFIG}.DistributedInitConfig"},
        "scheduler": {"_target_": f"{CONFIG}.SchedulerConfig", "lr_decay_style": "constant"},
        "dataset": {
            "_target_": f"{CONFIG}.MockGPTDatasetConfig",
            "random_seed": 1234,
            "reset_position_ids": False,
            "reset_attention_mask": False,
            "eod_mask_loss": False,
        },
        "logger": {"_target_": f"{CONFIG}.LoggerConfig", "log_interval": 1},
        "tokenizer": {
            "_target_": "megatron.bridge.training.tokenizers.config.TokenizerConfig",
            "tokenizer_type": "NullTokenizer",
            "vocab_size": model.vocab,
        },
        "checkpoint": {"_target_": f"{CONFIG}.CheckpointConfig"},
    }
    pp_last = rank_table(split).pp_last
    said = model_arguments(split.workload) | mapping_arguments(split, mapping, pp_last=pp_last)
    for place, value in (*_placed(said), *_rest(split, mapping, said)):
        section, key = place.split(".")
        sections[section][key] = value
    if layers := _windowed(model):
        sections["model"] |= _windows(model, layers)
    if kind in TOWERS:
        sections["model"] |= _tower(model, kind, mapping)
        sections["dataset"] = _images(model, kind)
    return sections


def _provider(model: Transformer, kind: str) -> str:
    if kind in TOWERS:
        return f"{MODELS}.qwen_vl.{TOWERS[kind][0].format('MoE' if model.experts else '')}"
    return PROVIDERS[kind]


def _windows(model: Transformer, layers: AttentionLayers) -> dict[str, Any]:
    """What the provider of MiMo-V2-Flash says of windows."""
    kinds = spread({"W": layers.layers, "*": model.layers - layers.layers})
    return {
        "hybrid_attention_pattern": [int(kind == "W") for kind in kinds],
        "window_size": layers.window,
        "full_attn_num_query_groups": model.kv_heads,
        "swa_num_query_groups": layers.kv_heads,
        "v_head_dim": model.value_size,
        "add_bias_linear": False,
    }


def _tower(model: Transformer, kind: str, mapping: MappingChoice) -> dict[str, Any]:
    """What a provider of Qwen says of its vision tower, all of which trains."""
    (tower,), (_, module, name) = model.encoders, TOWERS[kind]
    folder = module.format("_moe" if model.experts else "")
    configuration = name.format("Moe" if model.experts else "")
    inner = [i * tower.layers // tower.projectors for i in range(1, tower.projectors)]
    return {
        "kv_channels": model.head_dim,
        "num_query_groups": model.kv_heads,
        "position_embedding_type": "mrope",
        "language_max_sequence_length": model.seq,
        "add_bias_linear": False,
        "vision_dp_when_cp": mapping.cp > 1,
        **dict.fromkeys(
            ("freeze_language_model", "freeze_vision_model", "freeze_vision_projection"), False
        ),
        "vision_config": {
            "_target_": f"{TRANSFORMERS}.{folder}.configuration_{folder}.{configuration}",
            "depth": tower.layers,
            "hidden_size": tower.hidden,
            "num_heads": tower.heads,
            "intermediate_size": tower.ffn,
            "out_hidden_size": model.hidden,
            "patch_size": PATCH,
            "spatial_merge_size": isqrt(tower.merge),
            **({"deepstack_visual_indexes": inner} if kind == "Qwen3-VL" else {}),
        },
    }


def _images(model: Transformer, kind: str) -> dict[str, Any]:
    (tower,) = model.encoders
    return {
        "_target_": "megatron.bridge.data.builders.mock_vlm_sft.MockVLMSFTDatasetConfig",
        "seq_length": model.seq,
        "hf_processor_path": PROCESSORS[kind],
        "image_size": _image(tower),
        "num_images": tower.inputs,
        "pad_to_max_length": True,
    }


def _placed(said: Values) -> Iterator[tuple[str, Any]]:
    """Arguments at their places, also those that are off."""
    for argument, value in said.items():
        name = argument.removeprefix("--")
        if name in OPPOSITES:
            yield OPPOSITES[name], not value
        elif value is not None and name not in IMPLIED:
            for place in PLACES.get(name, (f"model.{name.replace('-', '_')}",)):
                yield place, _spoken(name, value)


def _spoken(name: str, value: Any) -> Any:
    """The value as YAML has it: lists where arguments have text."""
    if name == "window-size":
        return [int(number) for number in value.split(",")]
    if name.endswith("-freq"):
        counts = re.findall(r"\[(\d)\]\*(\d+)", value)
        return [int(kind) for kind, count in counts for _ in range(int(count))]
    if name.endswith(("-head-dim", "-pos-emb-head-dim")):
        return int(value)
    return list(value) if isinstance(value, tuple | list) else value


def _rest(split: RankGrid, mapping: MappingChoice, said: Values) -> Iterator[tuple[str, Any]]:
    """What Bridge has no argument for, or derives otherwise than Megatron-LM."""
    model = split.workload.model
    yield "model.activation_func", "silu" if model.gated else "gelu"
    if model.kv_rank:
        yield "model.q_lora_rank", model.q_rank or None
    if said.get("--experimental-attention-variant"):
        yield "model.transformer_layer_spec", {"_target_": VARIANTS, "_call_": False}
    interleaved = mapping.interleave > 1
    if interleaved:
        yield "model.virtual_pipeline_model_parallel_size", mapping.interleave
    overlaps = interleaved and not said["--no-overlap-p2p-communication"]
    yield "model.overlap_p2p_comm", overlaps
    yield "model.batch_p2p_comm", not overlaps
    for name in ("exp-avg-dtype", "exp-avg-sq-dtype"):
        if value := said[f"--{name}"]:
            constant = {"_target_": DTYPES[str(value)], "_call_": False}
            yield f"optimizer.{name.replace('-', '_')}", constant
    precision = "torch.float16" if said.get("--fp16") else "torch.bfloat16"
    for name in ("params_dtype", "pipeline_dtype"):
        yield f"mixed_precision.{name}", {"_target_": precision, "_call_": False}
