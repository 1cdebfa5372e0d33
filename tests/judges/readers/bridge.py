"""What Megatron Bridge makes of configurations: complaints, or what would be trained, of a JSON file of them.

Runs with megatron-bridge installed and without a GPU and Transformer Engine: what is asked of these is answered here.
"""

import importlib.abc
import importlib.machinery
import json
import logging
import os
import sys
import types
import warnings
from pathlib import Path
from types import SimpleNamespace

ABSENT = ("transformer_engine", "nvidia_resiliency_ext", "megatron.energon", "modelopt", "wandb", "mlflow", "comet_ml")
"""Packages that import at start, and that no configuration is checked by."""


class _Anything(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Absent(types.ModuleType):
    __path__ = ()
    __version__ = "2.10.0"

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        is_absent = any(name == package or name.startswith(f"{package}.") for package in ABSENT)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_absent else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


sys.meta_path.insert(0, _Finder())
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")

import torch  # noqa: E402
from megatron.bridge.training.config import ConfigContainer, runtime_config_update  # noqa: E402
from megatron.training.config.instantiate_utils import InstantiationMode  # noqa: E402


def _attention(model: object, layer: int) -> int:
    """Weights of what mixes tokens in a layer, as Megatron-Core builds it."""
    h, heads = model.hidden_size, model.num_attention_heads
    linear = getattr(model, "linear_attention_freq", None)
    if linear and model.experimental_attention_variant == "gated_delta_net" and linear[layer]:
        keys = model.linear_num_key_heads * model.linear_key_head_dim
        values = model.linear_num_value_heads * model.linear_value_head_dim
        return h * (2 * keys + 3 * values + 2 * model.linear_num_value_heads)
    if model.multi_latent_attention:
        key, value = model.qk_head_dim, model.v_head_dim
        query = heads * (key + model.qk_pos_emb_head_dim)
        rank = model.kv_lora_rank
        found = h * (rank + model.qk_pos_emb_head_dim) + rank * heads * (key + value) + heads * value * h
        found += model.q_lora_rank * (h + query) if model.q_lora_rank else h * query
        if model.experimental_attention_variant == "dsa":
            index = model.dsa_indexer_n_heads
            found += model.dsa_indexer_head_dim * (model.q_lora_rank * index + h) + h * index
        return found
    size, pattern = model.kv_channels or h // heads, getattr(model, "hybrid_attention_pattern", None)
    groups, value = model.num_query_groups or heads, getattr(model, "v_head_dim", size)
    if pattern:
        groups = model.swa_num_query_groups if pattern[layer] else model.full_attn_num_query_groups
    gate = heads * size if model.attention_output_gate else 0
    return h * (heads * size + groups * (size + value) + gate + heads * value)


def _feed_forward(model: object, experts: bool) -> int:
    h, matrices = model.hidden_size, 3 if model.gated_linear_unit else 2
    if not experts:
        return matrices * h * model.ffn_hidden_size
    width = model.moe_latent_size or h
    found = model.num_moe_experts * matrices * width * model.moe_ffn_hidden_size
    found += h * model.num_moe_experts + (2 * h * width if model.moe_latent_size else 0)
    return found + matrices * h * (model.moe_shared_expert_intermediate_size or 0)


def _weights(model: object) -> int:
    """Weights of matrices, without those for further predictions."""
    h = model.hidden_size
    found = (1 if model.share_embeddings_and_output_weights else 2) * model.vocab_size * h
    if pattern := getattr(model, "hybrid_layer_pattern", None):
        inner, states = model.mamba_num_heads * model.mamba_head_dim, model.mamba_num_groups * model.mamba_state_dim
        kinds = {
            "M": h * (3 * inner + 2 * states + model.mamba_num_heads),
            "*": _attention(model, 0),
            "-": _feed_forward(model, experts=False),
            **({"E": _feed_forward(model, experts=True)} if model.num_moe_experts else {}),
        }
        return found + sum(kinds[letter] for letter in pattern.split("/")[0] if letter != "|")
    sparse = model.moe_layer_freq if isinstance(model.moe_layer_freq, list) else [1] * model.num_layers
    for layer in range(model.num_layers):
        found += _attention(model, layer)
        found += _feed_forward(model, experts=bool(model.num_moe_experts and sparse[layer]))
    if tower := getattr(model, "vision_config", None):
        merged, width = tower.hidden_size * tower.spatial_merge_size**2, tower.hidden_size
        deep = getattr(tower, "deepstack_visual_indexes", [])
        found += tower.depth * (4 * width**2 + 2 * width * tower.intermediate_size)
        found += (1 + len(deep)) * merged * (merged + tower.out_hidden_size)
    return found


def judged(launch: dict) -> dict:
    """What Bridge says against a configuration, empty if nothing, and what it would train."""
    os.environ.clear()
    os.environ.update({"WORLD_SIZE": str(launch["ranks"]), "RANK": "0"})
    gpu = SimpleNamespace(major=launch["capability"], minor=0, name=launch["gpu"])
    torch.cuda.get_device_capability = lambda *_: (launch["capability"], 0)
    torch.cuda.get_device_properties = lambda *_: gpu
    try:
        config = ConfigContainer.from_yaml(launch["file"], mode=InstantiationMode.STRICT)
        runtime_config_update(config)
    except Exception as error:
        return {"complaint": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    model, ddp = config.model, config.ddp
    return {
        "complaint": "",
        "tp": model.tensor_model_parallel_size,
        "pp": model.pipeline_model_parallel_size,
        "cp": model.context_parallel_size,
        "dp": config.data_parallel_size,
        "ep": model.expert_model_parallel_size,
        "interleave": model.virtual_pipeline_model_parallel_size or 1,
        "micro_batch": config.train.micro_batch_size,
        "global_batch": config.train.global_batch_size,
        "sequence_parallel": model.sequence_parallel,
        "recompute": model.recompute_granularity,
        "zero": [
            ddp.use_distributed_optimizer,
            ddp.use_megatron_fsdp and ddp.data_parallel_sharding_strategy,
        ],
        "gradients": ddp.grad_reduce_in_fp32,
        "precision": [model.bf16, model.fp16, model.fp8, model.fp4],
        "dispatcher": model.num_moe_experts and model.moe_token_dispatcher_type,
        "offloaded": model.activation_offload_fraction if model.fine_grained_activation_offloading else 0,
        "layers": model.num_layers,
        "hidden": model.hidden_size,
        "heads": model.num_attention_heads,
        "experts": model.num_moe_experts or 0,
        "seq": config.dataset.seq_length,
        "parameters": _weights(model),
    }


question, answer = map(Path, sys.argv[1:])
answer.write_text(json.dumps([judged(launch) for launch in json.loads(question.read_text("utf-8"))]), "utf-8")
