#!/usr/bin/env bash
# FSDP2 in a pipeline of PyTorch holds all parameters and gradients of a stage, as if nothing were sharded.
#
# Versions   torch==2.13.0, on the CPU with gloo
# Expected   With fully_shard on every layer and reshard_after_forward=True (ZeRO 3) a rank holds shards, and whole
#            parameters and gradients of the layers it works on, one or two. A pipeline of 1F1B around it changes
#            activations and not that.
# Behaviour  The schedule defers the reduction of gradients and the resharding in the backward pass to the last
#            micro-batch, whatever the user chose. Until then bf16 parameters of all layers are gathered
#            when a backward pass ends, and gradients of all layers are kept in the fp32 of their reduction: 6 bytes a
#            parameter beside the shards, whatever the number of ranks. Of 70e9 parameters in 8 stages that is 52 GB
#            a GPU, which no count of states divided by ranks shows, and ZeRO 3 saves what ZeRO 1 does.
# Output seen, most bytes a parameter of the rank that are whole between micro-batches
#   4 micro-batches, no pipeline: parameters 0, gradients 0
#   4 micro-batches, 1F1B: parameters 2, gradients 4
#   4 micro-batches, 1F1B of interleaved chunks: parameters 2, gradients 4
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.3.5
cat >"$folder/seen.py" <<'PYTHON'
import gc
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B
from torch.nn.functional import mse_loss

STAGES, SHARDS, LAYERS, WIDTH, BATCHES, ROWS = 2, 2, 8, 64, 4, 2
POLICY = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def whole(kind):
    """Bytes a parameter of the rank in whole matrices that are alive."""
    storages = {}
    for one in gc.get_objects():
        if type(one) in (torch.Tensor, torch.nn.Parameter) and one.dtype == kind and one.shape == (WIDTH, WIDTH):
            storages[one.untyped_storage()._cdata] = one.untyped_storage().nbytes()
    return sum(storages.values()) / (LAYERS * WIDTH * WIDTH)


def sharded(layers, mesh):
    part = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(layers)))
    for one in (*part, part):
        fully_shard(one, mesh=mesh, mp_policy=POLICY, reshard_after_forward=True)
    return part


def watched(stage, seen):
    work = stage.backward_one_chunk

    def backward(*words, **more):
        result = work(*words, **more)
        seen.append((whole(torch.bfloat16), whole(torch.float32)))
        return result

    stage.backward_one_chunk = backward
    return stage


def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=STAGES * SHARDS)
    mesh = init_device_mesh("cpu", (STAGES, SHARDS), mesh_dim_names=("pp", "dp"))
    own, group = mesh.get_local_rank("pp"), mesh.get_group("pp")
    rows = torch.zeros(BATCHES * ROWS, WIDTH)
    seen = {"no pipeline": [], "1F1B": [], "1F1B of interleaved chunks": []}
    layers = sharded(LAYERS, mesh["dp"])
    for batch in rows.chunk(BATCHES):
        mse_loss(layers(batch), batch.bfloat16()).backward()
        seen["no pipeline"].append((whole(torch.bfloat16), whole(torch.float32)))
    del layers
    for name, schedule, chunks in (
        ("1F1B", Schedule1F1B, 1), ("1F1B of interleaved chunks", ScheduleInterleaved1F1B, 2),
    ):
        gc.collect()
        stages = [
            watched(PipelineStage(part, own + STAGES * at, STAGES * chunks, torch.device("cpu"), group=group), seen[name])
            for at, part in enumerate(sharded(LAYERS // chunks, mesh["dp"]) for _ in range(chunks))
        ]
        run = schedule(stages if chunks > 1 else stages[0], BATCHES, loss_fn=mse_loss)
        run.step(*([rows] if own == 0 else []), **({"target": rows.bfloat16()} if own == STAGES - 1 else {}))
        del run, stages
    for name, pairs in seen.items():
        parameters, gradients = (max(column) for column in zip(*pairs))
        if rank == 0:
            print(f"{BATCHES} micro-batches, {name}: parameters {parameters:g}, gradients {gradients:g}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, args=(os.path.abspath("store"),), nprocs=STAGES * SHARDS)
PYTHON
cd "$folder"
OMP_NUM_THREADS=1 ./venv/bin/python -W ignore seen.py 2>errors.txt >seen.txt || { tail -n 5 errors.txt; exit 1; }
cat seen.txt
diff seen.txt - <<'SEEN'
4 micro-batches, no pipeline: parameters 0, gradients 0
4 micro-batches, 1F1B: parameters 2, gradients 4
4 micro-batches, 1F1B of interleaved chunks: parameters 2, gradients 4
SEEN
