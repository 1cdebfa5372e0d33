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
        "seq": config.dataset.sequence_length,
    }


question, answer = map(Path, sys.argv[1:])
answer.write_text(json.dumps([judged(launch) for launch in json.loads(question.read_text("utf-8"))]), "utf-8")
