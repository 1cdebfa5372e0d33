"""A configuration of Megatron Bridge: what Megatron-LM's arguments say, at its places for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from coopt.plan.parts import MappingChoice
from coopt.report.megatron import (
    Values,
    environment,
    mapping_arguments,
    model_arguments,
    remarks,
    sharded_fully,
)
from coopt.report.megatron import refusals as refusals_of_megatron
from coopt.traffic.ranks import RankGrid, rank_table

Sections = dict[str, dict[str, Any]]

CONFIG = "megatron.bridge.training.config"
PROVIDERS = {
    "gpt": "megatron.bridge.models.gpt_provider.GPTModelProvider",
    "latent": "megatron.bridge.models.mla_provider.MLAModelProvider",
    "hybrid": "megatron.bridge.models.hybrid.hybrid_provider.HybridModelProvider",
}
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
    """What Megatron-LM refuses, and Bridge beside it."""
    yield from refusals_of_megatron(split, mapping)
    if sharded_fully(mapping) and not rank_table(split).pp_last:
        yield (
            f"zero = {mapping.zero}: not supported where DP ranks are outermost, needs zero = 0"
            " or 1"
        )


def bridge_text(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The configuration of a workload with a mapping that Megatron-LM does not refuse, as
    `ConfigContainer.from_yaml` of Megatron Bridge reads it.
    """
    comments = [f"# {text}" for text in _comments(name, split, mapping)]
    config = {"_target_": f"{CONFIG}.ConfigContainer", **_sections(split, mapping)}
    text: str = yaml.safe_dump(config, sort_keys=False)
    return "\n".join(comments) + "\n" + text


def _comments(name: str, split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    table = rank_table(split)
    title = " ".join(f"{name}, workload {split.workload.name}".split())
    yield f"{title}: Megatron Bridge on {split.ranks} GPUs, DP {mapping.dp}."
    yield "Data, tokenizer, learning rate and iterations are placeholders: put in your own."
    if not table.in_place:
        yield (
            "Ranks do not follow the order of GPUs: `coopt export --format ranks` lists their"
            " places."
        )
    for remark in remarks(split, mapping, table):
        own = re.sub(r"--([\w-]+)", lambda found: "model." + found[1].replace("-", "_"), remark)
        yield f"Not set here: {own}."


def _sections(split: RankGrid, mapping: MappingChoice) -> Sections:
    """The sections of a configuration that have no default, and those that a plan decides."""
    model = split.workload.model
    kind = "hybrid" if model.mamba_layers else "latent" if model.kv_rank else "gpt"
    sections: Sections = {
        "env_vars": {name: value for name, (value, _) in environment(split, mapping).items()},
        "model": {"_target_": PROVIDERS[kind]},
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
    return sections


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
