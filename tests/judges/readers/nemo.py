"""What NeMo AutoModel makes of configurations: complaints, or what would be trained, of a JSON file of them.

Runs without a GPU and Transformer Engine: processes are pretended, and models are built without memory.
"""

import importlib.abc
import importlib.machinery
import json
import logging
import sys
import types
import warnings
from pathlib import Path

ABSENT = ("transformer_engine", "wandb", "mlflow", "comet_ml")
"""Packages that import at start, and that no configuration is checked by."""
IDLE = dict.fromkeys(("__init__", "__call__"), lambda *_, **__: None)


class _Anything(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), IDLE)


class _Absent(types.ModuleType):
    __path__ = ()
    __version__ = "2.19.0"

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), IDLE)


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
import torch.distributed as dist  # noqa: E402
from nemo_automodel._transformers.registry import ModelRegistry  # noqa: E402
from nemo_automodel.components.config.loader import load_yaml_config  # noqa: E402
from nemo_automodel.components.distributed.pipelining.hf_utils import (  # noqa: E402
    validate_hf_model_for_pipeline_support,
)
from nemo_automodel.recipes._dist_utils import create_distributed_setup_from_config  # noqa: E402
from nemo_automodel.recipes._typed_config import RecipeConfig  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402


def judged(launch: dict) -> dict:
    """What AutoModel says against a configuration, empty if nothing, and what it would train."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=launch["ranks"])
    try:
        return {"complaint": "", **validated(RecipeConfig(load_yaml_config(launch["file"])), launch["ranks"])}
    except Exception as error:
        return {"complaint": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    finally:
        dist.destroy_process_group()


def validated(config: RecipeConfig, ranks: int) -> dict:
    """The checks of its recipe before it moves anything to a GPU."""
    for section in ("optimizer", "loss_fn", "dataloader", "checkpoint"):
        assert getattr(config, section) is not None, section
    setup = create_distributed_setup_from_config(config, world_size=ranks)
    mesh, strategy, pipeline = setup.mesh_context, setup.strategy_config, setup.pipeline_config
    dp, local_batch = mesh.dp_size or ranks, config.get("step_scheduler.local_batch_size")
    scheduler = config.step_scheduler.build(dataloader=[0] * 10**6, dp_group_size=dp, local_batch_size=local_batch)
    built, shape = model_of(config)
    micro, chunks = local_batch, 1
    if pipeline:
        micro, parts = pipeline.pp_microbatch_size, pipeline.module_fqns_per_model_part
        assert local_batch // micro >= mesh.pp_size, "fewer micro-batches than stages"
        assert scheduler.grad_acc_steps == 1
        validate_hf_model_for_pipeline_support(built)
        there = {name for name, _ in built.named_modules()}
        assert there >= {name for part in parts for name in part}, "modules that are not there"
        layers = [name for part in parts for name in part if name.startswith("model.layers.")]
        assert layers == [f"model.layers.{i}" for i in range(shape.num_hidden_layers)]
        chunks = len(parts) // mesh.pp_size
    assert mesh.tp_size == 1 or not hasattr(shape, "moe_intermediate_size"), "TP of experts asks for weights"
    fp8 = config.get("fp8", None)
    return {
        "tp": mesh.tp_size,
        "pp": mesh.pp_size,
        "cp": mesh.cp_size,
        "dp": dp,
        "ep": mesh.ep_size,
        "interleave": chunks,
        "micro_batch": micro,
        "global_batch": scheduler.grad_acc_steps * local_batch * dp,
        "sequence_parallel": getattr(strategy, "sequence_parallel", False),
        "recompute": "FullAC" if setup.activation_checkpointing is True else "NoneType",
        "zero": [mesh.dp_shard_size > 1, "always" if getattr(strategy, "reshard_after_forward", False) else "never"],
        "seq": config.dataloader.dataset_config.seq_len,
        "parameters": sum(parameter.numel() for parameter in built.parameters()),
        "quantized": ["Float8Linear"] if fp8 and fp8.enabled else [],
    }


def model_of(config: RecipeConfig) -> tuple[torch.nn.Module, object]:
    """The model, without memory, by AutoModel's own class where it has one."""
    shape = config.model.config.instantiate()
    with torch.device("meta"):
        kind = ModelRegistry.resolve_custom_model_cls(
            f"{type(shape).__name__.removesuffix('Config')}ForCausalLM", shape
        )
        if kind is None:
            return AutoModelForCausalLM.from_config(shape), shape
        backend = config.model.get("backend", None)
        return kind(shape, **({"backend": backend.instantiate()} if backend else {})), shape


torch.cuda.current_device = lambda: 0
question, answer = map(Path, sys.argv[1:])
answer.write_text(json.dumps([judged(launch) for launch in json.loads(question.read_text("utf-8"))]), "utf-8")
