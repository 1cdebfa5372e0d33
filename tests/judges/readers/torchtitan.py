"""What TorchTitan makes of configurations: complaints, or what would be trained, of a JSON file of them.

Runs without a GPU: whether it has 8- or 4-bit products is answered here. Models are built without memory.
"""

import json
import logging
import os
import sys
import warnings
from pathlib import Path

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")

import torch  # noqa: E402
from torchtitan.components.quantization import float8, nvfp4  # noqa: E402
from torchtitan.config import ConfigManager  # noqa: E402
from torchtitan.distributed import ParallelDims, full_dtensor  # noqa: E402
from torchtitan.distributed.pipeline_parallel import _get_pipeline_metadata  # noqa: E402


def judged(launch: dict) -> dict:
    """What TorchTitan says against a configuration, empty if nothing, and what it would train."""
    file = Path(launch["file"])
    sys.path[:0] = [str(file.parent)]
    try:
        config = ConfigManager().parse_args(["--module", file.stem, "--config", "plan"])
        return {"complaint": "", **validated(config, launch["ranks"])}
    except (Exception, SystemExit) as error:
        return {"complaint": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    finally:
        del sys.path[0], sys.modules[file.stem]


def validated(config: object, ranks: int) -> dict:
    """The checks of its trainer before it moves anything to a GPU, in their order."""
    parallelism, training, model = config.parallelism, config.training, config.model_spec.model
    dims = ParallelDims.from_config(parallelism, ranks)
    tokens = (dims.tp if parallelism.enable_sequence_parallel else 1) * (2 * dims.cp if dims.cp > 1 else 1)
    assert training.seq_len % tokens == 0, f"seq_len % {tokens}"
    shards = dims.dp_shard * dims.cp * dims.tp
    assert shards % dims.ep == 0, f"dp_shard * cp * tp = {shards} != efsdp * ep"
    model.update_from_config(config=config)
    config._validate_cuda_graphs()
    with torch.device("meta"):
        built = model.build()
    built.verify_module_protocol()
    full_dtensor.validate_config(dims, built)
    replicas = dims.dp_replicate * dims.dp_shard
    assert training.global_batch_size % (training.local_batch_size * replicas) == 0, "global_batch_size"
    chunks = parallelism.module_fqns_per_model_part
    if dims.pp > 1:
        _get_pipeline_metadata(dims, parallelism, model)
        names = [name for chunk in chunks for name in chunk]
        assert names == ["tok_embeddings", *[f"layers.{i}" for i in range(len(model.layers))], "norm", "lm_head"]
    micro = parallelism.pipeline_parallel_microbatch_size if dims.pp > 1 else training.local_batch_size
    return {
        "tp": dims.tp,
        "pp": dims.pp,
        "cp": dims.cp,
        "dp": replicas,
        "ep": dims.ep,
        "interleave": len(chunks) // dims.pp if chunks else 1,
        "micro_batch": micro,
        "global_batch": training.global_batch_size,
        "sequence_parallel": parallelism.enable_sequence_parallel,
        "recompute": type(config.activation_checkpoint).__qualname__.split(".")[0],
        "zero": [dims.dp_shard > 1, parallelism.fsdp_reshard_after_forward],
        "seq": training.seq_len,
        "parameters": sum(parameter.numel() for parameter in built.parameters()),
        "quantized": sorted({type(module).__name__ for module in built.modules() if "8" in type(module).__name__}),
    }


os.environ["WORLD_SIZE"] = "1"
for module in (float8, nvfp4):
    module.has_cuda_capability = lambda *_: True
question, answer = map(Path, sys.argv[1:])
answer.write_text(json.dumps([judged(launch) for launch in json.loads(question.read_text("utf-8"))]), "utf-8")
