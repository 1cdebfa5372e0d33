"""A configuration of NeMo AutoModel: the recipe that trains a model from scratch by FSDP2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from coopt.instance.texts import that_hold
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.report.torchtitan import (
    chunk_modules,
    comments_of_fsdp,
    local_batch,
    refusals_of_fsdp,
)
from coopt.traffic.ranks import RankGrid

Values = dict[str, Any]

COMPONENTS = "nemo_automodel.components"


def nemo_text(name: str, split: RankGrid, mapping: MappingChoice) -> str:
    """The configuration of a workload with a mapping that AutoModel does not refuse, for
    `automodel FILE`.
    """
    comments = comments_of_fsdp("NeMo AutoModel", name, split, mapping)
    text: str = yaml.safe_dump(_sections(split, mapping), sort_keys=False)
    return "\n".join(comments) + "\n" + text


def _sections(split: RankGrid, mapping: MappingChoice) -> Values:
    workload, model = split.workload, split.workload.model
    fp8: Values = {"enabled": True, "recipe_name": "tensorwise", "filter_fqns": ["lm_head"]}
    return {
        "recipe": "TrainFinetuneRecipeForNextTokenPrediction",
        "step_scheduler": {
            "global_batch_size": workload.global_batch,
            "local_batch_size": local_batch(workload, mapping),
            "max_steps": 20,
        },
        "dist_env": {"backend": "nccl"},
        "model": {
            "_target_": "nemo_automodel.NeMoAutoModelForCausalLM.from_config",
            "torch_dtype": "float32",
            "config": _shape(model),
            **({"backend": _backend(workload, mapping)} if model.experts or model.kv_rank else {}),
        },
        "distributed": _distributed(split, mapping),
        **({"fp8": fp8} if workload.precision == "fp8" else {}),
        "loss_fn": {"_target_": f"{COMPONENTS}.loss.masked_ce.MaskedCrossEntropy"},
        "optimizer": {"_target_": "torch.optim.AdamW", "lr": 1e-4},
        "dataset": {
            "_target_": f"{COMPONENTS}.datasets.llm.mock_iterable_dataset.MockIterableDataset",
            "vocab_size": model.vocab,
            "seq_len": model.seq,
        },
        "checkpoint": {"enabled": False},
    }


def _shape(model: Transformer) -> Values:
    """The model as Hugging Face configures the architecture that has its parts."""
    shape: Values = {
        "vocab_size": model.vocab,
        "hidden_size": model.hidden,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.kv_heads,
        "intermediate_size": model.dense_ffn or model.ffn,
        "max_position_embeddings": model.seq,
        "tie_word_embeddings": model.tied_embeddings,
    }
    if not model.experts:
        return {"_target_": "transformers.LlamaConfig", "head_dim": model.head_dim, **shape}
    experts = {"num_experts_per_tok": model.top_k, "moe_intermediate_size": model.ffn}
    if not (model.kv_rank or model.shared_ffn or model.expert_groups):
        return {
            "_target_": "transformers.Qwen3MoeConfig",
            "head_dim": model.head_dim,
            **shape,
            **experts,
            "num_experts": model.experts,
            "mlp_only_layers": list(range(model.dense_layers)),
        }
    experts |= {
        "n_routed_experts": model.experts,
        "n_shared_experts": model.shared_ffn // model.ffn,
        "n_group": model.expert_groups or 1,
        "topk_group": model.top_groups or 1,
        "first_k_dense_replace": model.dense_layers,
    }
    if not model.kv_rank:
        return {
            "_target_": "transformers.Glm4MoeConfig",
            "head_dim": model.head_dim,
            **shape,
            **experts,
        }
    return {
        "_target_": "transformers.DeepseekV3Config",
        **shape,
        **experts,
        "q_lora_rank": model.q_rank or None,
        "kv_lora_rank": model.kv_rank,
        "qk_nope_head_dim": model.head_dim - model.rope_dim,
        "qk_rope_head_dim": model.rope_dim,
        "v_head_dim": model.value_size,
    }


def _backend(workload: Workload, mapping: MappingChoice) -> Values:
    """What AutoModel's own mixtures of experts run on."""
    return {
        "_target_": f"{COMPONENTS}.models.common.BackendConfig",
        "attn": "te",
        "linear": "torch",
        "rms_norm": "torch",
        "rope_fusion": False,
        "experts": "torch_mm",
        "dispatcher": "hybridep" if mapping.ep > 1 else "torch",
        "fake_balanced_gate": workload.balance == "forced",
        "enable_fsdp_optimizations": True,
    }


def _distributed(split: RankGrid, mapping: MappingChoice) -> Values:
    """Degrees, what shares states, and what is recomputed."""
    recomputes = {"activation_checkpointing": "full" if mapping.recompute == "full" else False}
    if mapping.zero == 0 and mapping.dp > 1:
        return {"strategy": "ddp", **recomputes}
    copies = split.workload.options.dp_replicate
    reshards = {"reshard_after_forward": mapping.zero == 3}
    pipeline: Values = {
        "pp_schedule": "Interleaved1F1B" if mapping.interleave > 1 else "1F1B",
        "pp_microbatch_size": mapping.micro_batch,
        "module_fqns_per_model_part": chunk_modules(
            split, mapping, ("model.embed_tokens", "model.layers", "model.norm", "lm_head")
        ),
    }
    if mapping.pp > 1 and not split.workload.model.kv_rank:
        # every stage turns positions, latent attention by itself
        for chunk in pipeline["module_fqns_per_model_part"]:
            chunk.append("model.rotary_emb")
    return {
        "strategy": "fsdp2",
        "dp_size": mapping.dp,
        **({"dp_replicate_size": copies} if copies > 1 else {}),
        "tp_size": mapping.tp,
        "cp_size": mapping.cp,
        "pp_size": mapping.pp,
        "ep_size": mapping.ep,
        "sequence_parallel": mapping.tp > 1 and mapping.sequence_parallel,
        # shards of gradients are what is kept between micro-batches
        "defer_fsdp_grad_sync": False,
        **reshards,
        "enable_compile": split.workload.options.software.name != "fsdp-eager",
        **recomputes,
        **({"pipeline": pipeline} if mapping.pp > 1 else {}),
        **({"moe": reshards} if mapping.ep > 1 else {}),
    }


def refusals(split: RankGrid, mapping: MappingChoice) -> Iterator[str]:
    """What AutoModel stops at or has no key for, each with what it needs."""
    workload, model = split.workload, split.workload.model
    graphs = workload.options.software.graphs
    others = max(mapping.tp, mapping.cp, mapping.pp, mapping.ep)
    copies = workload.options.dp_replicate
    micro_batches = workload.global_batch // (mapping.dp * mapping.micro_batch)
    ranks = mapping.dp * mapping.cp * mapping.tp
    shards = mapping.dp * mapping.cp // copies
    yield from that_hold(
        {
            (
                f"precision = {workload.precision}: the recipe has bf16 and, for dense models, fp8,"
                " needs one of these"
            ): (
                workload.precision not in ("bf16", "fp8")
                or (workload.precision == "fp8" and model.experts > 0)
            ),
            (
                f"shared_ffn = {model.shared_ffn}: the recipe counts whole shared experts, needs a"
                f" multiple of ffn = {model.ffn}"
            ): (model.experts > 0 and model.shared_ffn % model.ffn > 0),
            (
                "kv_rank without experts: the recipe has latent attention only with experts, needs"
                " experts"
            ): (model.kv_rank > 0 and not model.experts),
            f"extra_predictions = {model.extra_predictions}: no recipe trains MTP layers,"
            " needs 0": model.extra_predictions > 0,
            (
                f"tp = {mapping.tp} with experts: the recipe splits experts over TP only when it"
                " loads weights, needs tp = 1"
            ): (mapping.tp > 1 and model.experts > 0),
            f"zero = 0 with dp = {mapping.dp} and cp = {mapping.cp}: optimizer states stay whole"
            " only where DP is the only degree, needs zero = 2 or 3": mapping.zero == 0
            and (mapping.cp > 1 or (mapping.dp > 1 and others > 1)),
            f"dp_replicate = {copies}: the recipe shards over two DP ranks or more, needs a smaller"
            f" divisor of dp = {mapping.dp}": copies == mapping.dp > 1,
            f"graphs = {graphs}: the recipe has no key for CUDA graphs, needs graphs = none": graphs
            != "none",
            (
                f"micro-batches = {micro_batches}: the pipeline has more stages, needs at least"
                f" pp = {mapping.pp}"
            ): (micro_batches < mapping.pp),
            (
                "dispatch = each: the recipe gathers tokens instead of sending them, needs dispatch"
                " = once"
            ): (mapping.ep > 1 and workload.options.dispatch == "each"),
            (
                f"experts = {model.experts} in {shards} shards with ep = 1: FSDP2 does not split an"
                f" expert over shards, needs ep above 1 or at most {model.experts} shards"
            ): (0 < model.experts < shards and mapping.ep == 1),
            f"ep = {mapping.ep}: needs a divisor of dp * cp * tp = {ranks}": (
                model.experts > 0 and ranks % mapping.ep > 0
            ),
        }
    )
    yield from refusals_of_fsdp(split, mapping)
